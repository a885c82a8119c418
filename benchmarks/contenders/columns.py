"""Assay's plan."""

from assay.compiling.plan import Plan


def prepare(verifiers, frame):
    return Plan(tuple(verifiers), tuple(frame.schema.items()))


def run(plan, frame):
    return {"reward": plan.score(frame)["reward"].to_list()}
