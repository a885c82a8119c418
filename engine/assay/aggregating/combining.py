"""Scores of checks to one score: the weighted mean or another combination, gates, penalties and limits; in Python and as expressions."""

import math
from collections.abc import Callable, Sequence
from functools import reduce
from operator import add, mul, sub
from typing import Any

import polars as pl

from assay.checks.groups import quotient, weighted_mean
from assay.spec.check import CheckSpec
from assay.thresholds import THRESHOLDS

OVERFLOW = "the weighted sum is not a finite number"
"""Error of a row whose scores and weights are finite but whose weighted sum is not."""

Limits = tuple[float, float] | None
"""Lowest and highest score; None for no limits."""


def mean(values: Sequence[float], weights: Sequence[float]) -> float:
    """Return the weighted mean, summed from left to right; exactly 1.0 if every value is 1.0."""
    return reduce(add, (w * v for w, v in zip(weights, values, strict=True))) / reduce(add, weights)


def mean_steps(columns: Sequence[str], weights: Sequence[float], name: str) -> list[pl.Expr]:
    """``mean`` over Float64 columns as a sequence of named columns, each reading the previous one; the last is the mean."""
    if [*weights] == [1.0]:
        return [pl.col(columns[0]).alias(name)]
    terms = [pl.lit(w) * pl.col(column) for w, column in zip(weights, columns, strict=True)]
    steps, total = _folded(terms, add, name)
    # NOTE: Polars divides by a literal by multiplying with its reciprocal, which changes the last bit; by a column it divides.
    return [*steps, (total / (total * 0.0 + reduce(add, weights))).alias(name)]


def combined(
    specs: Sequence[CheckSpec], scores: Sequence[float | None], combine: str, limits: Limits, *, is_plain: bool
) -> float | None:
    """Return the score of checks together; None if it is not a finite number, or a check of a plain mean does not apply.

    The score of a check that did not run is None. A plain mean is that of checks that always run.
    """
    if is_plain:
        present = [score for score in scores if score is not None]
        return mean(present, [spec.weight for spec in specs]) if len(present) == len(scores) else None
    ran = [(spec, score) for spec, score in zip(specs, scores, strict=True) if score is not None]
    weighted = [(spec.weight, score) for spec, score in ran if spec.role == "weight" and spec.weight != 0]
    gates = [score for spec, score in ran if spec.role == "gate"]
    taken_off = [spec.weight * (1.0 - score) for spec, score in ran if spec.role == "penalty"]
    base = _COMBINE[combine](*zip(*weighted, strict=True)) if weighted else 1.0
    score = base * reduce(mul, gates, 1.0) - reduce(add, taken_off, 0.0)
    if limits is not None:
        score = min(max(score, limits[0]), limits[1])
    return score + 0.0 if math.isfinite(score) else None


_COMBINE: dict[str, Callable[[Sequence[float], Sequence[float]], float]] = {
    "mean": lambda weights, scores: weighted_mean(scores, weights),
    "sum": lambda weights, scores: reduce(add, (w * s for w, s in zip(weights, scores, strict=True)), 0.0),
    "min": lambda _, scores: min(scores),
    "max": lambda _, scores: max(scores),
    "product": lambda _, scores: reduce(mul, scores, 1.0),
}


def unbounded(name: str) -> str:
    """Return the column with a score that may not be finite."""
    return f"{name}/unbounded"


def finite_expr(score: pl.Expr) -> pl.Expr:
    """Return a score, null if it is not a finite number; -0.0 is 0.0."""
    return pl.when(score == 0.0).then(0.0).when(score.is_finite()).then(score)


def combined_steps(
    specs: Sequence[CheckSpec], columns: Sequence[str], combine: str, limits: Limits, name: str
) -> list[pl.Expr]:
    """``combined`` as a sequence of named columns, each reading earlier ones; the last is ``unbounded(name)``."""
    pairs = [(spec, pl.col(column)) for spec, column in zip(specs, columns, strict=True)]
    weighted = [(spec.weight, column) for spec, column in pairs if spec.role == "weight" and spec.weight != 0]
    factors = [column.fill_null(1.0) for spec, column in pairs if spec.role == "gate"]
    taken_off = [
        (pl.lit(spec.weight) * (1.0 - column)).fill_null(0.0) for spec, column in pairs if spec.role == "penalty"
    ]
    steps, score = _base_steps(combine, weighted, name)
    for part, fold, terms in (("gates", mul, factors), ("penalties", sub, taken_off)):
        if terms:
            more, total = _folded(terms, add if fold is sub else fold, f"{name}/{part}")
            steps += more
            score = fold(score, total)
    if limits is not None:
        low, high = limits
        cut = pl.when(score.is_finite()).then(score.clip(low, high)).when(score == math.inf).then(high)
        score = cut.when(score == -math.inf).then(low).otherwise(score)  # NaN stays NaN
    return [*steps, score.alias(unbounded(name))]


def _base_steps(combine: str, weighted: Sequence[tuple[float, pl.Expr]], name: str) -> tuple[list[pl.Expr], pl.Expr]:
    """Return the columns that the base of the score is made of, and the base: 1.0 where no weighted check ran."""
    if not weighted:
        return [], pl.lit(1.0)
    scores = [column for _, column in weighted]
    ran = pl.any_horizontal(column.is_not_null() for column in scores)
    if combine in ("min", "max"):
        base = (pl.min_horizontal if combine == "min" else pl.max_horizontal)(scores)
        return [], pl.when(ran).then(base).otherwise(1.0)
    if combine == "product":
        steps, base = _folded([column.fill_null(1.0) for column in scores], mul, f"{name}/base")
        return steps, base
    terms = [(column * weight).fill_null(0.0) for weight, column in weighted]
    steps, total = _folded(terms, add, f"{name}/base")
    if combine == "mean":
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
