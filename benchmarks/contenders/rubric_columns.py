"""Assay's plan for a rubric, on a frame."""

import assay
from assay.calls.limits import Limits
from assay.compiling.plan import Plan


def prepare(make, frame):
    return Plan(make(assay).members(Limits()), tuple(frame.schema.items()))


def run(plan, frame):
    scored = plan.score(frame)
    metrics = {verifier.id: scored[f"score/{verifier.id}"].to_list() for verifier in plan.verifiers}
    return {"reward": scored["reward"].to_list(), **metrics}
