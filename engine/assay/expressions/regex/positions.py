r"""``re.search`` by sets of positions: whether a pattern is found, without backtracking and in a known number of steps.

Whether a match exists is a question about the pattern's language. So each node of the parsed pattern maps the set of positions
at which it may begin to the set of those at which it may end, or the other way round; a set is an integer with a bit for each
position of the text, and a character of a class is a shift and an ``and``. Look-around is a set, too: the positions at which
what is looked for begins, or ends. Nothing is tried twice, so no text takes exponential time, and steps can be counted: whether
they suffice depends on the pattern and the text, never on the clock.

Four things are not questions about the language, and are refused: references to what a group has matched, atomic groups,
possessive repeats, and groups with flags ``a`` or ``u`` of their own, with which CPython's search differs from its parse tree.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from re import _constants as sre  # type: ignore[attr-defined]
from typing import Any, Protocol

from assay.expressions.regex.charsets import CHARACTERS, Ranges, accepted, boundary_in_nothing, range_bytes
from assay.system.cache import cached_within
from assay.thresholds import THRESHOLDS

__all__ = ["NotPositionsError", "Positions", "TooManyStepsError"]

_OVERHEAD = 32
"""Steps of an operation on the smallest set."""
_CODE = 5
"""Steps of looking up a character, or a code point, in a table of more than Latin-1."""
_KEPT = 64_000_000
"""Bytes of sets that a search keeps; others are computed again."""
_CLASSES = 8_000_000
"""Bytes of the classes that are kept for other patterns."""
_TYPE_FLAGS = sre.SRE_FLAG_ASCII | sre.SRE_FLAG_LOCALE | sre.SRE_FLAG_UNICODE
_BYTE = 256


class NotPositionsError(Exception):
    """A construct that is no question about the pattern's language; the message names it."""


class TooManyStepsError(Exception):
    """A search that takes more steps than it may."""


class Positions:
    """A parsed pattern, ready to search texts.

    Args:
        tree: What Python's parser made of it.

    Raises:
        NotPositionsError: Its verdict is not that of sets of positions.
        RecursionError: The stack does not suffice.
    """

    def __init__(self, tree: Any) -> None:
        self._node = _sequence(tree, tree.state.flags)

    def search(self, text: str, steps: int | None = None) -> bool:
        """Whether ``re.search`` finds the pattern.

        Args:
            text: The text.
            steps: How many it may take, by default as many as the thresholds say, a second or so; a step is about what 64
                positions cost.

        Raises:
            TooManyStepsError: It takes more steps.
            RecursionError: The stack does not suffice.
        """
        searched = _Text(text, THRESHOLDS.position_steps if steps is None else steps)
        return bool(self._node.after(searched, searched.every))


class _Text:
    """A text, its sets of positions, and the steps that are left.

    Position ``p`` stands before character ``p``; a set of characters has the bits of the positions before them.
    """

    def __init__(self, text: str, steps: int) -> None:
        self.size = len(text)
        self.every = (1 << self.size + 1) - 1
        self.last_is_newline = text.endswith("\n")
        self._text = text
        self._left = steps
        self._sets: dict[Any, int] = {}
        self._kept = 0
        self._words = _OVERHEAD + (self.size >> 6)
        self._codes: list[int] = []
        if not text.isascii():
            self._look_up(self.size)
            self._codes = sorted(map(ord, set(text)))
        self._coded: bytes | None = None  # one byte a character, where there are so few
        if not self._codes:
            self._coded = text.encode()
        elif len(self._codes) <= _BYTE:
            self._coded = text.translate(dict(zip(self._codes, range(_BYTE), strict=False))).encode("latin-1")

    def spend(self, operations: int = 1) -> None:
        """Count operations on sets.

        Raises:
            TooManyStepsError: There are no steps left.
        """
        self._left -= operations * self._words
        if self._left < 0:
            raise TooManyStepsError

    def _look_up(self, count: int) -> None:
        """Count characters that are looked up.

        Raises:
            TooManyStepsError: There are no steps left.
        """
        self._left -= _CODE * count
        self.spend()

    def kept(self, key: Any, compute: Callable[[], int]) -> int:
        """A set that depends on the text alone."""
        if key in self._sets:
            return self._sets[key]
        value = compute()
        self._kept += self.size >> 2  # a set, and one in its key
        if self._kept <= _KEPT:
            self._sets[key] = value
        return value

    def among(self, members: "_Class") -> int:
        """The characters of a class."""
        return self.kept(members, lambda: self._among(members))

    def _among(self, members: "_Class") -> int:
        self._left -= self.size >> 1
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
    """A class of characters; each class of a pattern is one object, if it is written in one way."""

    def __init__(self, ranges: Ranges) -> None:
        self._ends = [point for first, last in ranges for point in (first, last + 1)]
        self.bytes = range_bytes(ranges)

    def digits(self, codes: Iterable[int]) -> bytes:
        """A digit for each code point: whether it is a member."""
        return bytes(b"01"[bisect_right(self._ends, code) & 1] for code in codes)

    @cached_property
    def ascii(self) -> bytes:
        """The table that translates ASCII to such digits."""
        return self.digits(range(_BYTE))


_CLASS_FLAGS = sre.SRE_FLAG_IGNORECASE | sre.SRE_FLAG_ASCII | sre.SRE_FLAG_UNICODE | sre.SRE_FLAG_DOTALL
_NEWLINE = _Class(((10, 10),))


def _class(op: Any, value: Any, flags: int) -> _Class:
    """The class of a node that stands for one character."""
    return _made(op, tuple(value) if op is sre.IN else value, flags & _CLASS_FLAGS)


@cached_within(_CLASSES, lambda made, _, value, __: made.bytes + (100 * len(value) if isinstance(value, tuple) else 0))
def _made(op: Any, value: Any, flags: int) -> _Class:
    r"""By the node, not by its ranges: ``\w`` alone has 760."""
    return _Class(accepted(op, value, flags))


# ── nodes ───────────────────────────────────────────────────────────────────────────────────────────────────────────────


class _Node(Protocol):
    def after(self, text: _Text, starts: int) -> int:
        """The positions at which it may end, given those at which it begins."""
        ...

    def before(self, text: _Text, ends: int) -> int:
        """The positions at which it may begin, given those at which it ends."""
        ...


class _Character:
    """One character of a class."""

    def __init__(self, members: _Class) -> None:
        self.members = members

    def after(self, text: _Text, starts: int) -> int:
        text.spend()
        return (starts & text.among(self.members)) << 1

    def before(self, text: _Text, ends: int) -> int:
        text.spend()
        return ends >> 1 & text.among(self.members)


class _Run:
    """Any number of characters of a class."""

    def __init__(self, members: _Class) -> None:
        self.members = members

    def after(self, text: _Text, starts: int) -> int:
        text.spend(2)
        members = text.among(self.members)
        # a sum carries a bit to the end of its run: what has changed is what was passed
        return starts | ((starts & members) + members ^ members)

    def before(self, text: _Text, ends: int) -> int:
        members = text.among(self.members)
        found = ends >> 1 & members
        distance = 1
        while distance <= text.size:
            text.spend(2)
            found |= members & found >> distance
            members &= members >> distance
            distance <<= 1
        return ends | found


class _Sequence:
    """One node after the other."""

    def __init__(self, nodes: Sequence[_Node]) -> None:
        self.nodes = nodes

    def after(self, text: _Text, starts: int) -> int:
        for node in self.nodes:
            if not starts:
                break
            starts = node.after(text, starts)
        return starts

    def before(self, text: _Text, ends: int) -> int:
        for node in reversed(self.nodes):
            if not ends:
                break
            ends = node.before(text, ends)
        return ends


class _Choice:
    """Any one of several nodes."""

    def __init__(self, nodes: Sequence[_Node]) -> None:
        self.nodes = nodes

    def after(self, text: _Text, starts: int) -> int:
        ends = 0
        for node in self.nodes:
            text.spend()
            ends |= node.after(text, starts)
        return ends

    def before(self, text: _Text, ends: int) -> int:
        starts = 0
        for node in self.nodes:
            text.spend()
            starts |= node.before(text, ends)
        return starts


class _Repeat:
    """A node, between ``low`` and ``high`` times; None for no upper bound."""

    def __init__(self, node: _Node, low: int, high: int | None) -> None:
        self.node, self.low, self.high = node, low, high

    def after(self, text: _Text, starts: int) -> int:
        # kept, for where repeats nest each would be asked twice as often as the one around it
        return text.kept((self, starts), lambda: self._times(text, starts, self.node.after))

    def before(self, text: _Text, ends: int) -> int:
        return text.kept((self, ends, "before"), lambda: self._times(text, ends, self.node.before))

    def _times(self, text: _Text, positions: int, step: Callable[[_Text, int], int]) -> int:
        for _ in range(self.low):
            text.spend()
            reached = step(text, positions)
            if reached == positions:  # nothing, or something that stays as it is however often it is repeated
                break
            positions = reached
        reached, done = positions, self.low
        while positions and done != self.high:
            text.spend()
            positions = step(text, positions) & ~reached  # what was reached with fewer repeats may have as many more
            reached |= positions
            done += 1
        return reached


class _Look:
    """Look-around: where what is looked for begins or ends."""

    def __init__(self, node: _Node, *, behind: bool, negative: bool) -> None:
        self.node, self.behind, self.negative = node, behind, negative

    def after(self, text: _Text, starts: int) -> int:
        text.spend()
        found = text.kept(self, lambda: (self.node.after if self.behind else self.node.before)(text, text.every))
        return starts & (text.every ^ found if self.negative else found)

    before = after


class _Place:
    """A position of its own kind: an anchor or a boundary."""

    def __init__(self, where: Any, flags: int) -> None:
        self.multiline = bool(flags & sre.SRE_FLAG_MULTILINE)
        self.where = where
        self.words = _class(sre.IN, _WORD, flags & ~sre.SRE_FLAG_IGNORECASE)

    def after(self, text: _Text, starts: int) -> int:
        text.spend()
        return starts & text.kept((self.where, self.multiline, self.words), lambda: self._places(text))

    before = after

    def _places(self, text: _Text) -> int:
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
    """What can never match."""

    def after(self, text: _Text, starts: int) -> int:
        del text, starts
        return 0

    before = after


# ── from a parsed pattern ───────────────────────────────────────────────────────────────────────────────────────────────


def _sequence(items: Any, flags: int) -> _Node:
    nodes = [_node(op, value, flags) for op, value in items]
    return nodes[0] if len(nodes) == 1 else _Sequence(nodes)


def _node(op: Any, value: Any, flags: int) -> _Node:  # noqa: PLR0911  (one way out for each kind of node)
    if op in CHARACTERS:
        return _Character(_class(op, value, flags))
    if op is sre.AT and value in _PLACES:
        return _Place(value, flags)
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
    run = _Run(node.members)
    return _Sequence([_Repeat(node, low, low), run]) if low > 1 else _Sequence([node, run]) if low else run


_NAMES = {
    "GROUPREF": "a back-reference",
    "GROUPREF_EXISTS": "a conditional group",
    "ATOMIC_GROUP": "an atomic group",
    "POSSESSIVE_REPEAT": "a possessive repeat",
}
