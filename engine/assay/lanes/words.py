"""Python's ``str.lower``, ``str.strip`` and ``in`` as expressions.

*Lower*: the engine follows a newer Unicode than CPython, and both lower a final capital sigma by its neighbours. Rows with
neither a code point on which the two differ nor a ``Σ`` go to the engine; for them both are the same code-point map. The
differing code points are found by asking both engines about every one of them, once a process.
*Contains*: the engine searches; Python searches for a phrase that is too long for it, or that no text can hold.
*Strip*: CPython strips 29 code points; the engine strips exactly the set it is given.
"""

from functools import lru_cache

import polars as pl

from assay.errors import encodable
from assay.lanes.base import Lane, rowwise, text

__all__ = [
    "LOWER",
    "SCALARS",
    "WHITESPACE",
    "as_class",
    "contains_expr",
    "equals_expr",
    "lower",
    "lower_expr",
    "strip_expr",
]

WHITESPACE = (
    "\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
"""What ``str.strip()`` removes: ``c.isspace()`` on every supported CPython."""

_BLOCK = 256
_LONGEST_LITERAL = 100_000
"""The engine makes a regular expression of a literal, and refuses one past 10 MB: some 180,000 code points."""


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


def contains_expr(values: pl.Expr, phrase: str) -> pl.Expr:
    """``phrase in value`` as an elementwise expression over a String column."""
    size = len(phrase.encode("utf-8", "surrogatepass"))
    if size <= _LONGEST_LITERAL and encodable(phrase) == phrase:
        return values.str.contains(pl.lit(phrase), literal=True)
    asked = pl.when(values.str.len_bytes() >= size).then(values)
    found = rowwise(asked, lambda value: phrase in value, pl.Boolean)
    return pl.when(values.is_not_null()).then(found.fill_null(value=False))


def equals_expr(values: pl.Expr, phrase: str) -> pl.Expr:
    """``value == phrase`` as an elementwise expression over a String column."""
    # a literal with a lone surrogate would become another text
    return values == pl.lit(phrase) if encodable(phrase) == phrase else contains_expr(values, phrase)


LOWER = Lane("lower", lambda _: lower_expr(text()))
"""The completion's text in lower case."""
