"""Python's ``str.lower``, ``str.strip`` and ``len`` as expressions.

*Lower*: the engine follows a newer Unicode than CPython, and both lower a final capital sigma by its neighbours. Rows with
neither a code point on which the two differ nor a ``Σ`` go to the engine; for them both are the same code-point map. The
differing code points are found by asking both engines about every one of them, once a process.
*Strip*: CPython strips 29 code points; the engine strips exactly the set it is given.
"""

from functools import lru_cache

import polars as pl

from assay.lanes.base import Lane, rowwise, text

__all__ = ["LOWER", "SCALARS", "WHITESPACE", "as_class", "lower", "lower_expr", "strip_expr"]

WHITESPACE = (
    "\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
"""What ``str.strip()`` removes: ``c.isspace()`` on every supported CPython."""

_BLOCK = 256


@lru_cache(maxsize=1)
def SCALARS() -> str:  # noqa: N802  (a constant too large to build before someone asks)
    """Every Unicode scalar value in order, as one string of 1,112,064 code points."""
    return "".join(map(chr, (*range(0xD800), *range(0xE000, 0x110000))))


def as_class(codes: str) -> str:
    """A character class for the linear engine that matches exactly these code points."""
    return "[" + "".join(f"\\x{{{ord(code):X}}}" for code in codes) + "]"


@lru_cache(maxsize=1)
def _lower_hazards() -> str:
    """Code points whose lower case depends on who is asked or on their neighbours."""
    scalars = SCALARS()
    blocks = ["\n".join(scalars[at : at + _BLOCK]) for at in range(0, len(scalars), _BLOCK)]
    engine = pl.Series(blocks, dtype=pl.String).str.to_lowercase().to_list()
    suspects = [
        code for block, theirs in zip(blocks, engine, strict=True) if block.lower() != theirs for code in block[::2]
    ]
    theirs = pl.Series(suspects, dtype=pl.String).str.to_lowercase().to_list()
    differing = {code for code, other in zip(suspects, theirs, strict=True) if code.lower() != other}
    return "".join(sorted(differing | {"Σ"}))


def lower(value: str) -> str:
    """The definition: Python's ``str.lower`` (full Unicode lower case, not casefold)."""
    return value.lower()


def lower_expr(values: pl.Expr) -> pl.Expr:
    """``str.lower`` as an elementwise expression over a String column."""
    wide = pl.when(values.str.len_bytes() != values.str.len_chars()).then(values)
    exact = pl.when(wide.str.contains(as_class(_lower_hazards()))).then(values)
    return pl.coalesce(rowwise(exact, lower, pl.String), values.str.to_lowercase())


def strip_expr(values: pl.Expr) -> pl.Expr:
    """``str.strip`` as an elementwise expression over a String column."""
    return values.str.strip_chars(WHITESPACE)


LOWER = Lane("lower", lambda _: lower_expr(text()))
"""The completion's text in lower case."""
