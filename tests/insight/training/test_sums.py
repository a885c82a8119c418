"""Sums in the order of other packages: the kernels written out for single numbers."""

import itertools
import random
import struct
from functools import reduce
from operator import add

import polars as pl
import pytest

from assay.insight.training import batch as sums
from assay.insight.training.batch import numpy_sum, plain_sum, strided_sum, sums_of_groups, torch_sum


def single(value):
    """Return the nearest float32."""
    return struct.unpack("f", struct.pack("f", value))[0]


def added(values, start=0.0):
    total = start
    for value in values:
        total = single(total + value)
    return total


def cascade(values):
    """``multi_row_sum`` of PyTorch's SumKernel.cpp, for one lane."""
    power = max(4, (len(values) - 1).bit_length() // 4)
    step, levels, at = 1 << power, [0.0] * 4, 0
    while at + step <= len(values):
        levels[0] = added(values[at : at + step], levels[0])
        at += step
        for level in range(1, 4):
            levels[level], levels[level - 1] = single(levels[level] + levels[level - 1]), 0.0
            if at & ((step - 1) << (level * power)):
                break
    levels[0] = added(values[at:], levels[0])
    return added(levels[1:], levels[0])


def row_sum(values):
    whole = len(values) // 4 * 4
    lanes = [cascade(values[lane:whole:4]) for lane in range(4)]
    return added(lanes[1:], added(values[whole:], lanes[0]))


def torch_row(values):
    """``torch.sum`` of float32: eight lanes of four."""
    if len(values) < 8:
        return row_sum(values)
    whole = len(values) // 8 * 8
    return added([*values[whole:], *(row_sum(values[lane:whole:8]) for lane in range(8))])


def numpy_row(values):
    """``numpy.sum`` of float64: NumPy's pairwise sum."""
    if len(values) < 8:
        return reduce(add, values)  # sum() of Python 3.12 rounds otherwise
    if len(values) > 128:
        half = len(values) // 2
        half -= half % 8
        return numpy_row(values[:half]) + numpy_row(values[half:])
    lanes = list(values[:8])
    whole = len(values) // 8 * 8
    for at in range(8, whole):
        lanes[at % 8] += values[at]
    a, b, c, d, e, f, g, h = lanes
    return reduce(add, values[whole:], ((a + b) + (c + d)) + ((e + f) + (g + h)))


def by_place(groups):
    """The values of groups of one size as ``sums_of_groups`` takes them."""
    return list(itertools.chain(*zip(*groups, strict=True)))


def test_each_order_is_that_of_its_kernel():
    for size in (*range(1, 36), 63, 64, 65, 100, 128, 129, 257, 511, 1000, 2049):
        rng = random.Random(size)
        groups = [[single(rng.gauss(0, 1)) for _ in range(size)] for _ in range(3)]
        narrow = pl.Series(by_place(groups), dtype=pl.Float32)
        kernels = {torch_sum: torch_row, plain_sum: added, strided_sum(0, 3): row_sum, strided_sum(0, 4): cascade}
        for fold, kernel in kernels.items():
            assert fold(narrow, size).to_list() == [kernel(group) for group in groups], (size, kernel)
        wide = [[rng.random() for _ in range(size)] for _ in range(3)]
        assert numpy_sum(pl.Series(by_place(wide)), size).to_list() == [numpy_row(group) for group in wide], size


def test_columns_of_a_matrix():
    """Four columns at a time, or 32, are added in blocks; the rest of them by fours."""
    kinds = {width: [strided_sum(place, width) for place in range(width)] for width in (1, 3, 5, 9, 33)}
    blocks, fours = sums._in_blocks, sums._by_fours
    assert (kinds[1], kinds[3], kinds[9]) == ([torch_sum], [fours] * 3, [fours] * 9)
    assert (kinds[5], kinds[33]) == ([blocks] * 4 + [fours], [blocks] * 32 + [fours])


def test_sizes_follow_each_other():
    values = pl.Series([1.0, 2.0, *by_place([[3.0, 4.0], [5.0, 6.0]]), 7.0, 8.0, 9.0], dtype=pl.Float32)
    sizes = pl.Series([1, 1, 2, 2, 3])
    assert sums_of_groups(values, sizes, torch_sum).to_list() == [1.0, 2.0, 7.0, 11.0, 24.0]
    assert sums_of_groups(values.clear(), sizes.clear(), torch_sum).dtype == pl.Float32


@pytest.mark.parametrize("limit", ["MOST_ORDERED", "_MOST_STEPS"])
def test_what_is_too_large_for_an_order_is_added_in_float64(monkeypatch, limit):
    monkeypatch.setattr(sums, limit, 2)
    values = [single(value / 10) for value in range(1, 9)]
    groups = [values[:4], values[4:]]
    sums_of_both = sums_of_groups(pl.Series(by_place(groups), dtype=pl.Float32), pl.Series([4, 4]), torch_sum)
    assert sums_of_both.to_list() == [single(sum(group)) for group in groups]
