"""What rollouts have of what a verifier reads, and sample rows for verifiers that read columns."""

import json
import random

import pytest
from fuzz_specs import draw_spec

from assay import SpecError, load_verifier
from assay.compiling.plan import Plan
from assay.insight.explanation import findings
from assay.insight.samples import sample_rows
from assay.scoring.reference import score_rows
from assay.testing import assert_plan_conforms
from assay.values.references import read_reference
from assay.values.rows import from_rows

ROWS = [
    {"completion": "A: 1", "answer": "1", "level": 3, "metadata": json.dumps({"gold": {"v": 1}})},
    {"completion": "no", "answer": "one", "level": 4, "metadata": "no JSON"},
    {"completion": [{"role": "assistant", "content": "A: 3"}], "answer": None, "level": None, "metadata": None},
    {"completion": None, "answer": "4", "level": 3, "metadata": json.dumps({"gold": {"w": 2}})},
]


def told(check):
    return [(str(finding), finding.is_doubtful) for finding in findings(load_verifier({"checks": [check]}), ROWS)]


@pytest.mark.parametrize(
    ("check", "expected"),
    [
        (
            {"type": "number", "value": {"column": "answer"}, "on": [{"after": "A:"}]},
            [
                ("verifier/number, value: `answer` has a value in 3 of 4 rows", False),
                ('verifier/number, value: `number` cannot use the values of 1 of 4 rows, such as "one"', False),
                ("verifier/number, on: `after` finds nothing in 1 of 3 rows", False),
            ],
        ),
        (
            {"type": "contains", "value": {"column": "metadata.gld.v"}, "on": [{"column": "metadata.gold.w"}]},
            [
                ("verifier/contains, value: `metadata.gld.v` has a value in 0 of 4 rows. Did you mean `gold`?", True),
                ("verifier/contains, on: `metadata.gold.w` has a value in 1 of 4 rows", False),
            ],
        ),
        (
            {"type": "number", "value": {"template": "n{answer}"}, "on": "boxed"},
            [
                ("verifier/number, value: `answer` has a value in 3 of 4 rows", False),
                (
                    'verifier/number, value: `number` cannot use the values of 3 of 4 rows, such as "n1", "none", "n4"',
                    True,
                ),
                ("verifier/number, on: `boxed` finds nothing in 3 of 3 rows", True),
            ],
        ),
        (
            {"type": "json_valid", "when": {"column": "level", "equals": 3}},
            [
                ("verifier/json_valid, when: `level` has a value in 3 of 4 rows", False),
                ("verifier/json_valid, when: holds in 2 of 4 rows", False),
            ],
        ),
        (
            {"type": "json_valid", "when": {"check": {"type": "contains", "value": {"column": "answer"}}}},
            [("verifier/json_valid.when, value: `answer` has a value in 3 of 4 rows", False)],
        ),
        (
            {"type": "all_of", "checks": [{"type": "json_valid", "when": {"column": "level", "in": [9]}}]},
            [
                ("verifier/all_of.json_valid, when: `level` has a value in 3 of 4 rows", False),
                ("verifier/all_of.json_valid, when: holds in 0 of 4 rows", True),
            ],
        ),
        (
            {"type": "length_scaled", "max": 9, "unit": {"column": "level"}, "check": {"type": "json_valid"}},
            [("verifier/length_scaled, unit: `level` has a value in 3 of 4 rows", False)],
        ),
        ({"type": "contains", "value": ["a", "b"]}, []),
    ],
)
def test_what_rows_have_of_what_a_check_reads(check, expected):
    assert told(check) == expected


def test_no_rows_are_no_reason_to_doubt():
    verifier = load_verifier({"checks": [{"type": "contains", "value": {"column": "a"}, "on": "boxed"}]})
    assert [finding.is_doubtful for finding in findings(verifier, [])] == [False]


@pytest.mark.parametrize(
    ("path", "row"),
    [
        ("answer", {"answer": "x"}),
        ("metadata.a.b", {"metadata": {"a": {"b": "x"}}}),
        ("trace[1].text", {"trace": [None, {"text": "x"}]}),
        ("trace[-1]", {"trace": ["x"]}),
    ],
)
def test_sample_rows_have_values_at_every_path(path, row):
    verifier = load_verifier({"checks": [{"type": "contains", "value": {"column": path}}]})
    reference = read_reference({"column": path})
    assert reference.row({**row, "completion": ""}) == "x"
    values = [reference.row(sample) for sample in sample_rows(verifier, 100)]
    assert None in values
    assert len({*values}) > 5
    (column,) = reference.columns
    shapes = {type(sample[column]) for sample in sample_rows(verifier, 100) if sample[column] is not None}
    assert shapes == {type(row[column])}


def test_sample_rows_suit_the_params_and_conditions_that_read_them():
    checks = [
        {"type": "min_length", "value": {"column": "least"}},
        {"type": "contains_any", "values": {"column": "words"}},
        {"type": "contains", "value": {"column": "listed", "list": True}},
        {"type": "json_valid", "when": {"column": "level", "equals": 3}},
        {"type": "regex", "pattern": {"column": "pattern"}},
    ]
    verifier = load_verifier({"checks": checks})
    found = [*map(str, findings(verifier, sample_rows(verifier, 100)))]
    assert not [line for line in found if "cannot use" in line]
    assert not [line for line in found if " 0 of " in line]


@pytest.mark.parametrize(
    "check",
    [
        {"type": "function", "name": "exact_match"},
        {"type": "exact_match", "id": "fn", "value": {"column": "a.b"}},
        {
            "type": "function",
            "name": "exact_match",
            "expected": {"column": "a"},
            "params": {"ignore_case": {"column": "b"}},
        },
        {"type": "row_verifier"},
        {"kind": "format_only", "params": {}},
        {"type": "expected_output_schema"},
    ],
)
def test_sample_rows_do_for_what_is_no_check_type(check):
    rows = sample_rows(load_verifier({"checks": [check]}), 20)
    assert assert_plan_conforms([load_verifier({"checks": [check]})], rows)


def test_sample_rows_do_for_every_spec():
    tried = 0
    for seed in range(20):
        try:
            verifier = load_verifier(draw_spec(random.Random(seed)))
        except SpecError:
            continue
        rows = sample_rows(verifier, 20, seed)
        frame = from_rows(rows)
        plan = Plan((verifier,), tuple(frame.schema.items()), keep=())
        assert repr(plan.score(frame)["reward"].to_list()) == repr(
            [row["reward"] for row in score_rows(rows, [verifier])]
        )
        tried += 1
    assert tried > 15
