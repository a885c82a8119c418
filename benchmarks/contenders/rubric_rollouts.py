"""Assay's ``Rubric.score_rollouts``: what a program calls that changed its import."""

import asyncio

import assay
from contenders.five_functions import make


def prepare(spec, frame):
    del spec
    return make(assay), arguments(frame)


def arguments(frame):
    """Return rollouts as programs hold them: a list for each argument, a state for each rollout."""
    rows = frame.to_dicts()
    timing = {"generation_ms": 0.0, "scoring_ms": 0.0, "total_ms": 0.0}
    names = {name: f"{name}s" for name in ("prompt", "completion", "answer", "task", "info", "example_id")}
    states = [{**row, "responses": [], "turn": 0, "timing": dict(timing)} for row in rows]
    return {plural: [row[name] for row in rows] for name, plural in names.items()} | {"states": states}


def run_rubric(rubric, given):
    """Score rollouts with a rubric of either package."""
    scores = asyncio.run(rubric.score_rollouts(**given, use_tqdm=False))
    return {"reward": scores.reward, **scores.metrics}


def run(prepared, frame):
    del frame
    return run_rubric(*prepared)
