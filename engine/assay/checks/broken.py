"""A check with unusable params, which behaves like a check that raises on every row."""

from collections.abc import Mapping

import polars as pl

from assay.checks.base import Check, Outcome, Row
from assay.errors import encodable


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
