"""Sets of characters of a pattern, as the code points that Python's own matcher accepts."""

import re
from functools import lru_cache
from re import _compiler as sre_compiler  # type: ignore[attr-defined]
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser as sre_parser  # type: ignore[attr-defined]
from typing import Any

from assay.lanes.words import SCALARS, as_class

__all__ = ["NotLinearError", "char_set", "matcher"]

_SURROGATES = range(0xD800, 0xE000)


class NotLinearError(Exception):
    """A construct that the linear engine cannot express exactly; the message names it."""


def char_set(op: Any, value: Any, flags: int) -> str:
    """The code points a single-character node accepts, as the linear engine writes them."""
    if op is sre.ANY:
        return r"[\x{0}-\x{10FFFF}]" if flags & sre.SRE_FLAG_DOTALL else r"[^\x{A}]"
    if op in (sre.LITERAL, sre.NOT_LITERAL):
        if value in _SURROGATES:
            raise NotLinearError("a lone surrogate")
        if not flags & sre.SRE_FLAG_IGNORECASE:
            return ("" if op is sre.LITERAL else "^").join(("[", f"\\x{{{value:X}}}]"))
        if op is sre.LITERAL:
            return _folded_literal(value, flags)
    items = tuple(value) if op is sre.IN else value
    return _asked(op, items, flags & (sre.SRE_FLAG_IGNORECASE | sre.SRE_FLAG_ASCII | sre.SRE_FLAG_UNICODE))


def matcher(op: Any, value: Any, flags: int) -> re.Pattern[str]:
    """Python's own matcher of runs of this one node."""
    state = sre_parser.State()
    state.flags = flags
    state.str = ""
    node = sre_parser.SubPattern(state, [(op, list(value) if op is sre.IN else value)])
    runs = sre_parser.SubPattern(state, [(sre.MAX_REPEAT, (1, sre.MAXREPEAT, node))])
    pattern: re.Pattern[str] = sre_compiler.compile(runs, flags)
    return pattern


@lru_cache(maxsize=1024)
def _asked(op: Any, value: Any, flags: int) -> str:
    """Ask Python's matcher about every code point."""
    scalars = SCALARS()
    runs = [match.span() for match in matcher(op, value, flags).finditer(scalars)]
    if not runs:
        raise NotLinearError("a class that no character is in")
    return "[" + "".join(f"\\x{{{ord(scalars[a]):X}}}-\\x{{{ord(scalars[b - 1]):X}}}" for a, b in runs) + "]"


@lru_cache(maxsize=4096)
def _folded_literal(value: int, flags: int) -> str:
    """The code points that a literal accepts under IGNORECASE; only code points that case at all need asking."""
    accepts = matcher(sre.LITERAL, value, flags)
    return as_class("".join(code for code in {chr(value), *_cased()} if accepts.fullmatch(code)))


@lru_cache(maxsize=1)
def _cased() -> str:
    """Every code point that has another case, or is another's."""
    scalars = SCALARS()
    blocks = (scalars[at : at + 256] for at in range(0, len(scalars), 256))
    changing = [block for block in blocks if block.lower() != block or block.upper() != block]
    cased = {code for block in changing for code in block if code.lower() != code or code.upper() != code}
    return "".join(sorted(cased | set("".join(code.lower() + code.upper() for code in cased))))
