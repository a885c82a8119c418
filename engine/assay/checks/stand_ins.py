"""Stand-ins for checks: one that cannot be used, and one whose outcome an earlier run has found."""

from collections.abc import Mapping

import polars as pl

from assay.checks.base import Check, Columns, Outcome, Row, Traits
from assay.errors import encodable
from assay.names import HIDDEN

EARLIER = HIDDEN + "earlier/"
"""What the names of the columns of an earlier result begin with."""


class Broken(Check):
    """Scores 0.0 on every row, negated or not, with the problem in ``error`` and ``feedback``."""

    type = "broken"

    def __init__(self, problem: str, libraries: Mapping[str, tuple[str, ...]] | None = None) -> None:
        super().__init__()
        self.problem = encodable(problem)
        self.traits = Traits(stands_in=True, libraries=libraries or {})  # type: ignore[misc]

    def outcome(self, row: Row) -> Outcome:
        del row
        return Outcome(0.0, self.problem, self.problem)

    def columns(self) -> Columns:
        return Columns(pl.lit(value=False), self.problem, pl.lit(self.problem))

    def complaint(self) -> str:
        return self.problem

    def explain(self) -> str:
        return f"never runs: {self.problem}"


class Stored(Check):
    """The score of an earlier run, after threshold and negation, without errors."""

    type = "stored"
    runs_as = "not at all: its scores are those of an earlier run"

    def __init__(self, check: Check, column: str, label: str, reason: str | None) -> None:
        super().__init__()
        self.type = check.type  # type: ignore[misc]
        self.graded = check.graded  # type: ignore[misc]
        traits = check.traits
        self.traits = Traits(bounded=traits.bounded, separator=traits.separator)  # type: ignore[misc]
        self.column, self.label, self.constant_reason = EARLIER + column, label, reason

    def row(self, row: Row) -> float:
        return float(row[self.column])

    def reason(self, row: Row) -> str:
        lines = str(row[EARLIER + "feedback"]).split("\n")
        reasons = (line.removeprefix(self.label) for line in lines if line.startswith(self.label))
        return next(reasons, "") if self.constant_reason is None else self.constant_reason

    def columns(self) -> Columns:
        pattern = f"(?m)^{pl.escape_regex(self.label)}(.*)$"
        reasons = pl.col(EARLIER + "feedback").str.extract(pattern)
        return Columns(pl.col(self.column), reasons if self.constant_reason is None else self.constant_reason)

    def complaint(self) -> str:
        return self.constant_reason or ""
