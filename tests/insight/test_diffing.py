"""Two rewards of the same rollouts: numbers against loops over the rows, tests against worked cases, refusals."""

import json
import math
import statistics
from dataclasses import replace

import polars as pl
import pytest
from insight_cases import golden, golden_rows, rescored

import assay
from assay import InputError, SpecError, UsageError
from assay.insight.pairing import paired
from assay.insight.results import open_result

POLITE = {"id": "polite", "type": "contains", "value": "please", "weight": 3}
SPEC = {"id": "tone", "passThreshold": 0.7, "checks": [POLITE, {"id": "short", "type": "max_length", "value": 12}]}
STRICT = {**SPEC, "checks": [POLITE, {"id": "short", "type": "max_length", "value": 7, "required": True}]}
TEXTS = ("please", "please do it", "no", None, "yes, please", "what", "please?", "thank you, no")
ROWS = [
    {"task_id": f"t{at // 2}", "model": "elm" if at % 2 else "ash", "completion": text} for at, text in enumerate(TEXTS)
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


def written(path, rows):
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def test_flips_are_tested_by_mcnemar_or_by_task():
    case = golden("diff.mcnemar")
    for (lost, gained), p in zip(case.input["pairs"], case.expect["p"], strict=True):
        before, after = [1.0] * lost + [0.0] * gained + [1.0], [0.0] * lost + [1.0] * gained + [1.0]
        for columns in ({}, {"task_id": range(len(before))}):
            test = assay.diff(*frames(before, after, **columns), examples=0).flip_test
            assert (test["test"], test["pass_to_fail"], test["fail_to_pass"]) == ("mcnemar", lost, gained)
            assert test["p"] == pytest.approx(p, rel=case.tolerance)
    # rows without a task are left out
    test = assay.diff(*frames([1, 1, 1, 0], [0, 0, 0, 1], task_id=["a", "b", None, "c"])).flip_test
    assert (test["test"], test["pass_to_fail"], test["fail_to_pass"]) == ("mcnemar", 2, 1)
    # by hand: d = -1, -1, 0; z = -2/√2
    sides = frames([1, 1, 1, 0, 1, 0], [0, 0, 0, 1, 1, 0], task_id=["a", "b", "c", "c", "d", "d"])
    test = assay.diff(*sides).flip_test
    assert (test["z"], test["p"]) == (pytest.approx(-1.4142, abs=5e-5), pytest.approx(0.1573, abs=5e-5))


def test_numbers_of_the_worked_rows_are_those_of_a_loop():
    before, after = golden_sides()
    found = assay.diff(before, after)
    old, new = before["reward"].to_list(), after["reward"].to_list()
    deltas = [two - one for one, two in zip(old, new, strict=True) if one is not None]
    flips = sum(one != two for one, two in zip(before["passed"], after["passed"], strict=True))
    assert (found.rows, found.both_scored, found.flips) == (48, len(deltas), flips)
    assert (found.matrix["unscored->unscored"], sum(found.matrix.values())) == (1, 48)
    assert found.changed == sum(delta != 0 for delta in deltas)
    numbers = {"mean": statistics.mean(deltas), "std": statistics.stdev(deltas)}
    numbers |= {"mean_abs": statistics.mean(map(abs, deltas)), "up": 26, "down": 11, "equal": 10}
    assert {name: found.delta[name] for name in numbers} == pytest.approx(numbers)
    assert sum(found.delta["histogram"]["bins"]) == 37
    assert [len(rows) for rows in found.delta_rows] == found.delta["histogram"]["bins"]
    changes = (new[row] - old[row] for rows in found.delta_rows for row in rows)
    assert [change > 0 for change in changes] == [False] * 11 + [True] * 26
    quantiles = {"0": min(deltas), "50": statistics.median(deltas), "100": max(deltas)}
    assert {name: found.delta["quantiles"][name] for name in quantiles} == pytest.approx(quantiles)
    [entry] = found.signatures
    assert (entry["signature"], entry["rows"], len(entry["rows_after"])) == (
        ["weights or threshold only"],
        flips,
        flips,
    )


def test_rows_of_one_task_are_tested_together():
    before, after = golden_sides()
    tasks = {}
    values_of = (side[name] for name in ("reward", "passed") for side in (before, after))
    for task, *values in zip(before["task_id"], *values_of, strict=True):
        tasks.setdefault(task, []).append(values)
    gains = [sum(bool(new) - bool(old) for _, _, old, new in values) for values in tasks.values()]
    means = [statistics.mean(two - one for one, two, _, _ in values if one is not None) for values in tasks.values()]
    found = assay.diff(before, after)
    z = sum(gains) / math.sqrt(sum(gain**2 for gain in gains))
    assert found.flip_test["z"] == pytest.approx(z)
    assert found.flip_test["p"] == pytest.approx(math.erfc(abs(z) / math.sqrt(2)))
    mean, se = statistics.mean(means), statistics.stdev(means) / math.sqrt(len(means))
    half = 2.5705818366147395 * se  # t quantile of 5 degrees of freedom
    assert (found.reward_test["mean"], found.reward_test["t"]) == (pytest.approx(mean), pytest.approx(mean / se))
    assert found.reward_test["ci95"] == pytest.approx([mean - half, mean + half])
    assert found.reward_test["few"] is True


def test_differences_at_the_edges_of_floats():
    found = assay.diff(*frames([1, 0], [1, 0], task_id=["a", "b"]))
    assert json.dumps(found.as_json()["delta"]["histogram"]) == json.dumps({"low": 0.0, "high": 0.0, "bins": [0] * 40})
    assert assay.diff(*frames([0.0, 1.0], [-0.0, 1.0])).changed == 1
    most, tasks = 1.7e308, ["a", "b", "c"]
    found = assay.diff(*frames([most, 1, -most], [-most, 1, most], task_id=tasks))
    assert (found.both_scored, found.changed, found.as_json()["reward_test"]["tasks"]) == (3, 2, 1)
    assert (found.delta["mean"], found.delta["equal"], found.delta["up"]) == (0.0, 1, 0)
    delta = assay.diff(*frames([most, -most, 0], [0, 0, 0], task_id=tasks)).as_json()["delta"]
    assert (delta["mean"], delta["std"], delta["mean_abs"]) == (0.0, None, None)
    assert delta["histogram"]["bins"] == [1, *[0] * 38, 1]
    for most in (5e-324, 1e-310, 2.0**-1000, 1e308):
        histogram = assay.diff(*frames([0.0, 0.0, most], [0.0, most, 0.0])).delta["histogram"]
        assert (histogram["high"], histogram["bins"]) == (most, [1] + [0] * 38 + [1])


def test_checks_are_counted_with_their_direction():
    found = assay.diff(*frames([1, 1, 0, None, 0.5, None], [1, 0, 1, 0.5, None, None]))
    (check,) = found.checks
    counts = {"check": "a", "rows": 3, "changed": 4, "pass_to_fail": 1, "fail_to_pass": 1, "mean_delta": 0.0}
    assert check == counts
    assert (found.flips, found.regressions, found.changed) == (4, 1, 4)
    signatures = [["-a"], ["+a"], ["became scored"], ["became unscored"]]
    assert [entry["signature"] for entry in found.signatures] == signatures
    large = assay.diff(*frames([2.5, 0.0], [-4.0, 10.0])).checks[0]
    assert large["mean_delta"] == 1.75


def test_examples_go_round_the_signatures_and_begin_with_the_largest_change():
    before = pl.DataFrame({"row": range(6), "reward": [1.0] * 6, "passed": [True] * 6})
    lost = {"check/v/a": [0.0, 0.0, 0.0, 1.0, 1.0, 1.0], "check/v/b": [1.0, 1.0, 1.0, 0.0, 0.0, 1.0]}
    rewards = pl.Series([0.5, 0.2, 0.2, 0.9, 0.1, 0.0])
    after = before.with_columns(reward=rewards, passed=False, **{name: pl.Series(lost[name]) for name in lost})
    before = before.with_columns(pl.lit(1.0).alias(name) for name in lost)
    found = assay.diff(before, after, examples=5)
    signatures = [(["-a"], 3), (["-b"], 2), (["weights or threshold only"], 1)]
    assert [(entry["signature"], entry["rows"]) for entry in found.signatures] == signatures
    assert [example["row"] for example in found.examples] == [1, 4, 5, 2, 3]
    assert assay.diff(before, after, examples=0).examples == []


def test_more_checks_than_fit_a_word():
    names = [f"check/v/c{at}" for at in range(70)]
    before = pl.DataFrame({"row": [0, 1], "reward": 1.0, "passed": True} | dict.fromkeys(names, 1.0))
    after = before.with_columns(pl.Series(names[69], [0.0, 1.0]), pl.Series(names[31], [0.0, 1.0]))
    after = after.with_columns(passed=pl.Series([False, True]))
    assert assay.diff(before, after).signatures == [{"signature": ["-c31", "-c69"], "rows": 1, "rows_after": [0]}]


def test_values_of_columns_are_told_apart():
    sides = frames([1, 1, 0, 0], [0, 1, 1, 1], model=["ash", "elm", "elm", None], step=[1, 1, 2, 2])
    assert [tuple(entry.values()) for entry in assay.diff(*sides, by=["model", "step"]).by] == [
        ("model", "ash", 1, 1, 0, -1.0),
        ("model", None, 1, 0, 1, 1.0),
        ("model", "elm", 2, 0, 1, 0.5),
        ("step", 2, 2, 0, 2, 1.0),
        ("step", 1, 2, 1, 0, -0.5),
    ]
    with pytest.raises(UsageError, match='by="modle": the frame has no such column'):
        assay.diff(*sides, by="modle")


def test_nothing_scored_no_rows_and_no_passed():
    for rewards in ([None, None], []):
        found = assay.diff(*frames(rewards, rewards, task_id=[str(at) for at, _ in enumerate(rewards)]))
        assert (found.rows, found.both_scored, found.flips, found.changed) == (len(rewards), 0, 0, 0)
        assert found.delta["mean"] is found.reward_test["p"] is None
        assert found.flip_test["p"] == 1.0
        json.dumps(found.as_json(), allow_nan=False)
    found = assay.diff(*(frame.drop("passed") for frame in frames([1.0, 0.0], [0.5, 0.0])))
    assert (found.flips, found.matrix, found.flip_test, found.changed) == (None, None, None, 1)
    assert "without a column `passed` on both sides there are no flips" in found.notes
    with pytest.raises(UsageError, match="no column `passed`"):
        found.within(max_flips=1)


def test_no_byte_depends_on_the_order_of_the_rows():
    sides = [side.insert_column(0, pl.Series("row", range(48))) for side in golden_sides()]
    turned = [side.sample(fraction=1.0, shuffle=True, seed=3) for side in sides]
    found, again, shuffled = (assay.diff(*pair, by=["model", "task_id"]) for pair in (sides, sides, turned))
    assert json.dumps(found.as_json()) == json.dumps(again.as_json())
    assert found.as_json()["insight"] == 1
    for name in ("delta", "reward_test", "flip_test", "checks", "by"):
        assert getattr(found, name) == getattr(shuffled, name)


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
    with pytest.raises(InputError, match="task_id has type String there"):
        assay.diff(before, after.with_columns(task_id=pl.Series([["q-01"], ["q-03"]])))
    assert assay.diff(before.with_columns(pl.col("row").cast(pl.UInt8)), after).rows == 2


def test_columns_of_any_type_are_compared():
    values = {"list": [[1], None], "struct": [{"a": 1}, {"a": None}], "null": [None, None], "bytes": [b"a", b"\xff"]}
    values |= {"*": ["star", None], "^a.*$": ["x", "y"]}
    before, after = frames([1, 0], [0, 0], **values)
    assert assay.diff(before, after).flips == 1
    for name, value in {"list": [[1], []], "struct": [{"a": 1}, {"a": 2}], "*": ["star", "moon"]}.items():
        with pytest.raises(InputError, match="row 1: "):
            assay.diff(before, after.with_columns(pl.Series(name, value, dtype=after.schema[name])))


def test_results_with_equal_hashes_of_their_inputs_are_of_the_same_rollouts():
    before, after = (open_result(frame.drop("row")) for frame in frames([1, 0], [1, 1]))
    sides = [
        replace(side, provenance={"inputs": [{"name": "x", "sha256": digest}]})
        for side, digest in ((before, "a"), (after, "a"), (after, "b"), (after, None))
    ]
    assert paired(sides[0], sides[1]).rows == 2
    for one, other in ((sides[0], sides[2]), (sides[3], sides[3])):
        with pytest.raises(InputError, match="nothing says that they are the same"):
            paired(one, other)


def test_results_are_joined_on_keys():
    before, after = frames([1, 0, 1], [1, 0, 0], id=["a", "b", "c"], completion=["x", "y", "z"])
    turned = after.drop("row").reverse()
    found = assay.diff(before, turned, on="id")
    assert (found.rows, found.flips, found.examples[0]["row"], found.examples[0]["key"]) == (3, 1, 2, {"id": "c"})
    assert (found.examples[0]["after"]["reward"], found.examples[0]["text"]) == (0.0, "z")
    found = assay.diff(before, turned.head(2), on="id", allow_missing=1)
    assert (found.rows, found.notes[-1]) == (2, "1 row on one side only: left out")
    null, twice = (pl.Series(names) for names in (["a", None, "c"], ["a", "a", "c"]))
    changed = turned.with_columns(completion=pl.Series(["w", "y", "x"]))
    refused = [
        (before.with_columns(id=null), after, {"on": "id"}, InputError, "1 row without a key"),
        (before, after.with_columns(id=twice), {"on": "id"}, InputError, "id a occurs 2 times"),
        (
            before,
            turned.head(2),
            {"on": "id"},
            InputError,
            "1 row on one side only: 1 only in the frame, 0 only in the",
        ),
        (before, changed, {"on": "id"}, InputError, "completion is z there, w here"),
        (before, after, {"on": "di"}, UsageError, 'on="di": the frame has no such column'),
        (before, after, {"allow_missing": 1}, UsageError, "allow_missing"),
    ]
    for one, other, options, error, message in refused:
        with pytest.raises(error, match=message):
            assay.diff(one, other, **options)


def test_one_pass_is_the_diff_of_two_results(tmp_path):
    source = written(tmp_path / "rows.jsonl", ROWS)
    for name, spec in (("before", SPEC), ("after", STRICT)):
        assay.score_file(source, spec, tmp_path / f"{name}.parquet")
    apart = assay.diff(tmp_path / "before.parquet", tmp_path / "after.parquet")
    for rollouts in (source, ROWS):
        assert assay.diff(SPEC, STRICT, rollouts=rollouts).as_json() == apart.as_json()
    assert [(row["row"], row["text"], row["feedback_after"]) for row in apart.examples] == [
        (1, "please do it", "short: has more than 7 characters"),
        (4, "yes, please", "short: has more than 7 characters"),
    ]
    assert apart.signatures == [{"signature": ["-short"], "rows": 2, "rows_after": [1, 4]}]
    tasks = [{"task_id": f"t{at}", "answer": "please"} for at in range(4)]
    gold = {"id": "gold", "checks": [{"id": "is", "type": "contains", "value": {"column": "answer"}}]}
    found = assay.diff([SPEC], [SPEC, gold], rollouts=ROWS, tasks=tasks)
    assert (found.rows, found.both_scored, found.only_after) == (8, 7, ["gold/is"])
    assert [check["check"] for check in found.checks] == ["tone/polite", "tone/short"]
    both = [assay.score(ROWS, spec, tasks=tasks)["reward"] for spec in ([SPEC], [SPEC, gold])]
    assert found.delta["mean"] == pytest.approx((both[1] - both[0]).mean())


def test_rollouts_may_have_columns_with_the_names_of_results():
    own = [{**row, "reward": 0.5, "error": None, "passed": "x", "feedback": 1} for row in ROWS]
    one, with_them = (assay.diff(SPEC, STRICT, rollouts=rows, by="model") for rows in (ROWS, own))
    assert one.flips > 0
    assert with_them.as_json() == one.as_json()
    (by_own,) = assay.diff(SPEC, STRICT, rollouts=own, by="prior_passed").by
    assert (by_own["value"], by_own["rows"]) == ("x", one.rows)


def test_a_result_is_scored_again(tmp_path):
    source, out = written(tmp_path / "rows.jsonl", ROWS), tmp_path / "rewards.parquet"
    assay.score_file(source, [SPEC, {**STRICT, "id": "strict"}], out)
    found = rescored(out)
    assert (found.rows, found.changed, found.flips) == (8, 0, 0)
    altered = pl.read_parquet(out).with_columns(reward=pl.lit(0.5))
    assert rescored(replace(open_result(out), frame=altered.lazy())).changed == 8
    source.write_text("{}\n")
    with pytest.raises(InputError, match="changed"):
        rescored(out)
    assert rescored(out, rollouts=ROWS).changed == 0
    with pytest.raises(InputError, match="does not say which verifiers made it"):
        rescored(pl.DataFrame({"reward": [1.0]}))
    assay.score_file(pl.DataFrame(ROWS), assay.Rubric(funcs=[grade]), tmp_path / "python.parquet")
    with pytest.raises(InputError, match="`grade` is Python"):
        rescored(tmp_path / "python.parquet", rollouts=ROWS)


def grade(completion):
    return 1.0


def test_rows_are_scored_again_with_the_options_of_the_run(tmp_path):
    rows = [{**row, "text": row["completion"], "completion": "yes"} for row in ROWS]
    source, out = written(tmp_path / "rows.jsonl", rows), tmp_path / "rewards.parquet"
    assay.score_file(source, SPEC, out, mapping={"completion": "text"}, limit=3)
    found = rescored(out)
    assert (found.rows, found.changed) == (3, 0)
    assert rescored(out, mapping={"completion": "completion"}).changed
    # of a column that was kept and is lost, too
    assay.score_file(pl.DataFrame(ROWS), SPEC, out, keep=["task_id", "model"], overwrite=True)
    found = rescored(out, rollouts=pl.DataFrame(ROWS).drop("model"))
    assert (found.rows, found.changed) == (8, 0)


def test_the_texts_of_both_sides_are_shown_where_they_differ(tmp_path):
    spec, long = {"checks": [{"type": "contains", "value": "yes"}]}, "the same words " * 200
    rows = [{"task_id": "a", "one": f"{long}no \x1b[2J", "two": f"{long}yes"}, {"task_id": "b", "one": "yes"}]
    source, turned = written(tmp_path / "rows.jsonl", rows), written(tmp_path / "turned.jsonl", rows[::-1])
    for name, of, column in (("one", source, "one"), ("two", source, "two"), ("turned", turned, "two")):
        assay.score_file(of, spec, tmp_path / f"{name}.parquet", mapping={"completion": column}, keep=["task_id"])
    for after, on in (("two", ()), ("turned", "task_id")):
        found = assay.diff(tmp_path / "one.parquet", tmp_path / f"{after}.parquet", on=on)
        texts = {row["key"]["task_id"]: (row["text"], row["text_after"]) for row in found.examples}
        assert texts == {"a": (rows[0]["one"], rows[0]["two"]), "b": ("yes", None)}
        shown = found.document().markdown()
        assert "2,940 equal characters … " in shown
        assert ("\\x1b" in shown, "\x1b" in shown, len(shown) < 4_000) == (True, False, True)


def test_the_text_of_a_row_is_the_one_that_was_scored():
    rows = [{"task_id": str(at), "completion": [{"role": "user", "content": f"a{at}"}]} for at in range(3)]
    other = {"id": "v", "checks": [{"id": "a", "type": "contains", "value": "2"}]}
    found = assay.diff(
        {"id": "v", "checks": [{"id": "a", "type": "contains", "value": "a"}]}, other, rollouts=rows, any_role=True
    )
    assert [example["text"] for example in found.examples] == ["a0", "a1"]


def test_specs_of_all_kinds_are_scored_again(tmp_path):
    parts = [{"type": "contains", "value": "a"}, {"type": "min_length", "value": 3}]
    gate = {"id": "gate", "type": "contains", "value": "e", "gate": True}
    checks = [
        {"id": "any", "type": "any_of", "checks": parts},
        {"id": "curt", "type": "max_length", "value": 9, "penalty": 0.5},
        {**gate, "when": {"check": {"type": "min_length", "value": 4}}},
    ]
    combined = {"id": "form", "combine": "sum", "range": None, "checks": checks}
    assay.score_file(pl.DataFrame(ROWS), combined, tmp_path / "rewards.parquet")
    assert rescored(tmp_path / "rewards.parquet", rollouts=ROWS).changed == 0


def test_misuse_is_refused():
    one, other = frames([1], [1])
    refused = [
        ((one, other), {"tasks": []}, UsageError, "tasks: results are not scored again"),
        ((one, other), {"examples": -1}, UsageError, "examples=-1"),
        (({"checks": []}, SPEC), {"rollouts": ROWS}, SpecError, None),
        ((SPEC, SPEC), {"rollouts": ROWS, "taks": 1}, TypeError, "unexpected keyword"),
    ]
    for sides, options, error, message in refused:
        with pytest.raises(error, match=message):
            assay.diff(*sides, **options)


def test_limits_are_exceeded_by_more_only():
    found = assay.diff(*frames([1] * 48, [0] * 4 + [1] * 44))
    for allowed, exceeded in ((4, False), (3, True), ("8%", True), ("9%", False)):
        assert found.within(max_flips=allowed).exceeds is exceeded
        assert found.within(max_regressions=allowed, max_changed=allowed).exceeds is exceeded
    assert found.within(max_delta=4 / 48).exceeds is False
    limit = {"limit": "--max-delta", "allowed": 0.08, "value": -4 / 48, "exceeded": True}
    assert (found.within(max_delta=0.08).limits, found.within().limits) == ([limit], [])
    for limits in ({"max_flips": "x"}, {"max_flips": "3.5"}, {"max_flips": -1}, {"max_delta": math.nan}):
        with pytest.raises(UsageError, match=next(iter(limits))):
            found.within(**limits)
