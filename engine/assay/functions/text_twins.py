"""The built-in verifier functions that compare text, as expressions: the completion against a column of golds."""

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import polars as pl

from assay.errors import SHOWN, quoted
from assay.expressions.lane import once, rowwise
from assay.expressions.text import (
    ASCII_ALIKE,
    WHITESPACE,
    ascii_lower_expr,
    contains_column,
    is_ascii,
    lower_expr,
    strip_expr,
)
from assay.thresholds import THRESHOLDS

__all__ = ["IGNORE_CASE", "contains_expr", "exact_match_expr", "quoted_expr"]

IGNORE_CASE = "ignore_case"
_BLANKS = list(WHITESPACE)
_GROWS = 5
"""No two texts that are equal in lower case differ by more in size: lowering makes at most 3 bytes of 2, at least 1 of 3."""
_NOT_PLAIN = r"[^ !#-~]"
"""What is not shown as it is between double quotes."""


def exact_match_expr(output: pl.Expr, expected: pl.Expr, params: Mapping[str, Any]) -> pl.Expr:
    """``fns.exact_match`` as an elementwise expression."""
    run = partial(_equal_batch, folds=bool(params.get(IGNORE_CASE)))
    return pl.map_batches([output, strip_expr(expected)], run, pl.Boolean, is_elementwise=True)


def contains_expr(output: pl.Expr, expected: pl.Expr, params: Mapping[str, Any]) -> pl.Expr:
    """``fns.contains`` as an elementwise expression."""
    run = _contains_folded if params.get(IGNORE_CASE) else _contains
    return pl.map_batches([output, expected], run, pl.Boolean, is_elementwise=True) & (expected != "")


def _equal_batch(columns: Sequence[pl.Series], *, folds: bool) -> pl.Series:
    """Whether outputs equal stripped golds. Stripping copies a text, so only those are stripped that may then be equal."""
    output, gold = pl.col("output"), pl.col("gold")
    size, wanted, grows = output.str.len_bytes(), gold.str.len_bytes(), _GROWS if folds else 1
    near = (size <= grows * wanted) & (wanted <= grows * size)
    padded = output.str.head(1).is_in(_BLANKS) | output.str.tail(1).is_in(_BLANKS)
    same = columns[0] == columns[1]
    frame = pl.DataFrame({"output": columns[0], "gold": columns[1]}).with_row_index("at").filter(~same)
    likely = near | ((size > wanted) & (size <= wanted + THRESHOLDS.padding))
    frame = pl.concat([frame.filter(likely), frame.filter(~likely & (size > wanted)).filter(padded)])
    frame = frame.with_columns(strip_expr(output)).filter(near)
    return _folded(frame, same, operator.eq) if folds else same.scatter(frame["at"], frame["output"] == frame["gold"])


def _contains(columns: Sequence[pl.Series]) -> pl.Series:
    return contains_column(columns[0], columns[1])


def _contains_folded(columns: Sequence[pl.Series]) -> pl.Series:
    # as written is as lowered between ASCII; beyond it a final sigma may change
    there = _contains(columns) & is_ascii(columns[1])
    frame = pl.DataFrame({"output": columns[0], "gold": columns[1]}).with_row_index("at").filter(~there)
    return _folded(frame, there, contains_column)


_Compare = Callable[[pl.Series, pl.Series], pl.Series]


def _folded(frame: pl.DataFrame, known: pl.Series, compare: _Compare) -> pl.Series:
    """What is known, and for the rows of the frame what both sides in lower case say.

    An ASCII gold meets only ASCII letters, so for it lowering bytes will do, where the output has none of the few code points
    that are ASCII in lower case. NOTE: rows are filtered, not masked, for the engine works on what stands behind a null too.
    """
    simple = is_ascii(frame["gold"]) & ~frame["output"].str.contains(ASCII_ALIKE)
    for rows, lowered in ((frame.filter(simple), ascii_lower_expr), (frame.filter(~simple), lower_expr)):
        both = rows.select(lowered(pl.col("output")), lowered(pl.col("gold")))
        found = compare(both["output"], both["gold"])
        known = known.scatter(rows["at"], found)
    return known


def quoted_expr(values: pl.Expr, before: str = "") -> pl.Expr:
    """``before`` and ``quoted`` as an elementwise expression over a String column."""
    return once(values, partial(_quoted, before=before), pl.String)


def _quoted(values: pl.Series, before: str) -> pl.Series:
    head = values.str.head(SHOWN + 1)  # nothing after it is shown
    plain = pl.select(pl.concat_str(pl.lit(f'{before}"'), head, pl.lit('"'))).to_series()
    odd = head.str.contains(_NOT_PLAIN) | (head.str.len_bytes() > SHOWN)
    if not odd.any():
        return plain
    frame = pl.DataFrame({"plain": plain, "odd": head.zip_with(odd, pl.Series([None], dtype=pl.String))})
    told = rowwise(pl.col("odd"), lambda value: before + quoted(value), pl.String)
    return frame.select(pl.coalesce(told, "plain")).to_series()
