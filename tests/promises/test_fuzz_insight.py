"""Whatever results and rollouts hold, ``assay tripwire`` and ``assay audit`` answer, or end with a sentence."""

import os

from cases import sized
from fuzz_insight import fuzz

CASES = int(os.environ.get("ASSAY_FUZZ_INSIGHT", sized("50", "10")))
"""How many cases of each command; ASSAY_FUZZ_INSIGHT=5000 for a thorough look, of some minutes."""

SEED = os.environ.get("ASSAY_FUZZ_SEED", "0")


def test_odd_data_gets_an_answer_or_a_sentence():
    done = fuzz(CASES, SEED)
    assert done["found"] == []
    assert sum(done["ends"].values()) == 2 * CASES
