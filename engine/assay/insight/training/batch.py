"""Rewards laid out for estimators."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import polars as pl

from assay.insight.training.sums import Fold, plain_sum, runs, sums_of_groups, torch_sum
from assay.names import HIDDEN

ROW = HIDDEN + "row"


@dataclass(frozen=True, eq=False)
class Batch:
    """Rewards of groups: for each size the first rows of its groups, then the second rows, and so on.

    Attributes:
        rewards: One series for each reward, null where a row has none; by the trainer in float32 or float64.
        weights: What each reward is multiplied by.
        sizes: Rows of each group, ascending.
        rows: Number of each row in the frame.
        lengths: Tokens of each row.
        baselines: Reward of another rollout of each row's task; None if not given.
    """

    rewards: tuple[pl.Series, ...]
    weights: tuple[float, ...]
    sizes: pl.Series
    rows: pl.Series
    lengths: pl.Series
    baselines: pl.Series | None

    @cached_property
    def group(self) -> pl.Series:
        """Number of each row's group."""
        parts, first = [pl.Series([], dtype=pl.UInt32)], 0
        for size, number in runs(self.sizes):
            parts += [pl.int_range(first, first + number, dtype=pl.UInt32, eager=True)] * size
            first += number
        return pl.concat(parts)

    @cached_property
    def reward(self) -> pl.Series:
        """The weighted sum of the rewards that a row has, null if it has none."""
        if len(self.rewards) == 1 and self.weights == (1.0,):
            return self.rewards[0]
        terms = [(reward * weight).fill_null(0.0) for reward, weight in zip(self.rewards, self.weights, strict=True)]
        return _where(self.is_scored, torch_sum(pl.concat(terms), len(terms)))

    @cached_property
    def is_scored(self) -> pl.Series:
        """Whether a row has a reward."""
        return pl.select(pl.any_horizontal(reward.is_not_null() for reward in self.rewards)).to_series()

    @property
    def single(self) -> pl.Series:
        """Whether a row is alone in its group."""
        return self.size == 1

    @cached_property
    def size(self) -> pl.Series:
        """Rows of each row's group, as float32."""
        return self.each(self.sizes.cast(pl.Float32))

    def each(self, values: pl.Series) -> pl.Series:
        """Return the value of each row's group."""
        return values.gather(self.group)

    def sum(self, values: pl.Series, fold: Fold = torch_sum) -> pl.Series:
        """Return for each row the sum of its group; nulls count as 0 and keep their place."""
        return self.each(sums_of_groups(values.fill_null(0.0), self.sizes, fold))

    def count(self, values: pl.Series) -> pl.Series:
        """Return for each row how many values of its group are not null, as float32."""
        if not values.null_count():
            return self.size
        return self.sum(values.is_not_null().cast(pl.Float32), plain_sum)

    def mean(self, values: pl.Series, fold: Fold = torch_sum) -> pl.Series:
        """Return for each row the mean of its group."""
        return self.sum(values, fold) / self.count(values)

    def with_reward(self, reward: pl.Series) -> "Batch":
        """Return the batch with one reward in place of its own."""
        return replace(self, rewards=(reward,), weights=(1.0,))

    @cached_property
    def whole(self) -> "Batch":
        """All rows as one group, in the order of the frame."""
        order = self.rows.arg_sort()
        rewards = tuple(reward.gather(order) for reward in self.rewards)
        one = pl.Series([len(order)] if len(order) else [], dtype=self.sizes.dtype)
        return Batch(rewards, self.weights, one, self.rows.gather(order), self.lengths.gather(order), None)


def _where(condition: pl.Series, values: pl.Series) -> pl.Series:
    return pl.select(pl.when(condition).then(values)).to_series()


def batch_of(
    keys: pl.DataFrame,
    rewards: Sequence[pl.Series],
    weights: Sequence[float],
    lengths: pl.Series | None = None,
    baselines: pl.Series | None = None,
    *,
    all_rewards: bool = True,
    in_place: bool = False,
) -> Batch:
    """Lay out the rows of a frame.

    Args:
        keys: The columns that name a row's group; rows with a null are left out.
        rewards: The rewards of the rows, null where there is none.
        weights: What each reward is multiplied by.
        lengths: Tokens of each row; by default one.
        baselines: Reward of another rollout of each row's task.
        all_rewards: Whether a row needs all rewards to be scored, or any.
        in_place: Whether unscored rows keep their place in the group, or are left out.
    """
    table = keys.select(pl.struct(pl.all()).alias("key")) if keys.width > 1 else keys.rename({keys.columns[0]: "key"})
    has_all, has_any = (
        together(part.is_not_null() for part in rewards) for together in (pl.all_horizontal, pl.any_horizontal)
    )
    is_scored = pl.lit(value=True) if in_place else has_all if all_rewards else has_any
    kept = keys.select(pl.all_horizontal(pl.all().is_not_null()) & is_scored).to_series()
    groups = table.with_row_index(ROW).filter(kept).group_by("key").agg(ROW)
    groups = groups.select(ROW, pl.col(ROW).list.len().alias("size"), pl.col(ROW).list.first().alias("first"))
    groups = groups.sort("size", "first")
    in_groups, order, start = groups[ROW].explode(empty_as_null=False), [pl.Series([], dtype=pl.Int64)], 0
    for size, number in runs(groups["size"]):
        place = pl.int_range(size * number, eager=True)
        order.append(start + place % number * size + place // number)
        start += size * number
    rows = in_groups.gather(pl.concat(order))
    tokens = pl.repeat(1, len(rows), dtype=pl.Int64, eager=True) if lengths is None else lengths.gather(rows)
    given = None if baselines is None else baselines.gather(rows)
    return Batch(tuple(reward.gather(rows) for reward in rewards), tuple(weights), groups["size"], rows, tokens, given)
