"""Scoring in memory: one row in, one row out, each on its own."""

import random

import polars as pl
import pytest
from cases import each

import assay
from assay.testing import hostile_texts

SPEC = {
    "id": "v",
    "checks": [
        {"type": "contains", "value": "ß", "weight": 0.7},
        {"type": "regex", "pattern": r"\b\w+$", "weight": 1.1},
        {"type": "json_keys", "keys": ["a"], "weight": 0.3},
        {"type": "task_expectations"},
        {"type": "expected_output_schema", "weight": 0.1},
    ],
}


def rollouts(count=400):
    rng = random.Random(2)
    texts = list(hostile_texts(count, seed=9))
    rows = []
    for at, text in enumerate(texts):
        metadata = rng.choice(
            (
                None,
                "{",
                '{"expectations": [{"text": "a"}, {"anyOf": ["ß", "]"]}, {}]}',
                f'{{"expectations": [{{"text": "{at % 7}"}}]}}',
            )
        )
        schema = rng.choice((None, '{"required": ["a"]}', "[", '{"a": 1}'))
        rows.append(
            {"id": at, "completion": text if at % 50 else None, "metadata": metadata, "expected_output_schema": schema}
        )
    return pl.DataFrame(rows)


def test_a_row_is_scored_by_itself_alone():
    frame = rollouts()
    whole = assay.score(frame, SPEC)
    order = random.Random(4).sample(range(frame.height), frame.height)
    assert assay.score(frame[order], SPEC).sort("id").equals(whole)
    assert assay.score(pl.concat([frame, frame[::-1]]), SPEC)[: frame.height].equals(whole)
    assert pl.concat([assay.score(frame[at : at + 7], SPEC) for at in range(0, frame.height, 7)]).equals(whole)


def test_the_number_of_threads_chunks_and_the_engine_do_not_matter():
    frame = rollouts()
    plan = assay.compile(SPEC, frame)
    whole = plan.score(frame)
    chunks = pl.concat([frame[at : at + 3] for at in range(0, frame.height, 3)], rechunk=False)
    assert plan.score(chunks).equals(whole)
    assert plan.lazy(chunks.lazy()).collect(engine="streaming").equals(whole)
    batches = list(plan.lazy(frame.lazy()).collect_batches(chunk_size=11, engine="streaming"))
    assert pl.concat(batches).equals(whole)


def test_no_rows_give_an_empty_frame_with_the_full_schema():
    frame = rollouts()
    assert assay.score(frame[:0], SPEC).schema == assay.score(frame, SPEC).schema


def test_only_null_completions():
    out = assay.score(pl.DataFrame({"completion": [None, None]}), {"checks": [{"type": "json_valid"}]})
    assert out["reward"].to_list() == [None, None]
    assert out["error"].to_list() == ["the completion is null"] * 2


def test_types_of_the_result():
    out = assay.score(rollouts(), SPEC)
    assert dict(out.schema) == {
        "id": pl.Int64,
        "reward": pl.Float64,
        "passed": pl.Boolean,
        "feedback": pl.String,
        "error": pl.String,
        "score/v": pl.Float64,
        **{
            f"check/v/{name}": pl.Float64
            for name in ("contains", "regex", "json_keys", "task_expectations", "expected_output_schema")
        },
    }
    assert not out["reward"].is_nan().any()


def test_strict_refuses_what_would_only_be_warned_about():
    spec = {"checks": [{"type": "json_valid"}, {"type": "jsn_valid"}, {"type": "regex", "pattern": "["}]}
    with pytest.raises(assay.SpecError) as caught:
        assay.score([{"completion": "1"}], spec, strict=True)
    assert len(caught.value.problems) == 2


def test_many_verifiers_over_one_frame_share_one_plan():
    verifiers = [{"id": f"v{at}", "checks": [{"type": "contains", "value": str(at)}]} for at in range(10)]
    out = assay.score([{"completion": "0 1 2 3 4"}], verifiers)
    assert out["reward"].item() == 0.5
    assert len([name for name in out.columns if name.startswith("score/")]) == 10


def test_a_plan_scores_batch_after_batch():
    rows = [{"completion": "yes", "step": 1}, {"completion": "no", "step": 2}, {"completion": None, "step": 3}]
    verifier = {"checks": [{"type": "contains", "value": "yes"}]}
    plan = assay.compile(verifier, pl.DataFrame(rows))
    for batch in (rows, rows[:1], rows * 3000):
        assert assay.score(batch, plan).equals(assay.score(batch, verifier))
    assert assay.score([], plan).equals(plan.score(pl.DataFrame(schema=dict(plan.schema))))
    renamed = [{"text": "yes", "step": 1}]
    assert assay.score(renamed, plan, mapping={"completion": "text"})["reward"].to_list() == [1.0]


@each(
    "option",
    [
        {"tasks": "t.jsonl"},
        {"keep": ["step"]},
        {"details": False},
        {"strict": True},
        {"function_timeout": 1.0},
        {"regex_timeout": 5.0},
        {"max_concurrent": 3},
    ],
)
def test_a_plan_has_options_of_its_own(option):
    plan = assay.compile({"checks": [{"type": "json_valid"}]}, {"completion": pl.String})
    with pytest.raises(assay.UsageError, match=f"^{next(iter(option))}: a plan is scored as it was compiled"):
        assay.score([{"completion": "1"}], plan, **option)
