"""From check scores to reward, passed, feedback and error: each rule as a row function beside its expression."""

import math
import re
from collections.abc import Iterable, Sequence
from functools import reduce
from itertools import groupby
from operator import add
from typing import Any

import polars as pl

from assay.checks.base import Check, Outcome, RunCheck
from assay.errors import encodable
from assay.names import FUNCTION, HIDDEN, IN_PROCESS, NATIVE
from assay.spec.verifier import CheckSpec, Share, VerifierSpec
from assay.thresholds import THRESHOLDS

__all__ = [
    "OVERFLOW",
    "UNSCORED",
    "check_column",
    "check_exprs",
    "detail_columns",
    "error_column",
    "extra_column",
    "extra_columns",
    "hidden",
    "lines",
    "lines_expr",
    "may_err",
    "mean",
    "mean_steps",
    "one_line",
    "one_line_expr",
    "one_reason",
    "passes",
    "passes_expr",
    "reason_column",
    "remark_column",
    "reward",
    "reward_steps",
    "run_passes",
    "run_passes_expr",
    "score_column",
    "settle",
    "short_expr",
]

UNSCORED = HIDDEN + "unscored"
"""Why a row cannot be scored; null if it can."""

_BREAKS = re.compile(r"[\r\n]+")


def hidden(name: str) -> str:
    """Return a result's name inside a plan; the input may have a column with the public name."""
    return HIDDEN + name


def check_column(verifier: VerifierSpec, check: CheckSpec) -> str:
    """Return the output column of a check's score."""
    return f"check/{verifier.id}/{check.id}"


def score_column(verifier: VerifierSpec) -> str:
    """Return the output column of a verifier's score."""
    return f"score/{verifier.id}"


def extra_column(verifier: VerifierSpec, check: CheckSpec) -> str:
    """Return the output column that a check adds beside its score, or ``""``."""
    return check.check.extra.format(verifier=verifier.id) if isinstance(check.check, RunCheck) else ""


def extra_columns(verifiers: Sequence[VerifierSpec]) -> list[str]:
    """Return the columns that checks add beside their scores."""
    names = (extra_column(verifier, spec) for verifier in verifiers for spec in verifier.runnable)
    return [name for name in names if name]


def detail_columns(verifiers: Sequence[VerifierSpec]) -> list[str]:
    """Return the columns of verifiers, then of checks; a verifier that is one function or class has no check columns.

    The verifiers of the rows have a column of their own only beside others; else it would repeat the reward.
    """
    scores = [score_column(verifier) for verifier in verifiers if verifier.kind != IN_PROCESS or len(verifiers) > 1]
    native = [verifier for verifier in verifiers if verifier.kind == NATIVE]
    return scores + [check_column(verifier, spec) for verifier in native for spec in verifier.runnable]


def reason_column(verifier: VerifierSpec, check: CheckSpec) -> str:
    """Return the hidden column of a check's reason: null where the score is 1."""
    return hidden(f"reason/{verifier.id}/{check.id}")


def error_column(verifier: VerifierSpec, check: CheckSpec) -> str:
    """Return the hidden column of a check's error: null where there is none."""
    return hidden(f"error/{verifier.id}/{check.id}")


def remark_column(verifier: VerifierSpec, check: CheckSpec) -> str:
    """Return the hidden column of a check's remarks for the summary; only checks with remarks have it."""
    return hidden(f"remark/{verifier.id}/{check.id}")


# ── one check: errors and negation ──────────────────────────────────────────────────────────────────────────────────────


def one_line(text: str) -> str:
    """Replace line breaks by spaces, because feedback has one line per check."""
    return _BREAKS.sub(" ", text)


def settle(spec: CheckSpec, outcome: Outcome) -> Outcome:
    """Apply the rules that hold for every check to an outcome.

    A negated check scores ``1 - score``; an error stays an error.
    """
    settled = Outcome(outcome.score, one_line(outcome.reason), outcome.error and one_line(outcome.error), outcome.extra)
    if not spec.negate:
        return settled
    if settled.error is not None:
        return Outcome(0.0, settled.error, settled.error)
    score = 1.0 - settled.score
    return Outcome(score, one_line(_negated_reason(spec)) if score < 1 else "")


def _negated_reason(spec: CheckSpec) -> str:
    return encodable(f"must not hold: {spec.check.claim()}") if spec.check else ""


def check_exprs(verifier: VerifierSpec, spec: CheckSpec, check: Check) -> tuple[list[pl.Expr], list[pl.Expr]]:
    """``settle`` as expressions.

    Returns:
        Two layers of named columns: score, error and remark, then reason, which reads them. Only checks that need them have an
        error and a reason: see ``may_err`` and ``one_reason``.
    """
    scored = pl.col(UNSCORED).is_null()
    raw = check.expr().cast(pl.Float64)
    error = one_line_expr(check.error_expr()) if may_err(check) else None
    if error is not None and not _is_boolean(check):
        is_valid = (raw.is_between(0.0, 1.0) if check.bounded else raw.is_finite()).fill_null(value=_is_nullable(check))
        error = pl.when(is_valid.not_()).then(pl.coalesce(error, pl.lit(check.misfit))).otherwise(error)
        raw = pl.when(is_valid).then(raw).otherwise(0.0)
    score_name, error_name = hidden(check_column(verifier, spec)), error_column(verifier, spec)
    if spec.negate:
        raw = 1.0 - raw if error is None else pl.when(error.is_null()).then(1.0 - raw).otherwise(0.0)
    columns = [pl.when(scored).then(raw).alias(score_name)]
    if error is not None:
        columns.append(pl.when(scored).then(error).alias(error_name))
    if isinstance(check, RunCheck) and check.extra:
        columns.append(pl.when(scored).then(check.extra_expr()).alias(hidden(extra_column(verifier, spec))))
    if (remark := check.remark_expr()) is not None:
        columns.append(pl.when(scored).then(remark).alias(remark_column(verifier, spec)))
    if one_reason(spec) is not None:
        return columns, []
    if spec.negate:
        reason = pl.coalesce(pl.col(error_name), pl.lit(one_line(_negated_reason(spec))))
    else:
        reason = one_line_expr(check.reason_expr())
    if not _is_boolean(check):
        reason = pl.when(pl.col(error_name) == check.misfit).then(pl.lit(check.misfit)).otherwise(reason)
    return columns, [pl.when(short_expr(verifier, spec, check)).then(reason).alias(reason_column(verifier, spec))]


def _is_nullable(check: Check | None) -> bool:
    return isinstance(check, RunCheck) and check.nullable


def _is_boolean(check: Check) -> bool:
    """Whether a check can only score 0 or 1: a built-in Boolean check."""
    return check.is_builtin and not check.graded


def may_err(check: Check) -> bool:
    """Whether a check has an error column: all except built-in Boolean checks that cannot fail."""
    return not _is_boolean(check) or check.error_expr() is not None


def one_reason(spec: CheckSpec) -> str | None:
    """Return the reason of all rows that score below 1 if it is the same for all, which needs no column; else None."""
    check = spec.check
    if check is None or not _is_boolean(check) or may_err(check) or not (spec.negate or check.one_complaint):
        return None
    return one_line(_negated_reason(spec) if spec.negate else encodable(check.complaint()))


def short_expr(verifier: VerifierSpec, spec: CheckSpec, check: Check) -> pl.Expr:
    """Whether a row scores below 1 and gets a reason."""
    error = pl.col(error_column(verifier, spec)) if may_err(check) else pl.lit(None, dtype=pl.String)
    return check.short_expr(pl.col(hidden(check_column(verifier, spec))), error)


def one_line_expr(texts: pl.Expr | None) -> pl.Expr:
    """``one_line`` as an expression; null if there is no text."""
    if texts is None:
        return pl.lit(None, dtype=pl.String)
    return texts.map_batches(_in_one_line, return_dtype=pl.String, is_elementwise=True)


def _in_one_line(texts: pl.Series) -> pl.Series:
    # searching for a break takes a third of the time of rewriting every text
    return texts.str.replace_all(_BREAKS.pattern, " ") if texts.str.contains(_BREAKS.pattern).any() else texts


# ── a verifier: the weighted mean ───────────────────────────────────────────────────────────────────────────────────────


def mean(values: Sequence[float], weights: Sequence[float]) -> float:
    """Return the weighted mean, summed from left to right; exactly 1.0 if every value is 1.0."""
    return reduce(add, (w * v for w, v in zip(weights, values, strict=True))) / reduce(add, weights)


def mean_steps(columns: Sequence[str], weights: Sequence[float], name: str) -> list[pl.Expr]:
    """``mean`` over Float64 columns as a sequence of named columns, each reading the previous one; the last is the mean."""
    terms = [pl.lit(w) * pl.col(column) for w, column in zip(weights, columns, strict=True)]
    steps = []
    terms_at_once = max(2, THRESHOLDS.terms)
    while len(terms) > terms_at_once:
        partial_name = f"{name}/{len(terms)}"
        steps.append(reduce(add, terms[:terms_at_once]).alias(partial_name))
        terms = [pl.col(partial_name), *terms[terms_at_once:]]
    total = reduce(add, terms)
    # NOTE: Polars divides by a literal by multiplying with its reciprocal, which changes the last bit; by a column it divides.
    return [*steps, (total / (total * 0.0 + reduce(add, weights))).alias(name)]


def passes(verifier: VerifierSpec, score: float | None, checks: Sequence[float]) -> bool:
    """Whether a verifier passes, given its score and those of its runnable checks."""
    required = (s == 1.0 for s, spec in zip(checks, verifier.runnable, strict=True) if spec.required)
    return score is not None and score >= verifier.pass_threshold and all(required)


def passes_expr(verifier: VerifierSpec) -> pl.Expr:
    """``passes`` as an expression."""
    required = (pl.col(hidden(check_column(verifier, spec))) == 1.0 for spec in verifier.runnable if spec.required)
    return pl.all_horizontal(pl.col(hidden(score_column(verifier))) >= verifier.pass_threshold, *required)


# ── a run: the plain mean of verifiers, or the weighted sum of a rubric ───────────────────────────────────────────────────────


OVERFLOW = "the weighted sum is not a finite number"
"""Error of a row whose scores and weights are finite but whose weighted sum is not."""


def reward(verifiers: Sequence[VerifierSpec], scores: Sequence[float | None]) -> float | None:
    """Return the reward of a row, given the score of each verifier; None if the sum is not finite.

    A member of a rubric that does not apply to the row has the score None, and adds nothing.
    """
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
    terms = [(share.path, _term(verifier, share)) for share, verifier in zip(shares, verifiers, strict=True)]
    total, sum_column = _summed(terms, pl.lit(0.0)), pl.col(f"{name}/sum")
    # NOTE: Polars drops `0.0 +`, so a sum of -0.0 terms would stay -0.0; other sums do not change without it
    finite_sum = pl.when(sum_column == 0.0).then(pl.lit(0.0)).when(sum_column.is_finite()).then(sum_column)
    return [total.alias(f"{name}/sum"), finite_sum.alias(name)]


def _term(verifier: VerifierSpec, share: Share) -> pl.Expr:
    """Return what a member adds to the reward: nothing where it does not apply, and null where the row is unscored."""
    term = pl.lit(share.weight) * pl.col(hidden(score_column(verifier)))
    if not any(_is_nullable(spec.check) for spec in verifier.runnable):
        return term
    return pl.when(pl.col(UNSCORED).is_null()).then(term.fill_null(0.0))


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


def run_passes(verifiers: Sequence[VerifierSpec], total: float | None, each: Iterable[bool]) -> bool | None:
    """Whether a row passes: by its reward if the verifiers are members of a rubric, else if every verifier passes."""
    shares = _shares(verifiers)
    if shares is None:
        return all(each)
    return None if total is None else total >= shares[0].pass_threshold


def run_passes_expr(verifiers: Sequence[VerifierSpec]) -> pl.Expr:
    """``run_passes`` as an expression."""
    shares = _shares(verifiers)
    if shares is None:
        return pl.all_horizontal(passes_expr(verifier) for verifier in verifiers)
    return pl.col(hidden("reward")) >= shares[0].pass_threshold


# ── words ───────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _label(verifiers: Sequence[VerifierSpec], verifier: VerifierSpec, ident: str) -> str:
    return f"{verifier.id}/{ident}: " if len(verifiers) > 1 and verifier.kind != FUNCTION else f"{ident}: "


def lines(verifiers: Sequence[VerifierSpec], outcomes: Sequence[Sequence[Outcome]], *, errors: bool) -> str:
    """Return one line for each check with a reason or an error, in spec order.

    Args:
        verifiers: All verifiers of the run.
        outcomes: For each verifier, the outcomes of its checks; a check without an id is named by its extra column.
        errors: Whether to list errors instead of reasons.
    """
    labelled = [
        (_label(verifiers, verifier, spec.id or str(outcome.extra)), outcome.error if errors else outcome.reason)
        for verifier, row in zip(verifiers, outcomes, strict=True)
        for spec, outcome in zip(verifier.checks, row, strict=True)
    ]
    return "\n".join(label + text for label, text in labelled if text)


def lines_expr(verifiers: Sequence[VerifierSpec], *, errors: bool) -> pl.Expr:
    """``lines`` as an expression over the hidden reason or error columns; ``""`` if there are none."""
    texts: list[pl.Expr] = []
    fixed: list[tuple[str, str]] = []  # lines whose words do not depend on the row, up to the next one whose words do
    for verifier in verifiers:
        for spec in verifier.checks:
            label = _label(verifiers, verifier, spec.id)
            if not errors and spec.check is not None and (reason := one_reason(spec)) is not None:
                fixed += [(label + reason, hidden(check_column(verifier, spec)))] if reason else []
                continue
            if spec.check is None:
                line = None if errors else pl.lit(label + spec.note)
            elif errors:
                line = _line(label, verifier, spec, error_column(verifier, spec)) if may_err(spec.check) else None
            else:
                line = _line(label, verifier, spec, reason_column(verifier, spec))
            if line is not None:
                texts += [*_fixed_lines(fixed), line]
                fixed = []
    texts += _fixed_lines(fixed)
    return pl.concat_str(texts, separator="\n", ignore_nulls=True) if texts else pl.lit("")


_LINES_AT_ONCE = 8
"""Lines of which all combinations are written in advance."""


def _fixed_lines(lines: Sequence[tuple[str, str]]) -> list[pl.Expr]:
    """Return the lines of each row, joined; null where there is none.

    To join the lines of each row takes several times as long as to look their combination up.

    Args:
        lines: Each text with the column of the score, 0 or 1; rows that score 0 have the line.
    """
    return [_looked_up(lines[at : at + _LINES_AT_ONCE]) for at in range(0, len(lines), _LINES_AT_ONCE)]


def _looked_up(lines: Sequence[tuple[str, str]]) -> pl.Expr:
    missing = ([text for bit, (text, _) in enumerate(lines) if not code >> bit & 1] for code in range(1 << len(lines)))
    table = pl.Series(["\n".join(texts) or None for texts in missing], dtype=pl.String)
    code = reduce(add, (pl.col(column) * float(1 << bit) for bit, (_, column) in enumerate(lines)))
    return code.cast(pl.UInt32).map_batches(table.gather, return_dtype=pl.String, is_elementwise=True)


def _line(label: str, verifier: VerifierSpec, spec: CheckSpec, column: str) -> pl.Expr:
    prefix = pl.lit(label)
    if not spec.id:  # the row names the check
        name = pl.col(hidden(extra_column(verifier, spec))) + pl.lit(": ")
        prefix = pl.lit(owner) + name if (owner := label.removesuffix(": ")) else name
    return prefix + pl.when(pl.col(column) != "").then(pl.col(column))
