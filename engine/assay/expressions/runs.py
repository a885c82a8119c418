"""How many runs of characters of one kind a text has, such as words: counted in its bytes, in a tenth of the time of a search."""

from collections.abc import Callable, Sequence
from functools import partial

import polars as pl

from assay.expressions.lane import in_lists
from assay.expressions.text import in_slices

__all__ = ["not_blank", "runs_expr", "word_like"]

Kind = Callable[[pl.Series], pl.Series]
"""Takes bytes (UInt8) and returns which are of a kind."""


def not_blank(codes: pl.Series) -> pl.Series:
    """Return which bytes are none of the ASCII characters that ``str.split`` splits at."""
    return ~(_between(codes, "\t", "\r") | _between(codes, "\x1c", " "))


def word_like(codes: pl.Series) -> pl.Series:
    r"""Return which bytes are ASCII characters that ``\w`` matches."""
    letters = _between(codes | ord(" "), "a", "z")  # capitals differ in one bit
    return letters | _between(codes, "0", "9") | (codes == ord("_"))


def _between(codes: pl.Series, first: str, last: str) -> pl.Series:
    return codes - ord(first) <= ord(last) - ord(first)  # bytes below wrap around


def runs_expr(texts: pl.Expr, kind: Kind) -> pl.Expr:
    """Return the number of runs of bytes of a kind in each text, as an elementwise UInt32 expression; null stays null."""

    def count(columns: Sequence[pl.Series]) -> pl.Series:
        return in_slices(partial(_count, kind), columns)

    return pl.map_batches([texts], count, pl.UInt32, is_elementwise=True)


def _count(kind: Kind, columns: Sequence[pl.Series]) -> pl.Series:
    (texts,) = columns
    codes, sizes = _bytes_of(texts)
    inside = kind(codes)
    firsts = (sizes.cum_sum() - sizes).filter(sizes > 0)
    begins = (inside & ~inside.shift(1, fill_value=False)).scatter(firsts, inside.gather(firsts))
    return in_lists(begins, sizes).list.sum().cast(pl.UInt32).set(texts.is_null(), None)


def _bytes_of(texts: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Return the bytes of all texts, one after the other, and the number of bytes of each.

    NOTE: a null may have some, too: Polars masks the rows of a branch of ``when`` that it does not need.
    """
    import pyarrow as pa  # slow to import

    array = texts.rechunk().to_arrow(compat_level=pl.CompatLevel.oldest())
    _, offsets, data = array.buffers()
    ends = pl.Series(pa.Array.from_buffers(pa.int64(), len(array) + 1, [None, offsets]), dtype=pl.Int64)
    codes = pa.Array.from_buffers(pa.uint8(), ends[-1], [None, data])
    return pl.Series(codes, dtype=pl.UInt8), ends.diff()[1:]
