"""Whatever stands in a footer, a manifest or counts: the commands that read them end with a message, and ask nobody."""

import os

from cases import sized
from fuzz_footers import COMMANDS, KINDS, cases, fuzz, places

SHARE = int(os.environ.get("ASSAY_FUZZ_FOOTERS", sized("20", "3")))
"""How many of ten thousand cases; ASSAY_FUZZ_FOOTERS=10000 for all of them, of some hours."""

SEED = os.environ.get("ASSAY_FUZZ_SEED", "0")


def test_every_command_ends_in_words_whatever_a_footer_says():
    done = fuzz(SHARE, SEED)
    assert done["found"] == []
    assert done["cases"] > 2 * SHARE


def test_every_entry_is_edited_in_every_way_and_read_by_every_command():
    text = '{"verifiers": [{"canonical": "{\\"checks\\": [{\\"id\\": \\"a\\"}]}"}]}'
    entries = [*places({"verifiers": [{"canonical": '{"checks": [{"id": "a"}]}'}]})]
    assert entries[-1] == ("verifiers", 0, "canonical", "checks", 0, "id")
    drawn = [case for case, _ in cases({"out.parquet": text}, 9_999, "7", "http://127.0.0.1/")]
    assert {case.place for case in drawn} == {*entries}
    assert {case.kind for case in drawn} == {*KINDS}
    assert {case.command for case in drawn} == {*COMMANDS}
