r"""What a single-character node of a parsed pattern accepts, as ranges of code points.

Classes, ``\w \d \s .`` and anything under IGNORECASE mean what this Python's tables say, and other engines have tables of their
own; as ranges of code points they mean the same to all. A category is asked of Python's own matcher once a process, and so are
the code points that have another case, once for each class under IGNORECASE; the rest is arithmetic of ranges.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from re import _compiler as sre_compiler  # type: ignore[attr-defined]
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser as sre_parser  # type: ignore[attr-defined]
from typing import Any

from assay.expressions.text import SCALARS
from assay.system.cache import cached_within

__all__ = ["CHARACTERS", "Ranges", "accepted", "boundary_in_nothing", "range_bytes", "word_characters"]

CHARACTERS = (sre.LITERAL, sre.NOT_LITERAL, sre.ANY, sre.IN)
"""The nodes that stand for one character."""

Ranges = tuple[tuple[int, int], ...]
"""Code points, as first and last of each range, in order."""

_LAST = 0x10FFFF
_NEWLINE = ord("\n")
_SURROGATES = range(0xD800, 0xE000)
_FOLDED_CLASSES = 8_000_000
"""Bytes of the classes under IGNORECASE that are kept."""


def accepted(op: Any, value: Any, flags: int) -> Ranges:
    """The code points that a single-character node accepts; those of lone surrogates do not count, for no text holds them."""
    if op is sre.ANY:
        return ((0, _LAST),) if flags & sre.SRE_FLAG_DOTALL else _all_but(((_NEWLINE, _NEWLINE),))
    items = tuple(value) if op is sre.IN else ((sre.LITERAL, value),)
    flags &= sre.SRE_FLAG_IGNORECASE | sre.SRE_FLAG_ASCII | sre.SRE_FLAG_UNICODE
    if op is not sre.IN and not _is_cased(value):
        flags &= ~sre.SRE_FLAG_IGNORECASE  # asking the matcher takes a hundred times as long, and there are many such
    if op is sre.NOT_LITERAL:
        items = ((sre.NEGATE, None), *items)
    return _folded(items, flags) if flags & sre.SRE_FLAG_IGNORECASE else _plain(items, flags)


def word_characters(flags: int) -> Ranges:
    r"""What ``\w`` accepts, and ``\b`` looks at."""
    return _category(sre.CATEGORY_WORD, flags & (sre.SRE_FLAG_ASCII | sre.SRE_FLAG_UNICODE))


def boundary_in_nothing() -> bool:
    r"""Whether ``\B`` matches the empty text, as it does from Python 3.14 on."""
    return re.search(r"\B", "") is not None


def range_bytes(ranges: Ranges) -> int:
    """About how many bytes ranges take that nothing else refers to."""
    return 56 + 128 * len(ranges)


def _plain(items: tuple[Any, ...], flags: int) -> Ranges:
    """What a class accepts where case counts."""
    negated = bool(items) and items[0][0] is sre.NEGATE
    listed = items[1:] if negated else items
    if len(listed) == 1:
        ((op, value),) = listed
        ranges = _item(op, value, flags)
    else:
        ranges = _joined(pair for op, value in listed for pair in _item(op, value, flags))
    return _all_but(ranges) if negated else ranges


def _item(op: Any, value: Any, flags: int) -> Ranges:
    """One member of a class."""
    if op is sre.CATEGORY:
        return _category(value, flags)
    first, last = value if op is sre.RANGE else (value, value)
    return () if first in _SURROGATES and last in _SURROGATES else ((first, last),)


def _joined(pairs: Iterable[tuple[int, int]]) -> Ranges:
    """Ranges in order, those that touch as one."""
    joined: list[tuple[int, int]] = []
    for first, last in sorted(pairs):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = joined[-1][0], max(last, joined[-1][1])
        else:
            joined.append((first, last))
    return tuple(joined)


def _all_but(ranges: Ranges) -> Ranges:
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
    """Python's own matcher of runs of one class."""
    state = sre_parser.State()
    state.flags = flags
    state.str = ""
    node = sre_parser.SubPattern(state, [(sre.IN, list(items))])
    runs = sre_parser.SubPattern(state, [(sre.MAX_REPEAT, (1, sre.MAXREPEAT, node))])
    pattern: re.Pattern[str] = sre_compiler.compile(runs, flags)
    return pattern


@lru_cache(maxsize=32)
def _category(category: Any, flags: int) -> Ranges:
    r"""What ``\d``, ``\W`` and their like accept: every code point is asked about."""
    scalars = SCALARS()
    spans = (match.span() for match in _matcher([(sre.CATEGORY, category)], flags).finditer(scalars))
    found = _joined((ord(scalars[start]), ord(scalars[end - 1])) for start, end in spans)
    return _joined(_over_surrogates(found))


def _over_surrogates(ranges: Ranges) -> Iterator[tuple[int, int]]:
    """Ranges that end beside the surrogates on both sides, as one."""
    yield from ranges
    ends, starts = {last for _, last in ranges}, {first for first, _ in ranges}
    if _SURROGATES.start - 1 in ends and _SURROGATES.stop in starts:
        yield _SURROGATES.start, _SURROGATES.stop - 1


@cached_within(_FOLDED_CLASSES, lambda ranges, items, _: range_bytes(ranges) + 200 * len(items))
def _folded(items: tuple[Any, ...], flags: int) -> Ranges:
    """What a class accepts under IGNORECASE: only code points that have another case need asking."""
    cased, codes = _cased()
    spans = (match.span() for match in _matcher(items, flags).finditer(cased))
    members = ((code, code) for start, end in spans for code in codes[start:end])
    return _joined([*_without(_plain(items, flags), codes), *members])


def _without(ranges: Ranges, codes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Ranges less some code points, which are in order."""
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
    """Every code point that has another case, or is another's, in order: as text and as numbers."""
    scalars = SCALARS()
    blocks = (scalars[at : at + 256] for at in range(0, len(scalars), 256))
    changing = [block for block in blocks if block.lower() != block or block.upper() != block]
    cased = {code for block in changing for code in block if code.lower() != code or code.upper() != code}
    text = "".join(sorted(cased | set("".join(code.lower() + code.upper() for code in cased))))
    return text, [*map(ord, text)]
