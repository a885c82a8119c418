"""Means over subsets: worked cases, and enumeration."""

import itertools
import math
import random
from fractions import Fraction

import pytest
from cases import sized
from insight_cases import golden
from worked_cases import worked

from assay.insight.training.subsets import best_weights, g_pass_at_k, leader_shares, mg_pass_at_k, pass_at_k, pass_hat_k


def test_pass_at_k_of_the_worked_cases():
    case = golden("groups.pass_at_k")
    assert [pass_at_k(*triple) for triple in case.input["n_c_k"]] == case.expect["pass_at_k"]
    assert [pass_hat_k(*triple) for triple in case.input["n_c_k"]] == case.expect["pass_hat_k"]


@pytest.mark.parametrize("n", [1, 2, 6])
def test_all_subsets_of_a_group(n):
    rng = random.Random(n)
    rewards = sorted(rng.choice((0.0, 0.25, 0.5, 1.0)) for _ in range(n))
    for k, c in itertools.product(range(1, n + 1), range(n + 1)):
        passed = [True] * c + [False] * (n - c)
        subsets = list(itertools.combinations(range(n), k))
        assert pass_at_k(n, c, k) == sum(any(passed[i] for i in s) for s in subsets) / len(subsets)
        assert pass_hat_k(n, c, k) == sum(all(passed[i] for i in s) for s in subsets) / len(subsets)
        for share in (0.0, 0.3, 0.5, 1.0):
            enough = [sum(passed[i] for i in s) >= max(1, k * share) for s in subsets]
            assert g_pass_at_k(n, c, k, share) == sum(enough) / len(subsets)
        above = [g_pass_at_k(n, c, k, i / k) for i in range(math.ceil(k / 2) + 1, k + 1)]
        assert mg_pass_at_k(n, c, k) == pytest.approx(2 * sum(above) / k, abs=1e-15)
        best = sum(weight * reward for weight, reward in zip(best_weights(n, k), rewards, strict=True))
        worst = sum(weight * reward for weight, reward in zip(best_weights(n, k)[::-1], rewards, strict=True))
        assert best == pytest.approx(sum(max(rewards[i] for i in s) for s in subsets) / len(subsets), abs=1e-14)
        assert worst == pytest.approx(sum(min(rewards[i] for i in s) for s in subsets) / len(subsets), abs=1e-14)


def test_the_published_definitions():
    cases = [case for case in published() if case["package"] == "definition"]
    assert len(cases) == 16
    for case in cases:
        values, k, out = sorted(case["inputs"]["values"]), case["inputs"]["k"], case["output"]
        n, c = len(values), sum(value >= 1 for value in values)
        weights = best_weights(n, k)
        best = sum(weight * value for weight, value in zip(weights, values, strict=True))
        worst = sum(weight * value for weight, value in zip(weights[::-1], values, strict=True))
        expected = {
            "pass@k = 1 - C(n-c,k)/C(n,k)": pass_at_k(n, c, k),
            "pass^k = C(c,k)/C(n,k)": pass_hat_k(n, c, k),
            "max@k (best of k), mean over all k-subsets": best,
            "min@k (worst of k), mean over all k-subsets": worst,
        }
        assert {name: value for name, value in out.items() if name in expected} == {
            name: pytest.approx(value, abs=1e-12) for name, value in expected.items() if name in out
        }


def published():
    return worked("advantage", "goldens")


BY_FUNCTION = {"PassAtK.pass_at_k": pass_at_k, "pass_at": pass_at_k, "pass_k": pass_hat_k}
"""Functions of lighteval and inspect_ai, and ours."""


def test_what_evaluators_return():
    """lighteval and inspect_ai; at_least is whether k rows pass, which is no mean over subsets."""
    compared = 0
    for case in published():
        inputs, out = case["inputs"], case["output"]
        if case["function"] == "GPassAtK.g_pass_at_k":
            # graded scores add up to lighteval's number of passing rows
            n, c, k = inputs["n"], int(sum(inputs["values"])), inputs["k"]
            ours = {f"g-pass@{k}_{share}": g_pass_at_k(n, c, k, share) for share in inputs["thresholds"]}
            assert ours | {f"mg-pass@{k}": mg_pass_at_k(n, c, k)} == pytest.approx(out, abs=1e-12)
        elif case["function"] in BY_FUNCTION:
            # inspect_ai leaves NaN out, as rows without a reward are here
            values = [value for value in inputs["values"] if value != "nan"]
            n, c = len(values), sum(value == 1 for value in values)
            expected = None if out == "nan" else pytest.approx(out, abs=1e-12)
            assert BY_FUNCTION[case["function"]](n, c, inputs["k"]) == expected
        elif case["function"] == "at_least":
            assert float(sum(value == 1 for value in inputs["values"]) >= inputs["k"]) == out
        else:
            continue
        compared += 1
    assert compared == 13 + 13 + 14 * 3


def test_the_best_of_large_groups():
    assert sum(best_weights(5000, 64)) == pytest.approx(1, abs=1e-11)
    exact = [math.comb(i - 1, 63) / math.comb(5000, 64) for i in range(64, 5001)]
    assert best_weights(5000, 64)[63:] == pytest.approx(exact, rel=1e-11, abs=1e-300)


def by_enumeration(counts, n, k):
    votes = [answer for answer, count in enumerate(counts) for _ in range(count)] + [None] * (n - sum(counts))
    shares, subsets = [Fraction(0)] * len(counts), 0
    for subset in itertools.combinations(votes, k):
        subsets += 1
        tally = [subset.count(answer) for answer in range(len(counts))]
        lead = max(tally, default=0)
        leaders = [answer for answer, count in enumerate(tally) if count == lead > 0]
        for answer in leaders:
            shares[answer] += Fraction(1, len(leaders))
    return {count: float(share / subsets) for count, share in zip(counts, shares, strict=True)}


def test_shares_of_the_lead_are_those_of_all_subsets():
    for seed in range(sized(60, 12)):
        rng = random.Random(seed)
        n = rng.randint(1, 8)
        votes = [rng.choice("aabc") if rng.random() < 0.8 else None for _ in range(n)]
        counts = tuple(sorted(votes.count(answer) for answer in {*votes} - {None}))
        for k in range(1, n + 1):
            assert leader_shares(counts, n, k) == pytest.approx(by_enumeration(counts, n, k), abs=1e-15), seed
    assert leader_shares((), 5, 3) == {}
    assert leader_shares((1,) * 256, 256, 8) == pytest.approx({1: 1 / 256})
    assert leader_shares((100, 156), 256, 256) == {100: 0.0, 156: 1.0}
    assert leader_shares((3,), 3, 2) == {3: 1.0}
