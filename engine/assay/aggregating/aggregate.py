"""From the outcomes of checks to reward, passed, feedback and error: each rule as a row function beside its expression."""

import math
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from functools import partial, reduce
from itertools import groupby
from operator import add, and_
from typing import Any

import polars as pl

from assay.aggregating.columns import (
    UNSCORED,
    check_column,
    error_column,
    hidden,
    own_extra_column,
    reason_column,
    score_column,
)
from assay.aggregating.combining import OVERFLOW, combined, combined_steps, finite_expr, mean, mean_steps, unbounded
from assay.aggregating.pipeline import has_run, is_nullable, is_overflow, may_err, must_not_hold, one_reason
from assay.checks.base import Outcome
from assay.expressions.shared_columns import is_small
from assay.functions.registry import list_fns
from assay.names import FUNCTION
from assay.spec.verifier import CheckSpec, Share, VerifierSpec


def verifier_score(verifier: VerifierSpec, outcomes: Sequence[Outcome | None]) -> float | None:
    """Return the score of a verifier, given the outcomes of its runnable checks; None if it is not a finite number."""
    scores = [None if outcome is None else outcome.score for outcome in outcomes]
    return combined(verifier.runnable, scores, verifier.combine, verifier.range, is_plain=verifier.is_plain)


def verifier_steps(verifier: VerifierSpec) -> list[pl.Expr]:
    """``verifier_score`` as a sequence of named columns, each reading earlier ones; the last is the score."""
    name, specs = hidden(score_column(verifier)), verifier.runnable
    columns = [hidden(check_column(verifier, spec)) for spec in specs]
    if verifier.is_plain:
        return mean_steps(columns, [spec.weight for spec in specs], name)
    steps = combined_steps(specs, columns, verifier.combine, verifier.range, name)
    finite = finite_expr(pl.col(unbounded(name)))
    return [*steps, pl.when(pl.col(UNSCORED).is_null()).then(finite).alias(name)]


def passes(verifier: VerifierSpec, score: float | None, outcomes: Sequence[Outcome | None]) -> bool | None:
    """Whether a verifier passes, given its score and the outcomes of its runnable checks; None without a score."""
    pairs = zip(outcomes, verifier.runnable, strict=True)
    required = (outcome.score >= 1.0 for outcome, spec in pairs if spec.required and has_run(outcome))
    return None if score is None else score >= verifier.pass_threshold and all(required)


def passes_expr(verifier: VerifierSpec) -> pl.Expr:
    """``passes`` as an expression."""
    columns = (pl.col(hidden(check_column(verifier, spec))) for spec in verifier.runnable if spec.required)
    required = ((column >= 1.0).fill_null(value=True) for column in columns)
    score = pl.col(hidden(score_column(verifier)))
    passes = reduce(and_, required, score >= verifier.pass_threshold)
    return passes if verifier.is_plain else pl.when(score.is_not_null()).then(passes)


def reward(verifiers: Sequence[VerifierSpec], scores: Sequence[float | None]) -> float | None:
    """Return the reward of a row, given the score of each verifier; None if one has none, or the sum is not finite.

    A member of a rubric that does not apply to the row has no score either, and adds nothing.
    """
    if any(score is None and not may_skip(verifier) for verifier, score in zip(verifiers, scores, strict=True)):
        return None
    if (shares := _shares(verifiers)) is None:
        return mean([score for score in scores if score is not None], [1.0] * len(scores))
    terms = [0.0 if score is None else share.weight * score for share, score in zip(shares, scores, strict=True)]
    total = _summed([(share.path, term) for share, term in zip(shares, terms, strict=True)], 0.0)
    return total if math.isfinite(total) else None


def reward_steps(verifiers: Sequence[VerifierSpec]) -> list[pl.Expr]:
    """``reward`` as a sequence of named columns, each reading earlier ones; the last is the reward."""
    scores, name = [hidden(score_column(verifier)) for verifier in verifiers], hidden("reward")
    if (shares := _shares(verifiers)) is None:
        return mean_steps(scores, [1.0] * len(scores), name)
    terms = []
    for share, verifier, score in zip(shares, verifiers, scores, strict=True):
        term = pl.lit(share.weight) * pl.col(score)
        if may_skip(verifier):  # adds nothing where it does not apply; null where the row is unscored
            term = pl.when(pl.col(UNSCORED).is_null()).then(term.fill_null(0.0))
        terms.append((share.path, term))
    total, sum_column = _summed(terms, pl.lit(0.0)), pl.col(f"{name}/sum")
    # NOTE: Polars drops `0.0 +`, so a sum of -0.0 terms would stay -0.0; other sums do not change without it
    finite_sum = pl.when(sum_column == 0.0).then(pl.lit(0.0)).when(sum_column.is_finite()).then(sum_column)
    return [total.alias(f"{name}/sum"), finite_sum.alias(name)]


def may_skip(verifier: VerifierSpec) -> bool:
    """Whether a verifier is a member of a rubric that may not apply to a row."""
    return verifier.kind == FUNCTION and any(is_nullable(spec.check) for spec in verifier.runnable)


def _shares(verifiers: Sequence[VerifierSpec]) -> list[Share] | None:
    """Return the share of each member of a rubric; None if the verifiers are not members of one."""
    shares = [verifier.share for verifier in verifiers if verifier.share is not None]
    return shares if len(shares) == len(verifiers) else None


def _summed(terms: Sequence[tuple[tuple[int, ...], Any]], zero: Any) -> Any:
    """Sum terms from left to right, each nested rubric first; 0.0 for no terms, and never -0.0."""
    parts = []
    for index, group in groupby(terms, key=lambda term: term[0][:1]):
        nested = [(path[1:], term) for path, term in group]
        parts += [_summed(nested, zero)] if index else [term for _, term in nested]
    return reduce(add, parts, zero)


def run_passes(verifiers: Sequence[VerifierSpec], total: float | None, each: Iterable[bool | None]) -> bool | None:
    """Whether a row passes: by its reward if the verifiers are members of a rubric, else if every verifier passes."""
    shares = _shares(verifiers)
    if shares is None:
        return None if total is None else all(each)
    return None if total is None else total >= shares[0].pass_threshold


def run_passes_expr(verifiers: Sequence[VerifierSpec]) -> pl.Expr:
    """``run_passes`` as an expression."""
    shares = _shares(verifiers)
    if shares is None:
        each = reduce(and_, map(passes_expr, verifiers))
        is_plain = all(verifier.is_plain for verifier in verifiers)
        return each if is_plain else pl.when(pl.col(hidden("reward")).is_not_null()).then(each)
    return pl.col(hidden("reward")) >= shares[0].pass_threshold


def label_of(verifier: str, kind: str, ident: str, *, several: bool) -> str:
    """Return what a check's lines begin with, given the id and kind of its verifier; ``several`` in a run with others."""
    return f"{verifier}/{ident}: " if several and kind != FUNCTION else f"{ident}: "


def longest_label(line: str, labels: Container[str]) -> str | None:
    """Return the longest label that a line begins with, for an id may hold ``: `` itself; None for a line without."""
    at, label = line.find(": "), None
    while at >= 0:
        label = line[: at + 2] if line[: at + 2] in labels else label
        at = line.find(": ", at + 1)
    return label


_Label = Callable[[str], str]


def _labels(verifiers: Sequence[VerifierSpec]) -> Iterator[tuple[VerifierSpec, _Label]]:
    """Yield each verifier with the function that returns the label of a check, given its id or the name that a row gives."""
    for verifier in verifiers:
        yield verifier, partial(label_of, verifier.id, verifier.kind, several=len(verifiers) > 1)


def labels_of(verifiers: Sequence[VerifierSpec]) -> list[str]:
    """Return what lines of feedback begin with, in order; of checks that rows name, the labels of all functions that there are."""
    specs = [
        (label, spec) for verifier, label in _labels(verifiers) for check in verifier.checks for spec in check.nodes()
    ]
    return [label(name) for label, spec in specs for name in ([spec.id] if spec.id else list_fns())]


def lines(verifiers: Sequence[VerifierSpec], outcomes: Sequence[Sequence[Outcome | None]], *, errors: bool) -> str:
    """Return one line for each check with a reason (or with ``errors`` an error), in spec order; of a failing group, those at fault.

    A check without an id is named by its extra column.
    """
    lines = []
    for (verifier, label), row in zip(_labels(verifiers), outcomes, strict=True):
        for spec, outcome in zip(verifier.checks, row, strict=True):
            lines += _lines(label, spec, outcome, errors=errors)
            lines += [] if errors else [label(part.id) + part.note for part in _skipped(spec)]
    return "\n".join(lines)


def _skipped(spec: CheckSpec) -> list[CheckSpec]:
    """Return the checks in a group, at any depth, that are skipped: every row has their notes."""
    return [part for part in spec.nodes() if part is not spec and part.check is None]


def _lines(label: _Label, spec: CheckSpec, outcome: Outcome | None, *, errors: bool) -> list[str]:
    if outcome is None:
        return []
    if spec.group is None:
        text = outcome.error if errors else outcome.reason
        return [label(spec.id or str(outcome.extra)) + text] if text else []
    pairs = [(part, result) for part, result in zip(spec.parts, outcome.parts, strict=True) if part.check is not None]
    ran = [(part, result) for part, result in pairs if has_run(result)]
    lines = [label(spec.id) + OVERFLOW] if errors and outcome.extra == OVERFLOW else []
    is_failing = has_run(outcome) and outcome.score < 1
    if not errors and (spec.negate or not is_failing):
        return [label(spec.id) + must_not_hold(spec)] if is_failing else []
    if not errors and spec.group.inverse:
        lines += [label(part.id) + must_not_hold(part) for part, result in ran if result.score >= 1]
        errors = True
    elif not errors and spec.group.nearest:
        best = max(result.score for _, result in ran)
        ran = [next((part, result) for part, result in ran if result.score == best)]
    return lines + [line for part, result in ran for line in _lines(label, part, result, errors=errors)]


def lines_expr(verifiers: Sequence[VerifierSpec], *, errors: bool) -> pl.Expr:
    """``lines`` as an expression over the hidden reason or error columns; without any, null for errors, else ``""``."""
    checks = [(verifier, label, spec) for verifier, label in _labels(verifiers) for spec in verifier.checks]
    if not errors and len(checks) == 1 and (parts := _line_parts(*checks[0], None, errors=False)) is not None:
        has_line, prefix, words = parts  # in one step: to fill nulls would copy all lines once more
        return pl.concat_str(pl.when(has_line).then(prefix), words, ignore_nulls=True)
    texts: list[pl.Expr] = []
    fixed: list[tuple[str, str]] = []  # lines whose words do not depend on the row, up to the next one whose words do
    for verifier, label, spec in checks:
        if not errors and spec.when is None and not spec.parts and (reason := one_reason(spec)) is not None:
            fixed += [(label(spec.id) + reason, hidden(check_column(verifier, spec)))] if reason else []
            continue
        own = _line_exprs(verifier, label, spec, None, errors=errors)
        own += [] if errors else [pl.lit(label(part.id) + part.note) for part in _skipped(spec)]
        if own:
            texts += [*_fixed_lines(fixed), *own]
            fixed = []
    texts += _fixed_lines(fixed)
    if len(texts) < 2:  # noqa: PLR2004
        line = texts[0] if texts else pl.lit(None, dtype=pl.String)
        return line if errors else pl.concat_str(line, ignore_nulls=True)
    several = pl.concat_str(texts, separator="\n", ignore_nulls=True)
    return pl.when(several != "").then(several) if errors else several


def _line_exprs(
    verifier: VerifierSpec, label: _Label, spec: CheckSpec, shown: pl.Expr | None, *, errors: bool
) -> list[pl.Expr]:
    """``_lines`` as expressions, null on rows without them; with ``shown``, on these rows only."""
    if spec.check is None:
        return [] if errors else [pl.lit(label(spec.id) + spec.note)]
    failing = pl.col(hidden(check_column(verifier, spec))) < 1.0
    failing = failing if shown is None else failing & shown
    if spec.group is not None and not (spec.negate and not errors):
        return _group_exprs(verifier, label, spec, failing, errors=errors)
    if (parts := _line_parts(verifier, label, spec, shown, errors=errors)) is not None:
        has_line, prefix, words = parts  # nothing is joined where no row has a line, as is usual of errors
        return [pl.when(has_line).then(prefix + words)]
    reason = must_not_hold(spec) if spec.group is not None else one_reason(spec)
    return [pl.when(failing).then(pl.lit(label(spec.id) + reason))] if reason and not errors else []


def _line_parts(
    verifier: VerifierSpec, label: _Label, spec: CheckSpec, shown: pl.Expr | None, *, errors: bool
) -> tuple[pl.Expr, pl.Expr, pl.Expr] | None:
    """Return which rows have a single check's line, its prefix, and the column of its words; None if all rows have the same."""
    if spec.check is None or spec.parts or not (may_err(spec) if errors else one_reason(spec) is None):
        return None
    column = pl.col(error_column(verifier, spec) if errors else reason_column(verifier, spec))
    prefix = pl.lit(label(spec.id))
    if not spec.id:  # the row names the check
        name = pl.col(own_extra_column(verifier, spec)) + pl.lit(": ")
        prefix = pl.lit(owner) + name if (owner := label("").removesuffix(": ")) else name
    has_line = column != "" if shown is None else (column != "") & shown
    return has_line, prefix, column


def _group_exprs(
    verifier: VerifierSpec, label: _Label, spec: CheckSpec, failing: pl.Expr, *, errors: bool
) -> list[pl.Expr]:
    """``_line_exprs`` of a group that is not negated, or its errors."""
    assert spec.group is not None  # noqa: S101  (only groups come here)
    scores = [pl.col(hidden(check_column(verifier, part))) for part in spec.runnable]
    pairs = list(zip(spec.runnable, scores, strict=True))
    lines, of_part = list[pl.Expr](), partial(_line_exprs, verifier, label)
    if errors or spec.group.inverse:
        all_errors = [line for part in spec.runnable for line in of_part(part, None, errors=True)]
        if errors:
            overflow = is_overflow(verifier, spec)
            own = [] if overflow is None else [pl.when(overflow).then(pl.lit(label(spec.id) + OVERFLOW))]
            return [*own, *all_errors]
        for part, score in pairs:
            passing = failing & (score >= 1.0)
            lines.append(pl.when(passing).then(pl.lit(label(part.id) + must_not_hold(part))))
        return [*lines, *(pl.when(failing).then(line) for line in all_errors)]
    best, earlier = pl.max_horizontal(scores), pl.lit(value=False)
    for part, score in pairs:
        shown = failing
        if spec.group.nearest:  # the first that scores so
            is_best = (score == best).fill_null(value=False)
            shown, earlier = failing & is_best & earlier.not_(), earlier | is_best
        lines += of_part(part, shown, errors=False)
    return lines


_LINES_AT_ONCE = 8
"""Lines of which all combinations are written in advance."""


def _fixed_lines(lines: Sequence[tuple[str, str]]) -> list[pl.Expr]:
    """Return the lines of each row, joined; null where there is none.

    To join the lines of each row takes several times as long as to look their combination up. Each line comes with the column of the
    score, 0 or 1; rows that score 0 have it.
    """
    return [_looked_up(lines[start : start + _LINES_AT_ONCE]) for start in range(0, len(lines), _LINES_AT_ONCE)]


def _looked_up(lines: Sequence[tuple[str, str]]) -> pl.Expr:
    missing = ([text for bit, (text, _) in enumerate(lines) if not code >> bit & 1] for code in range(1 << len(lines)))
    table = ["\n".join(texts) or None for texts in missing]
    column_of_table = pl.Series(table, dtype=pl.String)
    code = reduce(add, (pl.col(column) * float(1 << bit) for bit, (_, column) in enumerate(lines)))

    def look_up(codes: pl.Series) -> pl.Series:
        if is_small(codes):
            return pl.Series([None if row is None else table[row] for row in codes.to_list()], dtype=pl.String)
        return column_of_table.gather(codes)

    return code.cast(pl.UInt32).map_batches(look_up, return_dtype=pl.String, is_elementwise=True)


RESULTS = ("reward", "passed", "feedback", "error")
"""Columns of every result, in order."""


def verdicts(
    verifiers: Sequence[VerifierSpec],
    total: float | None,
    scores: Sequence[float | None],
    outcomes: Sequence[Sequence[Outcome | None]],
) -> dict[str, object]:
    """Return the results of a scored row besides its reward (``total``), given the score of each verifier and its checks' outcomes.

    What is not a finite number is None, as is the score of a member of a rubric that does not apply, and the outcome of a check that
    did not run.
    """
    runnable = (
        [outcome for outcome, spec in zip(row, verifier.checks, strict=True) if spec.check is not None]
        for row, verifier in zip(outcomes, verifiers, strict=True)
    )
    return {
        "passed": run_passes(verifiers, total, map(passes, verifiers, scores, runnable)),
        "feedback": lines(verifiers, outcomes, errors=False),
        "error": lines(verifiers, outcomes, errors=True) or (OVERFLOW if total is None else None),
    }


def verdict_exprs(verifiers: Sequence[VerifierSpec]) -> list[pl.Expr]:
    """``verdicts`` as hidden columns, which also cover rows that are not scored."""
    is_scored = pl.col(UNSCORED).is_null()
    feedback = lines_expr(verifiers, errors=False)
    overflow = pl.when(pl.col(hidden("reward")).is_null()).then(pl.lit(OVERFLOW))
    return [
        run_passes_expr(verifiers).alias(hidden("passed")),  # null without a reward
        pl.when(is_scored).then(feedback).alias(hidden("feedback")),
        pl.coalesce(UNSCORED, lines_expr(verifiers, errors=True), overflow).alias(hidden("error")),
    ]
