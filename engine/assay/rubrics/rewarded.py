"""What rollouts that a program holds are told of their scores: sums, times, errors, and what verifiers give them."""

from collections.abc import Mapping, Sequence
from typing import Any

from assay.aggregating.aggregate import one_line
from assay.calls.limits import Limits, Settled
from assay.compiling.plan import Plan
from assay.compiling.requirements import needed_columns, read_columns
from assay.rubrics.members import Entry, specs_of
from assay.scoring.reference import score_row
from assay.spec.verifier import VerifierSpec
from assay.system.processes import prepare_process
from assay.values.rows import from_columns

__all__ = ["by_columns", "by_verifier", "note", "timed", "weighted_sums"]


def weighted_sums(scores: Sequence[Sequence[float]], weights: Sequence[float], rows: int) -> list[float]:
    """The weighted sum of each row, from left to right: ``aggregate.reward``, a column at a time."""
    total = [0.0] * rows
    for column, weight in zip(scores, weights, strict=True):
        times = float(weight)
        total = [so_far + times * score for so_far, score in zip(total, column, strict=True)]
    return total


def timed(state: Any, seconds: float) -> None:
    """Tell a state how long its scoring took."""
    if isinstance(state, dict):
        timing = state.setdefault("timing", {})
        timing["scoring_ms"] = seconds * 1000
        timing["total_ms"] = timing.get("total_ms", 0.0) + seconds * 1000


def note(state: Any, said: str) -> None:
    """Tell a state what went wrong, once."""
    if isinstance(state, dict):
        lines = str(state.get("error") or "").split("\n")
        state["error"] = "\n".join(filter(None, dict.fromkeys([*lines, one_line(said)])))


def _columns(specs: Sequence[VerifierSpec], rollouts: Mapping[str, Sequence[Any]]) -> dict[str, Sequence[Any]]:
    """The columns that verifiers read: arguments of the rollouts, else what ``info`` has; ``metadata`` is ``info`` itself."""
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
    """What members that are no functions give each rollout; where they cannot score one, 0.0, and the state is told why."""
    prepare_process()
    found: list[Sequence[float]] = []
    for member in members:
        specs = specs_of([Entry(member, 1.0, {})], Limits())
        frame = from_columns(_columns(specs, rollouts))
        scored = Plan(specs, tuple(frame.schema.items())).score(frame)
        for state, error in zip(rollouts["state"], scored["error"], strict=True):
            if error is not None:
                note(state, _told(specs[0], error))
        found.append(scored[f"score/{specs[0].id}"].fill_null(0.0).to_list())
    return found


def by_verifier(member: Any, given: Mapping[str, Any]) -> Settled:
    """The same for one rollout, by the row faces."""
    specs = specs_of([Entry(member, 1.0, {})], Limits())
    columns = _columns(specs, {name: [value] for name, value in given.items()})
    scored = score_row({name: values[0] for name, values in columns.items()}, specs)
    score = scored[f"score/{specs[0].id}"]
    return (0.0 if score is None else score), scored["error"]


def _told(spec: VerifierSpec, error: str) -> str:
    return error if error.startswith(f"{spec.id}: ") else f"{spec.id}: {error}"
