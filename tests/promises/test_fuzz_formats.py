"""The same values in parquet, Arrow, JSON, CSV, YAML, workbooks, memory and by the command: the same results, for every check type."""

import os

from cases import sized
from fuzz_formats import FORMATS, case, fuzz, references

from assay.checks.registry import CHECKS

CASES = int(os.environ.get("ASSAY_FUZZ_FORMATS", sized("2000", "32")))
"""How many tables, each in five formats; ASSAY_FUZZ_FORMATS=20000 for a thorough look."""

SEED = os.environ.get("ASSAY_FUZZ_SEED", "0")


def test_the_format_of_a_value_changes_no_result():
    kinds, compared, wrong = fuzz(CASES, SEED)
    assert wrong == []
    assert compared > 3 * CASES
    assert {check.type for check in CHECKS[:CASES]} <= {*kinds}, "types whose tables were all refused"


def test_all_types_formats_and_references_are_drawn():
    cases = [case("7", number) for number in range(30 * len(CHECKS))]
    assert {drawn.type for drawn in cases} == {check.type for check in CHECKS}
    assert {(drawn.kind, form) for drawn in cases for form in drawn.formats} == {
        (kind, form) for kind, forms in FORMATS.items() for form in forms
    }
    referring = {drawn.type for drawn in cases if "column" in str(drawn.check) or "template" in str(drawn.check)}
    assert referring >= {check.type for check in CHECKS if references(check)}
