"""The check for a regular expression."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import polars as pl
from pydantic import Field, field_validator

from assay.calls.limits import Limits
from assay.checks.base import Columns, Example, FactCheck, GoldCompared, GoldKind, Row, Traits
from assay.errors import quoted
from assay.expressions.pairs import quoted_expr
from assay.expressions.regex.flavors import nearest_texts
from assay.expressions.regex.search import (
    Question,
    backtracking_lane,
    route,
    search,
    search_each,
    search_expr,
)
from assay.expressions.shared_columns import nulls, rowwise, text
from assay.kernel.facts import Fact
from assay.steps.patterns import PatternParams, check_by


class RegexParams(PatternParams):
    """A pattern."""

    pattern: str = Field(description="A Python regular expression; flags are written inline, as in `(?i)`.")

    _compiles = field_validator("pattern")(check_by)


class Regex(FactCheck, GoldCompared):
    r"""``re.search`` finds the pattern. The verdict is Python's for every pattern Python accepts.

    Most patterns are answered without backtracking. Where only backtracking can decide (back-references and the like), a match
    that takes more than 0.2 s of processor time (``--regex-timeout``) or 1 GiB scores 0.0 and fills ``error``.

    With ``flavor: regex`` it is ``regex.search`` of that package, in a process with these limits: fuzzy ``(?:refund){e<=1}``,
    ``\p{Script=Cyrillic}``, ``\X``, recursion, and ``\L<names>`` for one of ``lists: {names: […]}``.
    """

    type = "regex"
    golds = GoldKind("pattern", lazy=True, same_params=("flavor",))
    words = ("matches the pattern {value}", "does not match the pattern {value}")
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
        self.traits = Traits(libraries=params.libraries)  # type: ignore[misc]

    @property
    def _lists(self) -> str:
        return self.params.named_lists

    def score(self, value: str, gold: str) -> float:
        return float(search(gold, value, self.limits, lists=self._lists))

    def facts(self) -> tuple[Fact, ...]:
        pattern = self.params.pattern
        is_certain = not self._lists and backtracking_lane(pattern, self.limits) is None
        return (Fact("pattern", pattern),) if is_certain else ()

    def score_expr(self, gold: Any) -> pl.Expr:
        if not isinstance(gold, pl.Expr):
            return search_expr(gold, self._lists, self.limits)
        if self._lists:
            return pl.map_batches([text(), gold], self._found, return_dtype=pl.Boolean, is_elementwise=True)
        from assay.expressions.regex.pattern_column import search_patterns_expr

        return search_patterns_expr(text(), gold) | (gold == "")

    def explain_golds(self) -> str:
        return self.explain() if self._lists else super().explain_golds()

    def compare(self, gold: Any) -> Columns:
        score = self.score_expr(gold)
        if isinstance(gold, pl.Expr):
            reason = quoted_expr(gold, "does not match the pattern ")
            if self._lists:
                run = self._complaints
                reason = pl.map_batches([text(), gold], run, return_dtype=pl.String, is_elementwise=True)
            return Columns(score, reason)
        lane = backtracking_lane(gold, self.limits, self._lists)
        if lane is None:
            return Columns(score, self.complaint())
        error, reason = lane.col.struct.field("error"), pl.lit(self.complaint())
        if self._lists:
            failing = pl.when(~score & error.is_null()).then(text())
            reason = rowwise(failing, str, pl.String, each=lambda _, texts: [*self._reasons_of(texts)])
        return Columns(score, pl.coalesce(error, reason), error)

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

    def reason(self, row: Row) -> str:
        return self._reasons_of([row["completion"]])[0] if self._lists else self.complaint()

    def explain(self) -> str:
        seconds = (self.limits or Limits()).regex_timeout
        limit = "no time limit" if seconds is None else f"up to {seconds:g} s of processor time per match"
        return route(self.params.pattern, lists=self._lists).why.replace("{limit}", limit)
