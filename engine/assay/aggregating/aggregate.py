"""From the outcomes of checks to reward, passed, feedback and error: each rule as a row function beside its expression."""

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial, reduce
from itertools import groupby
from operator import add
from typing import Any, NamedTuple

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
from assay.expressions.lane import is_small
from assay.names import FUNCTION
from assay.spec.verifier import CheckSpec, Share, VerifierSpec

__all__ = [
    "OVERFLOW",
    "RESULTS",
    "label_of",
    "lines",
    "lines_expr",
    "mean",
    "mean_steps",
    "passes",
    "passes_expr",
    "reward",
    "reward_steps",
    "run_passes",
    "run_passes_expr",
    "verdict_exprs",
    "verdicts",
    "verifier_score",
    "verifier_steps",
]


# ── a verifier: the weighted mean ───────────────────────────────────────────────────────────────────────────────────────


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
    passes = pl.all_horizontal(score >= verifier.pass_threshold, *required)
    return passes if verifier.is_plain else pl.when(score.is_not_null()).then(passes)


# ── a run: the plain mean of verifiers, or the weighted sum of a rubric ───────────────────────────────────────────────────────


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
    terms = [(share.path, _term(verifier, share)) for share, verifier in zip(shares, verifiers, strict=True)]
    total, sum_column = _summed(terms, pl.lit(0.0)), pl.col(f"{name}/sum")
    # NOTE: Polars drops `0.0 +`, so a sum of -0.0 terms would stay -0.0; other sums do not change without it
    finite_sum = pl.when(sum_column == 0.0).then(pl.lit(0.0)).when(sum_column.is_finite()).then(sum_column)
    return [total.alias(f"{name}/sum"), finite_sum.alias(name)]


def may_skip(verifier: VerifierSpec) -> bool:
    """Whether a verifier is a member of a rubric that may not apply to a row."""
    return verifier.kind == FUNCTION and any(is_nullable(spec.check) for spec in verifier.runnable)


def _term(verifier: VerifierSpec, share: Share) -> pl.Expr:
    """Return what a member adds to the reward: nothing where it does not apply, and null where the row is unscored."""
    term = pl.lit(share.weight) * pl.col(hidden(score_column(verifier)))
    if not may_skip(verifier):
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
        each = pl.all_horizontal(passes_expr(verifier) for verifier in verifiers)
        is_plain = all(verifier.is_plain for verifier in verifiers)
        return each if is_plain else pl.when(pl.col(hidden("reward")).is_not_null()).then(each)
    return pl.col(hidden("reward")) >= shares[0].pass_threshold


# ── words ───────────────────────────────────────────────────────────────────────────────────────────────────────────────


def label_of(verifier: str, kind: str, ident: str, *, several: bool) -> str:
    """Return what a check's lines begin with.

    Args:
        verifier: Id of its verifier.
        kind: Kind of its verifier.
        ident: Its id, or the name that a row gives.
        several: Whether the run has several verifiers.
    """
    return f"{verifier}/{ident}: " if several and kind != FUNCTION else f"{ident}: "


def _label(verifiers: Sequence[VerifierSpec], verifier: VerifierSpec, ident: str) -> str:
    return label_of(verifier.id, verifier.kind, ident, several=len(verifiers) > 1)


def lines(verifiers: Sequence[VerifierSpec], outcomes: Sequence[Sequence[Outcome | None]], *, errors: bool) -> str:
    """Return one line for each check with a reason or an error, in spec order; of a failing group, those of its checks at fault.

    Args:
        verifiers: All verifiers of the run.
        outcomes: For each verifier, the outcomes of its checks; a check without an id is named by its extra column.
        errors: Whether to list errors instead of reasons.
    """
    return "\n".join(
        line
        for verifier, row in zip(verifiers, outcomes, strict=True)
        for spec, outcome in zip(verifier.checks, row, strict=True)
        for line in _with_notes(partial(_label, verifiers, verifier), spec, outcome, errors=errors)
    )


def _with_notes(label: Callable[[str], str], spec: CheckSpec, outcome: Outcome | None, *, errors: bool) -> list[str]:
    notes = [] if errors else [label(part.id) + part.note for part in skipped(spec)]
    return _lines(label, spec, outcome, errors=errors) + notes


def skipped(spec: CheckSpec) -> list[CheckSpec]:
    """Return the checks in a group, at any depth, that are skipped: every row has their notes."""
    return [part for part in spec.nodes() if part is not spec and part.check is None]


def _lines(label: Callable[[str], str], spec: CheckSpec, outcome: Outcome | None, *, errors: bool) -> list[str]:
    if outcome is None:
        return []
    if spec.group is None:
        text = outcome.error if errors else outcome.reason
        return [label(spec.id or str(outcome.extra)) + text] if text else []
    ran = [
        (part, one)
        for part, one in zip(spec.parts, outcome.parts, strict=True)
        if has_run(one) and part.check is not None
    ]
    if errors:
        own = [label(spec.id) + OVERFLOW] if outcome.extra == OVERFLOW else []
        return own + [line for part, one in ran for line in _lines(label, part, one, errors=True)]
    if not has_run(outcome) or outcome.score >= 1:
        return []
    if spec.negate or spec.group.inverse:
        return _at_fault(label, spec, ran)
    if spec.group.nearest:
        best = max(one.score for _, one in ran)
        ran = [next((part, one) for part, one in ran if one.score == best)]
    return [line for part, one in ran for line in _lines(label, part, one, errors=False)]


def _at_fault(label: Callable[[str], str], spec: CheckSpec, ran: Sequence[tuple[CheckSpec, Outcome]]) -> list[str]:
    """Return the lines of a failing group that is negated, or of which no check may pass."""
    if spec.negate:
        return [label(spec.id) + must_not_hold(spec)]
    errors = [line for part, one in ran for line in _lines(label, part, one, errors=True)]
    return [label(part.id) + must_not_hold(part) for part, one in ran if one.score >= 1] + errors


def lines_expr(verifiers: Sequence[VerifierSpec], *, errors: bool) -> pl.Expr:
    """``lines`` as an expression over the hidden reason or error columns; ``""`` if there are none."""
    texts: list[pl.Expr] = []
    fixed: list[tuple[str, str]] = []  # lines whose words do not depend on the row, up to the next one whose words do
    for verifier in verifiers:
        words = _Words(partial(_label, verifiers, verifier), verifier)
        for spec in verifier.checks:
            if not errors and spec.when is None and not spec.parts and (reason := one_reason(spec)) is not None:
                fixed += [(words.label(spec.id) + reason, hidden(check_column(verifier, spec)))] if reason else []
                continue
            texts_of_check = words.lines(spec, None, errors=errors)
            if not errors:
                texts_of_check += [pl.lit(words.label(part.id) + part.note) for part in skipped(spec)]
            if texts_of_check:
                texts += [*_fixed_lines(fixed), *texts_of_check]
                fixed = []
    texts += _fixed_lines(fixed)
    return pl.concat_str(texts, separator="\n", ignore_nulls=True) if texts else pl.lit("")


class _Words(NamedTuple):
    """The lines of a verifier's checks as expressions, null on rows without them."""

    label: Callable[[str], str]
    verifier: VerifierSpec

    def lines(self, spec: CheckSpec, shown: pl.Expr | None, *, errors: bool) -> list[pl.Expr]:
        """``_lines`` as expressions.

        Args:
            spec: The check.
            shown: On which rows; None for all.
            errors: Whether to list errors instead of reasons.
        """
        if spec.check is None:
            return [] if errors else [pl.lit(self.label(spec.id) + spec.note)]
        if spec.group is None:
            return self._single(spec, shown, errors=errors)
        if errors:
            overflow = is_overflow(self.verifier, spec)
            own = [] if overflow is None else self._where(overflow, pl.lit(self.label(spec.id) + OVERFLOW))
            return own + [line for part in spec.runnable for line in self.lines(part, None, errors=True)]
        failing = self._score(spec) < 1.0
        failing = failing if shown is None else failing & shown
        if spec.negate:
            return self._where(failing, pl.lit(self.label(spec.id) + must_not_hold(spec)))
        if spec.group.inverse:
            return [*self._passing(spec, failing), *self._errors(spec, failing)]
        best = pl.max_horizontal(self._score(part) for part in spec.runnable) if spec.group.nearest else None
        return self._failing(spec, failing, best)

    def _failing(self, spec: CheckSpec, failing: pl.Expr, best: pl.Expr | None) -> list[pl.Expr]:
        """Return the lines of the checks in a failing group; with ``best``, those of the first that scores so."""
        result: list[pl.Expr] = []
        earlier = pl.lit(value=False)
        for part in spec.runnable:
            shown = failing
            if best is not None:
                is_best = (self._score(part) == best).fill_null(value=False)
                shown, earlier = failing & is_best & earlier.not_(), earlier | is_best
            result += self.lines(part, shown, errors=False)
        return result

    def _passing(self, spec: CheckSpec, failing: pl.Expr) -> list[pl.Expr]:
        return [
            line
            for part in spec.runnable
            for line in self._where(
                failing & (self._score(part) >= 1.0), pl.lit(self.label(part.id) + must_not_hold(part))
            )
        ]

    def _errors(self, spec: CheckSpec, failing: pl.Expr) -> list[pl.Expr]:
        lines = (line for part in spec.runnable for line in self.lines(part, None, errors=True))
        return [where for line in lines for where in self._where(failing, line)]

    def _single(self, spec: CheckSpec, shown: pl.Expr | None, *, errors: bool) -> list[pl.Expr]:
        if not errors and (reason := one_reason(spec)) is not None:
            failing = self._score(spec) < 1.0
            text = pl.lit(self.label(spec.id) + reason)
            return self._where(failing if shown is None else failing & shown, text) if reason else []
        if errors and not may_err(spec):
            return []
        column = pl.col(error_column(self.verifier, spec) if errors else reason_column(self.verifier, spec))
        prefix = pl.lit(self.label(spec.id))
        if not spec.id:  # the row names the check
            name = pl.col(own_extra_column(self.verifier, spec)) + pl.lit(": ")
            prefix = pl.lit(owner) + name if (owner := self.label("").removesuffix(": ")) else name
        return self._where(shown, prefix + pl.when(column != "").then(column))

    def _score(self, spec: CheckSpec) -> pl.Expr:
        return pl.col(hidden(check_column(self.verifier, spec)))

    @staticmethod
    def _where(shown: pl.Expr | None, line: pl.Expr) -> list[pl.Expr]:
        return [line if shown is None else pl.when(shown).then(line)]


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
    table = ["\n".join(texts) or None for texts in missing]
    column_of_table = pl.Series(table, dtype=pl.String)
    code = reduce(add, (pl.col(column) * float(1 << bit) for bit, (_, column) in enumerate(lines)))

    def look_up(codes: pl.Series) -> pl.Series:
        if is_small(codes):
            return pl.Series([None if row is None else table[row] for row in codes.to_list()], dtype=pl.String)
        return column_of_table.gather(codes)

    return code.cast(pl.UInt32).map_batches(look_up, return_dtype=pl.String, is_elementwise=True)


# ── the columns of every result ─────────────────────────────────────────────────────────────────────────────────────────

RESULTS = ("reward", "passed", "feedback", "error")
"""Columns of every result, in order."""


def verdicts(
    verifiers: Sequence[VerifierSpec],
    total: float | None,
    scores: Sequence[float | None],
    outcomes: Sequence[Sequence[Outcome | None]],
) -> dict[str, object]:
    """Return the results of a scored row besides its reward.

    Args:
        verifiers: The verifiers of the run.
        total: The reward; None if a sum is not a finite number.
        scores: The score of each verifier; None if it is not a finite number, or for a member of a rubric that does not apply.
        outcomes: For each verifier, the outcomes of its checks; None for one that did not run.
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
    errors = lines_expr(verifiers, errors=True)
    overflow = pl.when(pl.col(hidden("reward")).is_null()).then(pl.lit(OVERFLOW))
    return [
        pl.when(is_scored).then(run_passes_expr(verifiers)).alias(hidden("passed")),
        pl.when(is_scored).then(lines_expr(verifiers, errors=False)).alias(hidden("feedback")),
        pl.coalesce(UNSCORED, pl.when(errors != "").then(errors), overflow).alias(hidden("error")),
    ]
