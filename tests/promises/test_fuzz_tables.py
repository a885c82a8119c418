"""Joins with ids of all types, and the same rows in all formats: each case is answered as it must be."""

import os

from cases import sized
from fuzz_tables import IDS, case, fuzz

CASES = int(os.environ.get("ASSAY_FUZZ", sized("45", "24")))
"""How many; ASSAY_FUZZ=20000 for a thorough look."""

SEED = os.environ.get("ASSAY_FUZZ_SEED", "0")


def test_ids_of_all_types_and_rows_in_all_formats_are_answered_as_they_must_be():
    kinds, wrong = fuzz(CASES, SEED)
    assert wrong == []
    assert {"alike", "joined", "joined refused"} <= {*kinds}


def test_a_case_is_the_same_wherever_it_is_made():
    made = [case(7, number) for number in range(400)]
    assert all(
        one[0].equals(other[0]) and one[2:] == other[2:]
        for one, other in zip(made, map(case, [7] * 400, range(400)), strict=True)
    )
    assert {one[0]["task_id"].dtype.base_type() for one in made} >= {dtype.base_type() for dtype, _ in IDS.values()}
    rewards = [reward for one in made for reward in one[3] or ()]
    assert min(rewards.count(reward) for reward in (None, 0.0, 1.0)) > 50
