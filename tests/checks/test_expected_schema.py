"""The column of expected output schemas, in both spellings."""

import polars as pl

import assay
from assay.scoring.reference import score_rows
from assay.testing import assert_plan_conforms

SPEC = {"checks": [{"type": "expected_output_schema"}]}
NEEDS_A, NEEDS_B = {"required": ["a"]}, {"properties": {"b": {}}}
ROWS = [
    {"completion": '{"a": 1}', "expectedOutputSchema": NEEDS_A},
    {"completion": '{"a": 1}', "expectedOutputSchema": NEEDS_B},
    {"completion": '{"a": 1}', "expected_output_schema": NEEDS_A, "expectedOutputSchema": NEEDS_B},
    {"completion": '{"a": 1}', "expected_output_schema": NEEDS_B, "expectedOutputSchema": NEEDS_A},
    {"completion": '{"a": 1}'},
]
SCORES = [1.0, 0.0, 1.0, 0.0, 0.0]


def test_each_row_has_its_schema_in_either_spelling():
    verifier = assay.load_verifier(SPEC)
    assert assay.score(ROWS, verifier)["reward"].to_list() == SCORES
    assert assay.compile(verifier).score_rows(ROWS)["reward"].to_list() == SCORES
    assert [row["reward"] for row in score_rows(assay.scan(ROWS).collect().to_dicts(), (verifier,))] == SCORES
    assert_plan_conforms((verifier,), ROWS)


def test_a_frame_with_one_spelling_is_read():
    for schemas in [[NEEDS_A, None], ['{"required": ["a"]}', None]]:
        frame = pl.DataFrame({"completion": ['{"a": 1}'] * 2, "expectedOutputSchema": schemas})
        scored = assay.compile(SPEC, frame).score(frame)
        assert scored["reward"].to_list() == [1.0, 0.0]
        assert "expectedOutputSchema" not in scored.columns


def test_a_verifier_class_gets_the_schema_by_one_name(monkeypatch):
    from pydantic import BaseModel, ConfigDict

    from assay.classes import registry

    class Config(BaseModel):
        model_config = ConfigDict(extra="forbid")

    class Seen:
        name = "seen"

        def verify(self, *, prompt, completion, target):
            return assay.VerificationResult(1.0, target)

    Seen.Config = Config
    monkeypatch.setitem(registry._REGISTRY, "seen", Seen)
    scored = assay.score(ROWS[:1], {"kind": "seen"})
    assert scored["info/verifier"].to_list() == ['{"expected_output_schema":{"required":["a"]}}']


def test_tasks_bring_either_spelling():
    tasks = [{"task_id": "t", "expectedOutputSchema": NEEDS_A}]
    assert assay.score([{"task_id": "t", "completion": '{"a": 1}'}], SPEC, tasks=tasks)["reward"].to_list() == [1.0]
