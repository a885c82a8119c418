"""How rollouts ended, and what explains their rewards: the row functions, and the expressions beside them."""

import datetime as dt
from decimal import Decimal

import polars as pl
import pytest
from cases import each

import assay
from assay.aggregating.outcomes import (
    OUTCOMES,
    SIGNS,
    cut_off_expr,
    cut_off_sql,
    finds_nothing,
    finds_nothing_expr,
    is_cut_off,
    outcome_of_row,
    outcome_of_row_expr,
)
from assay.names import HIDDEN
from assay.scoring.reference import score_rows

REASONS = [
    "stop",
    "length",
    " Length\n",
    "LENGTH\x1c",
    "\u2003max_tokens\u3000",
    "max_to\u212aens",
    "lengths",
    "",
    "true",
    "1",
]
CONDITIONS = ["max_turns", "Max_turns", "max_turns ", "compaction_failed", "agent_completed", "length"]
TYPES = {
    "texts": pl.Series(["true", "1", "True", " true", "1.0", "false", "", "length", "max_turns", None]),
    "reasons": pl.Series([*REASONS, None]),
    "conditions": pl.Series([*CONDITIONS, None]),
    "categories": pl.Series([*REASONS, None], dtype=pl.Categorical),
    "enum": pl.Series([*CONDITIONS, None], dtype=pl.Enum(CONDITIONS)),
    "booleans": pl.Series([True, False, None]),
    "small": pl.Series([1, 0, -1, None], dtype=pl.Int8),
    "unsigned": pl.Series([1, 0, 2**64 - 1, None], dtype=pl.UInt64),
    "floats": pl.Series([1.0, -0.0, 0.5, float("nan"), float("inf"), None]),
    "decimals": pl.Series([Decimal("1.00"), Decimal("1.01"), None]),
    "bytes": pl.Series([b"length", b"true", b"\xff", b"max_turns", None]),
    "dates": pl.Series([dt.date(1970, 1, 2), None]),
    "lists": pl.Series([["length"], [], None], dtype=pl.List(pl.String)),
    "structs": pl.Series([{"a": True}, None], dtype=pl.Struct({"a": pl.Boolean})),
    "nulls": pl.Series([None, None], dtype=pl.Null),
}


def ended(frame):
    return frame.select(cut_off_expr(frame.schema).alias("cut")).to_series().to_list()


@each(
    ("columns", "expected"),
    [
        ({"finish_reason": ["stop", " Length\n", "max_tokens", None, ""]}, [False, True, True, None, False]),
        ({"stop_reason": ["end_turn", "model_context_window_exceeded"]}, [False, True]),
        ({"stop_condition": ["max_turns", "done", "compaction_failed", " max_turns"]}, [True, False, True, False]),
        ({"truncated": [True, False, None]}, [True, False, None]),
        ({"is_truncated": [1, 0, 2]}, [True, False, False]),
        ({"is_truncated": ["true", "1", "yes", "True"]}, [True, True, False, False]),
        ({"truncated": [None, 0], "finish_reason": ["length", None]}, [True, False]),
        ({"truncated": [1, 0], "finish_reason": ["stop", "stop"]}, [True, False]),
        ({"finish_reason": [["length"], None]}, [False, None]),
        ({HIDDEN + "finish_reason": ["length", "stop", None], "finish_reason": ["stop"] * 3}, [True, False, None]),
    ],
)
def test_columns_that_say_how_a_rollout_ended(columns, expected):
    frame = pl.DataFrame(columns)
    assert ended(frame) == expected == [is_cut_off(row) for row in frame.to_dicts()]


def test_without_such_columns_nothing_is_known():
    assert cut_off_expr(pl.Schema({"other": pl.Boolean, "cut_off": pl.Boolean})) is None
    assert is_cut_off({"cut_off": True}) is None


@each("kind", TYPES)
@each("sign", SIGNS)
def test_columns_of_any_type_say_what_their_rows_say(sign, kind):
    frame = TYPES[kind].to_frame(sign)
    expected = [is_cut_off(row) for row in frame.to_dicts()]
    assert ended(frame) == expected
    assert [ended(frame[at : at + 1])[0] for at in range(frame.height)] == expected
    # the condition in words of SQL, where it has any, holds for the same rows; but for blanks that only Python strips
    if sql := cut_off_sql(frame.schema):
        kept = [row[sign] for row in frame.filter(pl.sql_expr(sql)).to_dicts()]
        assert kept == [v for v, cut in zip(frame[sign].to_list(), expected, strict=True) if cut and v != "LENGTH\x1c"]


SPEC = {"id": "v", "checks": [{"id": "box", "type": "equals", "value": "4", "on": ["boxed"]}]}
ENDS = [True, "true", 1, 1.0, "1", "1.0", 0.5, None, " LENGTH\t", "length", 5, ["length"], {"a": 1}, b"length", False]


def test_each_row_ends_as_it_does_alone_whatever_the_others_have(tmp_path):
    rows = [{"completion": "4", "is_truncated": one, "finish_reason": other} for one in ENDS for other in ENDS[::-1]]
    verifiers = [assay.load_verifier(SPEC)]
    by_row = [row["cut_off"] for row in score_rows(rows, verifiers, outcome=True)]
    assert by_row == [is_cut_off(row) for row in rows]
    assert assay.score(rows, SPEC, outcome=True)["cut_off"].to_list() == by_row
    plan = assay.compile(SPEC, outcome=True)
    assert plan.score_rows(rows)["cut_off"].to_list() == by_row
    assert [plan.score_rows([row])["cut_off"][0] for row in rows] == by_row
    batcher = assay.Batcher(plan)
    assert [batcher.score_sync(row)["cut_off"] for row in rows[::7]] == by_row[::7]


FEEDBACKS = [
    *(None, "", "a: found nothing: boxed", "a: wrong\nb: c: found nothing: json", "a: the text says: found nothing: x"),
    *("found nothing: boxed", "a: b: found nothing: x", "a: found nothing", "b: c: wrong\n", "\na: found nothing: \n"),
    *("c: found nothing: x", "b: found nothing: x", "a: found nothing: x: y", " a: found nothing: x"),
    *("a: wrong\r\na: found nothing: x", "a: wrong\ra: found nothing: x"),
]


@each(
    ("labels", "expected"),
    [
        ([], []),
        (["a: "], [2, 9, 12, 14]),
        (["a: ", "b: c: ", "b: "], [2, 3, 9, 11, 12, 14]),
        (["a: ", "a: b: "], [2, 6, 9, 12, 14]),
        # what a longer label begins with is no reason of a shorter one
        (["a: ", "a: found nothing: x: "], [2, 9, 14]),
        (["a: ", "b\na: "], [2, 9, 12, 14]),
    ],
)
def test_a_line_says_behind_its_label_that_nothing_is_found(labels, expected):
    assert [at for at, text in enumerate(FEEDBACKS) if text and finds_nothing(text, labels)] == expected
    frame = pl.DataFrame({"feedback": FEEDBACKS}, schema={"feedback": pl.String})
    found = frame.with_row_index("at").filter(finds_nothing_expr(pl.col("feedback"), labels))
    assert found["at"].to_list() == expected


def test_the_first_rule_that_holds_is_the_outcome():
    rows = [
        {"reward": reward, "passed": passed, "error": error, "cut_off": cut, "feedback": feedback}
        for reward, passed in ((None, None), (1.0, True), (0.5, False), (0.0, None))
        for error in (None, "", "a: TimeoutError")
        for cut in (True, False, None)
        for feedback in ("a: found nothing: boxed", "a: wrong", "", None)
    ]
    frame = pl.DataFrame(rows, infer_schema_length=None)
    columns = {name: pl.col(name) for name in frame.columns}
    by_row = [outcome_of_row(row, ["a: "]) for row in rows]
    assert frame.select(outcome_of_row_expr(columns, ["a: "])).to_series().to_list() == by_row
    assert {*by_row} == {*OUTCOMES}
    states = {"unscored": {None}, "pass": {True}}
    assert all((row["passed"] if row["reward"] is not None else None) in states.get(word, {False, None}) for row, word in zip(rows, by_row, strict=True))  # fmt: skip


def test_what_steps_find_nothing_of_decides_on_all_entries(tmp_path):
    spec = {
        "checks": [
            {"id": "box", "type": "equals", "value": "4", "on": ["boxed"]},
            {"id": "n: found nothing", "type": "number", "value": 4, "weight": 2},
            {"id": "paid", "type": "contains", "value": "x", "on": ["boxed"], "notFound": "pass"},
            {"id": "json", "type": "json_valid"},
        ]
    }
    texts = [r"\boxed{4} x", r"\boxed{5}", "no number", "4", None, ""]
    rows = [{"completion": text, "finish_reason": end} for text in texts for end in ("stop", "length", None)]
    verifiers = [assay.load_verifier(spec)]
    expected = [(row["cut_off"], row["outcome"]) for row in score_rows(rows, verifiers, outcome=True)]
    frame = assay.score(rows, spec, outcome=True)
    assert frame.select("cut_off", "outcome").rows() == expected
    assert {*frame["outcome"]} >= {"fail", "not_found", "truncated", "unscored"}
    pl.DataFrame(rows).write_parquet(tmp_path / "in.parquet")
    for out, read in (("out.parquet", "out.parquet"), ("out/", "out/part-*.parquet")):
        assay.score_file(tmp_path / "in.parquet", spec, f"{tmp_path}/{out}", outcome=True, isolate=False)
        assert pl.read_parquet(f"{tmp_path}/{read}").equals(frame)
    batch = pl.DataFrame(rows).to_arrow().to_batches()[0]
    assert assay.score_batch(batch, spec, outcome=True).column("outcome").to_pylist() == [word for _, word in expected]
    with pytest.raises(assay.UsageError, match="outcome"):
        assay.score_batch(batch, assay.compile(spec, pl.DataFrame(rows), outcome=True), outcome=True)
