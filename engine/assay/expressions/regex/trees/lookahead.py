r"""Patterns with negative look-ahead, written without it: ``<a>(?:(?!</a>).)*</a>``, ``#(?! TODO)\w+``, ``\d(?!.*\d)``.

What a look-ahead forbids is carried along the nodes that follow it, as the state of an automaton (``automata``), until nothing of it can be
completed any more. What follows may rule that out, or make it certain, at once: ``</a>`` cannot complete what began with ``<``. The places
of a pattern, each with what is under way there, are then the states of a graph, which is written as a pattern.
"""

from bisect import bisect_right
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import reduce
from itertools import takewhile
from operator import or_
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser as sre_parser  # type: ignore[attr-defined]
from typing import Any, NamedTuple

from assay.expressions.regex.trees.charsets import CHARACTERS, Ranges, accepted, joined
from assay.expressions.regex.trees.nodes import (
    ENDS,
    EVERYTHING,
    NEWLINE,
    REPEATS,
    TYPE_FLAGS,
    First,
    Node,
    Nodes,
    NotLinearError,
    first_of,
    forbids,
    looks_ahead,
    of_group,
    sets_of,
    ways_of,
    with_flags,
)

_MOST_POSITIONS = 200
"""Maximum sets of characters, and ends of the text, in what is forbidden."""
_LARGEST_AUTOMATON = 10_000
"""Maximum nodes of a pattern for the paths through an automaton."""

State = frozenset[int]
"""Positions that may take the next character."""
_NONE: State = frozenset()


class Alphabet:
    """All characters, split into classes that no set of a pattern divides; a set of classes has the bits of their numbers."""

    def __init__(self, sets: Iterable[Ranges], state: Any) -> None:
        self.state = state
        distinct = [*dict.fromkeys((EVERYTHING, NEWLINE, *sets))]
        starts = sorted({0, *(point for ranges in distinct for first, last in ranges for point in (first, last + 1))})
        classes: dict[tuple[bool, ...], list[tuple[int, int]]] = {}
        for start, end in zip(starts, [*starts[1:], _BEYOND], strict=True):
            if start < end:
                key = tuple(_holds(ranges, start) for ranges in distinct)
                classes.setdefault(key, []).append((start, end - 1))
        self._classes = [*classes.values()]
        self._sets = {
            ranges: sum(1 << number for number, key in enumerate(classes) if key[at])
            for at, ranges in enumerate(distinct)
        }
        self._nodes: dict[int, tuple[Any, Any]] = {}
        self.letters = [1 << number for number in range(len(classes))]
        self.everything = sum(self.letters)

    def classes_of(self, *sets: Ranges) -> int:
        """Return the classes of some of the sets."""
        return reduce(or_, (self._sets[ranges] for ranges in sets), 0)

    def character(self, classes: int) -> tuple[Any, Any]:
        """Return the node of some classes, whatever the flags around it."""
        if classes not in self._nodes:
            own = (ranges for letter, ranges in zip(self.letters, self._classes, strict=True) if classes & letter)
            ranges = [(sre.RANGE, pair) for pair in joined(pair for pairs in own for pair in pairs)]
            inside = self.sequence([(sre.IN, ranges)])
            self._nodes[classes] = sre.SUBPATTERN, (None, 0, sre.SRE_FLAG_IGNORECASE, inside)
        return self._nodes[classes]

    def sequence(self, nodes: Nodes) -> Any:
        """Return nodes as part of a tree."""
        return sre_parser.SubPattern(self.state, nodes)


_BEYOND = 0x110000


def _holds(ranges: Ranges, code: int) -> bool:
    at = bisect_right(ranges, (code, _BEYOND)) - 1
    return at >= 0 and code <= ranges[at][1]


class _Part(NamedTuple):
    """Where matches of a part of a pattern begin and end, and whether one may be empty."""

    first: State
    last: State
    empty: bool


_EMPTY = _Part(_NONE, _NONE, empty=True)


class Forbidden:
    """The positions of everything that some look-aheads forbid.

    Attributes:
        members: The classes that each position takes; none for the end of the text.
        ends: The positions with which something forbidden is complete.
    """

    def __init__(self, alphabet: Alphabet) -> None:
        self.alphabet = alphabet
        self.members: list[int] = []
        self.ends: set[int] = set()
        self._after: list[set[int]] = []
        self._text_ends: set[int] = set()
        self._line_ends: set[int] = set()

    def add(self, items: Iterable[tuple[Any, Any]], flags: int) -> State | None:
        """Add a pattern."""
        first, last, empty = self._sequence(items, flags)
        if any(self._after[position] for position in self._text_ends | self._line_ends):
            raise NotLinearError("look-around")
        self.ends |= last
        return None if empty else first

    def after(self, positions: Iterable[int]) -> State:
        """Return the positions that may follow."""
        return frozenset[int]().union(*(self._after[position] for position in positions))

    def taking(self, state: State, classes: int) -> State:
        """Return the positions of a state that take one of some classes."""
        return frozenset(position for position in state if self.members[position] & classes)

    def completed_at_end(self, state: State) -> bool:
        """Return whether something forbidden is complete if the text ends."""
        return bool(state & self.ends & self._text_ends)

    def _position(self, members: int) -> _Part:
        if len(self.members) >= _MOST_POSITIONS:
            raise NotLinearError("look-around")
        self.members.append(members)
        self._after.append(set())
        own = frozenset((len(self.members) - 1,))
        return _Part(own, own, empty=False)

    def _joined(self, left: _Part, right: _Part) -> _Part:
        for position in left.last:
            self._after[position] |= right.first
        return _Part(
            left.first | right.first if left.empty else left.first,
            left.last | right.last if right.empty else right.last,
            left.empty and right.empty,
        )

    def _sequence(self, items: Iterable[tuple[Any, Any]], flags: int) -> _Part:
        part = _EMPTY
        for op, value in items:
            part = self._joined(part, self._node(op, value, flags))
        return part

    def _node(self, op: Any, value: Any, flags: int) -> _Part:
        if op in CHARACTERS:
            return self._position(self.alphabet.classes_of(accepted(op, value, flags)))
        if op is sre.SUBPATTERN:
            _, add, remove, inner = value
            if add & TYPE_FLAGS:
                raise NotLinearError("scoped a/u flags")
            return self._sequence(inner, (flags | add) & ~remove)
        if op is sre.BRANCH:
            return _either([self._sequence(way, flags) for way in value[1]])
        if op in (sre.MAX_REPEAT, sre.MIN_REPEAT):
            return self._repeat(value, flags)
        if op is sre.AT and value in (sre.AT_END, sre.AT_END_STRING):
            return self._end(value, flags)
        raise NotLinearError("look-around")

    def _repeat(self, value: Any, flags: int) -> _Part:
        low, high, inner = value
        part = _EMPTY
        for _ in range(low):
            latest = self._sequence(inner, flags)
            part = self._joined(part, latest)
        if high is sre.MAXREPEAT:
            again = latest if low else self._sequence(inner, flags)
            self._joined(again, again)
            return part if low else _Part(again.first, again.last, empty=True)
        optional = _EMPTY
        for _ in range(high - low):
            joined_ = self._joined(self._sequence(inner, flags), optional)
            optional = _Part(joined_.first, joined_.last, empty=True)
        return self._joined(part, optional)

    def _end(self, where: Any, flags: int) -> _Part:
        if where is sre.AT_END_STRING:
            return self._text_end()
        newline = self._position(self.alphabet.classes_of(NEWLINE))
        if flags & sre.SRE_FLAG_MULTILINE:
            self._line_ends |= newline.first  # it stays in the text, so nothing can be read after it
            return _either([self._text_end(), newline])
        return _either([self._text_end(), self._joined(newline, self._text_end())])

    def _text_end(self) -> _Part:
        end = self._position(0)
        self._text_ends |= end.first
        return end


def _either(parts: Sequence[_Part]) -> _Part:
    first, last = (_NONE.union(*ends) for ends in ([part.first for part in parts], [part.last for part in parts]))
    return _Part(first, last, any(part.empty for part in parts))


@dataclass
class Ways:
    """Alternative ways from one state to another: single characters, and sequences of nodes.

    Attributes:
        classes: The classes of the characters.
        sequences: The sequences.
        size: The nodes of all, about.
    """

    classes: int = 0
    sequences: list[Nodes] = field(default_factory=list)
    size: int = 0

    def add(self, sequence: Nodes, size: int) -> None:
        """Add a sequence."""
        self.sequences.append(sequence)
        self.size += size

    def add_classes(self, classes: int) -> None:
        """Add characters."""
        self.classes |= classes
        self.size += 1

    def nodes(self, alphabet: Alphabet) -> Nodes:
        """Return the ways as one sequence."""
        single = [[alphabet.character(self.classes)]] if self.classes else []
        ways = [*single, *self.sequences]
        if len(ways) == 1:
            return ways[0]
        return [(sre.BRANCH, (None, [alphabet.sequence(list(way)) for way in ways]))]


Graph = dict[int, dict[int, Ways]]
"""The ways from each state to others."""


def all_ways(graph: Graph, start: int, end: int, alphabet: Alphabet) -> Nodes | None:
    """Return a pattern for all ways from a state to another, by taking out the others, the ones with the smallest ways first."""
    sources: dict[int, set[int]] = {number: set() for number in (*graph, end)}
    for source, targets in graph.items():
        for target in targets:
            sources[target].add(source)
    left = graph.keys() - {start, end}
    while left:
        middle = min(left, key=lambda number: (_growth(graph, number, sources[number]), number))
        left.remove(middle)
        _take_out(graph, middle, sources, alphabet)
    ways = graph[start].get(end)
    return None if ways is None else ways.nodes(alphabet)


def _growth(graph: Graph, middle: int, sources: Collection[int]) -> int:
    targets = graph[middle]
    loop = targets[middle].size if middle in targets else 0
    into = sum(graph[source][middle].size for source in sources if source != middle)
    out = sum(ways.size for target, ways in targets.items() if target != middle)
    enter, leave = len(sources) - (middle in sources), len(targets) - (middle in targets)
    return into * (leave - 1) + out * (enter - 1) + loop * (enter * leave - 1)


def _take_out(graph: Graph, middle: int, sources: dict[int, set[int]], alphabet: Alphabet) -> None:
    targets = graph.pop(middle)
    loop = targets.pop(middle, None)
    again: Nodes = []
    if loop is not None:
        again = [(sre.MAX_REPEAT, (0, sre.MAXREPEAT, alphabet.sequence(loop.nodes(alphabet))))]
    for target in targets:
        sources[target].remove(middle)
    for source in sources.pop(middle) - {middle}:
        into = graph[source].pop(middle)
        for target, out in targets.items():
            around = graph[source].setdefault(target, Ways())
            size = into.size + out.size + (loop.size if loop else 0)
            around.add([*into.nodes(alphabet), *again, *out.nodes(alphabet)], size)
            sources[target].add(source)
            if around.size > _LARGEST_AUTOMATON:
                raise NotLinearError("look-around")


_MOST_PLACES = 300
"""Maximum places in a sequence, each counted once for every state in which it is reached."""
_LARGEST = 50_000
"""Maximum nodes and ranges of characters that are written."""
_NEVER = (sre.IN, [(sre.NEGATE, None), (sre.RANGE, (0, 0x10FFFF))])
_REST = Node("the rest of the text", None, 0)


def without_look_ahead(tree: Any) -> Any:
    """Return a tree that matches in the same texts, without negative look-ahead."""
    items = with_flags(tree, tree.state.flags)
    if not looks_ahead(items):
        raise _unwritten()
    nodes = _Sequence(_Ahead(Alphabet(sets_of(items), tree.state)), []).written(items)
    if nodes is not None and _size(nodes) > _LARGEST:
        raise _unwritten()
    return sre_parser.SubPattern(tree.state, [_NEVER] if nodes is None else nodes)


def _size(node: Any, size: int = 0) -> int:
    """Return the number of nodes in a sequence, or something above the maximum."""
    for part in node:
        if size <= _LARGEST and isinstance(part, sre_parser.SubPattern | list | tuple):
            size = _size(part, size + 1)
    return size


def _unwritten() -> NotLinearError:
    return NotLinearError("look-around")


class _Fate(Enum):
    """What comes of something forbidden that is under way."""

    NEVER = "it cannot be completed"
    ALWAYS = "it is completed"
    UNSURE = "it depends"


class _Ahead:
    """What look-aheads of a pattern forbid, and what comes of it."""

    def __init__(self, alphabet: Alphabet) -> None:
        self.alphabet = alphabet
        self.forbidden = Forbidden(alphabet)
        self._newline = alphabet.classes_of(NEWLINE)
        self._known: dict[tuple[int, int], State | None] = {}

    def forbid(self, nodes: Iterable[Node]) -> State | None:
        """Return what negative look-aheads forbid; None if that is everything."""
        firsts = [self._first_forbidden(node) for node in nodes]
        return None if None in firsts else _NONE.union(*(first for first in firsts if first is not None))

    def _first_forbidden(self, node: Node) -> State | None:
        key = id(node.value), node.flags
        if key not in self._known:
            self._known[key] = self.forbidden.add(node.value[1], node.flags)
        return self._known[key]

    def fate(self, under_way: State, items: Sequence[Node]) -> _Fate:
        """Return what comes of what is under way, whatever text matches what follows."""
        certain = possible = under_way
        line = list(items)
        while line and possible:
            node = line.pop(0)
            if node.op is sre.SUBPATTERN:
                line[:0] = of_group(node)
            elif node.op is sre.AT and node.value in ENDS:
                return self._fate_at_end(certain, possible, node)
            elif node.op in CHARACTERS:
                certain, possible = self._taken(certain, possible, self.classes(node))
                if possible & self.forbidden.ends:
                    return _Fate.ALWAYS if certain & self.forbidden.ends else _Fate.UNSURE
                certain, possible = self.forbidden.after(certain), self.forbidden.after(possible)
            elif node.op in (sre.BRANCH, *REPEATS):
                return self._fate_before(first_of([node, *line]), possible)
            elif node.op not in (sre.AT, sre.ASSERT, sre.ASSERT_NOT):
                return _Fate.UNSURE
        return _Fate.UNSURE if possible else _Fate.NEVER

    def _fate_before(self, first: First, possible: State) -> _Fate:
        ends = first.at_end and self.forbidden.completed_at_end(possible)
        classes = self.alphabet.classes_of(*first.members)
        goes_on = first.empty or ends or self.forbidden.taking(possible, classes)
        return _Fate.UNSURE if goes_on else _Fate.NEVER

    def _fate_at_end(self, certain: State, possible: State, node: Node) -> _Fate:
        r"""Return what comes of what is under way before ``$`` or ``\Z``."""
        ended = self._fate_in_nothing(certain, possible)
        if node.value is sre.AT_END_STRING:
            return ended
        certain, possible = self._taken(certain, possible, self._newline)
        if possible & self.forbidden.ends:
            return _Fate.UNSURE
        certain, possible = self.forbidden.after(certain), self.forbidden.after(possible)
        if node.flags & sre.SRE_FLAG_MULTILINE:
            before_newline = _Fate.UNSURE if possible else _Fate.NEVER
        else:
            before_newline = self._fate_in_nothing(certain, possible)
        return ended if ended is before_newline else _Fate.UNSURE

    def _fate_in_nothing(self, certain: State, possible: State) -> _Fate:
        if self.forbidden.completed_at_end(certain):
            return _Fate.ALWAYS
        return _Fate.UNSURE if self.forbidden.completed_at_end(possible) else _Fate.NEVER

    def _taken(self, certain: State, possible: State, classes: int) -> tuple[State, State]:
        """Return the positions that take every character of a set, and those that take any."""
        own = self.forbidden.members
        return (
            frozenset(position for position in certain if not classes & ~own[position]),
            self.forbidden.taking(possible, classes),
        )

    def classes(self, node: Node) -> int:
        """Return the classes that a single-character node accepts."""
        return self.alphabet.classes_of(accepted(*node))


class _Step(NamedTuple):
    """A character of a run, what must not begin before it, and what must not begin after it."""

    classes: int
    before: State = _NONE
    after: State = _NONE


class _Place(NamedTuple):
    """A place in a sequence: what is forbidden from there on, or has begun before; and the rest of the sequence."""

    under_way: State
    items: tuple[Node, ...]


_START, _END = 0, 1
"""Numbers of states; those of the places follow."""


class _Sequence:
    """Writes a sequence of nodes so that nothing forbidden is completed."""

    def __init__(self, ahead: _Ahead, after: Sequence[Node]) -> None:
        self._ahead, self._after = ahead, after
        self._forbidden, self._alphabet = ahead.forbidden, ahead.alphabet
        self._graph: Graph = {_START: {}}
        self._places: list[_Place] = []
        self._numbers: dict[Any, int] = {}
        self._number = _START
        self._repeats: dict[tuple[int, int, Any], Node] = {}

    def written(self, items: Sequence[Node]) -> Nodes | None:
        """Return the sequence without look-ahead; None if it matches nowhere."""
        plain = [*takewhile(lambda node: not looks_ahead([node]), items)]  # as they are, for the engine to skip to them
        self._add([], _NONE, items[len(plain) :])
        for number, place in enumerate(self._places, _END + 1):  # more are added meanwhile
            self._number = number
            self._leave(place)
        ways = all_ways(self._graph, _START, _END, self._alphabet)
        return None if ways is None else [*map(self._plain, plain), *ways]

    def _ways_to(self, under_way: State, items: Sequence[Node]) -> Ways | None:
        """Return the ways from the present place to another one; None if something forbidden is completed there."""
        fate = self._ahead.fate(under_way, [*items, *self._after]) if under_way else _Fate.NEVER
        if fate is _Fate.ALWAYS:
            return None
        place = _Place(_NONE if fate is _Fate.NEVER else under_way, tuple(items))
        key = place.under_way, tuple((node.op, id(node.value), node.flags) for node in items)  # a list has no hash
        if key not in self._numbers:
            if len(self._places) >= _MOST_PLACES:
                raise _unwritten()
            self._numbers[key] = len(self._places) + _END + 1
            self._graph[self._numbers[key]] = {}
            self._places.append(place)
        return self._graph[self._number].setdefault(self._numbers[key], Ways())

    def _add(self, nodes: Nodes, under_way: State, items: Sequence[Node]) -> None:
        ways = self._ways_to(under_way, items)
        if ways is not None:
            ways.add(nodes, len(nodes))

    def _add_end(self, nodes: Nodes) -> None:
        self._graph[self._number].setdefault(_END, Ways()).add(nodes, len(nodes))

    def _leave(self, place: _Place) -> None:
        under_way, (node, *others) = place.under_way, place.items or (_REST,)
        if node is _REST and self._after:
            if under_way:
                raise _unwritten()
            self._add_end([])
        elif node is _REST:
            self._leave_rest(under_way)
        elif forbids(node):
            first = self._ahead.forbid([node])
            if first is not None:
                self._add([], under_way | first, others)
        elif under_way or looks_ahead([node]):
            self._go_through(under_way, node, others)
        else:
            self._add([self._plain(node)], _NONE, others)

    def _leave_rest(self, under_way: State) -> None:
        """Read on to where nothing forbidden is under way, or to the end of the text."""
        if not under_way:
            self._add_end([])
            return
        if not self._forbidden.completed_at_end(under_way):
            self._add_end([(sre.AT, sre.AT_END_STRING)])
        self._add_characters(under_way, [_Step(self._alphabet.everything)], [_REST])

    def _go_through(self, under_way: State, node: Node, others: Sequence[Node]) -> None:
        """Add the ways through a node that has look-ahead, or while something is under way."""
        if node.op in REPEATS:
            self._repeat(under_way, node, others)
        elif node.op in (sre.SUBPATTERN, sre.BRANCH):
            for way in ways_of(node):
                self._add([], under_way, [*way, *others])
        elif node.op in (sre.AT, sre.ASSERT):
            self._add([self._plain(node)], under_way, others)
        elif node.op in CHARACTERS:
            self._add_characters(under_way, [_Step(self._ahead.classes(node))], others)
        else:
            raise _unwritten()

    def _add_characters(self, under_way: State, steps: Sequence[_Step], others: Sequence[Node]) -> None:
        for letter in self._alphabet.letters:
            accepting = [step for step in steps if step.classes & letter]
            if len(accepting) > 1:
                raise _unwritten()
            for _, before, after in accepting:
                taking = self._forbidden.taking(under_way | before, letter)
                if not taking & self._forbidden.ends:
                    ways = self._ways_to(self._forbidden.after(taking) | after, others)
                    if ways is not None:
                        ways.add_classes(letter)

    def _repeat(self, under_way: State, node: Node, others: Sequence[Node]) -> None:
        low, high, _ = node.value
        (body,) = ways_of(node)
        is_endless = high is sre.MAXREPEAT
        steps = self._steps(body) if is_endless else None
        if steps is not None or (not is_endless and (under_way or high == 1)):
            more = self._repeated(node, max(low - 1, 0), high if is_endless else high - 1)
            if not low:
                self._add([], under_way, others)
            if steps is None:
                self._add([], under_way, [*body, *more, *others])
            else:
                self._add_characters(under_way, steps, [*more, *others])
        elif under_way:
            raise _unwritten()
        else:
            again = self._repeated(node, 0, high)  # or what follows, after the last time
            inside = _Sequence(self._ahead, [*again, *others, *self._after]).written(body)
            if inside is not None:
                repeat = node.op, (low, high, self._alphabet.sequence(inside))
                self._add([repeat], _NONE, others)
            elif not low:
                self._add([], _NONE, others)

    def _repeated(self, node: Node, low: int, high: Any) -> list[Node]:
        """Return a repeat with other counts: the same node each time, and none without anything to repeat."""
        if high == 0 or (low, high) == node.value[:2]:
            return [node] if high else []
        inner = node.value[2]
        return [self._repeats.setdefault((id(inner), low, high), Node(node.op, (low, high, inner), node.flags))]

    def _steps(self, body: list[Node]) -> list[_Step] | None:
        """Return the body of a repeat as steps; None if it is not a choice of single characters with look-ahead around them."""
        if len(body) == 1 and body[0].op in (sre.SUBPATTERN, sre.BRANCH):
            ways = [self._steps(way) for way in ways_of(body[0])]
            return None if None in ways else [step for steps in ways for step in steps or ()]
        before = list(takewhile(forbids, body))
        middle, behind = body[len(before) : len(before) + 1], body[len(before) + 1 :]
        if not middle or not all(map(forbids, behind)):
            return None
        (node,) = middle
        if node.op in CHARACTERS:
            steps: list[_Step] | None = [_Step(self._ahead.classes(node))]
        else:
            steps = self._steps([node]) if node.op in (sre.SUBPATTERN, sre.BRANCH) else None
        if steps is None:
            return None
        first, last = self._ahead.forbid(before), self._ahead.forbid(behind)
        if first is None or last is None:
            return []
        return [_Step(classes, own | first, after | last) for classes, own, after in steps]

    def _plain(self, node: Node) -> tuple[Any, Any]:
        op, value, flags = node
        own = self._alphabet.state.flags
        if flags == own:
            return op, value
        inside = self._alphabet.sequence([(op, value)])
        return sre.SUBPATTERN, (None, flags & ~own, own & ~flags, inside)
