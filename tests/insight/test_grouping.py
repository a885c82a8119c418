"""Groups of rollouts: worked cases, a plain definition of all numbers, and what is missing or strange."""

import itertools
import json
import math
import os
import random
import statistics
import subprocess
import sys

import polars as pl
import pytest
from cases import sized
from insight_cases import golden, golden_rows
from waiting import PATIENCE

import assay
from assay import UsageError
from assay.insight import stats
from assay.insight.training.estimators import ESTIMATORS
from assay.thresholds import EVER, set_to


def metric(groups, name, **of):
    frame = groups.summary.filter(pl.col("metric") == name, *(pl.col(column) == value for column, value in of.items()))
    assert frame.height == 1
    return frame.row(0, named=True)


def test_advantages_of_the_worked_cases():
    case = golden("groups.advantage")
    rows = [(f"t{number}", reward) for number, group in enumerate(case.input["groups"]) for reward in group]
    frame = pl.DataFrame(rows, schema={"task_id": pl.String, "reward": pl.Float64}, orient="row")
    for name, key in (("grpo", "grpo_eps_1e-6"), ("dr_grpo", "dr_grpo"), ("rloo", "rloo")):
        groups = assay.groups(frame, advantages=name)
        assert groups.table["flat"].to_list() == case.expect["flat"]
        for ours, theirs in zip(groups.table["advantage"].to_list(), case.expect[key], strict=True):
            assert ours == [value if value is None else pytest.approx(value, abs=case.tolerance) for value in theirs]
        assert groups.table["advantage"][0].to_list() == [0.0, 0.0, 0.0]  # exactly
        assert groups.advantages.to_list() == list(itertools.chain(*groups.table["advantage"].to_list()))
        assert groups.table.explode("row", "advantage")["row"].to_list() == list(range(len(rows)))


def test_two_models_of_the_worked_cases():
    groups = assay.groups(golden_rows(), k=[1, 4], vote="vote")
    assert metric(groups, "pass@1", model="ash")["value"] == 0.25
    assert metric(groups, "pass@1", model="elm")["value"] == 0.625
    (pair,) = groups.pairs.rows(named=True)
    assert (pair["a"], pair["b"], pair["tasks"]) == ("ash", "elm", 6)
    shown = [round(pair[name], 4) for name in ("difference", "p", "low", "high")]
    assert shown == [0.1759, 0.0448, 0.0060, 0.3458]
    assert pair["p_holm"] == pair["p"]
    assert (pair["wins"], pair["ties"], pair["losses"]) == (5, 0, 1)
    assert groups.facts["k"] == [1, 4]


def draw(seed):
    """Rollouts of some models on some tasks at some steps, with nulls everywhere."""
    rng, rows = random.Random(seed), []
    for task, model, step in itertools.product(range(rng.randint(2, 8)), "xyz", range(rng.randint(1, 2))):
        for _ in range(rng.choice((0, 1, 2, 3, 5))):
            reward = rng.choice((None, 0.0, 0.1, 0.1, 0.5, 1.0, 1.0))
            passed, model_or_null = None if reward is None else reward == 1.0, None if model == "z" else model
            named = (rng.choice([f"t{task}"] * 9 + [None]), model_or_null, step)
            rows.append((*named, reward, passed, rng.choice(("a", "b", "c", None))))
    rng.shuffle(rows)
    names = ("task_id", "model", "step", "reward", "passed", "vote")
    return [dict(zip(names, row, strict=True)) for row in rows]


def of_subsets(rows, k, value):
    if len(rows) < k:
        return None
    values = [value(subset) for subset in itertools.combinations(rows, k)]
    return sum(values) / len(values)


def majority(rows, subset):
    votes = [row["vote"] for row in subset if row["vote"] is not None]
    tally = {vote: votes.count(vote) for vote in votes}
    leaders = [vote for vote, count in tally.items() if count == max(tally.values())]
    worth = [statistics.mean(row["passed"] for row in rows if row["vote"] == vote) for vote in leaders]
    return sum(worth) / len(worth) if worth else 0.0


def measures(rows, ks):
    rewards = [row["reward"] for row in rows]
    flat = None if len(rows) < 2 else min(rewards) == max(rewards)
    numbers = {"scored": len(rows), "passed": sum(row["passed"] for row in rows)}
    numbers |= {"mean": statistics.mean(rewards), "min": min(rewards), "max": max(rewards)} if rows else {}
    numbers |= {"std": 0.0 if flat else statistics.stdev(rewards) if len(rows) > 1 else None, "flat": flat}
    kinds = {
        "pass@": lambda subset: any(row["passed"] for row in subset),
        "pass^": lambda subset: all(row["passed"] for row in subset),
        "best@": lambda subset: max(row["reward"] for row in subset),
        "worst@": lambda subset: min(row["reward"] for row in subset),
        "maj@": lambda subset: majority(rows, subset),
    }
    for k, (kind, value) in itertools.product(ks, kinds.items()):
        numbers[f"{kind}{k}"] = of_subsets(rows, k, value)
    return numbers


def by_definition(rows, ks, unscored):
    groups = {}
    for row in rows:
        if row["task_id"] is not None:
            groups.setdefault((row["task_id"], row["model"], row["step"]), []).append(row)
    result = {}
    for key, of_group in groups.items():
        if unscored == "fail":
            scored = [row if row["reward"] is not None else row | {"reward": 0.0, "passed": False} for row in of_group]
        else:
            scored = [row for row in of_group if row["reward"] is not None]
        result[key] = {"rows": len(of_group), **measures(scored, ks)}
    return result


@pytest.mark.parametrize("seed", range(sized(40, 6)))
def test_numbers_are_those_of_the_definition(seed):
    rows, unscored = draw(seed), ("skip", "fail")[seed % 2]
    if not any(row["reward"] is not None and row["task_id"] is not None for row in rows):
        pytest.skip("nothing is scored")
    ks = [1, 2] if max(group["scored"] for group in by_definition(rows, (), unscored).values()) > 1 else [1]
    groups = assay.groups(pl.DataFrame(rows, infer_schema_length=None), k=ks, vote="vote", unscored=unscored)
    expected = by_definition(rows, ks, unscored)
    assert groups.table.height == len(expected)
    for row in groups.table.iter_rows(named=True):
        numbers = expected[row["task_id"], row["model"], row["step"]]
        for name, value in numbers.items():
            assert row[name] == (value if value is None else pytest.approx(value, abs=1e-12)), name
    names = ["mean", *(f"{kind}@{k}" for kind in ("pass", "best", "maj") for k in ks)]
    for model, name in itertools.product(("x", "y", None), names):
        check_mean(groups, model, name, expected)
    assert groups.facts["left_out"] == sum(row["task_id"] is None for row in rows)


def check_mean(groups, model, name, expected):
    values = [(key[0], of[name]) for key, of in expected.items() if key[1] == model and of.get(name) is not None]
    of_model = groups.summary.filter(pl.col("model").eq_missing(pl.lit(model)), pl.col("metric") == name)
    if not values:
        assert of_model["value"].null_count() == of_model.height
        return
    (row,) = of_model.iter_rows(named=True)
    mean, tasks = statistics.mean(value for _, value in values), {task for task, _ in values}
    squares = sum(sum(value - mean for of, value in values if of == task) ** 2 for task in tasks)
    se = math.sqrt(len(tasks) / (len(tasks) - 1) * squares) / len(values) if len(tasks) > 1 else None
    assert (row["groups"], row["tasks"]) == (len(values), len(tasks))
    assert (row["value"], row["se"]) == (pytest.approx(mean, abs=1e-12), se and pytest.approx(se, abs=1e-12))
    assert len(tasks) > 1 or row["low"] is row["high"] is None


def test_groups_are_the_same_however_many_are_read_at_once():
    frame = pl.DataFrame(draw(2), infer_schema_length=None)
    options = {"k": [1, 2], "vote": "vote", "advantages": "rloo"}
    whole = assay.groups(frame, **options)
    for rows_at_once in (0, 1, 7, 100, EVER):
        with set_to(grouped_rows=rows_at_once):
            part = assay.groups(frame, **options)
        assert part.table.equals(whole.table)
        assert part.advantages.equals(whole.advantages)
        assert part.as_json() == whole.as_json()


def test_the_row_mean_and_its_design_effect():
    groups = assay.groups(golden_rows())
    rows = golden_rows().filter(pl.col("model") == "ash", pl.col("reward").is_not_null())
    row = metric(groups, "row_mean", model="ash")
    mean = statistics.mean(rows["reward"])
    deviations = rows.with_columns(pl.col("reward") - mean).group_by("task_id").agg(pl.col("reward").sum())["reward"]
    clustered = math.sqrt(6 / 5 * sum(value**2 for value in deviations)) / rows.height
    naive = statistics.stdev(rows["reward"]) / math.sqrt(rows.height)
    expected = {"value": mean, "se": clustered, "naive_se": naive, "design_effect": (clustered / naive) ** 2}
    assert {name: row[name] for name in expected} == pytest.approx(expected)


def test_one_row_a_task_of_zeros_and_ones_has_wilsons_interval():
    frame = pl.DataFrame({"task_id": list("abcdefghij"), "reward": [1.0] * 7 + [0.0] * 3})
    groups = assay.groups(frame.with_columns(passed=pl.col("reward") == 1))
    for name in ("mean", "pass@1", "row_mean"):
        row = metric(groups, name)
        assert ((row["low"], row["high"]), row["few"]) == (stats.wilson(7, 10), True)
    assert metric(groups, "flat")["value"] is None
    graded = assay.groups(frame.with_columns(reward=pl.col("reward") / 2, passed=pl.col("reward") == 1))
    assert metric(graded, "mean")["low"] != metric(graded, "pass@1")["low"] == stats.wilson(7, 10)[0]


def test_rates_stay_in_zero_to_one_and_means_need_not():
    groups = assay.groups(golden_rows(), k=4)
    assert metric(groups, "pass@4", model="ash")["high"] == 1.0
    assert metric(groups, "best@4", model="ash")["high"] > 1.0


def test_the_bootstrap_draws_tasks_in_utf8_order():
    frame = golden_rows().filter(pl.col("model") == "ash")
    tasks = {"t0": "é", "t1": "z", "t2": "ab", "t3": "a", "t4": "Z", "t5": "10"}
    frame = frame.with_columns(pl.col("task_id").replace(tasks))
    groups = assay.groups(frame, k=4, ci="bootstrap", seed=5)
    table = groups.table.sort("task_id").drop_nulls("best@4")  # Polars sorts by bytes
    low, high = stats.bootstrap(table["best@4"], pl.Series([1] * table.height), seed=5)
    row = metric(groups, "best@4")
    assert (row["low"], row["high"]) == (low, high)
    mixed = frame.sample(fraction=1.0, shuffle=True, seed=1)
    assert assay.groups(mixed, k=4, ci="bootstrap", seed=5).as_json() == groups.as_json()
    frame = pl.DataFrame({"task_id": [2, 10, 1], "reward": [0.0, 0.5, 1.0]})  # numbers are sorted as text
    row = metric(assay.groups(frame, ci="bootstrap"), "mean")
    assert (row["low"], row["high"]) == stats.bootstrap(pl.Series([1.0, 0.5, 0.0]), pl.Series([1, 1, 1]))


def test_pairs_of_models_share_tasks_and_holm():
    rows = [
        {"task_id": f"t{task}", "model": model, "reward": (task * number % 7) / 7}
        for number, model in enumerate(("elm", "ash", "fir"), 1)
        for task in range(6 + number)
    ]
    groups = assay.groups(pl.DataFrame(rows))
    assert groups.pairs.select("a", "b", "tasks").rows() == [("ash", "elm", 7), ("ash", "fir", 8), ("elm", "fir", 7)]
    assert groups.pairs["p_holm"].to_list() == stats.holm(groups.pairs["p"].to_list())
    same = [row | {"model": model, "reward": 0.1} for row in rows for model in ("a", "b")]
    (pair,) = assay.groups(pl.DataFrame(same)).pairs.rows(named=True)
    assert (pair["difference"], pair["se"], pair["t"], pair["p"], pair["correlation"]) == (0.0, 0.0, None, 1.0, None)
    alone = pl.DataFrame(rows).filter(pl.col("task_id") == "t1", pl.col("model") != "fir")
    (pair,) = assay.groups(alone).pairs.rows(named=True)
    assert (pair["tasks"], pair["se"], pair["p"], pair["low"]) == (1, None, None, None)
    frame = pl.DataFrame({"task_id": ["a", "b"], "model": ["x", "y"], "reward": [1.0, 0.0]})  # no task in common
    assert assay.groups(frame).pairs.height == 0
    assert assay.groups(frame.drop("model")).summary.columns[0] == "metric"


def test_many_models_are_not_compared():
    frame = pl.DataFrame({"task_id": ["a"] * 60, "model": list(range(60)), "reward": [1.0] * 60})
    groups = assay.groups(frame)
    assert groups.pairs.height == 0
    assert "60 values of model: at most 50 are compared in pairs" in groups.notes


def test_nothing_scored_no_rows_and_no_passed():
    frame = pl.DataFrame({"task_id": ["a", "a"], "reward": [None, None], "passed": [None, None]})
    groups = assay.groups(frame, k=4, advantages="grpo")
    numbers = groups.table.select("rows", "scored", "passed", "mean", "pass@4", "best@4").row(0)
    assert (numbers, groups.advantages.to_list()) == ((2, 0, 0, None, None, None), [None, None])
    assert metric(groups, "mean")["value"] is None
    assert "no row has a reward" in groups.notes
    assert json.dumps(groups.as_json())
    empty = pl.DataFrame(schema={"task_id": pl.String, "reward": pl.Float64, "passed": pl.Boolean})
    groups = assay.groups(empty, k=1, advantages="grpo")
    assert (groups.table.height, len(groups.advantages), groups.as_json()["groups"]) == (0, 0, 0)
    groups = assay.groups(pl.DataFrame({"task_id": ["a", "a"], "reward": [1.0, 0.0]}), k=2)
    assert " ".join(groups.table.columns) == "task_id rows scored mean std min max flat best@2 worst@2"
    assert groups.notes == ("without a column `passed` there is no pass@k",)


def test_sizes_by_default_are_those_that_groups_have():
    rows = [{"task_id": f"{task}", "reward": 1.0, "passed": True} for task in range(3) for _ in range(3 + task)]
    assert assay.groups(pl.DataFrame(rows)).facts["k"] == [1, 4]
    groups = assay.groups(pl.DataFrame(rows), k=[5, 5, 2])
    assert groups.facts["k"] == [5, 2]
    assert groups.notes == ("2 of 3 groups have fewer than 5 rows with a reward: left out of pass@5 and its kind",)


def test_groups_of_one_row_because_of_their_steps_have_a_note():
    rows = [{"task_id": "a", "model": "m", "step": step, "reward": 1.0} for step in range(3)]
    assert assay.groups(pl.DataFrame(rows)).notes[-1].endswith("--group task_id,model joins the steps")
    assert assay.groups(pl.DataFrame(rows), group=["task_id", "model"]).facts["groups"] == 1


def test_columns_of_tasks_and_groups_can_be_named():
    rows = [
        {"set": at // 4, "q": at // 2 % 2, "run": "r" * (1 + at % 3), "reward": float(at % 2), "model": "m"}
        for at in range(12)
    ]
    frame = pl.DataFrame(rows)
    groups = assay.groups(frame, task=["set", "q"])
    assert (groups.facts["tasks"], groups.facts["group"]) == (6, ["set", "q", "model"])
    runs = assay.groups(frame, task=["set", "q"], group=["set", "q", "run"], by="run")
    assert (runs.facts["tasks"], runs.table.columns[:3]) == (6, ["set", "q", "run"])
    assert assay.groups(frame, task="set", group=["q", "set"], by=[]).facts["groups"] == 6
    with pytest.raises(UsageError, match="the group q 0, model m has rows of several tasks: 0, "):
        assay.groups(frame, task="set", group="q")
    inner = frame.with_columns(batch=pl.col("set") * 10 + pl.col("q"))
    assert assay.groups(inner, task="set", group="batch").facts["tasks"] == 3


MANY = pl.DataFrame({"task_id": range(3000), "reward": [1.0] * 3000})
VOTES = pl.DataFrame({"task_id": ["a"] * 300, "reward": [1.0] * 300, "passed": True, "vote": "x"})
HALF = pl.DataFrame({"task_id": ["a", "a"], "reward": [1.0, 0.0], "tokens": [0.5, 1.0]})


@pytest.mark.parametrize(
    ("frame", "options", "message"),
    [
        (None, {"k": 5}, "--k 5: no group has so many rows with a reward; the largest has 4"),
        (None, {"k": [0]}, "--k 0: expected numbers of rows"),
        (None, {"k": [1.5]}, "--k 1.5: expected numbers of rows"),
        (None, {"advantages": "grop"}, "--advantages grop: unknown.\n\nDid you mean `grpo`?"),
        (None, {"unscored": "drop"}, "--unscored drop: unknown"),
        (None, {"ci": "wald"}, "--ci wald: unknown"),
        (None, {"eps": -1.0}, "--eps -1.0: expected a number"),
        (None, {"by": ["modl"]}, "--by modl: the frame has no such column.\n\nDid you mean `model`?"),
        (None, {"vote": "votes"}, "--vote votes: the frame has no such column"),
        (None, {"task": "reward_id"}, "--task reward_id"),
        (None, {"by": "passed"}, "`passed` names a group"),
        (None, {"thresholds": [1.5]}, "expected shares from 0 to 1"),
        (None, {"thresholds": -0.1}, "expected shares from 0 to 1"),
        (None, {"thresholds": ["x"]}, "expected shares from 0 to 1"),
        (MANY, {"by": "task_id"}, "--by task_id: 3,000 values; at most 2,000"),
        (VOTES, {"vote": "vote"}, "at most 256"),
        (VOTES.drop("passed"), {"vote": "vote"}, "no column `passed`"),
        (VOTES.drop("task_id"), {}, "no column names the task"),
        (HALF, {"advantages": "verl-opo", "length": "tokens"}, "--length tokens: expected whole numbers"),
    ],
)
def test_options_and_frames_that_cannot_be_used(frame, options, message):
    with pytest.raises(UsageError) as caught:
        assay.groups(golden_rows() if frame is None else frame, **options)
    assert message in caught.value.text
    assert caught.value.exit_code == 2


def test_rewards_that_are_no_numbers_are_unscored_and_large_ones_stay_finite():
    rewards = [1e308, -1e308, math.nan, 1e308, 1e308, math.inf]
    frame = pl.DataFrame({"task_id": ["a"] * 3 + ["b"] * 3, "reward": rewards})
    groups = assay.groups(frame, k=2, advantages="grpo")
    assert groups.facts["scored"] == 4
    json.dumps(groups.as_json(), allow_nan=False)
    numbers = groups.table.select(pl.selectors.float())
    assert not any(numbers[name].is_nan().any() or numbers[name].is_infinite().any() for name in numbers.columns)
    assert groups.advantages.drop_nulls().is_finite().all()


@pytest.mark.long
def test_the_same_input_gives_the_same_bytes_with_any_number_of_threads(tmp_path):
    frame = pl.DataFrame([row for seed in range(9) for row in draw(seed)], infer_schema_length=None)
    frame.write_parquet(tmp_path / "rewards.parquet")
    code = (
        "import assay, json, sys; g = assay.groups(sys.argv[1], vote='vote', ci='bootstrap');"
        "print(json.dumps(g.as_json()), g.table.hash_rows().to_list())"
    )
    found = [
        subprocess.run(
            [sys.executable, "-c", code, tmp_path / "rewards.parquet"],
            env={**os.environ, "POLARS_MAX_THREADS": threads},
            capture_output=True,
            check=True,
            timeout=PATIENCE,
        ).stdout
        for threads in ("1", "5")
    ]
    assert found[0] == found[1]


def test_keys_of_any_type():
    keys = {"model": pl.col("model").cast(pl.Categorical), "task_id": pl.struct(a="task_id", b=1)}
    groups = assay.groups(golden_rows().with_columns(step=pl.lit(1.5), **keys), k=2)
    assert groups.pairs["difference"].to_list() == assay.groups(golden_rows(), k=2).pairs["difference"].to_list()
    json.dumps(groups.as_json())


@pytest.mark.parametrize("like", sized([*ESTIMATORS], ["trl-grpo", "verl-gdpo", "verl-remax"]))
def test_groups_have_the_advantages_of_a_trainer(like):
    frame = pl.DataFrame(draw(3), infer_schema_length=None).with_row_index("tokens").with_columns(baseline=0.25)
    frame = frame.with_columns(
        tokens=pl.col("tokens") % 7, **{"check/a": 0.5 * pl.col("tokens") % 3, "check/b": "reward"}
    )
    options = {"length": "tokens", "baseline": "baseline"}
    groups = assay.groups(frame, advantages=like, **options)
    scored = pl.when(pl.col("reward").is_not_null()).then(pl.col("check/a", "check/b"))
    rewards = ["check/a", "check/b"] if ESTIMATORS[like].several else "reward"
    keys = list(groups.facts["group"])
    keyed = frame.with_columns(scored, pl.struct(keys).rank("dense").alias("group"))
    keyed = keyed.with_columns(pl.when(pl.all_horizontal(pl.col(groups.facts["task"]).is_not_null())).then("group"))
    expected = assay.advantages(keyed, "group", like=like, reward=rewards, **options).frame["advantage"]
    assert groups.advantages.to_list() == expected.to_list()
    table = groups.table.explode("row", "advantage", empty_as_null=False).drop_nulls("row").sort("row")
    assert table["advantage"].to_list() == [groups.advantages[row] for row in table["row"]]


def test_unscored_rows_may_count_as_failures_to_trainers():
    frame = pl.DataFrame({"task_id": ["a", "a"], "reward": [1.0, None], "base": [1, 1]})
    assert assay.groups(frame, advantages="verl-remax", baseline="base").advantages.to_list() == [0.0, None]
    assert assay.groups(frame, advantages="prime-rl-grpo").advantages.to_list() == [0.0, None]
    assert assay.groups(frame, advantages="prime-rl-grpo", unscored="fail").advantages.to_list() == [0.5, -0.5]


def test_g_pass_at_k():
    frame = pl.DataFrame({"task_id": ["a"] * 4 + ["b"] * 4, "reward": [1.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 0.0]})
    groups = assay.groups(frame.with_columns(passed=pl.col("reward") == 1), k=2, thresholds=[0.5, 1])
    table = groups.table.select("pass@2", "g-pass@2_0.5", "g-pass@2_1.0", "mg-pass@2")
    assert table.rows() == [(1.0, 1.0, 0.5, 0.5), (0.5, 0.5, 0.0, 0.0)]
    assert metric(groups, "g-pass@2_1.0")["value"] == 0.25


OUTCOME_ROWS = [
    {"task_id": task, "model": model, "completion": text, "finish_reason": end}
    for task in ("a", "b", "c")
    for model in ("elm", "oak")
    for text, end in (
        [(r"\boxed{4}", "stop"), ("4", "stop"), ("4", "length"), (None, None)]
        if (task, model) != ("c", "oak")
        else [(r"\boxed{5}", None)] * 2
    )
]
BOXED = {"id": "v", "checks": [{"id": "box", "type": "equals", "value": "4", "on": ["boxed"]}]}


def test_outcomes_are_counted_with_the_column_or_on_demand():
    plain = assay.score(OUTCOME_ROWS, BOXED)
    without = assay.groups(plain)
    found = assay.groups(plain, outcome=True)
    assert found.table.equals(assay.groups(assay.score(OUTCOME_ROWS, BOXED, outcome=True)).table)
    names = ["pass", "fail", "not_found", "truncated", "error", "unscored"]
    assert found.table.drop(names).equals(without.table)
    assert found.table.select(names).rows() == [(1, 0, 1, 1, 0, 1)] * 5 + [(0, 2, 0, 0, 0, 0)]
    assert found.facts["outcomes"] == dict(zip(names, (5, 2, 5, 5, 0, 5), strict=True))
    assert "outcomes" not in without.as_json()
    for model, metric, share in (("elm", "not_found", 3 / 9), ("oak", "not_found", 2 / 8), ("oak", "truncated", 2 / 8)):
        (row,) = found.summary.filter(model=model, metric=metric).iter_rows(named=True)
        assert (row["value"], row["tasks"]) == (pytest.approx(share), 3)
        # by task: m = Σv/Σn, se² = C/(C−1)·Σ(Σ(v − m))²/(Σn)²
        sums = [(1, 3), (1, 3), (1, 3)] if model == "elm" else [(1, 3), (1, 3), (0, 2)]
        rows = sum(n for _, n in sums)
        se = math.sqrt(3 / 2 * sum((v - share * n) ** 2 for v, n in sums)) / rows
        assert row["se"] == pytest.approx(se)
        assert 0 <= row["low"] <= row["value"] <= row["high"] <= 1
    text = found.document().markdown()
    assert "outcomes: pass 5 · fail 2 · not\\_found 5 · truncated 5 · error 0 · unscored 5" in text
    assert "| oak | 25.0 % \\[0, " in text
    with pytest.raises(assay.UsageError, match="`error` names a group"):
        assay.groups(plain.with_columns(pl.lit("x").alias("fail")), by="error", outcome=True)
