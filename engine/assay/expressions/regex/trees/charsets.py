r"""The characters that a single-character node of a parsed pattern accepts, as ranges of code points.

Classes, ``\w \d \s .`` and anything under IGNORECASE depend on Python's Unicode tables, and other engines have different tables;
ranges of code points mean the same to all. Python's own matcher decides each category once per process, and the code points with
another case once per class under IGNORECASE; the rest is arithmetic on ranges.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import starmap
from re import _compiler as sre_compiler  # type: ignore[attr-defined]
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser as sre_parser  # type: ignore[attr-defined]
from typing import Any

from assay.expressions.text import SCALARS
from assay.system.cache import cached_within

CHARACTERS = (sre.LITERAL, sre.NOT_LITERAL, sre.ANY, sre.IN)
"""The types of nodes that match one character."""

Ranges = tuple[tuple[int, int], ...]
"""Code points as the first and last of each range, in order."""

ASCII_WORDS: Ranges = ((ord("0"), ord("9")), (ord("A"), ord("Z")), (ord("_"), ord("_")), (ord("a"), ord("z")))
r"""The ASCII characters that ``\w`` accepts."""

MOST_WORDS = 1_000
r"""More ranges than ``\w`` has, which are 760 in Unicode 14."""

_ASCII = "".join(map(chr, range(128)))
_ALIKE = frozenset(map(ord, "iIkKsS"))
"""The ASCII letters that match other letters under IGNORECASE."""
_MOST = {
    **dict.fromkeys((sre.CATEGORY_DIGIT, sre.CATEGORY_NOT_DIGIT), 100),
    **dict.fromkeys((sre.CATEGORY_SPACE, sre.CATEGORY_NOT_SPACE), 20),
    **dict.fromkeys((sre.CATEGORY_WORD, sre.CATEGORY_NOT_WORD), MOST_WORDS),
}
"""More ranges than each category has."""

_LAST = 0x10FFFF
_NEWLINE = ord("\n")
_SURROGATES = range(0xD800, 0xE000)
BEYOND_LETTERS = 0x40000
"""No letter or case is at or above this code point: Unicode assigns tags, selectors and private use only."""

_ENDS = {
    sre.CATEGORY_DIGIT: 0x20000,
    sre.CATEGORY_SPACE: 0x20000,
    sre.CATEGORY_WORD: BEYOND_LETTERS,
}
"""No code point from there on is in the category; between the two are ideographs."""

_NEGATED = {
    sre.CATEGORY_NOT_DIGIT: sre.CATEGORY_DIGIT,
    sre.CATEGORY_NOT_SPACE: sre.CATEGORY_SPACE,
    sre.CATEGORY_NOT_WORD: sre.CATEGORY_WORD,
}
_FOLDED_CLASSES = 8_000_000
"""Size of the cache of classes under IGNORECASE, in bytes."""


def accepted(op: Any, value: Any, flags: int) -> Ranges:
    """Return the code points that a single-character node accepts; lone surrogates do not matter, as texts cannot contain them."""
    if op is sre.ANY:
        return ((0, _LAST),) if flags & sre.SRE_FLAG_DOTALL else all_but(((_NEWLINE, _NEWLINE),))
    items = tuple(value) if op is sre.IN else ((sre.LITERAL, value),)
    flags &= sre.SRE_FLAG_IGNORECASE | sre.SRE_FLAG_ASCII | sre.SRE_FLAG_UNICODE
    if flags & sre.SRE_FLAG_IGNORECASE and op is not sre.IN and not _is_cased(value):
        flags &= ~sre.SRE_FLAG_IGNORECASE  # the matcher would take a hundred times as long
    if op is sre.NOT_LITERAL:
        items = ((sre.NEGATE, None), *items)
    return _folded(items, flags) if flags & sre.SRE_FLAG_IGNORECASE else _plain(items, flags)


def accepted_ascii(op: Any, value: Any, flags: int) -> Ranges:
    """Return the ASCII characters that a single-character node accepts, which takes none of Python's tables."""
    if op is sre.ANY:
        return joined((code, code) for code in range(128) if code != _NEWLINE or flags & sre.SRE_FLAG_DOTALL)
    if op is sre.LITERAL and value < len(_ASCII):
        letters = {value, ord(chr(value).swapcase())} if flags & sre.SRE_FLAG_IGNORECASE else {value}
        return joined((letter, letter) for letter in letters)
    if op is sre.LITERAL and not flags & sre.SRE_FLAG_IGNORECASE:
        return ()
    items = value if op is sre.IN else [(sre.LITERAL, value)]
    items = [(sre.NEGATE, None), *items] if op is sre.NOT_LITERAL else items
    flags &= sre.SRE_FLAG_IGNORECASE | sre.SRE_FLAG_ASCII | sre.SRE_FLAG_UNICODE
    return _ascii_members(tuple(items), flags)


@lru_cache(maxsize=1_024)
def _ascii_members(items: tuple[Any, ...], flags: int) -> Ranges:
    spans = (match.span() for match in _matcher(items, flags).finditer(_ASCII))
    return tuple((start, end - 1) for start, end in spans)


def reaches_beyond_ascii(op: Any, value: Any, flags: int) -> bool:
    """Return whether a single-character node may accept a code point beyond ASCII; False only if it certainly does not."""
    if op in (sre.ANY, sre.NOT_LITERAL):
        return True
    folds = bool(flags & sre.SRE_FLAG_IGNORECASE)
    if op is sre.LITERAL:
        return value >= len(_ASCII) or (folds and value in _ALIKE)
    kinds = {kind for kind, _ in value}
    if kinds - {sre.LITERAL, sre.RANGE}:  # a category, or all but what is listed
        return True
    return any(_ends(kind, item)[1] >= len(_ASCII) for kind, item in value) or (
        folds and any(not _ALIKE.isdisjoint(range(first, last + 1)) for first, last in starmap(_ends, value))
    )


def most_ranges(op: Any, value: Any, flags: int) -> int:
    """Return a maximum for the number of ranges that ``accepted`` returns, which takes none of Python's tables."""
    items = value if op is sre.IN else [(sre.LITERAL, 0 if value is None else value)]
    copies = 4 if flags & sre.SRE_FLAG_IGNORECASE else 1
    total = 1
    for kind, item in items:
        if kind is sre.CATEGORY:
            total += _MOST.get(item, MOST_WORDS)
        elif kind is not sre.NEGATE:
            first, last = _ends(kind, item)
            total += 1 if copies == 1 else min(copies * (last - first + 1), 2 * MOST_WORDS)
    return total


def _ends(kind: Any, item: Any) -> tuple[int, int]:
    first, last = item if kind is sre.RANGE else (item, item)
    return first, last


def word_characters(flags: int) -> Ranges:
    r"""Return the code points that ``\w`` accepts and ``\b`` tests."""
    return _category(sre.CATEGORY_WORD, flags & (sre.SRE_FLAG_ASCII | sre.SRE_FLAG_UNICODE))


def is_word_character(character: str) -> bool:
    r"""Return whether ``\w`` accepts a character."""
    return character.isalnum() or character == "_"


def boundary_in_nothing() -> bool:
    r"""Return whether ``\B`` matches the empty text, as it does since Python 3.14."""
    return re.search(r"\B", "") is not None


def range_bytes(ranges: Ranges) -> int:
    """Estimate the memory of ranges in bytes."""
    return 56 + 128 * len(ranges)


def _plain(items: tuple[Any, ...], flags: int) -> Ranges:
    negated = bool(items) and items[0][0] is sre.NEGATE
    listed = items[1:] if negated else items
    if len(listed) == 1:
        ((op, value),) = listed
        ranges = _item(op, value, flags)
    else:
        ranges = joined(pair for op, value in listed for pair in _item(op, value, flags))
    return all_but(ranges) if negated else ranges


def _item(op: Any, value: Any, flags: int) -> Ranges:
    if op is sre.CATEGORY:
        return _category(value, flags)
    first, last = value if op is sre.RANGE else (value, value)
    return () if first in _SURROGATES and last in _SURROGATES else ((first, last),)


def joined(pairs: Iterable[tuple[int, int]]) -> Ranges:
    """Sort ranges and merge adjacent ones."""
    merged: list[tuple[int, int]] = []
    for first, last in sorted(pairs):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = merged[-1][0], max(last, merged[-1][1])
        else:
            merged.append((first, last))
    return tuple(merged)


def cut_to_ascii(ranges: Ranges) -> Ranges:
    """Return the ASCII characters among code points."""
    return tuple((first, min(last, len(_ASCII) - 1)) for first, last in ranges if first < len(_ASCII))


def in_both(ranges: Ranges, others: Ranges) -> Ranges:
    """Return the code points that two sets share."""
    return all_but(joined([*all_but(ranges), *all_but(others)]))


def all_but(ranges: Ranges) -> Ranges:
    """Return all other code points."""
    return tuple(_between(ranges))


def _between(ranges: Ranges) -> Iterator[tuple[int, int]]:
    start = 0
    for first, last in ranges:
        if first > start:
            yield start, first - 1
        start = last + 1
    if start <= _LAST:
        yield start, _LAST


def _matcher(items: Any, flags: int) -> re.Pattern[str]:
    state = sre_parser.State()
    state.flags = flags
    state.str = ""
    member = (sre.IN, list(items))
    more = (sre.MAX_REPEAT, (0, sre.MAXREPEAT, sre_parser.SubPattern(state, [member])))
    # not one repeat: ``re`` skips faster to a pattern that begins with a class
    runs = sre_parser.SubPattern(state, [member, more])
    pattern: re.Pattern[str] = sre_compiler.compile(runs, flags)
    return pattern


@lru_cache(maxsize=32)
def _category(category: Any, flags: int) -> Ranges:
    r"""Return the code points that ``\d``, ``\W`` and the like accept; tests every code point that may be in one."""
    if category in _NEGATED:
        return all_but(_category(_NEGATED[category], flags))
    scalars, end = SCALARS(BEYOND_LETTERS), _ENDS[category] - len(_SURROGATES)
    spans = (match.span() for match in _matcher([(sre.CATEGORY, category)], flags).finditer(scalars, 0, end))
    return joined((ord(scalars[start]), ord(scalars[end - 1])) for start, end in spans)


@cached_within(_FOLDED_CLASSES, lambda ranges, items, _: range_bytes(ranges) + 200 * len(items))
def _folded(items: tuple[Any, ...], flags: int) -> Ranges:
    """Return the code points that a class accepts under IGNORECASE; only code points with another case need the matcher."""
    cased, codes = _cased()
    spans = (match.span() for match in _matcher(items, flags).finditer(cased))
    members = ((code, code) for start, end in spans for code in codes[start:end])
    return joined([*_without(_plain(items, flags), codes), *members])


def _without(ranges: Ranges, codes: Sequence[int]) -> Iterator[tuple[int, int]]:
    for first, last in ranges:
        start = first
        for code in codes[bisect_left(codes, first) : bisect_right(codes, last)]:
            if code > start:
                yield start, code - 1
            start = code + 1
        if start <= last:
            yield start, last


def _is_cased(code: int) -> bool:
    _, codes = _cased()
    at = bisect_left(codes, code)
    return at < len(codes) and codes[at] == code


@lru_cache(maxsize=1)
def _cased() -> tuple[str, list[int]]:
    """Return all code points that have, or are, another case, in order: as text and as numbers."""
    scalars = SCALARS(BEYOND_LETTERS)
    blocks = (scalars[at : at + 256] for at in range(0, len(scalars), 256))
    changing = [block for block in blocks if block.lower() != block or block.upper() != block]
    cased = {code for block in changing for code in block if code.lower() != code or code.upper() != code}
    text = "".join(sorted(cased | set("".join(code.lower() + code.upper() for code in cased))))
    return text, [*map(ord, text)]


def folded(text: str) -> str:
    """Return a text in which characters that match each other under IGNORECASE are equal, except those ``unfolded``."""
    return text.lower().replace(*SIGMAS)


SIGMAS = "\u03c2", "\u03c3"
"""The two small letters, of which ``str.lower`` chooses by what stands beside them."""


@lru_cache(maxsize=1)
def unfolded() -> str:
    """Return the code points that match others under IGNORECASE than those with the same ``folded``, or that it makes longer or shorter."""
    cased, _ = _cased()
    rest, left = dict.fromkeys(cased), list[str]()
    while rest:
        # NOTE: a class of one character is not the same beyond the first 65,536 code points
        alike: re.Pattern[str] = sre_compiler.compile(re.escape(next(iter(rest))), sre.SRE_FLAG_IGNORECASE)
        codes = alike.findall(cased)
        forms = [folded(code) for code in codes]
        most = max(forms, key=forms.count)
        for code, form in zip(codes, forms, strict=True):
            del rest[code]
            if form != most or len(form.encode()) != len(code.encode()):
                left.append(code)
    return "".join(left)
