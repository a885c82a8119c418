"""Assay's plan for a rubric, on a frame."""

import assay
from assay.calls.limits import Limits
from assay.compiling.plan import Plan
from contenders.five_functions import make


def prepare(spec, frame):
    del spec
    return Plan(make(assay).members(Limits()), tuple(frame.schema.items()))


def run(plan, frame):
    scored = plan.score(frame)
    return {"reward": scored["reward"], **{verifier.id: scored[f"score/{verifier.id}"] for verifier in plan.verifiers}}
