"""Checks for a number in the output: number, number_range."""

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import polars as pl
from pydantic import Field, field_validator

from assay.checks.base import ANSWER_STEPS, Columns, Example, GoldCompared, GoldKind, Row, Traits
from assay.checks.bounds import Bound, BoundedCheck
from assay.errors import quoted
from assay.expressions.pairs import quoted_expr
from assay.expressions.shared_columns import SharedColumn, among, rowwise, text
from assay.steps.base import Step
from assay.steps.numbers import NumberStep, NumberStepParams, gold_number, gold_numbers, number_value, number_values
from assay.values.params import Params, UnfitValueError

_VALUE = SharedColumn("number-value", lambda _: number_values(text()))
"""The value of the number that the text is; null if it is none."""


def _finite(value: float | str) -> float:
    """Return the value of a number, or of a text that is one."""
    if isinstance(value, str):
        number = gold_number(value)
        if number is None:
            raise UnfitValueError(value, "not a number")
        return number
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError("it is not finite")
    return number


def _plain(value: float) -> str:
    """Return a number for people: 42, not 42.0."""
    return f"{value:.0f}" if value.is_integer() and abs(value) < _WHOLE else repr(value)


_WHOLE = 1e15
"""Whole numbers below it are shown without an exponent."""
_AS_SHOWN = r"\A(?:0|-?(?:[1-9][0-9]{0,14}|[1-9][0-9]{0,8}\.[0-9]{0,5}[1-9]|0\.[0-9]{0,3}[1-9]))\z"
"""A text that is what ``_plain`` makes of its number: of at most 15 digits, which a float keeps, and without an exponent."""


class NumberParams(Params):
    """A number and how far from it the output's may be."""

    value: float | int | str = Field(description="The number; a text may have commas, a currency and a per cent sign.")
    rel_tol: float | int = Field(
        default=0, ge=0, allow_inf_nan=False, description="Greatest difference as a share of the larger number."
    )
    abs_tol: float | int = Field(default=0, ge=0, allow_inf_nan=False, description="Greatest difference.")
    at: Literal["last", "first"] = Field(default="last", description="Which number of the output.")

    @field_validator("value")
    @classmethod
    def _usable(cls, value: float | str) -> float | str:
        _finite(value)
        return value

    @field_validator("rel_tol", "abs_tol")
    @classmethod
    def _finite_tolerance(cls, value: float) -> float:
        return _finite(value) or 0  # 0.0 is the default 0, which the canonical form writes out


class Number(GoldCompared):
    """The last number of the output, or the first, equals the value; ``math.isclose`` with ``relTol`` and ``absTol``."""

    type = "number"
    runs_as = "columns: arithmetic"
    traits = Traits(aliases=("numeric",))
    golds = GoldKind("value", same_params=("at",), steps=lambda _: (*ANSWER_STEPS, "number", {"line": "last"}))
    words = ("is the number {check.shown}", "")
    Params = NumberParams
    params: NumberParams
    examples = (
        Example("$1,200.50", 1.0, {"value": 1200.5}),
        Example("-3", 0.0, {"value": 3}),
        Example("3.14", 1.0, {"value": "3.14159", "relTol": 1e-2}),
        Example("41", 1.0, {"value": 42, "absTol": 1}),
    )

    def subject(self) -> tuple[None, tuple[Step, ...]]:
        return None, (NumberStep(NumberStepParams(at=self.params.at)),)

    def score(self, value: str, gold: float | str) -> float:
        number = number_value(value)
        tolerances = {"rel_tol": self.params.rel_tol, "abs_tol": self.params.abs_tol}
        return float(number is not None and math.isclose(number, _finite(gold), **tolerances))

    def score_expr(self, gold: Any) -> pl.Expr:
        """Return ``math.isclose``, operation for operation; false for a text that is no number."""
        value, golds = _VALUE.col, gold_numbers(gold) if isinstance(gold, pl.Expr) else pl.lit(_finite(gold))
        is_close = value == golds
        difference = (golds - value).abs()
        if self.params.rel_tol:
            share = pl.lit(float(self.params.rel_tol))
            is_close = is_close | (difference <= (share * golds).abs()) | (difference <= (share * value).abs())
        if self.params.abs_tol:
            is_close = is_close | (difference <= float(self.params.abs_tol))
        return pl.when(text().is_not_null() & golds.is_not_null()).then(is_close.fill_null(value=False))

    @property
    def shown(self) -> str:
        return self._shown(self.params.value)

    @property
    def _within(self) -> str:
        tolerances = (("relTol", self.params.rel_tol), ("absTol", self.params.abs_tol))
        within = ", ".join(f"{name} {_plain(float(value))}" for name, value in tolerances if value)
        return f" ({within})" if within else ""

    def _shown(self, value: float | str) -> str:
        return _plain(_finite(value)) + self._within

    def _shown_column(self, golds: pl.Series) -> pl.Series:
        others, within = golds.str.contains(_AS_SHOWN).not_(), self._within
        by_python = rowwise(pl.col("gold"), self._shown, pl.String, distinct=True)
        return among(
            golds + within if within else golds,  # to add nothing copies all
            others,
            golds,
            lambda texts: texts.to_frame("gold").select_seq(by_python).to_series(),
        )

    def reason(self, row: Row) -> str:
        return _expected(row["completion"], self.shown)

    def compare(self, gold: Any) -> Columns:
        is_column = isinstance(gold, pl.Expr)
        shown = (
            gold.map_batches(self._shown_column, pl.String, is_elementwise=True) if is_column else pl.lit(self.shown)
        )
        return Columns(self.score_expr(gold), _expected_expr(shown))

    def usable(self, golds: pl.Expr) -> pl.Expr | None:
        return pl.when(gold_numbers(golds).is_not_null()).then(golds)


def _expected(value: str, shown: str) -> str:
    return f"the number is {quoted(value)}, expected {shown}"


def _expected_expr(shown: pl.Expr) -> pl.Expr:
    return quoted_expr(text(), "the number is ") + pl.lit(", expected ") + shown


class RangeParams(Params):
    """Bounds."""

    min: float | int | None = Field(default=None, allow_inf_nan=False, description="Least number that passes.")
    max: float | int | None = Field(
        default=None, allow_inf_nan=False, description="Greatest number that passes.", validate_default=True
    )

    @field_validator("max")
    @classmethod
    def _bounded(cls, value: float | None, info: Any) -> float | None:
        if "min" in info.data:  # it is valid
            check_bounds(info.data["min"], value)
        return value


def check_bounds(low: float | None, high: float | None) -> None:
    """Check that there is a bound, and a number between two."""
    if low is None and high is None:
        raise ValueError("give `min`, `max` or both")
    if low is not None and high is not None and low > high:
        raise ValueError(f"it is below min ({low}): nothing could pass")


class NumberRange(BoundedCheck):
    """The last number of the output is at least ``min`` and at most ``max``."""

    type = "number_range"
    asks: ClassVar[Mapping[str, str]] = {"min": "at least", "max": "at most"}
    runs_as = "columns: comparison"
    words = ("is a number, {check.shown}", "")
    Params = RangeParams
    params: RangeParams
    examples = (
        Example("12", 1.0, {"min": 10, "max": 12}),
        Example("12.5", 0.0, {"max": 12}),
        Example("$-1", 0.0, {"min": 0}),
    )

    def subject(self) -> tuple[None, tuple[Step, ...]]:
        return None, (NumberStep(),)

    def _bounds(self) -> tuple[float, float]:
        low, high = self.params.min, self.params.max
        return -math.inf if low is None else low, math.inf if high is None else high

    def row(self, row: Row) -> float:
        value = number_value(row["completion"])
        low, high = self._bounds()
        return float(value is not None and low <= value <= high)

    def expr(self) -> pl.Expr:
        low, high = self._bounds()
        within = (_VALUE.col >= _bound(low, math.inf)) & (_VALUE.col <= _bound(high, -math.inf))
        return pl.when(text().is_not_null()).then(within.fill_null(value=False))

    def compare_bounds(self, bounds: Mapping[str, Bound]) -> Columns:
        score = pl.when(text().is_not_null()).then(self.holds(_VALUE.col, bounds))
        return Columns(score, _expected_expr(self.shown_bounds(bounds)))

    def takes(self, bounds: Mapping[str, Bound]) -> pl.Expr:
        return pl.lit(value=True) if len(bounds) == 1 else bounds["min"].value <= bounds["max"].value

    def reason(self, row: Row) -> str:
        return _expected(row["completion"], self.shown)

    def reason_expr(self) -> pl.Expr:
        return _expected_expr(pl.lit(self.shown))


def _bound(value: float, towards: float) -> float:
    """Return the nearest float on a side of a number, which may be an integer of any size: what Python compares with."""
    try:
        nearest = float(value)
    except OverflowError:
        nearest = math.inf if value > 0 else -math.inf
    beside = nearest >= value if towards > 0 else nearest <= value
    return nearest if beside else math.nextafter(nearest, towards)
