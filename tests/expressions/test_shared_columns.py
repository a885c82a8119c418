"""Columns of lists, and the best of each run of rows."""

import polars as pl
import pytest

from assay.expressions.pairs import listed_where, once_pairs, quoted_lists_expr
from assay.expressions.shared_columns import distinct_rows, encoded, first_of_each, in_lists


def test_values_go_into_lists_in_order():
    values = pl.concat([pl.Series(["a", None]), pl.Series(["c"])], rechunk=False)
    assert in_lists(values, pl.Series([1, 0, 2])).to_list() == [["a"], [], [None, "c"]]
    assert in_lists(pl.Series([], dtype=pl.String), pl.Series([], dtype=pl.Int64)).to_list() == []


@pytest.mark.parametrize(("lowest", "places"), [(False, [0, 3, 4]), (True, [1, 2, 4])])
def test_the_first_of_equals_is_the_best(lowest, places):
    scores = pl.Series([1.0, 0.5, 0.0, 0.5, 0.25, 0.25])
    assert first_of_each(scores, pl.Series([2, 2, 2], dtype=pl.UInt32), lowest=lowest).to_list() == places


def test_texts_of_lists_are_chosen_and_quoted():
    frame = pl.DataFrame({"texts": [["a", 'b"'], [], None, ["c"]], "found": [[True, False], [], [True], [True]]})
    missing = listed_where(pl.col("texts"), pl.col("found"), holds=False)
    assert frame.select(missing).to_series().to_list() == [['b"'], None, None, None]
    assert frame.select(quoted_lists_expr(pl.col("texts"))).to_series().to_list() == ['"a", \'b"\'', "", None, '"c"']


@pytest.mark.parametrize(
    "texts", [[], [None], ["a"], ["b", None, "a", "b", None, ""], ["a", "b"], ["b" * 99, "b" * 99]]
)
def test_texts_are_encoded_in_the_order_in_which_they_come(texts):
    column = pl.concat([pl.Series(["", None], dtype=pl.String), pl.Series(texts, dtype=pl.String)], rechunk=False)
    distinct, which = encoded(column)
    assert distinct.to_list() == [text for text in dict.fromkeys(column) if text is not None]
    assert distinct.gather(which).to_list() == column.to_list()


def test_pairs_are_compared_once_and_those_of_a_text_follow_each_other():
    asked = []

    def compared(texts, golds):
        asked.extend(zip(texts, golds, strict=True))
        return pl.Series([{"same": text == gold} for text, gold in zip(texts, golds, strict=True)])

    frame = pl.DataFrame({"text": ["a", "b", None, "a", "a", "b"], "gold": ["a", "a", "a", "b", "a", None]})
    pairs = once_pairs(pl.col("text"), pl.col("gold"), compared, pl.Struct({"same": pl.Boolean}))
    assert frame.select(pairs).to_series().struct.field("same").to_list() == [True, False, None, False, True, None]
    assert asked == [("a", "a"), ("a", "b"), ("b", "a")]


@pytest.mark.parametrize("other", [pl.String, pl.Int64])
def test_distinct_rows_are_in_order_of_the_first(other):
    given = [("b", "1"), (None, "1"), ("b", None), (None, None), ("b", "1"), ("null", "1"), (None, None), ("", "1")]
    rows = pl.DataFrame(given, schema=["^a$", "*"], orient="row")
    rows = pl.DataFrame([rows["^a$"], rows["*"].cast(other)])
    distinct, which = distinct_rows(rows.to_struct("rows"))
    assert which.to_list() == [0, 1, 2, 3, 0, 4, 3, 5]
    assert distinct.gather(which).to_list() == rows.to_dicts()
