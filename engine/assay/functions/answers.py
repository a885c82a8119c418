"""Call registered functions: on one row or many, each with its expected value and params."""

import json
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

import polars as pl

from assay.calls.in_thread import each
from assay.calls.limits import NO_REWARD, Limits, is_user_error, to_reward
from assay.calls.places import failure
from assay.checks.base import BELOW_1, Outcome
from assay.errors import AssayWarning, describe_error, quoted
from assay.expressions.json import mended
from assay.expressions.pairs import quoted_expr
from assay.expressions.shared_columns import OTHER_ROWS, in_place, is_small, rowwise
from assay.functions.registry import Call, Function, function
from assay.functions.request import golds_of, is_listed
from assay.thresholds import THRESHOLDS

NO_FUNCTION = "the row names no verifier function, and the run has no default"
MISSING = "expected is missing"
_OF_GOLDS = " (the first of {} golds)"
_NO_GOLD = r"\A\[(?:[\[\], ]|null)*\]\z"
"""JSON text of a list without a gold."""
ANSWER: dict[str, Any] = {"score": pl.Float64, "reason": pl.String, "error": pl.String}
_TRIPLE = ("text", "expected", "typed", "params")
_GOLD = {"typed": pl.String, "expected": pl.String, "object": pl.String, "golds": pl.UInt32}


def outcomes_of(
    scorer: Function, calls: Sequence[Call], limits: Limits | None = None, *, several: bool = False
) -> list[Outcome]:
    """Score outputs with a function, each with its expected value and params; this is the definition.

    An exception, NaN, infinity or anything else that is not a number scores 0.0 and fills ``error``. For a built-in function, and if
    there are ``several``, a list is a list of golds: the best score counts.
    """
    golds = [_golds(scorer, expected, several) for _, expected, _ in calls]
    alone = [(text, gold, params) for (text, _, params), own in zip(calls, golds, strict=True) for gold in own]
    if scorer.many is not None:
        rewards = scorer.many(alone, None if limits is None else replace(limits, check=scorer.name))
        outcomes = [_outcome(scorer, call, reward) for call, reward in zip(alone, rewards, strict=True)]
    else:
        outcomes = each(partial(_outcome, scorer), alone, None if scorer.builtin else limits, partial(_failed, scorer))
    remaining = iter(outcomes)
    return [best_of([next(remaining) for _ in own]) for own in golds]


def _golds(scorer: Function, expected: Any, several: bool) -> list[Any]:
    if scorer.builtin and is_listed(expected):
        return golds_of(expected) or [None]
    if several and not scorer.builtin:
        return [mended(gold) if isinstance(gold, str) else gold for gold in expected if gold is not None] or [None]
    return [expected]


def _failed(scorer: Function, message: str) -> Outcome:
    return Outcome(0.0, message, message, scorer.name)


def _outcome(scorer: Function, call: Call, reward: float | Exception | None = None) -> Outcome:
    """Make one call, unless its reward is known."""
    try:
        if isinstance(reward, Exception):
            raise reward  # noqa: TRY301  (as the call itself would)
        if scorer.explain is not None:
            reason, error = scorer.explain(*call)
            return Outcome(float(not reason), reason, error, scorer.name)
        number, misfit = to_reward(scorer.fn(*call) if reward is None else reward)
        if misfit is not None:
            return _failed(scorer, NO_REWARD)
        reason = "" if number >= 1 else BELOW_1 if call[1] is None else f"{scorer.complaint}{quoted(str(call[1]))}"
        return Outcome(number, reason, None, scorer.name)
    except BaseException as exception:  # one broken function never ends a run
        if not is_user_error(exception):
            raise
        return _failed(scorer, failure(exception, scorer, scorer.name))


def best_of(outcomes: Sequence[Outcome]) -> Outcome:
    """Return the best outcome of several golds, the first of equals; one with an error counts only if all have one."""
    if len(outcomes) == 1:
        return outcomes[0]
    best = max(outcomes, key=lambda outcome: (outcome.error is None, outcome.score))
    if best.error is not None or not best.reason:
        return best
    return replace(best, reason=best.reason + _OF_GOLDS.format(len(outcomes)))


def why_unscored(name: str, *, absent: bool) -> str | None:
    """Return why a row that names this function cannot be scored, or None; ``absent``: it has no ``expected``."""
    scorer = function(name)
    if scorer is None:
        return f'unknown verifier function "{name}"' if name else NO_FUNCTION
    return MISSING if scorer.builtin and absent else None


def why_batch(columns: Sequence[pl.Series]) -> pl.Series:
    """``unscored`` on a batch. Reads the registry now: a function may be registered after the plan was compiled."""
    fn, problem, expected, typed = columns
    absent = expected.is_null() & typed.is_null()
    if typed.null_count() < len(typed):
        absent = absent | typed.str.contains(_NO_GOLD).fill_null(value=False)
    names = fn.unique().to_list()
    reasons = {name: why_unscored(name, absent=False) for name in names}
    builtin = [name for name in names if reasons[name] is None and why_unscored(name, absent=True)]
    if len(builtin) == len(names) and problem.null_count() == len(fn) and not absent.any():
        return pl.repeat(None, len(fn), dtype=pl.String, eager=True).alias(fn.name)
    frame = pl.DataFrame({"fn": fn, "problem": problem, "missing": absent & fn.is_in(builtin)})
    unusable = pl.col("fn").replace_strict(reasons, return_dtype=pl.String)
    missing = pl.when("missing").then(pl.lit(MISSING))
    return frame.select_seq(pl.coalesce("problem", unusable, missing)).to_series().alias(fn.name)


def answer_batch(columns: Sequence[pl.Series], limits: Limits | None = None, *, several: bool = False) -> pl.Series:
    """``outcomes_of`` on a batch: for each function, its twin if it has one, and the function itself on rows that the twin leaves null."""
    frame = pl.DataFrame([series.alias(name) for series, name in zip(columns, (*_TRIPLE, "fn"), strict=True)])
    frame = frame.with_row_index("at")
    answers = [pl.DataFrame(schema={"at": pl.UInt32, **ANSWER})]
    for (name,), part in frame.filter(pl.col("text").is_not_null()).partition_by("fn", as_dict=True).items():
        scorer = function(name)
        if scorer is None:
            continue
        # a user's twin runs even on a small batch, so that a broken one is always reported
        if scorer.expr is None or (scorer.builtin and is_small(columns[0])):
            answers.append(_call(scorer, part, limits, several=several))
        elif (scorer.builtin or several) and part["typed"].str.starts_with("[").any():
            answers.append(_answer_golds(scorer, part, limits))
        else:
            answers += _run_twins(scorer, part, limits)
    result = in_place(pl.concat(answers), frame.height)
    return result.select_seq(pl.struct(*ANSWER)).to_series().alias(columns[0].name)


def _call(scorer: Function, rows: pl.DataFrame, limits: Limits | None, *, several: bool = False) -> pl.DataFrame:
    """Call a function once for each distinct text, expected value and params, the latter two as JSON text."""
    triples = rows.select_seq(_TRIPLE).rows()
    distinct = [*dict.fromkeys(triples)]
    read = cache(json.loads) if scorer.builtin else json.loads  # a user's function may change what it gets
    calls = [
        (text, expected if typed is None else read(typed), {} if params is None else read(params))
        for text, expected, typed, params in distinct
    ]
    by_triple = dict(zip(distinct, outcomes_of(scorer, calls, limits, several=several), strict=True))
    outcomes = [by_triple[triple] for triple in triples]
    fields = {name: [getattr(outcome, name) for outcome in outcomes] for name in ANSWER}
    return pl.DataFrame({"at": rows["at"], **fields}, schema={"at": pl.UInt32, **ANSWER})


def _answer_golds(scorer: Function, rows: pl.DataFrame, limits: Limits | None) -> pl.DataFrame:
    """Answer where some rows have lists of golds, nine times as fast as their calls: each gold is a row, the best counts."""
    listed = pl.col("typed").str.starts_with("[").fill_null(value=False)
    lists = rows.filter(listed).drop("expected")
    table: list[tuple[str, str | None, str | None, int]] = []
    for text in lists["typed"].unique().to_list():
        golds = _golds(scorer, json.loads(text), several=True)
        for gold in golds:
            is_text = isinstance(gold, str | None)
            table.append((text, gold if is_text else None, None if is_text else json.dumps(gold), len(golds)))
    golds_of_lists = pl.DataFrame(table, schema=_GOLD, orient="row")
    lists = lists.join(golds_of_lists, on="typed", how="left", maintain_order="left_right")
    lists = lists.drop("typed").rename({"object": "typed"}).select_seq("at", *_TRIPLE, "golds")
    others = rows.filter(~listed).select_seq("at", *_TRIPLE, golds=pl.lit(1, dtype=pl.UInt32))
    alone = pl.concat([others, lists]).rename({"at": "row"}).with_row_index("at")
    answers = in_place(pl.concat(_run_twins(scorer, alone, limits)), alone.height).select_seq(*ANSWER)
    answers = answers.hstack(alone.select_seq("row", "golds")).with_columns_seq(erred=pl.col("error").is_not_null())
    best = answers.sort("row", "erred", "score", descending=[False, False, True], maintain_order=True)
    best = best.unique("row", keep="first", maintain_order=True)
    before, behind = _OF_GOLDS.split("{}")
    is_one_of = (pl.col("golds") > 1) & ~pl.col("erred") & (pl.col("reason") != "")
    of_golds = pl.concat_str("reason", pl.lit(before), "golds", pl.lit(behind))
    reason = pl.when(is_one_of).then(of_golds).otherwise("reason")
    return best.select_seq(pl.col("row").alias("at"), "score", reason.alias("reason"), "error")


def _run_twins(scorer: Function, frame: pl.DataFrame, limits: Limits | None) -> list[pl.DataFrame]:
    """Return the answers of the function's twin, and of the function itself where that has none."""
    rest, answers = [], []
    if frame["typed"].null_count() < frame.height:
        if scorer.builtin:  # compares with str() of any value
            is_object = pl.col("typed").str.starts_with("{") & scorer.takes_json
            other = pl.when(is_object.not_()).then("typed")
            as_text = rowwise(other, lambda value: mended(str(json.loads(value))), pl.String, distinct=True)
            frame = frame.with_columns_seq(expected=pl.coalesce("expected", as_text, "typed"))
        else:
            rest.append(frame.filter(pl.col("typed").is_not_null()))
            frame = frame.filter(pl.col("typed").is_null())
    for part, params in _param_sets(scorer, frame, rest):
        result = _run_twin(scorer, part, params)
        unanswered = result["score"].is_finite().fill_null(value=False).not_()
        rest.append(part.filter(unanswered))
        answers.append(result.filter(unanswered.not_()))
    return answers + [_call(scorer, rows, limits) for rows in rest if rows.height]


def _param_sets(
    scorer: Function, frame: pl.DataFrame, rest: list[pl.DataFrame]
) -> Iterator[tuple[pl.DataFrame, dict[str, Any]]]:
    """Yield the rows that the twin can take, grouped by the params that it reads; ``rest`` receives the others."""

    def used(text: str) -> str:
        params = json.loads(text)
        if scorer.params is not None:
            params = {name: params[name] for name in scorer.params if name in params}
        return json.dumps(params, sort_keys=True)

    frame = frame.with_columns_seq(set=rowwise(pl.col("params"), used, pl.String, distinct=True).fill_null("{}"))
    counts = frame["set"].value_counts()
    if counts.height > max(1, THRESHOLDS.param_sets):
        rare = frame["set"].is_in(counts.filter(pl.col("count") < THRESHOLDS.param_rows)["set"].implode())
        rest.append(frame.filter(rare))
        frame = frame.filter(~rare)
    for part in frame.partition_by("set", maintain_order=True):
        yield part, json.loads(part["set"][0])


def _run_twin(scorer: Function, rows: pl.DataFrame, params: dict[str, Any]) -> pl.DataFrame:
    """Run the twin; the score is null where the function must run, everywhere if the twin cannot run."""
    assert scorer.expr is not None  # noqa: S101  (only functions with a twin come here)
    twin = None
    try:
        twin = scorer.expr(pl.col("text"), pl.col("expected"), params)
        if not isinstance(twin, pl.Expr):
            raise TypeError(f"it returns {type(twin).__name__}, not a Polars expression")  # noqa: TRY301  (as if it had raised)
        if not (scorer.builtin or scorer.twin_is_elementwise(twin, params, ("text", "expected"))):
            raise TypeError(OTHER_ROWS)  # noqa: TRY301
        result = rows.with_columns_seq(answer=twin)
        dtype = result.schema["answer"]
        if not (dtype == pl.Boolean or dtype.is_numeric() or (scorer.builtin and isinstance(dtype, pl.Struct))):
            raise TypeError(f"it gives {dtype}, not Boolean or Float64")  # noqa: TRY301
    except BaseException as exception:  # a user's twin may raise anything
        if not is_user_error(exception):
            raise
        # a built-in one rejects bad params, and the function names the problem
        if twin is not None or not scorer.builtin:
            message = (
                f"the twin of {scorer.name} cannot run, so the function runs row by row: {describe_error(exception)}"
            )
            warnings.warn(message, AssayWarning, stacklevel=1)
        return rows.select_seq("at", *(pl.lit(None, dtype=dtype).alias(name) for name, dtype in ANSWER.items()))
    if isinstance(result.schema["answer"], pl.Struct):
        return result.select_seq("at", pl.col("answer").struct.unnest()).cast({"score": pl.Float64})
    result = result.with_columns_seq(score=pl.col("answer").cast(pl.Float64))
    failing = pl.col("score") < 1
    named_reason = quoted_expr(pl.when(failing).then("expected"), before=scorer.complaint)
    reason = pl.coalesce(named_reason, pl.when(failing).then(pl.lit(BELOW_1)))
    return result.select_seq("at", "score", reason=reason, error=pl.lit(None, dtype=pl.String))
