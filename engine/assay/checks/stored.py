"""A check whose outcome an earlier run has found: its score and its line of feedback are columns."""

import polars as pl

from assay.checks.base import Check, Row
from assay.names import HIDDEN

EARLIER = HIDDEN + "earlier/"
"""What the names of the columns of an earlier result begin with."""


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
