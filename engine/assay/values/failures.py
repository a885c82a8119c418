"""Rollouts whose generation failed, by what their rows say: such a rollout has nothing to score.

A row says so in one of three ways:

* ``generation_error``, a column that environments of Assay write, is not null.
* ``error`` stands beside a completion in which nothing was said: null, an empty text or no message.
* ``error`` stands in a row of verifiers up to 0.1.14, where it is never about scoring, whatever the completion.

Rows without either column, but with a ``state`` and a ``reward``, are those of an environment as they are in memory; their state
says the same by fields of these names.

What environments of Assay save has ``error`` for what went wrong in scoring, too. There a row that has a reward was scored, and a
completion that ends with somebody else's message is one that broke off. So files that were saved before there was a
``generation_error`` are read right, but for an answer that was whole when something after it failed: nothing tells it from one
that a broken rubric left unscored.

A result of scoring has an ``error``, which is about that scoring, beside ``passed`` and ``feedback``. What its input had under
these names is ``prior_error`` and so on, and that is looked at.
"""

import json
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple

import polars as pl

from assay.expressions.json import NOT_JSON, loads
from assay.expressions.lane import exactly, rowwise
from assay.names import BAD
from assay.values.arguments import without_nulls

__all__ = ["GENERATION_ERROR", "TIMES", "failure", "generation_error", "no_rollout_expr"]

GENERATION_ERROR = "generation_error"
"""Column, and field of a state, that says why the generation failed."""

TIMES = ("generation_ms", "scoring_ms", "total_ms")
"""Columns that environments of Assay save beside their rollouts."""

_COMPLETION, _ERROR, _REWARD, _STATE = "completion", "error", "reward", "state"
_RESULTS = ("passed", "feedback", _ERROR)
"""Columns that a scoring adds; what had these names before gets another."""

_PRIOR = "prior_"
_VERIFIERS = ("example_id", "prompt", "timing", "metrics")
"""Columns of what verifiers up to 0.1.14 wrote, besides the reward."""

_NOTHING = ("null", "false", "0", "0.0", "-0.0", "NaN")
_OPENING = ("{", "[")
"""JSON texts of values that are nothing, and how those of structure begin: what a column of several types makes of them."""

_SHOWN = 500
"""Characters of an error that are told."""


class _Said(NamedTuple):
    """Where rows say that their generation failed.

    Attributes:
        error: The column that may say it; ``""`` for none.
        reward: The column that tells, where it is not null, that the row was scored; ``""`` for none.
        always: Whether an error is one of the generation, whatever the completion.
        breaks_off: Whether a completion that does not end with the assistant broke off.
    """

    error: str = ""
    reward: str = ""
    always: bool = False
    breaks_off: bool = False


def _said(names: AbstractSet[str]) -> _Said:
    scorings = min(_times_there(name, names) for name in _RESULTS)
    # what has a name already keeps it, so that the oldest has the shortest
    error, reward = (
        "" if _times_there(name, names) <= scorings else _PRIOR + name if scorings else name
        for name in (_ERROR, _REWARD)
    )
    saved = all(name in names for name in TIMES)
    if error:
        by_verifiers = bool(reward) and all(name in names for name in _VERIFIERS)
        return _Said(error, reward if saved else "", by_verifiers and not saved, saved and bool(reward))
    # NOTE: states are large, and reading them from far away for what hardly any has would cost more than the rest
    return _Said(_STATE, reward) if reward and _STATE in names and GENERATION_ERROR not in names else _Said()


def _times_there(name: str, names: AbstractSet[str]) -> int:
    times = 0
    while _PRIOR * times + name in names:
        times += 1
    return times


# ── row by row: the definition ──────────────────────────────────────────────────────────────────────────────────────────


def failure(row: Mapping[str, Any]) -> str | None:
    """Why a row cannot be scored because its generation failed, from its columns as loaded; None where nothing says that it did."""
    told = generation_error(row)
    return None if told is None else _reason(told)


def generation_error(row: Mapping[str, Any]) -> str | None:
    """What made the generation of a row fail."""
    told, said = _words(row.get(GENERATION_ERROR)), _said(row.keys())
    if told is not None or not said.error:
        return told
    silent = said.always or _is_silent(row, said)
    if said.error == _STATE:
        return _of_state(row[_STATE], silent=silent)
    return _words(row[said.error]) if silent else None


def _is_silent(row: Mapping[str, Any], said: _Said) -> bool:
    """Whether there is no answer, and nobody has scored one."""
    if said.reward and row[said.reward] is not None:
        return False
    completion = row.get(_COMPLETION)
    if not completion:
        return True
    last = completion[-1] if isinstance(completion, list | tuple) else None
    return said.breaks_off and isinstance(last, Mapping) and last.get("role") != "assistant"


def _words(error: Any) -> str | None:
    """An error as it is told; None for what says that there is none."""
    if isinstance(error, str) and error.startswith(_OPENING):
        said = loads(error)
        error = error if said is NOT_JSON else said
    error = without_nulls(error)
    if not error or error != error or (isinstance(error, str) and error in _NOTHING):  # noqa: PLR0124  (NaN)
        return None
    if isinstance(error, float) and error.is_integer():  # beside a fraction a whole number is a float
        error = int(error)
    told = error if isinstance(error, str) else json.dumps(error, ensure_ascii=False, default=str)
    return told[:_SHOWN]


def _of_state(state: Any, *, silent: bool) -> str | None:
    if isinstance(state, str):
        state = loads(state) if _may_tell(state, silent=silent) else None
    if not isinstance(state, Mapping):
        return None
    told = _words(state.get(GENERATION_ERROR))
    return _words(state.get(_ERROR)) if told is None and silent else told


def _may_tell(state: str, *, silent: bool) -> bool:
    """Whether JSON text is worth reading: states are large."""
    return silent or GENERATION_ERROR in state


def _reason(told: str) -> str:
    return f"generation failed: {told}"


# ── the same as columns ─────────────────────────────────────────────────────────────────────────────────────────────────


def no_rollout_expr(schema: pl.Schema) -> pl.Expr | None:
    """Why there is nothing to score in a row: it could not be read, a request failed, or the generation did.

    Returns:
        A String expression; None where no row of such columns says anything.
    """
    said = [pl.col(BAD)] if BAD in schema else []
    failed = _failure_expr(schema)
    said += [] if failed is None else [failed]
    return pl.coalesce(said) if said else None


def _failure_expr(schema: pl.Schema) -> pl.Expr | None:
    """``failure`` as an expression."""
    said, told = _said(schema.keys()), []
    if GENERATION_ERROR in schema:
        told.append(_words_expr(exactly(GENERATION_ERROR), schema[GENERATION_ERROR]))
    if said.error:
        silent = pl.lit(value=True) if said.always else _silent_expr(schema, said)
        if said.error == _STATE:
            told.append(_of_state_expr(schema[_STATE], silent))
        else:
            told.append(_words_expr(pl.when(silent).then(exactly(said.error)), schema[said.error]))
    known = [one for one in told if one is not None]
    return pl.concat_str(pl.lit(_reason("")), pl.coalesce(known)) if known else None


def _silent_expr(schema: pl.Schema, said: _Said) -> pl.Expr:
    completion, dtype = pl.col(_COMPLETION), schema[_COMPLETION]
    if isinstance(dtype, pl.List):
        silent = completion.is_null() | (completion.list.len() == 0)
        inner = dtype.inner
        if said.breaks_off and isinstance(inner, pl.Struct):
            last = completion.list.last()
            by_other = pl.lit(value=True)
            if "role" in inner.to_schema():
                by_other = last.struct.field("role").cast(pl.String).ne_missing("assistant")
            silent |= last.is_not_null() & by_other
    else:
        silent = completion.is_null() | (completion.cast(pl.String) == "")
    return silent & exactly(said.reward).is_null() if said.reward else silent


def _words_expr(error: pl.Expr, dtype: Any) -> pl.Expr | None:
    if dtype == pl.Null:
        return None
    if dtype != pl.String:
        return rowwise(error, _words, pl.String)
    structured = error.str.starts_with(_OPENING[0]) | error.str.starts_with(_OPENING[1])
    plain = pl.when(error.is_in(["", *_NOTHING]).not_()).then(error.str.head(_SHOWN))
    return pl.when(structured).then(rowwise(pl.when(structured).then(error), _words, pl.String)).otherwise(plain)


def _of_state_expr(dtype: Any, silent: pl.Expr) -> pl.Expr | None:
    state = pl.col(_STATE)
    if dtype == pl.String:
        worth = silent | state.str.contains(GENERATION_ERROR, literal=True)
    elif isinstance(dtype, pl.Struct):
        worth = silent | pl.lit(GENERATION_ERROR in dtype.to_schema())
    else:
        return None
    asked = pl.when(worth & state.is_not_null()).then(pl.struct(state.alias("state"), silent.alias("silent")))
    return rowwise(asked, lambda one: _of_state(one["state"], silent=one["silent"]), pl.String)
