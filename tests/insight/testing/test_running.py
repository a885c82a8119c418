"""Running the tests of specs: what a test got, and how that is told."""

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from spec_tests import run
from worked_cases import to_try

import assay

CHECKS = [
    {"id": "thinks", "type": "contains", "value": "</think>", "gate": True},
    {"id": "right", "type": "number", "value": {"column": "answer"}, "on": ["afterThink"], "weight": 3},
    {"id": "polite", "type": "any_of", "checks": [{"id": "sorry", "type": "contains", "value": "sorry"}]},
]
GIVEN = {"completion": "<think>6*7</think>41", "answer": "42"}


def spec_with(*tests, **fields):
    return {"id": "quiz", "checks": CHECKS, **fields, "tests": [*tests]}


@pytest.mark.parametrize("case", to_try("verifiers", "a"), ids=lambda case: case["spec"]["id"])
def test_worked_cases(case):
    found = assay.run_tests(case["spec"] | {"tests": case["tests"]})
    names = ("name", "outcome", "got", "reward", "passed")
    assert [{name: test[name] for name in names} for test in found.tests] == [
        {**result, "reward": pytest.approx(result["reward"], abs=1e-9)} for result in case["results"]
    ]


EXPECTATIONS = [  # (given, expect, got, in words)
    (GIVEN, "fail", None, ""),
    (GIVEN, 0.0, None, ""),
    (GIVEN, {"reward": {"min": 0, "max": 5e-7}}, None, ""),
    (GIVEN, 1e-3, {"reward": 0.0}, "reward 0, expected 0.001"),
    (GIVEN, "pass", {"passed": False}, "fails with reward 0, expected to pass"),
    (GIVEN, "unscored", {"reward": 0.0}, "reward 0, expected none"),
    (GIVEN, {"checks": {"thinks": 1, "polite.sorry": 0}}, None, ""),
    (
        GIVEN,
        {"checks": {"thinks": {"max": 0.5}, "right": None}},
        {"checks": {"thinks": 1.0, "right": 0.0}},
        "thinks 1, expected at most 0.5; right 0, expected none",
    ),
    (GIVEN, {"reason": {"right": 'the number is "41"', "thinks": None, "polite": "sorry"}}, None, ""),
    (
        GIVEN,
        {"reason": {"right": "no"}},
        {"reason": {"right": 'the number is "41", expected 42'}},
        "right says 'the number is \"41\", expected 42', expected \"no\"",
    ),
    (GIVEN, {"error": "gold"}, {"error": None}, 'error nothing, expected "gold"'),
    ({**GIVEN, "answer": None}, "unscored", None, ""),
    ({**GIVEN, "answer": None}, {"reward": None, "passed": None, "error": "missing"}, None, ""),
    ({**GIVEN, "answer": None}, "pass", {"passed": None}, "is unscored, expected to pass (gold is missing: answer)"),
    ({"completion": "<think></think>4"}, {"error": None}, {"error": "gold is missing: answer"}, 'error "gold is missing: answer", expected nothing'),
]  # fmt: skip


@pytest.mark.parametrize(("given", "expect", "got", "words"), EXPECTATIONS)
def test_a_test_compares_what_it_names(given, expect, got, words):
    combine = {"combine": "min"}
    found = assay.run_tests(
        spec_with({"given": GIVEN, "expect": "fail"}, {"given": given, "expect": expect}, **combine)
    )
    test = found.tests[1]
    assert (test["got"], test["outcome"], found.failed) == (got, "failed" if got else "passed", got is not None)
    lines = [line for line in found.document().markdown().split("\n") if "FAILED" in line]
    assert len(lines) == bool(got)
    plain = found.document().blocks[0].lines[0]
    assert not got or plain.startswith(f"FAILED quiz::test-2: {words}")


def test_the_command_tells_failures_and_writes_junit(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    unscored = {"name": "<x>\x1b", "given": {**GIVEN, "answer": None}, "expect": "pass"}
    Path("quiz.json").write_text(json.dumps(spec_with({"given": GIVEN, "expect": "pass"}, unscored)))
    Path("good.json").write_text(json.dumps(spec_with({"given": GIVEN, "expect": "fail"})))
    code, _, err = run("quiz.json", "good.json", "--junit", "out.xml")
    assert code == 3
    assert "quiz.json: 0 passed, 2 failed\n" in err
    assert "good.json: 1 passed\n" in err
    assert "FAILED quiz.json::<x>\\x1b: is unscored, expected to pass (gold is missing: answer)\n" in err
    suites = ET.fromstring(Path("out.xml").read_text())  # noqa: S314  (our own)
    assert [
        (suite.get("name"), suite.get("tests"), suite.get("failures"), suite.get("errors")) for suite in suites
    ] == [
        ("quiz.json", "2", "1", "1"),
        ("good.json", "1", "0", "0"),
    ]
    assert [[case.get("name"), *(child.tag for child in case)] for case in suites[0]] == [
        ["test-1", "failure"],
        ["<x>\\x1b", "error"],
    ]
    assert "time" not in Path("out.xml").read_text()
    assert run("good.json", "--junit", "out.xml")[0] == 2  # it exists
    code, out, _ = run("good.json", "--json")
    assert (code, json.loads(out)["tests"][0]["outcome"]) == (0, "passed")


def test_further_tests_are_read_from_a_file_and_no_test_at_all_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("quiz.json").write_text(json.dumps({"id": "quiz", "checks": CHECKS}))
    code, _, err = run("quiz.json")
    assert (code, "There is no test." in err) == (2, True)
    Path("more.yaml").write_text("tests:\n- {given: {completion: x, answer: 1}, expect: fail}\n")
    assert run("quiz.json", "--tests", "more.yaml")[0] == 0
    Path("more.yaml").write_text("- {given: {completion: x}, expect: fail}\n")
    code, _, err = run("quiz.json", "--tests", "more.yaml")
    assert code == 2
    assert '$ (line 1): no test has the column "answer", which is read by right.' in err


def test_problems_of_several_specs_are_told_together():
    with pytest.raises(assay.SpecError) as caught:
        assay.run_tests([{"checks": []}, {"checks": [{"type": "json_valid", "weigth": 1}]}])
    assert len(caught.value.problems) == 2
