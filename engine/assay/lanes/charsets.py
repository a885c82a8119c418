r"""What a single-character node of a parsed pattern accepts, asked of Python's own matcher.

Classes, ``\w \d \s .`` and anything under IGNORECASE mean what this Python's tables say, and other engines have tables of their
own; as ranges of code points they mean the same to all.
"""

import re
from functools import lru_cache
from re import _compiler as sre_compiler  # type: ignore[attr-defined]
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser as sre_parser  # type: ignore[attr-defined]
from typing import Any

from assay.lanes.words import SCALARS

__all__ = ["CHARACTERS", "Ranges", "accepted", "boundary_in_nothing", "word_characters"]

CHARACTERS = (sre.LITERAL, sre.NOT_LITERAL, sre.ANY, sre.IN)
"""The nodes that stand for one character."""

Ranges = tuple[tuple[int, int], ...]
"""Code points, as first and last of each range, in order."""

_LAST = 0x10FFFF
_NEWLINE = ord("\n")
_SURROGATES = range(0xD800, 0xE000)


def accepted(op: Any, value: Any, flags: int) -> Ranges:
    """The code points that a single-character node accepts; those of lone surrogates do not count, for no text holds them."""
    if op is sre.ANY:
        return ((0, _LAST),) if flags & sre.SRE_FLAG_DOTALL else _all_but(_NEWLINE)
    if op in (sre.LITERAL, sre.NOT_LITERAL):
        if value in _SURROGATES:
            return () if op is sre.LITERAL else ((0, _LAST),)
        if not flags & sre.SRE_FLAG_IGNORECASE:
            return ((value, value),) if op is sre.LITERAL else _all_but(value)
        if op is sre.LITERAL:
            return _folded_literal(value, flags)
    items = tuple(value) if op is sre.IN else value
    return _asked(op, items, flags & (sre.SRE_FLAG_IGNORECASE | sre.SRE_FLAG_ASCII | sre.SRE_FLAG_UNICODE))


def word_characters(flags: int) -> Ranges:
    r"""What ``\w`` accepts, and ``\b`` looks at."""
    return accepted(sre.IN, [(sre.CATEGORY, sre.CATEGORY_WORD)], flags & ~sre.SRE_FLAG_IGNORECASE)


def boundary_in_nothing() -> bool:
    r"""Whether ``\B`` matches the empty text, as it does from Python 3.14 on."""
    return re.search(r"\B", "") is not None


def _all_but(point: int) -> Ranges:
    return tuple((first, last) for first, last in ((0, point - 1), (point + 1, _LAST)) if first <= last)


def _matcher(op: Any, value: Any, flags: int) -> re.Pattern[str]:
    """Python's own matcher of runs of this one node."""
    state = sre_parser.State()
    state.flags = flags
    state.str = ""
    node = sre_parser.SubPattern(state, [(op, list(value) if op is sre.IN else value)])
    runs = sre_parser.SubPattern(state, [(sre.MAX_REPEAT, (1, sre.MAXREPEAT, node))])
    pattern: re.Pattern[str] = sre_compiler.compile(runs, flags)
    return pattern


@lru_cache(maxsize=1024)
def _asked(op: Any, value: Any, flags: int) -> Ranges:
    """Ask Python's matcher about every code point."""
    scalars = SCALARS()
    spans = (match.span() for match in _matcher(op, value, flags).finditer(scalars))
    return tuple((ord(scalars[start]), ord(scalars[end - 1])) for start, end in spans)


@lru_cache(maxsize=4096)
def _folded_literal(value: int, flags: int) -> Ranges:
    """The code points that a literal accepts under IGNORECASE; only code points that case at all need asking."""
    matcher = _matcher(sre.LITERAL, value, flags)
    return tuple((ord(code), ord(code)) for code in sorted({chr(value), *_cased()}) if matcher.fullmatch(code))


@lru_cache(maxsize=1)
def _cased() -> str:
    """Every code point that has another case, or is another's."""
    scalars = SCALARS()
    blocks = (scalars[at : at + 256] for at in range(0, len(scalars), 256))
    changing = [block for block in blocks if block.lower() != block or block.upper() != block]
    cased = {code for block in changing for code in block if code.lower() != code or code.upper() != code}
    return "".join(sorted(cased | set("".join(code.lower() + code.upper() for code in cased))))
