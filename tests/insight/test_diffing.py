"""Two rewards of the same rollouts: numbers against loops over the rows, tests against worked cases, refusals."""

import json
import math
import statistics

import polars as pl
import pytest
from insight_cases import golden, golden_rows

import assay
from assay import InputError, SpecError, UsageError
from assay.cli.documents import diff_document
from assay.insight.diffing import rescored
from assay.insight.pairing import paired
from assay.insight.results import open_result

SPEC = {
    "id": "tone",
    "passThreshold": 0.7,
    "checks": [
        {"id": "polite", "type": "contains", "value": "please", "weight": 3},
        {"id": "short", "type": "max_length", "value": 12},
    ],
}
STRICT = {**SPEC, "checks": [SPEC["checks"][0], {"id": "short", "type": "max_length", "value": 7, "required": True}]}
ROWS = [
    {"task_id": f"t{at // 2}", "model": "elm" if at % 2 else "ash", "completion": text}
    for at, text in enumerate(["please", "please do it", "no", None, "yes, please", "what", "please?", "thank you, no"])
]


def frames(before, after, **columns):
    """Two results of one check, with these rewards: a row passes at 1.0."""
    made = []
    for rewards in (before, after):
        reward = pl.Series(rewards, dtype=pl.Float64)
        frame = pl.DataFrame({"row": range(len(rewards)), **columns, "reward": reward, "check/v/a": reward})
        made.append(frame.with_columns(passed=pl.col("reward") == 1.0))
    return made


def golden_sides():
    """The 48 rows, and those with other weights, as results."""
    scores = {name: f"check/v/{name}" for name in ("facts", "short", "tone")}
    case, rows = golden("whatif.rewards"), golden_rows().rename(scores)
    return rows, rows.with_columns(reward=pl.Series(case.expect["reward"]), passed=pl.Series(case.expect["passed"]))


@pytest.mark.parametrize("at", range(8))
def test_flips_without_repeated_tasks_are_tested_by_mcnemar(at):
    case = golden("diff.mcnemar")
    (lost, gained), p = case.input["pairs"][at], case.expect["p"][at]
    before = [1.0] * lost + [0.0] * gained + [1.0]
    after = [0.0] * lost + [1.0] * gained + [1.0]
    for columns in ({}, {"task_id": range(len(before))}):
        test = assay.diff(*frames(before, after, **columns), examples=0).flip_test
        assert (test["test"], test["pass_to_fail"], test["fail_to_pass"]) == ("mcnemar", lost, gained)
        assert test["p"] == pytest.approx(p, rel=case.tolerance)


def test_numbers_of_the_worked_rows_are_those_of_a_loop():
    before, after = golden_sides()
    found = assay.diff(before, after)
    old, new = before["reward"].to_list(), after["reward"].to_list()
    deltas = [two - one for one, two in zip(old, new, strict=True) if one is not None]
    flips = sum(one != two for one, two in zip(before["passed"], after["passed"], strict=True))
    assert (found.rows, found.both_scored, found.flips) == (48, len(deltas), flips)
    assert found.matrix["unscored->unscored"] == 1
    assert sum(found.matrix.values()) == 48
    assert found.changed == sum(delta != 0 for delta in deltas)
    assert found.delta["mean"] == pytest.approx(statistics.mean(deltas), abs=1e-15)
    assert found.delta["std"] == pytest.approx(statistics.stdev(deltas))
    assert found.delta["mean_abs"] == pytest.approx(statistics.mean(map(abs, deltas)))
    assert [found.delta[name] for name in ("up", "down", "equal")] == [26, 11, 10]
    assert sum(found.delta["histogram"]["bins"]) == 37
    assert found.delta["quantiles"]["50"] == pytest.approx(statistics.median(deltas))
    assert found.delta["quantiles"]["0"] == min(deltas)
    assert found.delta["quantiles"]["100"] == max(deltas)
    assert found.signatures == [{"signature": ["weights or threshold only"], "rows": flips}]


def test_no_differences_have_a_histogram_without_minus_zero():
    found = assay.diff(*frames([1, 0], [1, 0], task_id=["a", "b"]))
    assert json.dumps(found.as_json()["delta"]["histogram"]) == json.dumps({"low": 0.0, "high": 0.0, "bins": [0] * 40})


def test_rewards_whose_difference_overflows_have_none():
    most = 1.7e308
    found = assay.diff(*frames([most, 1, -most], [-most, 1, most], task_id=["a", "b", "c"]))
    assert (found.both_scored, found.changed) == (3, 2)
    assert (found.delta["mean"], found.delta["equal"], found.delta["up"]) == (0.0, 1, 0)
    assert found.as_json()["reward_test"]["tasks"] == 1
    found = assay.diff(*frames([most, -most, 0], [0, 0, 0], task_id=["a", "b", "c"])).as_json()["delta"]
    assert (found["mean"], found["std"], found["mean_abs"]) == (0.0, None, None)
    assert found["histogram"]["bins"] == [1, *[0] * 38, 1]


@pytest.mark.parametrize("most", [5e-324, 1e-310, 2.0**-1000, 1e308])
def test_the_bins_of_the_smallest_and_the_largest_differences_are_those_of_others(most):
    histogram = assay.diff(*frames([0.0, 0.0, most], [0.0, most, 0.0])).delta["histogram"]
    assert (histogram["high"], histogram["bins"]) == (most, [1] + [0] * 38 + [1])


def test_mcnemar_leaves_out_rows_without_a_task():
    test = assay.diff(*frames([1, 1, 1, 0], [0, 0, 0, 1], task_id=["a", "b", None, "c"])).flip_test
    assert (test["test"], test["pass_to_fail"], test["fail_to_pass"]) == ("mcnemar", 2, 1)


def test_results_without_hashes_and_columns_in_common_are_refused(tmp_path):
    spec = {"id": "v", "checks": [{"type": "contains", "value": "a"}]}
    pl.DataFrame({"completion": ["a", "b"]}).write_parquet(tmp_path / "in.parquet")
    for name in ("before", "after"):
        assay.score_file(tmp_path / "in.parquet", spec, tmp_path / f"{name}.parquet")
    with pytest.raises(InputError, match="nothing says that they are the same"):
        assay.diff(tmp_path / "before.parquet", tmp_path / "after.parquet")


def test_rows_of_one_task_are_tested_together():
    before, after = golden_sides()
    rows = zip(before["task_id"], before["reward"], after["reward"], before["passed"], after["passed"], strict=True)
    tasks = {}
    for task, *values in rows:
        tasks.setdefault(task, []).append(values)
    gains = [sum(bool(new) - bool(old) for _, _, old, new in values) for values in tasks.values()]
    means = [statistics.mean(two - one for one, two, _, _ in values if one is not None) for values in tasks.values()]
    found = assay.diff(before, after)
    z = sum(gains) / math.sqrt(sum(gain**2 for gain in gains))
    assert found.flip_test["z"] == pytest.approx(z)
    assert found.flip_test["p"] == pytest.approx(math.erfc(abs(z) / math.sqrt(2)))
    se = statistics.stdev(means) / math.sqrt(len(means))
    assert found.reward_test["mean"] == pytest.approx(statistics.mean(means))
    assert found.reward_test["t"] == pytest.approx(statistics.mean(means) / se)
    half = 2.5705818366147395 * se  # t quantile of 5 degrees of freedom
    assert found.reward_test["ci95"] == pytest.approx([statistics.mean(means) - half, statistics.mean(means) + half])
    assert found.reward_test["few"] is True


def test_three_losses_and_a_gain_in_three_tasks():
    # by hand: d = -1, -1, 0; z = -2/√2
    sides = frames([1, 1, 1, 0, 1, 0], [0, 0, 0, 1, 1, 0], task_id=["a", "b", "c", "c", "d", "d"])
    test = assay.diff(*sides).flip_test
    assert test["z"] == pytest.approx(-1.4142, abs=5e-5)
    assert test["p"] == pytest.approx(0.1573, abs=5e-5)


def test_checks_are_counted_with_their_direction():
    found = assay.diff(*frames([1, 1, 0, None, 0.5, None], [1, 0, 1, 0.5, None, None]))
    (check,) = found.checks
    counts = (check["rows"], check["changed"], check["pass_to_fail"], check["fail_to_pass"], check["mean_delta"])
    assert counts == (3, 4, 1, 1, 0.0)
    assert (found.flips, found.regressions, found.changed) == (4, 1, 4)
    assert [entry["signature"] for entry in found.signatures] == [
        *(["-a"], ["+a"], ["became scored"], ["became unscored"]),
    ]


def test_examples_go_round_the_signatures_and_begin_with_the_largest_change():
    before = pl.DataFrame({"row": range(6), "reward": [1.0] * 6, "passed": [True] * 6})
    lost = {"check/v/a": [0.0, 0.0, 0.0, 1.0, 1.0, 1.0], "check/v/b": [1.0, 1.0, 1.0, 0.0, 0.0, 1.0]}
    after = before.with_columns(
        reward=pl.Series([0.5, 0.2, 0.2, 0.9, 0.1, 0.0]),
        passed=False,
        **{name: pl.Series(values) for name, values in lost.items()},
    )
    before = before.with_columns(pl.lit(1.0).alias(name) for name in lost)
    found = assay.diff(before, after, examples=5)
    assert [(entry["signature"], entry["rows"]) for entry in found.signatures] == [
        *((["-a"], 3), (["-b"], 2), (["weights or threshold only"], 1)),
    ]
    assert [example["row"] for example in found.examples] == [1, 4, 5, 2, 3]
    assert assay.diff(before, after, examples=0).examples == []


def test_more_checks_than_fit_a_word():
    names = [f"check/v/c{at}" for at in range(70)]
    before = pl.DataFrame(
        {"row": [0, 1], "reward": [1.0, 1.0], "passed": [True, True]} | {name: [1.0, 1.0] for name in names}
    )
    after = before.with_columns(pl.Series(names[69], [0.0, 1.0]), pl.Series(names[31], [0.0, 1.0]))
    after = after.with_columns(passed=pl.Series([False, True]))
    assert assay.diff(before, after).signatures == [{"signature": ["-c31", "-c69"], "rows": 1}]


def test_values_of_columns_are_told_apart():
    sides = frames([1, 1, 0, 0], [0, 1, 1, 1], model=["ash", "elm", "elm", None], step=[1, 1, 2, 2])
    found = assay.diff(*sides, by=["model", "step"])
    assert [tuple(entry.values()) for entry in found.by] == [
        ("model", "ash", 1, 1, 0, -1.0),
        ("model", None, 1, 0, 1, 1.0),
        ("model", "elm", 2, 0, 1, 0.5),
        ("step", 2, 2, 0, 2, 1.0),
        ("step", 1, 2, 1, 0, -0.5),
    ]
    with pytest.raises(UsageError, match='by="modle": the frame has no such column'):
        assay.diff(*sides, by="modle")


def test_nothing_scored_and_no_rows():
    for rewards in ([None, None], []):
        found = assay.diff(*frames(rewards, rewards, task_id=[str(at) for at, _ in enumerate(rewards)]))
        assert (found.rows, found.both_scored, found.flips, found.changed) == (len(rewards), 0, 0, 0)
        assert found.delta["mean"] is found.reward_test["p"] is None
        assert found.flip_test["p"] == 1.0
        json.dumps(found.as_json(), allow_nan=False)


def test_rewards_without_passed_have_no_flips():
    sides = [frame.drop("passed") for frame in frames([1.0, 0.0], [0.5, 0.0])]
    found = assay.diff(*sides)
    assert (found.flips, found.matrix, found.flip_test, found.changed) == (None, None, None, 1)
    assert "without a column `passed` on both sides there are no flips" in found.notes
    with pytest.raises(UsageError, match="no column `passed`"):
        found.within(max_flips=1)


def test_zero_and_minus_zero_have_not_the_same_bits():
    assert assay.diff(*frames([0.0, 1.0], [-0.0, 1.0])).changed == 1


def test_the_same_bytes_for_the_same_input():
    before, after = golden_sides()
    texts = {json.dumps(assay.diff(before, after, by=["model", "task_id"]).as_json()) for _ in range(3)}
    assert len(texts) == 1
    assert json.loads(texts.pop())["insight"] == 1


def test_no_sum_depends_on_the_order_of_the_rows():
    before, after = golden_sides()
    number = pl.Series("row", range(48))
    found, shuffled = (
        assay.diff(
            *(
                side.insert_column(0, number).sample(fraction=1.0, shuffle=mixed, seed=3)
                for side in (before.clone(), after.clone())
            )
        )
        for mixed in (False, True)
    )
    for name in ("delta", "reward_test", "flip_test", "checks", "by"):
        assert getattr(found, name) == getattr(shuffled, name)


# ── the same rollouts ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_rollouts_that_differ_are_refused():
    before, after = frames([1, 0], [1, 0], task_id=["q-01", "q-03"])
    other = after.with_columns(task_id=pl.Series(["q-01", "q-04"]))
    with pytest.raises(InputError, match="row 1: task_id is q-03 there, q-04 here") as caught:
        assay.diff(before, other)
    assert "--on task_id" in caught.value.hint
    with pytest.raises(InputError, match="the frame has 2 rows, the frame 1"):
        assay.diff(before, after.head(1))
    with pytest.raises(InputError, match="no column of the rollouts in common"):
        assay.diff(before.drop("row", "task_id"), after)
    nested = after.with_columns(task_id=pl.Series([["q-01"], ["q-03"]]))
    with pytest.raises(InputError, match="task_id has type String there"):
        assay.diff(before, nested)
    assert assay.diff(before.with_columns(pl.col("row").cast(pl.UInt8)), after).rows == 2


def test_columns_of_any_type_are_compared():
    values = {
        "list": [[1], None],
        "struct": [{"a": 1}, {"a": None}],
        "null": [None, None],
        "bytes": [b"a", b"\xff"],
        "*": ["star", None],
        "^a.*$": ["x", "y"],
    }
    before, after = frames([1, 0], [0, 0], **values)
    assert assay.diff(before, after).flips == 1
    for name, value in {"list": [[1], []], "struct": [{"a": 1}, {"a": 2}], "*": ["star", "moon"]}.items():
        other = after.with_columns(pl.Series(name, value, dtype=after.schema[name]))
        with pytest.raises(InputError, match="row 1: "):
            assay.diff(before, other)


def test_results_with_equal_hashes_of_their_inputs_are_of_the_same_rollouts(tmp_path):
    before, after = (open_result(frame.drop("row")) for frame in frames([1, 0], [1, 1]))
    seals = [{"inputs": [{"name": "x", "sha256": digest}]} for digest in ("a", "a", "b")]
    sealed = [
        type(before)(**{**vars(side), "provenance": seal})
        for side, seal in zip((before, after, after), seals, strict=True)
    ]
    assert paired(sealed[0], sealed[1]).rows == 2
    with pytest.raises(InputError, match="nothing says that they are the same"):
        paired(sealed[0], sealed[2])


def test_results_are_joined_on_keys():
    before, after = frames([1, 0, 1], [1, 0, 0], id=["a", "b", "c"], completion=["x", "y", "z"])
    turned = after.drop("row").reverse()
    found = assay.diff(before, turned, on="id")
    assert (found.rows, found.flips, found.examples[0]["row"], found.examples[0]["key"]) == (3, 1, 2, {"id": "c"})
    assert (found.examples[0]["after"]["reward"], found.examples[0]["text"]) == (0.0, "z")
    with pytest.raises(InputError, match="1 row without a key"):
        assay.diff(before.with_columns(id=pl.Series(["a", None, "c"])), after, on="id")
    with pytest.raises(InputError, match="id a occurs 2 times"):
        assay.diff(before, after.with_columns(id=pl.Series(["a", "a", "c"])), on="id")
    with pytest.raises(InputError, match="1 row on one side only: 1 only in the frame, 0 only in the frame"):
        assay.diff(before, turned.head(2), on="id")
    found = assay.diff(before, turned.head(2), on="id", allow_missing=1)
    assert (found.rows, found.notes) == (2, (*found.notes[:-1], "1 row on one side only: left out"))
    with pytest.raises(InputError, match="completion is z there, w here"):
        assay.diff(before, turned.with_columns(completion=pl.Series(["w", "y", "x"])), on="id")
    with pytest.raises(UsageError, match='on="di": the frame has no such column'):
        assay.diff(before, after, on="di")
    with pytest.raises(UsageError, match="allow_missing"):
        assay.diff(before, after, allow_missing=1)


# ── one pass, and again ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_one_pass_is_the_diff_of_two_results(tmp_path):
    source = tmp_path / "rows.jsonl"
    source.write_text("".join(f"{json.dumps(row)}\n" for row in ROWS))
    for name, spec in (("before", SPEC), ("after", STRICT)):
        assay.score_file(source, spec, tmp_path / f"{name}.parquet")
    apart = assay.diff(tmp_path / "before.parquet", tmp_path / "after.parquet")
    for rollouts in (source, ROWS, pl.DataFrame(ROWS)):
        found = assay.diff(SPEC, STRICT, rollouts=rollouts)
        assert found.as_json() == apart.as_json()
    assert [(row["row"], row["text"], row["feedback_after"]) for row in apart.examples] == [
        (1, "please do it", "short: has more than 7 characters"),
        (4, "yes, please", "short: has more than 7 characters"),
    ]
    assert apart.signatures == [{"signature": ["-short"], "rows": 2}]


def test_one_pass_of_several_verifiers_and_tasks(tmp_path):
    tasks = [{"task_id": f"t{at}", "answer": "please"} for at in range(4)]
    gold = {"id": "gold", "checks": [{"id": "is", "type": "contains", "value": {"column": "answer"}}]}
    found = assay.diff([SPEC], [SPEC, gold], rollouts=ROWS, tasks=tasks)
    assert (found.rows, found.both_scored) == (8, 7)
    assert found.only_after == ["gold/is"]
    assert [check["check"] for check in found.checks] == ["tone/polite", "tone/short"]
    both = [assay.score(ROWS, spec, tasks=tasks) for spec in ([SPEC], [SPEC, gold])]
    assert found.delta["mean"] == pytest.approx((both[1]["reward"] - both[0]["reward"]).mean())


def test_a_result_is_scored_again(tmp_path):
    source, out = tmp_path / "rows.jsonl", tmp_path / "rewards.parquet"
    source.write_text("".join(f"{json.dumps(row)}\n" for row in ROWS))
    assay.score_file(source, [SPEC, {**STRICT, "id": "strict"}], out)
    found = rescored(out)
    assert (found.rows, found.changed, found.flips) == (8, 0, 0)
    altered = pl.read_parquet(out).with_columns(reward=pl.lit(0.5))
    provenance = assay.read_provenance(out)
    result = type(open_result(out))(**{**vars(open_result(out)), "frame": altered.lazy()})
    assert rescored(result).changed == 8
    assert provenance["rows"] == 8
    source.write_text("{}\n")
    with pytest.raises(InputError, match="changed"):
        rescored(out)
    assert rescored(out, rollouts=ROWS).changed == 0
    with pytest.raises(InputError, match="does not say which verifiers made it"):
        rescored(pl.DataFrame({"reward": [1.0]}))


def test_a_part_of_the_rows_is_scored_again_with_the_options_of_the_run(tmp_path):
    source, out = tmp_path / "rows.jsonl", tmp_path / "rewards.parquet"
    rows = [{**row, "text": row["completion"], "completion": "yes"} for row in ROWS]
    source.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    assay.score_file(source, SPEC, out, mapping={"completion": "text"}, limit=3)
    found = rescored(out)
    assert (found.rows, found.changed) == (3, 0)
    assert rescored(out, mapping={"completion": "completion"}).changed


def test_the_texts_of_both_sides_are_shown_where_they_differ(tmp_path):
    source, spec = tmp_path / "rows.jsonl", {"checks": [{"type": "contains", "value": "yes"}]}
    long = "the same words " * 200
    rows = [
        {"task_id": "a", "one": f"{long}no \x1b[2J", "two": f"{long}yes"},
        {"task_id": "b", "one": "yes", "two": None},
    ]
    source.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    sides = [tmp_path / "one.parquet", tmp_path / "two.parquet"]
    for side in sides:
        assay.score_file(source, spec, side, mapping={"completion": side.stem}, keep=["task_id"])
    turned = tmp_path / "turned.parquet"
    source_of_turned = tmp_path / "turned.jsonl"
    source_of_turned.write_text("".join(f"{json.dumps(row)}\n" for row in rows[::-1]))
    assay.score_file(source_of_turned, spec, turned, mapping={"completion": "two"}, keep=["task_id"])
    for after, on in ((sides[1], ()), (turned, "task_id")):
        found = assay.diff(sides[0], after, on=on)
        texts = {row["key"]["task_id"]: (row["text"], row["text_after"]) for row in found.examples}
        assert texts == {"a": (rows[0]["one"], rows[0]["two"]), "b": ("yes", None)}
        shown = diff_document(found).markdown()
        assert "2,940 equal characters … " in shown
        assert "\\x1b" in shown
        assert "\x1b" not in shown
        assert len(shown) < 4_000


def test_specs_of_all_kinds_are_scored_again(tmp_path):
    combined = {
        "id": "form",
        "combine": "sum",
        "range": None,
        "checks": [
            {
                "id": "any",
                "type": "any_of",
                "checks": [{"type": "contains", "value": "a"}, {"type": "min_length", "value": 3}],
            },
            {"id": "curt", "type": "max_length", "value": 9, "penalty": 0.5},
            {
                "id": "gate",
                "type": "contains",
                "value": "e",
                "gate": True,
                "when": {"check": {"type": "min_length", "value": 4}},
            },
        ],
    }
    assay.score_file(pl.DataFrame(ROWS), combined, tmp_path / "rewards.parquet")
    assert rescored(tmp_path / "rewards.parquet", rollouts=ROWS).changed == 0


def grade(completion):
    return 1.0


def test_python_is_not_scored_again(tmp_path):
    assay.score_file(pl.DataFrame(ROWS), assay.Rubric(funcs=[grade]), tmp_path / "rewards.parquet")
    with pytest.raises(InputError, match="`grade` is Python"):
        rescored(tmp_path / "rewards.parquet", rollouts=ROWS)


def test_misuse_is_refused(tmp_path):
    one, other = frames([1], [1])
    with pytest.raises(UsageError, match="tasks: results are not scored again"):
        assay.diff(one, other, tasks=[])
    with pytest.raises(UsageError, match="examples=-1"):
        assay.diff(one, other, examples=-1)
    with pytest.raises(SpecError):
        assay.diff({"checks": []}, SPEC, rollouts=ROWS)
    with pytest.raises(TypeError, match="unexpected keyword"):
        assay.diff(SPEC, SPEC, rollouts=ROWS, taks=1)


def test_limits_are_exceeded_by_more_only():
    found = assay.diff(*frames([1] * 48, [0] * 4 + [1] * 44))
    for allowed, exceeded in ((4, False), (3, True), ("8%", True), ("9%", False)):
        assert found.within(max_flips=allowed).exceeds is exceeded
        assert found.within(max_regressions=allowed, max_changed=allowed).exceeds is exceeded
    assert found.within(max_delta=4 / 48).exceeds is False
    assert found.within(max_delta=0.08).limits == [
        {"limit": "--max-delta", "allowed": 0.08, "value": -4 / 48, "exceeded": True}
    ]
    assert found.within().limits == []
    for limit in ("x", "3.5", -1):
        with pytest.raises(UsageError, match="max_flips"):
            found.within(max_flips=limit)
    with pytest.raises(UsageError, match="max_delta"):
        found.within(max_delta=math.nan)


def test_rollouts_that_have_lost_a_column_that_was_kept_are_scored_again(tmp_path):
    rows = pl.DataFrame({"completion": ["a", "b", "c"], "source": ["x", "y", "z"], "model": ["m", "n", "m"]})
    rows.write_parquet(tmp_path / "rows.parquet")
    assay.score_file(tmp_path / "rows.parquet", SPEC, tmp_path / "out.parquet", keep=["source", "model"])
    rows.drop("source").write_parquet(tmp_path / "fewer.parquet")
    found = rescored(tmp_path / "out.parquet", rollouts=tmp_path / "fewer.parquet")
    assert (found.rows, found.changed) == (3, 0)
