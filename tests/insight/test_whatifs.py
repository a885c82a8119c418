"""Rewards with other weights: bit for bit those of a run with the changed spec, and how the models rank."""

import itertools
import json
import random

import polars as pl
import pytest
import spec_rewards
from cases import crossed
from insight_cases import golden, golden_rows

import assay
from assay import InputError, UsageError
from assay.insight.whatifs import ranked, write_rewards
from assay.writing.writers import open_writer

CHECKS = [
    {"id": "facts", "type": "contains", "value": "a", "weight": 4},
    {"id": "short", "type": "contains", "value": "b"},
    {"id": "tone", "type": "contains", "value": "c"},
]
SPEC = {"id": "v", "passThreshold": 0.75, "checks": CHECKS}
ROWS = [
    {"task_id": f"t{at % 5}", "model": "elm" if at % 2 else "ash", "completion": None if at == 7 else text}
    for at, text in enumerate(random.Random(1).choices(["a", "abc", "bc", "", "a b", "c" * 12, "ab"], k=40))
]


def stored(path, rows, spec):
    """A result with the scores of these rows, as if the spec had made them."""
    verifier = assay.load_verifier(spec)
    checks = [{"id": check.id, "type": check.type, "weight": check.weight} for check in verifier.runnable]
    entry = {"id": "v", "kind": "native", "canonical": verifier.canonical, "sha256": verifier.sha256, "checks": checks}
    frame = rows.rename({check.id: f"check/v/{check.id}" for check in verifier.checks}, strict=False)
    frame = frame.with_columns(pl.col("reward").alias("score/v"))
    with open_writer(path, frame.schema) as writer:
        writer.write(frame)
        writer.close({"verifiers": [entry], "rows": frame.height})
    return path


@pytest.fixture
def worked(tmp_path):
    return stored(tmp_path / "rewards.parquet", golden_rows(), SPEC)


def scored(path, spec, rows=ROWS):
    assay.score_file(pl.DataFrame(rows), spec, path, overwrite=True)
    return path


def test_rewards_of_the_worked_case(worked, tmp_path):
    case, out = golden("whatif.rewards"), tmp_path / "new.parquet"
    required = dict.fromkeys(case.input["required"], True)
    change = {"weights": case.input["weights"], "required": required}
    found = assay.whatif(worked, **change, pass_threshold=case.input["pass_threshold"])
    assert found.before["pass_rate"] == case.expect["pass_rate_before"]
    assert found.after["pass_rate"] == case.expect["pass_rate_after"]
    write_rewards(worked, out, **change)
    write_rewards(worked, tmp_path / "same.parquet")
    new, same = pl.read_parquet(out), pl.read_parquet(tmp_path / "same.parquet")
    assert (new["reward"].to_list(), new["passed"].to_list()) == (case.expect["reward"], case.expect["passed"])
    assert same["reward"].to_list() == case.expect["unchanged_weights_give_reward"]
    assert found.diff.flips == sum(one != two for one, two in zip(golden_rows()["passed"], new["passed"], strict=True))
    assert found.after["weights"] == case.input["weights"]
    assert (found.before["required"], found.after["required"]) == ([], ["tone"])


def test_sensitivity_of_the_worked_case(worked):
    case = golden("whatif.sensitivity")
    found = {entry["check"]: entry for entry in assay.whatif(worked).sensitivity}
    for check, numbers in case.expect.items():
        for name, value in numbers.items():
            assert found[check][name] == pytest.approx(value, rel=case.tolerance, abs=1e-15)
    assert found["facts"]["pass_rate"]["2"] == rate(8.0, 1.0, 1.0)
    assert found["short"]["pass_rate"]["0"] == rate(4.0, 0.0, 1.0)
    assert found["tone"]["pass_rate"]["0.5"] == rate(4.0, 1.0, 0.5)


def rate(*weights):
    """The share of the worked rows that pass at 0.75 with these weights."""
    rows = golden_rows().drop_nulls("reward").select("facts", "short", "tone").rows()
    rewards = [(weights[0] * f + weights[1] * s + weights[2] * t) / sum(weights) for f, s, t in rows]
    return sum(reward >= 0.75 for reward in rewards) / len(rewards)


def test_slopes_are_the_differences_of_small_steps(worked):
    for entry in assay.whatif(worked).sensitivity[:2]:
        weights = ({entry["check"]: entry["weight"] + step} for step in (1e-4, -1e-4))
        above, below = (assay.whatif(worked, weights=one).after["mean_reward"] for one in weights)
        assert (above - below) / 2e-4 == pytest.approx(entry["slope"], abs=1e-7)
        without = assay.whatif(worked, drop=entry["check"]).after["mean_reward"]
        assert without == pytest.approx(entry["mean_without"])


ANY = [{"type": "contains", "value": "x"}, {"type": "contains", "value": "b"}]
ROLES = [
    CHECKS[0],
    {"id": "short", "type": "max_length", "value": 2, "penalty": 0.5},
    {**CHECKS[2], "when": {"check": {"type": "min_length", "value": 1}}},
    {"id": "gate", "type": "min_length", "value": 1, "gate": True},
    {"id": "any", "type": "any_of", "checks": ANY},
]
SPECS = {
    "plain": SPEC,
    "several": [SPEC, {"id": "w", "checks": [{"id": "other", "type": "max_length", "value": 3, "weight": 2}]}],
    "roles": {"id": "v", "checks": ROLES},
    "sums": {"id": "v", "combine": "sum", "range": None, "checks": CHECKS},
}
CHANGES = [
    {},
    {"weights": {"facts": 0.7, "short": 3}},
    {"required": {"tone": True}, "pass_threshold": 0.3},
    {"drop": "short", "weights": {"tone": 0.1}},
]


def changed_spec(spec, change):
    """The spec as a user would edit it."""
    spec = json.loads(json.dumps(spec))
    for one in spec if isinstance(spec, list) else [spec]:
        if "pass_threshold" in change:
            one["passThreshold"] = change["pass_threshold"]
        for check in one["checks"]:
            weight = 0.0 if check["id"] == change.get("drop") else change.get("weights", {}).get(check["id"])
            if weight is not None:
                check["penalty" if "penalty" in check else "weight"] = weight
            if check["id"] in change.get("required", {}):
                check["required"] = True
    return spec


@pytest.mark.parametrize("name", SPECS)
def test_what_is_written_is_what_the_changed_spec_scores(name, tmp_path):
    result = scored(tmp_path / "before.parquet", SPECS[name])
    for change in CHANGES:
        if name == "roles" and "short" in change.get("weights", {}):
            change = {"weights": {**change["weights"], "short": 0.75}}  # noqa: PLW2901
        expected = scored(tmp_path / "expected.parquet", changed_spec(SPECS[name], change))
        write_rewards(result, tmp_path / "new.parquet", **change)
        new, wanted = assay.read_provenance(tmp_path / "new.parquet"), assay.read_provenance(expected)
        assert new["content"] == wanted["content"]
        for key in ("canonical", "sha256", "checks"):
            assert [one[key] for one in new["verifiers"]] == [one[key] for one in wanted["verifiers"]]
        assert new["derived_from"] == assay.read_provenance(result)["content"]["root"]
        (tmp_path / "new.parquet").unlink()
    found, wanted = assay.whatif(result, **change).diff, assay.diff(result, expected)
    for part in ("delta", "matrix", "by", "flip_test", "reward_test"):
        assert getattr(found, part) == getattr(wanted, part)


ONCE, LONG, GATE, METRIC = (
    {"id": "once", "type": "contains", "value": "a", "when": {"column": "level", "equals": 1}},
    {"id": "long", "type": "min_length", "value": 2},
    {"id": "gate", "kind": "format_only", "when": {"column": "level", "equals": 2}, "gate": True},
    {"id": "metric", "type": "contains", "value": "b", "weight": 0},
)
AT_TIMES = {"id": "v", "checks": [ONCE, LONG, GATE, METRIC]}
LEVELS = [{"completion": text, "level": level} for level in (1, 2, 3) for text in ("a", "abc", None)]


def differing(folder, spec, change, rows=LEVELS):
    """The names of what differs between what is written and a full run with the changed spec."""
    write_rewards(scored(folder / "before.parquet", spec, rows), folder / "new.parquet", **change)
    scored(folder / "full.parquet", changed_spec(spec, change), rows)
    new, full = (pl.read_parquet(folder / f"{name}.parquet") for name in ("new", "full"))
    footers = [assay.read_provenance(folder / f"{name}.parquet") for name in ("new", "full")]
    parts = [name for name in ("content", "verifiers") if footers[0][name] != footers[1][name]]
    return parts + [name for name in full.columns if not new[name].equals(full[name])]


@pytest.mark.parametrize("combine", ["mean", "sum", "min", "max", "product"])
def test_a_row_to_which_no_check_applies_any_more_is_unscored(combine, tmp_path):
    other = {"id": "w", "checks": [{"id": "other", "type": "max_length", "value": 2}], "combine": combine}
    spec, gone = AT_TIMES | {"combine": combine}, "no check applies to this row"
    for specs, change in ((spec, {"drop": "long"}), ([spec, other], {"weights": {"long": 0}})):
        assert differing(tmp_path, specs, change) == []
        errors = pl.read_parquet(tmp_path / "new.parquet")["error"].to_list()
        assert errors[:6:3] + errors[6:] == [None, None, gone, gone, errors[2]]
        (tmp_path / "new.parquet").unlink()


def test_rows_that_lose_their_checks_do_not_count(tmp_path):
    result = scored(tmp_path / "before.parquet", AT_TIMES, LEVELS)
    found = assay.whatif(result, drop="long")
    assert (found.before["scored"], found.after["scored"]) == (6, 4)
    result_of_drop = scored(tmp_path / "dropped.parquet", changed_spec(AT_TIMES, {"drop": "long"}), LEVELS)
    assert found.diff.matrix == assay.diff(result, result_of_drop).matrix
    rates = {entry["check"]: entry["pass_rate"] for entry in assay.whatif(result).sensitivity}
    assert rates["long"]["0"] == pl.read_parquet(result_of_drop)["passed"].mean()


def test_a_gate_that_goes_and_one_that_stays(tmp_path):
    spec, new, full = {"id": "v", "checks": [ONCE, GATE]}, tmp_path / "new.parquet", tmp_path / "full.parquet"
    write_rewards(scored(tmp_path / "before.parquet", spec, LEVELS), new, drop="gate")
    scored(full, {**spec, "checks": [ONCE, {**GATE, "gate": False, "weight": 0}]}, LEVELS)
    assert pl.read_parquet(new).equals(pl.read_parquet(full))
    new.unlink()
    stays = {"id": "v", "checks": [LONG, {"id": "gate", "type": "contains", "value": "a", "gate": True}]}
    assert differing(tmp_path, stays, {"drop": "long"}) == []


def test_a_check_that_did_not_count_needs_scores_of_the_rows_that_no_check_scored(tmp_path):
    spec = {"id": "v", "checks": [ONCE, METRIC]}
    result = scored(tmp_path / "before.parquet", spec, LEVELS)
    for change in ({"weights": {"metric": 1}}, {"weights": {"metric": 1}, "drop": "once"}):
        for look in (assay.whatif, lambda *one, **given: write_rewards(*one, tmp_path / "new.parquet", **given)):
            with pytest.raises(UsageError) as refused:
                look(result, **change)
            assert "no check applied to row 3 and 3 more, so that the score of `metric` there" in refused.value.text
            assert "Score the rollouts again with the changed spec" in refused.value.text
    only_ones = [row for row in LEVELS if row["level"] == 1]
    assert differing(tmp_path, spec, {"weights": {"metric": 1}}, only_ones) == []
    (tmp_path / "new.parquet").unlink()
    several = [{"id": "v", "checks": [LONG, GATE, METRIC]}, {"id": "w", "checks": [ONCE]}]
    assert differing(tmp_path, several, {"weights": {"metric": 1}}) == []  # `long` applies to all rows: those are w's


def test_a_check_of_unknown_type_did_not_run(tmp_path):
    with pytest.warns(assay.AssayWarning, match="unknown check type"):
        result = scored(tmp_path / "r.parquet", {"checks": [SPEC["checks"][0], {"id": "odd", "type": "nonsense"}]})
    for change in ({"drop": "odd"}, {"weights": {"verifier/odd": 2}}, {"required": {"odd": True}}):
        with pytest.raises(UsageError, match="did not run, for its type is unknown, so that its scores are not stored"):
            assay.whatif(result, **change)


class Long(assay.Check):
    """A check of the user's with scores beyond 1."""

    type = "long"
    graded = True
    bounded = False

    def row(self, row):
        return len(row["completion"]) / 2


def test_checks_need_not_be_here_nor_can_they_be_made_again(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other.json").write_text('{"checks": [{"type": "contains", "value": "a"}]}')
    checks = [
        {"id": "own", "type": "long", "weight": 0.25},
        {"id": "included", "type": "spec", "path": "other.json"},
        {"id": "called", "type": "function", "name": "exact_match", "expected": "a"},
        {"id": "class", "kind": "format_only"},
    ]
    changes = ({"drop": "class"}, {"drop": ["included", "called", "class"]})
    for at, change in enumerate(changes):
        for name, spec in (("before", checks), ("full", [{**one} for one in checks])):
            for one in spec:
                if name == "full" and one["id"] in change["drop"]:
                    one["weight"] = 0
            (tmp_path / f"{name}.json").write_text(json.dumps({"id": "v", "checks": spec}))
            options = {"checks": [Long], "overwrite": True}
            assay.score_file(pl.DataFrame(ROWS), f"{name}.json", f"{name}.parquet", **options)
        root = write_rewards("before.parquet", f"{at}.parquet", **change)
        assert root == assay.read_provenance("full.parquet")["content"]["root"]


def test_a_reward_function_that_skips_rows_does_not_apply_to_them(tmp_path):
    evens = {"id": "evens", "type": f"{spec_rewards.HERE}:evens"}
    spec = {"id": "v", "checks": [evens, {"id": "long", "type": "min_length", "value": 2}]}
    assert differing(tmp_path, spec, {"drop": "long"}, ROWS) == []
    assert "no check applies to this row" in pl.read_parquet(tmp_path / "new.parquet")["error"].to_list()
    (tmp_path / "new.parquet").unlink()
    metric = {"id": "metric", "type": "contains", "value": "b", "weight": 0}
    with pytest.raises(UsageError, match="the score of `metric` there, which would count now, is not stored"):
        differing(tmp_path, {"id": "v", "checks": [evens, metric]}, {"weights": {"metric": 1}}, ROWS)


def test_the_footer_has_the_threshold_of_a_class(tmp_path):
    spec, new = {"id": "v", "kind": "format_only", "passThreshold": 0.5}, tmp_path / "new.parquet"
    root = write_rewards(scored(tmp_path / "before.parquet", spec), new, pass_threshold=0)
    full = assay.read_provenance(scored(tmp_path / "full.parquet", spec | {"passThreshold": 0}))
    assert (root, assay.read_provenance(new)["verifiers"]) == (full["content"]["root"], full["verifiers"])
    with pytest.raises(UsageError, match="pass_threshold=-1: no reward of v is below 0"):
        assay.whatif(new, pass_threshold=-1)


def test_a_sum_may_have_negative_weights(tmp_path):
    assert differing(tmp_path, SPECS["sums"], {"weights": {"facts": -0.5, "tone": -0.0}}, ROWS) == []


def correct(completion):
    return 1.0 if "a" in completion else 0.25


def long(completion):
    return len(completion) / 10


def test_members_of_a_rubric(tmp_path):
    members = [correct, long, assay.load_verifier(SPEC)]
    result = scored(tmp_path / "before.parquet", assay.Rubric(funcs=members, weights=[1.0, -0.5, 2.0]))
    expected = scored(tmp_path / "expected.parquet", assay.Rubric(funcs=members, weights=[3.0, -1.5, 2.0]))
    weights = {"correct": 3.0, "long": -1.5}
    root = write_rewards(result, tmp_path / "new.parquet", weights=weights)
    assert root == assay.read_provenance(expected)["content"]["root"]
    found = assay.whatif(result, weights=weights, rank="model")
    assert found.ranking is None
    assert "models are not ranked: the reward is not a weighted mean of the checks" in found.notes
    slopes = {entry["check"]: entry["slope"] for entry in found.sensitivity}
    assert slopes["correct"] == pytest.approx(pl.read_parquet(result)["score/correct"].mean())
    with pytest.raises(UsageError, match="cannot be required"):
        assay.whatif(result, required={"long": True})


def test_results_whose_feedback_would_be_other_are_not_written(tmp_path):
    result = scored(tmp_path / "before.parquet", assay.Rubric(funcs=[correct, long], weights=[1.0, -0.5]))
    for weights in ({"long": 0.5}, {"long": 0}, {"correct": -1}):
        assert assay.whatif(result, weights=weights).diff.changed > 0
        with pytest.raises(UsageError, match="its feedback depends on the sign"):
            write_rewards(result, tmp_path / "new.parquet", weights=weights)
        assert not (tmp_path / "new.parquet").exists()


def test_a_rubric_with_another_threshold(tmp_path):
    rubric = assay.Rubric(funcs=[correct])
    assay.score_file(pl.DataFrame(ROWS), rubric, tmp_path / "before.parquet", pass_threshold=0.25)
    with pytest.raises(InputError, match="`passed` is not what its scores and weights make"):
        assay.whatif(tmp_path / "before.parquet")
    found = assay.whatif(tmp_path / "before.parquet", pass_threshold=1.0)
    assert found.diff.regressions > 0


def test_what_cannot_be_changed(tmp_path, worked):
    grouped = scored(tmp_path / "grouped.parquet", SPECS["roles"])
    assay.score_file(pl.DataFrame(ROWS), SPEC, tmp_path / "bare.parquet", details=False)
    named = [{"completion": "4", "fn_name": "exact_match", "expected": "4"}]
    assay.score_file(named, None, tmp_path / "named.parquet")
    refused = [
        (worked, {"weights": {"fact": 1}}, UsageError, "no check is called `fact`"),
        (worked, {"weights": {"facts": -1}}, UsageError, "not negative"),
        (worked, {"weights": {"facts": float("nan")}}, UsageError, "expected a number"),
        (worked, {"weights": {"facts": 0, "short": 0}, "drop": "tone"}, UsageError, "no check has a weight left"),
        (worked, {"pass_threshold": float("inf")}, UsageError, "pass_threshold=inf"),
        (worked, {"rank": "modle"}, UsageError, 'rank="modle"'),
        (grouped, {"weights": {"any.contains": 2}}, UsageError, "is in the group `any`"),
        (grouped, {"weights": {"gate": 2}}, UsageError, "is a gate"),
        (tmp_path / "bare.parquet", {}, InputError, "has no columns of checks"),
        (pl.read_parquet(worked), {}, InputError, "does not say which verifiers made it"),
        (tmp_path / "named.parquet", {}, InputError, "no columns of checks"),
    ]
    for result, change, error, message in refused:
        with pytest.raises(error, match=message) as caught:
            assay.whatif(result, **change)
        assert caught.value.exit_code == 2


def test_a_result_whose_rewards_are_not_made_of_its_scores_is_refused(tmp_path):
    rows = golden_rows().with_columns(reward=pl.when(pl.int_range(pl.len()) == 3).then(0.25).otherwise("reward"))
    with pytest.raises(InputError, match="on 1 row, `reward` is not what its scores and weights make"):
        assay.whatif(stored(tmp_path / "rewards.parquet", rows, SPEC))


def total(means, shares):
    return sum(share * mean for share, mean in zip(shares, means, strict=True))


def shifted(shares, at, to):
    """Shares with one moved, the others in proportion."""
    return [to if one == at else share * (1 - to) / (1 - shares[at]) for one, share in enumerate(shares)]


def test_ties_are_where_two_models_have_the_same_mean():
    rng = random.Random(2)
    for _ in range(10):
        weights = [rng.random() + 0.05 for _ in range(4)]
        shares = [weight / sum(weights) for weight in weights]
        means = {name: [rng.random() for _ in range(4)] for name in ("ash", "elm", "fir", "oak")}
        found = ranked(means, [list(enumerate(shares))], list("abcd"))
        order = [entry["model"] for entry in found["order"]]
        assert order == sorted(means, key=lambda name: -total(means[name], shares))
        for tie in found["tie_share"]:
            at = "abcd".index(tie["check"])
            new = shifted(shares, at, tie["tie"])
            assert total(means[tie["above"]], new) == pytest.approx(total(means[tie["below"]], new))
            assert tie["cost"] == pytest.approx(abs(tie["tie"] - shares[at]))
        costs = [move["cost"] for move in found["pareto"]]
        assert costs == sorted(costs)
        for move in found["pareto"]:
            at = "abcd".index(move["check"])
            beyond = move["to"] + (1e-9 if move["to"] >= shares[at] else -1e-9)
            new = shifted(shares, at, beyond)
            pairs = itertools.combinations(order, 2)
            turned = sum(total(means[one], new) < total(means[two], new) for one, two in pairs)
            assert turned == move["reversed"]


def test_the_least_mass_makes_two_models_tie_and_is_the_least():
    rng = random.Random(3)
    for _ in range(10):
        weights = [rng.random() + 0.05 for _ in range(3)]
        shares = [weight / sum(weights) for weight in weights]
        means = {name: [rng.random() for _ in range(3)] for name in ("ash", "elm")}
        (entry,) = ranked(means, [list(enumerate(shares))], list("abc"))["least_mass"]
        gaps = [one - two for one, two in zip(means[entry["above"]], means[entry["below"]], strict=True)]
        if min(gaps) >= 0:
            assert entry["mass"] is None
            continue
        # on a grid of moves from two checks to the third, none with less mass makes them tie
        least = gaps.index(min(gaps))
        others = [at for at in range(3) if at != least]
        steps = [place / 24 for place in range(25)]
        reached = []
        for a, b in itertools.product(steps, steps):
            parts = (shares[others[0]] * a, shares[others[1]] * b)
            gained = sum(part * (gaps[at] - gaps[least]) for part, at in zip(parts, others, strict=True))
            reached += [sum(parts)] if total(gaps, shares) <= gained else []
        assert entry["mass"] <= min(reached) + 1e-12
        assert entry["mass"] >= min(reached) - 2 / 24


def test_models_of_a_result_are_ranked(worked):
    found = assay.whatif(worked, rank="model").ranking
    means = golden_rows().drop_nulls("reward").group_by("model").agg(pl.mean("reward")).sort("reward", descending=True)
    assert [(entry["model"], pytest.approx(entry["mean"])) for entry in found["order"]] == means.rows()
    assert {*found} == {"order", "tie_share", "least_mass", "pareto"}


def test_shares_move_within_each_of_several_verifiers():
    means = {"ash": [0.9, 0.1, 0.5], "elm": [0.2, 0.6, 0.5]}
    blocks = [[(0, 0.3), (1, 0.2)], [(2, 0.5)]]
    found = ranked(means, blocks, ["a", "b", "c"])
    ties = {tie["check"]: tie for tie in found["tie_share"]}
    assert {*ties} == {"a", "b"}
    share = ties["a"]["tie"]
    assert 0.5 * (share * 0.7 - (1 - share) * 0.5) == pytest.approx(0)
    (mass,) = found["least_mass"]
    assert (0.3 - mass["mass"]) * 0.7 - (0.2 + mass["mass"]) * 0.5 == pytest.approx(0)


def test_nothing_scored_and_the_same_bytes_for_the_same_input(tmp_path, worked):
    scored(tmp_path / "none.parquet", SPEC, [{"task_id": "t", "model": "elm", "completion": None}])
    found = assay.whatif(tmp_path / "none.parquet", weights={"facts": 2}, rank="model")
    assert (found.before["mean_reward"], found.after["pass_rate"], found.diff.flips) == (None, None, 0)
    json.dumps(found.as_json(), allow_nan=False)
    one, two = (json.dumps(assay.whatif(worked, weights={"facts": 0.3}, rank="model").as_json()) for _ in range(2))
    assert (one, json.loads(one)["insight"]) == (two, 1)


PASSES = {"type": "min_length", "value": 0}
TEXTS = ["a b", "a", "b c", "c", "a b c", "", "x" * 30]
A, B, C = ({"type": "contains", "value": letter} for letter in "abc")
LOSSES = {
    "gate, penalty": [{**A, "gate": True}, {**B, "penalty": 0.25}, {**C, "weight": 3}],
    "groups": [
        {"type": "any_of", "checks": [A, {"type": "all_of", "checks": [B, {**C, "negate": True}]}]},
        {**B, "weight": 2},
    ],
    "inverse": [{"type": "none_of", "checks": [A, B]}, C],
    "counted": [{"type": "at_least", "k": 2, "negate": True, "checks": [A, B, C]}, {**A, "gate": True}],
    "graded": [
        {"type": "mean", "threshold": 0.6, "checks": [{**A, "weight": 3}, B]},
        {"type": "product", "checks": [B, C]},
    ],
    "condition": [{**A, "when": {"check": B}}, {"type": "min", "checks": [{**C, "when": {"check": A}}, B]}, C],
}


def leaves(checks, path=()):
    for at, check in enumerate(checks):
        yield (*path, at)
        yield from leaves(check.get("checks", ()), (*path, at))


def with_ids(checks):
    return [
        {**check, "id": f"k{at}", **({"checks": with_ids(check["checks"])} if "checks" in check else {})}
        for at, check in enumerate(checks)
    ]


def passing(checks, path):
    at, *rest = path
    own = dict(checks[at])
    if rest:
        own["checks"] = passing(own["checks"], rest)
    else:
        kept = {name: own[name] for name in ("id", "weight", "gate", "penalty", "when") if name in own}
        own = kept | PASSES
    return [*checks[:at], own, *checks[at + 1 :]]


@pytest.mark.parametrize(("name", "combine"), crossed(LOSSES, ["mean", "min"]))
def test_losses_are_what_checks_that_pass_every_row_add(name, combine, tmp_path):
    rows = [{"completion": text} for text in TEXTS]
    checks = with_ids(LOSSES[name])
    pl.DataFrame(rows).write_parquet(tmp_path / "rollouts.parquet")
    spec = {"id": "v", "combine": combine, "checks": checks}
    assay.score_file(tmp_path / "rollouts.parquet", spec, tmp_path / "rewards.parquet")
    found = {check["id"]: check["loss"] for check in assay.report(tmp_path / "rewards.parquet").checks}
    mean = assay.score(rows, spec)["reward"].mean()
    for path in leaves(checks):
        ident = ".".join(f"k{at}" for at in path)
        other = assay.score(rows, {**spec, "checks": passing(checks, path)})["reward"].mean()
        assert found[ident] == pytest.approx(other - mean, abs=1e-12), ident
