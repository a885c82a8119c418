"""Python's ``str.lower``, ``str.strip`` and ``in`` as expressions.

*Lower*: in a text whose only letters with a lower case are ASCII ones, lowering is a change of bytes, and Arrow does it. A text
with any other such letter goes to Python, whose Unicode is not the engine's, and which lowers a final ``Σ`` by its neighbours.
Which letters those are is asked of Python itself, once a process.
*Contains*: the engine searches; Python searches for a phrase that is too long for it, or that no text can hold.
*Contains or equals, lowered*: a short phrase of ASCII is searched for as a pattern that has both cases of each letter, and what
else is that letter in lower case; no text is lowered for it.
*Strip*: CPython strips 29 code points; the engine strips exactly the set it is given.
"""

import sys
from functools import lru_cache
from typing import TypeVar

import polars as pl

from assay.errors import encodable
from assay.expressions.lane import Lane, rowwise, text
from assay.thresholds import THRESHOLDS

__all__ = [
    "ASCII_ALIKE",
    "BEYOND_ASCII",
    "CHARACTERS",
    "LOWER",
    "SCALARS",
    "WHITESPACE",
    "Texts",
    "as_class",
    "ascii_lower_expr",
    "beyond_ascii",
    "contains_column",
    "contains_expr",
    "equals_expr",
    "is_ascii",
    "lower",
    "lower_expr",
    "lower_rows",
    "lowered_pattern",
    "strip_expr",
    "stripped_pattern",
]

WHITESPACE = (
    "\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
"""What ``str.strip()`` removes: ``c.isspace()`` on every supported CPython."""

ASCII_ALIKE = "[\u0130\u0131\u017f\u212a]"
"""The code points beyond ASCII that lower case or IGNORECASE takes for an ASCII letter: İ, ı, ſ and the Kelvin sign."""

Texts = TypeVar("Texts", pl.Expr, pl.Series)
"""Texts of a column, or of an expression for one."""

_LOWERED = {"k": "kK\u212a"}
"""What is an ASCII letter in lower case, besides the letter and its capital."""


@lru_cache(maxsize=1)
def SCALARS() -> str:  # noqa: N802  (a constant too large to build before someone asks)
    """Every Unicode scalar value in order, as one string of 1,112,064 code points."""
    codes = pl.concat(pl.int_range(*ends, dtype=pl.UInt32, eager=True) for ends in ((0, 0xD800), (0xE000, 0x110000)))
    data: bytes = codes.to_arrow().buffers()[1].to_pybytes()
    return data.decode(f"utf-32-{sys.byteorder[0]}e")  # a twentieth of the time of chr() for each


def as_class(codes: str) -> str:
    """A character class for the linear engine that matches exactly these code points."""
    ranges: list[list[int]] = []
    for code in sorted(map(ord, set(codes))):
        if ranges and code == ranges[-1][1] + 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return "[" + "".join(f"\\x{{{first:X}}}-\\x{{{last:X}}}" for first, last in ranges) + "]"


@lru_cache(maxsize=1)
def _other_capitals() -> str:
    """A class of the code points beyond ASCII that have a lower case."""
    scalars = SCALARS()[128:]
    blocks = (scalars[at : at + 256] for at in range(0, len(scalars), 256))
    return as_class(
        "".join(code for block in blocks if block.lower() != block for code in block if code.lower() != code)
    )


def _ascii_lower(series: pl.Series) -> pl.Series:
    import pyarrow.compute as pc  # it makes its functions when it is imported, which takes long

    lowered = pc.ascii_lower(series.to_arrow(compat_level=pl.CompatLevel.oldest()))
    return pl.Series(series.name, lowered, dtype=pl.String)


def lower(value: str) -> str:
    """The definition: Python's ``str.lower`` (full Unicode lower case, not casefold)."""
    return value.lower()


def is_ascii(values: Texts) -> Texts:
    """Which texts are all ASCII; null where there is none."""
    return values.str.len_bytes() == values.str.len_chars()


def beyond_ascii(values: pl.Expr) -> pl.Expr:
    """The texts that hold a code point beyond ASCII, ``""`` for the others.

    NOTE: not null, for the engine searches what stands behind a null too.
    """
    return pl.when(is_ascii(values).not_()).then(values).otherwise(pl.lit(""))


def lower_expr(values: pl.Expr) -> pl.Expr:
    """``str.lower`` as an elementwise expression over a String column."""
    return values.map_batches(_lower, return_dtype=pl.String, is_elementwise=True)


def _lower(values: pl.Series) -> pl.Series:
    return lower_rows(values, values.is_not_null())


def lower_rows(values: pl.Series, asked: pl.Series) -> pl.Series:
    """``str.lower`` of some texts, of the others the ASCII letters only.

    Args:
        values: The texts.
        asked: Which of them (Boolean) to lower whatever letters they have.
    """
    lowered = _ascii_lower(values)
    # rows are taken out, not masked: the engine searches what stands behind a null too
    at = asked.arg_true()
    at = at.filter(~is_ascii(values.gather(at)))
    beyond = values.gather(at)
    capital = beyond.str.contains(_other_capitals())
    exact = pl.Series(list(map(lower, beyond.filter(capital).to_list())), dtype=pl.String)
    return lowered.scatter(at.filter(capital), exact) if len(exact) else lowered


def ascii_lower_expr(values: pl.Expr) -> pl.Expr:
    """The ASCII letters of a String column in lower case, all else as it is; elementwise."""
    return values.map_batches(_ascii_lower, return_dtype=pl.String, is_elementwise=True)


def strip_expr(values: pl.Expr) -> pl.Expr:
    """``str.strip`` as an elementwise expression over a String column."""
    return values.str.strip_chars(WHITESPACE)


def contains_expr(values: pl.Expr, phrase: str) -> pl.Expr:
    """``phrase in value`` as an elementwise expression over a String column."""
    size = len(phrase.encode("utf-8", "surrogatepass"))
    if size <= THRESHOLDS.phrase_bytes and encodable(phrase) == phrase:
        return values.str.contains(pl.lit(phrase), literal=True)
    asked = pl.when(values.str.len_bytes() >= size).then(values)
    found = rowwise(asked, lambda value: phrase in value, pl.Boolean)
    return pl.when(values.is_not_null()).then(found.fill_null(value=False))


def contains_column(values: pl.Series, phrases: pl.Series) -> pl.Series:
    """``phrase in value``, row for row; null where either is.

    NOTE: of one row the engine makes a regular expression, which takes quadratic time and refuses long phrases.
    """
    if len(values) <= THRESHOLDS.lone_searches:
        pairs = zip(values.to_list(), phrases.to_list(), strict=True)
        found = [None if value is None or phrase is None else phrase in value for value, phrase in pairs]
        return pl.Series(values.name, found, dtype=pl.Boolean)
    return values.str.contains(pl.lit(phrases), literal=True)


def equals_expr(values: pl.Expr, phrase: str) -> pl.Expr:
    """``value == phrase`` as an elementwise expression over a String column."""
    # a literal with a lone surrogate would become another text
    return values == pl.lit(phrase) if encodable(phrase) == phrase else contains_expr(values, phrase)


def lowered_pattern(phrase: str, *, last: str = "") -> str | None:
    """A pattern of the linear engine that finds, in a text as it is, what is ``phrase`` in the lowered text.

    Of all code points beyond ASCII only two have ASCII in their lower case: the Kelvin sign, and İ, which becomes an i and a dot
    above it. That dot is not in the phrase, so İ can only be its last letter, and only where the text may go on.

    Args:
        phrase: In lower case.
        last: What the last letter may be besides, where that is an ``i``.

    Returns:
        The pattern, or None for a phrase that is long or not all ASCII.
    """
    if len(phrase) > THRESHOLDS.folded_phrase or not phrase.isascii():
        return None
    codes = [_LOWERED.get(code, code + code.upper()) for code in phrase]
    if phrase.endswith("i"):
        codes[-1] += last
    return "".join(map(as_class, codes))


def stripped_pattern(phrase: str, *, lowered: bool) -> str | None:
    """A pattern that a text matches which, stripped and perhaps lowered, equals a stripped phrase.

    Args:
        phrase: Stripped, in lower case if ``lowered``.
        lowered: Whether the text is lowered.

    Returns:
        The pattern, or None for a phrase that is long, or that the engine cannot search for.
    """
    if lowered:
        found = lowered_pattern(phrase)
    else:
        fits = len(phrase) <= THRESHOLDS.folded_phrase and encodable(phrase) == phrase
        found = "".join(map(as_class, phrase)) if fits else None
    space = as_class(WHITESPACE)
    return None if found is None else rf"\A{space}*{found}{space}*\z"


CHARACTERS = Lane("characters", lambda _: text().str.len_chars().cast(pl.Int64))
"""Code points of the completion's text."""

BEYOND_ASCII = Lane("beyond-ascii", lambda _: text().str.len_bytes() != CHARACTERS.col, after=(CHARACTERS,))
"""Whether the completion's text holds a code point beyond ASCII."""

LOWER = Lane("lower", lambda _: lower_expr(text()))
"""The completion's text in lower case."""
