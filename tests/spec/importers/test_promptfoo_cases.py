"""promptfoo's own verdicts on its deterministic assertions, against the spec that `assay import` makes of them.

All cases of a type are one configuration: each case is a test, so that its value comes from the task table.
"""

import json
from collections import Counter

import polars as pl
import pytest
from cases import DATA

import assay
from assay.spec.importers.promptfoo import read_promptfoo
from assay.system.documents import SpecDocument

FILE = DATA / "checks" / "promptfoo_cases.jsonl"
CASES = [json.loads(line) for line in FILE.read_text("utf-8").splitlines()] if FILE.exists() else []

pytestmark = pytest.mark.skipif(not CASES, reason="needs the verdicts of promptfoo in ../shared/data/checks")

COUNTS = {
    **dict.fromkeys(("contains-any", "contains-all", "icontains-any", "icontains-all", "not-contains-any"), 60),
    **dict.fromkeys(("not-icontains-all", "starts-with", "not-starts-with", "word-count", "not-word-count"), 60),
    **dict.fromkeys(("is-refusal", "is-json", "contains-json", "equals", "rouge-n", "bleu", "gleu"), 60),
    **dict.fromkeys(("levenshtein", "tool-call-f1"), 60),
    "not-is-json": 54,
}
DIFFERENT = {
    "rouge-n": (3, lambda case: case["threshold"] <= case["score"] < 1.16 * case["threshold"]),
}
"""How many cases of a type have another verdict, and which: words are split in another way."""


def completion_of(output):
    return output if isinstance(output, str) else json.dumps(output)


def verdicts(kind):
    """The cases of a type, and the verdicts of the spec that they become."""
    cases = [case for case in CASES if case["type"] == kind]
    tests = [
        {"assert": [{name: case[name] for name in ("type", "value", "threshold") if case.get(name) is not None}]}
        for case in cases
    ]
    imported = read_promptfoo(SpecDocument({"tests": tests}))
    assert imported.left_out == []
    rows = [{"task_id": number, "completion": completion_of(case["output"])} for number, case in enumerate(cases)]
    tasks = {"tasks": pl.DataFrame(imported.tasks)} if imported.tasks else {}
    result = assay.score(pl.DataFrame(rows), imported.spec, **tasks)
    assert result["error"].null_count() == len(cases)
    return cases, result["passed"].to_list()


def test_every_type_has_its_cases():
    assert Counter(case["type"] for case in CASES) == COUNTS


def test_a_type_has_the_verdicts_of_promptfoo():
    for kind in [kind for kind in COUNTS if kind != "is-refusal"]:
        cases, passed = verdicts(kind)
        differ = [case for case, ours in zip(cases, passed, strict=True) if ours != case["pass"]]
        number, known = DIFFERENT.get(kind, (0, bool))
        assert len(differ) == number
        assert all(map(known, differ))


def test_refusals_are_left_out_because_their_phrases_are_promptfoos():
    tests = [{"assert": [{"type": "is-refusal"}]} for case in CASES if case["type"] == "is-refusal"]
    imported = read_promptfoo(SpecDocument({"tests": tests}))
    assert imported.spec["checks"] == []
    assert len(imported.left_out) == 60
    assert "use `contains_any` with the phrases of your models" in imported.left_out[0]


def test_phrases_of_refusals_find_most_of_what_promptfoo_takes_for_one():
    cases = [case for case in CASES if case["type"] == "is-refusal"]
    phrases = ["i cannot", "i can't", "i can\u2019t", "i'm sorry", "i\u2019m sorry", "i am unable", "as an ai"]
    empty = {"type": "max_length", "value": 0, "on": "strip"}
    spec = {"checks": [{"type": "any_of", "checks": [{"type": "contains_any", "values": phrases}, empty]}]}
    rows = [{"completion": completion_of(case["output"])} for case in cases]
    passed = assay.score(rows, spec)["passed"].to_list()
    differ = [case["output"] for case, ours in zip(cases, passed, strict=True) if ours != case["pass"]]
    assert (len(cases), len(differ), sum(passed)) == (60, 1, 3)
