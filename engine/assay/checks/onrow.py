"""The check that a row brings along: a function of the registry, its gold and its params."""

import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import polars as pl

from assay.bounded import each
from assay.checks.base import BELOW_1, Check, Outcome, Row, is_reward
from assay.errors import RAISED, AssayWarning, quoted, said_by
from assay.fns import Function, function
from assay.lanes.base import HIDDEN, Lane, rowwise, text
from assay.lanes.fncolumns import quoted_expr
from assay.lanes.jsontext import mended
from assay.lanes.onrow import COLUMNS, EXPECTED, FN_NAME, IN_PROCESS, VERIFIER, Asked, verifier_of
from assay.lanes.onrow_columns import row_verifier
from assay.limits import NO_REWARD, Limits

__all__ = ["GOLDS", "VERIFIER_FN", "OnRow", "outcome_of"]

VERIFIER_FN = "verifier_fn"
"""Output column that names the function used."""

NO_FUNCTION = "the row names no verifier function, and the run has no default"
MISSING = "expected is missing"
GOLDS = ("answer", "gold", "ground_truth", "label", "reference", "solution", "target")
"""What other tools call the expected value."""
_FEW = 64
"""Rows of one set of params below which the function itself is faster than its twin, where there are many sets."""
_SETS = 16
_ANSWER: dict[str, Any] = {"score": pl.Float64, "reason": pl.String, "error": pl.String}
_ANSWERS = {"at": pl.UInt32, **_ANSWER}
_TRIPLE = ("text", "expected", "typed", "params")


def outcome_of(one: Function, output: str, expected: Any, params: dict[str, Any]) -> Outcome:
    """The definition: what a function says of one output.

    An exception, NaN, infinity or anything else that is no number scores 0.0 and fills ``error``.
    """
    try:
        reward = one.fn(output, expected, params)
        if not is_reward(reward):
            return Outcome(0.0, NO_REWARD, NO_REWARD, one.name)
        reward = float(reward)
        reason, error = _told(one, output, expected, params) if reward < 1 else ("", None)
    except RAISED as wrong:  # one broken function never ends a run
        return Outcome(0.0, said_by(wrong), said_by(wrong), one.name)
    return Outcome(reward if error is None else 0.0, reason, error, one.name)


def _told(one: Function, output: str, expected: Any, params: Mapping[str, Any]) -> tuple[str, str | None]:
    if one.tells is not None:
        return one.tells(output, expected, params)
    return (BELOW_1 if expected is None else f"{one.complaint}{quoted(str(expected))}"), None


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
        if asked.problem:
            return asked.problem
        standing = _standing(asked.fn)
        if standing in (_BUILTIN, _KNOWN):
            return MISSING if standing == _BUILTIN and asked.expected is None else None
        return standing

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
        listed = f" There are: {', '.join(there) or 'none'}."
        if FN_NAME not in schema and not self.default:
            fact = f"The rollouts carry no verifier: no column `{VERIFIER}` and no `{FN_NAME}`.{listed}"
            return [(fact, "Name a spec (--spec FILE), or the function for all rows (--verifier-name exact_match).")]
        one = function(self.default)
        if EXPECTED not in schema and FN_NAME not in schema and one is not None and one.builtin:
            likely = next((name for name in GOLDS if name in schema), "COLUMN")
            fact = f"`{self.default}` compares with `{EXPECTED}`, and the rollouts have no such column.{listed}"
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
        return pl.map_batches(columns, _why_batch, return_dtype=pl.String, is_elementwise=True)

    def _answer_lane(self) -> Lane:
        asked = self._asked_lane()
        return Lane(f"row-answer:{asked.name}", self._answers_expr, after=(asked, self._why_lane()))

    def _answers_expr(self, schema: pl.Schema) -> pl.Expr:
        del schema
        asked = self._asked_lane().col
        output = pl.when(self._why_lane().col.is_null()).then(text())
        columns = [output, *(asked.struct.field(name) for name in ("expected", "typed", "params", "fn"))]
        run = partial(_answer_batch, limits=self.limits)
        return pl.map_batches(columns, run, return_dtype=pl.Struct(_ANSWER), is_elementwise=True)


_BUILTIN, _KNOWN = "built in", "known"


def _standing(name: str) -> str:
    """What a name stands for: a built-in function, another known one, or else why it cannot be used."""
    one = function(name)
    if one is None:
        return f'unknown verifier function "{name}"' if name else NO_FUNCTION
    return _BUILTIN if one.builtin else _KNOWN


# ── a batch ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _why_batch(columns: Sequence[pl.Series]) -> pl.Series:
    """``unscored`` on a batch. The registry is asked now: a function may be registered after the plan was made."""
    fn, problem, expected, typed = columns
    standings = {name: _standing(name) for name in fn.unique().to_list()}
    absent = expected.is_null() & typed.is_null()
    if set(standings.values()) == {_BUILTIN} and problem.null_count() == len(fn) and not absent.any():
        return pl.repeat(None, len(fn), dtype=pl.String, eager=True).alias(fn.name)
    why = {name: None if said in (_BUILTIN, _KNOWN) else said for name, said in standings.items()}
    builtin = fn.is_in([name for name, said in standings.items() if said == _BUILTIN])
    frame = pl.DataFrame({"fn": fn, "problem": problem, "missing": absent & builtin})
    unusable = pl.col("fn").replace_strict(why, return_dtype=pl.String)
    missing = pl.when("missing").then(pl.lit(MISSING))
    return frame.select(pl.coalesce("problem", unusable, missing)).to_series().alias(fn.name)


def _answer_batch(columns: Sequence[pl.Series], limits: Limits | None = None) -> pl.Series:
    """``outcome_of`` on a batch: each function with all of its rows at once."""
    named = [series.alias(name) for series, name in zip(columns, (*_TRIPLE, "fn"), strict=True)]
    frame = pl.DataFrame(named).with_row_index("at")
    asked = frame.filter(pl.col("text").is_not_null()) if columns[0].null_count() else frame
    several = asked["fn"].n_unique() != 1
    answers = [pl.DataFrame(schema=_ANSWERS)]
    for part in asked.partition_by("fn", maintain_order=True) if several else [asked]:
        one = function(part["fn"][0])
        if one is not None:
            answers += _answers(one.within(limits), part.drop("fn"), limits)
    found = pl.concat(answers)
    if found.height < frame.height:
        found = frame.select("at").join(found, on="at", how="left", maintain_order="left")
    elif len(answers) > 2:  # noqa: PLR2004  (the empty one, and one that is in order)
        found = found.sort("at")
    return found.select(pl.struct(*_ANSWER)).to_series().alias(columns[0].name)


def _answers(one: Function, asked: pl.DataFrame, limits: Limits | None) -> list[pl.DataFrame]:
    """One function: its twin where it has one, itself on the rows that the twin leaves null."""
    if one.expr is None:
        return [_by_row(one, asked, limits)]
    if asked["typed"].null_count() < asked.height:
        is_object = pl.col("typed").str.starts_with("{") & one.takes_json
        other = rowwise(
            pl.when(is_object.not_()).then("typed"),
            lambda value: mended(str(json.loads(value))),
            pl.String,
            distinct=True,
        )
        asked = asked.with_columns(expected=pl.coalesce("expected", other, "typed"))
    parts, left = _sets(one, asked)
    answers = []
    for part, params in parts:
        found = _by_twin(one, part, params)
        open_ = found["score"].is_finite().fill_null(value=False).not_()
        if open_.any():
            left.append(part.filter(open_))
            found = found.filter(open_.not_())
        answers.append(found)
    return answers + [_by_row(one, rows.select("at", *_TRIPLE), limits) for rows in left if rows.height]


_Parts = list[tuple[pl.DataFrame, dict[str, Any]]]


def _sets(one: Function, asked: pl.DataFrame) -> tuple[_Parts, list[pl.DataFrame]]:
    """The rows that a twin may be asked about, by the params that it reads; and the other rows."""
    left = []
    if asked["typed"].null_count() < asked.height and not one.builtin:
        left.append(asked.filter(pl.col("typed").is_not_null()))
        asked = asked.filter(pl.col("typed").is_null())
    texts = asked["params"].unique(maintain_order=True).to_list()
    sets = {text: json.dumps(_read_params(one, text), sort_keys=True) for text in texts}
    if len(set(sets.values())) <= 1:
        return [(asked, json.loads(sets[text])) for text in texts[:1]], left
    asked = asked.with_columns(set=pl.col("params").replace_strict(sets, return_dtype=pl.String))
    counts = asked["set"].value_counts()
    if counts.height > _SETS:
        few = asked["set"].is_in(counts.filter(pl.col("count") < _FEW)["set"].implode())
        left.append(asked.filter(few))
        asked = asked.filter(~few)
    parts = asked.partition_by("set", maintain_order=True) if asked.height else []
    return [(part, json.loads(part["set"][0])) for part in parts], left


def _read_params(one: Function, params: str | None) -> dict[str, Any]:
    given = {} if params is None else json.loads(params)
    return given if one.params is None else {name: given[name] for name in one.params if name in given}


def _by_twin(one: Function, asked: pl.DataFrame, params: dict[str, Any]) -> pl.DataFrame:
    """What the twin says, row for row; no score where the function must answer."""
    assert one.expr is not None  # noqa: S101  (only functions with a twin come here)
    nothing = asked.select("at", *(pl.lit(None, dtype=dtype).alias(name) for name, dtype in _ANSWER.items()))
    try:
        twin = one.expr(pl.col("text"), pl.col("expected"), params)
    except RAISED as wrong:  # a twin may be anybody's
        if not one.builtin:  # ours refuse params that the function will say what is wrong with
            _warn(one, wrong)
        return nothing
    try:
        if not isinstance(twin, pl.Expr):
            raise TypeError(f"it returns {type(twin).__name__}, not a Polars expression")
        found = asked.with_columns(answer=twin)
        dtype = found.schema["answer"]
        if one.builtin and isinstance(dtype, pl.Struct):
            return found.select("at", pl.col("answer").struct.unnest()).cast({"score": pl.Float64})
        if not (dtype == pl.Boolean or dtype.is_numeric()):
            raise TypeError(f"it gives {dtype}, not Boolean or Float64")
        found = found.with_columns(score=pl.col("answer").cast(pl.Float64))
    except (*RAISED, pl.exceptions.PanicException) as wrong:
        _warn(one, wrong)
        return nothing
    failing = pl.col("score") < 1
    told = quoted_expr(pl.when(failing).then("expected"), before=one.complaint)
    reason = pl.coalesce(told, pl.when(failing).then(pl.lit(BELOW_1)))
    return found.select("at", "score", reason=reason, error=pl.lit(None, dtype=pl.String))


def _warn(one: Function, wrong: BaseException) -> None:
    said = f"the twin of {one.name} cannot run, the function answers row by row: {said_by(wrong)}"
    warnings.warn(said, AssayWarning, stacklevel=1)


def _by_row(one: Function, asked: pl.DataFrame, limits: Limits | None) -> pl.DataFrame:
    """The function itself, once for each distinct text, gold and params."""

    def answer(triple: tuple[Any, ...]) -> Outcome:
        output, expected, typed, params = triple
        gold = expected if typed is None else json.loads(typed)
        return outcome_of(one, output, gold, {} if params is None else json.loads(params))

    triples = asked.select(_TRIPLE).rows()
    distinct = [*dict.fromkeys(triples)]
    if limits is not None and one.builtin:  # ours need no thread that can be left, only to stop between two rows
        limits = replace(limits, timeout=None) if one.limited else None
    outcomes = each(answer, distinct, limits, lambda said: Outcome(0.0, said, said, one.name))
    known = dict(zip(distinct, outcomes, strict=True))
    found = {name: [getattr(known[triple], name) for triple in triples] for name in _ANSWER}
    return asked.select("at").with_columns(pl.Series(name, found[name], dtype=dtype) for name, dtype in _ANSWER.items())
