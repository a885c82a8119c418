"""``whatif --out`` and ``--reuse`` on results, changes and edits drawn by a seed: what a full run gives, or a refusal."""

import os

from cases import sized
from fuzz_whatifs import REFUSALS, Case, fuzz

CASES = int(os.environ.get("ASSAY_FUZZ_WHATIFS", sized("200", "6")))
"""How many results, with eight changes each; ASSAY_FUZZ_WHATIFS=3000 for a thorough look."""

SEED = os.environ.get("ASSAY_FUZZ_SEED", "0")


def test_what_is_written_is_what_a_full_run_gives():
    found, counts = fuzz(range(CASES), SEED)
    assert found == []
    assert counts["changes compared"] > CASES, counts
    assert counts["reuses compared"] > CASES / 2, counts
    assert counts["compared where rows lose their checks"] > 0, counts
    assert {name.removeprefix("refused: ") for name in counts if name.startswith("refused")} <= {*REFUSALS}


def test_a_case_is_the_same_wherever_it_is_made(tmp_path):
    for number in range(20):
        one, two = (Case(7, number, tmp_path, {}) for _ in range(2))
        assert (one.specs, one.rows, one.weights, one.is_rubric) == (two.specs, two.rows, two.weights, two.is_rubric)
        assert one.drawn() == two.drawn()
