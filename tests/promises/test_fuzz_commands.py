"""Command lines and environments that somebody might give: they end in time, in words, with nothing half written."""

import os
import sys

import pytest
from cases import sized
from fuzz_commands import Case, case, fuzz, tried

CASES = int(os.environ.get("ASSAY_FUZZ_COMMANDS", sized("4", "1")))
"""How many commands; ASSAY_FUZZ_COMMANDS=2000 for a thorough look, of an hour."""

SEED = os.environ.get("ASSAY_FUZZ_SEED", "0")

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="what is drawn is of Linux")


def test_every_command_ends_in_words_and_leaves_nothing_half_written():
    done = fuzz(CASES, SEED)
    assert done["found"] == []
    assert sum(done["ends"].values()) == CASES


def test_a_case_is_the_same_wherever_it_is_made():
    assert [case(7, number) for number in range(300)] == [case(7, number) for number in range(300)]
    drawn = [case(7, number) for number in range(300)]
    assert {one.stdout for one in drawn} == {"file", "full", "closed", "broken"}
    assert len({one.arguments[0] for one in drawn}) >= 9


def test_a_descriptor_that_nobody_gave_is_not_that_of_the_run_itself():
    code, why, said = tried(Case(["score", "/dev/fd/3", "-s", "v.json", "-o", "o.parquet"], third="closed"))
    assert (code, why) == (2, "")
    assert said == "error: /dev/fd/3: Bad file descriptor.\n"
