"""The golds of the rows' functions: lists of them, and the columns that have them."""

import json
import random

import numpy as np
import polars as pl
import pytest
from cases import sized

import assay
from assay.compiling.verifiers import on_row, verifiers_of_run
from assay.functions import registry as fns
from assay.functions.request import golds_of, is_absent
from assay.scoring.reference import score_rows
from assay.testing import assert_fn_conforms, assert_plan_conforms, hostile_texts

CALL = {"tool": "click", "ref": "x"}
LISTS = [
    *(["a", "b"], ["", None], ["A", 1, 1.0, True], [["a", ["x"]], "b"], [None], [], [[], [None]], ["[", "a"]),
    *(["(", "a("], ["\ud800", '"', "]", "null"], [{"tool": "click"}, CALL], [CALL, "no call"]),
    [float("nan"), float("inf"), 10**30, -0.0],
]
TEXTS = ["a", "A", "b", "x", "1", "1.0", "True", "nan", "[", "", "�", json.dumps(CALL), "['a', 'b']", "None"]


@pytest.mark.parametrize("name", ["exact_match", "contains", "regex_match", "tool_calls_match"])
def test_columns_say_what_the_function_says_of_each_gold(name):
    params = [{}, {"ignore_case": True}, {"coordinate_tolerance": "x"}]
    assert_fn_conforms(name, golds=[*LISTS, "a", CALL], params=params, texts=TEXTS, cases=sized(20_000, 300))


@pytest.mark.parametrize(
    ("name", "text", "expected", "reward", "feedback", "error"),
    [
        ("exact_match", "Paris", ["London", "Paris"], 1.0, "", None),
        ("exact_match", "1", [0, 1], 1.0, "", None),
        ("exact_match", "b", [["a"], ["b"]], 1.0, "", None),
        ("exact_match", "Rome", ["London"], 0.0, 'expected "London"', None),
        ("exact_match", "Rome", ["London", None, "Paris"], 0.0, 'expected "London" (the first of 2 golds)', None),
        ("exact_match", "['a', 'b']", ["a", "b"], 0.0, 'expected "a" (the first of 2 golds)', None),
        ("exact_match", "[]", [], None, None, "expected is missing"),
        ("contains", "x", [None, [None]], None, None, "expected is missing"),
        ("contains", "in Paris", ["London", "paris"], 0.0, 'does not contain "London" (the first of 2 golds)', None),
        ("regex_match", "ab", ["x", "b$"], 1.0, "", None),
        ("regex_match", "ab", ["(", "b$"], 1.0, "", None),
        ("regex_match", "ab", ["(", "x"], 0.0, None, None),
        ("regex_match", "ab", ["(", ")"], 0.0, None, "PatternError"),
        ("tool_calls_match", '{"tool": "b"}', [{"tool": "a"}, {"tool": "b"}], 1.0, "", None),
        (
            "tool_calls_match",
            '{"tool": "c"}',
            [{"tool": "a"}, {"tool": "b"}],
            0.0,
            'tool differs: expected "a" (the first of 2 golds)',
            None,
        ),
    ],
)
def test_a_list_is_a_list_of_golds(name, text, expected, reward, feedback, error):
    row = {"completion": text, "fn_name": name, "expected": expected}
    scored = assay.score([row]).row(0, named=True)
    assert scored["reward"] == reward
    assert feedback is None or scored["feedback"] == (feedback and f"{name}: {feedback}")
    assert (error or "") in (scored["error"] or "").replace("re.error", "PatternError").replace(
        " error:", "PatternError"
    )
    assert bool(scored["error"]) == bool(error)
    many = [row, {**row, "expected": "x"}, {**row, "expected": ["x"]}] * 150  # by columns, beside others
    assert assay.score(many)["reward"][0] == reward
    if reward is not None and error is None:
        assert assay.fns.get(name)(text, expected, {}) == reward


def test_called_directly_an_error_counts_where_all_golds_raise():
    assert assay.fns.regex_match("ab", ["(", "b"], {}) == 1.0
    assert assay.fns.regex_match("ab", ["(", "c"], {}) == 0.0
    with pytest.raises(Exception, match="position 0"):
        assay.fns.regex_match("ab", ["(", ")"], {})
    assert assay.fns.exact_match("", [], {}) == 1.0  # as None, which reads as ""
    assert assay.fns.exact_match("b", np.array(["a", "b"]), {}) == 1.0
    assert assay.fns.exact_match("b", ("a", "b"), {}) == 1.0


FRAMES = {
    "list": pl.Series([["a", "b"], ["c"], None, []], dtype=pl.List(pl.String)),
    "array": pl.Series([["a", "b"], ["c", None], None, [None, None]], dtype=pl.Array(pl.String, 2)),
    "numbers": pl.Series([[1, 2], [3], [None], None], dtype=pl.List(pl.Int64)),
    "floats": pl.Series([[1.0, 0.1 + 0.2], [3e300], [None], None], dtype=pl.List(pl.Float64)),
    "nested": pl.Series([[["a"], ["b"]], [["c"]], [[]], None], dtype=pl.List(pl.List(pl.String))),
    "calls": pl.Series([[{"tool": "a"}, {"tool": "b"}], [{"tool": "c"}], [], None]),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_lists_and_arrays_of_a_table_are_lists_of_golds(kind):
    golds = FRAMES[kind]
    texts = [str(golds_of(gold)[-1]) if gold is not None and golds_of(gold) else "x" for gold in golds.to_list()]
    name = "exact_match"
    if kind == "calls":
        name, texts = "tool_calls_match", ['{"tool": "b"}', '{"tool": "c"}', "x", "x"]
    for column in ("expected", "answer", "target", "verifier"):
        frame = pl.DataFrame({"completion": texts, column: golds})
        if column == "verifier":
            frame = frame.with_columns(pl.struct(expected="verifier").alias("verifier"))
        plan = assay.compile(None, frame, verifier_name=name, keep=[])
        scored = plan.score(frame)
        assert scored["reward"].to_list() == [1.0, 1.0, None, None], column
        assert scored["error"].to_list() == [None, None, "expected is missing", "expected is missing"]
        assert scored.to_dicts() == score_rows(frame.to_dicts(), [on_row(name)])


def test_arrays_in_rows_of_python_are_lists_of_golds():
    rows = [{"completion": "b", "expected": np.array(["a", "b"])}, {"completion": "2", "expected": np.int64(2)}]
    assert assay.score(rows, verifier_name="exact_match")["reward"].to_list() == [1.0, 1.0]
    rows = [{"completion": "b", "target": np.array(["a", "b"])}, {"completion": "b", "target": "b"}]
    assert assay.score(rows, verifier_name="exact_match")["reward"].to_list() == [1.0, 1.0]


def test_text_that_looks_like_a_list_is_text():
    rows = [{"completion": "a", "expected": '["a"]'}, {"completion": '["a"]', "expected": '["a"]'}]
    assert assay.score(rows, verifier_name="exact_match")["reward"].to_list() == [0.0, 1.0]
    texts = [{"completion": row["completion"], "verifier": json.dumps({"expected": row["expected"]})} for row in rows]
    assert assay.score(texts, verifier_name="exact_match")["reward"].to_list() == [0.0, 1.0]


def test_your_function_gets_the_list_as_it_is(monkeypatch):
    monkeypatch.setattr(fns, "_REGISTRY", dict(fns._REGISTRY))
    seen = []

    @assay.fns.register_fn("sees")
    def sees(output, expected, params):
        seen.append(expected)
        return 1.0

    golds = [["a", None], [], "x", None, [["b"], 1]]
    assert (
        assay.score([{"completion": "a", "fn_name": "sees", "expected": gold} for gold in golds])["reward"].sum() == 5
    )
    assert sorted(map(str, seen)) == sorted(map(str, golds))


def test_runs_of_many_rows_with_lists_beside_text():
    rng = random.Random(7)
    texts = [*hostile_texts(sized(5_000, 700), 11)]
    rows = [
        {
            "completion": text,
            "fn_name": rng.choice(["exact_match", "contains", "regex_match", "tool_calls_match"]),
            "expected": rng.choice([*LISTS, text, [text, "a"], ["a", text[:3]], None]),
            "params": rng.choice([{}, {"ignore_case": True}]),
        }
        for text in texts
    ]
    assert_plan_conforms([on_row()], rows)


# ── the column of golds ─────────────────────────────────────────────────────────────────────────────────────────────────

NOTE = "the expected values are in `{}`: there is no column `expected`"


@pytest.mark.parametrize(
    ("columns", "reward", "note"),
    [
        ({"expected": "e", "answer": "a", "target": "t"}, "e", None),
        ({"answer": "a", "target": "t"}, "a", "answer"),
        ({"target": "t"}, "t", "target"),
        ({"verifier": {"expected": "v"}, "expected": "e", "answer": "a"}, "v", None),
        ({"fn_name": "exact_match", "answer": "a"}, "a", "answer"),
        ({"expected": None, "answer": "a"}, None, None),
    ],
)
def test_the_gold_is_expected_else_answer_else_target(tmp_path, columns, reward, note):
    rows = [{"completion": text, **columns} for text in "eatv"]
    scored = assay.score(rows, verifier_name="exact_match")
    wanted = [None] * 4 if reward is None else [float(text == reward) for text in "eatv"]
    assert scored["reward"].to_list() == wanted
    by_rows = score_rows(rows, [on_row("exact_match")])
    assert [row["reward"] for row in by_rows] == wanted
    kept = [name for name in columns if name in ("answer", "target")]
    assert [name for name in scored.columns if name in columns] == kept  # they pass through, as before
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    summary = assay.score_file(path, None, verifier_name="exact_match")
    assert [text for text in summary.notes if "expected values" in text] == ([NOTE.format(note)] if note else [])


def test_members_of_rubrics_take_the_same_columns(tmp_path):
    rubric = assay.Rubric([assay.fns.exact_match])
    rows = [{"completion": "t", "target": ["s", "t"]}, {"completion": "x", "target": "t"}]
    assert assay.score(rows, rubric)["reward"].to_list() == [1.0, 0.0]
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    assert NOTE.format("target") in assay.score_file(path, rubric).notes
    assert [row["reward"] for row in score_rows(rows, verifiers_of_run(rubric))] == [1.0, 0.0]
    with pytest.raises(assay.ColumnsError, match=r'Rename one with mapping={"answer": "label"}'):
        assay.score([{"completion": "t", "label": "t"}], rubric)


def test_a_task_table_gives_the_gold_and_no_column_that_nothing_reads():
    rollouts = [{"task_id": "q", "completion": "a"}]
    tasks = [{"task_id": "q", "expected": "a", "answer": "b", "target": "c"}]
    scored = assay.score(rollouts, tasks=tasks, verifier_name="exact_match")
    assert scored["reward"].to_list() == [1.0]
    assert not {"answer", "target"} & {*scored.columns}
    tasks = [{"task_id": "q", "answer": "a", "target": "c"}]
    scored = assay.score(rollouts, tasks=tasks, verifier_name="exact_match")
    assert scored["reward"].to_list() == [1.0]
    assert not {"target"} & {*scored.columns}


def test_a_batch_of_golds_of_other_types_fits_the_plan():
    plan = assay.compile(None, {"completion": pl.String, "target": pl.String}, verifier_name="exact_match")
    batch = pl.DataFrame({"completion": ["1", "2"], "target": [1, 3]})
    assert plan.score(batch)["reward"].to_list() == [1.0, 0.0]


def test_nothing_to_compare_with():
    assert [is_absent(gold) for gold in (None, [], [None], [[], [None]], "", 0, [0], [""])] == [True] * 4 + [False] * 4
