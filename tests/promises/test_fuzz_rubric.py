"""Runs of rubrics drawn by a seed: in memory, from files, in parts, by the definition and by ``score_rollouts`` the same."""

import os

from fuzz_rubric import Case, fuzz

CASES = int(os.environ.get("ASSAY_FUZZ", "8"))
"""How many runs; ASSAY_FUZZ=2000 for a thorough look."""

SEED = os.environ.get("ASSAY_FUZZ_SEED", "0")


def test_a_rubric_gives_the_same_rewards_whoever_makes_the_calls():
    found, counts = fuzz(0, CASES, SEED, workers="ASSAY_FUZZ" in os.environ)
    assert found == []
    assert counts["cases"] == CASES


def test_a_case_is_the_same_wherever_it_is_made():
    for number in range(20):
        one, two = (Case(7, number) for _ in range(2))
        assert repr(one.rows) == repr(two.rows)
        assert [func.func for func in one.functions] == [func.func for func in two.functions]
        assert one.rubric.get_reward_weights() == two.rubric.get_reward_weights()
