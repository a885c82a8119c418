"""Nodes of a parsed pattern, each with the flags that it is under."""

from collections.abc import Iterable, Iterator
from re import _constants as sre  # type: ignore[attr-defined]
from typing import Any, NamedTuple

from assay.expressions.regex.trees.charsets import CHARACTERS, Ranges, accepted

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
