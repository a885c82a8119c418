"""The check that a row carries: a registered function, the expected value and params."""

from functools import partial
from typing import ClassVar

import polars as pl

from assay.calls.limits import NO_REWARD
from assay.checks.base import Outcome, Params, Row, RunCheck
from assay.errors import listed
from assay.expressions.lane import Lane, text
from assay.functions.answers import ANSWER, MISSING, answer_batch, outcome_of, why_batch, why_unscored
from assay.functions.golds import GOLD_COLUMNS, gold_column, gold_note, is_absent
from assay.functions.registry import function
from assay.functions.request import RowVerifier, verifier_of
from assay.functions.request_columns import row_verifier
from assay.names import EXPECTED, FN_NAME, HIDDEN, IN_PROCESS, VERIFIER
from assay.names import VERIFIER_COLUMNS as COLUMNS

VERIFIER_FN = "verifier_fn"
"""Output column that names the function used."""

GOLDS = ("gold", "ground_truth", "label", "reference", "solution")
"""Names that other tools give the expected value."""


class OnRow(RunCheck):
    """The reward of the function that the row's ``verifier`` names, called with its ``expected`` and ``params``."""

    type = IN_PROCESS
    graded = True
    bounded = False
    may_read: ClassVar[tuple[str, ...]] = (*COLUMNS, *GOLD_COLUMNS[1:])
    stays: ClassVar[tuple[str, ...]] = GOLD_COLUMNS[1:]
    extra = VERIFIER_FN
    spared: ClassVar[dict[str, tuple[str, ...]]] = {
        "answer": (VERIFIER, EXPECTED),
        "target": (VERIFIER, EXPECTED, "answer"),
    }

    def __init__(self, default: str = "", params: Params | None = None) -> None:
        super().__init__(params)
        self.default = default

    # ── the definition ──────────────────────────────────────────────────────────────────────────────────────────────

    def verifier(self, row: Row) -> RowVerifier:
        """Return the verifier that the row carries."""
        return verifier_of(row, self.default)

    def unscored(self, row: Row) -> str | None:
        request = self.verifier(row)
        return request.problem or why_unscored(request.fn, absent=is_absent(request.expected))

    def outcome(self, row: Row) -> Outcome:
        request = self.verifier(row)
        scorer = function(request.fn)
        if request.problem or scorer is None:  # such a row is unscored, unless it decides when another check runs
            return Outcome(0.0, NO_REWARD, NO_REWARD)
        return outcome_of(scorer.within(self.limits), row["completion"], request.expected, dict(request.params or {}))

    # ── columns ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def unscored_expr(self) -> pl.Expr:
        return self._why_lane().col

    def extra_expr(self) -> pl.Expr:
        return self._asked_lane().col.struct.field("fn")

    def refused_expr(self) -> pl.Expr:
        """Return why a run refuses the row before scoring: another kind, or an unregistered function; else null."""
        request, reason = self._asked_lane().col, self._why_lane().col
        usable = request.struct.field("problem").is_null() & (reason != MISSING)
        return pl.when(request.struct.field("refused") | usable).then(reason)

    def column_problems(self, schema: pl.Schema) -> list[tuple[str, str]]:
        columns = [name for name in schema if not name.startswith(HIDDEN)]
        if VERIFIER in schema:
            is_usable = isinstance(schema[VERIFIER], pl.Struct | pl.String | pl.Null)
            fact = f"`{VERIFIER}` has type {schema[VERIFIER]}; it must be a struct or JSON text."
            return [] if is_usable else [(fact, "")]
        available = f" Columns: {listed(columns)}."
        if FN_NAME not in schema and not self.default:
            fact = f"The rollouts carry no verifier: no column `{VERIFIER}` and no `{FN_NAME}`.{available}"
            return [(fact, "Name a spec (--spec FILE), or the function for all rows (--verifier-name exact_match).")]
        scorer = function(self.default)
        if gold_column(schema) is None and FN_NAME not in schema and scorer is not None and scorer.builtin:
            candidate = next((name for name in GOLDS if name in schema), "COLUMN")
            fact = f"`{self.default}` compares with `{EXPECTED}`, else `answer` or `target`, and the rollouts have none of them.{available}"
            return [(fact, f"Rename one with --map {EXPECTED}={candidate}, or join a task table with --tasks.")]
        return []

    def column_notes(self, schema: pl.Schema) -> list[str]:
        return [] if VERIFIER in schema else gold_note(schema)

    def doubt_expr(self) -> pl.Expr:
        return self._asked_lane().col.struct.field("doubt")

    def refusal_lanes(self) -> tuple[Lane, ...]:
        """Return the lanes that ``refused_expr`` reads."""
        return (self._why_lane(),)

    def explain(self) -> str:
        return (
            "columns, grouped by function and params; patterns that differ only in their literals share a search; "
            "functions without a twin run once per distinct text and expected value"
        )

    def _asked_lane(self) -> Lane:
        return row_verifier(self.default)

    def _why_lane(self) -> Lane:
        request = self._asked_lane()
        return Lane(f"row-unscored:{request.name}", self._why_expr, after=(request,))

    def _why_expr(self, schema: pl.Schema) -> pl.Expr:
        del schema
        request = self._asked_lane().col.struct
        columns = [request.field(name) for name in ("fn", "problem", "expected", "typed")]
        return pl.map_batches(columns, why_batch, return_dtype=pl.String, is_elementwise=True)

    def answer_lane(self) -> Lane:
        request = self._asked_lane()
        return Lane(f"row-answer:{request.name}", self._answers_expr, after=(request, self._why_lane()))

    def _answers_expr(self, schema: pl.Schema) -> pl.Expr:
        del schema
        request = self._asked_lane().col
        output = pl.when(self._why_lane().col.is_null()).then(text())
        columns = [output, *(request.struct.field(name) for name in ("expected", "typed", "params", "fn"))]
        run = partial(answer_batch, limits=self.limits)
        return pl.map_batches(columns, run, return_dtype=pl.Struct(ANSWER), is_elementwise=True)
