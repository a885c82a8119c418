"""The check for a regular expression."""

from collections.abc import Sequence
from dataclasses import replace

import polars as pl
from pydantic import Field, ValidationInfo, field_validator

from assay.calls.limits import Limits
from assay.checks.base import Example, GoldCompared, GoldKind, Row
from assay.errors import quoted
from assay.expressions.lane import Lane, nulls, rowwise, text
from assay.expressions.regex.nearest import nearest_texts
from assay.expressions.regex.pattern_column import search_patterns_expr
from assay.expressions.regex.search import (
    Question,
    backtracking_lane,
    lanes,
    route,
    search,
    search_each,
    search_expr,
)
from assay.steps.regex import PatternParams, check_by


class RegexParams(PatternParams):
    """A pattern."""

    pattern: str = Field(description="A Python regular expression; flags are written inline, as in `(?i)`.")

    @field_validator("pattern")
    @classmethod
    def _compiles(cls, pattern: str, info: ValidationInfo) -> str:
        check_by(pattern, info)
        return pattern


class Regex(GoldCompared):
    r"""``re.search`` finds the pattern. The verdict is Python's for every pattern Python accepts.

    Most patterns are answered without backtracking. Where only backtracking can decide (back-references and the like), a match
    that takes more than 0.2 s of processor time (``--regex-timeout``) or 1 GiB scores 0.0 and fills ``error``.

    With ``flavor: regex`` it is ``regex.search`` of that package, in a process with these limits: fuzzy ``(?:refund){e<=1}``,
    ``\p{Script=Cyrillic}``, ``\X``, recursion, and ``\L<names>`` for one of ``lists: {names: […]}``.
    """

    type = "regex"
    gold = "pattern"
    gold_kind = GoldKind(lazy=True, same_params=("flavor",))
    claim_words = "matches the pattern {check.shown}"
    fault_words = "does not match the pattern {check.shown}"
    Params = RegexParams
    params: RegexParams
    examples = (
        Example("Order #4412 shipped", 1.0, {"pattern": r"#\d{4}\b"}),
        Example("order", 0.0, {"pattern": "Order"}),
        Example("order", 1.0, {"pattern": "(?i)Order"}),
        Example("done\n", 1.0, {"pattern": "done$"}),
        Example("abab", 1.0, {"pattern": r"(ab)\1"}),
        Example("the refnd is sent", 1.0, {"pattern": "(?:refund){e<=1}", "flavor": "regex"}),
        Example("the rfnd is sent", 0.0, {"pattern": "(?:refund){e<=1}", "flavor": "regex"}),
        Example("Сделано", 1.0, {"pattern": r"^\p{Script=Cyrillic}++$", "flavor": "regex"}),
        Example("Bob", 1.0, {"pattern": r"^\L<names>$", "flavor": "regex", "lists": {"names": ["Ann", "Bob"]}}),
    )

    def __init__(self, params: RegexParams) -> None:
        super().__init__(params)
        self.libraries = params.libraries  # type: ignore[misc]

    @property
    def _lists(self) -> str:
        return self.params.named_lists

    def row(self, row: Row) -> float:
        return float(search(self.params.pattern, row["completion"], self.limits, lists=self._lists))

    def expr(self) -> pl.Expr:
        return search_expr(self.params.pattern, self._lists)

    def expr_by(self, golds: pl.Expr) -> pl.Expr | None:
        if self._lists:
            return pl.map_batches([text(), golds], self._found, return_dtype=pl.Boolean, is_elementwise=True)
        return search_patterns_expr(text(), golds) | (golds == "")

    def explain_by(self) -> str:
        return self.explain() if self._lists else super().explain_by()

    def _found(self, columns: Sequence[pl.Series]) -> pl.Series:
        """Search each text with the pattern of its row; null where the row's own check tells the error."""
        limits = replace(self.limits or Limits(), timeouts=None)  # the row's own check counts them
        at, questions = self._questions(columns)
        answers = [answer if isinstance(answer, bool) else None for answer in search_each(questions, limits)]
        return nulls(columns[0], pl.Boolean).scatter(at, pl.Series(answers, dtype=pl.Boolean))

    def _questions(self, columns: Sequence[pl.Series]) -> tuple[pl.Series, list[Question]]:
        """Return the rows that have a text and a pattern, those with the same pattern together, and what is asked about them."""
        rows = pl.DataFrame(dict(zip(("text", "pattern"), columns, strict=True))).with_row_index("at")
        rows = rows.drop_nulls().sort("pattern", maintain_order=True)
        pairs = zip(rows["pattern"].to_list(), rows["text"].to_list(), strict=True)
        return rows["at"], [Question(pattern, value, lists=self._lists) for pattern, value in pairs]

    def reason_by(self, golds: pl.Expr) -> pl.Expr | None:
        if self._lists:
            return pl.map_batches([text(), golds], self._complaints, return_dtype=pl.String, is_elementwise=True)
        return super().reason_by(golds)

    def _complaints(self, columns: Sequence[pl.Series]) -> pl.Series:
        """Return why texts do not match the patterns of their rows; null where either is null."""
        at, questions = self._questions(columns)
        return nulls(columns[0], pl.String).scatter(at, pl.Series(self._reasons(questions), dtype=pl.String))

    def _reasons_of(self, values: Sequence[str]) -> list[str]:
        """Return why texts do not match this check's pattern."""
        return self._reasons([Question(self.params.pattern, value, lists=self._lists) for value in values])

    def _reasons(self, questions: Sequence[Question]) -> list[str]:
        nearest = nearest_texts(questions, self.limits)
        return [
            f"does not match the pattern {quoted(question.pattern)}"
            + (f"; the nearest text is {quoted(best)}" if best else "")
            for question, best in zip(questions, nearest, strict=True)
        ]

    def lanes(self) -> tuple[Lane, ...]:
        return lanes(self.params.pattern, self.limits, self._lists)

    def error_expr(self) -> pl.Expr | None:
        lane = backtracking_lane(self.params.pattern, self.limits, self._lists)
        return None if lane is None else lane.col.struct.field("error")

    def reason(self, row: Row) -> str:
        return self._reasons_of([row["completion"]])[0] if self._lists else self.complaint()

    def reason_expr(self) -> pl.Expr:
        complaint, error = pl.lit(self.complaint()), self.error_expr()
        if error is None:
            return complaint
        if self._lists:
            failing = pl.when(~self.expr() & error.is_null()).then(text())
            complaint = rowwise(failing, str, pl.String, each=lambda _, texts: [*self._reasons_of(texts)])
        return pl.coalesce(error, complaint)

    @property
    def one_complaint(self) -> bool:
        return self.error_expr() is None

    def explain(self) -> str:
        seconds = (self.limits or Limits()).regex_timeout
        limit = "no time limit" if seconds is None else f"up to {seconds:g} s of processor time per match"
        return route(self.params.pattern, lists=self._lists).why.replace("{limit}", limit)
