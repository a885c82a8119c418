"""Columns of consecutive segments: flat values, and the size or the end of each segment."""

import polars as pl
import pyarrow as pa


def repeated(values: pl.Series, times: pl.Series) -> pl.Series:
    """Return each value as often as ``times`` says."""
    if not len(values):
        return values
    at = pl.int_range(len(values), dtype=pl.UInt32, eager=True)
    return values.gather(at.repeat_by(times).explode(empty_as_null=False))


def ranges(ends: pl.Series, sizes: pl.Series) -> pl.Series:
    """Return the positions in segments with these ends and sizes."""
    at = (
        pl.DataFrame()
        .select_seq(pl.int_ranges(ends - sizes, ends, dtype=pl.Int64).explode(empty_as_null=False))
        .to_series()
    )
    return at.cast(pl.UInt32)


def segment_sums(values: pl.Series, sizes: pl.Series) -> pl.Series:
    """Return the sum of each of the consecutive segments of ``values``."""
    running = pl.concat([pl.Series([0], dtype=pl.Int64), values.cast(pl.Int64).cum_sum()])
    ends = sizes.cast(pl.Int64).cum_sum()
    return running.gather(ends) - running.gather(ends - sizes.cast(pl.Int64))


def in_lists(sizes: pl.Series, values: pl.Series) -> pl.Series:
    """Return consecutive segments of strings as lists, a hundred times faster than from Python lists."""
    ends = pl.concat([pl.Series([0], dtype=pl.Int64), sizes.cast(pl.Int64).cum_sum()])
    return pl.Series(pa.LargeListArray.from_arrays(ends.to_arrow(), values.to_arrow()), dtype=pl.List(pl.String))
