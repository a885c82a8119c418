"""Two columns of texts compared row by row, as Python compares them: equal, contained, beginning, ending."""

from collections.abc import Callable, Sequence
from functools import partial

import polars as pl

from assay.errors import SHOWN, quoted
from assay.expressions.shared_columns import encoded, in_lists, in_place, once, rowwise
from assay.expressions.text import (
    WHITESPACE,
    contains_column,
    contains_lowered,
    lower_expr,
    lower_rows,
    strip_expr,
)
from assay.thresholds import THRESHOLDS

_BLANKS = list(WHITESPACE)
_GROWS = 5
"""Texts that are equal in lower case differ in size by less than this factor: 2 bytes become up to 3, and 3 at least 1."""
_SIGMA = "Σ"
_ESCAPED = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}
"""What ``quoted`` shows of the commonest characters that are not shown unchanged."""
_NOT_PLAIN = r"[^ !#-~\n\r\t]"
"""A character that it would show neither so nor unchanged, between double quotes."""


def equal_expr(texts: pl.Expr, golds: pl.Expr, *, lowered: bool) -> pl.Expr:
    """Return whether each text equals its gold, both stripped, and in lower case if ``lowered``; null where either is."""
    run = partial(_equal_batch, folds=lowered)
    return pl.map_batches([texts, strip_expr(golds)], run, pl.Boolean, is_elementwise=True)


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
    for_both = (strip_expr,) * stripped + (lower_expr,) * lowered
    for change in for_both:
        texts, golds = change(texts), change(golds)
    return texts.str.ends_with(golds) if end else texts.str.starts_with(golds)


def _equal_batch(columns: Sequence[pl.Series], *, folds: bool) -> pl.Series:
    """Compare outputs with stripped golds. Stripping copies a text, so strip only outputs that could then be equal."""
    output, gold = pl.col("output"), pl.col("gold")
    size, gold_size, grows = output.str.len_bytes(), gold.str.len_bytes(), _GROWS if folds else 1
    is_similar_size = (size <= grows * gold_size) & (gold_size <= grows * size)
    padded = output.str.head(1).is_in(_BLANKS) | output.str.tail(1).is_in(_BLANKS)
    same = columns[0] == columns[1]
    frame = pl.DataFrame({"output": columns[0], "gold": columns[1]}).with_row_index("at").filter(~same)
    likely = is_similar_size | ((size > gold_size) & (size <= gold_size + THRESHOLDS.padding))
    frame = pl.concat([frame.filter(likely), frame.filter(~likely & (size > gold_size)).filter(padded)])
    frame = frame.with_columns_seq(strip_expr(output)).filter(is_similar_size)
    output_text, gold_text = frame["output"], frame["gold"]
    if folds:
        output_text, gold_text = (lower_rows(values, values.is_not_null()) for values in (output_text, gold_text))
    return same.scatter(frame["at"], output_text == gold_text)


def _contains_folded(columns: Sequence[pl.Series]) -> pl.Series:
    output, gold = columns
    # a match as written is a match in lower case, unless a capital sigma becomes another letter at the end of a word
    matches = contains_column(output, gold) & ~gold.str.contains(_SIGMA, literal=True)
    at = (~matches).arg_true()
    return matches.scatter(at, contains_lowered(output.gather(at), gold.gather(at)))


def once_pairs(
    texts: pl.Expr,
    golds: pl.Expr,
    function: Callable[[pl.Series, pl.Series, pl.Series], pl.Series],
    dtype: pl.Struct,
) -> pl.Expr:
    """Run a function on the distinct pairs of each batch; of a pair with a null, every field is null."""

    def run(columns: Sequence[pl.Series]) -> pl.Series:
        (texts, which_text), (golds, which_gold) = map(encoded, columns)
        count = max(len(golds), 1)
        number = which_text.cast(pl.Int64) * count + which_gold.cast(pl.Int64)
        distinct = number.drop_nulls().unique().sort()  # pairs of a text follow each other
        at = distinct.search_sorted(number).set(number.is_null(), None)
        results = function(texts.gather(distinct // count), golds, distinct % count)
        # NOTE: field by field, so that a field that is added is not null where the others are
        return results.struct.unnest().select_seq(pl.all().gather(at)).to_struct(columns[0].name).cast(dtype)

    return pl.map_batches([texts, golds], run, return_dtype=dtype, is_elementwise=True)


def quoted_expr(values: pl.Expr, before: str = "") -> pl.Expr:
    """Return ``before + quoted(value)`` as an elementwise expression over a String column."""
    heads = values.str.head(
        SHOWN + 1
    )  # ``quoted`` cuts the rest, and distinct heads are found faster than distinct texts
    return once(heads, partial(_quoted, before=before), pl.String)


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


def _quoted(head: pl.Series, before: str) -> pl.Series:
    cut = head.zip_with(head.str.len_bytes() <= SHOWN, head.str.head(SHOWN - 1) + "…")
    escaped = pl.lit(cut).str.replace_many(_ESCAPED)
    plain = pl.DataFrame().select_seq(pl.concat_str(pl.lit(f'{before}"'), escaped, pl.lit('"'))).to_series()
    odd = head.str.head(SHOWN).str.contains(_NOT_PLAIN)
    if not odd.any():
        return plain
    frame = pl.DataFrame({"plain": plain, "odd": head.zip_with(odd, pl.Series([None], dtype=pl.String))})
    others = rowwise(pl.col("odd"), lambda value: before + quoted(value), pl.String)
    return frame.select_seq(pl.coalesce(others, "plain")).to_series()
