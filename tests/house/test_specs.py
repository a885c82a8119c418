"""The examples in specs/: each is scored and equals its golden result, by rows and by columns, in memory and file to file."""

import json

import polars as pl
import pytest
from cases import ON_ROW, QUIZ, QUIZ_ROLLOUTS, ROOT, SPECS
from goldens import golden

import assay

NAMES = [path.stem for path in SPECS]
MATH = pytest.mark.xdist_group("math")  # one process of the suite starts the processes that compare
EACH = pytest.mark.parametrize(
    "spec", [pytest.param(path, marks=MATH if path.stem == "mathematics" else (), id=path.stem) for path in SPECS]
)


def stored(spec):
    return [json.loads(line) for line in (spec.parent / "golden.jsonl").read_text("utf-8").splitlines()]


def tasks_of(spec):
    path = spec.parent / "tasks.jsonl"
    return path if path.exists() else None


def test_there_are_the_examples():
    families = {"instructions", "invoices", "mathematics", "summaries", "travel-desk"}
    assert {"answer-format", "refund-quality", "structured-extraction", "tool-output"} | families <= {*NAMES}


@EACH
def test_the_row_loop_gives_the_golden_result(spec):
    assert golden(spec) == stored(spec)


@EACH
def test_the_columns_give_the_golden_result(spec, tmp_path):
    kept = ["rollout_id"]
    out = assay.score(spec.parent / "rollouts.jsonl", spec, tasks=tasks_of(spec), keep=kept)
    assert out.to_dicts() == stored(spec)
    assay.score_file(spec.parent / "rollouts.jsonl", spec, tmp_path / "out.parquet", tasks=tasks_of(spec), keep=kept)
    assert pl.read_parquet(tmp_path / "out.parquet").equals(out)


@EACH
def test_an_example_has_rows_that_pass_and_rows_that_fail(spec):
    rewards = [row["reward"] for row in stored(spec) if row["reward"] is not None]
    assert 50 <= len(rewards) <= 200
    assert max(rewards) == 1.0
    assert min(rewards) < 0.6
    assert len(set(rewards)) > 3
    assert not [row for row in stored(spec) if row["error"] not in (None, "the completion is null")]


def test_the_rows_of_the_desk_agent_name_their_functions(tmp_path):
    tasks = ON_ROW / "tasks.jsonl"
    assert golden(tasks) == stored(tasks)
    options = {"tasks": tasks, "verifier_name": "contains", "keep": ["rollout_id"]}
    out = assay.score(ON_ROW / "rollouts.jsonl", **options)
    assert out.to_dicts() == stored(tasks)
    assay.score_file(ON_ROW / "rollouts.jsonl", None, tmp_path / "out.parquet", **options)
    assert pl.read_parquet(tmp_path / "out.parquet").equals(out)
    assert set(out["verifier_fn"].drop_nulls()) == {"contains", "exact_match", "regex_match", "tool_calls_match"}
    assert out["error"].drop_nulls().to_list() == ["the completion is null"]


def test_the_quiz_has_its_golden_result(tmp_path):
    assert golden(QUIZ) == stored(QUIZ)
    options = {"tasks": tasks_of(QUIZ), "keep": ["rollout_id"]}
    out = assay.score(QUIZ_ROLLOUTS, QUIZ, **options)
    assert out.to_dicts() == stored(QUIZ)
    assay.score_file(QUIZ_ROLLOUTS, QUIZ, tmp_path / "out.parquet", **options)
    assert pl.read_parquet(tmp_path / "out.parquet").equals(out)


def test_the_quiz_shows_groups_a_gate_a_penalty_and_conditions():
    rows = stored(QUIZ)
    assert {row["reward"] for row in rows} == {None, 0.0, 0.25, 0.75, 0.8, 1.0}
    gated = [row for row in rows if row["check/quiz/thinks"] == 0]
    assert {row["reward"] for row in gated} == {0.0}
    assert any(row["check/quiz/correct"] == row["check/quiz/marked"] == 1 for row in gated)
    kinds = ("number", "words", "formula")
    ran = {
        tuple(row[f"check/quiz/correct.{kind}"] is not None for kind in kinds) for row in rows if row["error"] is None
    }
    assert ran == {(True, False, False), (False, True, False), (False, False, True)}
    assert [row["reward"] for row in rows if row["check/quiz/rambles"] == 0] == [0.8]


@pytest.mark.parametrize(
    ("completion", "low", "high"),
    [
        ('{"urgency": "high", "sentiment": "negative", "categories": ["plumbing", "safety"]}', 1.0, 1.0),
        ('{"urgency": "low", "sentiment": "negative", "categories": ["plumbing"]}', 0.7, 0.8),
        ("The tenant reports a burst pipe in the basement and is upset about it.", 0.05, 0.15),
    ],
)
def test_the_extraction_example_separates_clean_partial_and_prose(completion, low, high):
    spec = next(path for path in SPECS if path.stem == "structured-extraction")
    mention = [{"text": word} for word in ('"urgency": "high"', '"sentiment": "negative"', '"plumbing"', '"safety"')]
    metadata = {"expectations": {"mustMention": mention, "mustNotMention": [{"text": '"catering"'}]}}
    reward = assay.score([{"completion": completion, "metadata": metadata}], spec)["reward"].item()
    assert low <= reward <= high


@pytest.mark.parametrize(
    "completion",
    [
        "",
        "{}",
        "[]",
        "null",
        '{"urgency": "", "sentiment": "", "categories": ""}',
        '{"urgency": "", "sentiment": "", "categories": []}',
    ],
)
def test_the_extraction_example_pays_empty_json_no_more_than_prose(completion):
    spec = next(path for path in SPECS if path.stem == "structured-extraction")
    row = {"metadata": json.loads((spec.parent / "rollouts.jsonl").read_text("utf-8").splitlines()[0])["metadata"]}
    rows = [{**row, "completion": text} for text in (completion, "Water comes through the ceiling.")]
    empty, prose = assay.score(rows, spec)["reward"]
    assert empty == prose < 0.15


def test_the_extraction_sample_holds_all_three_kinds():
    spec = next(path for path in SPECS if path.stem == "structured-extraction")
    rewards = [row["reward"] for row in stored(spec)]
    assert rewards.count(1.0) >= 40
    assert sum(0.7 <= reward <= 0.8 for reward in rewards) >= 10
    assert sum(0.05 <= reward <= 0.15 for reward in rewards) >= 10


@EACH
def test_an_empty_answer_earns_little(spec):
    audit = assay.audit(spec, spec.parent / "rollouts.jsonl", tasks=tasks_of(spec), sample=10)
    probes = {probe["id"]: probe for probe in audit.probes}
    assert probes["best_real"]["pass_share"] >= 0.5
    assert probes["empty"]["mean_reward"] <= 0.2  # of travel-desk, two tasks in ten need no call
    assert probes["empty"]["pass_share"] <= 0.2


TESTED = sorted(path for ending in ("json", "yaml", "toml") for path in (ROOT / "specs").glob(f"*/*.{ending}"))


@pytest.mark.parametrize("spec", TESTED, ids=lambda path: path.stem)
def test_the_tests_of_a_sample_pass(spec):  # that they notice changes, `make specs` sees to
    verifier = assay.load_verifier(spec)
    if any("is not installed" in warning or "pip install" in warning for warning in verifier.warnings):
        pytest.skip(verifier.warnings[0])
    found = assay.run_tests(spec)
    assert not found.failed, found.document().markdown()
