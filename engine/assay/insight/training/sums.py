"""Sums of groups in the order in which PyTorch, NumPy or a loop adds: the same last bits.

Rounding depends on the order of the terms. PyTorch's kernel for a row of float32 (``SumKernel.cpp``) adds into eight lanes, each of
them into four, in blocks of at least sixteen; NumPy's adds eight at once, in halves from 128 on. Here the rows of groups of one size
are next to each other, first the first row of each group, then the second, and so on: what is added at once is a slice.
"""

from collections.abc import Callable, Sequence
from functools import reduce
from operator import add

import polars as pl

Fold = Callable[[pl.Series, int], pl.Series]
"""The sums of groups of one size: of the first rows of all groups, the second rows, and so on; and the size."""

MOST_ORDERED = 32_767
"""Most rows that are added in a package's order: from 32,768 on, PyTorch divides a sum among its threads, as many as there are."""

_MOST_STEPS = 1 << 18
"""Most rows of the different sizes of a frame's groups: each is a call."""

_LANES, _FOUR, _LEVELS = 8, 4, 4


def total(parts: Sequence[pl.Series]) -> pl.Series:
    """Add from the first to the last."""
    return reduce(add, parts)


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
    """Return the sum of a column of a matrix, as ``torch.sum(matrix, dim=0)`` adds it.

    Args:
        place: Number of the column.
        width: Columns of the matrix.
    """
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


def _slices(values: pl.Series, number: int) -> list[pl.Series]:
    """Return a number of slices of equal length."""
    length = len(values) // max(1, number)
    return [values.slice(place * length, length) for place in range(number)]


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
            levels[level], levels[level - 1] = _plus(levels[level], levels[level - 1]), None
            if end & ((step - 1) << (level * power)):
                break
    levels[0] = total(rows[size - size % step :]) if size % step else None
    return total([part for part in levels if part is not None])


def _plus(left: pl.Series | None, right: pl.Series | None) -> pl.Series | None:
    return right if left is None else left if right is None else left + right


def runs(sizes: pl.Series) -> list[tuple[int, int]]:
    """Return each size, and how many groups have it."""
    return sizes.rle().struct.unnest().select("value", "len").rows()


def sums_of_groups(values: pl.Series, sizes: pl.Series, fold: Fold) -> pl.Series:
    """Return the sum of each group; of groups too large for an order, the sum in float64.

    Args:
        values: The values, without nulls: for each size the first rows of its groups, the second rows, and so on.
        sizes: Rows of each group, ascending.
        fold: How values are added.
    """
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
