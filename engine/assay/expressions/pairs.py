"""Two columns of texts compared row by row, as Python compares them: equal, contained, beginning, ending."""

import operator
from collections.abc import Callable, Sequence
from functools import partial

import polars as pl

from assay.errors import SHOWN, quoted
from assay.expressions.shared_columns import (
    among,
    distinct_rows,
    encoded,
    in_lists,
    in_place,
    in_rows_of,
    is_small,
    rowwise,
)
from assay.expressions.text import (
    SIGMA,
    contains_column,
    contains_lowered,
    is_ascii,
    lower_rows,
    strip_expr,
    stripped,
)
from assay.thresholds import THRESHOLDS

_GROWS = 5
"""Texts that are equal in lower case differ in size by less than this factor: 2 bytes become up to 3, and 3 at least 1."""
_ESCAPED = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}
"""What ``quoted`` shows of the commonest characters that are not shown unchanged."""
_CHANGED, _ODD = r"[^ !#-~¡-¬®-ͷ…]", r"[^ !#-~¡-¬®-ͷ…\n\r\t]"
"""A character that it may not show unchanged, between double quotes, and one that it may not show so either."""
_IS_CHANGED, _IS_ODD = (pl.col("text").str.contains(characters) for characters in (_CHANGED, _ODD))
_IN_QUOTES = pl.concat_str(pl.lit('"'), pl.col("text").str.replace_many(_ESCAPED), pl.lit('"'))


def equal_expr(texts: pl.Expr, golds: pl.Expr, *, lowered: bool) -> pl.Expr:
    """Return whether each text equals its gold, both stripped, and in lower case if ``lowered``; null where either is."""
    run = partial(_equal_batch, lowered=lowered)
    return pl.map_batches([texts, golds], run, pl.Boolean, is_elementwise=True)


def contain_expr(texts: pl.Expr, golds: pl.Expr, *, lowered: bool) -> pl.Expr:
    """Return whether each text contains its gold, both in lower case if ``lowered``; null where either is."""
    run = _contains_folded if lowered else lambda columns: contains_column(*columns)
    return pl.map_batches([texts, golds], run, pl.Boolean, is_elementwise=True)


def contain_each_expr(texts: pl.Expr, lists: pl.Expr, *, lowered: bool) -> pl.Expr:
    """Return for each gold of a row's list whether the text contains it, as a List(Boolean) expression; null where either is."""
    run = partial(_contains_each, lowered=lowered)
    return pl.map_batches([texts, lists], run, pl.List(pl.Boolean), is_elementwise=True)


def _contains_each(columns: Sequence[pl.Series], *, lowered: bool) -> pl.Series:
    texts, lists = columns
    rows = pl.DataFrame({"text": texts, "golds": lists}).with_row_index("at").drop_nulls()
    rows = rows.filter(pl.col("golds").list.len() > 0)
    pairs = rows.select_seq("text", "golds").explode("golds")
    contained = pairs.select_seq(contain_expr(pl.col("text"), pl.col("golds"), lowered=lowered)).to_series()
    answers = rows.select_seq("at", found=in_lists(contained, rows["golds"].list.len()))
    return in_place(answers, len(texts)).to_series().alias(texts.name)


def listed_where(lists: pl.Expr, masks: pl.Expr, *, holds: bool) -> pl.Expr:
    """Return the texts of each list where a list of Booleans of the same length is ``holds``; null where either list is."""
    run = partial(_listed_where, holds=holds)
    return pl.map_batches([lists, masks], run, pl.List(pl.String), is_elementwise=True)


def _listed_where(columns: Sequence[pl.Series], *, holds: bool) -> pl.Series:
    frame = pl.DataFrame({"items": columns[0], "mask": columns[1]}).with_row_index("at").drop_nulls()
    items = (
        frame.explode("items", "mask").filter(pl.col("mask") == holds).group_by("at", maintain_order=True).agg("items")
    )
    return in_place(items, len(columns[0])).to_series().alias(columns[0].name)


def edge_expr(texts: pl.Expr, golds: pl.Expr, *, end: bool, stripped: bool, lowered: bool) -> pl.Expr:
    """Return whether each text begins with its gold, or ends with it; null where either is."""
    if stripped:
        texts, golds = strip_expr(texts), strip_expr(golds)
    if lowered:
        return pl.map_batches([texts, golds], partial(_has_edge, end=end), pl.Boolean, is_elementwise=True)
    return texts.str.ends_with(golds) if end else texts.str.starts_with(golds)


def _has_edge(columns: Sequence[pl.Series], *, end: bool) -> pl.Series:
    texts, golds = columns[0], lower_rows(columns[1])
    frame, text, gold = pl.DataFrame({"text": texts, "gold": golds}), pl.col("text"), pl.col("gold")
    if texts.estimated_size() > THRESHOLDS.times_gold * golds.estimated_size():
        # no character has fewer in lower case; what a sigma has depends on its neighbours
        size = gold.str.len_chars()
        edges = frame.select_seq(text.str.tail(size) if end else text.str.head(size)).to_series()
        texts = edges.zip_with(~edges.str.contains(SIGMA, literal=True), texts)
    frame = frame.with_columns_seq(lower_rows(texts).alias("text"))
    return frame.select_seq(edge_expr(text, gold, end=end, stripped=False, lowered=False)).to_series()


def _equal_batch(columns: Sequence[pl.Series], *, lowered: bool) -> pl.Series:
    texts, golds = map(stripped, columns)
    same = texts == golds
    if not lowered:
        return same
    frame, text, gold = pl.DataFrame({"text": texts, "gold": golds, "same": same}), pl.col("text"), pl.col("gold")
    size, gold_size = (values.str.len_bytes().cast(pl.Int64) for values in (text, gold))
    is_near = (size <= _GROWS * gold_size) & (gold_size <= _GROWS * size)
    # two ASCII texts that differ in size differ in lower case, too
    may_equal = (size == gold_size) | (is_near & (is_ascii(text) & is_ascii(gold)).not_())
    at = frame.select_seq((pl.col("same").not_() & may_equal).arg_true()).to_series()
    lowers = (lower_rows(values.gather(at)) for values in (texts, golds))
    return same.scatter(at, operator.eq(*lowers)) if len(at) else same


def _contains_folded(columns: Sequence[pl.Series]) -> pl.Series:
    output, gold = columns
    if output.estimated_size() <= len(output) * THRESHOLDS.copied_text:
        return contains_lowered(output, gold)
    # a match as written is a match in lower case, unless a capital sigma becomes another letter at the end of a word
    matches = contains_column(output, gold) & ~gold.str.contains(SIGMA, literal=True)
    at = (~matches).arg_true()
    return matches.scatter(at, contains_lowered(output.gather(at), gold.gather(at)))


def once_pairs(
    texts: pl.Expr,
    golds: pl.Expr,
    function: Callable[[pl.Series, pl.Series], pl.Series],
    dtype: pl.Struct,
) -> pl.Expr:
    """Run a function on the distinct pairs of each batch; of a pair with a null, every field is null."""

    def run(columns: Sequence[pl.Series]) -> pl.Series:
        texts, which_text = encoded(columns[0])
        if len(texts) == len(which_text) and not columns[1].null_count():  # so all pairs differ
            return function(texts, columns[1].rechunk()).alias(columns[0].name).cast(dtype)
        golds, which_gold = distinct_golds(columns[1])
        count = max(len(golds), 1)
        number = which_text.cast(pl.Int64) * count + which_gold.cast(pl.Int64)
        distinct = number.drop_nulls().unique().sort()  # pairs of a text follow each other
        at = distinct.search_sorted(number).set(number.is_null(), None)
        results = function(texts.gather(distinct // count), golds.gather(distinct % count))
        # NOTE: field by field, so that a field that is added is not null where the others are
        return results.struct.unnest().select_seq(pl.all().gather(at)).to_struct(columns[0].name).cast(dtype)

    return pl.map_batches([texts, golds], run, return_dtype=dtype, is_elementwise=True)


def distinct_golds(golds: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Return the distinct golds of a column of texts or structs, and the index of each row's; null for a text that is null."""
    return distinct_rows(golds) if golds.dtype == pl.Struct else encoded(golds)


def quoted_expr(values: pl.Expr, before: str = "") -> pl.Expr:
    """Return ``before + quoted(value)`` as an elementwise expression over a String column."""
    return values.map_batches(partial(quoted_rows, before=before), pl.String, is_elementwise=True)


def quoted_lists_expr(lists: pl.Expr) -> pl.Expr:
    """Return the ``quoted`` texts of each list, with commas between them, as a String expression; null stays null."""
    return lists.map_batches(_quoted_lists, pl.String, is_elementwise=True)


def _quoted_lists(lists: pl.Series) -> pl.Series:
    rows = pl.DataFrame({"texts": lists}).with_row_index("at").drop_nulls()
    rows = rows.filter(pl.col("texts").list.len() > 0)
    texts = rows["texts"].explode()
    quoted_texts = texts.to_frame("text").select_seq(quoted_expr(pl.col("text"))).to_series()
    joined = rows.select_seq("at", text=in_lists(quoted_texts, rows["texts"].list.len()).list.join(", "))
    answers = in_place(joined, len(lists)).to_series()
    return answers.set(lists.is_not_null() & answers.is_null(), "").alias(lists.name)


def quoted_rows(values: pl.Series, before: str | pl.Series = "") -> pl.Series:
    """Return ``before + quoted(value)`` of texts; null stays null."""
    if values.null_count() == len(values):
        return values
    texts = values.drop_nulls().alias("text")  # Polars also searches the values behind nulls
    if texts.str.len_bytes().max() > SHOWN:  # type: ignore[operator]  # one is not null
        texts = texts.str.head(SHOWN + 1)
        texts = texts.zip_with(texts.str.len_chars() <= SHOWN, texts.str.head(SHOWN - 1) + "…")
    begin = [pl.lit(f'{before}"')]
    if isinstance(before, pl.Series):
        before = before if len(texts) == len(values) else before.filter(values.is_not_null())
        begin = [pl.lit(before), pl.lit('"')]
    shown, changed = texts.to_frame().select_seq(pl.concat_str(*begin, "text", pl.lit('"')), changed=_IS_CHANGED)
    if changed.any():
        at = changed.arg_true()
        shown = shown.scatter(at, (before if isinstance(before, str) else before[at]) + _escaped(texts[at]))
    return in_rows_of(values, shown)


def _escaped(texts: pl.Series) -> pl.Series:
    if is_small(texts):
        return pl.Series([*map(quoted, texts.to_list())], dtype=pl.String)
    escaped, odd = texts.to_frame().select_seq(_IN_QUOTES, odd=_IS_ODD)
    by_python = rowwise(pl.col("text"), quoted, pl.String, distinct=True)
    return among(escaped, odd, texts, lambda texts: texts.to_frame().select_seq(by_python).to_series())
