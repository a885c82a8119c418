"""Functions of rows as checks: the function that a row names, and one function for all rows."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import polars as pl
from pydantic import Field

from assay.calls.limits import NO_REWARD
from assay.checks.base import Columns, Outcome, Row, RowAwareCheck, Traits
from assay.errors import listed
from assay.expressions.shared_columns import SharedColumn, exactly, plain, plain_type, rowwise, text
from assay.functions.answers import ANSWER, MISSING, answer_batch, outcomes_of, why_batch, why_unscored
from assay.functions.registry import Function, function, list_fns
from assay.functions.request import (
    ROW_VERIFIER,
    RowVerifier,
    gold_column,
    gold_note,
    is_absent,
    read_verifier,
    row_verifier,
    struct_of,
    verifier_of,
)
from assay.names import EXPECTED, FN_NAME, GOLD_COLUMNS, HIDDEN, IN_PROCESS, PARAMS, VERIFIER
from assay.names import ROW_VERIFIER as ROW_CHECK
from assay.names import VERIFIER_COLUMNS as COLUMNS
from assay.values.params import Params
from assay.values.paths import Path, find_expr
from assay.values.references import Reference, columns_of, resolved

VERIFIER_FN = "verifier_fn"
"""Output column that names the function used."""

GOLDS = ("gold", "ground_truth", "label", "reference", "solution")
"""Names that other tools give the expected value."""

_NO_GOLD = "compares with `expected`, else `answer` or `target`, and the rollouts have none of them."


def _likely_gold(schema: pl.Schema) -> str:
    return next((name for name in GOLDS if name in schema), "COLUMN")


class RowFunctionCheck(RowAwareCheck):
    """The reward of the function that the row's ``verifier`` names, called with its ``expected`` and ``params``."""

    type = IN_PROCESS
    graded = True
    traits = Traits(
        bounded=False,
        may_read=(*COLUMNS, *GOLD_COLUMNS[1:]),
        passed_through=GOLD_COLUMNS[1:],
        ignored_if={"answer": (VERIFIER, EXPECTED), "target": (VERIFIER, EXPECTED, "answer")},
        extra=VERIFIER_FN,
    )

    has_golds: bool = False
    """Whether an expected list is a list of golds, whichever function it is."""

    def __init__(self, default: str = "", params: Params | None = None) -> None:
        super().__init__(params)
        self.default = default

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
        call = (row["completion"], request.expected, dict(request.params or {}))
        limits = self.limits if scorer.builtin else None
        return outcomes_of(scorer, [call], limits, several=self.has_golds)[0]

    def request_lane(self) -> SharedColumn:
        """Return the lane of ``verifier``, a column of ``ROW_VERIFIER``."""
        return row_verifier(self.default)

    def why_lane(self) -> SharedColumn:
        """Return the lane of ``unscored``."""
        request = self.request_lane()
        columns = [request.col.struct.field(name) for name in ("fn", "problem", "expected", "typed")]
        why = pl.map_batches(columns, why_batch, return_dtype=pl.String, is_elementwise=True)
        return SharedColumn(f"row-unscored:{request.name}", lambda _: why, after=(request,))

    def answer_lane(self) -> SharedColumn:
        """Return the lane of ``outcome``: score, reason and error."""
        request, why = self.request_lane(), self.why_lane()

        def build(_: pl.Schema) -> pl.Expr:
            output = pl.when(why.col.is_null()).then(text())
            columns = [output, *(request.col.struct.field(name) for name in ("expected", "typed", "params", "fn"))]
            run = partial(answer_batch, limits=self.limits, several=self.has_golds)
            return pl.map_batches(columns, run, return_dtype=pl.Struct(ANSWER), is_elementwise=True)

        return SharedColumn(f"row-answer:{request.name}", build, after=(request, why))

    def columns(self) -> Columns:
        function = self.request_lane().col.struct.field("fn")
        return Columns.of(self.answer_lane().col, extra=function, unscored=self.why_lane().col)

    def refusals(self) -> tuple[pl.Expr, pl.Expr] | None:
        """Return why a run refuses the row, another kind or an unregistered function, and fields that nothing reads."""
        request, reason = self.request_lane().col, self.why_lane().col
        usable = request.struct.field("problem").is_null() & (reason != MISSING)
        refused = pl.when(request.struct.field("refused") | usable).then(reason)
        return refused, request.struct.field("doubt")

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
            hint = f"Rename one with --map {EXPECTED}={_likely_gold(schema)}, or join a task table with --tasks."
            return [(f"`{self.default}` {_NO_GOLD}{available}", hint)]
        return []

    def column_notes(self, schema: pl.Schema) -> list[str]:
        return [] if VERIFIER in schema else gold_note(schema)

    def explain(self) -> str:
        return (
            "columns, grouped by function and params; patterns that differ only in their literals share a search; "
            "functions without a twin run once per distinct text and expected value"
        )


class RowVerifierParams(Params):
    """What counts for rows that name no function."""

    verifier_name: str = Field(default="", description="The registered function for rows that name none.")


class RowVerifierCheck(RowFunctionCheck):
    """The reward of the verifier that the row carries: a registered function, with the row's `expected` and `params`."""

    type = ROW_CHECK
    Params = RowVerifierParams
    params: RowVerifierParams

    def __init__(self, params: RowVerifierParams | None = None) -> None:
        super().__init__("" if params is None else params.verifier_name, params)

    def unscored(self, row: Row) -> str | None:
        request = self.verifier(row)
        return request.problem or why_unscored(request.fn, absent=False)

    def missing(self, row: Row) -> str | None:
        reason = super().unscored(row)
        return reason if reason == MISSING else None

    def columns(self) -> Columns:
        reason = self.why_lane().col
        unscored, missing = (pl.when(side).then(reason) for side in (reason != MISSING, reason == MISSING))
        return replace(super().columns(), unscored=unscored, missing=missing)

    def claim(self) -> str:
        return "passes the row's verifier"


class _FunctionCall(RowFunctionCheck):
    """A registered function called with golds, literals or references, and params; without golds, the row's own expected value."""

    traits = Traits(
        bounded=False, may_read=GOLD_COLUMNS, passed_through=GOLD_COLUMNS, ignored_if={"target": (EXPECTED, "answer")}
    )
    missing_message = ""
    """Why a row has no verifier that lacks a gold or the value of a param; ``""`` if it has one."""

    def __init__(
        self, fn: str, expected: Sequence[Any] | None, fn_params: Mapping[str, Any], params: Any = None
    ) -> None:
        super().__init__(fn, params)
        self.expected = None if expected is None else tuple(expected)
        self.has_golds = self.expected is not None and len(self.expected) > 1
        self.fn_params = dict(fn_params)

    @property
    def scorer(self) -> Function | None:
        """The registered function."""
        return function(self.default)

    @property
    def is_builtin_function(self) -> bool:
        """Whether the function is part of Assay: its scores are 0 and 1."""
        return self.scorer is not None and self.scorer.builtin

    @property
    def _needs_gold(self) -> bool:
        return bool(self.missing_message) and (self.expected is not None or self.is_builtin_function)

    def verifier(self, row: Row) -> RowVerifier:
        params = {name: resolved(value, row) for name, value in self.fn_params.items()}
        unknown = any(value is None and isinstance(self.fn_params[name], Reference) for name, value in params.items())
        if self.expected is None:
            column = gold_column(row)
            golds = [None if column is None else row[column]]
        else:
            golds = [resolved(item, row) for item in self.expected]
        expected = golds if self.has_golds else golds[0]
        request = read_verifier({EXPECTED: expected, PARAMS: params}, self.default)
        if unknown or (self._needs_gold and is_absent(request.expected)):
            return RowVerifier(self.default, problem=self.missing_message)
        return request

    def request_lane(self) -> SharedColumn:
        called_with = repr((sorted(self.fn_params.items()), self.expected, self.missing_message))
        digest = hashlib.sha256(called_with.encode("utf-8", "backslashreplace")).hexdigest()[:16]
        return SharedColumn(f"registered:{self.default}:{digest}", self._request_expr)

    def _request_expr(self, schema: pl.Schema) -> pl.Expr:
        values = (*(self.expected or ()), *self.fn_params.values())
        references = [value for value in values if isinstance(value, Reference)]
        own = gold_column(schema) if self.expected is None else None
        names = [name for name in dict.fromkeys((own, *columns_of(references))) if name in schema]
        if not names:
            return _struct(struct_of(self.verifier({})), {})
        gold = self._gold_exprs(schema, own)
        if gold is None:
            whole = pl.struct(exactly(str(name)) for name in names)
            return rowwise(whole, lambda row: struct_of(self.verifier(row)), ROW_VERIFIER)
        problem = pl.lit(self.missing_message if self._needs_gold else None, dtype=pl.String)
        problem = pl.when(gold["expected"].is_null() & gold["typed"].is_null()).then(problem)
        constant = struct_of(read_verifier({PARAMS: self.fn_params}, self.default))
        return _struct(constant, {**gold, "problem": problem})

    def _gold_exprs(self, schema: pl.Schema, own: str | None) -> dict[str, pl.Expr] | None:
        (reference, *others) = self.expected or [None if own is None else Reference((Path((own,)),))]
        by_row = [*others, *(value for value in self.fn_params.values() if isinstance(value, Reference))]
        if not isinstance(reference, Reference) or by_row:
            return None
        nothing = pl.lit(None, dtype=pl.String)
        if reference.is_template:
            return {"expected": reference.text_expr(schema), "typed": nothing}
        match = None if reference.is_list else find_expr(schema, reference.paths[0])
        if match is None:
            return None
        values, dtype = match
        if plain_type(dtype) == pl.String:
            return {"expected": plain(values, dtype), "typed": nothing}
        return {"expected": nothing, "typed": values.cast(pl.String)} if dtype.is_integer() else None


class Named(_FunctionCall):
    """The reward of a registered function with the row's own expected value: a member of a rubric."""

    def __init__(self, fn: str, params: Mapping[str, Any] | None = None) -> None:
        super().__init__(fn, None, params or {})
        # NOTE: one class serves every function, so `type`, a class attribute elsewhere, is set on the instance
        self.type = fn  # type: ignore[misc]

    def columns(self) -> Columns:
        return replace(super().columns(), extra=None)

    def column_problems(self, schema: pl.Schema) -> list[tuple[str, str]]:
        if gold_column(schema) is not None:
            return []
        hint = f"Rename one with --map answer={_likely_gold(schema)}, or join a task table with --tasks."
        return [(f"`{self.default}` {_NO_GOLD}", hint)]

    def column_notes(self, schema: pl.Schema) -> list[str]:
        return gold_note(schema)


class FunctionParams(Params):
    """Which function, and what it is called with."""

    name: str = Field(description="Name of a registered function.")
    expected: Any = Field(
        default=None,
        description="The expected value, `{column: …}`, `{template: …}`, or a list, of which the best counts; by default the row's "
        "`expected`, else its `answer`, else its `target`.",
    )


class FunctionCheck(_FunctionCall):
    """The reward of a registered function, called with an `expected` and `params`; of several golds, the best counts."""

    type = "function"
    Params = FunctionParams

    def __init__(self, fn: str, expected: Sequence[Any] | None = None, params: Mapping[str, Any] | None = None) -> None:
        super().__init__(fn, expected, params or {}, FunctionParams(name=fn))
        named = [*((EXPECTED, gold) for gold in self.expected or ()), *self.fn_params.items()]
        references = tuple((name, value) for name, value in named if isinstance(value, Reference))
        read = (*(GOLD_COLUMNS if expected is None else ()), *columns_of(value for _, value in references))
        traits = replace(self.traits, may_read=read, passed_through=read, references=references)
        self.traits = traits  # type: ignore[misc]

    @property
    def registered_code(self) -> Any:
        """The function, if it is a user's; another process may have another one."""
        return None if self.scorer is None or self.scorer.builtin else self.scorer.fn

    @property
    def missing_message(self) -> str:  # type: ignore[override]
        own = () if self.expected is not None else (EXPECTED,)
        names = (*own, *(str(reference) for _, reference in self.traits.references))
        return f"gold is missing: {', '.join(names) or EXPECTED}"

    def unscored(self, row: Row) -> str | None:
        del row
        return None

    def missing(self, row: Row) -> str | None:
        return self.verifier(row).problem or None

    def columns(self) -> Columns:
        columns = Columns.of(self.answer_lane().col)
        if not self.traits.references and (self.expected is not None or not self.is_builtin_function):
            return columns
        return replace(columns, missing=self.request_lane().col.struct.field("problem"))

    def refusals(self) -> None:
        return None

    def column_problems(self, schema: pl.Schema) -> list[tuple[str, str]]:
        if self.scorer is None:
            fact = f'The verifier function "{self.default}" is not registered in this process.'
            return [(fact, f"Registered: {listed(list_fns())}. Register yours in a module that is imported here, too.")]
        if self.expected is not None or gold_column(schema) is not None or not self.is_builtin_function:
            return []
        hint = f"Name the column in the spec: expected: {{column: {_likely_gold(schema)}}}"
        return [(f"`{self.default}` {_NO_GOLD}", hint)]

    def column_notes(self, schema: pl.Schema) -> list[str]:
        return gold_note(schema) if self.expected is None else []

    def claim(self) -> str:
        return f"passes {self.default}"

    def explain(self) -> str:
        if self.scorer is None or self.scorer.expr is None:
            return "Python, once per distinct text and expected value: the function has no twin"
        return "columns, grouped by params: the function has a twin"


def _struct(constant: Mapping[str, Any], columns: Mapping[str, pl.Expr]) -> pl.Expr:
    fields = {name: pl.lit(constant[name], dtype=dtype) for name, dtype in ROW_VERIFIER.to_schema().items()}
    return pl.struct(column.alias(name) for name, column in ({**fields, **columns}).items())
