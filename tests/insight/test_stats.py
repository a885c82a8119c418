"""Statistics: worked cases, limits where formulas degenerate, and draws that are the same everywhere."""

import itertools
import math
import random
import statistics

import polars as pl
import pytest
from insight_cases import golden

from assay.insight import stats

approx = pytest.approx


def test_draws_mcnemar_and_wilson_of_the_worked_cases():
    case = golden("rng.splitmix64")
    for seed, draws, indices in zip(case.input["seeds"], case.expect["draws"], case.expect["indices"], strict=True):
        x = stats.splitmix64(seed, 0, 5)
        assert [str(value) for value in x] == draws
        assert [math.floor((value >> 11) * 2.0**-53 * case.input["size"]) for value in x] == indices
    case = golden("diff.mcnemar")
    for pair, p in zip(case.input["pairs"], case.expect["p"], strict=True):
        assert stats.mcnemar(*pair) == stats.mcnemar(*reversed(pair)) == approx(p, abs=case.tolerance)
    case = golden("groups.wilson")
    for (passed, n), interval in zip(case.input["passed_of"], case.expect["ci95"], strict=True):
        assert stats.wilson(passed, n) == approx(interval, abs=case.tolerance)


@pytest.mark.parametrize("seed", [0, 2**63, 2**64 - 1])
def test_draws_are_those_of_the_definition_wherever_they_start(seed):
    def draw(k):
        x = (seed + (k + 1) * 0x9E3779B97F4A7C15) % 2**64
        x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        x = (x ^ x >> 27) * 0x94D049BB133111EB % 2**64
        return x ^ x >> 31

    for start, count in ((0, 50), (10**12, 3), (5, 0)):
        assert stats.splitmix64(seed, start, count).to_list() == [draw(start + k) for k in range(count)]


def test_mcnemar_is_the_same_by_integers_and_by_the_beta_function(monkeypatch):
    cases = [(k, n - k) for n in (1, 2, 7, 100, 500) for k in (0, n // 3, n // 2)]
    exact = [stats.mcnemar(*case) for case in cases]
    assert exact == [min(1, 2 * sum(math.comb(b + c, i) for i in range(b + 1)) / 2 ** (b + c)) for b, c in cases]
    monkeypatch.setattr(stats, "_EXACT_FLIPS", 0)
    assert [stats.mcnemar(*case) for case in cases] == approx(exact, abs=1e-12)
    # by symmetry, at the middle of an odd number
    assert stats.mcnemar(500_000, 500_001) == approx(1, abs=1e-9)


# two-sided p and 0.975 quantiles by scipy 1.17.1
T = [
    (1, 12.706204736174694, 2.0, 0.2951672353008666),
    (2.7, 3.3921483831737507, 2.0, 0.149423438070502),
    (10, 2.228138851986274, 2.0, 0.07338803477074047),
    (29, 2.0452296421327034, 3.5, 0.0015244463146546023),
    (499_999, 1.9599687291032937, 30.0, 1.4719391842912814e-197),
]


def test_student_and_normal():
    for df, quantile, t, p in T:
        assert stats.t_quantile(0.975, df) == approx(quantile, rel=1e-10)
        assert stats.t_quantile(0.025, df) == -stats.t_quantile(0.975, df)
        assert stats.t_p(t, df) == stats.t_p(-t, df) == approx(p, rel=1e-9)
        assert stats.t_p(stats.t_quantile(0.975, df), df) == approx(0.05, abs=1e-12)
        assert (stats.t_p(0.0, df), stats.t_p(math.inf, df), stats.t_p(1e200, df)) == (1.0, 0.0, 0.0)
    for t in (1e-6, 0.3, 1.0, 7.5, 1e6):
        assert stats.t_p(t, 1) == approx(2 * math.atan2(1, t) / math.pi, rel=1e-12)
        assert stats.t_p(t, 2) == approx(2 / (t * t + 2 + t * math.sqrt(t * t + 2)), rel=1e-9)
    assert stats.normal_p(1.959963984540054) == approx(0.05, abs=1e-15)
    assert stats.normal_p(-2 / math.sqrt(2)) == approx(0.15729920705028513, abs=1e-15)


def test_a_mean_without_a_deviation_is_zero_or_certainly_not():
    assert stats.t_test(0.0, 0.0, 5) == (0.0, 0.0, None, 1.0, 0.0, 0.0)
    assert stats.t_test(0.5, 0.0, 5) == (0.5, 0.0, None, 0.0, 0.5, 0.5)
    assert stats.t_test(0.5, None, 0) == (0.5, None, None, None, None, None)


def test_holm():
    # by statsmodels.stats.multitest.multipletests(method="holm")
    assert stats.holm([0.01, 0.04, 0.03, 0.005]) == approx([0.03, 0.06, 0.06, 0.02])
    assert stats.holm([None, 0.04, None, 0.6]) == approx([None, 0.08, None, 0.6])
    assert (stats.holm([0.9, 0.8]), stats.holm([])) == ([1.0, 1.0], [])


def test_the_clustered_error():
    # statsmodels: OLS on a constant, cov_type="cluster", with C/(C-1) for the small sample
    clusters = [[1.0, 0.5], [0.0], [1.0, 1.0, 0.25]]
    mean = sum(map(sum, clusters)) / 6
    squares = sum(sum(value - mean for value in cluster) ** 2 for cluster in clusters)
    se = stats.clustered_se(pl.Series([sum(cluster) for cluster in clusters]), pl.Series([2, 1, 3]), mean)
    assert se == approx(math.sqrt(3 / 2 * squares) / 6)
    values = [0.25, 1.0, 0.0, 0.5]  # single groups: that of a mean
    se = stats.clustered_se(pl.Series(values), pl.Series([1] * 4), statistics.mean(values))
    assert se == approx(statistics.stdev(values) / 2)
    assert stats.clustered_se(pl.Series([0.5]), pl.Series([3]), 0.5 / 3) is None


def test_correlation_and_quantiles():
    x, y = pl.Series([1.0, 2.0, None, 4.0, 8.0]), pl.Series([2.0, 1.0, 9.0, 5.0, 4.0])
    assert stats.correlation(x, y) == approx(statistics.correlation([1, 2, 4, 8], [2, 1, 5, 4]))
    assert stats.correlation(x, pl.Series([0.1] * 5)) is None
    assert stats.correlation(x[:2], y[:2]) is None
    assert stats.correlation(pl.Series([1.0, 2.0, 3.0]), pl.Series([3, 2, 1])) == approx(-1)
    values = pl.Series([4.0, None, 1.0, 2.0, 8.0])
    assert stats.quantiles(values, [0, 0.25, 0.5, 0.9, 1]) == approx([1.0, 1.75, 3.0, 6.8, 8.0])
    assert stats.quantiles(pl.Series([0.1, 0.1, 0.1]), [0.3]) == [0.1]
    assert stats.quantiles(pl.Series([], dtype=pl.Float64), [0, 1]) == [None, None]


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("at_once", [1, 100, 1 << 21])
def test_bootstrap_is_that_of_the_definition_whatever_is_drawn_at_once(monkeypatch, at_once, several):
    rng = random.Random(3)
    sums = [rng.random() * 3 for _ in range(13)]
    counts = [rng.randint(1, 3) if several else 2 for _ in range(13)]
    draws = iter(stats.splitmix64(7, 0, 13 * 200).to_list())
    means = []
    for _ in range(200):
        places = [math.floor((x >> 11) * 2.0**-53 * 13) for x in itertools.islice(draws, 13)]
        means.append(sum(sums[place] for place in places) / sum(counts[place] for place in places))
    expected = stats.quantiles(pl.Series(means), [0.025, 0.975])
    monkeypatch.setattr(stats, "_DRAWS_AT_ONCE", at_once)
    interval = stats.bootstrap(pl.Series(sums), pl.Series(counts), resamples=200, seed=7)
    assert interval == approx(expected, rel=1e-14)


def test_what_is_not_finite_is_none():
    lists = ([], [1e308] * 2, [1e308, -1e308], [math.inf, -math.inf])
    assert [stats.mean(values) for values in lists] == [None, None, 0, None]
    sums = ((1, 1, 4), (math.inf, 1e308, 1e308), (1e300, 1e308, math.inf))
    assert [stats.ratio(*three) for three in sums] == [0.5, None, None]
    assert [stats.finite(value) for value in (1.0, None, math.nan, -math.inf)] == [1.0, None, None, None]


def test_sums_in_fixed_point_are_those_of_fractions_in_any_order():
    values = [0.1, -0.1, 1e6 + 0.3, -2.75, 1.0]
    rows = [
        pl.select(stats.fixed_sums(pl.lit(pl.Series(values[::step])), "x", 40)).row(0, named=True) for step in (1, -1)
    ]
    assert rows[0] == rows[1]
    assert stats.fixed_mean(rows[0], "x", 40, 5) == approx(math.fsum(values) / 5, abs=1e-11)
    assert stats.fixed_mean(rows[0], "x", 40, 0) is None


def test_tails_of_the_binomial_distribution():
    for most, n, p in ((0, 90, 0.05), (3, 100, 0.05), (48, 50, 0.9), (7, 7, 0.5)):
        terms = [math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(most + 1)]
        assert stats.binomial_p(most, n, p) == approx(math.fsum(terms), rel=1e-12)


def test_fisher_is_the_sum_of_what_is_no_likelier():
    rng = random.Random(0)
    tables = [[rng.randrange(size) for _ in range(4)] for size in (3, 12, 60) for _ in range(300)]
    for a, b, c, d in [*tables, [8, 2, 1, 5], [0, 9, 0, 4]]:
        first, second, column = a + b, c + d, a + c
        ways = [math.comb(first, k) * math.comb(second, column - k) for k in range(column + 1) if k <= first]
        own = math.comb(first, a) * math.comb(second, c)
        assert stats.fisher(a, b, c, d) == approx(sum(way for way in ways if way <= own) / sum(ways), rel=1e-9)


def test_a_trend_is_the_least_squares_line():
    values = [0.5, 0.55, 0.4, 0.45, 0.3, 0.35, 0.2]
    slope, _ = statistics.linear_regression(range(7), values)
    trend = stats.trend(values)
    assert trend.mean == approx(6 * slope, rel=1e-12)
    r = statistics.correlation(range(7), values)
    assert trend.t == approx(r * math.sqrt(5 / (1 - r * r)), rel=1e-12)
    assert stats.trend([0.5] * 6).p == 1.0
