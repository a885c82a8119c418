"""From a row to the outcome of one check: condition, steps, golds, score, threshold, negation; each in Python and as expressions.

Golds come first, then what the check reads by its steps; where the row has no gold, or they find nothing, the outcome is fixed:
threshold and negation do not touch it. A group takes the outcomes of its checks in place of steps and golds.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache, reduce
from operator import and_, or_
from typing import NamedTuple, TypeGuard

import polars as pl

from assay.aggregating.columns import (
    UNSCORED,
    check_column,
    error_column,
    hidden,
    own_extra_column,
    reason_column,
    remark_column,
    when_column,
)
from assay.aggregating.combining import OVERFLOW, combined, combined_steps, finite_expr, mean_steps, unbounded
from assay.checks.base import Check, Columns, FactCheck, Outcome, Row, RowAwareCheck, facts_of, is_builtin
from assay.checks.groups import Group, Included
from assay.errors import encodable
from assay.expressions.shared_columns import SharedColumn, columns_read, is_small, reading_column
from assay.kernel.facts import Fact
from assay.kernel.library import answers
from assay.names import COMPLETION, FUNCTION, TEXT
from assay.spec.check import CheckSpec, Condition
from assay.spec.verifier import VerifierSpec
from assay.steps.subject import SubjectText
from assay.values.arguments import RAW

NO_CHECK = "no check applies to this row"
"""Error of a row to which, of some verifier, none of the checks applies that make its score."""

_BREAK = r"[\r\n]"
_BREAKS = re.compile(f"{_BREAK}+")


def one_line(text: str) -> str:
    """Replace line breaks by spaces, because feedback has one line per check."""
    return _BREAKS.sub(" ", text)


def one_line_expr(texts: pl.Expr | None) -> pl.Expr:
    """``one_line`` as an expression; null if there is no text."""

    def joined(texts: pl.Series) -> pl.Series:
        if texts.null_count() == len(texts):
            return texts
        if is_small(texts):
            return pl.Series(texts.name, [value and one_line(value) for value in texts.to_list()], dtype=pl.String)
        # searching for a break takes a sixth of the time of rewriting every text
        return texts.str.replace_all(_BREAKS.pattern, " ") if texts.str.contains(_BREAK).any() else texts

    if texts is None:
        return pl.lit(None, dtype=pl.String)
    return texts.map_batches(joined, return_dtype=pl.String, is_elementwise=True)


def must_not_hold(spec: CheckSpec) -> str:
    """Return the reason of a check that passes and should not, or of a negated check that fails."""
    return one_line(encodable(f"must not hold: {replace(spec, negate=False).words}")) if spec.check else ""


def outcome_of(spec: CheckSpec, row: Row) -> Outcome | None:
    """Return the outcome of a check on a row that can be scored; None if the check does not run on it.

    The score is None if the check does not apply to the row, or of a group, if none of its checks does.
    """
    if spec.check is None:
        return Outcome(0.0, spec.note)
    if not _holds(spec.when, row):
        return None
    return _single_outcome(spec, spec.check, row) if spec.group is None else _group_outcome(spec, spec.group, row)


def _holds(condition: Condition | None, row: Row) -> bool:
    if condition is None:
        return True
    if condition.check is None:
        return condition.row(row)
    outcome = outcome_of(condition.check, row)
    return has_run(outcome) and outcome.error is None and (outcome.score >= 1) is not condition.negated


def has_run(outcome: Outcome | None) -> TypeGuard[Outcome]:
    """Return whether a check has a score."""
    return outcome is not None and outcome.score is not None


def applies(spec: CheckSpec, row: Row) -> bool:
    """Return whether a check gives a row a score: its condition holds, and of a group, that of one of its checks."""
    if not _holds(spec.when, row):
        return False
    if spec.parts:
        return any(applies(part, row) for part in spec.counted)
    return not is_nullable(spec.check) or has_run(outcome_of(spec, row))


def none_applies(verifier: VerifierSpec, row: Row) -> bool:
    """Return whether no check that makes the score of a verifier applies to a row, so that it is unscored.

    Checks of weight 0 make no score; gates and penalties do. A reward function that skips a row leaves it to the others of its rubric.
    """
    return verifier.kind != FUNCTION and not any(applies(spec, row) for spec in verifier.counted)


def unscored(spec: CheckSpec, row: Row) -> str | None:
    """Return why a check that runs on a row leaves it unscored, as for want of a gold; None if it does not."""
    if spec.check is None or not _holds(spec.when, row):
        return None
    if spec.parts:
        return next((reason for part in spec.parts if (reason := unscored(part, row)) is not None), None)
    reason = spec.check.unscored(row) if isinstance(spec.check, RowAwareCheck) else None
    return spec.check.missing(row) if reason is None and spec.missing_gold == "unscored" else reason


def _single_outcome(spec: CheckSpec, check: Check, row: Row) -> Outcome:
    passed = Outcome(1.0, "")
    if (missing := check.missing(row)) is not None:
        reason = one_line(missing)
        return passed if spec.missing_gold == "pass" else Outcome(0.0, reason, reason)
    reading = SubjectText(row[COMPLETION]) if spec.subject is None else spec.subject.row(row)
    if reading.error is not None:
        message = one_line(encodable(reading.error))
        return Outcome(0.0, message, message)
    if reading.nothing:
        return passed if spec.not_found == "pass" else Outcome(0.0, one_line(reading.nothing))
    read = {} if spec.subject is None else {RAW: reading.value}
    outcome = check.outcome({**row, COMPLETION: reading.value, **read})
    if not has_run(outcome):
        return outcome
    # threshold and negation; an error stays an error
    error, reason, score = outcome.error and one_line(outcome.error), one_line(outcome.reason), outcome.score
    if spec.threshold is not None:
        score = float(score >= spec.threshold)
        reason = (_below(spec.threshold) if spec.threshold > 1 and error is None else reason) if score < 1 else ""
    if spec.negate and error is not None:
        return Outcome(0.0, error, error, outcome.extra)
    if spec.negate:
        score = 1.0 - score
        reason = must_not_hold(spec) if score < 1 else ""
    return Outcome(score, reason, error, outcome.extra)


def _below(threshold: float) -> str:
    return f"scores below {threshold}"


def _group_outcome(spec: CheckSpec, group: Group, row: Row) -> Outcome | None:
    parts = tuple(outcome_of(part, row) for part in spec.parts)
    pairs = [(result, part) for result, part in zip(parts, spec.parts, strict=True) if part.check is not None]
    ran = [(result, part) for result, part in pairs if has_run(result)]
    if not any(part in spec.counted for _, part in ran):
        return Outcome(None, "", parts=parts)  # type: ignore[arg-type]  # as of a check that does not apply
    if isinstance(group, Included):
        all_scores = [result.score if has_run(result) else None for result, _ in pairs]
        total = combined(spec.runnable, all_scores, group.combine, group.range, is_plain=spec.is_plain)
    else:
        total = group.score(row, [result.score for result, _ in ran], [part.weight for _, part in ran])
    overflow = OVERFLOW if total is None else None  # its line in the errors is the group's own
    error = next((outcome.error for outcome, _ in ran if outcome.error is not None), overflow)
    score = total or 0.0
    if spec.threshold is not None:
        score = float(score >= spec.threshold)
    score = 1.0 - score if spec.negate else score
    score = 0.0 if error is not None and (spec.negate or group.inverse) else score
    return Outcome(score, "", error, overflow, parts)


class _Fixed(NamedTuple):
    """Rows whose outcome threshold and negation do not touch, and why, as a String expression that is null on other rows."""

    reason: pl.Expr
    score: float
    is_error: bool


def subject_of(spec: CheckSpec) -> str:
    """Return the column that a check is about."""
    return TEXT if spec.subject is None else spec.subject.column


def columns_of(spec: CheckSpec) -> Columns:
    """Return the outcomes of a check that is known as expressions about what it reads."""
    assert spec.check is not None  # noqa: S101  (checks of unknown type do not run)
    if answers(_facts(spec)):
        columns, lanes = _columns_of_facts(spec)
    elif is_builtin(spec.check):
        columns, lanes = _columns_about(spec.check, subject_of(spec))
    else:
        with reading_column(subject_of(spec)):
            return spec.check.columns()
    with columns_read() as read:
        read.extend(lanes)
    return columns


@lru_cache(256)  # by identity: a plan asks some four times, and a loop has plans of the same checks
def _columns_about(check: Check, subject: str) -> tuple[Columns, list[SharedColumn]]:
    with columns_read() as lanes, reading_column(subject):
        return check.columns(), lanes


@lru_cache(1_024)  # a plan asks some twenty times for the columns of a check
def _facts(spec: CheckSpec) -> tuple[Fact, ...]:
    return () if spec.check is None else facts_of(spec.check)


@lru_cache(1_024)
def _columns_of_facts(spec: CheckSpec) -> tuple[Columns, list[SharedColumn]]:
    assert isinstance(spec.check, FactCheck)  # noqa: S101  (only they have facts)
    with columns_read() as lanes, reading_column(subject_of(spec)):
        return spec.check.from_facts([fact.lane.col for fact in _facts(spec)]), lanes


def lanes_of(spec: CheckSpec) -> Iterator[tuple[str, SharedColumn]]:
    """Yield the lanes of a check and its steps, each with the column that it is about."""
    if spec.subject is not None:
        yield from ((TEXT, lane) for lane in spec.subject.lanes())
    subject = subject_of(spec)
    if spec.check is not None:
        with columns_read() as lanes:
            columns_of(spec)
        yield from ((subject, lane) for lane in lanes)
    if spec.when is not None and spec.when.check is not None:
        yield from lanes_of(spec.when.check)


def condition_layer(verifier: VerifierSpec, schema: pl.Schema) -> list[pl.Expr]:
    """Return the named columns of the conditions of a verifier's checks."""
    columns = []
    for spec in verifier.nodes:
        if spec.when is None:
            continue
        if spec.when.check is None:
            holds = spec.when.expr(schema)
        else:
            score, error = _score_exprs(spec.when.check, columns_of(spec.when.check))
            passes = score >= 1.0
            holds = (passes.not_() if spec.when.negated else passes).fill_null(value=False)
            holds = holds if error is None else holds & error.is_null()
        columns.append(holds.alias(when_column(verifier, spec.id)))
    return columns


def _is_run(spec: CheckSpec) -> pl.Expr | None:
    skipped = None if spec.check is None else columns_of(spec).skipped
    return None if skipped is None else skipped.not_()


def applies_expr(
    verifier: VerifierSpec, spec: CheckSpec, single: Callable[[CheckSpec], pl.Expr | None] = _is_run
) -> pl.Expr | None:
    """``applies`` as a Boolean expression, given that of a single check; None if the check gives every row a score."""
    inner = None
    if spec.parts:
        parts = [applies_expr(verifier, part, single) for part in spec.counted]
        conditions = [part for part in parts if part is not None]
        inner = reduce(or_, conditions) if conditions and len(conditions) == len(parts) else None
    else:
        inner = single(spec)
    own = None if spec.when is None else pl.col(when_column(verifier, spec.id))
    return inner if own is None else own if inner is None else own & inner


def none_applies_expr(
    verifier: VerifierSpec, condition_of: Callable[[VerifierSpec, CheckSpec], pl.Expr | None]
) -> pl.Expr | None:
    """``none_applies`` as a Boolean expression, given whether a check applies to a row; None if one applies to every row."""
    if verifier.kind == FUNCTION:
        return None
    conditions = [condition_of(verifier, spec) for spec in verifier.counted]
    present = [condition for condition in conditions if condition is not None]
    return pl.any_horizontal(present).not_() if len(present) == len(conditions) else None


def above_expr(verifier: VerifierSpec, spec: CheckSpec) -> pl.Expr | None:
    """Return whether the conditions of a check and of the groups around it hold; None if there are none."""
    idents = (*spec.above, *((spec.id,) if spec.when is not None else ()))
    return pl.all_horizontal(when_column(verifier, ident) for ident in idents) if idents else None


def unscored_exprs(verifier: VerifierSpec, spec: CheckSpec) -> list[pl.Expr]:
    """``unscored`` of a single check as String expressions, of which the first that is not null counts."""
    if spec.check is None or spec.parts:
        return []
    columns = columns_of(spec)
    reasons = [columns.unscored, columns.missing if spec.missing_gold == "unscored" else None]
    condition = above_expr(verifier, spec)
    present = [reason for reason in reasons if reason is not None]
    return present if condition is None else [pl.when(condition).then(reason) for reason in present]


def missing_golds(verifier: VerifierSpec, spec: CheckSpec) -> tuple[pl.Expr, pl.Expr | None] | None:
    """Return why the rows that a check runs on have no gold that it can use, and whether it runs (None: on all); None if rows bring none."""
    if spec.check is None or spec.parts:
        return None
    missing = columns_of(spec).missing
    if missing is None:
        return None
    runs = above_expr(verifier, spec)
    return (missing if runs is None else pl.when(runs).then(missing)), runs


def _fixed_outcomes(spec: CheckSpec, columns: Columns) -> list[_Fixed]:
    fixed = []
    if spec.missing_gold != "unscored" and columns.missing is not None:
        passes = spec.missing_gold == "pass"
        fixed.append(_Fixed(one_line_expr(columns.missing), float(passes), is_error=not passes))
    if spec.subject is not None:
        if (error := spec.subject.error_expr()) is not None:
            fixed.append(_Fixed(one_line_expr(error), 0.0, is_error=True))
        fixed.append(_Fixed(spec.subject.nothing_expr(), float(spec.not_found == "pass"), is_error=False))
    return fixed


def _score_exprs(spec: CheckSpec, columns: Columns) -> tuple[pl.Expr, pl.Expr | None]:
    """Return the score of a single check and its error, None if there never is one."""
    check = spec.check
    assert check is not None  # noqa: S101  (as in ``columns_of``)
    raw = columns.score.cast(pl.Float64)
    error = one_line_expr(columns.error) if columns.error is not None or not _is_boolean(check) else None
    if error is not None and not (_is_boolean(check) or columns.is_outcome):
        is_valid = (raw.is_between(0.0, 1.0) if check.traits.bounded else raw.is_finite()).fill_null(
            value=is_nullable(check)
        )
        error = (
            pl.when(is_valid.not_())
            .then(pl.coalesce(error, pl.lit(check.traits.invalid_score_message)))
            .otherwise(error)
        )
        raw = pl.when(is_valid).then(raw).otherwise(0.0)
    if spec.threshold is not None:
        raw = (raw >= spec.threshold).cast(pl.Float64)
    if spec.negate:
        raw = 1.0 - raw if error is None else pl.when(error.is_null()).then(1.0 - raw).otherwise(0.0)
    for fixed in reversed(_fixed_outcomes(spec, columns)):
        is_fixed = fixed.reason.is_not_null()
        raw = pl.when(is_fixed).then(fixed.score).otherwise(raw)
        if error is not None or fixed.is_error:
            error = pl.lit(None, dtype=pl.String) if error is None else error
            error = pl.when(is_fixed).then(fixed.reason if fixed.is_error else None).otherwise(error)
    return raw, error


def check_exprs(verifier: VerifierSpec, spec: CheckSpec, check: Check) -> tuple[list[pl.Expr], list[pl.Expr]]:
    """``outcome_of`` for a single check as two layers of named columns: score, error and remark, then reason, which reads them.

    Only checks that need them have an error and a reason: see ``may_err`` and ``one_reason``.
    """
    condition = above_expr(verifier, spec)
    scored = pl.col(UNSCORED).is_null() if condition is None else pl.col(UNSCORED).is_null() & condition
    own = columns_of(spec)
    raw, error = _score_exprs(spec, own)
    columns = [pl.when(scored).then(raw).alias(hidden(check_column(verifier, spec)))]
    if error is not None:
        columns.append(pl.when(scored).then(error).alias(error_column(verifier, spec)))
    asked = reduce(and_, (fixed.reason.is_null() for fixed in _fixed_outcomes(spec, own)), scored)
    if check.traits.extra and own.extra is not None:
        columns.append(pl.when(asked).then(own.extra).alias(own_extra_column(verifier, spec)))
    if own.remark is not None:
        columns.append(pl.when(scored).then(own.remark).alias(remark_column(verifier, spec)))
    if one_reason(spec) is not None:
        return columns, []
    error = pl.col(error_column(verifier, spec)) if may_err(spec) else pl.lit(None, dtype=pl.String)
    message = check.traits.invalid_score_message
    if spec.negate:
        reason = pl.coalesce(error, pl.lit(must_not_hold(spec)))
    elif spec.threshold is not None and spec.threshold > 1:
        reason = pl.coalesce(error, pl.lit(_below(spec.threshold)))
    else:
        reason = one_line_expr(own.reasons)
    if not (_is_boolean(check) or own.is_outcome):
        reason = pl.when(error == message).then(pl.lit(message)).otherwise(reason)
    for fixed in reversed(_fixed_outcomes(spec, own)):
        reason = pl.when(fixed.reason.is_not_null()).then(fixed.reason).otherwise(reason)
    return columns, [pl.when(short_expr(verifier, spec)).then(reason).alias(reason_column(verifier, spec))]


def group_exprs(verifier: VerifierSpec, spec: CheckSpec, group: Group) -> list[list[pl.Expr]]:
    """``outcome_of`` for a group as layers of named columns over those of its checks: score, and error if there may be one."""
    names = [hidden(check_column(verifier, part)) for part in spec.runnable]
    weights, steps, own = [part.weight for part in spec.runnable], list[pl.Expr](), _spec_column(verifier, spec)
    if not isinstance(group, Included):
        score = group.score_expr([pl.col(name) for name in names], weights)
    elif spec.is_plain:
        steps, score = mean_steps(names, weights, own), pl.col(own)
    else:
        steps = combined_steps(spec.runnable, names, group.combine, group.range, own)
        score = finite_expr(pl.col(unbounded(own))).fill_null(0.0)
    errors = [pl.col(error_column(verifier, part)) for part in spec.runnable if may_err(part)]
    if (overflow := is_overflow(verifier, spec)) is not None:
        errors.append(pl.when(overflow).then(pl.lit(OVERFLOW)))
    if spec.threshold is not None:
        score = (score >= spec.threshold).cast(pl.Float64)
    score = 1.0 - score if spec.negate else score
    if errors and (spec.negate or group.inverse):
        score = pl.when(pl.coalesce(errors).is_null()).then(score).otherwise(0.0)
    ran = reduce(or_, (pl.col(hidden(check_column(verifier, part))).is_not_null() for part in spec.counted))
    columns = [pl.when(ran).then(score).alias(hidden(check_column(verifier, spec)))]
    columns += [pl.coalesce(errors).alias(error_column(verifier, spec))] if errors else []
    return [*([step] for step in steps), columns]


def _spec_column(verifier: VerifierSpec, spec: CheckSpec) -> str:
    return f"{hidden(check_column(verifier, spec))}/spec"


def is_overflow(verifier: VerifierSpec, spec: CheckSpec) -> pl.Expr | None:
    """Return whether the score of a group is not a finite number, as a Boolean expression; None if it always is."""
    if not isinstance(spec.check, Included) or spec.is_plain:
        return None
    return pl.col(unbounded(_spec_column(verifier, spec))).is_finite().not_()


def is_nullable(check: Check | None) -> bool:
    """Whether a check may not apply to a row: its score is null there."""
    return check is not None and check.traits.nullable


def _is_boolean(check: Check) -> bool:
    """Whether a check can only score 0 or 1: a built-in Boolean check."""
    return is_builtin(check) and not check.graded


def may_err(spec: CheckSpec) -> bool:
    """Whether a check has an error column: all except built-in Boolean checks that cannot fail, and groups of such."""
    if spec.check is None:
        return False
    if spec.parts:
        own = isinstance(spec.check, Included) and not spec.is_plain
        return own or any(may_err(part) for part in spec.runnable)
    if not _is_boolean(spec.check):
        return True
    columns = columns_of(spec)
    return columns.error is not None or any(fixed.is_error for fixed in _fixed_outcomes(spec, columns))


def one_reason(spec: CheckSpec) -> str | None:
    """Return the reason of all rows that score below 1 if it is the same for all, which needs no column; else None."""
    check = spec.check
    if check is not None and spec.parts:
        return must_not_hold(spec) if spec.negate else one_line(check.complaint())
    if check is None or spec.subject is not None or not _is_boolean(check) or may_err(spec):
        return None
    reason = columns_of(spec).reason
    if spec.negate:
        return must_not_hold(spec)
    return one_line(encodable(reason)) if isinstance(reason, str) else None


def short_expr(verifier: VerifierSpec, spec: CheckSpec) -> pl.Expr:
    """Whether a row scores below 1 and gets a reason."""
    score = pl.col(hidden(check_column(verifier, spec)))
    if spec.check is None or is_builtin(spec.check) or spec.threshold is not None or spec.subject is not None:
        return score < 1.0
    error = pl.col(error_column(verifier, spec)) if may_err(spec) else pl.lit(None, dtype=pl.String)
    return columns_of(spec).short(score, error)


def counts_expr(verifier: VerifierSpec, spec: CheckSpec) -> pl.Expr:
    """The numbers of a check in all rows, as the fields of a struct."""
    score = pl.col(hidden(check_column(verifier, spec)))
    error = pl.col(error_column(verifier, spec)) if may_err(spec) else pl.lit(None)
    return pl.struct(
        rows=score.count(), total=score.sum(), failures=short_expr(verifier, spec).sum(), errors=error.count()
    )
