r"""A pattern as an automaton over classes of code points, from Python's own parse tree.

Threads through the tree become sets of threads, and these the states: one step a character, whatever the pattern. What characters a
node accepts comes from ``charsets``, so Unicode is that of the running Python. ``\b \B ^ $`` are decided by what stands before and behind;
``$`` before a last newline by threads that count only if the text ends there.
"""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import reduce
from itertools import groupby, pairwise
from math import prod
from operator import or_
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser as sre_parser  # type: ignore[attr-defined]
from typing import Any, NamedTuple

from assay.expressions.regex.trees.charsets import (
    CHARACTERS,
    Ranges,
    accepted,
    boundary_in_nothing,
    cut_to_ascii,
    word_characters,
)
from assay.expressions.regex.trees.nodes import REPEATS, Node, NotLinearError, of_group, ways_of, with_flags
from assay.frozen import frozen

MOST_STATES = 400
MOST_CLASSES = 250
_MOST_EDGES = 20_000
DENSE_STATES = 254
"""States up to which a table has an entry for each state and byte."""

LOST, FOUND = 0, 1
"""The state without a match to come, and that with one."""

_END = 0x110000
_ASCII = 128
_NEWLINE: Ranges = ((10, 10),)


class NoAutomatonError(NotLinearError):
    """The pattern has no automaton of a reasonable size; the message says why, in a few words."""


@frozen
class Classes:
    """A partition of the code points: where each interval begins, and its class."""

    starts: tuple[int, ...]
    class_of: tuple[int, ...]
    number: int

    def of(self, code: int) -> int:
        """Return the class of a code point."""
        return self.class_of[bisect_right(self.starts, code) - 1]


class Stops(NamedTuple):
    """Ranges of bytes that may lead out of the group of states around one."""

    ranges: tuple[tuple[int, int], ...]
    state: int


class Needed(NamedTuple):
    """Bytes of which each match has one: ``byte | mask`` equals ``want``."""

    want: bytes
    mask: bytes


@frozen
class Automaton:
    """Whether a text matches, one step a character.

    Attributes:
        rows: The next state by state and class.
        at_end: Whether a text that ends in a state matches.
        needs: Each match contains one of them; none to look at every text.
        reach: Most characters of a match, if it is enough to look at so many on both sides of what it needs; 0 if it is not.
        within: The state behind a character of a class, in the middle of a text, if no match begins before it.
        stops: Of states that most bytes do not lead away from …
        stops_of: … for each state its stops, as a number from 1; 0 for none.
        pair: Ranges of bytes of which each match has two beside each other, as many of the first as of the second; none if they are frequent.
        is_dense: Whether looking at all bytes of several texts in turn is the fastest way.
    """

    rows: tuple[tuple[int, ...], ...]
    at_end: tuple[bool, ...]
    start: int
    classes: Classes
    needs: tuple[Needed, ...]
    reach: int
    within: tuple[int, ...]
    stops: tuple[Stops, ...]
    stops_of: tuple[int, ...]
    pair: tuple[Stops, ...]
    is_dense: bool

    @property
    def states(self) -> int:
        """Number of states."""
        return len(self.rows)


class _Before(NamedTuple):
    r"""What ``\b`` and ``^`` ask of a character; None stands for the ends of the text."""

    is_word: bool
    is_newline: bool


_Kind = _Before | None


class _Threads:
    """The tree as places with edges between them: a character of a set, an assertion, or nothing."""

    def __init__(self) -> None:
        self.sets: dict[Ranges, int] = {}
        self.by_set: list[list[tuple[int, int]]] = []
        self.free: list[list[tuple[Any, int]]] = []
        self.words: Ranges | None = None
        self._edges = 0

    def place(self) -> int:
        self.by_set.append([])
        self.free.append([])
        return len(self.free) - 1

    def link(self, start: int, end: int, assertion: Any = None) -> int:
        self._count()
        self.free[start].append((assertion, end))
        return end

    def _count(self) -> None:
        self._edges += 1
        if self._edges > _MOST_EDGES:
            raise NoAutomatonError("automaton too large")

    def add(self, nodes: Iterable[Node], start: int) -> int:
        for node in nodes:
            start = self._add(node, start)
        return start

    def _add(self, node: Node, start: int) -> int:
        op, value, flags = node
        if op in CHARACTERS:
            self._count()
            end = self.place()
            self.by_set[start].append((self.sets.setdefault(accepted(*node), len(self.sets)), end))
            return end
        if op is sre.SUBPATTERN:  # not with a type of its own: CPython's search uses the outer flags for its prefix
            return self.add(of_group(node), start)
        if op is sre.BRANCH:
            end = self.place()
            for way in ways_of(node):
                self.link(self.add(way, self.link(start, self.place())), end)
            return end
        if op in REPEATS:
            return self._repeat(node, start)
        if op is sre.AT:
            return self._assert(value, flags, start)
        raise NoAutomatonError(_NAMES.get(op, str(op).lower().replace("_", " ")))

    def _repeat(self, node: Node, start: int) -> int:
        least, most, inner = node.value
        if most != 1 and inner.getwidth()[0] == 0:  # CPython repeats nothing but once
            raise NoAutomatonError("a repeat of something that may be empty")
        (way,) = ways_of(node)
        for _ in range(least):
            start = self.add(way, start)
        if most is sre.MAXREPEAT:
            loop = self.link(start, self.place())
            self.link(self.add(way, loop), loop)
            return loop
        end = self.link(start, self.place())
        for _ in range(most - least):
            start = self.add(way, start)
            self.link(start, end)
        return end

    def _assert(self, value: Any, flags: int, start: int) -> int:
        if value in _BOUNDARIES:
            words = word_characters(flags)
            if self.words is not None and self.words != words:
                raise NoAutomatonError("two kinds of words")
            self.words = words
        by_line = sre.AT_MULTILINE if flags & sre.SRE_FLAG_MULTILINE else {}
        return self.link(start, self.place(), by_line.get(value, value))


_BOUNDARIES = sre.AT_BOUNDARY, sre.AT_NON_BOUNDARY
_NAMES = {sre.ASSERT: "look-around", sre.ASSERT_NOT: "look-around", sre.GROUPREF: "back-reference"}


def holds(assertion: Any, before: _Kind, after: _Kind, *, ends: bool) -> bool:
    """Return whether an assertion holds between two characters; ``ends`` if the text ends behind ``after``, a newline."""
    if assertion in _BOUNDARIES:
        is_edge = (before is not None and before.is_word) != (after is not None and after.is_word)
        is_possible = before is not None or after is not None or boundary_in_nothing()
        return is_edge if assertion is sre.AT_BOUNDARY else not is_edge and is_possible
    if assertion in (sre.AT_BEGINNING, sre.AT_BEGINNING_STRING, sre.AT_BEGINNING_LINE):
        return before is None or (assertion is sre.AT_BEGINNING_LINE and before.is_newline)
    behind_last = assertion is sre.AT_END_LINE or (assertion is sre.AT_END and ends)
    return after is None or (behind_last and after.is_newline)


class _State(NamedTuple):
    threads: frozenset[int]
    if_ended: frozenset[int]
    """Threads that count only if the text ends here."""
    before: _Kind


_Edges = list[tuple[int, int]]


class _Subsets:
    """The states: what the threads of a pattern can be at, all of them together."""

    def __init__(self, threads: _Threads, first: int, last: int) -> None:
        self._threads, self._first, self._last = threads, first, last
        sets = [*threads.sets, threads.words or (), _NEWLINE]
        self.classes, within = joint_classes([_in_or_out(ranges) for ranges in sets])
        if self.classes.number > MOST_CLASSES:
            raise NoAutomatonError("automaton too large")
        self._kinds = [_Before(is_word == 1, is_newline == 1) for is_word, is_newline in zip(*within[-2:], strict=True)]
        self._members = [*zip(*within, strict=True)]
        self._newline = len(threads.sets) + 1
        self._has_dollar = any(assertion is sre.AT_END for edges in threads.free for assertion, _ in edges)

    def _reached(self, state: _State, after: _Kind, *, ends: bool = False) -> set[int]:
        stack = [*state.threads, *(state.if_ended if after is None else ())]
        seen = {*stack}
        while stack:
            for assertion, to in self._threads.free[stack.pop()]:
                if to not in seen and (assertion is None or holds(assertion, state.before, after, ends=ends)):
                    seen.add(to)
                    stack.append(to)
        return seen

    def _edges(self, places: Iterable[int]) -> _Edges:
        return [edge for place in places for edge in self._threads.by_set[place]]

    def _moves(self, state: _State, after: _Before) -> tuple[_Edges, _Edges] | None:
        """Return the edges of a state's threads, and those that count only if the text ends behind them; None for a match."""
        reached = self._reached(state, after)
        if self._last in reached:
            return None
        may_be_last = self._has_dollar and after.is_newline
        late = self._reached(state, after, ends=True) - reached if may_be_last else set()
        return self._edges(reached), self._edges(late) + [(self._newline, self._last)] * (self._last in late)

    def table(self) -> tuple[list[list[int]], list[bool], list[int]]:
        """Return the next states by state and class, whether a text may end in each, and those to begin with.

        The first two states are LOST and FOUND. It begins with the third, and behind a character with that of its class.
        """
        begins = [_State(frozenset([self._first]), frozenset(), before) for before in (None, *self._kinds)]
        index = {state: number for number, state in enumerate(dict.fromkeys(begins), 2)}
        order = [*index]
        rows, at_end = [[LOST] * self.classes.number, [FOUND] * self.classes.number], [False, True]
        for state in order:  # which grows
            at_end.append(self._last in self._reached(state, None))
            by_kind = {kind: self._moves(state, kind) for kind in set(self._kinds)}
            row = []
            for inside, kind in zip(self._members, self._kinds, strict=True):
                if (moves := by_kind[kind]) is None:
                    row.append(FOUND)
                    continue
                threads, late = (frozenset([to for each, to in edges if inside[each]]) for edges in moves)
                target = _State(threads | {self._first}, late, kind)
                if target not in index:
                    if len(index) + 2 >= MOST_STATES:
                        raise NoAutomatonError("automaton too large")
                    index[target] = len(index) + 2
                    order.append(target)
                row.append(index[target])
            rows.append(row)
        return rows, at_end, [index[state] for state in begins]


def _in_or_out(ranges: Ranges) -> Classes:
    return Classes((0, *(at for a, z in ranges for at in (a, z + 1))), (0, *(1, 0) * len(ranges)), 2)


def joint_classes(partitions: Sequence[Classes]) -> tuple[Classes, list[tuple[int, ...]]]:
    """Return classes that lie within one class of each partition, and of each partition those that they lie in, by joint class."""
    changes = defaultdict[int, list[tuple[int, int]]](list)
    for number, classes in enumerate(partitions):
        for start, each in zip(classes.starts, classes.class_of, strict=True):
            changes[start].append((number, each))
    changes.pop(_END, None)
    starts, class_of = sorted(changes), list[int]()
    here, ids = [0] * len(partitions), dict[tuple[int, ...], int]()
    for start in starts:
        for number, each in changes[start]:
            here[number] = each
        class_of.append(ids.setdefault(tuple(here), len(ids)))
    return Classes(tuple(starts), tuple(class_of), len(ids)), [*zip(*ids, strict=True)]


def automaton_of(tree: Any, flags: int) -> Automaton:
    """Return an automaton for whether a parsed pattern is found in a text.

    Raises:
        NoAutomatonError: There is none of a reasonable size.
    """
    shortest = _shortest(tree)
    nodes = with_flags(shortest, flags)
    threads = _Threads()
    first = threads.place()
    last = threads.add(nodes, first)
    subsets = _Subsets(threads, first, last)
    rows, at_end, (start, *within) = _smallest(*subsets.table())
    contents = _contents(nodes)
    needs = _needed(contents)
    widest = most if needs and (most := shortest.getwidth()[1]) <= _MOST_REACH else 0
    after_e = rows[start][subsets.classes.of(ord("e"))]
    ends_early = rows[after_e][subsets.classes.of(ord(" "))] == LOST
    stops, stops_of = _stops(rows, start, subsets.classes, anywhere=ends_early)
    is_dense = not stops and not ends_early and not widest and len(rows) <= DENSE_STATES
    frozen, pair = tuple(map(tuple, rows)), () if needs else _pair(contents)
    return Automaton(
        frozen, tuple(at_end), start, subsets.classes, needs, widest, tuple(within), stops, stops_of, pair, is_dense
    )


def _shortest(tree: Any) -> Any:
    """Return what each match begins and ends with without the repeats that only make it longer: ``a+b?`` is found where ``a`` is."""
    kept = [*tree]
    for end in (-1, 0):
        while kept and kept[end][0] in REPEATS and kept[end][1][0] == 0:
            del kept[end]
        if kept and kept[end][0] in REPEATS:
            least, _, inner = kept[end][1]
            kept[end] = sre.MAX_REPEAT, (least, least, inner)
    return sre_parser.SubPattern(tree.state, kept)


def _smallest(
    rows: list[list[int]], at_end: list[bool], begins: list[int]
) -> tuple[list[list[int]], list[bool], list[int]]:
    """Merge the states that no text tells apart; LOST and FOUND stay the first two."""
    part, count = [*map(int, at_end)], 2
    while True:
        ids: dict[tuple[int, ...], int] = {}
        part = [ids.setdefault((part[at], *(part[to] for to in row)), len(ids)) for at, row in enumerate(rows)]
        if len(ids) == count:
            break
        count = len(ids)
    kept = [part.index(number) for number in range(count)]
    return [[part[to] for to in rows[at]] for at in kept], [at_end[at] for at in kept], [part[at] for at in begins]


# ── what to look for first, and what to skip ────────────────────────────────────────────────────────────────────────────


def _frequencies() -> list[int]:
    """Return how often each ASCII character stands in usual text, in parts of some 2,000."""
    counts = [1] * _ASCII
    for place, letter in enumerate("etaoinsrhldcumfpgwybvkxjqz"):
        counts[ord(letter)] = 130 - 5 * place
    for letters, count in ((" ", 220), ("\n", 25), (".,", 20), ("0123456789", 8), ("ABCDEFGHIJKLMNOPQRSTUVWXYZ", 4)):
        for letter in letters:
            counts[ord(letter)] = count
    return counts


_OFTEN = _frequencies()
_ALL = sum(_OFTEN)
_BEYOND = 3
"""As in ``_OFTEN``, for a byte of a character beyond ASCII."""
_RARE = 0.045
"""Share of a text's bytes at which to stop at each of them takes as long as to look at all bytes of several texts in turn."""
_LIKELY = 1 / 2_000
"""Chance that a phrase begins at a place of usual text, beyond which most texts have it: to look for it first saves nothing."""
_FEW_PAIRS = 1 / 50
"""Chance of a pair of bytes up to which it is looked for before all bytes are: many texts have none, however frequent their letters."""
_CHOICES = 16
_MOST_REACH = 100
_ALIKE = 4
_SEARCHED = 40
_RANGES = 4


def often(byte: int) -> int:
    """Return how often a byte stands in usual text."""
    return _OFTEN[byte] if byte < _ASCII else _BEYOND


def literal(items: Sequence[tuple[Any, Any]], flags: int) -> Needed | None:
    """Return the bytes that a pattern stands for, if it is a phrase."""
    folds = bool(flags & sre.SRE_FLAG_IGNORECASE)
    is_phrase = items and all(op is sre.LITERAL and _is_certain(code, folds=folds) for op, code in items)
    return _phrases([accepted(op, code, flags) for op, code in items])[0] if is_phrase else None


def _is_certain(code: int, *, folds: bool) -> bool:
    return (code < _ASCII and chr(code) not in "iIkKsS") if folds else not 0xD800 <= code < 0xE000  # noqa: PLR2004


def _contents(nodes: Iterable[Node]) -> list[Any]:
    """Return what each match has one after the other: characters, a choice as a list of contents, and ``()`` for anything.

    None stands between what is beside each other in some way: an inner repeat may have more of its kind there.
    """
    found: list[Any] = []
    for node in nodes:
        ways = map(_contents, ways_of(node))
        if node.op in CHARACTERS:
            found.append(accepted(*node))
        elif node.op is sre.BRANCH:
            found.append([*ways])
        elif node.op is sre.SUBPATTERN or (node.op in REPEATS and node.value[0] >= 1):
            found += [None, *next(ways), None] * (min(node.value[0], 2) if node.op in REPEATS else 1)
        elif node.op is not sre.AT:
            found.append(())
    return found


def _needed(contents: Sequence[Any]) -> tuple[Needed, ...]:
    """Return phrases of which each match contains one, if it is worth while to look for them first."""
    found: list[tuple[Needed, ...]] = [(each,) for each in _phrases(contents)]
    for branches in (each for each in contents if isinstance(each, list)):
        best = [min(phrases, key=_chance) for branch in branches if (phrases := _phrases(branch))]
        if len(best) == len(branches) <= _CHOICES:
            found.append((*best,))
    best_of_all = min(found, key=lambda phrases: sum(map(_chance, phrases)), default=())
    return best_of_all if sum(map(_chance, best_of_all)) < _LIKELY else ()


def _chance(phrase: Needed) -> float:
    return prod(often(byte) / _ALL * (2 if mask else 1) for byte, mask in zip(*phrase, strict=True))


def _phrases(contents: Iterable[Any]) -> list[Needed]:
    """Return the runs of characters that each match contains, as bytes that they have at least."""
    runs = groupby(map(_alike, contents), bool)
    return [Needed(*map(b"".join, zip(*run, strict=True))) for is_phrase, run in runs if is_phrase]


def _alike(content: Any) -> tuple[bytes, bytes] | None:
    """Return bytes that all characters of a kind have, with the bits in which they differ; None if these are too many."""
    ranges: Ranges = content if isinstance(content, tuple) else ()
    codes = [code for first, last in ranges for code in range(first, min(last, first + _ALIKE) + 1)]
    if not 0 < len(codes) <= _ALIKE or any(0xD800 <= code < 0xE000 for code in codes):  # noqa: PLR2004
        return None
    first, *others = (chr(code).encode() for code in codes)
    if any(len(other) != len(first) for other in others):
        return None
    bits = bytes(reduce(or_, (other[at] ^ byte for other in others), 0) for at, byte in enumerate(first))
    return bytes(map(or_, first, bits)), bits


def _pair(contents: Iterable[Any]) -> tuple[Stops, ...]:
    """Return the rarest bytes that each match has beside each other: the last of a character and the first of the next."""
    characters = [each if isinstance(each, tuple) else () for each in contents if each is not None]
    pairs = [(one, two) for one, two in pairwise(characters) if one and two]
    # of equal ones the first with few ends: what stands before punctuation is often a letter, what stands right behind it seldom
    one, two = min(pairs, key=lambda pair: (prod(map(_share, pair)), _is_beyond(pair[0])), default=((), ()))
    if not one or _share(one) * _share(two) > _FEW_PAIRS:
        return ()
    ends = _ranges(_in_ascii(one) | {*(range(0x80, 0xC0) if _is_beyond(one) else ())})
    begins = _ranges(_in_ascii(two) | _leads(two))
    number = max(len(ends), len(begins))
    return tuple(Stops((*ranges, *ranges[:1] * (number - len(ranges))), LOST) for ranges in (ends, begins))


def _in_ascii(ranges: Ranges) -> set[int]:
    return {code for first, last in cut_to_ascii(ranges) for code in range(first, last + 1)}


def _is_beyond(ranges: Ranges) -> bool:
    return any(last >= _ASCII for _, last in ranges)


def _share(ranges: Ranges) -> float:
    """Return the share of a usual text's characters that are among some."""
    return (sum(map(often, _in_ascii(ranges))) + 100 * _BEYOND * _is_beyond(ranges)) / _ALL


def _stops(
    rows: Sequence[Sequence[int]], start: int, classes: Classes, *, anywhere: bool
) -> tuple[tuple[Stops, ...], tuple[int, ...]]:
    """Return where to stop for states that most bytes of a text do not lead away from, if the search begins with one or ``anywhere``."""
    of_ascii = [classes.of(code) for code in range(_ASCII)]
    weight = [0] * classes.number
    for each, count in zip(of_ascii, _OFTEN, strict=True):
        weight[each] += count
    near_start = sorted({start, *rows[start]} - {LOST, FOUND})
    stops: list[Stops] = []
    stops_of = [0] * len(rows)
    numbers: dict[object, int] = {}
    for state in range(2, len(rows)) if len(rows) <= _SEARCHED else near_start[:8]:
        boring = _boring(rows, state, weight)
        key = tuple((each, rows[state][each]) for each in sorted(boring))
        if key and key not in numbers:
            kinds = zip(pairwise((*classes.starts, _END)), classes.class_of, strict=True)
            others = tuple((first, end - 1) for (first, end), each in kinds if each not in boring)
            ranges = _ranges(_in_ascii(others) | _leads(others))
            is_rare = sum(often(byte) for a, z in ranges if a < _ASCII for byte in range(a, z + 1)) < _RARE * _ALL
            stops += [Stops(ranges, state)] * is_rare
            numbers[key] = len(stops) * is_rare
        stops_of[state] = numbers.get(key, 0)
    if not anywhere and not any(stops_of[state] for state in near_start):
        return (), (0,) * len(rows)
    return tuple(stops), tuple(stops_of)


def _boring(rows: Sequence[Sequence[int]], state: int, weight: Sequence[int]) -> frozenset[int]:
    """Return the classes that lead from a state, and from one beside it, to the same of the two; nothing if they are not most of a text."""
    best, most = frozenset[int](), (1 - _RARE) * _ALL
    often_to = Counter[int]()
    for each, to in enumerate(rows[state]):
        often_to[to] += weight[each]
    for other in (state, max({*rows[state]} - {LOST, FOUND, state}, key=often_to.__getitem__, default=state)):
        pairs = enumerate(zip(rows[state], rows[other], strict=True))
        boring = frozenset(each for each, (to, same) in pairs if to == same and to in (state, other))
        if (total := sum(weight[each] for each in boring)) > most:
            best, most = boring, total
    return best


def _leads(ranges: Iterable[tuple[int, int]]) -> set[int]:
    """Return the first bytes of the characters beyond ASCII that are among some."""
    beyond = ((_lead(max(first, _ASCII)), _lead(last)) for first, last in ranges if last >= _ASCII)
    return {byte for a, z in beyond for byte in range(a, z + 1)}


def _lead(code: int) -> int:
    return chr(0xD7FF if 0xD800 <= code < 0xE000 else code).encode()[0]  # noqa: PLR2004


def _ranges(stops: set[int]) -> tuple[tuple[int, int], ...]:
    """Return at most four ranges around bytes, with as few others as possible, and none within a character."""
    ranges = [(byte, byte) for byte in sorted(stops)]
    gaps = [_gap(first + 1, end) for (first, _), (end, _) in pairwise(ranges)]
    while gaps and (len(ranges) > _RANGES or not min(gaps)):
        at = gaps.index(min(gaps))
        ranges[at : at + 2] = [(ranges[at][0], ranges[at + 1][1])]
        del gaps[at]
    return tuple(ranges)


def _gap(first: int, end: int) -> int:
    return 10**6 if first <= _ASCII <= end else sum(often(byte) for byte in range(first, end))
