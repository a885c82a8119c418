"""Advantages as trainers compute them: each formula in the arithmetic of its package, in its order.

Sources: trl 1.16.0, verl 0.9.1, openrlhf 0.11.2, skyrl 0.3.0, nemo-rl 0.6.0 (7ea279abf), prime-rl 0.8.0 (559b44772), verifiers 0.1.14.
In formulas, r is a reward, μ and σ are mean and standard deviation of its group (ddof 1), n the rows of the group.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from typing import Any, Literal

import polars as pl

from assay.errors import UsageError, did_you_mean
from assay.frozen import frozen
from assay.insight.training.batch import MOST_ORDERED, Batch, numpy_sum, plain_sum, strided_sum, torch_sum, total

Unscored = Literal["left out", "zero", "zero in place"]
Clip = Sequence[float] | None

_SWITCH, _OFF = (True, False), (False, True)
_RANGE, _WEIGHTS, _EPSILON = "range", "weights", 1e-6


@frozen
class Estimator:
    """How a trainer computes advantages: the formula, where the package has it, and what computes it; null or not finite where none is.

    Attributes:
        options: What the package lets people choose, by its names: choices, the first by default; a number, the default; a
            ``range``, that is two numbers, the lesser first, or None; or the ``weights`` of several rewards.
        unscored: What becomes of rows without a reward: they are ``left out``, and get null; or get ``zero``, if they have none at all,
            left out as well or ``zero in place``, that is as a 0 in the order of a sum.
        float64: Whether the package computes in float64.
        over_tokens: Whether the advantages depend on the tokens of a response.
        several: Whether it is made for several rewards of a row.
    """

    formula: str
    source: str
    compute: Callable[..., pl.Series]
    options: Mapping[str, Any] = field(default_factory=dict)
    unscored: Unscored = "left out"
    float64: bool = False
    over_tokens: bool = False
    needs_baselines: bool = False
    several: bool = False
    takes_weights: bool = True

    def with_options(self, given: Mapping[str, Any], like: str) -> "Estimator":
        """Return the estimator with options of the package."""
        values = {}
        for name, value in given.items():
            if name not in self.options:
                hint = did_you_mean(str(name), self.options) or f"Options: {', '.join(self.options) or 'none'}."
                raise UsageError(f"{like} has no option {name}.", hint)
            _check_option(f"{like}, option {name}", self.options[name], value)
            if self.options[name] != _WEIGHTS:
                values[name.rpartition(".")[2]] = value
        return replace(
            self,
            compute=partial(self.compute, **values),
            several=self.several or values.get("multi_objective_aggregation") == "normalize_then_sum",
            over_tokens=self.over_tokens or values.get("advantage_batch_normalize", False),
        )

    def weights_of(self, given: Mapping[str, Any]) -> Sequence[float] | None:
        """Return the weights of rewards among options; None if they are not given."""
        return next((value for name, value in given.items() if self.options.get(name) == _WEIGHTS), None)

    @property
    def dtype(self) -> Any:
        """Type of the numbers."""
        return pl.Float64 if self.float64 else pl.Float32


def _check_option(what: str, expected: Any, value: Any) -> None:
    if isinstance(expected, tuple):
        if not any(type(value) is type(choice) and value == choice for choice in expected):
            choices = ", ".join(str(choice).lower() if isinstance(choice, bool) else choice for choice in expected)
            raise UsageError(f"{what}: {value!r} is none of its values.", f"Expected {choices}.")
        return
    numbers = value if expected in (_WEIGHTS, _RANGE) else [value]
    fits = isinstance(numbers, Sequence) and all(
        isinstance(number, int | float) and not isinstance(number, bool) and math.isfinite(number) for number in numbers
    )
    if expected == _RANGE:
        wanted = "two finite numbers, the lesser first, or none"
        fits = value is None or (fits and len(value) == 2 and value[0] <= value[1])  # noqa: PLR2004 - a range
    elif expected == _WEIGHTS:
        wanted, fits = "a list of finite numbers, or none", fits or value is None
    else:
        wanted = "a finite number"
    if not fits:
        raise UsageError(f"{what}: {value!r} cannot be used.", f"Expected {wanted}.")


def _choose(condition: pl.Series, one: Any, other: Any) -> pl.Series:
    return pl.select(pl.when(condition).then(one).otherwise(other)).to_series()


def _zero_alone(batch: Batch, values: pl.Series, value: float = 0.0) -> pl.Series:
    """Return values, and another where a row is alone in its group."""
    return _choose(batch.single, pl.lit(value, values.dtype), values)


def _std(batch: Batch, values: pl.Series, mean: pl.Series | None = None) -> pl.Series:
    """Return ``torch.std`` of each group: the mean in float32 unless it is given, squares in float64."""
    mean = batch.mean(values).cast(pl.Float64) if mean is None else mean
    centred = values.cast(pl.Float64) - mean
    squares = batch.sum(centred * centred, plain_sum)
    return (squares / (batch.size.cast(pl.Float64) - 1.0)).sqrt().cast(pl.Float32)


def _nan_std(batch: Batch, values: pl.Series, fold: Any = torch_sum) -> pl.Series:
    """Return TRL's ``nanstd`` of each group: nulls left out, NaN for fewer than two."""
    centred, count = values - batch.mean(values, fold), batch.count(values)
    variance = batch.mean(centred * centred, fold) * (count / (count - 1.0))
    return _choose(count > 1.0, variance.sqrt(), pl.lit(float("nan"), pl.Float32))


def _token_sum(batch: Batch, values: pl.Series) -> pl.Series:
    """Return the sum of the values that each token of a row has, for each row: in ``torch.sum``'s order for responses padded to the longest."""
    order, width = batch.rows.arg_sort(), batch.longest
    tokens, number = batch.lengths.gather(order), len(order) * width
    if not 0 < number <= MOST_ORDERED:
        whole = (values.gather(order).cast(pl.Float64) * tokens.cast(pl.Float64)).sum()
        return pl.Series([whole], dtype=pl.Float32).new_from_index(0, len(order))
    place = pl.int_range(number, eager=True)
    is_token = place % width < tokens.gather(place // width)
    cells = values.gather(order).gather(place // width) * is_token.cast(pl.Float32)
    # one row after the other: a single group
    return torch_sum(cells, number).new_from_index(0, len(order))


def _over_tokens(
    batch: Batch, values: pl.Series, places: float | None = None
) -> tuple[pl.Series, pl.Series, pl.Series]:
    """Return for each row the number of tokens, and the values less their mean and their variance (ddof 0) over the tokens of all rows.

    The mean is over ``places`` if they are given.
    """
    number = _like(values, float(batch.lengths.sum()))
    centred = values - _token_sum(batch, values) / (number if places is None else _like(values, places))
    return number, centred, _token_sum(batch, centred * centred) / number


def _whitened(batch: Batch, values: pl.Series) -> pl.Series:
    """Return verl's ``masked_whiten``: null for a single token."""
    number, centred, variance = _over_tokens(batch, values)
    unbiased = variance * (number / (number - 1.0))
    return centred * _reciprocal((unbiased + 1e-8).sqrt())


def _normalized(
    batch: Batch, values: pl.Series, *, no_std_norm: bool = False, places: float | None = None
) -> pl.Series:
    """Return values less their mean over tokens, by their standard deviation (ddof 0), with a floor of 1e-8 for the variance."""
    _, centred, variance = _over_tokens(batch, values, places)
    return centred if no_std_norm else centred * _reciprocal(variance.clip(1e-8).sqrt())


def _like(values: pl.Series, value: float) -> pl.Series:
    """Return a value for each of others: to Polars, a number divides as its reciprocal multiplies."""
    return pl.repeat(value, len(values), dtype=values.dtype, eager=True)


def _reciprocal(values: pl.Series) -> pl.Series:
    return _like(values, 1.0) / values


def _weighted(parts: list[pl.Series], weights: tuple[float, ...]) -> pl.Series:
    return total([part * weight for part, weight in zip(parts, weights, strict=True)])


def less_mean(batch: Batch) -> pl.Series:
    """Return r-μ in float32."""
    return batch.reward - batch.mean(batch.reward)


def _less_others(batch: Batch, clip_range: Clip = None) -> pl.Series:
    reward = _clipped(batch.reward, clip_range)
    return reward - (batch.sum(reward) - reward) / (batch.count(reward) - 1.0)


def _trl_grpo(
    batch: Batch, scale_rewards: str | bool = "group", multi_objective_aggregation: str = "sum_then_normalize"
) -> pl.Series:
    if multi_objective_aggregation == "normalize_then_sum":
        return _trl_gdpo(batch)
    if scale_rewards in ("none", False):
        return less_mean(batch)
    among = batch.with_reward(batch.reward).whole if scale_rewards == "batch" else batch
    return less_mean(batch) / (_nan_std(among, among.reward) + 1e-4)


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
    whole = batch.with_reward(values.fill_nan(None)).whole
    return (values - whole.mean(whole.reward)) / (_nan_std(whole, whole.reward) + 1e-4)


def _trl_rloo(batch: Batch, *, normalize_advantages: bool = False, reward_clip_range: Clip = None) -> pl.Series:
    values = _less_others(batch, reward_clip_range)
    return _trl_normalized(batch, values) if normalize_advantages else values


def _trl_async_grpo(batch: Batch) -> pl.Series:
    reward = total([part.fill_null(0.0) for part in batch.rewards])
    size = batch.size.cast(pl.Float64)
    centred = reward - batch.sum(reward, numpy_sum) / size
    return centred / ((batch.sum(centred * centred, numpy_sum) / size).sqrt() + 1e-8)


def _centred(batch: Batch) -> pl.Series:
    """Return r-μ; r of a row alone."""
    return batch.reward - _zero_alone(batch, batch.mean(batch.reward))


def _grpo(batch: Batch, *, norm_adv_by_std_in_grpo: bool = True, epsilon: float = _EPSILON) -> pl.Series:
    if not norm_adv_by_std_in_grpo:
        return _centred(batch)
    return _centred(batch) / (_zero_alone(batch, _std(batch, batch.reward), 1.0) + epsilon)


def _vectorized(batch: Batch, *, norm_adv_by_std_in_grpo: bool = True, epsilon: float = _EPSILON) -> pl.Series:
    mean = batch.sum(batch.reward, plain_sum) / batch.size
    centred = batch.reward - mean
    std = (batch.sum(centred * centred, plain_sum) / (batch.size - 1.0).clip(1.0)).sqrt()
    values = batch.reward - _zero_alone(batch, mean)
    return values / (_zero_alone(batch, std, 1.0) + epsilon) if norm_adv_by_std_in_grpo else values


def _verl_passk(batch: Batch, *, norm_adv_by_std_in_grpo: bool = True, epsilon: float = _EPSILON) -> pl.Series:
    table = pl.DataFrame({"group": batch.group, "reward": batch.reward})
    two = table.group_by("group").agg(pl.col("reward").top_k(2).sort(descending=True)).sort("group")["reward"]
    best, second = batch.each(two.list.get(0)), batch.each(two.list.get(1, null_on_oob=True))
    margin = best - second
    margin = margin / (_std(batch, batch.reward) + epsilon) if norm_adv_by_std_in_grpo else margin
    # of rows that are equally good each has a margin of 0
    return _choose((batch.reward == best) | second.is_null(), margin, pl.lit(0.0, pl.Float32))


def _plus_plus(batch: Batch) -> pl.Series:
    return _whitened(batch, batch.reward)


def _verl_opo(batch: Batch) -> pl.Series:
    tokens = batch.lengths.cast(pl.Float32)
    number = batch.sum(batch.lengths.cast(pl.Float64), plain_sum).cast(pl.Float32)
    return batch.reward - _zero_alone(batch, batch.sum(tokens * batch.reward) / number)


def _verl_gpg(batch: Batch, f_norm: float = 1.0) -> pl.Series:
    # a number by a tensor is, to PyTorch, the number times the tensor's reciprocal
    nonzero = pl.Series([max(1, int((batch.reward != 0.0).sum()))], dtype=pl.Float32)
    factor = _reciprocal(nonzero.new_from_index(0, len(batch.reward))) * len(batch.reward)
    return factor * _centred(batch) / _like(factor, f_norm)


def _skyrl(
    of: Callable[..., pl.Series], batch: Batch, *, advantage_batch_normalize: bool = False, **options: Any
) -> pl.Series:
    """Return advantages as SkyRL's trainer has them: the mean is that of all places, those of padding with their 0 included."""
    values = of(batch, **options)
    return _normalized(batch, values, places=len(values) * batch.longest) if advantage_batch_normalize else values


def _skyrl_grpo(batch: Batch, *, grpo_norm_by_std: bool = True, epsilon: float = _EPSILON) -> pl.Series:
    return _grpo(batch, norm_adv_by_std_in_grpo=grpo_norm_by_std, epsilon=epsilon)


def _skyrl_rloo(batch: Batch) -> pl.Series:
    n = batch.size.cast(pl.Float64)
    factor = _zero_alone(batch, (n / (n - 1.0)).cast(pl.Float32))
    return _zero_alone(batch, _centred(batch) * factor)


def _skyrl_maxrl(batch: Batch, epsilon: float = _EPSILON) -> pl.Series:
    return _choose(batch.single, batch.reward, less_mean(batch) / (batch.mean(batch.reward) + epsilon))


def _clipped(values: pl.Series, clip_range: Clip) -> pl.Series:
    return values if clip_range is None else values.clip(*clip_range)


def _openrlhf(
    of: Callable[[Batch], pl.Series],
    batch: Batch,
    clip_range: Clip = (-10.0, 10.0),
    *,
    normalized: bool = False,
    no_std_norm: bool = False,
) -> pl.Series:
    values = _clipped(of(batch), clip_range)
    return _normalized(batch, values, no_std_norm=no_std_norm) if normalized else values


def _group_norm(batch: Batch) -> pl.Series:
    # torch.std(dim=-1): with several groups, means in float64
    mean = batch.sum(batch.reward.cast(pl.Float64), plain_sum) / batch.size.cast(pl.Float64)
    std = _std(batch, batch.reward, None if len(batch.sizes) == 1 else mean)
    return less_mean(batch) / (std + 1e-9)


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
    flat = batch.single | batch.is_flat(values)
    return _choose(flat, values, mean), _choose(flat, pl.lit(0.0, pl.Float32), std)


def _nemo_rl_grpo(
    batch: Batch, *, use_leave_one_out_baseline: bool = True, normalize_rewards: bool = True
) -> pl.Series:
    mean, std = nemo_rl_moments(batch, batch.reward, leave_one_out=use_leave_one_out_baseline)
    centred = batch.reward - mean
    return _choose(std > 0.0, centred / (std + 1e-6), centred) if normalize_rewards else centred


def _nemo_rl_gdpo(batch: Batch, **options: Any) -> pl.Series:
    values = _weighted([_nemo_rl_grpo(batch.with_reward(part), **options) for part in batch.rewards], batch.weights)
    whole = batch.with_reward(values).whole
    std, centred = _std(whole, whole.reward), values - whole.mean(whole.reward)
    return _choose(std > 0.0, centred / std, centred)


def _nemo_rl_reinforce_plus_plus(batch: Batch, *, minus_baseline: bool = True) -> pl.Series:
    if not minus_baseline:
        return _normalized(batch, batch.reward)
    return _normalized(batch, batch.reward - nemo_rl_moments(batch, batch.reward, leave_one_out=False)[0])


def _verl_rloo(batch: Batch) -> pl.Series:
    n, others = batch.size, batch.size - 1.0
    value = batch.reward * n / others - batch.mean(batch.reward) * n / others
    return _choose(batch.single, batch.reward, value)


def _verl_rloo_vectorized(batch: Batch) -> pl.Series:
    n = batch.size
    return (n * batch.reward - batch.sum(batch.reward, plain_sum)) / (n - 1.0).clip(1.0) * (n > 1.0).cast(pl.Float32)


def _verl_gdpo(batch: Batch, **options: Any) -> pl.Series:
    parts = [_grpo(batch.with_reward(part), **options) for part in batch.rewards]
    return _whitened(batch, _weighted(parts, batch.weights))


def _prime_rl_max_rl(batch: Batch) -> pl.Series:
    mean = batch.mean(batch.reward)
    return _choose(mean > 0.0, less_mean(batch) / mean, pl.lit(0.0, pl.Float32))


def _of(
    source: str, line: str, formula: str, compute: Callable[..., pl.Series], options: Any = None, **facts: Any
) -> Estimator:
    return Estimator(formula, source + line, compute, options or {}, **facts)


_trl = partial(_of, "trl/trainer/grpo_trainer.py:2754", "", unscored="zero in place")
_trl_rloo_of = partial(_of, "trl/trainer/rloo_trainer.py:1650", "", unscored="zero in place")
_trl_async = partial(_of, "trl/experimental/async_grpo/async_rollout_worker.py:", unscored="zero", takes_weights=False)
_verl = partial(_of, "verl/trainer/ppo/core_algos.py:")
_openrlhf_of = partial(_of, "openrlhf/trainer/ppo_utils/experience_maker.py:", "237")
_skyrl_of = partial(_of, "skyrl/backends/skyrl_train/utils/ppo_utils.py:")
_nemo_rl = partial(_of, "nemo_rl/algorithms/advantage_estimator.py:")
_prime_rl = partial(_of, "src/prime_rl/orchestrator/algo/")
_verifiers = partial(_of, "verifiers/rubrics/rubric.py:", float64=True)
_no_std = partial(partial, norm_adv_by_std_in_grpo=False)

_ALL, _WHITENED = "(x - mean of all)/(σ of all + 1e-4)", "whitened over tokens (ddof 1)"
_PARTS, _OTHERS, _ALONE = "for each reward (r-μ)/", "r - mean of the others", "; alone r/(1+1e-6)"
_FLOOR = "normalized over tokens (ddof 0, variance at least 1e-8)"

_WEIGHTED, _CLIPPED = {"reward_weights": _WEIGHTS}, {"reward.clip_range": _RANGE}
_AGGREGATION = {"multi_objective_aggregation": ("sum_then_normalize", "normalize_then_sum")}
_OF_TRL_GRPO = {"scale_rewards": ("group", "batch", "none", True, False), **_AGGREGATION, **_WEIGHTED}
_OF_TRL_RLOO = {"reward_clip_range": _RANGE, **_WEIGHTED}
_OF_VERL = {"norm_adv_by_std_in_grpo": _SWITCH, "epsilon": _EPSILON}
_OF_VERL_GDPO = {**_OF_VERL, "gdpo_reward_weights": _WEIGHTS}
_NORMALIZED = {**_CLIPPED, "algo.advantage.no_std_norm": _OFF}
_OF_SKYRL = {"advantage_batch_normalize": _OFF}
_OF_SKYRL_GRPO = {"grpo_norm_by_std": _SWITCH, "epsilon": _EPSILON, **_OF_SKYRL}
_NORMALIZE = {"normalize_rewards": _SWITCH}
_OF_NEMO_RL = {"use_leave_one_out_baseline": _SWITCH, **_NORMALIZE}

ESTIMATORS = {
    "trl-grpo": _trl("(r-μ)/(σ+1e-4)", _trl_grpo, _OF_TRL_GRPO),
    "trl-grpo-batch": _trl("(r-μ)/(σ of all + 1e-4)", partial(_trl_grpo, scale_rewards="batch"), _WEIGHTED),
    "trl-grpo-none": _trl("r-μ", less_mean, _WEIGHTED),
    "trl-gdpo": _trl(f"{_PARTS}(σ+1e-4), x their weighted sum, {_ALL}", _trl_gdpo, _WEIGHTED, several=True),
    "trl-rloo": _trl_rloo_of(_OTHERS, _trl_rloo, {"normalize_advantages": _OFF, **_OF_TRL_RLOO}),
    "trl-rloo-normalized": _trl_rloo_of(
        f"x = {_OTHERS}, {_ALL}", partial(_trl_rloo, normalize_advantages=True), _OF_TRL_RLOO
    ),
    "trl-async-grpo": _trl_async("1026", "(r-μ)/(σ+1e-8), ddof 0", _trl_async_grpo, float64=True),
    "verl-grpo": _verl("267", f"(r-μ)/(σ+1e-6){_ALONE}", _grpo, _OF_VERL),
    "verl-dr-grpo": _verl("267", "r-μ; alone r", _centred),
    "verl-grpo-vectorized": _verl("334", "as verl-grpo", _vectorized, _OF_VERL),
    "verl-dr-grpo-vectorized": _verl("334", "as verl-dr-grpo", _no_std(_vectorized)),
    "verl-rloo": _verl("587", "r·n/(n-1) - μ·n/(n-1); alone r", _verl_rloo),
    "verl-rloo-vectorized": _verl("833", "(n·r - Σr)/(n-1); alone 0", _verl_rloo_vectorized),
    "verl-gdpo": _verl(
        "361",
        f"{_PARTS}(σ+1e-6), their weighted sum {_WHITENED}",
        _verl_gdpo,
        _OF_VERL_GDPO,
        several=True,
        over_tokens=True,
    ),
    "verl-grpo-passk": _verl(
        "471", "(greatest - second)/(σ+1e-6) for the greatest, else 0; alone null", _verl_passk, _OF_VERL
    ),
    "verl-dr-grpo-passk": _verl("471", "greatest - second for the greatest, else 0; alone null", _no_std(_verl_passk)),
    "verl-reinforce-plus-plus": _verl("693", f"r, {_WHITENED}", _plus_plus, over_tokens=True),
    "verl-reinforce-plus-plus-baseline": _verl(
        "533", f"r-μ (alone r), {_WHITENED}", lambda batch: _whitened(batch, _centred(batch)), over_tokens=True
    ),
    "verl-opo": _verl("639", "r - Σ(tokens·r)/Σ tokens; alone r", _verl_opo, over_tokens=True),
    "verl-gpg": _verl("770", "rows/(rows with r ≠ 0)·(r-μ); alone without μ", _verl_gpg, {"f_norm": 1.0}),
    "verl-remax": _verl("734", "r - baseline", lambda batch: batch.reward - batch.baselines, needs_baselines=True),
    "openrlhf-rloo": _openrlhf_of(f"{_OTHERS}; alone null", partial(_openrlhf, _less_others), _CLIPPED),
    "openrlhf-dr-grpo": _openrlhf_of("r-μ", partial(_openrlhf, less_mean), _CLIPPED),
    "openrlhf-group-norm": _openrlhf_of("(r-μ)/(σ+1e-9); alone null", partial(_openrlhf, _group_norm), _CLIPPED),
    "openrlhf-reinforce": _openrlhf_of(
        f"r, {_FLOOR}", partial(_openrlhf, lambda batch: batch.reward, normalized=True), _NORMALIZED, over_tokens=True
    ),
    "openrlhf-reinforce-baseline": _openrlhf_of(
        f"r-μ, {_FLOOR}", partial(_openrlhf, less_mean, normalized=True), _NORMALIZED, over_tokens=True
    ),
    "openrlhf-flash-reinforce": _openrlhf_of(
        "r - mean of all",
        partial(_openrlhf, lambda batch: batch.reward - batch.whole.mean(batch.whole.reward)),
        _CLIPPED,
    ),
    "skyrl-grpo": _skyrl_of("1286", f"(r-μ)/(σ+1e-6){_ALONE}", partial(_skyrl, _skyrl_grpo), _OF_SKYRL_GRPO),
    "skyrl-dr-grpo": _skyrl_of("1286", "r-μ; alone r", partial(_skyrl, _centred), _OF_SKYRL),
    "skyrl-rloo": _skyrl_of("1202", "(r-μ)·n/(n-1); alone 0", partial(_skyrl, _skyrl_rloo), _OF_SKYRL),
    "skyrl-reinforce-plus-plus": _skyrl_of(
        "1167", f"r, {_WHITENED}", partial(_skyrl, _plus_plus), _OF_SKYRL, over_tokens=True
    ),
    "skyrl-maxrl": _skyrl_of(
        "1339", "(r-μ)/(μ+1e-6); alone r", partial(_skyrl, _skyrl_maxrl), {"epsilon": _EPSILON, **_OF_SKYRL}
    ),
    "nemo-rl-grpo": _nemo_rl(
        "69", "(r-μ)/(σ+1e-6), μ and σ of the others; r-μ where σ = 0", _nemo_rl_grpo, _OF_NEMO_RL
    ),
    "nemo-rl-grpo-group": _nemo_rl(
        "69", "(r-μ)/(σ+1e-6)", partial(_nemo_rl_grpo, use_leave_one_out_baseline=False), _NORMALIZE
    ),
    "nemo-rl-gdpo": _nemo_rl(
        "116",
        "for each reward as nemo-rl-grpo, x their weighted sum, (x - mean of all)/σ of all",
        _nemo_rl_gdpo,
        {**_OF_NEMO_RL, **_WEIGHTED},
        several=True,
    ),
    "nemo-rl-reinforce-plus-plus": _nemo_rl(
        "209", f"r-μ, {_FLOOR}", _nemo_rl_reinforce_plus_plus, {"minus_baseline": _SWITCH}, over_tokens=True
    ),
    "prime-rl-grpo": _prime_rl("grpo.py:25", "r-μ", less_mean),
    "prime-rl-max-rl": _prime_rl("max_rl.py:22", "(r-μ)/μ; 0 where μ ≤ 0", _prime_rl_max_rl),
    "verifiers": _verifiers(
        "387", "r-μ", lambda batch: batch.reward - batch.sum(batch.reward, plain_sum) / batch.size.cast(pl.Float64)
    ),
}
"""The estimators by name: the package, and what the package calls the estimator or the option."""
