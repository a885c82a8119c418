"""Rewards laid out for estimators, and sums of groups in the order in which PyTorch, NumPy or a loop adds: the same last bits.

Rounding depends on the order of the terms. PyTorch's kernel for a row of float32 (``SumKernel.cpp``) adds into eight lanes, each of
them into four, in blocks of at least sixteen; NumPy's adds eight at once, in halves from 128 on. Here the rows of groups of one size
are next to each other, first the first row of each group, then the second, and so on: what is added at once is a slice.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, reduce
from operator import add

import polars as pl

from assay.frozen import frozen
from assay.names import HIDDEN

ROW = HIDDEN + "row"

Fold = Callable[[pl.Series, int], pl.Series]
"""The sums of groups of one size: of the first rows of all groups, the second rows, and so on; and the size."""

# rows that are added in a package's order: from 32,768 on, PyTorch divides a sum among its threads, as many as there are
MOST_ORDERED = 32_767
_MOST_STEPS = 1 << 18  # rows of the different sizes of a frame's groups: each is a call

_LANES, _FOUR, _LEVELS = 8, 4, 4


def total(parts: Sequence[pl.Series]) -> pl.Series:
    """Add from the first to the last."""
    return reduce(add, parts)


def _slices(values: pl.Series, number: int) -> list[pl.Series]:
    length = len(values) // max(1, number)
    return [values.slice(place * length, length) for place in range(number)]


def plain_sum(values: pl.Series, size: int) -> pl.Series:
    """Add from the first row to the last."""
    return total(_slices(values, size))


def torch_sum(values: pl.Series, size: int) -> pl.Series:
    """Add as ``torch.sum`` and ``torch.nansum`` do for float32 next to each other in memory."""
    if size < _LANES:
        return _by_fours(values, size)
    number, vectors = len(values) // size, size // _LANES
    whole = vectors * _LANES * number
    lanes = _slices(_by_fours(values[:whole], vectors), _LANES)
    return total([*_slices(values[whole:], size % _LANES), *lanes])


def strided_sum(place: int, width: int) -> Fold:
    """Return the sum of a column of a matrix of this width, as ``torch.sum(matrix, dim=0)`` adds it."""
    if width == 1:
        return torch_sum
    together = _FOUR * _LANES if width >= _LANES else _FOUR
    return _in_blocks if place < width - width % together else _by_fours


def numpy_sum(values: pl.Series, size: int) -> pl.Series:
    """Add as ``numpy.sum`` does for float64 next to each other in memory."""
    if size < _LANES:
        return plain_sum(values, size)
    number = len(values) // size
    if size > 16 * _LANES:
        half = size // 2 - size // 2 % _LANES
        return numpy_sum(values[: half * number], half) + numpy_sum(values[half * number :], size - half)
    whole = size // _LANES * _LANES * number
    a, b, c, d, e, f, g, h = _slices(plain_sum(values[:whole], size // _LANES), _LANES)
    return total([((a + b) + (c + d)) + ((e + f) + (g + h)), *_slices(values[whole:], size % _LANES)])


def _by_fours(values: pl.Series, size: int) -> pl.Series:
    if size < _FOUR:
        return plain_sum(values, size)
    whole = size // _FOUR * _FOUR * (len(values) // size)
    first, *others = _slices(_in_blocks(values[:whole], size // _FOUR), _FOUR)
    return total([first, *_slices(values[whole:], size % _FOUR), *others])


def _in_blocks(values: pl.Series, size: int) -> pl.Series:
    """Add in blocks, sums of blocks in blocks, and so on: four levels."""
    power, rows = max(4, (size - 1).bit_length() // _LEVELS), _slices(values, size)
    step = 1 << power
    levels: list[pl.Series | None] = [None] * _LEVELS
    for end in range(step, size + 1, step):
        levels[0] = total(rows[end - step : end])
        for level in range(1, _LEVELS):
            levels[level] = total([part for part in levels[level - 1 : level + 1][::-1] if part is not None])
            levels[level - 1] = None
            if end & ((step - 1) << (level * power)):
                break
    levels[0] = total(rows[size - size % step :]) if size % step else None
    return total([part for part in levels if part is not None])


def runs(sizes: pl.Series) -> list[tuple[int, int]]:
    """Return each size, and how many groups have it."""
    return sizes.rle().struct.unnest().select("value", "len").rows()


def sums_of_groups(values: pl.Series, sizes: pl.Series, fold: Fold) -> pl.Series:
    """Return the sum of each group of values in the order of a ``Batch``, without nulls; of groups too large for it, in float64."""
    parts, start, steps = [], 0, 0
    for size, number in runs(sizes):
        rows = values.slice(start, size * number)
        start += size * number
        steps += size
        if size <= MOST_ORDERED and steps <= _MOST_STEPS:
            parts.append(fold(rows, size))
            continue
        table = pl.DataFrame({"group": pl.int_range(len(rows), eager=True) % number, "value": rows.cast(pl.Float64)})
        sums = table.group_by("group").agg(pl.col("value").sum()).sort("group")["value"]
        parts.append(sums.cast(values.dtype))
    return pl.concat(parts) if parts else values.clear()


@frozen(eq=False)
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
        summed = torch_sum(pl.concat(terms), len(terms))
        return pl.select(pl.when(self.is_scored).then(summed)).to_series()

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

    @property
    def longest(self) -> int:
        """Most tokens of a row."""
        return int(self.lengths.max() or 0)  # type: ignore[arg-type]

    def is_flat(self, values: pl.Series) -> pl.Series:
        """Return for each row whether the values of its group are equal."""
        table = pl.DataFrame({"group": self.group, "value": values})
        ends = table.group_by("group").agg(flat=pl.col("value").min() == pl.col("value").max()).sort("group")
        return self.each(ends["flat"])

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
    """Lay out the rows of a frame, except those of which a column of their group's key is null.

    A row is scored if it has ``all_rewards``, or else any. Unscored rows keep their place in the group (``in_place``), or are left out.
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
