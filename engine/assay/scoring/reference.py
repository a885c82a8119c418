"""The row loop over the ``row()`` faces: the definition of a run, the oracle of the tests and the baseline of the benchmarks.

Nothing here knows Polars. It is what ``score`` means, one row at a time.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from assay.aggregating.aggregate import (
    OVERFLOW,
    check_column,
    detail_columns,
    extra_column,
    extra_columns,
    lines,
    mean,
    one_line,
    passes,
    reward,
    run_passes,
    score_column,
    settle,
)
from assay.checks.base import Check, Outcome, Row, RunCheck
from assay.compiling.plan import NULL_COMPLETION, no_task
from assay.expressions.completion import completion_text
from assay.names import BAD, COMPLETION, TASK_FOUND, TASK_ID
from assay.spec.verifier import VerifierSpec
from assay.values.arguments import MEMO, RAW
from assay.values.failures import failure

__all__ = ["score_row", "score_rows"]


def score_row(row: Row, verifiers: Sequence[VerifierSpec]) -> dict[str, Any]:
    """Score one rollout.

    Args:
        row: The rollout's columns; ``completion`` as a string or messages.
        verifiers: The verifiers, in order.

    Returns:
        The result columns of a run: reward, passed, feedback, error, scores, checks.
    """
    return score_rows([row], verifiers)[0]


def score_rows(rows: Iterable[Row], verifiers: Sequence[VerifierSpec]) -> list[dict[str, Any]]:
    """Score rollouts one by one; see ``score_row``. Only checks that see all rollouts of an example look further."""
    checks = [spec.check for verifier in verifiers for spec in verifier.runnable if spec.check is not None]
    asked = [_seen(row) for row in rows]
    there = [seen for seen, why in asked if why is None]  # also those that a single check leaves unscored
    for check in checks:
        if isinstance(check, RunCheck):
            check.together(there)
    return [_scored(seen, why or _unscored(seen, checks), verifiers) for seen, why in asked]


def _seen(row: Row) -> tuple[Row, str | None]:
    """A row as checks see it, and why it cannot be scored."""
    text = completion_text(row[COMPLETION])
    why = NULL_COMPLETION if text is None else None
    if TASK_FOUND in row and row[TASK_FOUND] is None:
        why = no_task(row[TASK_ID])
    if (said := row.get(BAD)) is not None or (said := failure(row)) is not None:
        why = said
    return {**row, COMPLETION: text, RAW: row[COMPLETION], MEMO: {}}, why


def _unscored(seen: Row, checks: Sequence[Check]) -> str | None:
    """Why a check leaves a row unscored."""
    reasons = (check.unscored(seen) for check in checks if isinstance(check, RunCheck))
    return next((reason for reason in reasons if reason is not None), None)


def _scored(seen: Row, why: str | None, verifiers: Sequence[VerifierSpec]) -> dict[str, Any]:
    details = (*extra_columns(verifiers), *detail_columns(verifiers))
    if why is not None:
        return dict.fromkeys(("reward", "passed", "feedback", "error", *details)) | {"error": one_line(why)}
    outcomes = [[_outcome(spec, seen) for spec in verifier.checks] for verifier in verifiers]
    ran = [
        [one.score for one, spec in zip(found, v.checks, strict=True) if spec.check]
        for v, found in zip(verifiers, outcomes, strict=True)
    ]
    scores = [mean(values, [spec.weight for spec in v.runnable]) for v, values in zip(verifiers, ran, strict=True)]
    total = reward(verifiers, scores)
    found: dict[str, Any] = dict(zip([score_column(verifier) for verifier in verifiers], scores, strict=True))
    for verifier, values, told in zip(verifiers, ran, outcomes, strict=True):
        found |= zip((check_column(verifier, spec) for spec in verifier.runnable), values, strict=True)
        found |= {extra_column(verifier, spec): one.extra for spec, one in zip(verifier.checks, told, strict=True)}
    return {
        "reward": total,
        "passed": run_passes(verifiers, total, map(passes, verifiers, scores, ran)),
        "feedback": lines(verifiers, outcomes, errors=False),
        "error": lines(verifiers, outcomes, errors=True) or (OVERFLOW if total is None else None),
        **{name: found[name] for name in details},
    }


def _outcome(spec: Any, row: Row) -> Outcome:
    if spec.check is None:
        return Outcome(0.0, spec.note)
    return settle(spec, spec.check.outcome(row))
