"""What a check reads on a row and what it expects there."""

import json

import pytest
from worked_cases import to_try

from assay.insight.evidence.reader import readers_of
from assay.spec.verifier import load_verifier

CASES = to_try("view", "evidence")


def readers(*checks):
    """What reads as the checks do, made from the canonical form of their verifier."""
    return readers_of([json.loads(load_verifier({"id": "v", "checks": checks}).canonical)])


@pytest.mark.skipif(not CASES, reason="the goldens are not part of the project")
def test_the_goldens_hold():
    for case in CASES:
        (reader,) = readers(case["check"]).values()
        reading = reader.read(case["row"], passes=case["passes"])
        expected = {name: case[name] for name in ("read", "expected", "near", "source")}
        assert expected == {
            "read": reading.read,
            "expected": [*reading.expected],
            "near": reading.near,
            "source": reader.source,
        }, case


@pytest.mark.parametrize(
    ("check", "row", "read", "expected", "near"),
    [
        ({"type": "equals", "value": ["Rome", "Oslo"]}, "Oslo.", "Oslo.", ("Rome", "Oslo"), "wrapped"),
        ({"type": "equals", "value": "no", "negate": True}, "no", "no", ("no",), None),
        ({"type": "number", "value": 18}, "it is 18.4", "18.4", ("18",), "rounded"),
        ({"type": "number_range", "min": 3}, "2 or 1", "1", (), None),
        ({"type": "choice", "value": 1}, "(A)", "A", ("1",), None),
        ({"type": "list_equals", "value": "b, a"}, "a,b", '["a", "b"]', ("b", "a"), None),
        ({"type": "list_equals", "value": ["a", "a"]}, "a", '["a"]', ("a", "a"), None),
        ({"type": "starts_with", "value": ["yes", "never"]}, " Maybe ", "Maybe", ("yes", "never"), None),
        ({"type": "starts_with", "value": ["yes", "yet"]}, "Yes, sir", "Yes", ("yes", "yet"), None),
        ({"type": "ends_with", "value": "end", "strip": False}, "an end ", "nd ", ("end",), None),
        ({"type": "similarity", "value": "cat"}, "car", "car", ("cat",), None),
        ({"type": "contains_all", "values": ["a", "b"]}, "a", None, ("a", "b"), None),
        ({"type": "regex", "pattern": "b"}, "a", None, (), None),
    ],
)
def test_what_is_read(check, row, read, expected, near):
    (reader,) = readers(check).values()
    reading = reader.read({"completion": row})
    assert (reading.read, reading.expected, reading.near) == (read, expected, near)


def test_golds_take_their_steps_and_those_of_a_row_count():
    check = {"type": "equals", "value": {"column": "answer"}, "goldOn": [{"after": "####"}], "on": ["boxed"]}
    (reader,) = readers(check).values()
    row = {"completion": r"It is 72, \boxed{72", "answer": "48 + 24\n#### 72"}
    reading = reader.read(row)
    assert (reading.found_nothing, reading.read, reading.expected) == (True, None, ("72",))
    assert reader.columns == ("answer",)
    assert reader.occurs(row, "72")
    assert not reader.occurs(row, "7")


def test_leaves_of_groups_are_read_and_nothing_of_others_types():
    group = {"id": "g", "type": "any_of", "checks": [{"id": "a", "type": "contains", "value": "x"}]}
    class_of_others = {"id": "o", "type": "no_such_type", "params": {}}
    when = {"id": "w", "type": "contains", "value": "y", "when": {"column": "c", "exists": True}}
    assert [*readers(group, class_of_others, when)] == [("v", "g.a"), ("v", "w")]
    assert readers_of([{"id": "p", "kind": "class:Other"}]) == {}


def test_a_grader_of_a_result_reads_as_the_check_that_makes_it():
    check = {"type": "grader", "name": "simple_evals.multichoice", "value": {"column": "answer"}}
    (reader,) = readers(check).values()
    reading = reader.read({"completion": "Answer: B", "answer": "(B)"})
    assert (reading.read, reading.expected, reading.near) == ("B", ("(B)",), "wrapped")
    assert (reader.is_grader, reader.negates) == (True, False)
    (opposite,) = readers({"type": "grader", "name": "promptfoo.not-contains", "value": "a"}).values()
    assert opposite.negates
