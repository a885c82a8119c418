"""Advantages of the rollouts of a frame, as a trainer computes them."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from assay.errors import UsageError, counted, did_you_mean
from assay.frozen import frozen
from assay.insight.training.batch import Batch, batch_of
from assay.insight.training.estimators import ESTIMATORS, Estimator

_GREATEST = (2 - 2**-23) * 2.0**127  # of float32


@frozen(eq=False)
class GroupedFrame:
    """Rollouts in groups, what was counted of them, and what the user should know."""

    frame: pl.DataFrame
    facts: dict[str, Any]
    notes: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Return JSON data: the facts and the notes, not the frame."""
        return {"insight": 1, **self.facts, "notes": list(self.notes)}


class Advantages(GroupedFrame):
    """Advantages of rollouts.

    Attributes:
        frame: The frame, with the column ``advantage``: float32 where the trainer computes in it, null where it has none.
        facts: The estimator, and numbers of rows and groups: ``rows``, ``unscored``, ``left_out`` (without a group), ``groups``,
            ``undefined`` (scored, but without an advantage).
        notes: What the user should know.
    """


def advantages(
    frame: pl.DataFrame | pl.LazyFrame,
    by: Sequence[str] | str,
    *,
    like: str,
    options: Mapping[str, Any] | None = None,
    reward: Sequence[str] | str = "reward",
    weights: Sequence[float] | None = None,
    length: str | None = None,
    baseline: str | None = None,
) -> Advantages:
    """Compute the advantage of each rollout in its group, as a trainer does: the same formula, in the same float32, in the same order.

    Rows without a reward (null or NaN) are left out of their group. They get null, or 0.0 where the trainer gives 0.

    Args:
        frame: Rollouts with rewards: the batch of a training step. Rows of a group may stand anywhere; their order counts.
        by: Columns that name the group, as ``task_id`` does.
        like: The trainer and its estimator, for example ``trl-grpo`` or ``verl-rloo``.
        options: Options of the trainer's estimator by its own names, ``{"norm_adv_by_std_in_grpo": False}``; docs/advantages.md has
            all of them. Options that are not given have the trainer's defaults.
        reward: Column of rewards; several for trainers that add rewards, or normalize each (GDPO).
        weights: Weight of each column of rewards; by default 1.
        length: Column with the number of tokens of each response, for estimators that normalize over tokens; by default each row
            counts as one token.
        baseline: Column with the reward of each task's greedy response, for ReMax.

    Returns:
        The frame with advantages, and what was counted.

    Raises:
        UsageError: The estimator or a column cannot be used.

    Example:
        >>> import assay, polars as pl
        >>> rollouts = pl.DataFrame({"task_id": ["a", "a", "a", "a"], "reward": [1.0, 0.0, 1.0, 1.0]})
        >>> assay.advantages(rollouts, "task_id", like="verl-grpo").frame["advantage"].to_list()
        [0.4999989867210388, -1.4999970197677612, 0.4999989867210388, 0.4999989867210388]
    """
    if not isinstance(options, Mapping | None):
        raise UsageError(f"options: {options!r} is no mapping of names to values.", 'For example {"epsilon": 1e-6}')
    if like not in ESTIMATORS:
        raise UsageError(
            f"like {like}: unknown.", did_you_mean(like, ESTIMATORS) or f"Expected {', '.join(ESTIMATORS)}."
        )
    estimator, given = ESTIMATORS[like], dict(options or {})
    if (of_options := estimator.weights_of(given)) is not None:
        if weights is not None:
            raise UsageError("weights: among the options, too.", "Leave one of them out.")
        weights = of_options
    estimator = estimator.with_options(given, like)
    table = frame.lazy().collect()
    keys = [*dict.fromkeys(columns_of(table, by, "by"))]
    if baseline is None and estimator.needs_baselines:
        raise UsageError(f"like {like}: needs the reward of another rollout.", "Name its column: --baseline COLUMN.")
    if weights is not None and not estimator.takes_weights:
        raise UsageError(f"weights: {like} adds rewards as they are.", "Leave them out.")
    rewards = [numbers_of(table, name, "reward").cast(estimator.dtype) for name in columns_of(table, reward, "reward")]
    tokens = None if length is None else _checked_tokens(numbers_of(table, length, "column"), rewards)
    given_baselines = None if baseline is None else numbers_of(table, baseline, "column").cast(estimator.dtype)
    batch = batch_of(
        table.select(keys),
        rewards,
        _checked_weights(weights, rewards),
        tokens,
        given_baselines,
        all_rewards=estimator.unscored == "left out",
        in_place=estimator.unscored == "zero in place",
    )
    has_group = table.select(pl.all_horizontal(pl.col(keys).is_not_null())).to_series()
    column, facts, notes = _by_row(estimator, batch, has_group, like)
    if estimator.over_tokens and length is None:
        notes.append(f"{like} weighs rows by tokens, here one each: name their column, length")
    chosen = {"like": like, "options": given} if given else {"like": like}
    return Advantages(table.with_columns(column), {**chosen, **facts}, tuple(notes))


def _by_row(
    estimator: Estimator, batch: Batch, has_group: pl.Series, like: str
) -> tuple[pl.Series, dict[str, int], list[str]]:
    values = estimator.compute(batch) if len(batch.rows) else batch.reward
    if estimator.unscored == "zero in place":  # as ``nan_to_num`` of PyTorch
        values = values.fill_nan(None).fill_null(0.0).clip(-_GREATEST, _GREATEST)
    finite = pl.select(pl.when(values.is_finite()).then(values)).to_series()
    zero = None if estimator.unscored == "left out" else 0.0
    column = pl.select(pl.when(has_group).then(pl.lit(zero, values.dtype)).alias("advantage")).to_series()
    facts = {"scored": int(batch.is_scored.sum()), "groups": len(batch.sizes), "undefined": finite.null_count()}
    left_out = int((~has_group).sum())
    unscored = len(has_group) - left_out - facts["scored"]
    facts |= {"rows": len(has_group), "left_out": left_out, "unscored": unscored}
    words = (
        (left_out, "without a group: no advantage"),
        (unscored, "without a reward: left out"),
        (facts["undefined"], f"without an advantage in {like}"),
    )
    notes = [f"{counted(number, 'row')} {what}" for number, what in words if number]
    return column.scatter(batch.rows, finite), facts, notes


def columns_of(table: pl.DataFrame, names: Sequence[str] | str, option: str) -> list[str]:
    """Return the names of columns that the frame has, at least one, as a list."""
    chosen = [names] if isinstance(names, str) else list(names)
    if not chosen:
        raise UsageError(f"{option}: expected the name of a column.")
    for name in chosen:
        if name not in table.columns:
            raise UsageError(f"{option} {name}: the frame has no such column.", did_you_mean(name, table.columns))
    return chosen


def numbers_of(table: pl.DataFrame, name: str, option: str) -> pl.Series:
    """Return a column of numbers, null for NaN."""
    column = table[columns_of(table, name, option)[0]]
    if not (column.dtype.is_numeric() or column.dtype in (pl.Boolean, pl.Null)):
        raise UsageError(f"{option} {name}: expected numbers, not {column.dtype}.")
    return column.cast(pl.Float64).fill_nan(None)


def _checked_weights(weights: Sequence[float] | None, rewards: Sequence[pl.Series]) -> list[float]:
    chosen = [1.0] * len(rewards) if weights is None else [float(weight) for weight in weights]
    if len(chosen) != len(rewards):
        raise UsageError(f"weights: {len(chosen)} for {counted(len(rewards), 'column')} of rewards.")
    if not all(map(math.isfinite, chosen)):
        raise UsageError("weights: expected finite numbers.")
    return chosen


def _checked_tokens(lengths: pl.Series, rewards: Sequence[pl.Series]) -> pl.Series:
    is_scored = pl.any_horizontal(part.is_not_null() for part in rewards)
    # a row that has no reward may have no response
    lengths = pl.select(pl.when(is_scored).then(lengths).otherwise(0.0).alias(lengths.name)).to_series()
    if lengths.null_count() or not bool((lengths >= 0).all()) or not bool((lengths % 1 == 0).all()):
        raise UsageError(
            f"length {lengths.name}: expected whole numbers of tokens, at least 0, in each row with a reward."
        )
    return lengths.cast(pl.Int64)
