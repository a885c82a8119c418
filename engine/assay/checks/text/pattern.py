"""The check for a regular expression."""

import polars as pl
from pydantic import Field, field_validator

from assay.calls.limits import Limits
from assay.checks.base import Check, Example, Params, Row
from assay.errors import quoted
from assay.expressions.lane import Lane, text
from assay.expressions.pairs import quoted_expr
from assay.expressions.regex.pattern_column import search_patterns_expr
from assay.expressions.regex.search import backtracking_lane, check_pattern, lanes, route, search, search_expr

__all__ = ["Regex"]


class RegexParams(Params):
    """A pattern."""

    pattern: str = Field(description="A Python regular expression; flags are written inline, as in `(?i)`.")

    @field_validator("pattern")
    @classmethod
    def _compiles(cls, pattern: str) -> str:
        check_pattern(pattern)
        return pattern


class Regex(Check):
    r"""``re.search`` finds the pattern. The verdict is Python's for every pattern Python accepts.

    Most patterns are answered without backtracking. Where only backtracking can decide (back-references and the like), a match
    that takes more than 0.2 s of processor time (``--regex-timeout``) or 1 GiB scores 0.0 and fills ``error``.
    """

    type = "regex"
    gold = "pattern"
    lazy_golds = True
    Params = RegexParams
    params: RegexParams
    examples = (
        Example("Order #4412 shipped", 1.0, {"pattern": r"#\d{4}\b"}),
        Example("order", 0.0, {"pattern": "Order"}),
        Example("order", 1.0, {"pattern": "(?i)Order"}),
        Example("done\n", 1.0, {"pattern": "done$"}),
        Example("abab", 1.0, {"pattern": r"(ab)\1"}),
    )

    def row(self, row: Row) -> float:
        return float(search(self.params.pattern, row["completion"], self.limits))

    def expr(self) -> pl.Expr:
        return search_expr(self.params.pattern)

    def expr_by(self, golds: pl.Expr) -> pl.Expr | None:
        return search_patterns_expr(text(), golds) | (golds == "")

    def reason_by(self, golds: pl.Expr) -> pl.Expr | None:
        return quoted_expr(golds, "does not match the pattern ")

    def lanes(self) -> tuple[Lane, ...]:
        return lanes(self.params.pattern, self.limits)

    def error_expr(self) -> pl.Expr | None:
        lane = backtracking_lane(self.params.pattern, self.limits)
        return None if lane is None else lane.col.struct.field("error")

    def reason_expr(self) -> pl.Expr:
        complaint, error = pl.lit(self.complaint()), self.error_expr()
        return complaint if error is None else pl.coalesce(error, complaint)

    @property
    def one_complaint(self) -> bool:
        return self.error_expr() is None

    def claim(self) -> str:
        return f"matches the pattern {quoted(self.params.pattern)}"

    def complaint(self) -> str:
        return f"does not match the pattern {quoted(self.params.pattern)}"

    def explain(self) -> str:
        seconds = (self.limits or Limits()).regex_timeout
        limit = "no time limit" if seconds is None else f"up to {seconds:g} s of processor time per match"
        return route(self.params.pattern).why.replace("{limit}", limit)
