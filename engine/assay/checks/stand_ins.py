"""Stand-ins for checks: one that cannot be used, and one whose outcome an earlier run has found."""

from collections.abc import Mapping

import polars as pl

from assay.checks.base import Check, Outcome, Row
from assay.errors import encodable
from assay.names import HIDDEN

EARLIER = HIDDEN + "earlier/"
"""What the names of the columns of an earlier result begin with."""


class Broken(Check):
    """Scores 0.0 on every row, negated or not, with the problem in ``error`` and ``feedback``.

    Args:
        problem: Why the check cannot be used.
        libraries: Those without which it is broken.
    """

    type = "broken"

    def __init__(self, problem: str, libraries: Mapping[str, tuple[str, ...]] | None = None) -> None:
        super().__init__()
        self.problem = encodable(problem)
        self.libraries = libraries or {}  # type: ignore[misc]

    @property
    def is_builtin(self) -> bool:
        return False  # it stands for any check

    def row(self, row: Row) -> float:
        del row
        return 0.0

    def expr(self) -> pl.Expr:
        return pl.lit(value=False)

    def complaint(self) -> str:
        return self.problem

    def error(self, row: Row) -> str | None:
        del row
        return self.problem

    def error_expr(self) -> pl.Expr:
        return pl.lit(self.problem)

    def explain(self) -> str:
        return f"never runs: {self.problem}"

    def outcome(self, row: Row) -> Outcome:
        del row
        return Outcome(0.0, self.problem, self.problem)


class Stored(Check):
    """The score of an earlier run, after threshold and negation, without errors.

    Args:
        check: The check that ran.
        column: Column of its scores.
        label: What its lines of feedback begin with.
        words: The reason of every failing row if it is the same; None if it is in the feedback.
    """

    type = "stored"

    def __init__(self, check: Check, column: str, label: str, words: str | None) -> None:
        super().__init__()
        self.type = check.type  # type: ignore[misc]
        self.graded = check.graded  # type: ignore[misc]
        self.bounded = check.bounded  # type: ignore[misc]
        self.joint = check.joint  # type: ignore[misc]
        self.column, self.label, self.words = EARLIER + column, label, words

    def row(self, row: Row) -> float:
        return float(row[self.column])

    def expr(self) -> pl.Expr:
        return pl.col(self.column)

    @property
    def one_complaint(self) -> bool:
        return self.words is not None

    def complaint(self) -> str:
        return self.words or ""

    def reason(self, row: Row) -> str:
        lines = str(row[EARLIER + "feedback"]).split("\n")
        found = (line.removeprefix(self.label) for line in lines if line.startswith(self.label))
        return next(found, "") if self.words is None else self.words

    def reason_expr(self) -> pl.Expr:
        pattern = f"(?m)^{pl.escape_regex(self.label)}(.*)$"
        return pl.col(EARLIER + "feedback").str.extract(pattern) if self.words is None else pl.lit(self.words)

    def explain(self) -> str:
        return "not at all: its scores are those of an earlier run"
