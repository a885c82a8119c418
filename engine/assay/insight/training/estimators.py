"""Advantages as trainers compute them: each formula in the arithmetic of its package, in its order.

Sources: trl 1.16.0, verl 0.9.1, openrlhf 0.11.2, skyrl 0.3.0, nemo-rl 0.6.0 (7ea279abf), prime-rl 0.8.0 (559b44772), verifiers 0.1.14.
In formulas, r is a reward, μ and σ are mean and standard deviation of its group (ddof 1), n the rows of the group.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import polars as pl

from assay.insight.training.batch import Batch
from assay.insight.training.sums import (
    MOST_ORDERED,
    numpy_sum,
    plain_sum,
    strided_sum,
    torch_sum,
    total,
)

__all__ = ["ESTIMATORS", "Estimator", "Unscored", "nemo_rl_moments", "prime_rl_grpo"]

Unscored = Literal["left out", "zero", "zero in place"]


@dataclass(frozen=True)
class Estimator:
    """How a trainer computes advantages.

    Attributes:
        formula: The formula.
        source: Where the package has it.
        compute: The advantages of a batch; null or not finite where there is none.
        unscored: What becomes of rows without a reward: they are ``left out``, and get null; or get ``zero``, if they have none at all,
            left out as well or ``zero in place``, that is as a 0 in the order of a sum.
        float64: Whether the package computes in float64.
        over_tokens: Whether the advantages depend on the tokens of a response.
        needs_baselines: Whether each row needs the reward of another rollout.
        several: Whether it is made for several rewards of a row.
        takes_weights: Whether rewards may have weights.
    """

    formula: str
    source: str
    compute: Callable[[Batch], pl.Series]
    unscored: Unscored = "left out"
    float64: bool = False
    over_tokens: bool = False
    needs_baselines: bool = False
    several: bool = False
    takes_weights: bool = True

    @property
    def dtype(self) -> Any:
        """Type of the numbers."""
        return pl.Float64 if self.float64 else pl.Float32


# ── what formulas have in common ────────────────────────────────────────────────────────────────────────────────────────


def _choose(condition: pl.Series, one: Any, other: Any) -> pl.Series:
    return pl.select(pl.when(condition).then(one).otherwise(other)).to_series()


def _zero_alone(batch: Batch, values: pl.Series, value: float = 0.0) -> pl.Series:
    """Return values, and another where a row is alone in its group."""
    return _choose(batch.single, pl.lit(value, values.dtype), values)


def _std(batch: Batch, values: pl.Series) -> pl.Series:
    """Return ``torch.std`` of each group: the mean in float32, squares in float64."""
    centred = values.cast(pl.Float64) - batch.mean(values).cast(pl.Float64)
    squares = batch.sum(centred * centred, plain_sum)
    return (squares / (batch.size.cast(pl.Float64) - 1.0)).sqrt().cast(pl.Float32)


def _std_of_rows(batch: Batch, values: pl.Series) -> pl.Series:
    """Return ``torch.std(dim=-1)`` of groups: with several, means in float64."""
    if len(batch.sizes) == 1:
        return _std(batch, values)
    wide, size = values.cast(pl.Float64), batch.size.cast(pl.Float64)
    centred = wide - batch.sum(wide, plain_sum) / size
    return (batch.sum(centred * centred, plain_sum) / (size - 1.0)).sqrt().cast(pl.Float32)


def _nan_std(batch: Batch, values: pl.Series, fold: Any = torch_sum) -> pl.Series:
    """Return TRL's ``nanstd`` of each group: nulls left out, NaN for fewer than two."""
    centred, count = values - batch.mean(values, fold), batch.count(values)
    variance = batch.mean(centred * centred, fold) * (count / (count - 1.0))
    return _choose(count > 1.0, variance.sqrt(), pl.lit(float("nan"), pl.Float32))


def _token_sum(batch: Batch, values: pl.Series) -> pl.Series:
    """Return the sum of the values that each token of a row has, for each row: in ``torch.sum``'s order for responses padded to the longest."""
    order, width = batch.rows.arg_sort(), int(batch.lengths.max() or 0)  # type: ignore[arg-type]
    tokens, number = batch.lengths.gather(order), len(order) * width
    if not 0 < number <= MOST_ORDERED:
        whole = (values.gather(order).cast(pl.Float64) * tokens.cast(pl.Float64)).sum()
        return pl.Series([whole], dtype=pl.Float32).new_from_index(0, len(order))
    place = pl.int_range(number, eager=True)
    is_token = place % width < tokens.gather(place // width)
    cells = values.gather(order).gather(place // width) * is_token.cast(pl.Float32)
    # one row after the other: a single group
    return torch_sum(cells, number).new_from_index(0, len(order))


def _over_tokens(batch: Batch, values: pl.Series) -> tuple[pl.Series, pl.Series, pl.Series]:
    """Return for each row the number of tokens, and mean and variance (ddof 0) of the values that the tokens of all rows have."""
    number = pl.repeat(float(batch.lengths.sum()), len(values), dtype=pl.Float32, eager=True)
    mean = _token_sum(batch, values) / number
    centred = values - mean
    return number, mean, _token_sum(batch, centred * centred) / number


def _whitened(batch: Batch, values: pl.Series) -> pl.Series:
    """Return verl's ``masked_whiten``: null for a single token."""
    number, mean, variance = _over_tokens(batch, values)
    unbiased = variance * (number / (number - 1.0))
    return (values - mean) * _reciprocal((unbiased + 1e-8).sqrt())


def _normalized(batch: Batch, values: pl.Series) -> pl.Series:
    """Return values less their mean over tokens, by their standard deviation (ddof 0), with a floor of 1e-8 for the variance."""
    _, mean, variance = _over_tokens(batch, values)
    return (values - mean) * _reciprocal(variance.clip(1e-8).sqrt())


def _reciprocal(values: pl.Series) -> pl.Series:
    return pl.repeat(1.0, len(values), dtype=values.dtype, eager=True) / values


def _weighted(parts: list[pl.Series], weights: tuple[float, ...]) -> pl.Series:
    return total([part * weight for part, weight in zip(parts, weights, strict=True)])


# ── trl ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _trl_grpo(batch: Batch, scale: str) -> pl.Series:
    centred = batch.reward - batch.mean(batch.reward)
    if scale == "none":
        return centred
    among = batch if scale == "group" else batch.with_reward(batch.reward).whole
    return centred / (_nan_std(among, among.reward) + 1e-4)


def _trl_gdpo(batch: Batch) -> pl.Series:
    width, scaled = len(batch.rewards), []
    for place, (reward, weight) in enumerate(zip(batch.rewards, batch.weights, strict=True)):
        fold = strided_sum(place, width)
        std = _zero_alone(batch, _nan_std(batch, reward, fold))
        scaled.append((reward - batch.mean(reward, fold)) / (std + 1e-4) * weight)
    # what is NaN counts as 0, as in nansum
    terms = pl.concat([part.fill_nan(None).fill_null(0.0) for part in scaled])
    return _trl_normalized(batch, _choose(batch.is_scored, torch_sum(terms, width), pl.lit(None, pl.Float32)))


def _trl_normalized(batch: Batch, values: pl.Series) -> pl.Series:
    """Return values less the mean of all, by the standard deviation of all."""
    whole = batch.with_reward(values.fill_nan(None)).whole
    return (values - whole.mean(whole.reward)) / (_nan_std(whole, whole.reward) + 1e-4)


def _trl_rloo(batch: Batch) -> pl.Series:
    reward = batch.reward
    others = batch.count(reward) - 1.0
    return reward - (batch.sum(reward) - reward) / others


def _trl_rloo_normalized(batch: Batch) -> pl.Series:
    return _trl_normalized(batch, _trl_rloo(batch))


def _trl_async_grpo(batch: Batch) -> pl.Series:
    reward = total([part.fill_null(0.0) for part in batch.rewards])
    size = batch.size.cast(pl.Float64)
    centred = reward - batch.sum(reward, numpy_sum) / size
    return centred / ((batch.sum(centred * centred, numpy_sum) / size).sqrt() + 1e-8)


# ── verl and skyrl ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _baseline(batch: Batch, values: pl.Series) -> pl.Series:
    """Return the mean of each group, 0 for a row alone."""
    return _zero_alone(batch, batch.mean(values))


def _centred(batch: Batch) -> pl.Series:
    return batch.reward - _baseline(batch, batch.reward)


def _grpo(batch: Batch) -> pl.Series:
    return _centred(batch) / (_zero_alone(batch, _std(batch, batch.reward), 1.0) + 1e-6)


def _vectorized(batch: Batch, *, scaled: bool) -> pl.Series:
    mean = batch.sum(batch.reward, plain_sum) / batch.size
    centred = batch.reward - mean
    std = (batch.sum(centred * centred, plain_sum) / (batch.size - 1.0).clip(1.0)).sqrt()
    values = batch.reward - _zero_alone(batch, mean)
    return values / (_zero_alone(batch, std, 1.0) + 1e-6) if scaled else values


def _verl_rloo(batch: Batch) -> pl.Series:
    n, others = batch.size, batch.size - 1.0
    value = batch.reward * n / others - batch.mean(batch.reward) * n / others
    return _choose(batch.single, batch.reward, value)


def _verl_rloo_vectorized(batch: Batch) -> pl.Series:
    n = batch.size
    return (n * batch.reward - batch.sum(batch.reward, plain_sum)) / (n - 1.0).clip(1.0) * (n > 1.0).cast(pl.Float32)


def _verl_gdpo(batch: Batch) -> pl.Series:
    return _whitened(batch, _weighted([_grpo(batch.with_reward(part)) for part in batch.rewards], batch.weights))


def _verl_passk(batch: Batch, *, scaled: bool) -> pl.Series:
    table = pl.DataFrame({"group": batch.group, "reward": batch.reward})
    two = table.group_by("group").agg(pl.col("reward").top_k(2).sort(descending=True)).sort("group")["reward"]
    best, second = batch.each(two.list.get(0)), batch.each(two.list.get(1, null_on_oob=True))
    margin = best - second
    margin = margin / (_std(batch, batch.reward) + 1e-6) if scaled else margin
    # of rows that are equally good each has a margin of 0
    return _choose((batch.reward == best) | second.is_null(), margin, pl.lit(0.0, pl.Float32))


def _reinforce_plus_plus(batch: Batch, *, baseline: bool) -> pl.Series:
    return _whitened(batch, _centred(batch) if baseline else batch.reward)


def _verl_opo(batch: Batch) -> pl.Series:
    tokens = batch.lengths.cast(pl.Float32)
    number = batch.sum(batch.lengths.cast(pl.Float64), plain_sum).cast(pl.Float32)
    return batch.reward - _zero_alone(batch, batch.sum(tokens * batch.reward) / number)


def _verl_gpg(batch: Batch) -> pl.Series:
    # a number by a tensor is, to PyTorch, the number times the tensor's reciprocal
    nonzero = pl.Series([max(1, int((batch.reward != 0.0).sum()))], dtype=pl.Float32)
    factor = _reciprocal(nonzero.new_from_index(0, len(batch.reward))) * len(batch.reward)
    return factor * _centred(batch)


def _verl_remax(batch: Batch) -> pl.Series:
    return batch.reward - batch.baselines


def _skyrl_rloo(batch: Batch) -> pl.Series:
    n = batch.size.cast(pl.Float64)
    factor = _zero_alone(batch, (n / (n - 1.0)).cast(pl.Float32))
    return _zero_alone(batch, _centred(batch) * factor)


def _skyrl_maxrl(batch: Batch) -> pl.Series:
    mean = batch.mean(batch.reward)
    return _choose(batch.single, batch.reward, (batch.reward - mean) / (mean + 1e-6))


# ── openrlhf, nemo-rl, prime-rl, verifiers ──────────────────────────────────────────────────────────────────────────────


def _clipped(values: pl.Series) -> pl.Series:
    """Return rewards within ``reward.clip_range``, by default from -10 to 10."""
    return values.clip(-10.0, 10.0)


def _openrlhf_rloo(batch: Batch) -> pl.Series:
    return _clipped(batch.reward - (batch.sum(batch.reward) - batch.reward) / (batch.size - 1.0))


def _openrlhf_dr_grpo(batch: Batch) -> pl.Series:
    return _clipped(batch.reward - batch.mean(batch.reward))


def _openrlhf_group_norm(batch: Batch) -> pl.Series:
    std = _std_of_rows(batch, batch.reward)
    return _clipped((batch.reward - batch.mean(batch.reward)) / (std + 1e-9))


def _openrlhf_reinforce(batch: Batch) -> pl.Series:
    return _normalized(batch, _clipped(batch.reward))


def _openrlhf_reinforce_baseline(batch: Batch) -> pl.Series:
    return _normalized(batch, _openrlhf_dr_grpo(batch))


def _openrlhf_flash_reinforce(batch: Batch) -> pl.Series:
    whole = batch.whole
    return _clipped(batch.reward - whole.mean(whole.reward))


def nemo_rl_moments(batch: Batch, values: pl.Series, *, leave_one_out: bool) -> tuple[pl.Series, pl.Series]:
    """Return for each row NeMo-RL's mean and standard deviation of its group, or of the others in it.

    The package multiplies by matrices, in an order that depends on the processor: here sums are those of float64. It takes σ² as the mean
    of squares less the square of the mean: for equal rewards that is what rounding leaves, here 0.
    """
    n = batch.size - float(leave_one_out)
    means = []
    for part in (values, values * values):
        wide = part.cast(pl.Float64)
        rest = batch.sum(wide, plain_sum) - (wide if leave_one_out else 0.0)
        means.append(rest.cast(pl.Float32) / n)
    mean, square = means
    std = ((square - mean * mean) * (n / (n - 1.0))).sqrt().fill_nan(0.0)
    flat = batch.single | _is_flat(batch, values)
    return _choose(flat, values, mean), _choose(flat, pl.lit(0.0, pl.Float32), std)


def _nemo_rl_scaled(batch: Batch, values: pl.Series, *, leave_one_out: bool) -> pl.Series:
    mean, std = nemo_rl_moments(batch, values, leave_one_out=leave_one_out)
    return _choose(std > 0.0, (values - mean) / (std + 1e-6), values - mean)


def _is_flat(batch: Batch, values: pl.Series) -> pl.Series:
    """Return for each row whether the values of its group are equal."""
    table = pl.DataFrame({"group": batch.group, "value": values})
    ends = table.group_by("group").agg(flat=pl.col("value").min() == pl.col("value").max()).sort("group")
    return batch.each(ends["flat"])


def _nemo_rl_grpo(batch: Batch, *, leave_one_out: bool) -> pl.Series:
    return _nemo_rl_scaled(batch, batch.reward, leave_one_out=leave_one_out)


def _nemo_rl_gdpo(batch: Batch) -> pl.Series:
    parts = [_nemo_rl_scaled(batch, part, leave_one_out=True) for part in batch.rewards]
    whole = batch.with_reward(_weighted(parts, batch.weights)).whole
    values = _weighted(parts, batch.weights)
    std, centred = _std(whole, whole.reward), values - whole.mean(whole.reward)
    return _choose(std > 0.0, centred / std, centred)


def _nemo_rl_reinforce_plus_plus(batch: Batch) -> pl.Series:
    mean, _ = nemo_rl_moments(batch, batch.reward, leave_one_out=False)
    return _normalized(batch, batch.reward - mean)


def prime_rl_grpo(batch: Batch) -> pl.Series:
    """Return r-μ in float32."""
    return batch.reward - batch.mean(batch.reward)


def _prime_rl_max_rl(batch: Batch) -> pl.Series:
    mean = batch.mean(batch.reward)
    return _choose(mean > 0.0, (batch.reward - mean) / mean, pl.lit(0.0, pl.Float32))


def _verifiers(batch: Batch) -> pl.Series:
    return batch.reward - batch.sum(batch.reward, plain_sum) / batch.size.cast(pl.Float64)


_GRPO, _RLOO = "trl/trainer/grpo_trainer.py:2754", "trl/trainer/rloo_trainer.py:1650"
_ASYNC = "trl/experimental/async_grpo/async_rollout_worker.py:1026"
_VERL, _SKYRL = "verl/trainer/ppo/core_algos.py:", "skyrl/backends/skyrl_train/utils/ppo_utils.py:"
_OPENRLHF = "openrlhf/trainer/ppo_utils/experience_maker.py:237"
_NEMO_RL, _PRIME_RL = "nemo_rl/algorithms/advantage_estimator.py:", "src/prime_rl/orchestrator/algo/"

_in_place = partial(Estimator, unscored="zero in place")
_over_tokens_too = partial(Estimator, over_tokens=True)

_ALL, _WHITENED = "(x - mean of all)/(σ of all + 1e-4)", "whitened over tokens (ddof 1)"
_PARTS = "for each reward (r-μ)/"
_FLOOR = "normalized over tokens (ddof 0, variance at least 1e-8)"

ESTIMATORS = {
    "trl-grpo": _in_place("(r-μ)/(σ+1e-4)", _GRPO, partial(_trl_grpo, scale="group")),
    "trl-grpo-batch": _in_place("(r-μ)/(σ of all + 1e-4)", _GRPO, partial(_trl_grpo, scale="batch")),
    "trl-grpo-none": _in_place("r-μ", _GRPO, partial(_trl_grpo, scale="none")),
    "trl-gdpo": _in_place(f"{_PARTS}(σ+1e-4), x their weighted sum, {_ALL}", _GRPO, _trl_gdpo, several=True),
    "trl-rloo": _in_place("r - mean of the others", _RLOO, _trl_rloo),
    "trl-rloo-normalized": _in_place(f"x = r - mean of the others, {_ALL}", _RLOO, _trl_rloo_normalized),
    "trl-async-grpo": Estimator(
        "(r-μ)/(σ+1e-8), ddof 0", _ASYNC, _trl_async_grpo, unscored="zero", float64=True, takes_weights=False
    ),
    "verl-grpo": Estimator("(r-μ)/(σ+1e-6); alone r/(1+1e-6)", f"{_VERL}267", _grpo),
    "verl-dr-grpo": Estimator("r-μ; alone r", f"{_VERL}267", _centred),
    "verl-grpo-vectorized": Estimator("as verl-grpo", f"{_VERL}334", partial(_vectorized, scaled=True)),
    "verl-dr-grpo-vectorized": Estimator("as verl-dr-grpo", f"{_VERL}334", partial(_vectorized, scaled=False)),
    "verl-rloo": Estimator("r·n/(n-1) - μ·n/(n-1); alone r", f"{_VERL}587", _verl_rloo),
    "verl-rloo-vectorized": Estimator("(n·r - Σr)/(n-1); alone 0", f"{_VERL}833", _verl_rloo_vectorized),
    "verl-gdpo": _over_tokens_too(
        f"{_PARTS}(σ+1e-6), their weighted sum {_WHITENED}", f"{_VERL}361", _verl_gdpo, several=True
    ),
    "verl-grpo-passk": Estimator(
        "(greatest - second)/(σ+1e-6) for the greatest, else 0; alone null",
        f"{_VERL}471",
        partial(_verl_passk, scaled=True),
    ),
    "verl-dr-grpo-passk": Estimator(
        "greatest - second for the greatest, else 0; alone null", f"{_VERL}471", partial(_verl_passk, scaled=False)
    ),
    "verl-reinforce-plus-plus": _over_tokens_too(
        f"r, {_WHITENED}", f"{_VERL}693", partial(_reinforce_plus_plus, baseline=False)
    ),
    "verl-reinforce-plus-plus-baseline": _over_tokens_too(
        f"r-μ (alone r), {_WHITENED}", f"{_VERL}533", partial(_reinforce_plus_plus, baseline=True)
    ),
    "verl-opo": _over_tokens_too("r - Σ(tokens·r)/Σ tokens; alone r", f"{_VERL}639", _verl_opo),
    "verl-gpg": Estimator("rows/(rows with r ≠ 0)·(r-μ); alone without μ", f"{_VERL}770", _verl_gpg),
    "verl-remax": Estimator("r - baseline", f"{_VERL}734", _verl_remax, needs_baselines=True),
    "openrlhf-rloo": Estimator("r - mean of the others; alone null", _OPENRLHF, _openrlhf_rloo),
    "openrlhf-dr-grpo": Estimator("r-μ", _OPENRLHF, _openrlhf_dr_grpo),
    "openrlhf-group-norm": Estimator("(r-μ)/(σ+1e-9); alone null", _OPENRLHF, _openrlhf_group_norm),
    "openrlhf-reinforce": _over_tokens_too(f"r, {_FLOOR}", _OPENRLHF, _openrlhf_reinforce),
    "openrlhf-reinforce-baseline": _over_tokens_too(f"r-μ, {_FLOOR}", _OPENRLHF, _openrlhf_reinforce_baseline),
    "openrlhf-flash-reinforce": Estimator("r - mean of all", _OPENRLHF, _openrlhf_flash_reinforce),
    "skyrl-grpo": Estimator("(r-μ)/(σ+1e-6); alone r/(1+1e-6)", f"{_SKYRL}1286", _grpo),
    "skyrl-dr-grpo": Estimator("r-μ; alone r", f"{_SKYRL}1286", _centred),
    "skyrl-rloo": Estimator("(r-μ)·n/(n-1); alone 0", f"{_SKYRL}1202", _skyrl_rloo),
    "skyrl-reinforce-plus-plus": _over_tokens_too(
        f"r, {_WHITENED}", f"{_SKYRL}1167", partial(_reinforce_plus_plus, baseline=False)
    ),
    "skyrl-maxrl": Estimator("(r-μ)/(μ+1e-6); alone r", f"{_SKYRL}1339", _skyrl_maxrl),
    "nemo-rl-grpo": Estimator(
        "(r-μ)/(σ+1e-6), μ and σ of the others; r-μ where σ = 0",
        f"{_NEMO_RL}69",
        partial(_nemo_rl_grpo, leave_one_out=True),
    ),
    "nemo-rl-grpo-group": Estimator("(r-μ)/(σ+1e-6)", f"{_NEMO_RL}69", partial(_nemo_rl_grpo, leave_one_out=False)),
    "nemo-rl-gdpo": Estimator(
        "for each reward as nemo-rl-grpo, x their weighted sum, (x - mean of all)/σ of all",
        f"{_NEMO_RL}116",
        _nemo_rl_gdpo,
        several=True,
    ),
    "nemo-rl-reinforce-plus-plus": _over_tokens_too(f"r-μ, {_FLOOR}", f"{_NEMO_RL}209", _nemo_rl_reinforce_plus_plus),
    "prime-rl-grpo": Estimator("r-μ", f"{_PRIME_RL}grpo.py:25", prime_rl_grpo),
    "prime-rl-max-rl": Estimator("(r-μ)/μ; 0 where μ ≤ 0", f"{_PRIME_RL}max_rl.py:22", _prime_rl_max_rl),
    "verifiers": Estimator("r-μ", "verifiers/rubrics/rubric.py:387", _verifiers, float64=True),
}
"""The estimators by name: the package, and what the package calls the estimator or the option."""
