r"""Automata of what a negative look-ahead forbids: ``(?:(?!</think>).)*`` as a pattern without look-ahead.

The positions of a pattern are its sets of characters, each once for every place at which it is written. A state of a search is the set of
positions that may take the next character; a run of characters in which nothing forbidden is completed is a path through such states,
and a pattern for these paths comes from taking out one state after the other.
"""

from bisect import bisect_right
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser as sre_parser  # type: ignore[attr-defined]
from typing import Any, NamedTuple

from assay.expressions.regex.trees.charsets import CHARACTERS, Ranges, accepted, joined
from assay.expressions.regex.trees.nodes import EVERYTHING, NEWLINE, TYPE_FLAGS, Nodes, NotLinearError

_MOST_POSITIONS = 200
"""Maximum sets of characters, and ends of the text, in what is forbidden."""
_LARGEST = 10_000
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
    """Return how much larger all ways become without a state."""
    targets = graph[middle]
    loop = targets[middle].size if middle in targets else 0
    into = sum(graph[source][middle].size for source in sources if source != middle)
    out = sum(ways.size for target, ways in targets.items() if target != middle)
    enter, leave = len(sources) - (middle in sources), len(targets) - (middle in targets)
    return into * (leave - 1) + out * (enter - 1) + loop * (enter * leave - 1)


def _take_out(graph: Graph, middle: int, sources: dict[int, set[int]], alphabet: Alphabet) -> None:
    """Replace a state by ways around it."""
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
            if around.size > _LARGEST:
                raise NotLinearError("look-around")
