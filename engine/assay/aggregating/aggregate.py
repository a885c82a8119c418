"""From check scores to reward, passed, feedback and error: each rule once, its row twin beside its expression."""

import math
import re
from collections.abc import Iterable, Sequence
from functools import reduce
from itertools import groupby
from operator import add
from typing import Any

import polars as pl

from assay.checks import CHECKS
from assay.checks.base import Check, Outcome
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
"""Why a row cannot be scored at all; null for a row that can."""

_BREAKS = re.compile(r"[\r\n]+")


def hidden(name: str) -> str:
    """The name a result has inside a plan, where the input may have a column of its public name."""
    return HIDDEN + name


def check_column(verifier: VerifierSpec, check: CheckSpec) -> str:
    """Output column of a check's score."""
    return f"check/{verifier.id}/{check.id}"


def score_column(verifier: VerifierSpec) -> str:
    """Output column of a verifier's score."""
    return f"score/{verifier.id}"


def extra_column(verifier: VerifierSpec, check: CheckSpec) -> str:
    """Output column that a check adds beside its score; ``""`` when it adds none."""
    return check.check.extra.format(verifier=verifier.id) if check.check is not None else ""


def extra_columns(verifiers: Sequence[VerifierSpec]) -> list[str]:
    """The columns that checks add beside their scores."""
    named = (extra_column(verifier, spec) for verifier in verifiers for spec in verifier.runnable)
    return [name for name in named if name]


def detail_columns(verifiers: Sequence[VerifierSpec]) -> list[str]:
    """The columns of verifiers, then those of checks; a verifier that is one function or class has no checks to show."""
    scores = [score_column(verifier) for verifier in verifiers if verifier.kind != IN_PROCESS]
    native = [verifier for verifier in verifiers if verifier.kind == NATIVE]
    return scores + [check_column(verifier, spec) for verifier in native for spec in verifier.runnable]


def reason_column(verifier: VerifierSpec, check: CheckSpec) -> str:
    """Hidden column of a check's reason: null where the score is 1."""
    return hidden(f"reason/{verifier.id}/{check.id}")


def error_column(verifier: VerifierSpec, check: CheckSpec) -> str:
    """Hidden column of a check's error: null where scoring went well."""
    return hidden(f"error/{verifier.id}/{check.id}")


def remark_column(verifier: VerifierSpec, check: CheckSpec) -> str:
    """Hidden column of what the summary tells of a row; there only for checks that remark."""
    return hidden(f"remark/{verifier.id}/{check.id}")


# ── one check: errors and negation ──────────────────────────────────────────────────────────────────────────────────────


def one_line(said: str) -> str:
    """Line breaks become a space: feedback has one line a check."""
    return _BREAKS.sub(" ", said)


def settle(spec: CheckSpec, outcome: Outcome) -> Outcome:
    """A check's outcome after the rules that hold for every check.

    An error is an error whichever way the check is turned; a negated check scores ``1 - score``.
    """
    said = Outcome(outcome.score, one_line(outcome.reason), outcome.error and one_line(outcome.error), outcome.extra)
    if not spec.negate:
        return said
    if said.error is not None:
        return Outcome(0.0, said.error, said.error)
    score = 1.0 - said.score
    return Outcome(score, one_line(_turned(spec)) if score < 1 else "")


def _turned(spec: CheckSpec) -> str:
    return encodable(f"must not hold: {spec.check.claim()}") if spec.check else ""


def check_exprs(verifier: VerifierSpec, spec: CheckSpec, check: Check) -> tuple[list[pl.Expr], list[pl.Expr]]:
    """``settle`` as expressions.

    Returns:
        Two layers of named columns: score, error and remark, then reason, which reads them. Error and reason are there for
        checks that need them: see ``may_err`` and ``one_reason``.
    """
    scored = pl.col(UNSCORED).is_null()
    raw = check.expr().cast(pl.Float64)
    error = one_line_expr(check.error_expr()) if may_err(check) else None
    if error is not None and not _certain(check):
        fits = (raw.is_between(0.0, 1.0) if check.bounded else raw.is_finite()).fill_null(value=False)
        error = pl.when(fits.not_()).then(pl.coalesce(error, pl.lit(check.misfit))).otherwise(error)
        raw = pl.when(fits).then(raw).otherwise(0.0)
    score_name, error_name = hidden(check_column(verifier, spec)), error_column(verifier, spec)
    if spec.negate:
        raw = 1.0 - raw if error is None else pl.when(error.is_null()).then(1.0 - raw).otherwise(0.0)
    first = [pl.when(scored).then(raw).alias(score_name)]
    if error is not None:
        first.append(pl.when(scored).then(error).alias(error_name))
    if check.extra:
        first.append(pl.when(scored).then(check.extra_expr()).alias(hidden(extra_column(verifier, spec))))
    if (remark := check.remark_expr()) is not None:
        first.append(pl.when(scored).then(remark).alias(remark_column(verifier, spec)))
    if one_reason(spec) is not None:
        return first, []
    if spec.negate:
        reason = pl.coalesce(pl.col(error_name), pl.lit(one_line(_turned(spec))))
    else:
        reason = one_line_expr(check.reason_expr())
    if not _certain(check):
        reason = pl.when(pl.col(error_name) == check.misfit).then(pl.lit(check.misfit)).otherwise(reason)
    return first, [pl.when(short_expr(verifier, spec, check)).then(reason).alias(reason_column(verifier, spec))]


def _certain(check: Check) -> bool:
    """Whether a check cannot give anything but 0 and 1: a built-in Boolean one."""
    return type(check) in CHECKS and not check.graded


def may_err(check: Check) -> bool:
    """Whether a check has a column of errors: all but those of which it is certain that nothing goes wrong."""
    return not _certain(check) or check.error_expr() is not None


def one_reason(spec: CheckSpec) -> str | None:
    """What every row that falls short of a check is told, where that is one thing: it needs no column. None where it is not."""
    check = spec.check
    if check is None or not _certain(check) or may_err(check) or not (spec.negate or check.one_complaint):
        return None
    return one_line(_turned(spec) if spec.negate else encodable(check.complaint()))


def short_expr(verifier: VerifierSpec, spec: CheckSpec, check: Check) -> pl.Expr:
    """Whether a row falls short of a check and is told why."""
    error = pl.col(error_column(verifier, spec)) if may_err(check) else pl.lit(None, dtype=pl.String)
    return check.short_expr(pl.col(hidden(check_column(verifier, spec))), error)


def one_line_expr(said: pl.Expr | None) -> pl.Expr:
    """``one_line`` as an expression; null for what nobody says."""
    if said is None:
        return pl.lit(None, dtype=pl.String)
    return said.map_batches(_in_one_line, return_dtype=pl.String, is_elementwise=True)


def _in_one_line(said: pl.Series) -> pl.Series:
    # looking for a break takes a third of the time of writing every text anew
    return said.str.replace_all(_BREAKS.pattern, " ") if said.str.contains(_BREAKS.pattern).any() else said


# ── a verifier: the weighted mean ───────────────────────────────────────────────────────────────────────────────────────


def mean(values: Sequence[float], weights: Sequence[float]) -> float:
    """Weighted mean, added up from left to right; exactly 1.0 when every value is 1.0."""
    return reduce(add, (w * v for w, v in zip(weights, values, strict=True))) / reduce(add, weights)


def mean_steps(columns: Sequence[str], weights: Sequence[float], name: str) -> list[pl.Expr]:
    """``mean`` over Float64 columns as a sequence of named columns, each of which reads the one before; the last is the mean."""
    terms = [pl.lit(w) * pl.col(column) for w, column in zip(weights, columns, strict=True)]
    steps = []
    together = max(2, THRESHOLDS.terms)
    while len(terms) > together:
        so_far = f"{name}/{len(terms)}"
        steps.append(reduce(add, terms[:together]).alias(so_far))
        terms = [pl.col(so_far), *terms[together:]]
    total = reduce(add, terms)
    # NOTE: dividing by a literal multiplies by its reciprocal, with another last bit; a column is truly divided by.
    return [*steps, (total / (total * 0.0 + reduce(add, weights))).alias(name)]


def passes(verifier: VerifierSpec, score: float, checks: Sequence[float]) -> bool:
    """Whether a verifier passes, given its score and those of its runnable checks."""
    required = (s == 1.0 for s, spec in zip(checks, verifier.runnable, strict=True) if spec.required)
    return score >= verifier.pass_threshold and all(required)


def passes_expr(verifier: VerifierSpec) -> pl.Expr:
    """``passes`` as an expression."""
    required = (pl.col(hidden(check_column(verifier, spec))) == 1.0 for spec in verifier.runnable if spec.required)
    return pl.all_horizontal(pl.col(hidden(score_column(verifier))) >= verifier.pass_threshold, *required)


# ── a run: the plain mean of verifiers, or the weighted sum of a rubric ───────────────────────────────────────────────────────


OVERFLOW = "the weighted sum is not a finite number"
"""Error of a row whose rewards and weights are, and their sum is not."""


def reward(verifiers: Sequence[VerifierSpec], scores: Sequence[float]) -> float | None:
    """The reward of a row, given the score of each verifier; None for a sum that no float holds."""
    if (shares := _shares(verifiers)) is None:
        return mean(scores, [1.0] * len(scores))
    total = _summed([(share.path, share.weight * score) for share, score in zip(shares, scores, strict=True)], 0.0)
    return total if math.isfinite(total) else None


def reward_steps(verifiers: Sequence[VerifierSpec]) -> list[pl.Expr]:
    """``reward`` as a sequence of named columns, each of which reads the ones before; the last is the reward."""
    scores, name = [hidden(score_column(verifier)) for verifier in verifiers], hidden("reward")
    if (shares := _shares(verifiers)) is None:
        return mean_steps(scores, [1.0] * len(scores), name)
    terms = [(share.path, pl.lit(share.weight) * pl.col(score)) for share, score in zip(shares, scores, strict=True)]
    total, so_far = _summed(terms, pl.lit(0.0)), pl.col(f"{name}/sum")
    # NOTE: the engine drops `0.0 +`, so that a sum of nothing but -0.0 stays one; any other sum is what it is without it
    known = pl.when(so_far == 0.0).then(pl.lit(0.0)).when(so_far.is_finite()).then(so_far)
    return [total.alias(f"{name}/sum"), known.alias(name)]


def _shares(verifiers: Sequence[VerifierSpec]) -> list[Share] | None:
    """What each member of a rubric adds; None where the verifiers are none."""
    shares = [verifier.share for verifier in verifiers if verifier.share is not None]
    return shares if len(shares) == len(verifiers) else None


def _summed(terms: Sequence[tuple[tuple[int, ...], Any]], zero: Any) -> Any:
    """The sum of terms from left to right, those of one rubric first; 0.0 for none, and never -0.0."""
    parts = []
    for at, inner in groupby(terms, key=lambda term: term[0][:1]):
        deeper = [(path[1:], term) for path, term in inner]
        parts += [_summed(deeper, zero)] if at else [term for _, term in deeper]
    return reduce(add, parts, zero)


def run_passes(verifiers: Sequence[VerifierSpec], total: float | None, each: Iterable[bool]) -> bool | None:
    """Whether a row passes: by its reward where the verifiers are members of a rubric, else when every verifier passes."""
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
    """One line for each check that has something to say, in spec order.

    Args:
        verifiers: All verifiers of the run.
        outcomes: For each verifier, for each of its checks, what it says; a check without an id is named by its extra column.
        errors: Whether errors are told, or reasons.
    """
    said = [
        (_label(verifiers, verifier, spec.id or str(outcome.extra)), outcome.error if errors else outcome.reason)
        for verifier, row in zip(verifiers, outcomes, strict=True)
        for spec, outcome in zip(verifier.checks, row, strict=True)
    ]
    return "\n".join(label + words for label, words in said if words)


def lines_expr(verifiers: Sequence[VerifierSpec], *, errors: bool) -> pl.Expr:
    """``lines`` as an expression over the hidden reason or error columns; ``""`` when nobody has anything to say."""
    said = []
    for verifier in verifiers:
        for spec in verifier.checks:
            label = _label(verifiers, verifier, spec.id)
            if spec.check is None:
                said += [] if errors else [pl.lit(label + spec.note)]
            elif errors:
                if may_err(spec.check):
                    said.append(_line(label, verifier, spec, error_column(verifier, spec)))
            elif (reason := one_reason(spec)) is None:
                said.append(_line(label, verifier, spec, reason_column(verifier, spec)))
            elif reason:
                said.append(pl.when(short_expr(verifier, spec, spec.check)).then(pl.lit(label + reason)))
    return pl.concat_str(said, separator="\n", ignore_nulls=True) if said else pl.lit("")


def _line(label: str, verifier: VerifierSpec, spec: CheckSpec, column: str) -> pl.Expr:
    named = pl.lit(label) if spec.id else pl.col(hidden(extra_column(verifier, spec))) + pl.lit(": ")
    return named + pl.when(pl.col(column) != "").then(pl.col(column))
