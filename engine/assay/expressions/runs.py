"""How many runs of characters of one kind a text has, such as words: counted in its bytes, in a tenth of the time of a search."""

from collections.abc import Callable, Sequence
from functools import partial

import polars as pl

from assay.expressions.lane import in_lists, nulls, positions
from assay.expressions.text import in_slices

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


def runs(texts: pl.Series, kind: Kind) -> pl.Series:
    """Return the number of runs of bytes of a kind in each text, as UInt32; null stays null."""
    if not texts.null_count():
        return in_slices(partial(_count, kind), [texts])
    if texts.null_count() == len(texts):
        return nulls(texts, pl.UInt32)
    # NOTE: a null has bytes, too, where Polars masks what a branch of ``when`` does not need
    counts = in_slices(partial(_count, kind), [texts.drop_nulls()])
    return counts.gather(positions(texts.is_not_null())).alias(texts.name)


def _count(kind: Kind, columns: Sequence[pl.Series]) -> pl.Series:
    (texts,) = columns
    sizes = texts.str.len_bytes().cast(pl.Int64)
    inside = kind(_bytes_of(texts))
    firsts = (sizes.cum_sum() - sizes).filter(sizes > 0)
    begins = (inside & ~inside.shift(1, fill_value=False)).scatter(firsts, inside.gather(firsts))
    return in_lists(begins, sizes).list.sum().cast(pl.UInt32).alias(texts.name)


def _bytes_of(texts: pl.Series) -> pl.Series:
    """Return the bytes of all texts, one after the other."""
    import pyarrow as pa  # slow to import

    data = texts.rechunk().to_arrow(compat_level=pl.CompatLevel.oldest()).buffers()[2]
    size = 0 if data is None else data.size
    return pl.Series(pa.Array.from_buffers(pa.uint8(), size, [None, data]), dtype=pl.UInt8)
