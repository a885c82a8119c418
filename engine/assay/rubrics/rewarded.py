"""Scores of rollouts in memory: weighted sums, times and errors in their states, and the scores of verifiers."""

from collections.abc import Mapping, Sequence
from typing import Any

from assay.aggregating.pipeline import one_line
from assay.calls.limits import Limits, Settled
from assay.compiling.plan import Plan
from assay.compiling.requirements import needed_columns, read_columns
from assay.rubrics.members import Entry, specs_of
from assay.scoring.reference import score_row
from assay.spec.verifier import VerifierSpec
from assay.system.processes import prepare_process
from assay.values.rows import from_columns


def weighted_sums(scores: Sequence[Sequence[float]], weights: Sequence[float], rows: int) -> list[float]:
    """Return the weighted sum of each row, added from left to right: ``aggregate.reward``, a column at a time."""
    total = [0.0] * rows
    for column, weight in zip(scores, weights, strict=True):
        factor = float(weight)
        total = [so_far + factor * score for so_far, score in zip(total, column, strict=True)]
    return total


def add_scoring_time(state: Any, seconds: float) -> None:
    """Add the time that scoring took to a state."""
    if isinstance(state, dict):
        timing = state.setdefault("timing", {})
        timing["scoring_ms"] = seconds * 1000
        timing["total_ms"] = timing.get("total_ms", 0.0) + seconds * 1000


def add_error(state: Any, message: str) -> None:
    """Add an error to a state, unless it is there already."""
    if isinstance(state, dict):
        lines = str(state.get("error") or "").split("\n")
        state["error"] = "\n".join(filter(None, dict.fromkeys([*lines, one_line(message)])))


def _columns(specs: Sequence[VerifierSpec], rollouts: Mapping[str, Sequence[Any]]) -> dict[str, Sequence[Any]]:
    columns: dict[str, Sequence[Any]] = {}
    infos = rollouts["info"]
    for name in read_columns(specs):
        if name in rollouts:
            columns[name] = rollouts[name]
        elif name == "metadata":
            columns[name] = [info.get(name, info) for info in infos]
        elif name in needed_columns(specs) or any(name in info for info in infos):
            columns[name] = [info.get(name) for info in infos]
    return columns


def by_columns(members: Sequence[Any], rollouts: Mapping[str, Sequence[Any]]) -> list[Sequence[float]]:
    """Score rollouts with members that are not reward functions; on an error, the score is 0.0 and the state records it."""
    prepare_process()
    scores: list[Sequence[float]] = []
    for member in members:
        specs = specs_of([Entry(member, 1.0, {})], Limits())
        frame = from_columns(_columns(specs, rollouts))
        scored = Plan(specs, tuple(frame.schema.items())).score(frame)
        for state, error in zip(rollouts["state"], scored["error"], strict=True):
            if error is not None:
                prefix = f"{specs[0].id}: "
                add_error(state, prefix + error.removeprefix(prefix))
        scores.append(scored[f"score/{specs[0].id}"].fill_null(0.0).to_list())
    return scores


def by_verifier(member: Any, rollout: Mapping[str, Any]) -> Settled:
    """Score one rollout with one such member, by its row implementation."""
    specs = specs_of([Entry(member, 1.0, {})], Limits())
    columns = _columns(specs, {name: [value] for name, value in rollout.items()})
    scored = score_row({name: values[0] for name, values in columns.items()}, specs)
    score = scored[f"score/{specs[0].id}"]
    return (0.0 if score is None else score), scored["error"]
