"""The row loop over checks' ``row()`` methods: it defines the results, and is the oracle of tests and baseline of benchmarks.

It does not use Polars: it defines what ``score`` means, one row at a time.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from functools import cache, partial
from typing import Any

from assay.aggregating.aggregate import RESULTS, labels_of, reward, verdicts, verifier_score
from assay.aggregating.columns import check_column, detail_columns, extra_column, extra_columns, score_column
from assay.aggregating.outcomes import is_cut_off, outcome_of_row
from assay.aggregating.pipeline import NO_CHECK, none_applies, one_line, outcome_of, unscored
from assay.checks.base import Outcome, Row, RowAwareCheck
from assay.compiling.columns import read_paths, readable_row, text_columns
from assay.compiling.plan import no_task
from assay.expressions.completion import completion_text, no_text
from assay.names import BAD, COMPLETION, CUT_OFF, LENGTH, OUTCOME, TASK_FOUND, TASK_ID
from assay.spec.verifier import CheckSpec, VerifierSpec
from assay.values.arguments import MEMO, RAW
from assay.values.failures import failure
from assay.values.paths import Path


def score_row(row: Row, verifiers: Sequence[VerifierSpec], *, any_role: bool = False) -> dict[str, Any]:
    """Score one rollout."""
    return score_rows([row], verifiers, any_role=any_role)[0]


def score_rows(
    rows: Iterable[Row],
    verifiers: Sequence[VerifierSpec],
    *,
    any_role: bool = False,
    lengths: bool = False,
    outcome: bool = False,
) -> list[dict[str, Any]]:
    """Score rollouts one by one; see ``score_row``. Only checks over all rollouts of an example read other rows."""
    texts = cache(partial(text_columns, verifiers))
    paths = read_paths(verifiers)
    rows = [*rows]
    prepared = [_prepared(row, texts(tuple(row)), paths, any_role=any_role) for row in rows]
    # including rows that a single check leaves unscored
    _prefetch([row for row, reason in prepared if reason is None], verifiers)
    scored = [_scored(row, unreadable or _unscored(row, verifiers), verifiers) for row, unreadable in prepared]
    if lengths:
        for result, (row, _) in zip(scored, prepared, strict=True):
            # no check sees a row that has no text, or that could not be read
            unseen = row[COMPLETION] is None or row.get(BAD) is not None or failure(row) is not None
            result[LENGTH] = None if unseen else len(row[COMPLETION])
    if outcome:
        labels = labels_of(verifiers)
        for result, row in zip(scored, rows, strict=True):
            result[CUT_OFF] = is_cut_off(row)
            result[OUTCOME] = outcome_of_row(result, labels)
    return scored


def row_outcomes(
    row: Row, verifiers: Sequence[VerifierSpec], *, any_role: bool = False
) -> tuple[Row, list[list[Outcome | None]] | None]:
    """Return a rollout as checks read it, and the outcomes of each verifier's checks; None where it is not scored."""
    paths = read_paths(verifiers)
    row, reason = _prepared(row, text_columns(verifiers, tuple(row)), paths, any_role=any_role)
    if reason is None:
        _prefetch([row], verifiers)
    if reason is not None or _unscored(row, verifiers) is not None:
        return row, None
    return row, [[outcome_of(spec, row) for spec in verifier.checks] for verifier in verifiers]


def _prefetch(rows: Sequence[Row], verifiers: Sequence[VerifierSpec]) -> None:
    for spec in (spec for verifier in verifiers for spec in verifier.nodes):
        if isinstance(spec.check, RowAwareCheck):
            spec.check.prefetch(rows)


def _unscored(row: Row, verifiers: Sequence[VerifierSpec]) -> str | None:
    reasons = (unscored(spec, row) for verifier in verifiers for spec in verifier.runnable)
    reason = next((reason for reason in reasons if reason is not None), None)
    is_without = reason is None and any(none_applies(verifier, row) for verifier in verifiers)
    return NO_CHECK if is_without else reason


def _prepared(row: Row, texts: Container[str], paths: Sequence[Path], *, any_role: bool) -> tuple[Row, str | None]:
    row, unreadable = readable_row(row, texts, paths, any_role=any_role)
    text = completion_text(row[COMPLETION], any_role=any_role)
    reason = no_text(row[COMPLETION]) if text is None else None
    if TASK_FOUND in row and row[TASK_FOUND] is None:
        reason = no_task(row[TASK_ID])
    reason = unreadable or reason
    if (bad := row.get(BAD)) is not None or (bad := failure(row)) is not None:
        reason = bad
    return {**row, COMPLETION: text, RAW: row[COMPLETION], MEMO: {}}, reason


def _scored(row: Row, reason: str | None, verifiers: Sequence[VerifierSpec]) -> dict[str, Any]:
    details = (*extra_columns(verifiers), *detail_columns(verifiers))
    if reason is not None:
        return dict.fromkeys((*RESULTS, *details)) | {"error": one_line(reason)}
    outcomes = [[outcome_of(spec, row) for spec in verifier.checks] for verifier in verifiers]
    runnable = [
        [outcome for spec, outcome in zip(verifier.checks, of_verifier, strict=True) if spec.check is not None]
        for verifier, of_verifier in zip(verifiers, outcomes, strict=True)
    ]
    scores = [verifier_score(verifier, ran) for verifier, ran in zip(verifiers, runnable, strict=True)]
    total = reward(verifiers, scores)
    columns: dict[str, Any] = dict(zip([score_column(verifier) for verifier in verifiers], scores, strict=True))
    for verifier, of_verifier in zip(verifiers, outcomes, strict=True):
        for spec, outcome in zip(verifier.checks, of_verifier, strict=True):
            columns |= _columns(verifier, spec, outcome, columns)
    return {
        "reward": total,
        **verdicts(verifiers, total, scores, outcomes),
        **{name: columns[name] for name in details},
    }


def _columns(
    verifier: VerifierSpec, spec: CheckSpec, outcome: Outcome | None, known: Mapping[str, Any]
) -> dict[str, Any]:
    columns: dict[str, Any] = {check_column(verifier, spec): None if outcome is None else outcome.score}
    extra = extra_column(verifier, spec)
    if known.get(extra) is None:
        columns[extra] = None if outcome is None else outcome.extra
    parts = outcome.parts if outcome is not None and outcome.parts else [None] * len(spec.parts)
    for part, of_part in zip(spec.parts, parts, strict=True):
        columns |= _columns(verifier, part, of_part, {**known, **columns})
    return columns
