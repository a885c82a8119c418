"""Every row of the tables in docs/from-other-tools.md has a check that loads, or says why not; tests/peers runs the other tools."""

import pytest
from other_tools import CHECKS, NO_CHECK, ROWS, verifier_of

import assay


def test_rows_without_a_check_say_why():
    assert len(ROWS) > len(CHECKS) > 20
    without = [note for there, (here, note) in ROWS.items() if here == NO_CHECK and "all that ask a model" not in there]
    assert all(without)


@pytest.mark.parametrize("there", CHECKS)
def test_a_check_loads(there):
    assay.load_verifier(verifier_of(there))
