"""A check: a function from a frame of rollouts to one column of scores, written twice in one class."""

import builtins
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl
from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from assay.errors import printable
from assay.lanes.base import Lane, exactly, rowwise, text

__all__ = ["NO_SCORE", "Check", "Example", "Outcome", "Params", "Row", "encodable", "is_score", "quoted", "said_by"]

Row = Mapping[str, Any]
"""One rollout as ``row()`` sees it: ``completion`` is its text (str), other columns are as loaded."""

NO_SCORE = "ValueError: the score is not a number in [0, 1]"
"""Error and reason of a row on which a check gives NaN, null or a score out of range."""

_SHOWN = 60


def quoted(value: str) -> str:
    """A value as reasons show it: in quotes, escaped onto one line, cut to 60 characters."""
    short = value if len(value) <= _SHOWN else value[: _SHOWN - 1] + "…"
    escaped = printable(short)
    return f"'{escaped}'" if '"' in escaped and "'" not in escaped else f'"{escaped}"'


def encodable(said: str) -> str:
    """Words that UTF-8 can hold: a lone surrogate becomes its escape."""
    return said.encode("utf-8", "backslashreplace").decode()


def said_by(exception: BaseException) -> str:
    """An exception as ``error`` and ``feedback`` show it: ``<ExceptionType>: <message>``."""
    name = "PatternError" if type(exception).__name__ == "error" else type(exception).__name__  # re.error before 3.13
    return encodable(f"{name}: {exception}")


def is_score(value: object) -> bool:
    """Whether a value is a finite number in [0, 1] (booleans count)."""
    return isinstance(value, int | float) and math.isfinite(value) and 0 <= value <= 1


class Params(BaseModel):
    """Base of the params of a check: no unknown fields, camelCase and snake_case spellings, values taken as they are."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, alias_generator=to_camel, populate_by_name=True)

    spellings: ClassVar[Mapping[str, str]] = {}
    """Other names read for a field: ``{"text": "value"}``."""


@dataclass(frozen=True)
class Example:
    """Documentation and conformance case at once.

    Attributes:
        completion: The text.
        score: What the check gives it.
        params: The check's params.
        metadata: The row's metadata, where the check reads it.
        expected_output_schema: The row's schema, where the check reads it.
    """

    completion: str
    score: float
    params: Mapping[str, Any] | None = None
    metadata: Mapping[str, Any] | None = None
    expected_output_schema: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Outcome:
    """What a check says of one row: score in [0, 1], reason where it is below 1, error where scoring went wrong."""

    score: float
    reason: str
    error: str | None = None


class Check:
    """Base class of all checks, Assay's and yours.

    A subclass gives ``type``, ``Params``, the two faces ``row`` and ``expr``, and ``examples``; the rest has defaults.
    The faces must give the same float, bit for bit, on every text: ``assay.testing.assert_check_conforms`` proves it.
    Without an ``expr`` of its own, a check runs ``row`` on every row: right, but slow.

    Attributes:
        type: The name that specs use.
        aliases: Other names that specs may use.
        graded: True when scores between 0 and 1 occur; then ``expr`` is Float64, else Boolean.
        reads: Columns that the check reads besides ``completion``.
        examples: Cases that document the check and test it.
        joint: What separates the reasons of one row where a check has several; ``""`` where it has one.
        params: This check's params.
    """

    type: ClassVar[str]
    aliases: ClassVar[tuple[str, ...]] = ()
    graded: ClassVar[bool] = False
    reads: ClassVar[tuple[str, ...]] = ()
    examples: ClassVar[tuple[Example, ...]] = ()
    joint: ClassVar[str] = ""
    Params: ClassVar[builtins.type[Params]] = Params

    def __init__(self, params: Any = None) -> None:
        self.params = self.Params() if params is None else params

    # ── the two faces ───────────────────────────────────────────────────────────────────────────────────────────────

    def row(self, row: Row) -> float:
        """The definition: the score of one row, in [0, 1]. An exception scores 0.0 and fills ``error``."""
        del row
        raise TypeError(f"{type(self).__name__} has no row(): every check needs its row-wise definition")

    def expr(self) -> pl.Expr:
        """The same as an elementwise expression over ``lanes.base.text()`` and the columns of ``lanes()``."""
        return self._row_lane().col.struct.field("score")

    # ── words ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def claim(self) -> str:
        """What holds when the check passes, as a clause without a subject: ``contains "refund"``."""
        return f"meets {self.type}"

    def complaint(self) -> str:
        """What to say of a row that fails, where the same can be said of every row."""
        return f"fails {self.type}"

    def reason(self, row: Row) -> str:
        """Why one row scored below 1."""
        del row
        return self.complaint()

    def reason_expr(self) -> pl.Expr:
        """The same as an expression; only read where the score is below 1."""
        return pl.lit(self.complaint()) if self.has_expr else self._row_lane().col.struct.field("reason")

    @property
    def one_complaint(self) -> bool:
        """Whether every failing row is told the same."""
        own = type(self)
        return self.has_expr and own.reason is Check.reason and own.reason_expr is Check.reason_expr

    def error(self, row: Row) -> str | None:
        """What could not be scored on a row whose ``row()`` does not raise; None when nothing."""
        del row
        return None

    def error_expr(self) -> pl.Expr | None:
        """What could not be scored, raised or not, as a String expression; None when nothing ever is."""
        return None if self.has_expr else self._row_lane().col.struct.field("error")

    # ── how it runs ─────────────────────────────────────────────────────────────────────────────────────────────────

    def lanes(self) -> tuple[Lane, ...]:
        """Shared columns that ``expr`` and ``reason_expr`` read."""
        return () if self.has_expr else (self._row_lane(),)

    def explain(self) -> str:
        """Which engine answers, and why."""
        return "columns" if self.has_expr else "Python, row by row: the check has no expr()"

    def outcome(self, row: Row) -> Outcome:
        """Score, reason and error of one row: ``row()`` with the rules about exceptions and impossible scores."""
        try:
            score = self.row(row)
            if not is_score(score):
                return Outcome(0.0, NO_SCORE, NO_SCORE)
        except Exception as wrong:  # noqa: BLE001  (one broken check never ends a run)
            return Outcome(0.0, said_by(wrong), said_by(wrong))
        return Outcome(float(score), encodable(self.reason(row)) if score < 1 else "", self.error(row))

    @property
    def has_expr(self) -> bool:
        """Whether the check has a columnar face of its own."""
        return type(self).expr is not Check.expr

    def _row_lane(self) -> Lane:
        names = ("completion", *self.reads)
        dtype = pl.Struct({"score": pl.Float64, "reason": pl.String, "error": pl.String})

        def outcome(row: dict[str, Any]) -> dict[str, Any] | None:
            return None if row["completion"] is None else vars(self.outcome(row))

        def build(schema: pl.Schema) -> pl.Expr:
            columns = [exactly(name) if name in schema else pl.lit(None).alias(name) for name in names[1:]]
            return rowwise(pl.struct(text().alias(names[0]), *columns), outcome, dtype)

        return Lane(f"rows:{type(self).__qualname__}:{self.params.model_dump_json()}", build)
