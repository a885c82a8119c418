"""Functions of rows as checks of a spec: a registered function by its name, and the verifier that the row carries."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import polars as pl
from pydantic import Field

from assay.calls.limits import NO_REWARD
from assay.checks.base import Outcome, Params, Row
from assay.errors import listed
from assay.expressions.lane import Lane, exactly, plain, plain_type, rowwise
from assay.functions.answers import ANSWER, MISSING, best_of, outcome_of, why_unscored
from assay.functions.check import GOLDS, OnRow
from assay.functions.golds import GOLD_COLUMNS, gold_column, gold_note, is_absent
from assay.functions.registry import Function, function, list_fns
from assay.functions.request import RowVerifier, read_verifier
from assay.functions.request_columns import ROW_VERIFIER, struct_of
from assay.names import EXPECTED, PARAMS
from assay.names import ROW_VERIFIER as ROW_CHECK
from assay.values.paths import Path, find_expr
from assay.values.references import Reference, columns_of, resolved


class RowVerifierParams(Params):
    """What counts for rows that name no function."""

    verifier_name: str = Field(default="", description="The registered function for rows that name none.")


class RowVerifierCheck(OnRow):
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

    def unscored_expr(self) -> pl.Expr:
        reason = self._why_lane().col
        return pl.when(reason != MISSING).then(reason)

    def missing_expr(self) -> pl.Expr:
        reason = self._why_lane().col
        return pl.when(reason == MISSING).then(reason)

    def claim(self) -> str:
        return "passes the row's verifier"


class FunctionParams(Params):
    """Which function, and what it is called with."""

    name: str = Field(description="Name of a registered function.")
    expected: Any = Field(
        default=None,
        description="The expected value, `{column: …}`, `{template: …}`, or a list, of which the best counts; by default the row's "
        "`expected`, else its `answer`, else its `target`.",
    )


class Registered(OnRow):
    """The reward of a registered function, called with an `expected` and `params`.

    Args:
        fn: Its name in the registry.
        expected: The golds: literals and references. None for the row's ``expected``, else its ``answer``, else its ``target``.
        params: Its params; values may be references.
    """

    type = "function"
    Params = FunctionParams
    extra = ""
    spared: ClassVar[dict[str, tuple[str, ...]]] = {"target": (EXPECTED, "answer")}

    def __init__(self, fn: str, expected: Sequence[Any] | None = None, params: Mapping[str, Any] | None = None) -> None:
        super().__init__(fn, FunctionParams(name=fn))
        self.golds = None if expected is None else tuple(expected)
        self.fn_params = dict(params or {})
        self.stays = (*(GOLD_COLUMNS if expected is None else ()), *columns_of(self.references))  # type: ignore[misc]
        self.may_read = self.stays  # type: ignore[misc]

    @property
    def named_references(self) -> list[tuple[str, Reference]]:
        named = [*((EXPECTED, gold) for gold in self.golds or ()), *self.fn_params.items()]
        return [(name, value) for name, value in named if isinstance(value, Reference)]

    @property
    def is_builtin_function(self) -> bool:
        """Whether the function is part of Assay: its scores are 0 and 1."""
        scorer = function(self.default)
        return scorer is not None and scorer.builtin

    # ── the definition ──────────────────────────────────────────────────────────────────────────────────────────────

    def requests(self, row: Row) -> list[RowVerifier]:
        """Return the calls for a row: one for each gold; with a ``problem`` where there is no gold, or no value for a param.

        A built-in function compares with all golds of a list in one call. A function of yours is called with each gold of the
        spec's list, and a row's value as it is, a list or not.
        """
        return [self.request(slot, row) for slot in self._slots]

    @property
    def _slots(self) -> list[Any]:
        """What each call takes its gold from; None for the row's own gold."""
        if self.golds is None:
            return [None]
        return [[*self.golds]] if self.is_builtin_function and len(self.golds) > 1 else [*self.golds]

    def request(self, slot: Any, row: Row) -> RowVerifier:
        """Return one call for a row; see ``requests``."""
        params = {name: resolved(value, row) for name, value in self.fn_params.items()}
        unknown = any(value is None and isinstance(self.fn_params[name], Reference) for name, value in params.items())
        if slot is None:
            column = gold_column(row)
            expected = None if column is None else row[column]
        else:
            expected = [resolved(item, row) for item in slot] if isinstance(slot, list) else resolved(slot, row)
        request = read_verifier({EXPECTED: expected, PARAMS: params}, self.default)
        if unknown or (self.needs_gold(slot) and is_absent(request.expected)):
            return RowVerifier(self.default, problem=self.missing_message)
        return request

    def needs_gold(self, slot: Any) -> bool:
        """Return whether there has to be a gold: where the spec names one, and for built-in functions."""
        return slot is not None or self.is_builtin_function

    @property
    def missing_message(self) -> str:
        """Why a row has no gold."""
        own = () if self.golds is not None else (EXPECTED,)
        return f"gold is missing: {', '.join((*own, *map(str, self.references))) or EXPECTED}"

    def unscored(self, row: Row) -> str | None:
        del row
        return None

    def missing(self, row: Row) -> str | None:
        return self.missing_message if all(request.problem for request in self.requests(row)) else None

    def outcome(self, row: Row) -> Outcome:
        scorer = function(self.default)
        if scorer is None:
            return Outcome(0.0, NO_REWARD, NO_REWARD)
        bounded = scorer.within(self.limits)
        present = [request for request in self.requests(row) if not request.problem]
        outcomes = [outcome_of(bounded, row["completion"], one.expected, dict(one.params or {})) for one in present]
        return best_of(outcomes) if outcomes else Outcome(0.0, NO_REWARD, NO_REWARD)

    # ── columns ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def missing_expr(self) -> pl.Expr | None:
        if not self.references and (self.golds is not None or not self.is_builtin_function):
            return None
        is_missing = pl.all_horizontal(part.problem_expr().is_not_null() for part in self._parts)
        return pl.when(is_missing).then(pl.lit(self.missing_message))

    def unscored_expr(self) -> pl.Expr:
        return pl.lit(None, dtype=pl.String)

    @property
    def _parts(self) -> "list[_OneGold]":
        return [_OneGold(self, slot) for slot in self._slots]

    def answer_lane(self) -> Lane:
        """The answer of the best gold."""
        parts = self._parts
        if len(parts) == 1:
            return parts[0].answer_lane()
        lanes = tuple(part.answer_lane() for part in parts)
        name = f"best-answer:{','.join(lane.name for lane in lanes)}"
        return Lane(name, lambda _: self._best_expr([lane.col for lane in lanes]), after=lanes)

    @staticmethod
    def _best_expr(answers: Sequence[pl.Expr]) -> pl.Expr:
        columns = pl.struct(answer.alias(str(at)) for at, answer in enumerate(answers))
        return rowwise(columns, _best_answer, pl.Struct(ANSWER))

    # ── how it runs ─────────────────────────────────────────────────────────────────────────────────────────────────

    def refused_expr(self) -> pl.Expr | None:  # type: ignore[override]
        return None

    def doubt_expr(self) -> pl.Expr | None:  # type: ignore[override]
        return None

    def column_problems(self, schema: pl.Schema) -> list[tuple[str, str]]:
        if function(self.default) is None:
            fact = f'The verifier function "{self.default}" is not registered in this process.'
            return [(fact, f"Registered: {listed(list_fns())}. Register yours in a module that is imported here, too.")]
        if self.golds is not None or gold_column(schema) is not None or not self.is_builtin_function:
            return []
        candidate = next((name for name in GOLDS if name in schema), "COLUMN")
        fact = (
            f"`{self.default}` compares with `expected`, else `answer` or `target`, and the rollouts have none of them."
        )
        return [(fact, f"Name the column in the spec: expected: {{column: {candidate}}}")]

    def column_notes(self, schema: pl.Schema) -> list[str]:
        return gold_note(schema) if self.golds is None else []

    @property
    def made_by(self) -> Any:
        scorer = function(self.default)
        return type(self) if scorer is None or scorer.builtin else scorer.fn

    @property
    def scorer(self) -> Function | None:
        """The registered function."""
        return function(self.default)

    def claim(self) -> str:
        return f"passes {self.default}"

    def explain(self) -> str:
        scorer = function(self.default)
        if scorer is None or scorer.expr is None:
            return "Python, once per distinct text and expected value: the function has no twin"
        return "columns, grouped by params: the function has a twin"


class _OneGold(OnRow):
    """A registered function with one of its golds, for the lanes of ``OnRow``."""

    def __init__(self, check: Registered, slot: Any) -> None:
        super().__init__(check.default)
        self.check, self.slot, self.limits = check, slot, check.limits

    def problem_expr(self) -> pl.Expr:
        """Why there is no call; null if there is one."""
        return self._asked_lane().col.struct.field("problem")

    def _asked_lane(self) -> Lane:
        called_with = repr((sorted(self.check.fn_params.items()), type(self.slot), self.slot))
        digest = hashlib.sha256(called_with.encode("utf-8", "backslashreplace")).hexdigest()[:16]
        return Lane(f"registered:{self.default}:{digest}", self._asked_expr)

    def _asked_expr(self, schema: pl.Schema) -> pl.Expr:
        names = [name for name in self.check.stays if name in schema]
        if self.slot is None:
            names = [name for name in names if name not in GOLD_COLUMNS or name == gold_column(schema)]
        if not names:
            return _struct(struct_of(self.check.request(self.slot, {})), {})
        gold = self._gold_exprs(schema)
        if gold is None:
            whole = pl.struct(map(exactly, names))
            return rowwise(whole, lambda row: struct_of(self.check.request(self.slot, row)), ROW_VERIFIER)
        missing = self.check.missing_message if self.check.needs_gold(self.slot) else None
        problem = pl.when(gold["expected"].is_null() & gold["typed"].is_null()).then(pl.lit(missing, dtype=pl.String))
        constant = struct_of(read_verifier({PARAMS: self.check.fn_params}, self.default))
        return _struct(constant, {**gold, "problem": problem})

    def _gold_exprs(self, schema: pl.Schema) -> dict[str, pl.Expr] | None:
        """Return the gold of each row as text or as JSON text; None if it takes Python to read the row."""
        reference = self.slot
        if reference is None and (name := gold_column(schema)) is not None:
            reference = Reference((Path((name,)),))
        if not isinstance(reference, Reference) or any(isinstance(v, Reference) for v in self.check.fn_params.values()):
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


def _struct(constant: Mapping[str, Any], columns: Mapping[str, pl.Expr]) -> pl.Expr:
    """Return a column of ``ROW_VERIFIER`` whose fields are constant except some."""
    fields = {name: pl.lit(constant[name], dtype=dtype) for name, dtype in ROW_VERIFIER.to_schema().items()}
    return pl.struct(column.alias(name) for name, column in ({**fields, **columns}).items())


def _best_answer(answers: Mapping[str, Any]) -> dict[str, Any] | None:
    outcomes = [Outcome(**answer) for answer in answers.values() if answer is not None and answer["score"] is not None]
    if not outcomes:
        return None
    best = best_of(outcomes)
    return {name: getattr(best, name) for name in ANSWER}
