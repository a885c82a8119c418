"""The columns of every result, each in one place: its row version and its expression."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import polars as pl

from assay.aggregating.aggregate import (
    OVERFLOW,
    lines,
    lines_expr,
    passes,
    run_passes,
    run_passes_expr,
)
from assay.aggregating.columns import UNSCORED, hidden
from assay.checks.base import Outcome
from assay.spec.verifier import VerifierSpec


@dataclass(frozen=True)
class ScoredRow:
    """What the columns of one scored row are made of.

    Attributes:
        verifiers: The verifiers of the run.
        reward: The reward; None if a sum is not a finite number.
        scores: The score of each verifier; None if it is not a finite number, or for a member of a rubric that
            does not apply to the row.
        outcomes: For each verifier, the outcomes of its checks; None for one that did not run.
    """

    verifiers: Sequence[VerifierSpec]
    reward: float | None
    scores: Sequence[float | None]
    outcomes: Sequence[Sequence[Outcome | None]]

    @property
    def runnable_outcomes(self) -> list[list[Outcome | None]]:
        """For each verifier, the outcomes of its runnable checks."""
        return [
            [outcome for outcome, spec in zip(row, verifier.checks, strict=True) if spec.check is not None]
            for row, verifier in zip(self.outcomes, self.verifiers, strict=True)
        ]


@dataclass(frozen=True)
class Verdict:
    """A column of every result besides the reward.

    Attributes:
        name: Its name.
        row: Gives its value for a scored row.
        expr: Gives the same as an expression over the columns of the plan; it also covers rows that are not scored.
    """

    name: str
    row: Callable[[ScoredRow], object]
    expr: Callable[[Sequence[VerifierSpec]], pl.Expr]


def _passed(row: ScoredRow) -> bool | None:
    return run_passes(row.verifiers, row.reward, map(passes, row.verifiers, row.scores, row.runnable_outcomes))


def _passed_expr(verifiers: Sequence[VerifierSpec]) -> pl.Expr:
    return pl.when(pl.col(UNSCORED).is_null()).then(run_passes_expr(verifiers))


def _feedback(row: ScoredRow) -> str:
    return lines(row.verifiers, row.outcomes, errors=False)


def _feedback_expr(verifiers: Sequence[VerifierSpec]) -> pl.Expr:
    return pl.when(pl.col(UNSCORED).is_null()).then(lines_expr(verifiers, errors=False))


def _error(row: ScoredRow) -> str | None:
    return lines(row.verifiers, row.outcomes, errors=True) or (OVERFLOW if row.reward is None else None)


def _error_expr(verifiers: Sequence[VerifierSpec]) -> pl.Expr:
    errors = lines_expr(verifiers, errors=True)
    overflow = pl.when(pl.col(hidden("reward")).is_null()).then(pl.lit(OVERFLOW))
    return pl.coalesce(UNSCORED, pl.when(errors != "").then(errors), overflow)


VERDICTS = (
    Verdict("passed", _passed, _passed_expr),
    Verdict("feedback", _feedback, _feedback_expr),
    Verdict("error", _error, _error_expr),
)

RESULTS = ("reward", *(verdict.name for verdict in VERDICTS))
"""Columns of every result, in order."""
