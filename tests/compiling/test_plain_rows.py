"""Rows of plain Python values, as trainers have them: every type is scored or unscored, and none is an error."""

import pickle
import random
from datetime import date
from decimal import Decimal

import numpy as np
import polars as pl
import pytest
from cases import sized
from polars.testing import assert_frame_equal

import assay
from assay.errors import InputError

GOLD = {"id": "v", "checks": [{"type": "contains", "value": {"column": "answer"}}, {"type": "max_length", "value": 30}]}
FIXED = {"id": "v", "checks": [{"type": "contains", "value": "4"}]}


def chat(*texts, role="assistant"):
    return [{"role": "user", "content": "2 + 2?"}, *({"role": role, "content": text} for text in texts)]


@pytest.mark.parametrize(
    "rows",
    [
        [{"completion": "4", "answer": "4"}, {"completion": "5", "answer": "4"}],
        [{"completion": "4", "answer": 4}, {"completion": "4.0", "answer": 4}],
        [{"completion": "4", "answer": 4}, {"completion": "4.0", "answer": 4.0}, {"completion": "4", "answer": "4"}],
        [{"completion": "4", "answer": ["3", "4"]}, {"completion": "4", "answer": ["5"]}],
        [{"completion": "4", "answer": [3, 4]}, {"completion": "4", "answer": None}],
        [{"completion": "4", "answer": {"a": 4}}, {"completion": "true", "answer": True}],
        [{"completion": chat("4"), "answer": "4"}, {"completion": chat("4", role="tool"), "answer": "4"}],
        [
            {"completion": chat("4"), "answer": "4"},
            {"completion": "5", "answer": "4"},
            {"completion": None, "answer": 4},
        ],
        [{"completion": chat([{"type": "text", "text": "4"}]), "answer": "4"}, {"completion": [], "answer": "4"}],
    ],
)
def test_the_results_are_those_of_score(rows):
    scored = assay.compile(GOLD, keep=()).score_rows(rows)
    assert_frame_equal(scored, assay.score(rows, GOLD, keep=()))
    by_column = {name: [row.get(name) for row in rows] for name in rows[0]}
    assert_frame_equal(scored, assay.compile(GOLD, keep=()).score_rows(by_column))


class Tensor:
    """What adapters see of a tensor of another library."""

    def __init__(self, values):
        self.values = values

    def tolist(self):
        return self.values


@pytest.mark.parametrize(
    ("gold", "reward"),
    [
        (np.array(["3", "4"]), 1.0),
        (np.int64(4), 1.0),
        (np.str_("4"), 1.0),
        (Tensor([3, 4]), 1.0),
        (Tensor(4), 1.0),
        ([np.array(4), Tensor([5])], 1.0),
        (pl.Series([3, 4]), 1.0),
        (np.array([5]), 0.5),
        (Decimal(4), 1.0),
        (date(2026, 1, 1), 0.5),
    ],
)
def test_golds_may_be_arrays_and_scalars_of_other_libraries(gold, reward):
    plan = assay.compile(GOLD)
    assert plan.score_rows([{"completion": "it is 4", "answer": gold}])["reward"].to_list() == [reward]


@pytest.mark.parametrize("columns", [np.array([4, 5]), Tensor([4, 5]), pl.Series([4, 5]), (4, 5)])
def test_a_column_may_be_an_array(columns):
    scored = assay.compile(GOLD).score_rows({"completion": ["4", "4"], "answer": columns})
    assert scored["reward"].to_list() == [1.0, 0.5]


def test_missing_columns_are_null_and_others_are_not_read():
    plan = assay.compile(GOLD, strict=False)
    scored = plan.score_rows({"completion": ["4"], "trainer_state": [object()]})
    assert scored["reward"].to_list() == [None]
    assert scored["error"].to_list() == ["gold is missing: answer"]
    assert plan.score_rows({"prompts": ["2 + 2?", "3"]})["error"].to_list() == ["the completion is null"] * 2


@pytest.mark.parametrize(
    ("completion", "error"),
    [
        (4, "a completion is a string or a list of chat messages, not int."),
        ({"content": "4"}, "a completion is a string or a list of chat messages, not dict."),
        (["4"], "a chat message is str, not a mapping with `role` and `content`."),
    ],
)
def test_a_value_that_is_no_completion_leaves_its_row_unscored(completion, error):
    scored = assay.compile(FIXED).score_rows([{"completion": completion}, {"completion": "4"}])
    assert scored["reward"].to_list() == [None, 1.0]
    assert scored["error"].to_list() == [error, None]


def test_a_message_without_content_is_an_empty_text_in_any_company():
    alone, beside = [{"role": "assistant"}], chat("4")
    plan = assay.compile(FIXED)
    assert plan.score_rows([{"completion": alone}])["reward"].to_list() == [0.0]
    assert plan.score_rows([{"completion": alone}, {"completion": beside}])["reward"].to_list() == [0.0, 1.0]


class Fewer(assay.Check):
    """Fewer characters than the row's limit: its expression takes numbers only."""

    type = "fewer_than_limit"
    reads = ("limit",)

    def row(self, row):
        return len(row["completion"]) < row["limit"]

    def expr(self):
        return assay.text().str.len_chars() < pl.col("limit") + 0


def test_a_value_that_no_type_of_the_plan_holds_leaves_its_row_unscored():
    spec = {"id": "v", "checks": [{"type": "fewer_than_limit"}]}
    plan = assay.compile(spec, {"completion": pl.String, "limit": pl.Int64}, checks=[Fewer])
    assert plan.score_rows({"completion": ["4", "4"], "limit": [2, 1]})["reward"].to_list() == [1.0, 0.0]
    scored = plan.score_rows({"completion": ["4", "4", chat("4")], "limit": [2, "two", 1]})
    assert scored["reward"].to_list() == [1.0, None, 0.0]
    assert scored["error"].to_list() == [None, "`limit` is str; the plan reads Int64", None]


class Unreadable:
    """A value without a text."""

    def __repr__(self):
        raise RuntimeError("no text")


class Unlistable(Unreadable):
    """A value of a library whose methods fail."""

    @property
    def tolist(self):
        raise RuntimeError("no list")


CYCLE = {}
CYCLE["self"] = CYCLE


@pytest.mark.parametrize("value", [Unreadable(), {"a": Unreadable()}, [Unlistable()], CYCLE])
def test_a_value_that_cannot_be_read_leaves_only_its_own_row_unscored(value):
    plan = assay.compile(GOLD)
    rows = [{"completion": "4", "answer": ["4", None]}, {"completion": "4", "answer": value}, {"completion": "4"}]
    scored = plan.score_rows(rows)
    assert scored["reward"].to_list() == [1.0, None, None]
    assert scored["error"][1].startswith("`answer` ")
    assert scored["error"][2] == "gold is missing: answer"


def test_rows_without_any_value_are_rows():
    assert assay.compile(GOLD, strict=False).score_rows([{}, {}])["error"].to_list() == ["the completion is null"] * 2


def test_a_value_that_the_plan_does_not_hold_leaves_the_golds_of_others_as_they_are():
    spec = {"id": "v", "checks": [*GOLD["checks"], {"type": "fewer_than_limit"}]}
    types = {"completion": pl.String, "answer": pl.String, "limit": pl.Int64}
    plan = assay.compile(spec, types, checks=[Fewer])
    rows = [{"completion": "4", "answer": ["3", "4"], "limit": 2}, {"completion": "4", "answer": 4, "limit": "two"}]
    assert plan.score_rows(rows)["reward"].to_list() == [1.0, None]
    assert plan.score_rows(rows[:1])["reward"].to_list() == [1.0]


def test_row_functions_read_the_gold_that_the_rows_have():
    plan = assay.compile(None, {"completion": pl.String, "fn_name": pl.String}, verifier_name="exact_match")
    rows = [{"completion": "4", "answer": 4}, {"completion": "4", "answer": np.array([3, 4])}]
    assert plan.score_rows(rows)["reward"].to_list() == [1.0, 1.0]


def test_shapes_that_are_no_rows_are_refused_in_words():
    plan = assay.compile(GOLD)
    for rows in (["4"], {"completion": "4"}, {"completion": ["4"], "answer": ["4", "5"]}):
        with pytest.raises(InputError):
            plan.score_rows(rows)
    assert plan.score_rows([]).height == plan.score_rows({}).height == 0


def _value(draw, depth=0):
    values = [
        None,
        4,
        4.0,
        True,
        "4",
        float("nan"),
        2**70,
        b"4",
        "\ud800",
        {"a": 4},
        np.int64(4),
        object(),
        {3, 4},
        date(2026, 1, 1),
    ]
    if depth < 3 and draw.random() < 0.4:
        values = [
            [_value(draw, depth + 1) for _ in range(draw.randrange(4))],
            {draw.choice(["role", "content", 4, None]): _value(draw, depth + 1)},
        ]
    return draw.choice(values)


CHECKS = [
    {"type": "contains", "value": {"column": "answer"}},
    {"type": "task_expectations"},
    {"type": "expected_output_schema"},
    {"type": "equals", "value": {"column": "answer"}},
    {"type": "contains", "value": {"template": "{prompt}"}},
    {"type": "regex", "pattern": {"column": "answer"}},
    {"type": "json_match", "value": {"column": "answer"}},
]


def random_row(draw):
    row = {name: _value(draw) for name in ("answer", "metadata", "expected_output_schema")}
    completion = draw.choice(["4", "[4]", chat("4"), _value(draw)])
    return row | {"prompt": draw.choice(["4", None]), "completion": completion}


@pytest.mark.parametrize("seed", range(sized(8, 1)))
def test_no_value_is_an_error_and_company_changes_nothing(seed):
    draw = random.Random(seed)
    plan = assay.compile({"id": "v", "checks": CHECKS}, keep=())
    rows = [random_row(draw) for _ in range(12)]
    together = plan.score_rows(rows)
    assert_frame_equal(together, pl.concat([plan.score_rows([row]) for row in rows]))
    assert together["reward"].is_nan().sum() == 0


def test_a_plan_travels_with_its_schemas():
    plan = assay.compile(GOLD)
    assert plan.score_rows([{"completion": chat("4"), "answer": [4]}])["reward"].to_list() == [1.0]
    assert pickle.loads(pickle.dumps(plan)) == plan  # noqa: S301  (made here)
