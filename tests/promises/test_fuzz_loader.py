"""Files with something wrong in them: a message that names what is wrong, or all rows; never a crash, a hang or fewer rows."""

import os
import sys

import mutations
import pytest
from cases import sized
from fuzz_loader import Fuzz, case, fuzz

CASES = int(os.environ.get("ASSAY_FUZZ", sized("112", "16")))
"""How many files; ASSAY_FUZZ=20000 for a thorough look."""

SEED = os.environ.get("ASSAY_FUZZ_SEED", "0")


@pytest.mark.skipif(sys.platform != "linux", reason="the limits of a process are those of Linux")
def test_every_damaged_file_is_read_whole_or_refused_in_words():
    found = fuzz(CASES, SEED)
    assert found["found"] == []
    assert set(found["ends"]) == set(mutations.seeds())
    ends = [code for kind in found["ends"].values() for code in kind]
    assert {0, 2} <= {*ends} <= {0, 2, 3}
    assert sum(sum(kind.values()) for kind in found["ends"].values()) == CASES


def test_a_case_is_the_same_wherever_it_is_made():
    kinds = [*mutations.seeds()]
    made = [case(7, number, kinds) for number in range(60)]
    assert made == [case(7, number, kinds) for number in range(60)]
    assert {kind for kind, *_ in made} == {*kinds}
    assert sum(content in mutations.seeds()[kind] for kind, content, _ in made) < 6


@pytest.mark.parametrize("alone", [True, False], ids=["it alone", "after others"])
def test_what_ends_a_child_is_laid_at_the_door_of_its_case_and_the_others_go_on(tmp_path, monkeypatch, alone):
    asked = []

    def ran(self, first, last):
        asked.append((first, last))
        if first <= 3 < last and (alone or last - first > 1):
            return dict.fromkeys(range(first, 3), 0), (3, "SIGSEGV: …")
        return dict.fromkeys(range(first, last), 2), None

    monkeypatch.setattr(Fuzz, "ran", ran)
    one = Fuzz(tmp_path, "0", ["rows.csv", "rows.jsonl"])
    one.run(0, 10)
    assert asked == [(0, 10), (3, 4), (4, 10)]
    assert one.ends == {"rows.csv": {0: 2, 2: 3}, "rows.jsonl": {0: 1, 2: 3, "wrong": 1}}
    said = "SIGSEGV: …" if alone else "after others: SIGSEGV: …"
    assert one.found == [{"kind": "rows.jsonl", "case": "3 0 rows.csv,rows.jsonl", "how": said}]
