"""Which groups of a frame a trainer's dynamic sampling keeps."""

from collections.abc import Callable, Sequence
from typing import Any

import polars as pl

from assay.errors import UsageError, counted, did_you_mean
from assay.frozen import frozen
from assay.insight.training.advantage import GroupedFrame, columns_of, numbers_of
from assay.insight.training.batch import ROW, Batch, batch_of, numpy_sum, plain_sum
from assay.insight.training.estimators import less_mean, nemo_rl_moments


@frozen
class GroupFilter:
    """How a trainer decides, for each row of a batch, whether its group is worth training on; computed in ``dtype``."""

    rule: str
    source: str
    keeps: Callable[[Batch], pl.Series]
    dtype: Any = pl.Float32


class KeptGroups(GroupedFrame):
    """The groups that a trainer keeps.

    Attributes:
        frame: The rows of these groups, in their order.
        facts: The filter, and numbers: ``rows``, ``unscored``, ``left_out`` (without a group), ``groups``, ``kept`` and ``dropped`` groups.
        notes: What the user should know.
    """


def _verl(batch: Batch) -> pl.Series:
    size = batch.size.cast(pl.Float64)
    centred = batch.reward - batch.sum(batch.reward, numpy_sum) / size
    return batch.single | ((batch.sum(centred * centred, numpy_sum) / size).sqrt() != 0.0)


def _openrlhf(batch: Batch) -> pl.Series:
    # scores are float32, and added by Python
    mean = batch.sum(batch.reward.cast(pl.Float64), plain_sum) / batch.size.cast(pl.Float64)
    return (mean > 0.0) & (mean < 1.0)


def _prime_rl(batch: Batch) -> pl.Series:
    return batch.sum((less_mean(batch) != 0.0).cast(pl.Float32), plain_sum) > 0.0


FILTERS = {
    "verl": GroupFilter(
        "numpy.std(r) ≠ 0, or a single row", "verl/trainer/ppo/v1/replay_buffer.py:312", _verl, pl.Float64
    ),
    "skyrl": GroupFilter(
        "max - min > 0, or a single row",
        "skyrl/train/utils/trainer_utils.py:652",
        lambda batch: batch.single | batch.is_flat(batch.reward).not_(),
        pl.Float64,
    ),
    "openrlhf": GroupFilter("0 < μ < 1", "openrlhf/trainer/ppo_utils/samples_generator.py:169", _openrlhf),
    "nemo-rl": GroupFilter(
        "σ ≠ 0",
        "nemo_rl/algorithms/utils.py:104",
        lambda batch: nemo_rl_moments(batch, batch.reward, leave_one_out=False)[1] != 0.0,
    ),
    "prime-rl": GroupFilter("an advantage r-μ ≠ 0", "src/prime_rl/orchestrator/filters.py", _prime_rl),
}
"""The filters by the name of the package."""


def filter_of(like: str) -> GroupFilter:
    """Return the filter of a name."""
    if like not in FILTERS:
        raise UsageError(f"like {like}: unknown.", did_you_mean(like, FILTERS) or f"Expected {', '.join(FILTERS)}.")
    return FILTERS[like]


def keep_groups(
    frame: pl.DataFrame | pl.LazyFrame, by: Sequence[str] | str, *, like: str, reward: str = "reward"
) -> KeptGroups:
    """Keep the groups that a trainer's dynamic sampling keeps: those whose rewards differ, by the rule of the package.

    Rows without a reward (null or NaN) do not count; they stay with their group. A group without any reward is dropped.

    Args:
        frame: Rollouts with rewards.
        by: Columns that name the group, as ``task_id`` does.
        like: The trainer: ``verl``, ``skyrl``, ``openrlhf``, ``nemo-rl`` or ``prime-rl``.
        reward: Column of rewards.

    Returns:
        The rows of the groups that are kept, and what was counted.

    Raises:
        UsageError: The trainer or a column cannot be used.

    Example:
        >>> import assay, polars as pl
        >>> rollouts = pl.DataFrame({"task_id": ["a", "a", "b", "b"], "reward": [1.0, 1.0, 1.0, 0.0]})
        >>> assay.keep_groups(rollouts, "task_id", like="skyrl").frame["task_id"].to_list()
        ['b', 'b']
    """
    chosen = filter_of(like)
    table = frame.lazy().collect()
    keys = [*dict.fromkeys(columns_of(table, by, "by"))]
    rewards = numbers_of(table, reward, "reward").cast(chosen.dtype)
    batch = batch_of(table.select(keys), [rewards], [1.0])
    rows = batch.rows.filter(chosen.keeps(batch)) if len(batch.rows) else batch.rows
    is_kept = pl.int_range(table.height, dtype=pl.UInt32, eager=True).is_in(rows.implode()).alias(ROW)
    kept = table.with_columns(is_kept).filter(pl.col(ROW).any().over(keys)).drop(ROW)
    has_group = pl.all_horizontal(pl.col(keys).is_not_null())
    left_out = int(table.select(has_group.not_().sum()).item())
    groups = table.filter(has_group).select(keys).n_unique()
    facts: dict[str, Any] = {"like": like, "rows": table.height, "left_out": left_out}
    facts["unscored"] = table.height - left_out - len(batch.rows)
    facts |= {"groups": groups, "kept": kept.select(keys).n_unique()}
    facts["dropped"] = groups - facts["kept"]
    notes = [f"{counted(left_out, 'row')} without a group: left out"] if left_out else []
    notes += [f"{counted(facts['unscored'], 'row')} without a reward: left out of the decision"] * bool(
        facts["unscored"]
    )
    return KeptGroups(kept, facts, tuple(notes))
