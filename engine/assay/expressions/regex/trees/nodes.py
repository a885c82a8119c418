"""Nodes of a parsed pattern, each with the flags that it is under."""

from collections.abc import Iterable, Iterator
from itertools import islice
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser as sre_parser  # type: ignore[attr-defined]
from typing import Any, NamedTuple

from assay.expressions.regex.trees.charsets import CHARACTERS, Ranges, accepted, range_bytes, word_characters
from assay.system.cache import cached_within

TYPE_FLAGS = sre.SRE_FLAG_ASCII | sre.SRE_FLAG_LOCALE | sre.SRE_FLAG_UNICODE
"""Flags of a group with which CPython's search, which uses the outer flags for its prefix, differs from the parse tree."""
REPEATS = (sre.MAX_REPEAT, sre.MIN_REPEAT)
EVERYTHING: Ranges = ((0, 0x10FFFF),)
NEWLINE: Ranges = ((10, 10),)
ENDS = (sre.AT_END, sre.AT_END_STRING)


Nodes = list[tuple[Any, Any]]
"""A sequence of nodes of a parsed pattern."""


class NotLinearError(Exception):
    """The linear engine cannot express a construct exactly; the message names it."""


def all_nodes(node: Any) -> Iterator[tuple[Any, Any]]:
    """Yield all nodes in a node or a sequence, also those in look-around, and the node itself."""
    if isinstance(node, tuple) and len(node) == 2 and isinstance(node[0], type(sre.LITERAL)):  # noqa: PLR2004  (a node)
        yield node
    if isinstance(node, sre_parser.SubPattern | list | tuple):
        for inner in node:
            yield from all_nodes(inner)


class Node(NamedTuple):
    """A node of a parsed pattern, with its flags."""

    op: Any
    value: Any
    flags: int


def with_flags(items: Iterable[tuple[Any, Any]], flags: int) -> list[Node]:
    """Return the nodes of a sequence."""
    return [Node(op, value, flags) for op, value in items]


def of_group(node: Node) -> list[Node]:
    """Return the nodes in a group."""
    _, add, remove, inner = node.value
    if add & TYPE_FLAGS:
        raise NotLinearError("scoped a/u flags")
    return with_flags(inner, (node.flags | add) & ~remove)


def ways_of(node: Node) -> list[list[Node]]:
    """Return the sequences in a node, without those in look-around."""
    op, value, flags = node
    if op is sre.SUBPATTERN:
        return [of_group(node)]
    if op is sre.BRANCH:
        return [with_flags(way, flags) for way in value[1]]
    return [with_flags(value[2], flags)] if op in REPEATS else []


def forbids(node: Node) -> bool:
    """Return whether a node is a negative look-ahead."""
    return node.op is sre.ASSERT_NOT and node.value[0] > 0


def looks_ahead(items: Iterable[Node]) -> bool:
    """Return whether there is a negative look-ahead among nodes that are not in look-around themselves."""
    return any(forbids(node) or any(map(looks_ahead, ways_of(node))) for node in items)


def sets_of(items: Iterable[Node]) -> Iterator[Ranges]:
    """Yield the sets of characters among nodes."""
    for node in items:
        if node.op in CHARACTERS:
            yield accepted(*node)
        is_look_around = node.op in (sre.ASSERT, sre.ASSERT_NOT)
        for way in [with_flags(node.value[1], node.flags)] if is_look_around else ways_of(node):
            yield from sets_of(way)


class First(NamedTuple):
    """What may come first in the texts that nodes match; perhaps too much.

    Attributes:
        members: Sets of characters.
        at_end: Whether the text may end there.
        empty: Whether nothing may come, so that what follows the nodes comes first.
    """

    members: tuple[Ranges, ...] = ()
    at_end: bool = False
    empty: bool = False


def first_of(items: Iterable[Node]) -> First:
    """Return what may come first in a sequence."""
    members: tuple[Ranges, ...] = ()
    at_end = False
    for node in items:
        own = _first(node)
        members, at_end = members + own.members, at_end or own.at_end
        if not own.empty:
            return First(members, at_end)
    return First(members, at_end, empty=True)


def _first(node: Node) -> First:
    op, value, _ = node
    if op in CHARACTERS:
        return First((accepted(*node),))
    if op is sre.AT and value in ENDS:
        return First(() if value is sre.AT_END_STRING else (NEWLINE,), at_end=True)
    if op in (sre.AT, sre.ASSERT, sre.ASSERT_NOT):
        return First(empty=True)
    if ways := [first_of(way) for way in ways_of(node)]:
        empty = any(way.empty for way in ways) or (op in REPEATS and not value[0])
        members = tuple(ranges for way in ways for ranges in way.members)
        return First(members, any(way.at_end for way in ways), empty)
    return First((EVERYTHING,), at_end=True)


Items = list[tuple[Any, Any]]
"""A sequence of nodes of a parsed pattern."""

_BEYOND_ASCII = 128
_UNDERSCORE = ord("_")
_ALNUM = tuple((ord(first), ord(last)) for first, last in ("09", "AZ", "az"))
_CATEGORIES = {
    sre.CATEGORY_DIGIT: True,
    sre.CATEGORY_WORD: True,
    sre.CATEGORY_SPACE: False,
    sre.CATEGORY_NOT_WORD: False,
}
"""Whether the characters of a category are word characters."""

_EITHER = frozenset((True, False))


def word_at(items: Items, flags: int, *, end: bool) -> bool | None:
    """Return whether every match of a sequence begins, or ends, with one of Python's word characters."""
    kinds, empty = _kinds(items, flags, end=end)
    return None if empty or len(kinds) != 1 else next(iter(kinds))


def _kinds(items: Items, flags: int, *, end: bool) -> tuple[frozenset[bool], bool]:
    """Return the possible kinds of the outermost character, and whether there may be none."""
    kinds: frozenset[bool] = frozenset()
    for op, value in reversed(items) if end else items:
        more, empty = _node_kinds(op, value, flags, end=end)
        kinds |= more
        if not empty:
            return kinds, False
    return kinds, True


def _node_kinds(op: Any, value: Any, flags: int, *, end: bool) -> tuple[frozenset[bool], bool]:
    if op in CHARACTERS:
        return _sides(op, value, flags) or _overlaps(accepted(op, value, flags)), False
    if op is sre.SUBPATTERN:
        _, add, remove, inner = value
        return _kinds(list(inner), (flags | add) & ~remove, end=end)
    if op is sre.BRANCH:
        ways = [_kinds(list(way), flags, end=end) for way in value[1]]
        return frozenset().union(*(kinds for kinds, _ in ways)), any(empty for _, empty in ways)
    if op in (sre.MAX_REPEAT, sre.MIN_REPEAT):
        low, _, inner = value
        kinds, empty = _kinds(list(inner), flags, end=end)
        return kinds, empty or low == 0
    return _EITHER, True


def _sides(op: Any, value: Any, flags: int) -> frozenset[bool]:
    r"""Return which kinds of characters a node accepts if that is plain without Python's tables, else nothing."""
    items: Items = [(op, value)] if op is sre.LITERAL else value if op is sre.IN else [(op, None)]
    kinds = set()
    for kind, item in items:
        if kind is sre.LITERAL and item < _BEYOND_ASCII:
            kinds.add(chr(item).isalnum() or item == _UNDERSCORE)
        elif kind is sre.CATEGORY and item in _CATEGORIES and not flags & sre.SRE_FLAG_ASCII:
            kinds.add(_CATEGORIES[item])
        elif kind is sre.RANGE and item in _ALNUM:
            kinds.add(True)
        else:
            return frozenset()
    return frozenset(kinds)


@cached_within(4_000_000, lambda _, ranges: range_bytes(ranges))
def _overlaps(ranges: Ranges) -> frozenset[bool]:
    words = word_characters(sre.SRE_FLAG_UNICODE)
    at = inside = 0
    for first, last in ranges:
        while at < len(words) and words[at][1] < first:
            at += 1
        for start, end in islice(words, at, None):
            if start > last:
                break
            inside += min(last, end) - max(first, start) + 1
    size = sum(last - first + 1 for first, last in ranges)
    return frozenset(word for word, count in ((True, inside), (False, size - inside)) if count)
