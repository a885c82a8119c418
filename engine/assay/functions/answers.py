"""What the functions of the registry say of many rows, each with its gold and its params."""

import json
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import polars as pl

from assay.calls.in_thread import each
from assay.calls.limits import NO_REWARD, Limits, own_failure, settled
from assay.checks.base import BELOW_1, Outcome
from assay.errors import AssayWarning, quoted, said_by
from assay.expressions.json import mended
from assay.expressions.lane import OTHER_ROWS, in_place, is_small, once, rowwise
from assay.functions.registry import Function, function
from assay.functions.request_columns import PLAIN_VALUE
from assay.functions.text_twins import quoted_expr
from assay.thresholds import THRESHOLDS

__all__ = ["ANSWER", "MISSING", "answer_batch", "outcome_of", "why_batch", "why_unscored"]

NO_FUNCTION = "the row names no verifier function, and the run has no default"
MISSING = "expected is missing"
ANSWER: dict[str, Any] = {"score": pl.Float64, "reason": pl.String, "error": pl.String}
_ANSWERS = {"at": pl.UInt32, **ANSWER}
_TRIPLE = ("text", "expected", "typed", "params")


def outcome_of(one: Function, output: str, expected: Any, params: dict[str, Any]) -> Outcome:
    """The definition: what a function says of one output.

    An exception, NaN, infinity or anything else that is no number scores 0.0 and fills ``error``.
    """
    try:
        reward, misfit = settled(one.fn(output, expected, params))
        if misfit is not None:
            return Outcome(0.0, NO_REWARD, NO_REWARD, one.name)
        reason, error = _told(one, output, expected, params) if reward < 1 else ("", None)
    except BaseException as wrong:  # one broken function never ends a run
        if not own_failure(wrong):
            raise
        return Outcome(0.0, said_by(wrong), said_by(wrong), one.name)
    return Outcome(reward if error is None else 0.0, reason, error, one.name)


def _told(one: Function, output: str, expected: Any, params: Mapping[str, Any]) -> tuple[str, str | None]:
    if one.tells is not None:
        return one.tells(output, expected, params)
    return (BELOW_1 if expected is None else f"{one.complaint}{quoted(str(expected))}"), None


def why_unscored(name: str, *, absent: bool) -> str | None:
    """Why a row that names this function cannot be scored; ``absent``: it has no ``expected``."""
    one = function(name)
    if one is None:
        return f'unknown verifier function "{name}"' if name else NO_FUNCTION
    return MISSING if one.builtin and absent else None


# ── a batch ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def why_batch(columns: Sequence[pl.Series]) -> pl.Series:
    """``unscored`` on a batch. The registry is asked now: a function may be registered after the plan was made."""
    fn, problem, expected, typed = columns
    absent = expected.is_null() & typed.is_null()
    if is_small(fn):
        rows = zip(fn.to_list(), problem.to_list(), absent.to_list(), strict=True)
        said = [given or why_unscored(name, absent=no_gold) for name, given, no_gold in rows]
        return pl.Series(fn.name, said, dtype=pl.String)
    names = fn.unique().to_list()
    why = {name: why_unscored(name, absent=False) for name in names}
    builtin = [name for name in names if why[name] is None and why_unscored(name, absent=True)]
    if len(builtin) == len(names) and problem.null_count() == len(fn) and not absent.any():
        return pl.repeat(None, len(fn), dtype=pl.String, eager=True).alias(fn.name)
    frame = pl.DataFrame({"fn": fn, "problem": problem, "missing": absent & fn.is_in(builtin)})
    unusable = pl.col("fn").replace_strict(why, return_dtype=pl.String)
    missing = pl.when("missing").then(pl.lit(MISSING))
    return frame.select(pl.coalesce("problem", unusable, missing)).to_series().alias(fn.name)


def answer_batch(columns: Sequence[pl.Series], limits: Limits | None = None) -> pl.Series:
    """``outcome_of`` on a batch: each function with all of its rows at once."""
    if is_small(columns[0]) and not any(_is_asked_by_columns(name) for name in columns[-1].unique()):
        return _answers_of_few(columns, limits)
    named = [series.alias(name) for series, name in zip(columns, (*_TRIPLE, "fn"), strict=True)]
    frame = pl.DataFrame(named).with_row_index("at")
    asked = frame.filter(pl.col("text").is_not_null()) if columns[0].null_count() else frame
    several = asked["fn"].n_unique() != 1
    answers = [pl.DataFrame(schema=_ANSWERS)]
    for part in asked.partition_by("fn", maintain_order=True) if several else [asked]:
        one = function(part["fn"][0])
        if one is not None:
            answers += _answers(one, part.drop("fn"), limits)
    found = pl.concat(answers)
    if found.height < frame.height or len(answers) > 2:  # noqa: PLR2004  (the empty one, and one that is in order)
        found = in_place(found, frame.height)
    return found.select(pl.struct(*ANSWER)).to_series().alias(columns[0].name)


def _is_asked_by_columns(name: str) -> bool:
    """Whether a function has a twin of its author's, who is told when it cannot run."""
    one = function(name)
    return one is not None and one.expr is not None and not one.builtin


def _answers_of_few(columns: Sequence[pl.Series], limits: Limits | None) -> pl.Series:
    """``outcome_of`` on a small batch."""
    *triples, names = (series.to_list() for series in columns)
    rows = [*zip(*triples, strict=True)]
    answers: list[dict[str, Any] | None] = [None] * len(rows)
    for name in dict.fromkeys(names):
        one = function(name)
        asked = [at for at, row in enumerate(rows) if names[at] == name and row[0] is not None]
        for at, outcome in zip(asked, _outcomes(one, [rows[at] for at in asked], limits) if one else (), strict=False):
            answers[at] = {field: getattr(outcome, field) for field in ANSWER}
    return pl.Series(columns[0].name, answers, dtype=pl.Struct(ANSWER))


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
    read = once(pl.col("params"), partial(_read_part, one=one), pl.String).fill_null("{}")
    asked = asked.with_columns(set=read)
    sets = asked["set"].unique(maintain_order=True).to_list()
    if len(sets) <= 1:
        return [(asked, json.loads(text)) for text in sets], left
    counts = asked["set"].value_counts()
    if counts.height > THRESHOLDS.param_sets:
        few = asked["set"].is_in(counts.filter(pl.col("count") < THRESHOLDS.param_rows)["set"].implode())
        left.append(asked.filter(few))
        asked = asked.filter(~few)
    parts = asked.partition_by("set", maintain_order=True) if asked.height else []
    return [(part, json.loads(part["set"][0])) for part in parts], left


def _read_part(params: pl.Series, one: Function) -> pl.Series:
    """Params without those that the function does not read, in one order.

    There may be as many as rows. In an object of plain values a name that is there once, before a colon, is a key.
    """
    text = pl.col("params")
    part = text
    if one.params is not None:
        sure = (text.str.count_matches(r"[\[{]") == 1) & text.str.contains("\\", literal=True).not_()
        members = []
        for key in (json.dumps(name, ensure_ascii=False) for name in one.params):
            often = text.str.count_matches(key, literal=True)
            members.append(text.str.extract(rf"({re.escape(key)}: ?{PLAIN_VALUE})[,}}]", 1))
            sure = sure & ((often == 0) | ((often == 1) & members[-1].is_not_null()))
        inner = pl.concat_str(members, separator=",", ignore_nulls=True) if members else pl.lit("")
        part = pl.when(sure).then(pl.concat_str(pl.lit("{"), inner, pl.lit("}"))).otherwise(text)

    def in_order(texts: pl.Series) -> pl.Series:
        every = (json.loads(text) for text in texts.to_list())
        read = (
            every if one.params is None else ({name: got[name] for name in one.params if name in got} for got in every)
        )
        return pl.Series([json.dumps(some, sort_keys=True) for some in read], dtype=pl.String)

    return params.to_frame("params").select(once(part, in_order, pl.String)).to_series()


def _by_twin(one: Function, asked: pl.DataFrame, params: dict[str, Any]) -> pl.DataFrame:
    """What the twin says, row for row; no score where the function must answer."""
    assert one.expr is not None  # noqa: S101  (only functions with a twin come here)
    nothing = asked.select("at", *(pl.lit(None, dtype=dtype).alias(name) for name, dtype in ANSWER.items()))
    try:
        twin = one.expr(pl.col("text"), pl.col("expected"), params)
    except BaseException as wrong:  # a twin may be anybody's
        if not own_failure(wrong):
            raise
        if not one.builtin:  # ours refuse params that the function will say what is wrong with
            _warn(one, wrong)
        return nothing
    try:
        found = _answered(one, asked, twin, params)
    except BaseException as wrong:
        if not own_failure(wrong):
            raise
        _warn(one, wrong)
        return nothing
    if isinstance(found.schema["answer"], pl.Struct):
        return found.select("at", pl.col("answer").struct.unnest()).cast({"score": pl.Float64})
    found = found.with_columns(score=pl.col("answer").cast(pl.Float64))
    failing = pl.col("score") < 1
    told = quoted_expr(pl.when(failing).then("expected"), before=one.complaint)
    reason = pl.coalesce(told, pl.when(failing).then(pl.lit(BELOW_1)))
    return found.select("at", "score", reason=reason, error=pl.lit(None, dtype=pl.String))


def _answered(one: Function, asked: pl.DataFrame, twin: Any, params: dict[str, Any]) -> pl.DataFrame:
    """What was asked with a twin's ``answer`` beside it: numbers, or of a built-in function a struct.

    Raises:
        TypeError: It is anything else.
    """
    if not isinstance(twin, pl.Expr):
        raise TypeError(f"it returns {type(twin).__name__}, not a Polars expression")
    if not (one.builtin or one.twin_is_elementwise(twin, params, ("text", "expected"))):
        raise TypeError(OTHER_ROWS)
    found = asked.with_columns(answer=twin)
    dtype = found.schema["answer"]
    if not (dtype == pl.Boolean or dtype.is_numeric() or (one.builtin and isinstance(dtype, pl.Struct))):
        raise TypeError(f"it gives {dtype}, not Boolean or Float64")
    return found


def _warn(one: Function, wrong: BaseException) -> None:
    said = f"the twin of {one.name} cannot run, the function answers row by row: {said_by(wrong)}"
    warnings.warn(said, AssayWarning, stacklevel=1)


def _by_row(one: Function, asked: pl.DataFrame, limits: Limits | None) -> pl.DataFrame:
    """The function itself, row for row."""
    outcomes = _outcomes(one, asked.select(_TRIPLE).rows(), limits)
    found = {name: [getattr(outcome, name) for outcome in outcomes] for name in ANSWER}
    return pl.DataFrame({"at": asked["at"], **found}, schema=_ANSWERS)


def _outcomes(one: Function, triples: Sequence[tuple[Any, ...]], limits: Limits | None) -> list[Outcome]:
    """What the function says, asked once for each distinct text, gold and params."""

    def answer(triple: tuple[Any, ...]) -> Outcome:
        output, expected, typed, params = triple
        gold = expected if typed is None else json.loads(typed)
        return outcome_of(one, output, gold, {} if params is None else json.loads(params))

    distinct = [*dict.fromkeys(triples)]
    one = one.within(limits)
    if limits is not None and one.builtin:  # ours need no thread that can be left, only to stop between two rows
        limits = replace(limits, timeout=None) if one.limited else None
    outcomes = each(answer, distinct, limits, lambda said: Outcome(0.0, said, said, one.name))
    known = dict(zip(distinct, outcomes, strict=True))
    return [known[triple] for triple in triples]
