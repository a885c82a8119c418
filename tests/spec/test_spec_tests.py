"""`tests:` of a spec: what they say, what is refused with which place, and that they change nothing that a result holds."""

import json

import pytest
from jsonschema_rs import Draft7Validator

from assay import SpecError, json_schema, load_verifier, read_provenance, score_file
from assay.spec.verifier import load_tests

CHECKS = "id: quiz\nchecks:\n- {id: right, type: number, value: {column: answer}}\n- {id: brief, type: max_length, value: 9}\n"
GIVEN = {"completion": "4", "answer": "4"}
SCHEMA = Draft7Validator(json_schema())


def spec_with(*tests):
    checks = [
        {"id": "right", "type": "number", "value": {"column": "answer"}},
        {"id": "polite", "type": "any_of", "checks": [{"id": "sorry", "type": "contains", "value": "sorry"}]},
    ]
    return {"id": "quiz", "checks": checks, "tests": [*tests]}


READ = [  # (expect, what is compared)
    ("pass", {"passed": True}),
    ("fail", {"passed": False}),
    ("unscored", {"reward": None}),
    (0, {"reward": 0.0}),
    ({"reward": None, "error": None}, {"reward": None, "error": None}),
    (
        {"checks": {"polite.sorry": {"min": 0.5}, "right": None}},
        {"checks": {"polite.sorry": {"min": 0.5}, "right": None}},
    ),
    ({"passed": True, "reason": {"right": "no"}, "checks": {}}, {"passed": True, "reason": {"right": "no"}}),
]


@pytest.mark.parametrize(("expect", "compared"), READ)
def test_an_expectation_names_what_is_compared(expect, compared):
    spec = spec_with({"given": GIVEN, "expect": expect}, {"name": "b", "given": {"completion": None}, "expect": "fail"})
    first, second = load_verifier(spec).tests
    assert (first.name, first.expect, second.name) == ("test-1", compared, "b")
    assert SCHEMA.is_valid(spec)


REFUSED = [  # (tests, problems)
    ("{a: 1}", ["$.tests (line 5): expected a list of tests, got an object"]),
    ("[7]", ["$.tests[0] (line 5): expected an object, got a number (7)"]),
    ("[{given: {completion: x, answer: 1}, expect: pas}]", [
        "$.tests[0].expect (line 5): expected pass, fail, unscored, a reward or an object of reward, passed, checks, reason, error, got a string ('pas'). Did you mean `pass`?"
    ]),
    ("[{given: {completion: x, answer: 1}, expect: {}}]", [
        "$.tests[0].expect (line 5): is empty, so that nothing is compared: name reward, passed, checks, reason, error"
    ]),
    ("[{given: {completion: x, answer: 1}, expect: {checks: {rigt: 1, brief: true}, passed: 1, error: ''}}]", [
        '$.tests[0].expect.checks.rigt (line 5): the spec has no check "rigt". Did you mean `right`?',
        "$.tests[0].expect.checks.brief (line 5): expected a number, null or {min: …, max: …}, got a boolean (True)",
        "$.tests[0].expect.passed (line 5): expected true, false or null, got a number (1)",
        "$.tests[0].expect.error (line 5): expected a part of the text, or null for none, got a string ('')",
    ]),
    ("[{given: {completion: x, answer: 1}, expect: {reward: {min: 2, max: 1}, checks: {right: {mim: 1}}}}]", [
        "$.tests[0].expect.reward (line 5): `min` 2 is above `max` 1",
        "$.tests[0].expect.checks.right.mim (line 5): unknown field `mim`. Did you mean `min`?",
    ]),
    ("[{name: a, given: {completion: x, answer: 1}, expect: 1}, {name: a, given: [], expect: 1}]", [
        "$.tests[1].given (line 5): expected a rollout, an object, got a list",
        '$.tests[1].name (line 5): the name "a" is already used by $.tests[0]',
    ]),
    ("[{givn: {completion: x}, expect: 1}, {given: {completion: x}}]", [
        "$.tests[0].givn (line 5): unknown field `givn`. Did you mean `given`?",
        "$.tests[1] (line 5): a test needs `expect`: `pass`, `fail`, `unscored`, a reward, or an object of what is expected.",
    ]),
    ("[{given: {completion: x, anser: 1}, expect: 1}]", [
        '$.tests (line 5): no test has the column "answer", which is read by right. Is `anser` meant to be it?'
    ]),
    ("[{given: {answer: 1}, expect: 1}]", ['$.tests (line 5): no test has the column "completion", which is read by every check.']),
]  # fmt: skip


@pytest.mark.parametrize(("tests", "problems"), REFUSED)
def test_what_is_wrong_with_tests_is_refused_with_its_place_and_line(tests, problems, tmp_path):
    path = tmp_path / "quiz.yaml"
    path.write_text(f"{CHECKS}tests: {tests}\n")
    with pytest.raises(SpecError) as caught:
        load_verifier(path)
    assert list(caught.value.problems) == problems


def test_problems_of_checks_and_of_tests_are_told_together(tmp_path):
    path = tmp_path / "quiz.yaml"
    path.write_text(
        "checks:\n- {id: a, type: json_valid, weigth: 2}\ntests:\n- {given: {completion: x}, expect: {checks: {b: 1}, passed: 0}}\n"
    )
    with pytest.raises(SpecError) as caught:
        load_verifier(path)
    assert [problem.partition(":")[0] for problem in caught.value.problems] == [
        "$.checks[0].weigth (line 2)",
        "$.tests[0].expect.passed (line 4)",
    ]


def test_tests_are_in_no_canonical_form_and_no_result(tmp_path):
    with_tests = spec_with({"given": GIVEN, "expect": "pass"})
    without = {name: value for name, value in with_tests.items() if name != "tests"}
    one, other = load_verifier(with_tests), load_verifier(without)
    assert (one, one.sha256) == (other, other.sha256)
    rollouts = tmp_path / "rollouts.jsonl"
    rollouts.write_text(json.dumps(GIVEN))
    results = []
    for name, spec in (("one", with_tests), ("other", without)):
        out = tmp_path / f"{name}.parquet"
        score_file(rollouts, spec, out)
        provenance = read_provenance(out)
        results.append(
            (provenance["verifiers"], provenance["digests"]["root"])
            if "digests" in provenance
            else provenance["verifiers"]
        )
    assert results[0] == results[1]


def test_a_file_of_tests_has_a_list_below_tests_or_alone(tmp_path):
    verifier = load_verifier(spec_with({"given": GIVEN, "expect": "pass"}))
    item = {"given": GIVEN, "expect": "fail"}
    for data in ([item], {"tests": [item]}):
        path = tmp_path / "more.json"
        path.write_text(json.dumps(data))
        assert [test.name for test in load_tests(path, verifier)] == ["test-2"]
    assert load_tests(
        [{"given": {"completion": "x"}, "expect": "unscored"}], verifier
    )  # the spec's test has the column
    with pytest.raises(SpecError, match='the name "test-1" is already used by a test of the spec'):
        load_tests([{"name": "test-1", **item}], verifier)
    with pytest.raises(SpecError, match="expected a list of tests, below `tests:` or alone"):
        load_tests({"checks": []}, verifier)
