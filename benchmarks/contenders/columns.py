"""Assay's plan."""

from assay import load_verifier
from assay.compiling.plan import Plan
from assay.compiling.verifiers import on_row


def prepare(spec, frame):
    return Plan((on_row() if spec == "-" else load_verifier(spec),), tuple(frame.schema.items()))


def run(plan, frame):
    scored = plan.score(frame)
    return {name: scored[name] for name in scored.columns if name in {"reward", "feedback"} or "/" in name}
