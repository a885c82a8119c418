"""The check that takes off for outputs beyond a soft limit of length: length_penalty."""

import math
from collections.abc import Sequence
from typing import Any

import polars as pl
from pydantic import Field, field_validator

from assay.checks.base import Columns, Example, GoldCompared, GoldKind, Row
from assay.checks.groups import quotient
from assay.expressions.counts import COUNTS
from assay.expressions.shared_columns import SharedColumn, text
from assay.steps.numbers import number_value, number_values
from assay.values.params import Params, UnfitValueError

_NOUNS = {"chars": "number of characters", "words": "number of words"}
_WHOLE = 2**53
"""Whole numbers below it are exact as floats."""
_UNIT_HELP = "`chars`, `words`, or the length itself from `{column: path}`: a number of tokens, or a list of them."


class LengthPenaltyParams(Params):
    """The soft limit and the hard one."""

    max: int | float = Field(gt=0, allow_inf_nan=False, description="Greatest length that scores above 0.0.")
    buffer: int | float = Field(
        ge=0, allow_inf_nan=False, description="How far below `max` the score begins to fall; at most `max`."
    )
    unit: str = Field(default="chars", description=_UNIT_HELP, json_schema_extra={"enum": [*_NOUNS]})

    @field_validator("max", "buffer")
    @classmethod
    def _plain(cls, value: float) -> float:
        """Convert 10.0 to 10, so that both specs are the same verifier."""
        number = float(value)
        return int(number) if number.is_integer() and abs(number) < _WHOLE else number

    @field_validator("buffer")
    @classmethod
    def _within(cls, value: float, info: Any) -> float:
        if value > info.data.get("max", math.inf):
            raise ValueError(f"it is above max ({info.data['max']}): no output could score 1.0")
        return value

    @field_validator("unit")
    @classmethod
    def _known(cls, value: str) -> str:
        if value not in _NOUNS and number_value(value) is None:
            raise UnfitValueError(value, "not chars, words or a length, as from {column: path}")
        return value


class LengthPenalty(GoldCompared):
    """1.0 up to a length of `max - buffer`, from there to `max` falling in a straight line to 0.0, and 0.0 beyond.

    The soft overlong punishment of DAPO (arXiv:2503.14476, equation 13), plus 1: `get_soft_overlong_punishment` of TRL's
    other_rewards.py and the overlong buffer of verl's reward_manager/dapo.py, which count tokens: `unit: {column: tokens}`.
    """

    type = "length_penalty"
    runs_as = "columns: arithmetic"
    graded = True
    golds = GoldKind("unit", measured=True)
    Params = LengthPenaltyParams
    params: LengthPenaltyParams
    examples = (
        Example("a" * 80, 1.0, {"max": 100, "buffer": 20}),
        Example("a" * 95, 0.25, {"max": 100, "buffer": 20}),
        Example("a" * 101, 0.0, {"max": 100, "buffer": 20}),
        Example("one two three", 0.5, {"max": 4, "buffer": 2, "unit": "words"}),
        Example("a" * 4, 1.0, {"max": 4, "buffer": 0}),
    )

    def _start(self) -> float:
        """Return the length from which on the score falls."""
        return float(self.params.max) - float(self.params.buffer)

    def score(self, value: str, gold: str) -> float:
        length, start = float((COUNTS[gold].row(value) if gold in _NOUNS else number_value(gold)) or 0), self._start()
        if length <= start:
            return 1.0
        # NOTE: rounding may lead below 0.0 where the buffer is tiny
        return 0.0 if length > self.params.max else max(1.0 + (start - length) / float(self.params.buffer), 0.0)

    def score_expr(self, gold: Any) -> pl.Expr:
        if isinstance(gold, pl.Expr):
            return self._score(_or_counts(gold, number_values(gold), pl.Float64))
        return self._score(_count(gold).col if gold in _NOUNS else pl.lit(number_value(gold)))

    def usable(self, golds: pl.Expr) -> pl.Expr | None:
        return pl.when(golds.is_in([*_NOUNS]) | number_values(golds).is_not_null()).then(golds)

    def _score(self, lengths: pl.Expr) -> pl.Expr:
        # as a column, because Polars computes an expression anew wherever the formula has it
        scores = lengths.cast(pl.Float64).map_batches(self._scores, return_dtype=pl.Float64, is_elementwise=True)
        return pl.when(text().is_not_null()).then(scores)

    def _scores(self, lengths: pl.Series) -> pl.Series:
        length, start, most = pl.col("length"), self._start(), float(self.params.max)
        falling = 1.0 + quotient(pl.lit(start) - length, pl.lit(float(self.params.buffer)))
        score = pl.when(length <= start).then(1.0).when(length > most).then(0.0).otherwise(falling.clip(0.0))
        scores = lengths.to_frame("length").select_seq(pl.when(length.is_not_null()).then(score)).to_series()
        return scores.alias(lengths.name)

    @property
    def _limits(self) -> str:
        start = self.params.max - self.params.buffer
        return f"at most {start}" + (f"; 0.0 above {self.params.max}" if self.params.buffer else "")

    def claim(self) -> str:
        return f"{_NOUNS.get(self.params.unit, 'length')}: at most {self.params.max - self.params.buffer}"

    def reason(self, row: Row) -> str:
        unit = self.params.unit
        number = COUNTS[unit].row(row["completion"]) if unit in _NOUNS else unit
        return f"{_NOUNS.get(unit, 'length')}: {number}, expected {self._limits}"

    def compare(self, gold: Any) -> Columns:
        expected = pl.lit(f", expected {self._limits}")
        if isinstance(gold, pl.Expr):
            noun = gold.replace_strict(_NOUNS, default="length", return_dtype=pl.String)
            number = _or_counts(gold, gold, pl.String)
            reason: pl.Expr = pl.when(gold.is_not_null()).then(pl.concat_str(noun, pl.lit(": "), number, expected))
        else:
            number = _count(gold).col.cast(pl.String) if gold in _NOUNS else pl.lit(gold)
            reason = pl.concat_str(pl.lit(f"{_NOUNS.get(gold, 'length')}: "), number, expected)
        return Columns(self.score_expr(gold), reason)


def _count(unit: str) -> SharedColumn:
    """The lane of the check ``count`` with the number of words or characters."""
    return SharedColumn(f"count:{unit!r}", lambda _: COUNTS[unit].expr(text()))


def _or_counts(units: pl.Expr, lengths: pl.Expr, dtype: Any) -> pl.Expr:
    """Return the lengths, or the numbers of characters and of words of the rows whose gold names that unit."""

    def run(columns: Sequence[pl.Series]) -> pl.Series:
        if not columns[0].is_in([*_NOUNS]).any():  # what almost all tables have
            return columns[1].alias(columns[0].name)
        of_unit = (
            COUNTS[unit].expr(pl.when(pl.col("unit") == unit).then(pl.col("text"))).cast(dtype) for unit in _NOUNS
        )
        frame = pl.DataFrame([one.alias(name) for name, one in zip(("unit", "length", "text"), columns, strict=True)])
        return frame.select_seq(pl.coalesce(*of_unit, "length")).to_series().alias(columns[0].name)

    return pl.map_batches([units, lengths, text()], run, dtype, is_elementwise=True)
