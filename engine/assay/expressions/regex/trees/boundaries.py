r"""Decide whether the characters beside ``\b`` are certainly word characters, or certainly not.

If that is certain on one side, and the pattern begins or ends on the other side, a class for the neighbouring character can replace
the boundary: the new pattern matches in the same texts. If it is certain on both sides, the boundary always or never holds.
"""

from itertools import islice
from re import _constants as sre  # type: ignore[attr-defined]
from typing import Any

from assay.expressions.regex.trees.charsets import CHARACTERS, Ranges, accepted, range_bytes, word_characters
from assay.system.cache import cached_within

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
    """Return which kinds of characters (word or not) the ranges contain."""
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
