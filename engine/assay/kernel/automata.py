r"""A pattern as an automaton over classes of code points, from Python's own parse tree.

Threads through the tree become sets of threads, and these the states: one step a character, whatever the pattern. What characters a
node accepts comes from ``charsets``, so Unicode is that of the running Python. ``\b \B ^ $`` are decided by what stands before and behind;
``$`` before a last newline by threads that count only if the text ends there.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from itertools import accumulate, combinations, pairwise, takewhile
from math import prod
from operator import or_, xor
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
from assay.expressions.regex.trees.nodes import TYPE_FLAGS
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


class NoAutomatonError(Exception):
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

    def intervals(self) -> Iterator[tuple[int, int, int]]:
        """Yield the first code point, the one behind the last, and the class of each interval."""
        yield from zip(self.starts, (*self.starts[1:], _END), self.class_of, strict=True)


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
        self.free: list[list[tuple[str, int]]] = []
        self.words: Ranges | None = None
        self._edges = 0

    def place(self) -> int:
        self.by_set.append([])
        self.free.append([])
        return len(self.free) - 1

    def link(self, start: int, end: int, assertion: str = "") -> int:
        self._count()
        self.free[start].append((assertion, end))
        return end

    def _count(self) -> None:
        self._edges += 1
        if self._edges > _MOST_EDGES:
            raise NoAutomatonError("automaton too large")

    def add(self, items: Iterable[tuple[Any, Any]], flags: int, start: int) -> int:
        for op, value in items:
            start = self._item(op, value, flags, start)
        return start

    def _item(self, op: Any, value: Any, flags: int, start: int) -> int:
        if op in CHARACTERS:
            self._count()
            end = self.place()
            ranges = accepted(op, value, flags)
            self.by_set[start].append((self.sets.setdefault(ranges, len(self.sets)), end))
            return end
        if op is sre.SUBPATTERN:
            _, added, dropped, inner = value
            if added & TYPE_FLAGS:  # CPython's search uses the outer flags for its prefix
                raise NoAutomatonError("scoped a/u flags")
            return self.add(inner, (flags | added) & ~dropped, start)
        if op is sre.BRANCH:
            end = self.place()
            for inner in value[1]:
                self.link(self.add(inner, flags, self.link(start, self.place())), end)
            return end
        if op in (sre.MAX_REPEAT, sre.MIN_REPEAT):
            return self._repeat(value[0], value[1], value[2], flags, start)
        if op is sre.AT:
            return self.link(start, self.place(), self._assertion(value, flags))
        raise NoAutomatonError(_NAMES.get(op, str(op).lower().replace("_", " ")))

    def _repeat(self, least: int, most: Any, inner: Any, flags: int, start: int) -> int:
        if (
            most != 1 and isinstance(inner, sre_parser.SubPattern) and inner.getwidth()[0] == 0
        ):  # CPython repeats nothing but once
            raise NoAutomatonError("a repeat of something that may be empty")
        for _ in range(least):
            start = self.add(inner, flags, start)
        if most is sre.MAXREPEAT:
            loop = self.link(start, self.place())
            self.link(self.add(inner, flags, loop), loop)
            return loop
        end = self.link(start, self.place())
        for _ in range(most - least):
            start = self.add(inner, flags, start)
            self.link(start, end)
        return end

    def _assertion(self, value: Any, flags: int) -> str:
        many = "m" if flags & sre.SRE_FLAG_MULTILINE else ""
        if value in (sre.AT_BOUNDARY, sre.AT_NON_BOUNDARY):
            words = word_characters(flags)
            if self.words is not None and self.words != words:
                raise NoAutomatonError("two kinds of words")
            self.words = words
        names = {sre.AT_BOUNDARY: "b", sre.AT_NON_BOUNDARY: "B", sre.AT_BEGINNING: f"^{many}", sre.AT_END: f"${many}"}
        return {**names, sre.AT_BEGINNING_STRING: "^", sre.AT_END_STRING: "z"}[value]


_NAMES = {sre.ASSERT: "look-around", sre.ASSERT_NOT: "look-around", sre.GROUPREF: "back-reference"}


def holds(assertion: str, before: _Kind, after: _Kind, *, ends: bool) -> bool:
    """Return whether an assertion holds between two characters; ``ends`` if the text ends behind ``after``, a newline."""
    if assertion in ("b", "B"):
        is_edge = (before is not None and before.is_word) != (after is not None and after.is_word)
        is_possible = before is not None or after is not None or boundary_in_nothing()
        return is_edge if assertion == "b" else not is_edge and is_possible
    if assertion in ("^", "^m"):
        return before is None or (assertion == "^m" and before.is_newline)
    behind_last = assertion == "$m" or (assertion == "$" and ends)
    return after is None or (behind_last and after.is_newline)


class _State(NamedTuple):
    threads: frozenset[int]
    if_ended: frozenset[int]
    """Threads that count only if the text ends here."""
    before: _Kind
    may_end: bool
    """Whether there is a match if the text ends here."""


class _Moves(NamedTuple):
    """What the characters of one kind do in a state."""

    is_match: bool
    moves: tuple[tuple[int, int], ...]
    late: tuple[tuple[int, int], ...]
    is_match_if_last: bool


class _Subsets:
    """The states: what the threads of a pattern can be at, all of them together."""

    def __init__(self, threads: _Threads, first: int, last: int) -> None:
        self._threads, self._first, self._last = threads, first, last
        words = threads.words or ()
        self.classes, members = _partition([*threads.sets, words, _NEWLINE])
        size = len(threads.sets)
        if self.classes.number > MOST_CLASSES:
            raise NoAutomatonError("automaton too large")
        self._kinds = [_Before(size in inside, size + 1 in inside) for inside in members]
        self._members = members
        self._closures: dict[tuple[frozenset[int], _Kind, _Kind, bool], frozenset[int]] = {}
        self._has_dollar = any(assertion == "$" for edges in threads.free for assertion, _ in edges)

    def _reached(self, places: frozenset[int], before: _Kind, after: _Kind, *, ends: bool = False) -> frozenset[int]:
        key = places, before, after, ends
        if (known := self._closures.get(key)) is None:
            seen, stack = set(places), [*places]
            while stack:
                for assertion, to in self._threads.free[stack.pop()]:
                    if to not in seen and (not assertion or holds(assertion, before, after, ends=ends)):
                        seen.add(to)
                        stack.append(to)
            known = self._closures[key] = frozenset(seen)
        return known

    def _steps(self, places: Iterable[int]) -> tuple[tuple[int, int], ...]:
        return tuple(edge for place in places for edge in self._threads.by_set[place])

    def _moves(self, state: _State, after: _Before) -> _Moves:
        reached = self._reached(state.threads, state.before, after)
        late: tuple[tuple[int, int], ...] = ()
        is_match_if_last = False
        if self._has_dollar and after.is_newline:
            more = self._reached(state.threads, state.before, after, ends=True)
            late, is_match_if_last = self._steps(more - reached), self._last in more
        return _Moves(self._last in reached, self._steps(reached), late, is_match_if_last)

    def table(self) -> tuple[list[list[int]], list[bool], list[int]]:
        """Return the next states by state and class, whether a text may end in each, and those to begin with.

        The first two states are LOST and FOUND. It begins with the third, and behind a character with that of its class.
        """
        before: list[_Kind] = [None, *self._kinds]
        begins = [_State(frozenset([self._first]), frozenset(), each, may_end=False) for each in before]
        order = [*dict.fromkeys(begins)]
        index = {state: at + 2 for at, state in enumerate(order)}
        number = self.classes.number
        rows, at_end = [[LOST] * number, [FOUND] * number], [False, True]
        at = 0
        while at < len(order):
            state = order[at]
            at += 1
            ended = self._reached(state.threads | state.if_ended, state.before, None)
            at_end.append(state.may_end or self._last in ended)
            by_kind = {kind: self._moves(state, kind) for kind in set(self._kinds)}
            row = []
            for inside, kind in zip(self._members, self._kinds, strict=True):
                moves = by_kind[kind]
                if moves.is_match:
                    row.append(FOUND)
                    continue
                threads = frozenset([self._first, *(to for each, to in moves.moves if each in inside)])
                late = frozenset(to for each, to in moves.late if each in inside)
                target = _State(threads, late, kind, moves.is_match_if_last)
                if target not in index:
                    if len(order) + 2 >= MOST_STATES:
                        raise NoAutomatonError("automaton too large")
                    index[target] = len(order) + 2
                    order.append(target)
                row.append(index[target])
            rows.append(row)
        return rows, at_end, [index[state] for state in begins]


def _partition(sets: Sequence[Ranges]) -> tuple[Classes, list[frozenset[int]]]:
    """Return classes of code points that the same sets contain, and which sets contain each class."""
    changes = {0: 0}  # sets are bits: those of the sets of which a range begins or ends; not where the next one begins
    for number, ranges in enumerate(sets):
        bit = 1 << number
        for first, last in ranges:
            changes[first] = changes.get(first, 0) ^ bit
            changes[last + 1] = changes.get(last + 1, 0) ^ bit
    changes.pop(_END, None)
    starts = sorted(changes)
    inside = [*accumulate(map(changes.__getitem__, starts), xor)]
    ids = {bits: number for number, bits in enumerate(dict.fromkeys(inside))}
    members = [frozenset(number for number in range(len(sets)) if bits >> number & 1) for bits in ids]
    return Classes(tuple(starts), tuple(map(ids.__getitem__, inside)), len(ids)), members


def joint_classes(partitions: Sequence[Classes]) -> tuple[Classes, list[tuple[int, ...]]]:
    """Return classes that lie within one class of each partition, and of each partition those that they lie in, by joint class."""
    starts = sorted({start for classes in partitions for start in classes.starts})
    ids: dict[tuple[int, ...], int] = {}
    class_of = [ids.setdefault(tuple(classes.of(start) for classes in partitions), len(ids)) for start in starts]
    return Classes(tuple(starts), tuple(class_of), len(ids)), [*zip(*ids, strict=True)]


def automaton_of(tree: Iterable[tuple[Any, Any]], flags: int) -> Automaton:
    """Return an automaton for whether a parsed pattern is found in a text.

    Raises:
        NoAutomatonError: There is none of a reasonable size.
    """
    items = _shortest(tree)
    threads = _Threads()
    first = threads.place()
    last = threads.add(items, flags, first)
    subsets = _Subsets(threads, first, last)
    rows, at_end, (start, *within) = _smallest(*subsets.table())
    needs = _needed(items, flags)
    widest = most if (most := _widest(items)) <= _MOST_REACH and needs else 0
    after_e = rows[start][subsets.classes.of(ord("e"))]
    ends_early = rows[after_e][subsets.classes.of(ord(" "))] == LOST
    stops, stops_of = _stops(rows, start, subsets.classes, anywhere=ends_early)
    is_dense = not stops and not ends_early and not widest and len(rows) <= DENSE_STATES
    frozen, pair = tuple(map(tuple, rows)), () if needs else _pair(items, flags)
    return Automaton(
        frozen, tuple(at_end), start, subsets.classes, needs, widest, tuple(within), stops, stops_of, pair, is_dense
    )


def _shortest(items: Iterable[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Return what each match begins and ends with without the repeats that only make it longer: ``a+b?`` is found where ``a`` is."""
    kept = [*items]
    for end in (-1, 0):
        while kept and kept[end][0] in (sre.MAX_REPEAT, sre.MIN_REPEAT) and kept[end][1][0] == 0:
            del kept[end]
        if kept and kept[end][0] in (sre.MAX_REPEAT, sre.MIN_REPEAT):
            least, _, inner = kept[end][1]
            kept[end] = sre.MAX_REPEAT, (least, least, inner)
    return kept


def _widest(items: Iterable[tuple[Any, Any]]) -> int:
    """Return the most characters that a match has, or more than any window."""
    total = 0
    for op, value in items:
        if op in CHARACTERS:
            total += 1
        elif op is sre.SUBPATTERN:
            total += _widest(value[3])
        elif op is sre.BRANCH:
            total += max(map(_widest, value[1]))
        elif op in (sre.MAX_REPEAT, sre.MIN_REPEAT):
            total += min(int(value[1]), _MOST_REACH + 1) * _widest(value[2])
    return total


def _smallest(
    rows: list[list[int]], at_end: list[bool], begins: list[int]
) -> tuple[list[list[int]], list[bool], list[int]]:
    """Merge the states that no text tells apart; LOST and FOUND stay the first two."""
    part: list[int] = [*map(int, at_end)]
    count = 2
    while True:
        ids: dict[tuple[int, ...], int] = {}
        part = [ids.setdefault((part[at], *(part[to] for to in row)), len(ids)) for at, row in enumerate(rows)]
        if len(ids) == count:
            break
        count = len(ids)
    names, kept = {part[LOST]: LOST, part[FOUND]: FOUND}, [LOST, FOUND]
    for at, each in enumerate(part):
        if each not in names:
            names[each] = len(kept)
            kept.append(at)
    return (
        [[names[part[to]] for to in rows[at]] for at in kept],
        [at_end[at] for at in kept],
        [names[part[at]] for at in begins],
    )


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
_NEAR = 5
_SEARCHED = 40
_RANGES = 4


def often(byte: int) -> int:
    """Return how often a byte stands in usual text."""
    return _OFTEN[byte] if byte < _ASCII else _BEYOND


def literal(items: Sequence[tuple[Any, Any]], flags: int) -> Needed | None:
    """Return the bytes that a pattern stands for, if it is a phrase."""
    folds = bool(flags & sre.SRE_FLAG_IGNORECASE)
    is_phrase = items and all(op is sre.LITERAL and _is_certain(code, folds=folds) for op, code in items)
    return _bytes_of([accepted(op, code, flags) for op, code in items]) if is_phrase else None


def _is_certain(code: int, *, folds: bool) -> bool:
    return (code < _ASCII and chr(code) not in "iIkKsS") if folds else not 0xD800 <= code < 0xE000  # noqa: PLR2004


def _needed(items: Sequence[tuple[Any, Any]], flags: int) -> tuple[Needed, ...]:
    """Return phrases of which each match contains one, if it is worth while to look for them first."""
    found: list[tuple[Needed, ...]] = [(each,) for each in _phrases(items, flags)]
    for branches, inner_flags in _choices(items, flags):
        best = [min(_phrases(branch, inner_flags), key=_chance, default=None) for branch in branches]
        if len(best) <= _CHOICES and None not in best:
            found.append(tuple(each for each in best if each is not None))
    best_of_all = min(found, key=lambda phrases: sum(map(_chance, phrases)), default=())
    return best_of_all if sum(map(_chance, best_of_all)) < _LIKELY else ()


def _chance(phrase: Needed) -> float:
    return prod(often(byte) / _ALL * (2 if mask else 1) for byte, mask in zip(*phrase, strict=True))


def _phrases(items: Iterable[tuple[Any, Any]], flags: int) -> list[Needed]:
    """Return the runs of characters that each match contains, one after the other, as bytes that they have at least."""
    runs: list[list[Ranges]] = [[]]
    inner: list[Needed] = []
    for op, value in items:
        if op in CHARACTERS and _bytes_of([alike := accepted(op, value, flags)]) is not None:
            runs[-1].append(alike)
        elif op is not sre.AT:
            runs.append([])
            if op is sre.SUBPATTERN:
                inner += _phrases(value[3], (flags | value[1]) & ~value[2])
            elif op in (sre.MAX_REPEAT, sre.MIN_REPEAT) and value[0] >= 1:
                inner += _phrases(value[2], flags)
    return [*inner, *(phrase for run in runs if run and (phrase := _bytes_of(run)) is not None)]


def _bytes_of(run: Sequence[Ranges]) -> Needed | None:
    """Return bytes that all texts of these characters have, each with the bits in which they differ; None if there are too many."""
    want = mask = b""
    for ranges in run:
        codes = [code for first, last in ranges for code in range(first, min(last, first + _ALIKE) + 1)]
        if not 0 < len(codes) <= _ALIKE or any(0xD800 <= code < 0xE000 for code in codes):  # noqa: PLR2004
            return None
        first, *others = (chr(code).encode() for code in codes)
        if any(len(other) != len(first) for other in others):
            return None
        bits = bytes(reduce(or_, (other[at] ^ byte for other in others), 0) for at, byte in enumerate(first))
        want, mask = want + bytes(byte | bit for byte, bit in zip(first, bits, strict=True)), mask + bits
    return Needed(want, mask)


def _choices(items: Iterable[tuple[Any, Any]], flags: int) -> Iterator[tuple[Sequence[Any], int]]:
    """Yield the choices that each match makes."""
    for op, value in items:
        if op is sre.BRANCH:
            yield value[1], flags
        elif op is sre.SUBPATTERN:
            yield from _choices(value[3], (flags | value[1]) & ~value[2])
        elif op in (sre.MAX_REPEAT, sre.MIN_REPEAT) and value[0] >= 1:
            yield from _choices(value[2], flags)


def _pair(items: Sequence[tuple[Any, Any]], flags: int) -> tuple[Stops, ...]:
    """Return the rarest bytes that each match has beside each other: the last of a character and the first of the next."""
    pairs = [(one, two) for one, two in pairwise(_characters(items, flags)) if one and two]
    # of equal ones the first with few ends: what stands before punctuation is often a letter, what stands right behind it seldom
    one, two = min(pairs, key=lambda pair: (prod(map(_share, pair)), _is_beyond(pair[0])), default=((), ()))
    if not one or _share(one) * _share(two) > _FEW_PAIRS:
        return ()
    ends = _ranges(_in_ascii(one) | {*(range(0x80, 0xC0) if _is_beyond(one) else ())})
    begins = _ranges(_in_ascii(two) | _leads(two))
    number = max(len(ends), len(begins))
    return tuple(Stops((*ranges, *ranges[:1] * (number - len(ranges))), LOST) for ranges in (ends, begins))


def _characters(items: Iterable[tuple[Any, Any]], flags: int) -> list[Ranges]:
    """Return what the characters are that each match has one after the other; nothing where others may come between."""
    found: list[Ranges] = []
    for op, value in items:
        if op in CHARACTERS:
            found.append(accepted(op, value, flags))
        elif op is sre.SUBPATTERN:
            found += _characters(value[3], (flags | value[1]) & ~value[2])
        elif op in (sre.MAX_REPEAT, sre.MIN_REPEAT) and value[0] >= 1:
            found += _characters(value[2], flags) * min(int(value[0]), 2)
        elif op is not sre.AT:
            found.append(())
    return found


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
    in_ascii = takewhile(lambda interval: interval[0] < _ASCII, classes.intervals())
    of_ascii = [each for first, end, each in in_ascii for _ in range(first, min(end, _ASCII))]
    weight = [0] * classes.number
    for code in range(_ASCII):
        weight[of_ascii[code]] += _OFTEN[code]
    near_start = sorted({start, *rows[start]} - {LOST, FOUND})
    looked_at = range(2, len(rows)) if len(rows) <= _SEARCHED else near_start[:8]
    stops: list[Stops] = []
    stops_of = [0] * len(rows)
    numbers: dict[object, int] = {}
    for state in looked_at:
        boring = _boring(rows, state, weight)
        if not boring:
            continue
        key = boring, tuple(rows[state][each] for each in sorted(boring))
        if key not in numbers:
            others = ((first, end - 1) for first, end, each in classes.intervals() if each not in boring)
            ranges = _ranges({code for code in range(_ASCII) if of_ascii[code] not in boring} | _leads(others))
            is_rare = sum(_OFTEN[code] for a, z in ranges if a < _ASCII for code in range(a, z + 1)) < _RARE * _ALL
            if is_rare:
                stops.append(Stops(ranges, state))
            numbers[key] = len(stops) if is_rare else 0
        stops_of[state] = numbers[key]
    if not anywhere and not any(stops_of[state] for state in near_start):
        return (), (0,) * len(rows)
    return tuple(stops), tuple(stops_of)


def _boring(rows: Sequence[Sequence[int]], state: int, weight: Sequence[int]) -> frozenset[int]:
    """Return the classes that lead from a state, and from all states of a group around it, to the same state of the group."""
    row = rows[state]
    weights = {
        near: sum(weight[each] for each, to in enumerate(row) if to == near) for near in {*row} - {LOST, FOUND, state}
    }
    near = sorted(weights, key=lambda each: (-weights[each], each))[:_NEAR]
    best, most = frozenset[int](), (1 - _RARE) * _ALL
    for others in (others for size in range(3) for others in combinations(near, size)):
        group = {state, *others}
        boring = frozenset(
            each for each, to in enumerate(row) if to in group and all(rows[other][each] == to for other in others)
        )
        total = sum(weight[each] for each in boring)
        if total > most:
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
