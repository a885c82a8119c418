"""Every option of the packages beside its formula, stated again in float64, on drawn rewards.

Rewards are sums of a few powers of two, so that the packages' float32 adds them exactly, and equal rewards have a spread of 0. What the
packages' own functions return with their defaults is in ``test_advantage.py``.
"""

import random
from math import fsum, nan, sqrt

import polars as pl
import pytest

import assay
from assay.insight.training.estimators import ESTIMATORS

SEEDS = 5
WEIGHTS = [1.0, -0.5]


def draw(seed):
    """Rollouts of groups of several sizes: alone, equal, small, large, and with missing rewards."""
    rng = random.Random(seed)
    scale = (1.0, 2.0**-10, 2.0**10)[seed % 3]
    rows = []
    for task in range(rng.randrange(3, 9)):
        values = [rng.choice((-1.0, 0.0, 0.125, 0.5, 0.75, 1.0, 2.0)) * scale for _ in range(1 + 5 * rng.randrange(2))]
        for _ in range(rng.choice((1, 2, 3, 5, 8, 13))):
            reward = rng.choice((None, nan)) if rng.random() < 0.1 else rng.choice(values)
            other = None if rng.random() < 0.1 else rng.choice((0.0, 0.5, 1.0))
            rows.append((f"t{task}", reward, other, rng.randrange(1, 7), rng.choice((0.0, 0.5, 1.0))))
    rng.shuffle(rows)
    names = ["task_id", "reward", "other", "tokens", "greedy"]
    return pl.DataFrame(rows, schema=names, orient="row", infer_schema_length=None)


# formulas of a group: its rewards, and its rows


def mean(values):
    return fsum(values) / len(values)


def std(values, ddof=1):
    """The standard deviation, 0 of a single value."""
    centre = mean(values)
    return sqrt(fsum((value - centre) ** 2 for value in values) / max(1, len(values) - ddof))


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
    return [x - (fsum(r) - x) / (len(r) - 1) for x in r]


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


def pass_at_k(epsilon=None):
    def formula(r, rows):
        second, best = sorted(r)[-2:]
        margin = best - second
        return [margin / (1 if epsilon is None else std(r) + epsilon) if x == best else 0.0 for x in r]

    return unless_alone(formula, none)


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


def by_std_of_all_rewards(values, r, rows):
    return [value / (std(r) + 1e-4) for value in values]


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
        centre = fsum(map(lambda v, t: v * t, values, tokens)) / places
        squares = fsum(map(lambda v, t: (v - centre) ** 2 * t, values, tokens))
        scale = sqrt(max(squares / (sum(tokens) - ddof), least) + more) if divided else 1
        return [(v - centre) / scale for v in values]

    return formula


WHITENED, NORMALIZED = over_tokens(1, 0.0, 1e-8), over_tokens(0, 1e-8)
LESS_MEAN, OF_SKYRL = over_tokens(0, 0, divided=False), over_tokens(0, 1e-8, padded=True)


def whitened_by_skyrl(values, r, rows):
    return OF_SKYRL(WHITENED(values, r, rows), r, rows)


def by_share_of_zeros(f_norm=1.0):
    return lambda values, r, rows: [len(r) / max(1, sum(x != 0 for x in r)) * value / f_norm for value in values]


OFF, STD_OFF = {"norm_adv_by_std_in_grpo": False}, {"grpo_norm_by_std": False}
SUM, RAW = {"multi_objective_aggregation": "normalize_then_sum"}, {"normalize_rewards": False}
GROUP, CLIP = {"use_leave_one_out_baseline": False}, {"reward_clip_range": [0, 0.5]}
NORMAL, BATCH = {"normalize_advantages": True}, {"advantage_batch_normalize": True}
UNCLIPPED, NARROW = {"reward.clip_range": None}, {"reward.clip_range": [-0.25, 0.5]}
UNSCALED, HALF = {"algo.advantage.no_std_norm": True}, {"epsilon": 0.5}
TEN = (-10, 10)

CASES = [
    *(("trl-grpo", {"scale_rewards": value}, scaled(1e-4), no_more) for value in ("group", True)),
    *(("trl-grpo", {"scale_rewards": value}, centred, no_more) for value in ("none", False)),
    ("trl-grpo", {"scale_rewards": "batch"}, centred, by_std_of_all_rewards),
    ("trl-grpo-none", {}, centred, no_more),
    *(("trl-grpo", SUM | {"scale_rewards": value}, scaled(1e-4), of_trl) for value in ("group", "batch", "none")),
    ("trl-gdpo", {}, scaled(1e-4), of_trl),
    ("trl-rloo", NORMAL, RLOO_OF_OTHERS, of_trl),
    ("trl-rloo", CLIP, first_clipped(RLOO), no_more),
    ("trl-rloo", NORMAL | CLIP, first_clipped(RLOO_OF_OTHERS), of_trl),
    ("trl-rloo-normalized", CLIP, first_clipped(RLOO_OF_OTHERS), of_trl),
    *((name, HALF, verl(0.5), no_more) for name in ("verl-grpo", "verl-grpo-vectorized", "skyrl-grpo")),
    *((name, OFF, CENTRED_BY_VERL, no_more) for name in ("verl-grpo", "verl-grpo-vectorized")),
    ("verl-gdpo", {}, verl(), WHITENED),
    ("verl-gdpo", HALF, verl(0.5), WHITENED),
    ("verl-gdpo", OFF, CENTRED_BY_VERL, WHITENED),
    ("verl-grpo-passk", HALF, pass_at_k(0.5), no_more),
    ("verl-grpo-passk", OFF, pass_at_k(), no_more),
    ("verl-gpg", {"f_norm": 4.0}, CENTRED_BY_VERL, by_share_of_zeros(4.0)),
    ("verl-remax", {}, as_it_is, lambda values, r, rows: [x - row["greedy"] for x, row in zip(r, rows, strict=True)]),
    ("openrlhf-rloo", UNCLIPPED, RLOO_OF_OTHERS, no_more),
    ("openrlhf-dr-grpo", {}, clipped(centred, *TEN), no_more),
    ("openrlhf-dr-grpo", NARROW, clipped(centred, -0.25, 0.5), no_more),
    ("openrlhf-group-norm", {}, clipped(unless_alone(scaled(1e-9), none), *TEN), no_more),
    ("openrlhf-reinforce", {}, clipped(as_it_is, *TEN), NORMALIZED),
    ("openrlhf-reinforce", UNSCALED, clipped(as_it_is, *TEN), LESS_MEAN),
    ("openrlhf-reinforce-baseline", UNSCALED | UNCLIPPED, centred, LESS_MEAN),
    ("openrlhf-reinforce-baseline", NARROW, clipped(centred, -0.25, 0.5), NORMALIZED),
    ("openrlhf-flash-reinforce", {}, as_it_is, lambda values, r, rows: clipped(centred, *TEN)(r, rows)),
    ("skyrl-grpo", STD_OFF, CENTRED_BY_VERL, no_more),
    ("skyrl-grpo", BATCH, verl(), OF_SKYRL),
    ("skyrl-grpo", BATCH | STD_OFF, CENTRED_BY_VERL, OF_SKYRL),
    ("skyrl-dr-grpo", BATCH, CENTRED_BY_VERL, OF_SKYRL),
    ("skyrl-rloo", BATCH, RLOO, OF_SKYRL),
    ("skyrl-reinforce-plus-plus", BATCH, as_it_is, whitened_by_skyrl),
    ("skyrl-maxrl", {"epsilon": 0.25} | BATCH, unless_alone(by_mean(0.25), itself), OF_SKYRL),
    ("nemo-rl-grpo", RAW, by_others(normalize=False), no_more),
    ("nemo-rl-grpo", GROUP, by_others(leave_one_out=False), no_more),
    ("nemo-rl-grpo", RAW | GROUP, by_others(leave_one_out=False, normalize=False), no_more),
    ("nemo-rl-grpo-group", RAW, by_others(leave_one_out=False, normalize=False), no_more),
    ("nemo-rl-gdpo", {}, by_others(), of_nemo_rl),
    ("nemo-rl-gdpo", RAW | GROUP, by_others(leave_one_out=False, normalize=False), of_nemo_rl),
    ("nemo-rl-reinforce-plus-plus", {"minus_baseline": False}, as_it_is, NORMALIZED),
    ("prime-rl-max-rl", {}, lambda r, rows: by_mean(0.0)(r, rows) if mean(r) > 0 else [0.0] * len(r), no_more),
]


def restated(frame, names, weights, formula, of_all, *, trl, each):
    """The advantage of each row, by formulas.

    ``trl`` says that a row with any reward is scored, and others get 0; ``each`` that the formula is that of each reward, and its results
    are added, and not that of the sum of the rewards.
    """
    rows = [row | {"at": at} for at, row in enumerate(frame.fill_nan(None).to_dicts())]
    scored = [row for row in rows if (any if trl else all)(row[name] is not None for name in names)]
    pairs = list(zip(names, weights, strict=True))
    totals = {row["at"]: fsum(weight * (row[name] or 0.0) for name, weight in pairs) for row in scored}
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
    frame = draw(seed)
    for like, options, formula, of_all in CASES:
        estimator = ESTIMATORS[like].with_options(options, like)
        names = ["reward", "other"] if estimator.several or seed == SEEDS - 1 else ["reward"]
        given = {"length": "tokens", "baseline": "greedy", "options": options, "weights": WEIGHTS[: len(names)]}
        ours = assay.advantages(frame, "task_id", like=like, reward=names, **given).frame["advantage"].to_list()
        trl = like.startswith("trl-")
        theirs = restated(frame, names, given["weights"], formula, of_all, trl=trl, each=estimator.several)
        # as close as float32 allows, beside the greatest of them
        most = max((abs(value) for value in theirs if value is not None), default=0.0)
        close = [None if value is None else pytest.approx(value, rel=1e-4, abs=1e-5 * most) for value in theirs]
        assert ours == close, (like, options)


def test_each_option_of_every_estimator_is_drawn():
    drawn = {(like, option) for like, options, *_ in CASES for option in options}
    weights = {"reward_weights", "gdpo_reward_weights", "reward.clip_range"}
    for like, estimator in ESTIMATORS.items():
        assert {(like, option) for option in estimator.options if option not in weights} <= drawn
