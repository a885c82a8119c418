"""Intervals, tests, quantiles and reproducible draws; what is not defined is None, and no result is NaN or infinite."""

import math
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import polars as pl

FEW_TASKS = 30  # an interval of fewer tasks is marked: its coverage is only roughly 95 %

_EXACT_FLIPS = 2_000
_DRAWS_AT_ONCE = 1 << 21


def finite(value: float | None) -> float | None:
    """Return a number, None in place of NaN and infinities."""
    return value if value is not None and math.isfinite(value) else None


def fixed_sums(values: pl.Expr, name: str, bits: int) -> list[pl.Expr]:
    """Return the sum of values in fixed point, in which the order does not show: of whole parts, and of rests by ``2 ** -bits``."""
    whole = values.floor()
    rest = ((values - whole) * 2.0**bits).cast(pl.Int64, strict=False)
    return [whole.cast(pl.Int64, strict=False).sum().alias(f"{name}/whole"), rest.sum().alias(f"{name}/rest")]


def fixed_mean(row: Mapping[str, Any], name: str, bits: int, count: int) -> float | None:
    """Return the mean of a number of values of which a row has the ``fixed_sums``; None for none."""
    return ((row[f"{name}/whole"] << bits) + row[f"{name}/rest"]) / (count << bits) if count else None


def mean(values: Collection[float]) -> float | None:
    """Return the mean; None for no values, or where their sum is larger than a float."""
    try:
        return finite(math.fsum(values) / len(values)) if len(values) else None
    except (OverflowError, ValueError):
        return None


def normal_p(z: float) -> float:
    """Return the two-sided p of a standard normal ``z``."""
    return math.erfc(abs(z) / math.sqrt(2))


def _beta_fraction(a: float, b: float, x: float) -> float:
    """Return the continued fraction of the incomplete beta function (DLMF 8.17.22), by Lentz's method."""
    tiny, c = 1e-300, 1.0
    result = d = 1 / ((1 - (a + b) * x / (a + 1)) or tiny)
    for m in range(1, 100_000):
        even, odd = m * (b - m) / (a + 2 * m - 1), -(a + m) * (a + b + m) / (a + 2 * m + 1)
        for term in (even * x / (a + 2 * m), odd * x / (a + 2 * m)):
            d, c = 1 / ((1 + term * d) or tiny), (1 + term / c) or tiny
            result *= d * c
        if abs(d * c - 1) < 1e-16:  # noqa: PLR2004  (the last bit)
            break
    return result


def _incomplete_beta(a: float, b: float, x: float, y: float) -> float:
    """Return the regularized incomplete beta function at ``x``; ``y`` is ``1 - x``, without its rounding."""
    if x <= 0 or y <= 0:
        return float(y <= 0)
    gammas = math.lgamma(a + b) - math.lgamma(a)
    if a > 100:  # noqa: PLR2004  (by Stirling's series: the difference of two large numbers has few digits)
        gammas = (a - 0.5) * math.log1p(b / a) + b * (math.log(a + b) - 1) + (1 / (a + b) - 1 / a) / 12
        gammas -= (1 / (a + b) ** 3 - 1 / a**3) / 360
    log = gammas - math.lgamma(b) + a * (math.log1p(-y) if y < x else math.log(x)) + b * math.log(y)
    if x < (a + 1) / (a + b + 2):
        return math.exp(log) * _beta_fraction(a, b, x) / a
    return 1 - math.exp(log) * _beta_fraction(b, a, y) / b


def t_p(t: float, df: float) -> float:
    """Return the two-sided p of Student's ``t`` with ``df`` degrees of freedom."""
    total = df + t * t
    return _incomplete_beta(df / 2, 0.5, df / total, t * t / total) if math.isfinite(total) else 0.0


@lru_cache(maxsize=1024)
def t_quantile(p: float, df: float) -> float:
    """Return the value below which Student's t lies with probability ``p``, by bisection."""
    if p < 0.5:  # noqa: PLR2004
        return -t_quantile(1 - p, df)
    low, high, outside = 0.0, 1.0, 2 * (1 - p)
    while t_p(high, df) > outside:
        low, high = high, 2 * high
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if t_p(middle, df) > outside else (low, middle)
    return high


class TTest(NamedTuple):
    """A mean with Student's t test against 0 and its 95 % interval; ``t`` is None where the standard error is 0 or unknown."""

    mean: float
    se: float | None
    t: float | None
    p: float | None
    low: float | None
    high: float | None


def t_test(mean: float, se: float | None, df: float) -> TTest:
    """Return the t test of a mean; without a deviation it is exactly 0 or certainly not."""
    if se is None or df < 1:
        return TTest(mean, None, None, None, None, None)
    if se == 0:
        return TTest(mean, se, None, float(mean == 0), mean, mean)
    half = t_quantile(0.975, df) * se
    return TTest(mean, se, finite(mean / se), t_p(mean / se, df), finite(mean - half), finite(mean + half))


def wilson(passed: int, n: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share of independent rows."""
    from statistics import NormalDist  # what the counts of a run say needs none

    z, p = NormalDist().inv_cdf(0.975), passed / n
    middle, half = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    low, high = ((middle + end) / (1 + z * z / n) for end in (-half, half))
    return (low if passed else 0.0), (high if passed < n else 1.0)


def mcnemar(b: int, c: int) -> float:
    """Return the exact two-sided p of McNemar's test for two counts of flips; 1.0 for none."""
    fewer, n = min(b, c), b + c
    if n > _EXACT_FLIPS:
        tail = _incomplete_beta(n - fewer, fewer + 1, 0.5, 0.5)
    else:
        tail = sum(math.comb(n, flips) for flips in range(fewer + 1)) / (1 << n)
    return min(1.0, 2 * tail)


def binomial_p(most: int, n: int, p: float) -> float:
    """Return the probability of at most ``most`` successes in ``n`` draws that each succeed with probability ``p``."""
    return 1.0 if most >= n else _incomplete_beta(n - most, most + 1, 1 - p, p)


def fisher(a: int, b: int, c: int, d: int) -> float:
    """Return the exact two-sided p of Fisher's test for two rows of counts, ``a, b`` and ``c, d``."""
    if a * (c + d) > c * (a + b):  # so that the first row has the lower share
        a, b, c, d = c, d, a, b
    first, column, n = a + b, a + c, a + b + c + d
    margins = math.fsum(math.lgamma(size + 1) for size in (first, n - first, column, n - column))

    def probability(k: int) -> float:
        cells = (k, first - k, column - k, n - first - column + k, n)
        return math.exp(margins - math.fsum(math.lgamma(cell + 1) for cell in cells))

    def tail(k: int, end: int, step: int) -> float:
        total = 0.0
        while k != end and (term := probability(k)) > total * 1e-17:
            total, k = total + term, k + step
        return total

    low, high = max(0, first + column - n), min(first, column)
    observed = probability(a) * (1 + 1e-7)
    if a == high or probability(a + 1) <= observed:  # no outcome is likelier
        return 1.0
    # the other tail begins where an outcome is no likelier than this one again
    near, far = max(a, (first + 1) * (column + 1) // (n + 2)) + 1, high + 1
    while near < far:
        middle = (near + far) // 2
        near, far = (middle + 1, far) if probability(middle) > observed else (near, middle)
    return min(1.0, tail(a, low - 1, -1) + tail(near, high + 1, 1))


def trend(values: Sequence[float]) -> TTest:
    """Return by how much the least-squares line through three values or more, equally far apart, rises from first to last, with its test."""
    n = len(values)
    places = [2 * at / (n - 1) - 1 for at in range(n)]
    middle, squares = math.fsum(values) / n, math.fsum(place * place for place in places)
    pairs = [(place, value - middle) for place, value in zip(places, values, strict=True)]
    slope = math.fsum(place * value for place, value in pairs) / squares
    rests = (value - slope * place for place, value in pairs)
    se = math.sqrt(math.fsum(rest * rest for rest in rests) / (n - 2) / squares)
    return t_test(2 * slope, 2 * se, n - 2)


def holm(ps: Sequence[float | None]) -> list[float | None]:
    """Return p values adjusted for their number by Holm's method; None stays, and does not count."""
    known = sorted((p, at) for at, p in enumerate(ps) if p is not None)
    adjusted, largest = list(ps), 0.0
    for rank, (p, at) in enumerate(known):
        largest = max(largest, min(1.0, (len(known) - rank) * p))
        adjusted[at] = largest
    return adjusted


def clustered_se(sums: pl.Series, counts: pl.Series, mean: float) -> float | None:
    """Return the standard error of a mean over groups, clustered by task: given each task's sum and number of groups."""
    tasks = len(sums)
    total = float(((sums - counts * mean) ** 2).sum())
    return math.sqrt(tasks / (tasks - 1) * total) / float(counts.sum()) if tasks > 1 else None


def correlation(x: pl.Series, y: pl.Series) -> float | None:
    """Return Pearson's correlation over the rows that have both; None for fewer than three, or where a side is flat."""
    both = pl.DataFrame({"x": x, "y": y}).drop_nulls()
    if both.height < 3 or any(side.min() == side.max() for side in both):  # noqa: PLR2004
        return None
    centred = both.select(pl.all() - pl.all().mean())
    xy, xx, yy = (float((centred[a] * centred[b]).sum()) for a, b in ("xy", "xx", "yy"))
    return ratio(xy, xx, yy)


def ratio(xy: float, xx: float, yy: float) -> float | None:
    """Return the correlation of which these are the centred products; None where a side is flat, or a product larger than a float."""
    if not (0 < xx < math.inf and 0 < yy < math.inf and math.isfinite(xy)):
        return None
    return max(-1.0, min(1.0, xy / (math.sqrt(xx) * math.sqrt(yy))))


def quantiles(values: pl.Series, shares: Sequence[float]) -> list[float | None]:
    """Return quantiles by linear interpolation; None for each if there are no values."""
    ordered = values.drop_nulls().sort()
    if not len(ordered):
        return [None] * len(shares)
    places = [(len(ordered) - 1) * share for share in shares]
    ends = [(ordered[math.floor(place)], ordered[math.ceil(place)], place % 1) for place in places]
    return [low if low == high else low + (high - low) * part for low, high, part in ends]


def splitmix64(seed: int, start: int, count: int) -> pl.Series:
    """Return the draws ``start`` to ``start + count`` of SplitMix64: UInt64, the same on every machine."""
    numbers = (0x9E3779B97F4A7C15, seed % 2**64, 1 << 30, 0xBF58476D1CE4E5B9, 1 << 27, 0x94D049BB133111EB, 1 << 31)
    gamma, begin, *mix, last = (pl.lit(number, dtype=pl.UInt64) for number in numbers)
    x = pl.LazyFrame({"x": pl.int_range(start + 1, start + count + 1, dtype=pl.UInt64, eager=True)})
    x = x.select(pl.col("x") * gamma + begin)
    for shift, factor in (mix[:2], mix[2:]):
        x = x.select((pl.col("x") ^ (pl.col("x") // shift)) * factor)
    return x.select(pl.col("x") ^ (pl.col("x") // last)).collect()["x"]


def bootstrap(sums: pl.Series, counts: pl.Series, *, resamples: int = 2_000, seed: int = 0) -> tuple[float, float]:
    """Return the 95 % percentile interval of a mean over groups, from resamples of its tasks: the same for the same seed.

    Tasks come in UTF-8 order of their ids, each with the sum of its groups' values (Float64) and their number.
    """
    tasks, means = len(sums), []
    for at in range(0, resamples, block := max(1, _DRAWS_AT_ONCE // tasks)):
        size = min(block, resamples - at)
        draws = splitmix64(seed, at * tasks, size * tasks) // pl.Series([1 << 11], dtype=pl.UInt64)
        places = ((draws.cast(pl.Float64) * 2.0**-53) * float(tasks)).floor().cast(pl.UInt32)
        columns = (sums,) if counts.min() == counts.max() else (sums, counts)
        total, *groups = (values.gather(places).reshape((size, tasks)).arr.sum() for values in columns)
        means.append(total / (groups[0] if groups else pl.repeat(tasks * counts[0], size, eager=True)))
    low, high = quantiles(pl.concat(means), (0.025, 0.975))
    return float(low or 0.0), float(high or 0.0)


class ClusteredMean(NamedTuple):
    """A mean over groups with its standard error and 95 % interval, clustered by task; None where it is not defined."""

    mean: float | None
    se: float | None
    low: float | None
    high: float | None


def clustered_mean(
    sums: pl.DataFrame, *, is_single: bool = True, is_rate: bool = False, seed: int | None = None
) -> ClusteredMean:
    """Return the mean of values of which each task has the sum ``v``, the number ``n``, and the least and greatest, ``low`` and ``high``.

    Values of 0 and 1, one of each task, have Wilson's interval if they are of ``is_single`` rows; others Student's, or with ``seed`` that of
    the bootstrap. Those of rates end at 0 and 1.
    """
    tasks, n = sums.height, int(sums["n"].sum())
    if not tasks:
        return ClusteredMean(None, None, None, None)
    least, greatest = float(sums["low"].min()), float(sums["high"].max())  # type: ignore[arg-type]
    mean = least if least == greatest else float(sums["v"].sum()) / n
    se = clustered_se(sums["v"], sums["n"], mean)
    se = 0.0 if se is not None and least == greatest else se
    ends: Sequence[float | None] = t_test(mean, se, tasks - 1)[-2:]
    if tasks > 1 and seed is not None:
        ends = bootstrap(sums["v"], sums["n"], seed=seed)
    elif tasks > 1 and is_single and n == tasks and sums["v"].is_in([0.0, 1.0]).all():
        ends = wilson(int(sums["v"].sum()), tasks)
    low, high = (end if end is None or not is_rate else min(1.0, max(0.0, end)) for end in ends)
    return ClusteredMean(finite(mean), finite(se), finite(low), finite(high))
