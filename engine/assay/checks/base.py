"""A check: a function from a frame of rollouts to one column of scores, written twice in one class."""

import builtins
import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import polars as pl
from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from assay.calls.in_thread import each
from assay.calls.limits import NO_REWARD, Limits, is_reward, is_score, own_failure, settled
from assay.errors import encodable, said_by
from assay.expressions.lane import Lane, exactly, rowwise, text
from assay.expressions.mixed import untyped

__all__ = [
    "BELOW_1",
    "NO_SCORE",
    "Check",
    "Example",
    "Outcome",
    "Params",
    "Row",
    "is_reward",
    "is_score",
]

Row = Mapping[str, Any]
"""One rollout as ``row()`` sees it: ``completion`` is its text (str), other columns are as loaded."""

NO_SCORE = "ValueError: the score is not a number in [0, 1]"
"""Error and reason of a row on which a check gives NaN, null or a score out of range."""


BELOW_1 = "the reward is below 1"
"""Reason of a row of which nothing else can be said."""


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
    """What a check says of one row: score, reason where it is below 1, error where scoring went wrong, and its extra column."""

    score: float
    reason: str
    error: str | None = None
    extra: str | None = None


class Check:
    """Base class of all checks, Assay's and yours.

    A subclass gives ``type``, ``Params``, the two faces ``row`` and ``expr``, and ``examples``; the rest has defaults.
    The faces must give the same float, bit for bit, on every text: ``assay.testing.assert_check_conforms`` proves it.
    Without an ``expr`` of its own, a check runs ``row`` on every row: right, but slow.

    Attributes:
        type: The name that specs use.
        aliases: Other names that specs may use.
        graded: True when scores between 0 and 1 occur; then ``expr`` is Float64, else Boolean.
        bounded: True when scores lie in [0, 1]; False when any finite number is one.
        whole: True when it must see all rows of a run together; such a run has one part.
        reads: Columns that the check reads besides ``completion``.
        may_read: Columns that it reads where the rollouts have them.
        stays: Columns among those that it reads and that pass through all the same.
        extra: Output column (String) that the check adds beside its scores; ``{verifier}`` stands for the verifier's id.
        examples: Cases that document the check and test it.
        joint: What separates the reasons of one row where a check has several; ``""`` where it has one.
        params: This check's params.
        limits: What a run allows its Python; None for as long as it takes.
    """

    type: ClassVar[str]
    aliases: ClassVar[tuple[str, ...]] = ()
    graded: ClassVar[bool] = False
    bounded: ClassVar[bool] = True
    whole: ClassVar[bool] = False
    reads: ClassVar[tuple[str, ...]] = ()
    may_read: ClassVar[tuple[str, ...]] = ()
    stays: ClassVar[tuple[str, ...]] = ()
    extra: ClassVar[str] = ""
    examples: ClassVar[tuple[Example, ...]] = ()
    joint: ClassVar[str] = ""
    Params: ClassVar[builtins.type[Params]] = Params
    limits: Limits | None = None

    def __init__(self, params: Any = None) -> None:
        self.params = self.Params() if params is None else params

    def within(self, limits: Limits) -> "Check":
        """This check for one run, which bounds its Python."""
        bounded = copy.copy(self)
        bounded.limits = limits
        return bounded

    # ── the two faces ───────────────────────────────────────────────────────────────────────────────────────────────

    def row(self, row: Row) -> float:
        """The definition: the score of one row, in [0, 1]. An exception, here or in ``reason``, scores 0.0 and fills ``error``."""
        del row
        raise TypeError(f"{type(self).__name__} has no row(): every check needs its row-wise definition")

    def expr(self) -> pl.Expr:
        """The same as an elementwise expression over ``expressions.lane.text()`` and the columns of ``lanes()``."""
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

    def short_expr(self, score: pl.Expr, error: pl.Expr) -> pl.Expr:
        """Whether a row falls short and is told the reason, given its score and its error."""
        del error
        return score < 1.0

    def reason_expr(self) -> pl.Expr:
        """The same as an expression; only read where the score is below 1."""
        return pl.lit(encodable(self.complaint())) if self.has_expr else self._row_lane().col.struct.field("reason")

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

    # ── rows that cannot be scored, and what is told beside the score ───────────────────────────────────────────────────

    def unscored(self, row: Row) -> str | None:
        """Why a row with a completion cannot be scored at all; None when it can."""
        del row
        return None

    def unscored_expr(self) -> pl.Expr | None:
        """The same as a String expression; None when every row can."""
        return None

    def extra_expr(self) -> pl.Expr:
        """The value of the column ``extra``."""
        return self._row_lane().col.struct.field("extra")

    def refused_expr(self) -> pl.Expr | None:
        """Why a run refuses the row before it scores anything, as a String expression; None when it never does."""
        return None

    def doubt_expr(self) -> pl.Expr | None:
        """What the row's author may not have meant, told before the run, as a String expression; None when there is no such thing."""
        return None

    def refusal_lanes(self) -> tuple[Lane, ...]:
        """Lanes that ``refused_expr`` and ``doubt_expr`` read."""
        return ()

    def column_problems(self, schema: pl.Schema) -> list[tuple[str, str]]:
        """What is wrong with the rollouts' columns besides a missing one of ``reads``: facts, each with a hint."""
        del schema
        return []

    def remark_expr(self) -> pl.Expr | None:
        """What the run's owner should know of a row, though no score suffers: a String expression, null on most rows.

        The summary counts it, and shows it as "12 of 99 rows: …".
        """
        return None

    # ── how it runs ─────────────────────────────────────────────────────────────────────────────────────────────────

    def lanes(self) -> tuple[Lane, ...]:
        """Shared columns that ``expr`` and ``reason_expr`` read."""
        return () if self.has_expr else (self._row_lane(),)

    def explain(self) -> str:
        """Which engine answers, and why."""
        return "columns" if self.has_expr else "Python, row by row: the check has no expr()"

    def together(self, rows: Sequence[Row]) -> None:
        """Look at all rows of a run before the first is asked for its outcome; for checks that run with others."""

    def close(self) -> None:
        """End what runs outside of this process; a run does so when it is over."""

    def outcome(self, row: Row) -> Outcome:
        """Score, reason and error of one row: the row faces with the rules about exceptions and impossible scores."""
        row = {name: untyped(value) for name, value in row.items()}
        try:
            given = self.row(row)
            score, misfit = settled(given)
            if misfit is not None or (self.bounded and not is_score(score)):
                return Outcome(0.0, self.misfit, self.misfit)
            error = self.error(row)
            return Outcome(score, encodable(self.reason(row)) if score < 1 else "", error and encodable(error))
        except BaseException as wrong:  # one broken check never ends a run
            if not own_failure(wrong):
                raise
            return Outcome(0.0, said_by(wrong), said_by(wrong))

    @property
    def made_by(self) -> builtins.type:
        """The class whose code gives the verdicts."""
        return type(self)

    @property
    def misfit(self) -> str:
        """Error and reason of a row whose score is none."""
        return NO_SCORE if self.bounded else NO_REWARD

    @property
    def has_expr(self) -> bool:
        """Whether the check has a columnar face of its own."""
        return type(self).expr is not Check.expr

    def _identity(self) -> str:
        """What tells this check from others: two classes may share a name (a factory makes them), and then not their verdicts."""
        return f"{type(self).__qualname__}:{id(type(self))}:{self.params.model_dump()!r}"

    def _row_lane(self) -> Lane:
        names = ("completion", *self.reads)
        dtype = pl.Struct({"score": pl.Float64, "reason": pl.String, "error": pl.String, "extra": pl.String})

        def outcome(row: dict[str, Any]) -> dict[str, Any] | None:
            return None if row["completion"] is None else vars(self.outcome(row))

        within = partial(_each, self.limits)

        def build(schema: pl.Schema) -> pl.Expr:
            columns = [exactly(name) if name in schema else pl.lit(None).alias(name) for name in names[1:]]
            columns += [exactly(name) for name in self.may_read if name in schema]
            return rowwise(pl.struct(text().alias(names[0]), *columns), outcome, dtype, each=within)

        return Lane(f"rows:{self._identity()}", build)


def _each(limits: Limits | None, function: Callable[[Any], Any], values: list[Any]) -> list[Any]:
    return each(function, values, limits, lambda said: vars(Outcome(0.0, said, said)))
