"""Which rollouts ended at a limit."""

import polars as pl
import pytest

from assay.scoring.outcomes import cut_off


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"finish_reason": ["stop", " Length\n", "max_tokens", None, ""]}, [False, True, True, None, False]),
        ({"stop_reason": ["end_turn", "model_context_window_exceeded"]}, [False, True]),
        ({"stop_condition": ["max_turns", "done", "compaction_failed"]}, [True, False, True]),
        ({"truncated": [True, False, None]}, [True, False, None]),
        ({"is_truncated": [1, 0, 2]}, [True, False, False]),
        ({"is_truncated": ["true", "1", "yes"]}, [True, True, False]),
        ({"truncated": [None, 0], "finish_reason": ["length", None]}, [True, False]),
        ({"truncated": [1, 0], "finish_reason": ["stop", "stop"]}, [True, False]),
        ({"cut_off": [True, None], "finish_reason": ["stop", "length"]}, [True, None]),
        ({"cut_off": ["yes", "no"], "finish_reason": ["stop", "length"]}, [False, True]),
    ],
)
def test_columns_that_say_so(columns, expected):
    frame = pl.DataFrame(columns)
    assert frame.select(cut_off(frame.schema).alias("cut")).to_series().to_list() == expected


def test_without_such_columns_nothing_is_known():
    assert cut_off(pl.Schema({"finish_reason": pl.List(pl.String), "other": pl.Boolean})) is None


def test_categories_are_texts():
    frame = pl.DataFrame({"finish_reason": pl.Series(["stop", "length"], dtype=pl.Categorical)})
    assert frame.select(cut_off(frame.schema).alias("cut")).to_series().to_list() == [False, True]
