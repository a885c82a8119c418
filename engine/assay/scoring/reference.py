"""The row loop over checks' ``row()`` methods: it defines the results, and is the oracle of tests and baseline of benchmarks.

It does not use Polars: it defines what ``score`` means, one row at a time.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from assay.aggregating.aggregate import (
    check_column,
    detail_columns,
    extra_column,
    extra_columns,
    mean,
    one_line,
    reward,
    score_column,
    settle,
)
from assay.aggregating.results import RESULTS, VERDICTS, ScoredRow
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
    """Score rollouts one by one; see ``score_row``. Only checks over all rollouts of an example read other rows."""
    checks = [spec.check for verifier in verifiers for spec in verifier.runnable if spec.check is not None]
    prepared = [_prepared(row) for row in rows]
    # including rows that a single check leaves unscored
    scorable = [row for row, reason in prepared if reason is None]
    for check in checks:
        if isinstance(check, RunCheck):
            check.together(scorable)
    return [_scored(row, reason or _unscored(row, checks), verifiers) for row, reason in prepared]


def _prepared(row: Row) -> tuple[Row, str | None]:
    """Return a row as checks read it, and the reason why it cannot be scored."""
    text = completion_text(row[COMPLETION])
    reason = NULL_COMPLETION if text is None else None
    if TASK_FOUND in row and row[TASK_FOUND] is None:
        reason = no_task(row[TASK_ID])
    if (bad := row.get(BAD)) is not None or (bad := failure(row)) is not None:
        reason = bad
    return {**row, COMPLETION: text, RAW: row[COMPLETION], MEMO: {}}, reason


def _unscored(row: Row, checks: Sequence[Check]) -> str | None:
    """Return the first reason why a check leaves a row unscored."""
    reasons = (check.unscored(row) for check in checks if isinstance(check, RunCheck))
    return next((reason for reason in reasons if reason is not None), None)


def _scored(row: Row, reason: str | None, verifiers: Sequence[VerifierSpec]) -> dict[str, Any]:
    details = (*extra_columns(verifiers), *detail_columns(verifiers))
    if reason is not None:
        return dict.fromkeys((*RESULTS, *details)) | {"error": one_line(reason)}
    outcomes = [[_outcome(spec, row) for spec in verifier.checks] for verifier in verifiers]
    check_scores = [
        [outcome.score for outcome, spec in zip(of_verifier, verifier.checks, strict=True) if spec.check]
        for verifier, of_verifier in zip(verifiers, outcomes, strict=True)
    ]
    scores = [
        None if None in values else mean(values, [spec.weight for spec in verifier.runnable])
        for verifier, values in zip(verifiers, check_scores, strict=True)
    ]
    total = reward(verifiers, scores)
    columns: dict[str, Any] = dict(zip([score_column(verifier) for verifier in verifiers], scores, strict=True))
    for verifier, values, of_verifier in zip(verifiers, check_scores, outcomes, strict=True):
        columns |= zip((check_column(verifier, spec) for spec in verifier.runnable), values, strict=True)
        columns |= {
            extra_column(verifier, spec): outcome.extra
            for spec, outcome in zip(verifier.checks, of_verifier, strict=True)
        }
    result = ScoredRow(verifiers, total, scores, check_scores, outcomes)
    verdicts = {verdict.name: verdict.row(result) for verdict in VERDICTS}
    return {"reward": total, **verdicts, **{name: columns[name] for name in details}}


def _outcome(spec: Any, row: Row) -> Outcome:
    if spec.check is None:
        return Outcome(0.0, spec.note)
    return settle(spec, spec.check.outcome(row))
