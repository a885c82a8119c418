"""From the outcomes of checks to reward, passed, feedback and error: each rule as a row function beside its expression."""

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial, reduce
from itertools import groupby
from operator import add, mul, sub
from typing import Any, NamedTuple

import polars as pl

from assay.aggregating.columns import (
    UNSCORED,
    check_column,
    error_column,
    extra_column,
    hidden,
    reason_column,
    score_column,
)
from assay.aggregating.pipeline import is_nullable, may_err, must_not_hold, one_reason
from assay.checks.base import Outcome
from assay.checks.groups import quotient, weighted_mean
from assay.expressions.lane import is_small
from assay.names import FUNCTION
from assay.spec.verifier import CheckSpec, Share, VerifierSpec
from assay.thresholds import THRESHOLDS

__all__ = [
    "OVERFLOW",
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
    "verifier_score",
    "verifier_steps",
]


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


def verifier_score(verifier: VerifierSpec, outcomes: Sequence[Outcome | None]) -> float | None:
    """Return the score of a verifier, given the outcomes of its runnable checks; None if it is not a finite number."""
    if verifier.is_plain:
        scores = [outcome.score for outcome in outcomes if outcome is not None]
        return None if None in scores else mean(scores, [spec.weight for spec in verifier.runnable])
    ran = [(spec, outcome.score) for spec, outcome in zip(verifier.runnable, outcomes, strict=True) if outcome]
    weighted = [(spec.weight, score) for spec, score in ran if spec.role == "weight" and spec.weight != 0]
    gates = [score for spec, score in ran if spec.role == "gate"]
    taken_off = [spec.weight * (1.0 - score) for spec, score in ran if spec.role == "penalty"]
    base = _COMBINE[verifier.combine](*zip(*weighted, strict=True)) if weighted else 1.0
    score = base * reduce(mul, gates, 1.0) - reduce(add, taken_off, 0.0)
    if verifier.range is not None:
        score = min(max(score, verifier.range[0]), verifier.range[1])
    return score + 0.0 if math.isfinite(score) else None


_COMBINE: dict[str, Callable[[Sequence[float], Sequence[float]], float]] = {
    "mean": lambda weights, scores: weighted_mean(scores, weights),
    "sum": lambda weights, scores: reduce(add, (w * s for w, s in zip(weights, scores, strict=True)), 0.0),
    "min": lambda _, scores: min(scores),
    "max": lambda _, scores: max(scores),
    "product": lambda _, scores: reduce(mul, scores, 1.0),
}


def verifier_steps(verifier: VerifierSpec) -> list[pl.Expr]:
    """``verifier_score`` as a sequence of named columns, each reading earlier ones; the last is the score."""
    name = hidden(score_column(verifier))
    if verifier.is_plain:
        checks = [hidden(check_column(verifier, spec)) for spec in verifier.runnable]
        return mean_steps(checks, [spec.weight for spec in verifier.runnable], name)
    columns = [(spec, pl.col(hidden(check_column(verifier, spec)))) for spec in verifier.runnable]
    weighted = [(spec.weight, column) for spec, column in columns if spec.role == "weight" and spec.weight != 0]
    factors = [column.fill_null(1.0) for spec, column in columns if spec.role == "gate"]
    taken_off = [
        (pl.lit(spec.weight) * (1.0 - column)).fill_null(0.0) for spec, column in columns if spec.role == "penalty"
    ]
    steps, score = _base_steps(verifier, weighted, name)
    for part, combine, terms in (("gates", mul, factors), ("penalties", sub, taken_off)):
        if terms:
            more, total = _folded(terms, add if combine is sub else combine, f"{name}/{part}")
            steps += more
            score = combine(score, total)
    if verifier.range is not None:
        score = pl.when(score.is_finite()).then(score.clip(*verifier.range)).otherwise(_limit(verifier.range, score))
    result = pl.col(f"{name}/unbounded")
    finite = pl.when(result == 0.0).then(0.0).when(result.is_finite()).then(result)  # -0.0 is 0.0
    scored = pl.when(pl.col(UNSCORED).is_null()).then(finite)
    return [*steps, score.alias(f"{name}/unbounded"), scored.alias(name)]


def _limit(limits: tuple[float, float], score: pl.Expr) -> pl.Expr:
    """Return the limit that an infinite score is cut to; NaN stays NaN."""
    return pl.when(score == math.inf).then(limits[1]).when(score == -math.inf).then(limits[0]).otherwise(score)


def _base_steps(
    verifier: VerifierSpec, weighted: Sequence[tuple[float, pl.Expr]], name: str
) -> tuple[list[pl.Expr], pl.Expr]:
    """Return the columns that the base of the score is made of, and the base: 1.0 where no weighted check ran."""
    if not weighted:
        return [], pl.lit(1.0)
    scores = [column for _, column in weighted]
    ran = pl.any_horizontal(column.is_not_null() for column in scores)
    if verifier.combine in ("min", "max"):
        base = (pl.min_horizontal if verifier.combine == "min" else pl.max_horizontal)(scores)
        return [], pl.when(ran).then(base).otherwise(1.0)
    if verifier.combine == "product":
        steps, base = _folded([column.fill_null(1.0) for column in scores], mul, f"{name}/base")
        return steps, base
    terms = [(column * weight).fill_null(0.0) for weight, column in weighted]
    steps, total = _folded(terms, add, f"{name}/base")
    if verifier.combine == "mean":
        present = [pl.when(column.is_not_null()).then(weight).otherwise(0.0) for weight, column in weighted]
        more, weight_sum = _folded(present, add, f"{name}/weights")
        steps, total = [*steps, *more], quotient(total, weight_sum)
    return steps, pl.when(ran).then(total).otherwise(1.0)


def _folded(terms: Sequence[pl.Expr], combine: Callable[[Any, Any], Any], name: str) -> tuple[list[pl.Expr], pl.Expr]:
    """Combine terms from left to right, in named columns of a few terms each; return these and the expression of the rest."""
    steps, rest, most = [], [*terms], max(2, THRESHOLDS.terms)
    while len(rest) > most:
        partial_name = f"{name}/{len(rest)}"
        steps.append(reduce(combine, rest[:most]).alias(partial_name))
        rest = [pl.col(partial_name), *rest[most:]]
    return steps, reduce(combine, rest)


def passes(verifier: VerifierSpec, score: float | None, outcomes: Sequence[Outcome | None]) -> bool | None:
    """Whether a verifier passes, given its score and the outcomes of its runnable checks; None without a score."""
    pairs = zip(outcomes, verifier.runnable, strict=True)
    required = (outcome.score >= 1.0 for outcome, spec in pairs if spec.required and outcome is not None)
    return None if score is None else score >= verifier.pass_threshold and all(required)


def passes_expr(verifier: VerifierSpec) -> pl.Expr:
    """``passes`` as an expression."""
    columns = (pl.col(hidden(check_column(verifier, spec))) for spec in verifier.runnable if spec.required)
    required = ((column >= 1.0).fill_null(value=True) for column in columns)
    score = pl.col(hidden(score_column(verifier)))
    passes = pl.all_horizontal(score >= verifier.pass_threshold, *required)
    return passes if verifier.is_plain else pl.when(score.is_not_null()).then(passes)


# ── a run: the plain mean of verifiers, or the weighted sum of a rubric ───────────────────────────────────────────────────────


OVERFLOW = "the weighted sum is not a finite number"
"""Error of a row whose scores and weights are finite but whose weighted sum is not."""


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
    return any(is_nullable(spec.check) for spec in verifier.runnable)


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


def _label(verifiers: Sequence[VerifierSpec], verifier: VerifierSpec, ident: str) -> str:
    return f"{verifier.id}/{ident}: " if len(verifiers) > 1 and verifier.kind != FUNCTION else f"{ident}: "


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
        if one is not None and part.check is not None
    ]
    if errors:
        return [line for part, one in ran for line in _lines(label, part, one, errors=True)]
    if outcome.score >= 1:
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
            return [line for part in spec.runnable for line in self.lines(part, None, errors=True)]
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
            name = pl.col(hidden(extra_column(self.verifier, spec))) + pl.lit(": ")
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
