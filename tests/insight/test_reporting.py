"""Reports: worked cases, a plain definition of the numbers, and what is missing or strange."""

import json
import math
import random
import statistics
from collections import Counter
from itertools import combinations, pairwise

import polars as pl
import pytest
from cases import sized, some
from insight_cases import golden, golden_rows

import assay
from assay import InputError, UsageError
from assay.insight import stats
from assay.insight.findings import columns as result_columns
from assay.insight.findings.columns import columns_of
from assay.insight.reports.numbers import failures_of, histogram_of, numbers_of, pairs_of, status_of
from assay.insight.reports.reporting import report
from assay.insight.results import open_result, result_of
from assay.thresholds import set_to

# ── worked cases ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_histograms_of_the_worked_cases():
    case = golden("report.histogram")
    found = histogram_of(pl.Series(case.input["rewards"], dtype=pl.Float64))
    assert found == {name: case.expect[name] for name in ("bins", "range", "zeros", "ones", "unscored")}
    wide = histogram_of(pl.Series(case.input["wide"], dtype=pl.Float64))
    assert wide["bins"] == case.expect["wide_bins"]
    assert wide["range"] == case.expect["wide_range"]


@pytest.mark.parametrize("name", ["facts", "short", "tone", "rare"])
def test_statuses_of_the_worked_cases(name):
    case = golden("report.status")
    scores = case.input[name]
    frame = pl.DataFrame({"reward": scores, "passed": [score == 1 for score in scores], "check/v/a": scores})
    (check,) = assay.report(frame).checks
    assert check["status"] == case.expect[name]


def test_the_48_rows_have_the_numbers_of_their_definition():
    rows = golden_rows()
    found = assay.report(rows)
    assert found.summary["mean"] == pytest.approx(rows["reward"].mean(), abs=1e-12)
    assert [entry["of"]["model"] for entry in found.by["model"]["entries"]] == ["ash", "elm"]


WEIGHTS = {"a": 3.0, "b": 1.0, "c: d": 1.0, "e": 0.0}
SPEC = {
    "id": "v",
    "checks": [{"id": name, "type": "contains", "value": name, "weight": WEIGHTS[name]} for name in WEIGHTS],
}


def provenance_of(rows):
    checks = [{"id": name, "type": "contains", "weight": weight} for name, weight in WEIGHTS.items()]
    verifier = {"id": "v", "kind": "native", "sha256": "0" * 64, "canonical": json.dumps(SPEC), "checks": checks}
    return {"assay_version": "0.1.0", "polars_version": "2", "rows": rows, "verifiers": [verifier]}


def drawn(rows, seed=0, *, unscored=True):
    rng = random.Random(seed)
    found = []
    for at in range(rows):
        hard = rng.random()
        scores = [round(rng.random() ** hard, 1), float(rng.random() > hard), float(rng.random() < 0.9), rng.random()]
        scores = [None] * 4 if unscored and rng.random() < 0.05 else scores
        weights = list(WEIGHTS.values())
        reward = None if scores[0] is None else sum(w * s for w, s in zip(weights, scores, strict=True)) / sum(weights)
        found.append(
            {
                "task_id": None if at % 31 == 30 else f"t{rng.randrange(9)}",
                "model": "xyz"[at % 3],
                "step": at % 7,
                "reward": reward,
                "passed": None if reward is None else reward > 0.8,
                "error": "boom" if reward is None else None,
                **{f"check/v/{name}": score for name, score in zip(WEIGHTS, scores, strict=True)},
            }
        )
    return pl.DataFrame(found, schema_overrides={f"check/v/{name}": pl.Float64 for name in WEIGHTS})


def opened(frame):
    """A frame as a result with a provenance."""
    return result_of("the frame", frame.lazy(), provenance_of(frame.height))


def r(x, y):
    if len(x) < 3 or len(set(x)) == 1 or len(set(y)) == 1:
        return None
    return statistics.correlation(x, y)


def near(value):
    return value if value is None else pytest.approx(value, abs=1e-9)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("at_once", [1, 1 << 24])
def test_a_check_has_the_numbers_of_their_definition(seed, at_once):
    frame = drawn(400, seed)
    with set_to(grouped_rows=at_once):
        found = report(opened(frame))
    total = sum(WEIGHTS.values())
    for check in found.checks:
        column = f"check/v/{check['id']}"
        rows = [row for row in frame.to_dicts() if row[column] is not None]
        scores, rewards = [row[column] for row in rows], [row["reward"] for row in rows]
        a = WEIGHTS[check["id"]] / total
        assert check["coefficient"] == near(a)
        assert check["rows"] == len(rows)
        assert check["mean"] == near(statistics.fmean(scores))
        assert check["variance"] == near(statistics.variance(scores))
        assert check["failures"] == sum(score != 1 for score in scores)
        rest = [
            sum(row[f"check/v/{name}"] * weight / total for name, weight in WEIGHTS.items() if name != check["id"])
            for row in rows
        ]
        assert check["rest_correlation"] == near(r(scores, rest))
        shared = a * statistics.covariance(scores, rewards) / statistics.variance(rewards)
        assert check["share_of_reward_variance"] == near(shared)
        groups = {}
        for row, other in zip(rows, rest, strict=True):
            if row["task_id"] is not None:
                groups.setdefault((row["task_id"], row["model"], row["step"]), []).append((row[column], other))
        several = [group for group in groups.values() if len(group) > 1]
        assert check["groups"] == len(several)
        assert check["separates"] == near(sum(len({s for s, _ in group}) > 1 for group in several) / len(several))
        in_groups = [s for group in groups.values() for s, _ in group]
        centred = [
            (s - statistics.fmean(s for s, _ in group), o - statistics.fmean(o for _, o in group))
            for group in groups.values()
            for s, o in group
        ]
        within = sum(s * s for s, _ in centred)
        mean = statistics.fmean(in_groups)
        assert check["within_variance_share"] == near(within / sum((s - mean) ** 2 for s in in_groups))
        product, other = sum(s * o for s, o in centred), sum(o * o for _, o in centred)
        assert check["within_rest_correlation"] == near(product / math.sqrt(within * other))
    assert sum(check["share_of_reward_variance"] for check in found.checks) == near(1.0)


@pytest.mark.parametrize("at_once", some([7, 1, 64]))
def test_numbers_of_many_rows_come_from_parts_of_them(monkeypatch, at_once):
    def json_of(frame):
        data = report(opened(frame), task="task_id", group=["model", "step"]).as_json()
        return {name: data[name] for name in ("summary", "checks", "by", "findings")}

    def equal(one, other):
        if isinstance(one, dict):
            return one.keys() == other.keys() and all(equal(one[name], other[name]) for name in one)
        if isinstance(one, list):
            return len(one) == len(other) and all(map(equal, one, other))
        return one == (near(other) if isinstance(other, float) else other)

    frame = drawn(sized(300, 120)).with_columns(
        length=pl.int_range(pl.len()).cast(pl.UInt32), step=pl.int_range(pl.len()) // 30
    )
    frames = [frame, frame.sort("model", "step"), frame.drop("step"), frame.with_columns(reward=pl.col("check/v/b"))]
    whole = [json_of(one) if "step" in one.columns else report(opened(one)).as_json()["checks"] for one in frames]
    monkeypatch.setattr(result_columns, "_AT_ONCE", at_once)
    for one, expected in zip(frames, whole, strict=True):
        found = json_of(one) if "step" in one.columns else report(opened(one)).as_json()["checks"]
        assert equal(found, expected)


@pytest.mark.parametrize("seed", range(3))
def test_pairs_are_counted_in_the_rows_that_both_have_scored(seed):
    rng = random.Random(seed)
    names = [f"c{at}" for at in range(8)]
    columns = {name: [rng.choice([0.0, 1.0, 1.0, 0.5, None]) for _ in range(203)] for name in names}
    columns["c7"] = columns["c6"]
    found = pairs_of([failures_of(name, pl.Series(columns[name], dtype=pl.Float64)) for name in names], 203)
    expected = []
    for a, b in combinations(names, 2):
        both = [(x, y) for x, y in zip(columns[a], columns[b], strict=True) if None not in (x, y)]
        counts = Counter((x != 1, y != 1) for x, y in both)
        n11, n10, n01, n00 = (counts[key] for key in ((True, True), (True, False), (False, True), (False, False)))
        phi = r([float(x != 1) for x, _ in both], [float(y != 1) for _, y in both])
        expected.append((a, b, n11, n10, n01, n00, phi, n11 / (n11 + n10 + n01)))
    expected.sort(key=lambda pair: -abs(pair[6]))
    assert len(found) == 28
    for pair, (a, b, *counts, phi, jaccard) in zip(found, expected, strict=False):
        assert (pair["a"], pair["b"]) == (a, b)
        assert [pair[name] for name in ("n11", "n10", "n01", "n00")] == counts
        assert pair["phi"] == near(phi)
        assert pair["jaccard"] == near(jaccard)
    assert found[0]["redundant"]
    assert found[0]["implied"]
    assert found[0]["a_implies_b"]
    assert found[0]["b_implies_a"]
    assert not any(pair["redundant"] for pair in found[1:])


def test_few_failures_in_common_are_not_called_redundant():
    scores = pl.Series([0.0] * 19 + [1.0] * 81)
    (pair,) = pairs_of([failures_of("a", scores), failures_of("b", scores)], 100)
    assert not pair["redundant"]
    more = pl.Series([0.0] * 20 + [1.0] * 80)
    (pair,) = pairs_of([failures_of("a", more), failures_of("b", more)], 100)
    assert pair["redundant"]


def test_a_check_that_is_all_of_the_reward_leaves_no_rest():
    frame = pl.DataFrame({"reward": [0.1, 0.7, 0.3, 1.0] * 10, "passed": [True] * 40})
    found = numbers_of(frame["reward"], 1.0, columns_of(open_result(frame), (), ()))
    assert found["rest_correlation"] is None
    assert found["share_of_reward_variance"] == pytest.approx(1.0)
    flat = numbers_of(pl.Series([0.1] * 40), 0.5, columns_of(open_result(frame), (), ()))
    assert (flat["variance"], flat["mean"], flat["rest_correlation"]) == (0.0, 0.1, None)


def test_the_share_of_a_check_that_works_against_the_others_is_negative():
    # by hand: R = .75 s1 + .25 s2, s2 = 1 - s1: R = .25 + .5 s1, so that a·Cov(s, R)/Var(R) is 1.5 and -.5
    reward = pl.Series("reward", [0.25, 0.75] * 20)
    columns = columns_of(open_result(reward.to_frame()), (), ())
    shares = [
        numbers_of(scores, a, columns)["share_of_reward_variance"]
        for scores, a in ((pl.Series([0.0, 1.0] * 20), 0.75), (pl.Series([1.0, 0.0] * 20), 0.25))
    ]
    assert shares == pytest.approx([1.5, -0.5])


BASE = {"rows": 200, "failures": 100, "pass_rate": 0.5, "groups": 40, "separates": 0.5, "rest_correlation": 0.1}


@pytest.mark.parametrize(
    ("facts", "status"),
    [
        ({}, "ok"),
        ({"rows": 19, "failures": 19, "pass_rate": 0.0}, "few rows"),
        ({"failures": 200, "pass_rate": 0.0}, "never passes"),
        ({"failures": 0, "pass_rate": 1.0}, "never fails"),
        ({"failures": 2, "pass_rate": 0.99}, "saturated"),
        ({"failures": 198, "pass_rate": 0.01}, "saturated"),
        ({"failures": 3, "pass_rate": 0.985, "rest_correlation": -0.9, "separates": 0.0}, "does not separate"),
        ({"separates": 0.01}, "ok"),
        ({"groups": 19, "separates": 0.0}, "ok"),
        ({"groups": 0, "separates": None, "rest_correlation": None}, "ok"),
        ({"rest_correlation": -0.2}, "against the rest"),
        ({"rest_correlation": -0.2, "rows": 99}, "ok"),
    ],
)
def test_the_first_status_that_holds(facts, status):
    assert status_of(BASE | facts) == status


@pytest.mark.parametrize("seed", range(3))
def test_means_have_intervals_clustered_by_task(seed):
    frame = drawn(300, seed)
    found = report(opened(frame))

    def interval(rows):
        values = [(row["task_id"], row["reward"]) for row in rows if None not in (row["task_id"], row["reward"])]
        mean = statistics.fmean(value for _, value in values)
        sums = Counter()
        for task, value in values:
            sums[task] += value - mean
        tasks = len(sums)
        se = math.sqrt(tasks / (tasks - 1) * sum(value**2 for value in sums.values())) / len(values)
        half = stats.t_quantile(0.975, tasks - 1) * se
        return pytest.approx([mean - half, mean + half], abs=1e-9)

    rows = frame.to_dicts()
    assert found.summary["ci95"] == interval(rows)
    assert found.summary["mean"] == near(statistics.fmean(row["reward"] for row in rows if row["reward"] is not None))
    assert found.summary["without_task"] == frame["task_id"].null_count()
    assert found.summary["errors"] == found.summary["unscored"] == frame["reward"].null_count()
    for name, number in (("model", 3), ("step", 7)):
        entries = found.by[name]["entries"]
        assert len(entries) == number
        for entry in entries:
            of = [row for row in rows if row[name] == entry["of"][name]]
            assert entry["rows"] == len(of)
            assert entry["ci95"] == interval(of)
            scored = [row for row in of if row["reward"] is not None]
            assert entry["mean"] == near(statistics.fmean(row["reward"] for row in scored))
            assert entry["pass_rate"] == near(sum(row["passed"] for row in scored) / len(scored))
            assert entry["errors"] == len(of) - len(scored)


def test_rates_are_clipped_and_mean_rewards_are_not_as_in_groups():
    rewards = [1.0, 1.0, 0.5, 0.0, 1.0, 1.0]
    frame = pl.DataFrame({"task_id": ["a", "a", "b", "b", "c", "c"], "reward": rewards})
    frame = frame.with_columns(passed=pl.col("reward") == 1)
    found = assay.report(frame).summary
    assert found["pass_rate_ci95"] == [0.0, 1.0]
    assert found["ci95"][1] > 1.0
    of_groups = assay.groups(frame).as_json()["summary"][0]["metrics"]
    assert found["ci95"] == pytest.approx(of_groups["mean"]["ci95"])
    assert found["pass_rate_ci95"] == of_groups["pass@1"]["ci95"]


def test_rates_of_tasks_with_one_row_have_wilsons_interval():
    frame = pl.DataFrame({"task_id": [str(at) for at in range(50)], "reward": [1.0] * 40 + [0.0] * 10})
    found = assay.report(frame.with_columns(passed=pl.col("reward") == 1))
    assert found.summary["pass_rate_ci95"] == pytest.approx(stats.wilson(40, 50))
    assert found.summary["ci95"] == pytest.approx(stats.wilson(40, 50))


def test_steps_have_the_pass_rates_of_checks_and_the_share_of_flat_groups():
    rows = [  # task, step, reward, a, b
        ("t1", 1, 1.0, 1.0, 0.0),
        ("t1", 1, 0.0, 0.0, 0.0),
        ("t2", 1, 0.5, 1.0, 0.5),
        ("t2", 1, 0.5, 1.0, None),
        ("t3", 2, 0.5, None, 1.0),
        ("t3", None, 0.5, 1.0, 1.0),
    ]
    frame = pl.DataFrame(rows, schema=["task_id", "step", "reward", "check/v/a", "check/v/b"], orient="row")
    steps = assay.report(frame).by["step"]["entries"]
    assert [(entry["of"]["step"], entry["flat"], entry["checks"]) for entry in steps[:2]] == [
        (1, 0.5, [0.75, 0.0]),
        (2, None, [None, 1.0]),
    ]


def test_the_worst_tasks_and_the_best_are_told_of_and_steps_are_joined():
    rows = [(f"t{at:03}", at, at / 1000, at) for at in range(900)]
    frame = pl.DataFrame(rows, schema=["task_id", "step", "reward", "number"], orient="row")
    found = assay.report(frame.with_columns(passed=pl.lit(value=True)), by=["task_id", "step", "number"])
    tasks = [entry["of"]["task_id"] for entry in found.by["task"]["entries"]]
    assert tasks == [f"t{at:03}" for at in [*range(20), *range(895, 900)]]
    assert found.by["task"]["values"] == 900
    steps = found.by["step"]["entries"]
    assert len(steps) == 180
    assert [(entry["of"]["step"], entry["to"]["step"]) for entry in steps[:2]] == [(0, 4), (5, 9)]
    assert sum(entry["rows"] for entry in steps) == 900
    assert len(found.by["number"]["entries"]) == 50


def test_the_worst_are_of_each_set_of_failing_checks_the_commonest_first():
    sets = [(1.0, 1.0)] * 3 + [(0.0, 1.0)] * 2 + [(0.5, 0.0)] * 4 + [(1.0, None)] * 2 + [(1.0, 0.0)]
    rewards = [1.0, 1.0, 0.9, 0.4, 0.3, 0.2, 0.1, 0.1, 0.3, 1.0, 0.8, None]
    frame = pl.DataFrame(
        [
            {"task_id": "aab"[at % 3], "reward": reward, "passed": reward == 1, "check/v/x": x, "check/v/y": y}
            for at, (reward, (x, y)) in enumerate(zip(rewards, sets, strict=True))
        ]
    )
    found = assay.report(frame).examples
    assert [(example["row"], example["rows"]) for example in found["worst"]] == [(6, 4), (4, 2)]
    assert [example["row"] for example in found["best"]] == [0, 2]
    assert found["worst"][0]["checks"] == {"x": 0.5, "y": 0.0}
    assert found["errors"] == []
    assert len(assay.report(frame, examples=1).examples["worst"]) == 1


def test_more_checks_than_a_number_has_bits():
    frame = pl.DataFrame(
        {"reward": [0.5] * 70} | {f"check/v/c{at}": [float(row != at) for row in range(70)] for at in range(70)}
    )
    found = assay.report(frame, examples=100).examples["worst"]
    assert [example["row"] for example in found] == list(range(70))
    assert [[name for name, score in example["checks"].items() if score != 1] for example in found[::23]] == [
        [f"c{at}"] for at in range(0, 70, 23)
    ]


@pytest.fixture
def scored(tmp_path):
    """Rollouts of two models, and the result of scoring them."""
    rollouts = tmp_path / "rollouts.jsonl"
    texts = ["yes \u202e", "no", "yes, a refund", "maybe"] * 10
    rows = [{"task_id": f"t{at % 5}", "model": "ab"[at % 2], "completion": text} for at, text in enumerate(texts)]
    rollouts.write_text("".join(json.dumps(row) + "\n" for row in rows))
    spec = {"id": "v", "checks": [{"id": word, "type": "contains", "value": word} for word in ("yes", "refund")]}
    out = tmp_path / "rewards.parquet"
    assay.score_file(rollouts, spec, out)
    return rollouts, out


def test_texts_come_from_the_inputs_unless_they_have_changed(scored):
    rollouts, out = scored
    found = assay.report(out)
    assert [example["text"] for example in found.examples["worst"]] == ["no", "yes \u202e"]
    rollouts.write_text(rollouts.read_text().replace("maybe", "never"))
    changed = assay.report(out)
    assert {example["text"] for example in changed.examples["worst"]} == {None}
    assert any("is not the file that was scored" in note and "--rollouts" in note for note in changed.notes)
    named = assay.report(out, rollouts=rollouts)
    assert [example["text"] for example in named.examples["worst"]] == ["no", "yes \u202e"]
    rollouts.unlink()
    assert any("no such file" in note for note in assay.report(out).notes)
    assert "text" not in assay.report(out, text=False).examples["worst"][0]


def test_texts_of_other_rollouts_are_refused(scored, tmp_path):
    rollouts, out = scored
    lines = rollouts.read_text().splitlines(keepends=True)
    (tmp_path / "other.jsonl").write_text("".join(lines[1:]))
    with pytest.raises(assay.AssayError, match="row 0: task_id is t0 there, t1 here"):
        assay.report(out, rollouts=tmp_path / "other.jsonl")
    (tmp_path / "short.jsonl").write_text(lines[0])
    with pytest.raises(assay.AssayError, match="have 1 row, the result has 40"):
        assay.report(out, rollouts=tmp_path / "short.jsonl")


def test_a_completion_that_is_no_text_is_a_note():
    frame = pl.DataFrame({"reward": [0.5], "passed": [False], "completion": [1.5]})
    found = assay.report(frame)
    assert any(note.startswith("no texts: ") for note in found.notes)
    assert found.examples["worst"][0]["text"] is None


def test_reasons_that_a_check_joins_are_split_and_errors_count_rows():
    spec = {
        "id": "v",
        "checks": [{"id": "e", "type": "task_expectations"}, {"id": "refund", "type": "contains", "value": "refund"}],
    }
    metadata = {
        "expectations": {"mustMention": [{"anyOf": [word], "text": f"has no {word}"} for word in ("apples", "pears")]}
    }
    rows = [{"completion": "apples", "metadata": metadata}, {"completion": "refund", "metadata": metadata}]
    frame = assay.score(rows, spec)
    checks = [{"id": check["id"], "type": check["type"], "weight": 1.0} for check in spec["checks"]]
    verifier = {"id": "v", "kind": "native", "canonical": json.dumps(spec), "checks": checks}
    twice = frame.with_columns(error=pl.lit("e: one\ne: two\nother: three"))
    found = report(result_of("the frame", twice.lazy(), {"verifiers": [verifier]}))
    e, refund = found.checks
    pears, apples = e["reasons"]
    assert ("pears" in pears["template"], pears["rows"], pears["row"]) == (True, 2, 0)
    assert ("apples" in apples["template"], apples["rows"], apples["row"]) == (True, 1, 1)
    assert "; " not in pears["template"] + apples["template"]
    assert [reason["rows"] for reason in refund["reasons"]] == [1]
    assert (e["errors"], e["error_rate"], refund["errors"]) == (2, 1.0, 0)
    assert {example["line"] for example in found.examples["errors"]} == {"one", "two\nother: three"}


def test_what_has_no_reward_is_refused_and_what_has_no_checks_is_not(scored, tmp_path):
    with pytest.raises(InputError, match="no column `reward`"):
        assay.report(pl.DataFrame({"passed": [True]}))
    frame = pl.DataFrame({"reward": [0.5, 1.0], "passed": [False, True]})
    found = assay.report(frame)
    assert found.checks == []
    assert [example["row"] for example in found.examples["worst"]] == [0]
    assert any("columns of checks" in note for note in found.notes)
    with pytest.raises(UsageError, match='by="modle"'):
        assay.report(frame, by="modle")
    with pytest.raises(UsageError, match="examples=-1"):
        assay.report(frame, examples=-1)


@pytest.mark.parametrize(
    "frame",
    [
        pl.DataFrame({"reward": []}, schema={"reward": pl.Float64}),
        pl.DataFrame({"reward": [None, None], "passed": [None, None], "check/v/a": [None, None]}),
        pl.DataFrame({"reward": [float("nan"), float("inf")], "check/v/a": [float("nan"), 1.0]}),
        pl.DataFrame({"reward": [1e308, -1e308, 5.0] * 10, "check/v/a": [1e308, -1e308, 0.0] * 10}),
        pl.DataFrame({"reward": [2.0] * 3, "task_id": [None] * 3, "model": [None] * 3, "step": [None] * 3}),
        pl.DataFrame({"reward": [0.1], "step": [float("nan")], "model": [{"a": 1}], "task_id": [b"\xff"]}),
        pl.DataFrame({"reward": [1, 0], "check/a/b/c": [True, False], "task_id": [["x"], ["y"]]}),
    ],
    ids=["no rows", "nothing scored", "not finite", "huge", "all null", "odd keys", "other types"],
)
def test_strange_results_have_reports_without_what_json_lacks(frame):
    found = assay.report(frame)
    assert json.loads(json.dumps(found.as_json(), allow_nan=False))["insight"] == 1
    assert found.summary["rows"] == frame.height
    assert found.html().startswith("<!DOCTYPE html>")
    assert found.markdown().startswith("# ")


def test_the_same_result_gives_the_same_bytes_whatever_the_engine_reads_at_once(tmp_path):
    frame = drawn(5_000, 7)
    frame.write_parquet(tmp_path / "a.parquet", row_group_size=333)
    frame.write_parquet(tmp_path / "b.parquet")

    def told(name, **sizes):
        with set_to(**sizes):
            data = assay.report(tmp_path / name).as_json()
        data["provenance"].pop("name")
        return json.dumps(data)

    first = told("a.parquet")
    assert {told("a.parquet"), told("b.parquet"), told("b.parquet", grouped_rows=1)} == {first}


def test_bins_are_closed_on_the_left():
    found = histogram_of(pl.Series([low for low, _ in pairwise(at / 20 for at in range(21))]))
    assert sum(found["bins"]) == 20
    assert histogram_of(pl.Series([3.0, 3.0]))["bins"][0] == 2
