"""Checks on the length of the untrimmed output, in Unicode code points."""

import math
from collections.abc import Mapping
from typing import ClassVar

import polars as pl
from pydantic import Field, field_validator

from assay.checks.base import Columns, Example, FactCheck, Row
from assay.checks.bounds import Bound, BoundedCheck
from assay.expressions.text import CHARACTERS
from assay.kernel.facts import Fact
from assay.values.params import Params

_LONGEST = 2**62
"""Longer than any text, and within 64-bit integers."""


class LengthParams(Params):
    """A length."""

    spellings: ClassVar = {}

    value: int | float = Field(
        ge=0, allow_inf_nan=False, description="Code points, inclusive, at least 0.", json_schema_extra={"minimum": 0}
    )

    @field_validator("value")
    @classmethod
    def _whole(cls, value: float) -> float:
        """Convert 10.0 to 10, so that both specs are the same verifier."""
        return _whole(value)


def _whole(value: float) -> float:
    return int(value) if value == int(value) else value


class MinLength(FactCheck, BoundedCheck):
    """The output has at least ``value`` characters."""

    type = "min_length"
    asks: ClassVar[Mapping[str, str]] = {"value": "at least"}
    words = ("has at least {check.params.value} characters", "has fewer than {check.params.value} characters")
    Params = LengthParams
    params: LengthParams
    examples: ClassVar[tuple[Example, ...]] = (
        Example("four", 1.0, {"value": 4}),
        Example("four", 0.0, {"value": 5}),
        Example("é👍🏽", 1.0, {"value": 3}),
    )

    def row(self, row: Row) -> float:
        return float(len(row["completion"]) >= self.params.value)

    def facts(self) -> tuple[Fact, ...]:
        return (Fact("at_least", size=math.ceil(self.params.value)),)

    def expr(self) -> pl.Expr:
        return CHARACTERS.col >= min(math.ceil(self.params.value), _LONGEST)

    def compare_bounds(self, bounds: Mapping[str, Bound]) -> Columns:
        before, after = self.words[1].split("{check.params.value}")
        reason = pl.concat_str(pl.lit(before), bounds["value"].text, pl.lit(after))
        return Columns(pl.when(CHARACTERS.col.is_not_null()).then(self.holds(CHARACTERS.col, bounds)), reason)

    def written(self, bound: float) -> str:
        return str(_whole(bound)) if math.isfinite(bound) else ""

    def takes(self, bounds: Mapping[str, Bound]) -> pl.Expr:
        return bounds["value"].value >= 0


class MaxLength(MinLength):
    """The output has at most ``value`` characters."""

    type = "max_length"
    asks: ClassVar[Mapping[str, str]] = {"value": "at most"}
    words = ("has at most {check.params.value} characters", "has more than {check.params.value} characters")
    examples = (
        Example("four", 1.0, {"value": 4}),
        Example("four ", 0.0, {"value": 4}),
        Example("", 1.0, {"value": 0}),
    )

    def row(self, row: Row) -> float:
        return float(len(row["completion"]) <= self.params.value)

    def facts(self) -> tuple[Fact, ...]:
        return (Fact("at_most", size=math.floor(self.params.value)),)

    def expr(self) -> pl.Expr:
        return CHARACTERS.col <= min(math.floor(self.params.value), _LONGEST)
