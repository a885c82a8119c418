"""Parts of texts, before and behind marks, as columns; a mark is a literal text."""

from collections.abc import Callable

import polars as pl

from assay.errors import encodable
from assay.expressions.lane import is_small, nulls, positions
from assay.expressions.text import WHITESPACE, contains_expr, in_slices
from assay.thresholds import THRESHOLDS


def by_columns(values: pl.Expr, row: Callable[[str], str | None], column: Callable[[pl.Series], pl.Series]) -> pl.Expr:
    """Run a function of columns on the non-null texts of large batches, and its Python definition on small ones."""

    def answers(texts: pl.Series) -> pl.Series:
        if is_small(texts):
            return pl.Series(texts.name, list(map(row, texts.to_list())), dtype=pl.String)
        return column(texts.alias("text"))

    def run(series: pl.Series) -> pl.Series:
        missing = series.null_count()
        if missing == len(series):
            return nulls(series, pl.String)
        if not missing:
            return answers(series).alias(series.name)
        return answers(series.drop_nulls()).gather(positions(series.is_not_null())).alias(series.name)

    return values.map_batches(run, return_dtype=pl.String, is_elementwise=True)


def by_slices(texts: pl.Series, column: Callable[[pl.Series], pl.Series]) -> pl.Series:
    """Run a function of columns that copies whole texts on some of them at a time. See ``in_slices``."""
    return in_slices(lambda columns: column(columns[0]), [texts]).rechunk()


def is_plain(mark: str) -> bool:
    """Return whether the engines search for a mark as Python does: it is short, and without lone surrogates."""
    return len(mark.encode("utf-8", "surrogatepass")) <= THRESHOLDS.phrase_bytes and encodable(mark) == mark


def holds(texts: pl.Series, mark: str) -> pl.Series:
    """Return whether each text contains a mark."""
    return texts.to_frame().select_seq(contains_expr(pl.col(texts.name), mark)).to_series()


def split_at(texts: pl.Series, mark: str, *, last: bool) -> tuple[pl.Series, pl.Series]:
    """Split texts at a mark, as ``str.partition`` and ``str.rpartition`` do."""
    import pyarrow.compute as pc  # slow to import

    array = texts.to_arrow(compat_level=pl.CompatLevel.oldest())  # twice as fast as Polars' own split
    pieces = pl.Series(texts.name, pc.split_pattern(array, mark, max_splits=1, reverse=last).flatten(), dtype=pl.String)
    return pieces.gather_every(2), pieces.gather_every(2, offset=1)


def filled(texts: pl.Series, mask: pl.Series, results: pl.Series) -> pl.Series:
    """Return results for the rows of a mask, in order, and null for the others."""
    return results if len(results) == len(texts) else results.gather(positions(mask)).alias(texts.name)


def stripped(texts: pl.Series) -> pl.Series:
    """Return ``str.strip`` of each text."""
    return texts.str.strip_chars(WHITESPACE)
