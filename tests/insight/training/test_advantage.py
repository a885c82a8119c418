"""Advantages as trainers compute them: what the packages' own functions return, what holds for all, and formulas of their options."""

import itertools
import math
import random
import struct
from collections import Counter

import polars as pl
import pytest
from cases import sized
from worked_cases import worked

import assay
from assay.errors import UsageError
from assay.insight.training.estimators import ESTIMATORS

LEFT_OUT = "an unscored row is left out; in the package it makes its group, or all, NaN"
NO_VALUE = "the package refuses a group of one row; here it has no advantage"
COUNTED = "the package counts unscored rows among all rows"
GREATEST = "NaN is the greatest reward to the package; here an unscored row is left out"
MATRICES = "sums by a product of matrices, in an order that depends on the processor"

POISONED = ("verl-", "skyrl-", "nemo-rl-")
"""Packages to which an unscored row is a reward that is NaN."""

DIFFERENCES = {
    ("verl-gpg", "all-none"): COUNTED,
    ("verl-grpo-passk", "with-none"): GREATEST,
    ("verl-grpo-passk", "all-none"): GREATEST,
    ("verl-dr-grpo-passk", "one-scored"): GREATEST,
    ("verl-grpo-passk", "singletons"): NO_VALUE,
    ("nemo-rl-grpo", "graded"): MATRICES,
    ("nemo-rl-grpo", "tenths"): MATRICES,
    ("nemo-rl-grpo", "two-groups"): MATRICES,
    ("nemo-rl-grpo-group", "graded"): MATRICES,
    ("nemo-rl-reinforce-plus-plus", "graded"): MATRICES,
    ("nemo-rl-gdpo", "multi"): MATRICES,
}
"""All cases in which Assay's advantages are not those of the package, bit for bit; with ``LEFT_OUT`` for those that are poisoned."""

MOST_ULPS = 8
"""Most units in the last place of float32 by which sums in another order differ."""


def name_of(case):
    """The name of the estimator that a case is about."""
    options = case["inputs"].get("options") or {}
    estimator = case["estimator"].partition(" ")[0].replace("reinforce++", "reinforce_plus_plus").replace("_", "-")
    options = options | (options.get("config") or {})
    scaled = options.get("norm_adv_by_std_in_grpo", options.get("grpo_norm_by_std", True))
    name = {"reward": "verifiers"}.get(estimator, f"{case['package']}-{'' if scaled else 'dr-'}{estimator}")
    name += "-batch" if options.get("scale_rewards") == "batch" else ""
    return name + ("" if options.get("use_leave_one_out_baseline", True) else "-group")


def frame_of(inputs):
    """The frame of a case, and the columns that it names."""
    groups = inputs.get("rewards", [])
    columns = {"reward": [value for group in groups for value in group]} if isinstance(groups, list) else {}
    columns |= {} if columns else {name: [value for group in part for value in group] for name, part in groups.items()}
    sizes = list(map(len, groups if isinstance(groups, list) else next(iter(groups.values()))))
    if "rewards_per_func" in inputs:
        columns = {f"r{at}": list(part) for at, part in enumerate(zip(*inputs["rewards_per_func"], strict=True))}
        sizes = [4, 4]
    task = [str(number) for number, size in enumerate(sizes) for _ in range(size)]
    # NeMo-RL's cases were made with two tokens a row
    more = {"tokens": inputs.get("response_lengths") or [2] * len(task)}
    more |= {"baseline": inputs.get("options", {})["reward_baselines"]} if "reward_baselines" in str(inputs) else {}
    numbers = {name: pl.Series(values, dtype=pl.Float64) for name, values in (columns | more).items()}
    return pl.DataFrame({"task_id": task, **numbers}), list(columns)


def advantages_of(case):
    frame, rewards = frame_of(case["inputs"])
    options = case["inputs"].get("options") or {}
    weights = options.get("reward_weights") or options.get("gdpo_reward_weights")
    baseline = "baseline" if "baseline" in frame.columns else None
    given = {"reward": rewards, "weights": weights, "length": "tokens", "baseline": baseline}
    return assay.advantages(frame, "task_id", like=name_of(case), **given).frame["advantage"].to_list()


def ulps(a, b):
    """How many float32 lie between two."""
    bits = [struct.unpack("<i", struct.pack("<f", value))[0] for value in (a, b)]
    return abs(bits[0] - bits[1]) if (a < 0) == (b < 0) else math.inf


def golden_cases():
    return [case for case in worked("advantage", "goldens") if "estimator" in case]


def test_the_advantages_of_the_packages_own_functions():
    cases, different = golden_cases(), Counter()
    assert len(cases) == 231
    for case in cases:
        ours, name, kind = advantages_of(case), name_of(case), case["inputs"].get("case")
        theirs = [value for group in case["output"] or [] for value in group]
        theirs = [None if value == "nan" else value for value in theirs]
        if ours == theirs:
            continue
        is_unscored = None in [value for group in case["inputs"]["rewards"] for value in group]
        reason = DIFFERENCES.get((name, kind), LEFT_OUT if is_unscored and name.startswith(POISONED) else None)
        assert reason, f"{name}, {kind}: {ours}, not {theirs}"
        different[name, reason] += 1
        if reason == MATRICES:
            assert max(ulps(a, b) for a, b in zip(ours, theirs, strict=True) if a != b) <= MOST_ULPS
        if reason == NO_VALUE:
            assert case["error"].startswith("ValueError: Pass@k requires at least 2 samples")
            assert ours == [None, None]
        if reason in (LEFT_OUT, COUNTED, GREATEST):
            assert ours == without_unscored(case)
    reasons = Counter(dict.fromkeys(set(DIFFERENCES.values()), 0) | {LEFT_OUT: 0})
    for (_, reason), number in different.items():
        reasons[reason] += number
    assert reasons == {LEFT_OUT: 25, COUNTED: 1, GREATEST: 3, NO_VALUE: 1, MATRICES: 7}


def without_unscored(case):
    """The advantages of a case's frame without the rows that have no reward, at their places."""
    frame, _ = frame_of(case["inputs"])
    scored = frame.with_row_index().filter(pl.col("reward").is_not_null())
    found = assay.advantages(scored, "task_id", like=name_of(case), length="tokens").frame
    values = dict(found.select("index", "advantage").iter_rows())
    return [values.get(at) for at in range(frame.height)]


def draw(seed, *, unscored=0.0):
    """Rollouts of groups of several sizes, in any order."""
    rng, rows = random.Random(seed), []
    for task in range(12):
        for _ in range(rng.choice((1, 2, 3, 8, 9, 40))):
            reward = None if rng.random() < unscored else rng.choice((0.0, 0.1, 0.5, 1.0, rng.random()))
            rows.append((f"t{task}", "ash", reward, rng.randrange(1, 50)))
    rng.shuffle(rows)
    return pl.DataFrame(rows, schema=["task_id", "model", "reward", "tokens"], orient="row", infer_schema_length=None)


def computed(frame, like, by="task_id", **options):
    baseline = "tokens" if ESTIMATORS[like].needs_baselines else None
    return assay.advantages(frame, by, like=like, length="tokens", baseline=baseline, **options)


OVER_ALL = ("trl-grpo-batch", "trl-gdpo", "trl-rloo-normalized", "openrlhf-flash-reinforce", "nemo-rl-gdpo")
"""Estimators with a mean or a standard deviation of all rows."""


@pytest.mark.parametrize("seed", range(sized(6, 1)))
def test_groups_are_independent_of_where_their_rows_stand(seed):
    frame = draw(seed)
    together = frame.with_row_index("at").sort("task_id", maintain_order=True)
    for like in ESTIMATORS:
        apart = computed(frame, like).frame["advantage"].to_list()
        in_order = computed(together, like).frame.sort("at")["advantage"].to_list()
        # what is added over all rows is added in another order
        close = ESTIMATORS[like].over_tokens or like in OVER_ALL
        assert apart == (pytest.approx(in_order, rel=1e-4, abs=1e-5) if close else in_order), like


def test_a_row_without_a_reward_is_left_out_and_counted():
    frame = draw(3, unscored=0.2)
    is_scored = pl.col("reward").is_not_null()
    for like in ESTIMATORS:
        found = computed(frame.with_columns(pl.col("reward").fill_null(float("nan"))), like)
        assert found.facts["unscored"] == frame["reward"].null_count() > 0
        assert any("without a reward: left out" in note for note in found.notes)
        is_zero = like.startswith("trl-")
        unscored = found.frame.filter(frame["reward"].is_null())["advantage"].unique().to_list()
        assert unscored == [0.0 if is_zero else None], like
        scored = computed(frame.filter(is_scored), like).frame["advantage"].to_list()
        both = found.frame.filter(frame["reward"].is_not_null())["advantage"].to_list()
        # TRL adds zeros at their places: the order of the others is another
        assert both == (pytest.approx(scored, rel=1e-4, abs=1e-5) if is_zero else scored), like


def test_nothing_is_nan_and_frames_may_be_empty():
    lists = ([], [None], [0.5], [0.1] * 3, [0.0] * 9, [1.0, 1.0], [1e30, -1e30], [float("inf"), 0.0])
    for like, rewards in itertools.product(ESTIMATORS, lists):
        columns = {"task_id": ["a"] * len(rewards), "reward": rewards, "tokens": [1] * len(rewards)}
        found = computed(pl.DataFrame(columns, schema_overrides={"reward": pl.Float64, "tokens": pl.Int64}), like)
        values = found.frame["advantage"].to_list()
        assert len(values) == len(rewards)
        assert all(value is None or math.isfinite(value) for value in values), like
        undefined = sum(reward is not None and value is None for reward, value in zip(rewards, values, strict=True))
        assert found.facts["undefined"] == undefined, like


def test_infinite_rewards_have_the_advantages_that_torch_makes_of_them():
    frame = pl.DataFrame({"task_id": ["a"] * 3, "reward": [math.inf, 0.0, None]})
    found = [assay.advantages(frame, ["task_id", "task_id"], like=like) for like in ("trl-grpo-none", "trl-async-grpo")]
    greatest = 3.4028234663852886e38
    assert [each.frame["advantage"].to_list() for each in found] == [[0.0, -greatest, 0.0], [None, None, 0.0]]
    assert [each.facts["undefined"] for each in found] == [0, 2]


def test_rows_without_a_group_have_no_advantage():
    frame = pl.DataFrame({"task_id": ["a", None, "a"], "model": ["x"] * 3, "reward": [1, 0, 0]})
    found = assay.advantages(frame.lazy(), ["task_id", "model"], like="prime-rl-grpo")
    assert found.frame["advantage"].to_list() == [0.5, None, -0.5]
    assert found.frame.columns == ["task_id", "model", "reward", "advantage"]
    facts = {"scored": 2, "groups": 1, "undefined": 0, "rows": 3, "left_out": 1, "unscored": 0}
    notes = ["1 row without a group: no advantage"]
    assert found.as_json() == {"insight": 1, "like": "prime-rl-grpo", **facts, "notes": notes}


def test_the_worst_of_four():
    """TRAINERS.md, of ``[1, 0, 1, 1]``."""
    frame = pl.DataFrame({"task_id": ["a"] * 4, "reward": [True, False, True, True]})
    names = ("prime-rl-grpo", "verl-dr-grpo", "trl-rloo", "nemo-rl-grpo", "trl-grpo", "verl-grpo", "trl-async-grpo")
    worst = [assay.advantages(frame, "task_id", like=name).frame["advantage"][1] for name in names]
    assert worst == pytest.approx([-0.75, -0.75, -1, -1, -1.4997, -1.499997, -1.732], abs=1e-4)


def test_tokens():
    frame = draw(4)
    found = assay.advantages(frame, "task_id", like="verl-opo")
    ones = assay.advantages(frame.with_columns(tokens=1), "task_id", like="verl-opo", length="tokens")
    assert found.frame["advantage"].equals(ones.frame["advantage"])
    assert found.notes == ("verl-opo weighs rows by tokens, here one each: name their column, length",)
    # a row without a reward needs no number of tokens
    rows = pl.DataFrame({"task_id": ["a"] * 3, "reward": [1.0, None, 0.0], "tokens": [3, None, 1]})
    found = assay.advantages(rows, "task_id", like="verl-opo", length="tokens")
    assert found.frame["advantage"].to_list() == [0.25, None, -0.75]
    # responses without tokens cannot be whitened
    found = computed(frame.with_columns(tokens=0), "verl-reinforce-plus-plus")
    assert found.frame["advantage"].null_count() == found.facts["undefined"] == frame.height
    assert found.notes == (f"{frame.height} rows without an advantage in verl-reinforce-plus-plus",)


def test_many_tokens_are_added_in_float64(monkeypatch):
    exact = computed(draw(5), "verl-reinforce-plus-plus").frame["advantage"]
    monkeypatch.setattr("assay.insight.training.estimators.MOST_ORDERED", 10)
    wide = computed(draw(5), "verl-reinforce-plus-plus").frame["advantage"]
    assert wide.to_list() == pytest.approx(exact.to_list(), rel=1e-5)


OFF = {"norm_adv_by_std_in_grpo": False}
SAME = [
    ("verl-grpo", OFF, "verl-dr-grpo"),
    ("verl-grpo-vectorized", OFF, "verl-dr-grpo-vectorized"),
    ("verl-grpo-passk", OFF, "verl-dr-grpo-passk"),
    ("skyrl-grpo", {"grpo_norm_by_std": False}, "skyrl-dr-grpo"),
    ("trl-grpo", {"scale_rewards": "batch"}, "trl-grpo-batch"),
    ("trl-grpo", {"scale_rewards": False}, "trl-grpo-none"),
    ("trl-grpo", {"scale_rewards": True}, "trl-grpo"),
    ("trl-grpo", {"multi_objective_aggregation": "normalize_then_sum"}, "trl-gdpo"),
    ("trl-rloo", {"normalize_advantages": True}, "trl-rloo-normalized"),
    ("nemo-rl-grpo", {"use_leave_one_out_baseline": False}, "nemo-rl-grpo-group"),
    ("openrlhf-rloo", {"reward.clip_range": [-10, 10]}, "openrlhf-rloo"),
]


def test_options_are_the_names_that_have_them():
    frame = draw(5)
    for like, options, name in SAME:
        assert computed(frame, like, options=options).frame.equals(computed(frame, name).frame), (like, options)


def test_weights_may_be_an_option():
    frame = draw(5).with_columns(other=pl.col("tokens") / 50)
    given = {"like": "verl-gdpo", "reward": ["reward", "other"], "length": "tokens"}
    by_option = assay.advantages(frame, "task_id", options={"gdpo_reward_weights": [1, 2]}, **given)
    assert by_option.frame.equals(assay.advantages(frame, "task_id", weights=[1, 2], **given).frame)
    with pytest.raises(UsageError, match="among the options, too"):
        assay.advantages(frame, "task_id", options={"gdpo_reward_weights": [1, 2]}, weights=[1, 2], **given)


def test_a_norm_divides_and_does_not_multiply_by_its_reciprocal():
    frame = draw(5)
    once, thrice = (computed(frame, "verl-gpg", options={"f_norm": norm}).frame["advantage"] for norm in (1.0, 3.0))
    assert thrice.equals(once / pl.repeat(3.0, frame.height, dtype=pl.Float32, eager=True))


REFUSED = [
    ({"like": "trl-grp"}, "Did you mean `trl-grpo`?"),
    ({"like": "ppo"}, "like ppo: unknown."),
    ({"like": "verl-remax"}, "like verl-remax: needs the reward of another rollout."),
    ({"by": "task"}, "by task: the frame has no such column."),
    ({"by": []}, "by: expected the name of a column."),
    ({"reward": "model"}, "reward model: expected numbers, not String."),
    ({"weights": [1.0, 2.0]}, "weights: 2 for 1 column of rewards."),
    ({"weights": [1.0], "like": "trl-async-grpo"}, "weights: trl-async-grpo adds rewards as they are."),
    ({"weights": [math.nan]}, "weights: expected finite numbers."),
    ({"length": "reward"}, "length reward: expected whole numbers of tokens, at least 0, in each row with a reward."),
    ({"like": "verl-grpo", "options": {"norm_adv_by_std": False}}, "has no option norm_adv_by_std"),
    ({"like": "verl-rloo", "options": {"epsilon": 1.0}}, "has no option epsilon"),
    ({"like": "verl-grpo", "options": {"norm_adv_by_std_in_grpo": 0}}, "0 is none of its values"),
    ({"options": {"scale_rewards": "all"}}, "'all' is none of its values"),
    ({"like": "verl-grpo", "options": {"epsilon": "small"}}, "'small' cannot be used"),
    ({"like": "verl-grpo", "options": {"epsilon": math.nan}}, "nan cannot be used"),
    ({"like": "trl-rloo", "options": {"reward_clip_range": [1]}}, "[1] cannot be used"),
    ({"like": "trl-rloo", "options": {"reward_clip_range": "ab"}}, "'ab' cannot be used"),
    ({"like": "openrlhf-rloo", "options": {"reward.clip_range": [1, -1]}}, "the lesser first"),
    ({"like": "verl-gpg", "options": {"f_norm": True}}, "True cannot be used"),
    ({"options": {"reward_weights": [1, 2]}}, "2 for 1 column"),
    ({"options": {"reward_weights": 5}}, "5 cannot be used"),
    ({"like": "trl-grpo-batch", "options": {"reward_weights": ["a"]}}, "a list of finite numbers, or none"),
    ({"like": "verl-gdpo", "options": {"gdpo_reward_weights": "1"}}, "'1' cannot be used"),
    ({"options": {1: 2}}, "has no option 1"),
    ({"options": "scale_rewards=batch"}, "is no mapping of names to values"),
]


@pytest.mark.parametrize(("options", "message"), REFUSED)
def test_what_is_refused(options, message):
    with pytest.raises(UsageError) as raised:
        assay.advantages(draw(1).with_columns(reward=0.5), **({"by": "task_id", "like": "trl-grpo"} | options))
    assert message in str(raised.value)


# Every option of the packages beside its formula, stated again in float64; with their defaults, the packages' own functions say it.

SEEDS = 5
WEIGHTS = [1.0, -0.5]


def draw_exact(seed):
    """Rollouts of groups: alone, equal, small, large, and with missing rewards.

    Rewards are sums of a few powers of two, so that the packages' float32 adds them exactly, and equal rewards have a spread of 0.
    """
    rng = random.Random(seed)
    scale = (1.0, 2.0**-10, 2.0**10)[seed % 3]
    rows = []
    for task in range(rng.randrange(3, 9)):
        values = [rng.choice((-1.0, 0.0, 0.125, 0.5, 0.75, 1.0, 2.0)) * scale for _ in range(1 + 5 * rng.randrange(2))]
        for _ in range(rng.choice((1, 2, 3, 5, 8, 13))):
            reward = rng.choice((None, math.nan)) if rng.random() < 0.1 else rng.choice(values)
            other = None if rng.random() < 0.1 else rng.choice((0.0, 0.5, 1.0))
            rows.append((f"t{task}", reward, other, rng.randrange(1, 7), rng.choice((0.0, 0.5, 1.0))))
    rng.shuffle(rows)
    names = ["task_id", "reward", "other", "tokens", "greedy"]
    return pl.DataFrame(rows, schema=names, orient="row", infer_schema_length=None)


# formulas of a group: its rewards, and its rows


def mean(values):
    return math.fsum(values) / len(values)


def std(values, ddof=1):
    """The standard deviation, 0 of a single value."""
    centre = mean(values)
    return math.sqrt(math.fsum((value - centre) ** 2 for value in values) / max(1, len(values) - ddof))


def as_it_is(r, rows):
    return r


def centred(r, rows):
    return [x - mean(r) for x in r]


def scaled(epsilon, ddof=1):
    return lambda r, rows: [x / (std(r, ddof) + epsilon) for x in centred(r, rows)]


def unless_alone(formula, alone):
    """A formula, and what a row without others gets in its place."""
    return lambda r, rows: formula(r, rows) if len(r) > 1 else [alone(r[0])]


def less_others(r, rows):
    """Rewards less the mean of the others."""
    return [x - (math.fsum(r) - x) / (len(r) - 1) for x in r]


def by_others(*, leave_one_out=True, normalize=True):
    """NeMo-RL's: μ and σ of the others or of the group, divided only where σ > 0."""

    def formula(r, rows):
        found = []
        for at, x in enumerate(r):
            among = [*r[:at], *r[at + 1 :]] if leave_one_out else r
            scale = std(among) + 1e-6 if normalize and std(among) else 1
            found.append((x - mean(among)) / scale)
        return found

    return unless_alone(formula, zero)


def pass_at_k(epsilon):
    def formula(r, rows):
        second, best = sorted(r)[-2:]
        return [(best - second) / (std(r) + epsilon) if x == best else 0.0 for x in r]

    return unless_alone(formula, none)


def by_length(r, rows):
    tokens = [row["tokens"] for row in rows]
    return [x - math.fsum(map(lambda reward, number: reward * number, r, tokens)) / sum(tokens) for x in r]


def by_mean(epsilon):
    return lambda r, rows: [x / (mean(r) + epsilon) for x in centred(r, rows)]


def clipped(formula, least, greatest):
    return lambda r, rows: [None if x is None else min(max(x, least), greatest) for x in formula(r, rows)]


def first_clipped(formula):
    return lambda r, rows: formula([min(max(x, 0), 0.5) for x in r], rows)


def zero(x):
    return 0.0


def itself(x):
    return x


def none(x):
    return None


def verl(epsilon=1e-6):
    return unless_alone(scaled(epsilon), lambda x: x / (1 + epsilon))


CENTRED_BY_VERL = unless_alone(centred, itself)
RLOO, RLOO_OF_OTHERS = unless_alone(less_others, zero), unless_alone(less_others, none)


# and of all groups: the values so far, the rewards, and the rows


def no_more(values, r, rows):
    return values


def of_trl(values, r, rows):
    """Less the mean of all, by their spread; a row that has no others is none of them."""
    among = [value for value in values if value is not None]
    return [0.0 if value is None else (value - mean(among)) / (std(among) + 1e-4) for value in values]


def of_nemo_rl(values, r, rows):
    return [(value - mean(values)) / (std(values) or 1) for value in values]


def over_tokens(ddof, least, more=0.0, *, padded=False, divided=True):
    """Less the mean of the tokens, or of all places with those of padding, by the spread of the tokens about it."""

    def formula(values, r, rows):
        tokens = [row["tokens"] for row in rows]
        places = len(rows) * max(tokens) if padded else sum(tokens)
        centre = math.fsum(map(lambda v, t: v * t, values, tokens)) / places
        squares = math.fsum(map(lambda v, t: (v - centre) ** 2 * t, values, tokens))
        scale = math.sqrt(max(squares / (sum(tokens) - ddof), least) + more) if divided else 1
        return [(v - centre) / scale for v in values]

    return formula


WHITENED, NORMALIZED = over_tokens(1, 0.0, 1e-8), over_tokens(0, 1e-8)
LESS_MEAN, OF_SKYRL = over_tokens(0, 0, divided=False), over_tokens(0, 1e-8, padded=True)


def whitened_by_skyrl(values, r, rows):
    return OF_SKYRL(WHITENED(values, r, rows), r, rows)


def by_share_of_zeros(values, r, rows):
    return [len(r) / max(1, sum(x != 0 for x in r)) * value / 4.0 for value in values]


RAW, CLIP = {"normalize_rewards": False}, {"reward_clip_range": [0, 0.5]}
GROUP, BATCH = {"use_leave_one_out_baseline": False}, {"advantage_batch_normalize": True}
UNCLIPPED, NARROW = {"reward.clip_range": None}, {"reward.clip_range": [-0.25, 0.5]}
UNSCALED, HALF, TEN = {"algo.advantage.no_std_norm": True}, {"epsilon": 0.5}, (-10, 10)

CASES = [
    *(
        (name, {}, formula, no_more)
        for name, formula in {
            "trl-grpo": scaled(1e-4),
            "trl-grpo-none": centred,
            "trl-rloo": RLOO,
            "trl-async-grpo": scaled(1e-8, ddof=0),
            **dict.fromkeys(("verl-grpo", "verl-grpo-vectorized", "skyrl-grpo"), verl()),
            **dict.fromkeys(("verl-dr-grpo", "verl-dr-grpo-vectorized", "skyrl-dr-grpo"), CENTRED_BY_VERL),
            "verl-rloo": unless_alone(less_others, itself),
            "verl-rloo-vectorized": RLOO,
            "verl-grpo-passk": pass_at_k(1e-6),
            "verl-opo": unless_alone(by_length, itself),
            "openrlhf-rloo": clipped(RLOO_OF_OTHERS, *TEN),
            "skyrl-rloo": RLOO,
            "skyrl-maxrl": unless_alone(by_mean(1e-6), itself),
            "nemo-rl-grpo": by_others(),
            "nemo-rl-grpo-group": by_others(leave_one_out=False),
            "prime-rl-grpo": centred,
            "prime-rl-max-rl": lambda r, rows: by_mean(0.0)(r, rows) if mean(r) > 0 else [0.0] * len(r),
            "verifiers": centred,
        }.items()
    ),
    ("trl-grpo-batch", {}, centred, lambda values, r, rows: [value / (std(r) + 1e-4) for value in values]),
    ("trl-gdpo", {}, scaled(1e-4), of_trl),
    ("verl-gdpo", {}, verl(), WHITENED),
    ("verl-reinforce-plus-plus", {}, as_it_is, WHITENED),
    ("verl-reinforce-plus-plus-baseline", {}, CENTRED_BY_VERL, WHITENED),
    ("verl-remax", {}, as_it_is, lambda values, r, rows: [x - row["greedy"] for x, row in zip(r, rows, strict=True)]),
    ("openrlhf-reinforce", {}, clipped(as_it_is, *TEN), NORMALIZED),
    ("nemo-rl-gdpo", {}, by_others(), of_nemo_rl),
    ("nemo-rl-reinforce-plus-plus", {}, centred, NORMALIZED),
    ("trl-rloo", CLIP, first_clipped(RLOO), no_more),
    ("trl-rloo", {"normalize_advantages": True} | CLIP, first_clipped(RLOO_OF_OTHERS), of_trl),
    *((name, HALF, verl(0.5), no_more) for name in ("verl-grpo", "verl-grpo-vectorized", "skyrl-grpo")),
    ("verl-gdpo", HALF, verl(0.5), WHITENED),
    ("verl-gdpo", {"norm_adv_by_std_in_grpo": False}, CENTRED_BY_VERL, WHITENED),
    ("verl-grpo-passk", HALF, pass_at_k(0.5), no_more),
    ("verl-gpg", {"f_norm": 4.0}, CENTRED_BY_VERL, by_share_of_zeros),
    ("openrlhf-rloo", UNCLIPPED, RLOO_OF_OTHERS, no_more),
    ("openrlhf-dr-grpo", {}, clipped(centred, *TEN), no_more),
    ("openrlhf-dr-grpo", NARROW, clipped(centred, -0.25, 0.5), no_more),
    ("openrlhf-group-norm", {}, clipped(unless_alone(scaled(1e-9), none), *TEN), no_more),
    ("openrlhf-reinforce", UNSCALED, clipped(as_it_is, *TEN), LESS_MEAN),
    ("openrlhf-reinforce-baseline", UNSCALED | UNCLIPPED, centred, LESS_MEAN),
    ("openrlhf-reinforce-baseline", NARROW, clipped(centred, -0.25, 0.5), NORMALIZED),
    ("openrlhf-flash-reinforce", {}, as_it_is, lambda values, r, rows: clipped(centred, *TEN)(r, rows)),
    ("skyrl-grpo", BATCH | {"grpo_norm_by_std": False}, CENTRED_BY_VERL, OF_SKYRL),
    ("skyrl-dr-grpo", BATCH, CENTRED_BY_VERL, OF_SKYRL),
    ("skyrl-rloo", BATCH, RLOO, OF_SKYRL),
    ("skyrl-reinforce-plus-plus", BATCH, as_it_is, whitened_by_skyrl),
    ("skyrl-maxrl", {"epsilon": 0.25} | BATCH, unless_alone(by_mean(0.25), itself), OF_SKYRL),
    ("nemo-rl-grpo", RAW | GROUP, by_others(leave_one_out=False, normalize=False), no_more),
    ("nemo-rl-grpo-group", RAW, by_others(leave_one_out=False, normalize=False), no_more),
    ("nemo-rl-gdpo", RAW | GROUP, by_others(leave_one_out=False, normalize=False), of_nemo_rl),
    ("nemo-rl-reinforce-plus-plus", {"minus_baseline": False}, as_it_is, NORMALIZED),
]


def restated(frame, names, weights, formula, of_all, *, trl, each):
    """The advantage of each row, by formulas.

    ``trl`` says that a row with any reward is scored, and others get 0; ``each`` that the formula is that of each reward, and its results
    are added, and not that of the sum of the rewards.
    """
    rows = [row | {"at": at} for at, row in enumerate(frame.fill_nan(None).to_dicts())]
    scored = [row for row in rows if (any if trl else all)(row[name] is not None for name in names)]
    pairs = list(zip(names, weights, strict=True))
    totals = {row["at"]: math.fsum(weight * (row[name] or 0.0) for name, weight in pairs) for row in scored}
    parts = [({row["at"]: row[name] for row in scored}, weight) for name, weight in pairs]
    found = dict.fromkeys(totals, 0.0)
    for rewards, weight in parts if each else [(totals, 1.0)]:
        for task in {row["task_id"] for row in scored}:
            group = [row for row in scored if row["task_id"] == task and rewards[row["at"]] is not None]
            values = formula([rewards[row["at"]] for row in group], group) if group else []
            for row, value in zip(group, values, strict=True):
                found[row["at"]] = None if value is None else found[row["at"]] + weight * value
    values = of_all([*found.values()], [*totals.values()], scored) if scored else []
    found = dict(zip(found, values, strict=True))
    return [found.get(at, 0.0 if trl else None) for at in range(len(rows))]


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_combination_of_options_is_its_formula(seed):
    frame = draw_exact(seed)
    for like, options, formula, of_all in CASES:
        estimator = ESTIMATORS[like].with_options(options, like)
        names = ["reward", "other"] if estimator.several or seed == SEEDS - 1 else ["reward"]
        weights = WEIGHTS[: len(names)] if estimator.takes_weights else [1.0] * len(names)
        given = {"length": "tokens", "baseline": "greedy", "options": options}
        given |= {"weights": weights} if estimator.takes_weights else {}
        ours = assay.advantages(frame, "task_id", like=like, reward=names, **given).frame["advantage"].to_list()
        trl = like.startswith("trl-")
        theirs = restated(frame, names, weights, formula, of_all, trl=trl, each=estimator.several)
        # as close as float32 allows, beside the greatest of them
        most = max((abs(value) for value in theirs if value is not None), default=0.0)
        close = [None if value is None else pytest.approx(value, rel=1e-4, abs=1e-5 * most) for value in theirs]
        assert ours == close, (like, options)


def test_each_option_of_every_estimator_is_drawn_or_is_another_name():
    drawn = {(like, option) for like, options, *_ in [*CASES, *SAME] for option in options}
    presets = {("trl-rloo-normalized", "reward_clip_range")}
    weights = {"reward_weights", "gdpo_reward_weights", "reward.clip_range"}
    for like, estimator in ESTIMATORS.items():
        assert {(like, option) for option in estimator.options if option not in weights} - presets <= drawn
