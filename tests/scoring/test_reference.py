"""The row loop on real rollouts: for every spec in specs/ it gives the columns that the plan gives, on all 18,514 of them."""

import random
import re

import polars as pl
import pytest
from cases import ALPACA, SPECS, needs_alpaca, sized, some

import assay
from assay.compiling.columns import referred_columns
from assay.compiling.plan import Plan
from assay.scoring.reference import score_row, score_rows

PLAIN = [path for path in SPECS if not referred_columns([assay.load_verifier(path)]) and path.stem != "instructions"]
"""Specs whose checks take nothing from the rows but what every rollout here has; the others have golden results."""

SCHEMAS = (
    '{"required": ["a"]}', '{"required": []}', '{"properties": {"name": {}}}', '{"required": ["name", "age"]}', None,
    "[",
)  # fmt: skip


@pytest.fixture(scope="module")
def real():
    frame = pl.read_parquet(ALPACA)
    rng = random.Random(8)
    words = {
        row[0]: re.findall(r"\w{4,}", row[1]) or ["none"] for row in frame.select("task_id", "completion").iter_rows()
    }
    tasks = []
    for task, found in words.items():
        mention = [{"anyOf": rng.choices(found, k=rng.randrange(1, 4))} for _ in range(rng.randrange(4))]
        expectations = {"mustMention": mention, "mustNotMention": [{"text": rng.choice(found)}]}
        tasks.append(
            {"task_id": task, "metadata": {"expectations": expectations}, "expected_output_schema": rng.choice(SCHEMAS)}
        )
    return frame, tasks


@needs_alpaca
@pytest.mark.parametrize("spec", some(PLAIN), ids=lambda path: path.stem)
def test_every_spec_scores_the_real_outputs_as_the_row_loop_does(spec, real, tmp_path):
    frame, tasks = real
    verifier = assay.load_verifier(spec)
    by_task = {task["task_id"]: task for task in tasks}
    out = tmp_path / "r.parquet"
    summary = assay.score_file(ALPACA, verifier, out, tasks=tasks)
    assert summary.rows == summary.scored == 18_514
    found = pl.read_parquet(out)
    frame, found = frame[:: sized(1, 19)], found[:: sized(1, 19)]
    expected = score_rows(({**row, **by_task[row["task_id"]]} for row in frame.iter_rows(named=True)), [verifier])
    assert found["task_id"].equals(frame["task_id"])
    for name in expected[0]:
        assert found[name].to_list() == [row[name] for row in expected], name


@needs_alpaca
def test_all_specs_at_once_on_one_row_and_on_two(real):
    frame, _ = real
    verifiers = tuple(assay.load_verifier(path) for path in PLAIN)
    rows = frame[: sized(40, 12)].with_columns(
        metadata=pl.lit(None, dtype=pl.String), expected_output_schema=pl.lit('{"required": ["a"]}')
    )
    plan = Plan(verifiers, tuple(rows.schema.items()), keep=())
    for at in range(rows.height):
        for size in (1, 2):
            part = rows[at : at + size]
            assert plan.score(part).to_dicts() == score_rows(part.to_dicts(), verifiers)


def test_the_row_loop_knows_nothing_of_columns():
    verifier = assay.load_verifier({"id": "v", "checks": [{"type": "contains", "value": "a"}]})
    assert score_row({"completion": [{"role": "assistant", "content": "A"}]}, [verifier]) == {
        "reward": 1.0,
        "passed": True,
        "feedback": "",
        "error": None,
        "score/v": 1.0,
        "check/v/contains": 1.0,
    }
