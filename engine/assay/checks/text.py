"""Checks for phrases: contains, not_contains, equals."""

from typing import ClassVar

import polars as pl
from pydantic import Field

from assay.checks.base import Check, Example, Params, Row
from assay.errors import quoted
from assay.expressions.lane import Lane, text
from assay.expressions.text import (
    LOWER,
    contains_expr,
    equals_expr,
    lower,
    phrase_lane,
    strip_expr,
    stripped_pattern,
)

__all__ = ["Contains", "Equals", "NotContains"]


class PhraseParams(Params):
    """A phrase and how to compare it."""

    spellings: ClassVar = {"text": "value"}

    value: str = Field(description="The phrase.")
    case_sensitive: bool = Field(default=False, description="Compare as written; else `str.lower()` on both sides.")


class _PhraseCheck(Check):
    """Common base: the phrase, and the text that it is compared with."""

    Params = PhraseParams
    params: PhraseParams

    @property
    def phrase(self) -> str:
        return self.params.value if self.params.case_sensitive else lower(self.params.value)

    def subject(self, row: Row) -> str:
        completion: str = row["completion"]
        return completion if self.params.case_sensitive else lower(completion)

    def subject_expr(self) -> pl.Expr:
        return text() if self.params.case_sensitive else LOWER.col

    @property
    def lane(self) -> Lane | None:
        """The lane that searches for the phrase in either case; None to search for the phrase itself."""
        return None if self.params.case_sensitive else phrase_lane(self.phrase)

    def contains_expr(self) -> pl.Expr:
        lane = self.lane
        return contains_expr(self.subject_expr(), self.phrase) if lane is None else lane.col

    def lanes(self) -> tuple[Lane, ...]:
        if self.params.case_sensitive:
            return ()
        return (self.lane or LOWER,)

    def explain(self) -> str:
        if self.lane is not None:
            return "columns: linear search for the phrase in upper and lower case"
        if self.params.case_sensitive:
            return "columns: literal search"
        return "columns: literal search in the lower-cased text (Python lowers rows with Σ or newer scripts)"


class Contains(_PhraseCheck):
    """The output contains the phrase; an empty phrase is contained in everything."""

    type = "contains"
    aliases = ("must_contain",)
    examples = (
        Example("We will REFUND you.", 1.0, {"value": "refund"}),
        Example("We will REFUND you.", 0.0, {"value": "refund", "caseSensitive": True}),
        Example("", 1.0, {"value": ""}),
        Example("ΟΔΟΣ", 1.0, {"value": "οδος"}),
    )

    def row(self, row: Row) -> float:
        return float(self.phrase in self.subject(row))

    def expr(self) -> pl.Expr:
        return self.contains_expr()

    def claim(self) -> str:
        return f"contains {quoted(self.params.value)}"

    def complaint(self) -> str:
        return f"does not contain {quoted(self.params.value)}"


class NotContains(_PhraseCheck):
    """The output does not contain the phrase; an empty phrase is contained in everything."""

    type = "not_contains"
    aliases = ("must_not_contain",)
    examples = (
        Example("Take a gift card.", 0.0, {"value": "Gift Card"}),
        Example("Take a refund.", 1.0, {"text": "gift card"}),
    )

    def row(self, row: Row) -> float:
        return float(self.phrase not in self.subject(row))

    def expr(self) -> pl.Expr:
        return self.contains_expr().not_()

    def claim(self) -> str:
        return f"does not contain {quoted(self.params.value)}"

    def complaint(self) -> str:
        return f"contains {quoted(self.params.value)}"


class Equals(_PhraseCheck):
    """The trimmed output equals the trimmed value; trimming is Python's ``str.strip()``."""

    type = "equals"
    aliases = ("exact_match",)
    examples = (
        Example("  Paris\n", 1.0, {"value": "paris"}),
        Example("Paris.", 0.0, {"value": "paris"}),
        Example("Paris", 0.0, {"value": "paris", "caseSensitive": True}),
        Example("\x1cParis\x85", 1.0, {"value": "Paris"}),
    )

    def row(self, row: Row) -> float:
        return float(self.subject(row).strip() == self.phrase.strip())

    @property
    def lane(self) -> Lane | None:
        return None

    @property
    def pattern(self) -> str | None:
        """The pattern that the linear engine searches for in place of the phrase; None to compare."""
        return stripped_pattern(self.phrase.strip(), lowered=not self.params.case_sensitive)

    def lanes(self) -> tuple[Lane, ...]:
        return () if self.params.case_sensitive or self.pattern is not None else (LOWER,)

    def explain(self) -> str:
        return (
            super().explain()
            if self.pattern is None
            else "columns: one linear pattern for the phrase and space around it"
        )

    def expr(self) -> pl.Expr:
        if self.pattern is not None:
            return text().str.contains(self.pattern)
        return equals_expr(strip_expr(self.subject_expr()), self.phrase.strip())

    def claim(self) -> str:
        return f"equals {quoted(self.params.value)}"

    def complaint(self) -> str:
        return f"does not equal {quoted(self.params.value)}"
