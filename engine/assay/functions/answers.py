"""Run registered functions over many rows, each with its expected value and params."""

import json
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import polars as pl

from assay.calls.in_thread import each
from assay.calls.limits import NO_REWARD, Limits, own_failure, settled
from assay.calls.places import failure
from assay.checks.base import BELOW_1, Outcome
from assay.errors import AssayWarning, quoted, said_by
from assay.expressions.json import mended
from assay.expressions.lane import OTHER_ROWS, in_place, is_small, once, rowwise
from assay.expressions.pairs import quoted_expr
from assay.functions.golds import golds_of, is_listed
from assay.functions.registry import Call, Function, function
from assay.functions.request_columns import PLAIN_VALUE
from assay.thresholds import THRESHOLDS

NO_FUNCTION = "the row names no verifier function, and the run has no default"
MISSING = "expected is missing"
_OF_GOLDS = " (the first of {} golds)"
_NO_GOLD = r"\A\[(?:[\[\], ]|null)*\]\z"
"""JSON text of a list without a gold."""
ANSWER: dict[str, Any] = {"score": pl.Float64, "reason": pl.String, "error": pl.String}
_ANSWERS = {"at": pl.UInt32, **ANSWER}
_TRIPLE = ("text", "expected", "typed", "params")
_COLUMNS = (*_TRIPLE, "fn")
_GOLD = {"typed": pl.String, "expected": pl.String, "object": pl.String, "golds": pl.UInt32}


def outcome_of(scorer: Function, output: str, expected: Any, params: dict[str, Any]) -> Outcome:
    """Score one output with a function; this is the definition.

    An exception, NaN, infinity or anything else that is not a number scores 0.0 and fills ``error``. For a built-in function, a list
    is a list of golds: the best score counts.
    """
    if scorer.builtin and is_listed(expected):
        return best_of([outcome_of(scorer, output, gold, params) for gold in golds_of(expected) or [None]])
    return _outcome(scorer, partial(scorer.fn, output, expected, params), output, expected, params)


def best_of(outcomes: Sequence[Outcome]) -> Outcome:
    """Return the best outcome of several golds, the first of equals; one with an error counts only if all have one."""
    best = max(outcomes, key=lambda outcome: (outcome.error is None, outcome.score))
    if len(outcomes) == 1 or best.error is not None or not best.reason:
        return best
    return replace(best, reason=best.reason + _OF_GOLDS.format(len(outcomes)))


def _outcome(scorer: Function, call: Callable[[], Any], output: str, expected: Any, params: dict[str, Any]) -> Outcome:
    """``outcome_of``, given the call."""
    try:
        reward, misfit = settled(call())
        if misfit is not None:
            return Outcome(0.0, NO_REWARD, NO_REWARD, scorer.name)
        reason, error = _reason_and_error(scorer, output, expected, params) if reward < 1 else ("", None)
    except BaseException as exception:  # one broken function never ends a run
        if not own_failure(exception):
            raise
        message = failure(exception, scorer, scorer.name)
        return Outcome(0.0, message, message, scorer.name)
    return Outcome(reward if error is None else 0.0, reason, error, scorer.name)


def _reason_and_error(
    scorer: Function, output: str, expected: Any, params: Mapping[str, Any]
) -> tuple[str, str | None]:
    if scorer.explain is not None:
        return scorer.explain(output, expected, params)
    return (BELOW_1 if expected is None else f"{scorer.complaint}{quoted(str(expected))}"), None


def why_unscored(name: str, *, absent: bool) -> str | None:
    """Return why a row that names this function cannot be scored, or None; ``absent``: it has no ``expected``."""
    scorer = function(name)
    if scorer is None:
        return f'unknown verifier function "{name}"' if name else NO_FUNCTION
    return MISSING if scorer.builtin and absent else None


# ── a batch ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def why_batch(columns: Sequence[pl.Series]) -> pl.Series:
    """``unscored`` on a batch. Reads the registry now: a function may be registered after the plan was compiled."""
    fn, problem, expected, typed = columns
    absent = expected.is_null() & typed.is_null()
    if typed.null_count() < len(typed):
        absent = absent | typed.str.contains(_NO_GOLD).fill_null(value=False)
    if is_small(fn):
        rows = zip(fn.to_list(), problem.to_list(), absent.to_list(), strict=True)
        reasons = [problem_text or why_unscored(name, absent=no_expected) for name, problem_text, no_expected in rows]
        return pl.Series(fn.name, reasons, dtype=pl.String)
    names = fn.unique().to_list()
    reason_by_name = {name: why_unscored(name, absent=False) for name in names}
    builtin = [name for name in names if reason_by_name[name] is None and why_unscored(name, absent=True)]
    if len(builtin) == len(names) and problem.null_count() == len(fn) and not absent.any():
        return pl.repeat(None, len(fn), dtype=pl.String, eager=True).alias(fn.name)
    frame = pl.DataFrame({"fn": fn, "problem": problem, "missing": absent & fn.is_in(builtin)})
    unusable = pl.col("fn").replace_strict(reason_by_name, return_dtype=pl.String)
    missing = pl.when("missing").then(pl.lit(MISSING))
    return frame.select_seq(pl.coalesce("problem", unusable, missing)).to_series().alias(fn.name)


def answer_batch(columns: Sequence[pl.Series], limits: Limits | None = None) -> pl.Series:
    """``outcome_of`` on a batch."""
    text, _, typed, _, fn = columns
    if typed.null_count() < len(typed):
        builtin = [name for name in fn.unique().to_list() if (scorer := function(name)) is not None and scorer.builtin]
        listed = text.is_not_null() & typed.str.starts_with("[").fill_null(value=False) & fn.is_in(builtin)
        if listed.any():
            return _answer_golds(columns, listed, limits)
    return _answer(columns, limits)


def _answer_golds(columns: Sequence[pl.Series], listed: pl.Series, limits: Limits | None) -> pl.Series:
    """Answer for rows of which some have lists of golds: each gold is a row, and the best row counts."""
    rows = pl.DataFrame([series.alias(name) for series, name in zip(columns, _COLUMNS, strict=True)])
    rows = rows.with_row_index("row")
    lists = rows.filter(listed).drop("expected")
    lists = lists.join(_golds_table(lists["typed"].unique()), on="typed", how="left", maintain_order="left_right")
    lists = lists.drop("typed").rename({"object": "typed"})
    names = ["row", *_COLUMNS, "golds"]
    each = pl.concat([rows.filter(~listed).with_columns_seq(golds=pl.lit(1, dtype=pl.UInt32)), lists.select_seq(names)])
    answers = _answer([each[name] for name in _COLUMNS], limits).struct.unnest()
    answers = answers.hstack(each.select_seq("row", "golds")).with_columns_seq(erred=pl.col("error").is_not_null())
    best = answers.sort("row", "erred", "score", descending=[False, False, True], maintain_order=True).unique(
        "row", keep="first", maintain_order=True
    )
    of_golds = pl.format(_OF_GOLDS, "golds")
    is_one_of = (pl.col("golds") > 1) & ~pl.col("erred") & (pl.col("reason") != "")
    reason = pl.when(is_one_of).then(pl.col("reason") + of_golds).otherwise("reason").alias("reason")
    return best.with_columns_seq(reason).select_seq(pl.struct(*ANSWER)).to_series().alias(columns[0].name)


def _golds_table(texts: pl.Series) -> pl.DataFrame:
    """Return each gold of lists in JSON text: text as ``expected``, other values as JSON text in ``object``, and their number."""
    rows: list[tuple[str, str | None, str | None, int]] = []
    for text in texts.to_list():
        golds = golds_of(json.loads(text)) or [None]
        for gold in golds:
            is_text = isinstance(gold, str | None)
            rows.append((text, gold if is_text else None, None if is_text else json.dumps(gold), len(golds)))
    columns = zip(*rows, strict=True)
    return pl.DataFrame(dict(zip(_GOLD, columns, strict=True)), schema=_GOLD)


def _answer(columns: Sequence[pl.Series], limits: Limits | None) -> pl.Series:
    """Answer for rows without lists of golds: one call per function, with all of its rows."""
    if is_small(columns[0]) and not any(_has_users_twin(name) for name in columns[-1].unique()):
        return _answer_small_batch(columns, limits)
    named = [series.alias(name) for series, name in zip(columns, (*_TRIPLE, "fn"), strict=True)]
    frame = pl.DataFrame(named).with_row_index("at")
    scorable = frame.filter(pl.col("text").is_not_null()) if columns[0].null_count() else frame
    is_mixed = scorable["fn"].n_unique() != 1
    answers = [pl.DataFrame(schema=_ANSWERS)]
    for part in scorable.partition_by("fn", maintain_order=True) if is_mixed else [scorable]:
        scorer = function(part["fn"][0])
        if scorer is not None:
            answers += _answer_rows(scorer, part.drop("fn"), limits)
    result = pl.concat(answers)
    if result.height < frame.height or len(answers) > 2:  # noqa: PLR2004  (the empty frame and one that is in order)
        result = in_place(result, frame.height)
    return result.select_seq(pl.struct(*ANSWER)).to_series().alias(columns[0].name)


def _has_users_twin(name: str) -> bool:
    """Whether a user's function has a twin: it runs even on a small batch, so that a broken twin is always reported."""
    scorer = function(name)
    return scorer is not None and scorer.expr is not None and not scorer.builtin


def _answer_small_batch(columns: Sequence[pl.Series], limits: Limits | None) -> pl.Series:
    """``outcome_of`` on a small batch."""
    *triples, names = (series.to_list() for series in columns)
    rows = [*zip(*triples, strict=True)]
    answers: list[dict[str, Any] | None] = [None] * len(rows)
    for name in dict.fromkeys(names):
        scorer = function(name)
        indices = [at for at, row in enumerate(rows) if names[at] == name and row[0] is not None]
        for at, outcome in zip(
            indices, _outcomes(scorer, [rows[at] for at in indices], limits) if scorer else (), strict=False
        ):
            answers[at] = {field: getattr(outcome, field) for field in ANSWER}
    return pl.Series(columns[0].name, answers, dtype=pl.Struct(ANSWER))


def _answer_rows(scorer: Function, frame: pl.DataFrame, limits: Limits | None) -> list[pl.DataFrame]:
    """Answer for one function: its twin if it has one, and the function itself on rows that the twin leaves null."""
    if scorer.expr is None:
        return [_run_function(scorer, frame, limits)]
    if frame["typed"].null_count() < frame.height:
        is_object = pl.col("typed").str.starts_with("{") & scorer.takes_json
        other = rowwise(
            pl.when(is_object.not_()).then("typed"),
            lambda value: mended(str(json.loads(value))),
            pl.String,
            distinct=True,
        )
        frame = frame.with_columns_seq(expected=pl.coalesce("expected", other, "typed"))
    parts, remaining = _param_sets(scorer, frame)
    answers = []
    for part, params in parts:
        result = _run_twin(scorer, part, params)
        unanswered = result["score"].is_finite().fill_null(value=False).not_()
        if unanswered.any():
            remaining.append(part.filter(unanswered))
            result = result.filter(unanswered.not_())
        answers.append(result)
    return answers + [
        _run_function(scorer, rows.select_seq("at", *_TRIPLE), limits) for rows in remaining if rows.height
    ]


_Parts = list[tuple[pl.DataFrame, dict[str, Any]]]


def _param_sets(scorer: Function, frame: pl.DataFrame) -> tuple[_Parts, list[pl.DataFrame]]:
    """Split rows into those the twin can take, grouped by the params that it reads, and the rest."""
    remaining = []
    if frame["typed"].null_count() < frame.height and not scorer.builtin:
        remaining.append(frame.filter(pl.col("typed").is_not_null()))
        frame = frame.filter(pl.col("typed").is_null())
    used = once(pl.col("params"), partial(_used_params, scorer=scorer), pl.String).fill_null("{}")
    frame = frame.with_columns_seq(set=used)
    sets = frame["set"].unique(maintain_order=True).to_list()
    if len(sets) <= 1:
        return [(frame, json.loads(text)) for text in sets], remaining
    counts = frame["set"].value_counts()
    if counts.height > THRESHOLDS.param_sets:
        rare = frame["set"].is_in(counts.filter(pl.col("count") < THRESHOLDS.param_rows)["set"].implode())
        remaining.append(frame.filter(rare))
        frame = frame.filter(~rare)
    parts = frame.partition_by("set", maintain_order=True) if frame.height else []
    return [(part, json.loads(part["set"][0])) for part in parts], remaining


def _used_params(params: pl.Series, scorer: Function) -> pl.Series:
    """Reduce params to those that the function reads, with sorted keys.

    Every row may differ, so columns do most of it. In an object of plain values, a name that occurs once and before a colon is
    a key.
    """
    text = pl.col("params")
    used = text
    if scorer.params is not None:
        is_certain = (text.str.count_matches(r"[\[{]") == 1) & text.str.contains("\\", literal=True).not_()
        members = []
        for key in (json.dumps(name, ensure_ascii=False) for name in scorer.params):
            count = text.str.count_matches(key, literal=True)
            members.append(text.str.extract(rf"({re.escape(key)}: ?{PLAIN_VALUE})[,}}]", 1))
            is_certain = is_certain & ((count == 0) | ((count == 1) & members[-1].is_not_null()))
        inner = pl.concat_str(members, separator=",", ignore_nulls=True) if members else pl.lit("")
        used = pl.when(is_certain).then(pl.concat_str(pl.lit("{"), inner, pl.lit("}"))).otherwise(text)

    def in_order(texts: pl.Series) -> pl.Series:
        objects = (json.loads(text) for text in texts.to_list())
        if scorer.params is not None:
            names = scorer.params
            objects = ({name: params[name] for name in names if name in params} for params in objects)
        return pl.Series([json.dumps(params, sort_keys=True) for params in objects], dtype=pl.String)

    return params.to_frame("params").select_seq(once(used, in_order, pl.String)).to_series()


def _run_twin(scorer: Function, rows: pl.DataFrame, params: dict[str, Any]) -> pl.DataFrame:
    """Run the twin; the score is null where the function must run."""
    assert scorer.expr is not None  # noqa: S101  (only functions with a twin come here)
    no_answers = rows.select_seq("at", *(pl.lit(None, dtype=dtype).alias(name) for name, dtype in ANSWER.items()))
    try:
        twin = scorer.expr(pl.col("text"), pl.col("expected"), params)
    except BaseException as exception:  # a user's twin may raise anything
        if not own_failure(exception):
            raise
        if not scorer.builtin:  # a built-in twin rejects bad params, and the function then names the problem
            _warn(scorer, exception)
        return no_answers
    try:
        result = _twin_answers(scorer, rows, twin, params)
    except BaseException as exception:
        if not own_failure(exception):
            raise
        _warn(scorer, exception)
        return no_answers
    if isinstance(result.schema["answer"], pl.Struct):
        return result.select_seq("at", pl.col("answer").struct.unnest()).cast({"score": pl.Float64})
    result = result.with_columns_seq(score=pl.col("answer").cast(pl.Float64))
    failing = pl.col("score") < 1
    named_reason = quoted_expr(pl.when(failing).then("expected"), before=scorer.complaint)
    reason = pl.coalesce(named_reason, pl.when(failing).then(pl.lit(BELOW_1)))
    return result.select_seq("at", "score", reason=reason, error=pl.lit(None, dtype=pl.String))


def _twin_answers(scorer: Function, rows: pl.DataFrame, twin: Any, params: dict[str, Any]) -> pl.DataFrame:
    """Add the twin's ``answer`` to the rows: numbers, or a struct from a built-in twin.

    Raises:
        TypeError: The answer has another type, or depends on other rows.
    """
    if not isinstance(twin, pl.Expr):
        raise TypeError(f"it returns {type(twin).__name__}, not a Polars expression")
    if not (scorer.builtin or scorer.twin_is_elementwise(twin, params, ("text", "expected"))):
        raise TypeError(OTHER_ROWS)
    result = rows.with_columns_seq(answer=twin)
    dtype = result.schema["answer"]
    if not (dtype == pl.Boolean or dtype.is_numeric() or (scorer.builtin and isinstance(dtype, pl.Struct))):
        raise TypeError(f"it gives {dtype}, not Boolean or Float64")
    return result


def _warn(scorer: Function, exception: BaseException) -> None:
    message = f"the twin of {scorer.name} cannot run, so the function runs row by row: {said_by(exception)}"
    warnings.warn(message, AssayWarning, stacklevel=1)


def _run_function(scorer: Function, rows: pl.DataFrame, limits: Limits | None) -> pl.DataFrame:
    """Run the function itself, row by row."""
    outcomes = _outcomes(scorer, rows.select_seq(_TRIPLE).rows(), limits)
    fields = {name: [getattr(outcome, name) for outcome in outcomes] for name in ANSWER}
    return pl.DataFrame({"at": rows["at"], **fields}, schema=_ANSWERS)


def _outcomes(scorer: Function, triples: Sequence[tuple[Any, ...]], limits: Limits | None) -> list[Outcome]:
    """Run the function once for each distinct text, expected value and params."""
    distinct = [*dict.fromkeys(triples)]
    if scorer.many is not None:
        calls = [_call(triple) for triple in distinct]
        limits = None if limits is None else replace(limits, check=scorer.name)
        rewards = scorer.many(calls, limits)
        outcomes = [
            _outcome(scorer, partial(_result, reward), *call) for reward, call in zip(rewards, calls, strict=True)
        ]
    else:
        outcomes = _each_outcome(scorer, distinct, limits)
    by_triple = dict(zip(distinct, outcomes, strict=True))
    return [by_triple[triple] for triple in triples]


def _each_outcome(scorer: Function, triples: Sequence[tuple[Any, ...]], limits: Limits | None) -> list[Outcome]:
    limits = None if scorer.builtin else limits  # built-in functions need no thread that can be abandoned
    return each(
        lambda triple: outcome_of(scorer, *_call(triple)),
        triples,
        limits,
        lambda message: Outcome(0.0, message, message, scorer.name),
    )


def _call(triple: tuple[Any, ...]) -> Call:
    output, expected, typed, params = triple
    return output, expected if typed is None else json.loads(typed), {} if params is None else json.loads(params)


def _result(answer: float | Exception) -> float:
    if isinstance(answer, Exception):
        raise answer
    return answer
