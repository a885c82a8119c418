r"""``re.search`` by sets of positions: whether a pattern matches, without backtracking and in a bounded number of steps.

Whether a match exists depends only on the pattern's language. So each node of the parsed pattern maps the set of positions at which
it may begin to the set of positions at which it may end, or vice versa. A set is an integer with one bit per position of the text,
and a character of a class is a shift and an ``and``. Look-around is a set, too: the positions at which its pattern begins, or ends.
Nothing is tried twice, so no text takes exponential time, and steps can be counted: whether they suffice depends on the pattern and
the text, never on the clock.

Four constructs do not depend on the language only, and are rejected: back-references, atomic groups, possessive repeats, and groups
with flags ``a`` or ``u``, for which CPython's search differs from its parse tree.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from functools import cached_property
from re import _constants as sre  # type: ignore[attr-defined]
from typing import Any, Protocol

from assay.expressions.regex.trees.charsets import CHARACTERS, Ranges, accepted, boundary_in_nothing, range_bytes
from assay.system.cache import cached_within
from assay.thresholds import THRESHOLDS

_OVERHEAD = 32
"""Steps for an operation on the smallest set."""
_CODE = 5
"""Steps to look up a character or a code point in a table beyond Latin-1."""
_CACHE_BYTES = 64_000_000
"""Size of a search's cache of sets in bytes; other sets are computed again."""
_CLASSES = 8_000_000
"""Size of the cache of classes in bytes, shared by all patterns."""
_TYPE_FLAGS = sre.SRE_FLAG_ASCII | sre.SRE_FLAG_LOCALE | sre.SRE_FLAG_UNICODE
_BYTE = 256


class NotPositionsError(Exception):
    """Sets of positions cannot express a construct; the message names it."""


class TooManyStepsError(Exception):
    """A search exceeds its limit of steps."""


class Positions:
    """A parsed pattern, ready to search texts."""

    def __init__(self, tree: Any) -> None:
        self._node = _sequence(tree, tree.state.flags)

    def search(self, text: str, steps: int | None = None) -> bool:
        """Return whether ``re.search`` finds the pattern."""
        prepared = _TextPositions(text, THRESHOLDS.position_steps if steps is None else steps)
        return bool(self._node.after(prepared, prepared.every))


class _TextPositions:
    """A text, its sets of positions, and the remaining steps.

    Position ``p`` is before character ``p``; a set of characters has the bits of the positions before them.
    """

    def __init__(self, text: str, steps: int) -> None:
        self.size = len(text)
        self.every = (1 << self.size + 1) - 1
        self.last_is_newline = text.endswith("\n")
        self._text = text
        self._remaining = steps
        self._sets: dict[Any, int] = {}
        self._cached_bytes = 0
        self._words = _OVERHEAD + (self.size >> 6)
        self._codes: list[int] = []
        if not text.isascii():
            self._look_up(self.size)
            self._codes = sorted(map(ord, set(text)))
        self._coded: bytes | None = None  # one byte per character, if there are at most 256 different ones
        if not self._codes:
            self._coded = text.encode()
        elif len(self._codes) <= _BYTE:
            self._coded = text.translate(dict(zip(self._codes, range(_BYTE), strict=False))).encode("latin-1")

    def spend(self, operations: int = 1) -> None:
        """Count operations on sets."""
        self._remaining -= operations * self._words
        if self._remaining < 0:
            raise TooManyStepsError

    def _look_up(self, count: int) -> None:
        self._remaining -= _CODE * count
        self.spend()

    def cached(self, key: Any, compute: Callable[[], int]) -> int:
        """Return a set that depends on the text alone, from the cache if possible."""
        if key in self._sets:
            return self._sets[key]
        value = compute()
        self._cached_bytes += self.size >> 2  # the set, and another one in its key
        if self._cached_bytes <= _CACHE_BYTES:
            self._sets[key] = value
        return value

    def among(self, members: "_Class") -> int:
        """Return the set of the characters of a class."""
        return self.cached(members, lambda: self._among(members))

    def _among(self, members: "_Class") -> int:
        self._remaining -= self.size >> 1
        self.spend()
        if not self.size:
            return 0
        if self._coded is None:
            self._look_up(self.size + 2 * len(self._codes))
            digits = members.digits(self._codes).decode()
            return int(self._text.translate(dict(zip(self._codes, digits, strict=True)))[::-1], 2)
        table = members.digits(self._codes).ljust(_BYTE, b"0") if self._codes else members.ascii
        return int(self._coded.translate(table)[::-1], 2)


class _Class:
    """A class of characters; equal nodes share one object."""

    def __init__(self, ranges: Ranges) -> None:
        self._ends = [point for first, last in ranges for point in (first, last + 1)]
        self.bytes = range_bytes(ranges)

    def digits(self, codes: Sequence[int]) -> bytes:
        """Return a digit for each of some code points in order: whether it is in the class."""
        ends = self._ends
        if len(ends) > len(codes):
            return bytes(b"01"[bisect_right(ends, code) & 1] for code in codes)
        places = [bisect_left(codes, end) for end in ends]
        digits = bytearray(b"0" * len(codes))
        for first, after in zip(places[::2], places[1::2], strict=True):
            digits[first:after] = b"1" * (after - first)
        return bytes(digits)

    @cached_property
    def ascii(self) -> bytes:
        """The table that translates ASCII characters to such digits."""
        return self.digits(range(_BYTE))


_CLASS_FLAGS = sre.SRE_FLAG_IGNORECASE | sre.SRE_FLAG_ASCII | sre.SRE_FLAG_UNICODE | sre.SRE_FLAG_DOTALL
_NEWLINE = _Class(((10, 10),))


def _class(op: Any, value: Any, flags: int) -> _Class:
    return _class_of(op, tuple(value) if op is sre.IN else value, flags & _CLASS_FLAGS)


@cached_within(
    _CLASSES, lambda result, _, value, __: result.bytes + (100 * len(value) if isinstance(value, tuple) else 0)
)
def _class_of(op: Any, value: Any, flags: int) -> _Class:
    r"""Return a class, cached by the node and not by its ranges, of which ``\w`` alone has 760."""
    return _Class(accepted(op, value, flags))


class _Node(Protocol):
    def after(self, text: _TextPositions, starts: int) -> int:
        """Return the positions at which a match may end, given those at which it begins."""
        ...

    def before(self, text: _TextPositions, ends: int) -> int:
        """Return the positions at which a match may begin, given those at which it ends."""
        ...


class _Character:
    """One character of a class."""

    def __init__(self, members: _Class) -> None:
        self.members = members

    def after(self, text: _TextPositions, starts: int) -> int:
        text.spend()
        return (starts & text.among(self.members)) << 1

    def before(self, text: _TextPositions, ends: int) -> int:
        text.spend()
        return ends >> 1 & text.among(self.members)


class _ClassRun:
    """Any number of characters of a class."""

    def __init__(self, members: _Class) -> None:
        self.members = members

    def after(self, text: _TextPositions, starts: int) -> int:
        text.spend(2)
        members = text.among(self.members)
        # the addition carries a bit to the end of its run; the changed bits are the positions passed
        return starts | ((starts & members) + members ^ members)

    def before(self, text: _TextPositions, ends: int) -> int:
        members = text.among(self.members)
        starts = ends >> 1 & members
        distance = 1
        while distance <= text.size:
            text.spend(2)
            starts |= members & starts >> distance
            members &= members >> distance
            distance <<= 1
        return ends | starts


class _NodeSequence:
    """Several nodes, one after another."""

    def __init__(self, nodes: Sequence[_Node]) -> None:
        self.nodes = nodes

    def after(self, text: _TextPositions, starts: int) -> int:
        for node in self.nodes:
            if not starts:
                break
            starts = node.after(text, starts)
        return starts

    def before(self, text: _TextPositions, ends: int) -> int:
        for node in reversed(self.nodes):
            if not ends:
                break
            ends = node.before(text, ends)
        return ends


class _Choice:
    """One of several nodes."""

    def __init__(self, nodes: Sequence[_Node]) -> None:
        self.nodes = nodes

    def after(self, text: _TextPositions, starts: int) -> int:
        ends = 0
        for node in self.nodes:
            text.spend()
            ends |= node.after(text, starts)
        return ends

    def before(self, text: _TextPositions, ends: int) -> int:
        starts = 0
        for node in self.nodes:
            text.spend()
            starts |= node.before(text, ends)
        return starts


class _Repeat:
    """A node, between ``low`` and ``high`` times; None for no upper bound."""

    def __init__(self, node: _Node, low: int, high: int | None) -> None:
        self.node, self.low, self.high = node, low, high

    def after(self, text: _TextPositions, starts: int) -> int:
        # cached, because each level of nested repeats would double the number of calls
        return text.cached((self, starts), lambda: self._times(text, starts, self.node.after))

    def before(self, text: _TextPositions, ends: int) -> int:
        return text.cached((self, ends, "before"), lambda: self._times(text, ends, self.node.before))

    def _times(self, text: _TextPositions, positions: int, step: Callable[[_TextPositions, int], int]) -> int:
        for _ in range(self.low):
            text.spend()
            reached = step(text, positions)
            if reached == positions:  # further repeats change nothing
                break
            positions = reached
        reached, count = positions, self.low
        while positions and count != self.high:
            text.spend()
            # positions reached with fewer repeats have been expanded already
            positions = step(text, positions) & ~reached
            reached |= positions
            count += 1
        return reached


class _Look:
    """Look-around: the positions at which its pattern begins or ends."""

    def __init__(self, node: _Node, *, behind: bool, negative: bool) -> None:
        self.node, self.behind, self.negative = node, behind, negative

    def after(self, text: _TextPositions, starts: int) -> int:
        text.spend()
        positions = text.cached(self, lambda: (self.node.after if self.behind else self.node.before)(text, text.every))
        return starts & (text.every ^ positions if self.negative else positions)

    before = after


class _Anchor:
    """An anchor or a boundary."""

    def __init__(self, where: Any, flags: int) -> None:
        self.multiline = bool(flags & sre.SRE_FLAG_MULTILINE)
        self.where = where
        self.words = _class(sre.IN, _WORD, flags & ~sre.SRE_FLAG_IGNORECASE)

    def after(self, text: _TextPositions, starts: int) -> int:
        text.spend()
        return starts & text.cached((self.where, self.multiline, self.words), lambda: self._places(text))

    before = after

    def _places(self, text: _TextPositions) -> int:
        end = 1 << text.size
        if self.where is sre.AT_BEGINNING_STRING or (self.where is sre.AT_BEGINNING and not self.multiline):
            return 1
        if self.where is sre.AT_BEGINNING:
            return 1 | text.among(_NEWLINE) << 1
        if self.where is sre.AT_END_STRING:
            return end
        if self.where is sre.AT_END:
            return end | (text.among(_NEWLINE) if self.multiline else end >> 1 if text.last_is_newline else 0)
        words = text.among(self.words)
        boundaries = words << 1 ^ words
        if self.where is sre.AT_BOUNDARY:
            return boundaries
        return text.every ^ boundaries if text.size or boundary_in_nothing() else 0


_WORD = ((sre.CATEGORY, sre.CATEGORY_WORD),)
_PLACES = (
    sre.AT_BEGINNING,
    sre.AT_BEGINNING_STRING,
    sre.AT_END,
    sre.AT_END_STRING,
    sre.AT_BOUNDARY,
    sre.AT_NON_BOUNDARY,
)


class _Nothing:
    """A node that never matches."""

    def after(self, text: _TextPositions, starts: int) -> int:
        del text, starts
        return 0

    before = after


def _sequence(items: Any, flags: int) -> _Node:
    nodes = [_node(op, value, flags) for op, value in items]
    return nodes[0] if len(nodes) == 1 else _NodeSequence(nodes)


def _node(op: Any, value: Any, flags: int) -> _Node:  # noqa: PLR0911  (one way out for each kind of node)
    if op in CHARACTERS:
        return _Character(_class(op, value, flags))
    if op is sre.AT and value in _PLACES:
        return _Anchor(value, flags)
    if op is sre.BRANCH:
        return _Choice([_sequence(way, flags) for way in value[1]])
    if op is sre.SUBPATTERN:
        _, add, remove, inner = value
        if add & _TYPE_FLAGS:
            raise NotPositionsError("scoped a/u flags")
        return _sequence(inner, (flags | add) & ~remove)
    if op in (sre.MAX_REPEAT, sre.MIN_REPEAT):
        low, high, inner = value
        return _repeat(_sequence(inner, flags), low, None if high is sre.MAXREPEAT else high)
    if op in (sre.ASSERT, sre.ASSERT_NOT):
        direction, inner = value
        return _Look(_sequence(inner, flags), behind=direction < 0, negative=op is sre.ASSERT_NOT)
    if op is sre.FAILURE:
        return _Nothing()
    raise NotPositionsError(_NAMES.get(str(op), str(op).lower().replace("_", " ")))


def _repeat(node: _Node, low: int, high: int | None) -> _Node:
    if high is not None or not isinstance(node, _Character):
        return _Repeat(node, low, high)
    run = _ClassRun(node.members)
    return _NodeSequence([_Repeat(node, low, low), run]) if low > 1 else _NodeSequence([node, run]) if low else run


_NAMES = {
    "GROUPREF": "a back-reference",
    "GROUPREF_EXISTS": "a conditional group",
    "ATOMIC_GROUP": "an atomic group",
    "POSSESSIVE_REPEAT": "a possessive repeat",
}
