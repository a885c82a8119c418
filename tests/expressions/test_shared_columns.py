"""Columns of lists, and the best of each run of rows."""

import polars as pl
import pytest

from assay.expressions.pairs import listed_where, quoted_lists_expr
from assay.expressions.shared_columns import first_of_each, in_lists


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
