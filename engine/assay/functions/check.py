"""The check that a row brings along: a function of the registry, its gold and its params."""

from functools import partial
from typing import ClassVar

import polars as pl

from assay.checks.base import Check, Outcome, Row
from assay.errors import listed
from assay.expressions.lane import Lane, text
from assay.functions.answers import ANSWER, MISSING, answer_batch, outcome_of, why_batch, why_unscored
from assay.functions.registry import function
from assay.functions.request import Asked, verifier_of
from assay.functions.request_columns import row_verifier
from assay.names import EXPECTED, FN_NAME, HIDDEN, IN_PROCESS, VERIFIER
from assay.names import VERIFIER_COLUMNS as COLUMNS

__all__ = ["GOLDS", "VERIFIER_FN", "OnRow"]

VERIFIER_FN = "verifier_fn"
"""Output column that names the function used."""

GOLDS = ("answer", "gold", "ground_truth", "label", "reference", "solution", "target")
"""What other tools call the expected value."""


class OnRow(Check):
    """The reward of the function that the row's ``verifier`` names, called with its ``expected`` and ``params``."""

    type = IN_PROCESS
    graded = True
    bounded = False
    may_read: ClassVar[tuple[str, ...]] = COLUMNS
    extra = VERIFIER_FN

    def __init__(self, default: str = "") -> None:
        super().__init__()
        self.default = default

    # ── the definition ──────────────────────────────────────────────────────────────────────────────────────────────

    def asked(self, row: Row) -> Asked:
        """What the row asks for."""
        return verifier_of(row, self.default)

    def unscored(self, row: Row) -> str | None:
        asked = self.asked(row)
        return asked.problem or why_unscored(asked.fn, absent=asked.expected is None)

    def outcome(self, row: Row) -> Outcome:
        asked = self.asked(row)
        one = function(asked.fn)
        if one is None:  # such a row is unscored
            return Outcome(0.0, "", None)
        return outcome_of(one.within(self.limits), row["completion"], asked.expected, dict(asked.params or {}))

    # ── columns ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def unscored_expr(self) -> pl.Expr:
        return self._why_lane().col

    def expr(self) -> pl.Expr:
        return self._answer_lane().col.struct.field("score")

    def reason_expr(self) -> pl.Expr:
        return self._answer_lane().col.struct.field("reason")

    def error_expr(self) -> pl.Expr:
        return self._answer_lane().col.struct.field("error")

    def extra_expr(self) -> pl.Expr:
        return self._asked_lane().col.struct.field("fn")

    def refused_expr(self) -> pl.Expr:
        """What a run refuses before it scores anything: another kind, or a function that nobody has registered."""
        asked, why = self._asked_lane().col, self._why_lane().col
        usable = asked.struct.field("problem").is_null() & (why != MISSING)
        return pl.when(asked.struct.field("refused") | usable).then(why)

    def column_problems(self, schema: pl.Schema) -> list[tuple[str, str]]:
        there = [name for name in schema if not name.startswith(HIDDEN)]
        if VERIFIER in schema:
            good = isinstance(schema[VERIFIER], pl.Struct | pl.String | pl.Null)
            fact = f"`{VERIFIER}` has type {schema[VERIFIER]}; it must be a struct or JSON text."
            return [] if good else [(fact, "")]
        among = f" There are: {listed(there)}."
        if FN_NAME not in schema and not self.default:
            fact = f"The rollouts carry no verifier: no column `{VERIFIER}` and no `{FN_NAME}`.{among}"
            return [(fact, "Name a spec (--spec FILE), or the function for all rows (--verifier-name exact_match).")]
        one = function(self.default)
        if EXPECTED not in schema and FN_NAME not in schema and one is not None and one.builtin:
            likely = next((name for name in GOLDS if name in schema), "COLUMN")
            fact = f"`{self.default}` compares with `{EXPECTED}`, and the rollouts have no such column.{among}"
            return [(fact, f"Rename one with --map {EXPECTED}={likely}, or join a task table with --tasks.")]
        return []

    def doubt_expr(self) -> pl.Expr:
        return self._asked_lane().col.struct.field("doubt")

    def lanes(self) -> tuple[Lane, ...]:
        return (self._answer_lane(),)

    def refusal_lanes(self) -> tuple[Lane, ...]:
        """Lanes that ``refused_expr`` reads."""
        return (self._why_lane(),)

    def explain(self) -> str:
        return "columns, grouped by function and params; functions without a twin once for each distinct text and gold"

    def _asked_lane(self) -> Lane:
        return row_verifier(self.default)

    def _why_lane(self) -> Lane:
        asked = self._asked_lane()
        return Lane(f"row-unscored:{asked.name}", self._why_expr, after=(asked,))

    def _why_expr(self, schema: pl.Schema) -> pl.Expr:
        del schema
        asked = self._asked_lane().col.struct
        columns = [asked.field(name) for name in ("fn", "problem", "expected", "typed")]
        return pl.map_batches(columns, why_batch, return_dtype=pl.String, is_elementwise=True)

    def _answer_lane(self) -> Lane:
        asked = self._asked_lane()
        return Lane(f"row-answer:{asked.name}", self._answers_expr, after=(asked, self._why_lane()))

    def _answers_expr(self, schema: pl.Schema) -> pl.Expr:
        del schema
        asked = self._asked_lane().col
        output = pl.when(self._why_lane().col.is_null()).then(text())
        columns = [output, *(asked.struct.field(name) for name in ("expected", "typed", "params", "fn"))]
        run = partial(answer_batch, limits=self.limits)
        return pl.map_batches(columns, run, return_dtype=pl.Struct(ANSWER), is_elementwise=True)
