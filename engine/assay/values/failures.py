"""Detect rollouts whose generation failed, which cannot be scored, by their columns.

A row is a failed generation in one of three cases:

* ``generation_error``, a column that Assay's environments write, is not null.
* ``error`` is set and the completion is empty: null, an empty text or no messages.
* ``error`` is set in a row that verifiers up to 0.1.14 wrote, where it is never about scoring, whatever the completion is.

Rows without these columns, but with a ``state`` and a ``reward``, come from an environment in memory; their state has fields of the
same names.

Files that Assay's environments save use ``error`` for failures of scoring, too. In such a file, a row with a reward was scored, and a
completion that does not end with a message of the assistant broke off. So files from before there was a ``generation_error`` are
read correctly, with one exception: a complete answer after which something failed looks like one that a broken rubric left
unscored.

A result of scoring has an ``error`` about that scoring, beside ``passed`` and ``feedback``. If its input had columns of these
names, they are now called ``prior_error`` and so on, and those are used here.
"""

import json
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple

import polars as pl

from assay.expressions.json import NOT_JSON, loads
from assay.expressions.lane import exactly, rowwise
from assay.expressions.mixed import without_nulls
from assay.names import BAD, COMPLETION
from assay.values.chats import EXACT, PLAIN_TEXT, is_plain_text

GENERATION_ERROR = "generation_error"
"""Column, and field of a state, with the reason why the generation failed."""

TIMES = ("generation_ms", "scoring_ms", "total_ms")
"""Columns that Assay's environments save with their rollouts."""

_ERROR, _REWARD, _STATE = "error", "reward", "state"
_RESULTS = ("passed", "feedback", _ERROR)
"""Columns that scoring adds; existing columns of these names are renamed."""

_PRIOR = "prior_"
_VERIFIERS = ("example_id", "prompt", "timing", "metrics")
"""Columns that verifiers up to 0.1.14 wrote, in addition to the reward."""

_NOTHING = ("null", "false", "0", "0.0", "-0.0", "NaN")
_OPENING = ("{", "[")
"""JSON texts of empty values, and the first characters of structured ones, as in columns of several types."""

_SHOWN = 500
"""Maximum length of an error in the reason, in characters."""


class _Source(NamedTuple):
    """The columns that tell whether a generation failed.

    Attributes:
        error: The column with the error; ``""`` if there is none.
        reward: The column that is not null if the row was scored; ``""`` if there is none.
        always: Whether an error is always about the generation, whatever the completion is.
        breaks_off: Whether a completion that does not end with a message of the assistant broke off.
    """

    error: str = ""
    reward: str = ""
    always: bool = False
    breaks_off: bool = False


def _source(names: AbstractSet[str]) -> _Source:
    scorings = min(_prefixes(name, names) for name in _RESULTS)
    # each scoring adds a prefix only if the name is taken, so the oldest column has the shortest name
    error, reward = (
        "" if _prefixes(name, names) <= scorings else _PRIOR + name if scorings else name for name in (_ERROR, _REWARD)
    )
    saved = all(name in names for name in TIMES)
    if error:
        by_verifiers = bool(reward) and all(name in names for name in _VERIFIERS)
        return _Source(error, reward if saved else "", by_verifiers and not saved, saved and bool(reward))
    # NOTE: states are large; reading them, possibly over a network, for a rare field would cost more than everything else
    return _Source(_STATE, reward) if reward and _STATE in names and GENERATION_ERROR not in names else _Source()


def failure_columns(names: AbstractSet[str]) -> set[str]:
    """Return the columns, of those that there are, that tell whether a generation failed."""
    source = _source(names)
    return {GENERATION_ERROR, source.error or GENERATION_ERROR, source.reward or GENERATION_ERROR} & names


def _prefixes(name: str, names: AbstractSet[str]) -> int:
    times = 0
    while _PRIOR * times + name in names:
        times += 1
    return times


def failure(row: Mapping[str, Any]) -> str | None:
    """Return why a row cannot be scored if its generation failed, from its columns as loaded; else None."""
    error = generation_error(row)
    return None if error is None else _reason(error)


def generation_error(row: Mapping[str, Any]) -> str | None:
    """Return the error of a row whose generation failed; else None."""
    error, source = _error_text(row.get(GENERATION_ERROR)), _source(row.keys())
    if error is not None or not source.error:
        return error
    silent = source.always or _is_silent(row, source)
    if source.error == _STATE:
        return _of_state(row[_STATE], silent=silent)
    return _error_text(row[source.error]) if silent else None


def _is_silent(row: Mapping[str, Any], source: _Source) -> bool:
    if source.reward and row[source.reward] is not None:
        return False
    completion = row.get(COMPLETION)
    if not completion or (is_plain_text(completion) and not completion[0]["content"]):
        return True
    last = completion[-1] if isinstance(completion, list | tuple) else None
    return source.breaks_off and isinstance(last, Mapping) and last.get("role") != "assistant"


def _error_text(error: Any) -> str | None:
    if isinstance(error, str) and error.startswith(_OPENING):
        parsed = loads(error)
        error = error if parsed is NOT_JSON else parsed
    error = without_nulls(error)
    if not error or error != error or (isinstance(error, str) and error in _NOTHING):  # noqa: PLR0124  (NaN)
        return None
    if isinstance(error, float) and error.is_integer():  # an integer in a column of floats
        error = int(error)
    message = error if isinstance(error, str) else json.dumps(error, ensure_ascii=False, default=str)
    return message[:_SHOWN]


def _of_state(state: Any, *, silent: bool) -> str | None:
    if isinstance(state, str):
        state = loads(state) if _may_have_error(state, silent=silent) else None
    if not isinstance(state, Mapping):
        return None
    error = _error_text(state.get(GENERATION_ERROR))
    return _error_text(state.get(_ERROR)) if error is None and silent else error


def _may_have_error(state: str, *, silent: bool) -> bool:
    return silent or GENERATION_ERROR in state


def _reason(error: str) -> str:
    return f"generation failed: {error}"


def no_rollout_expr(schema: pl.Schema) -> pl.Expr | None:
    """Return why a row has nothing to score: it could not be read, or a request or the generation failed."""
    reasons = [pl.col(BAD)] if BAD in schema else []
    failed = _failure_expr(schema)
    reasons += [] if failed is None else [failed]
    return pl.coalesce(reasons) if reasons else None


def _failure_expr(schema: pl.Schema) -> pl.Expr | None:
    source, candidates = _source(schema.keys()), []
    if GENERATION_ERROR in schema:
        candidates.append(_error_text_expr(exactly(GENERATION_ERROR), schema[GENERATION_ERROR]))
    if source.error:
        silent = pl.lit(value=True) if source.always else _silent_expr(schema, source)
        if source.error == _STATE:
            candidates.append(_of_state_expr(schema[_STATE], silent))
        else:
            candidates.append(_error_text_expr(pl.when(silent).then(exactly(source.error)), schema[source.error]))
    errors = [error for error in candidates if error is not None]
    return pl.concat_str(pl.lit(_reason("")), pl.coalesce(errors)) if errors else None


def _silent_expr(schema: pl.Schema, source: _Source) -> pl.Expr:
    completion, dtype = pl.col(COMPLETION), schema[COMPLETION]
    if isinstance(dtype, pl.List):
        silent = completion.is_null() | (completion.list.len() == 0)
        inner = dtype.inner
        fields = inner.to_schema() if isinstance(inner, pl.Struct) else {}
        if fields.get(EXACT) == fields.get("content") == pl.String:
            first = completion.list.first().struct
            is_text = (completion.list.len() == 1) & first.field(EXACT).eq_missing(PLAIN_TEXT)
            silent |= is_text & first.field("content").eq_missing("")
        if source.breaks_off and isinstance(inner, pl.Struct):
            last = completion.list.last()
            by_other = pl.lit(value=True)
            if "role" in inner.to_schema():
                by_other = last.struct.field("role").cast(pl.String).ne_missing("assistant")
            silent |= last.is_not_null() & by_other
    else:
        silent = completion.is_null() | (completion.cast(pl.String) == "")
    return silent & exactly(source.reward).is_null() if source.reward else silent


def _error_text_expr(error: pl.Expr, dtype: Any) -> pl.Expr | None:
    if dtype == pl.Null:
        return None
    if dtype != pl.String:
        return rowwise(error, _error_text, pl.String)
    structured = error.str.starts_with(_OPENING[0]) | error.str.starts_with(_OPENING[1])
    plain = pl.when(error.is_in(["", *_NOTHING]).not_()).then(error.str.head(_SHOWN))
    return pl.when(structured).then(rowwise(pl.when(structured).then(error), _error_text, pl.String)).otherwise(plain)


def _of_state_expr(dtype: Any, silent: pl.Expr) -> pl.Expr | None:
    state = pl.col(_STATE)
    if dtype == pl.String:
        relevant = silent | state.str.contains(GENERATION_ERROR, literal=True)
    elif isinstance(dtype, pl.Struct):
        relevant = silent | pl.lit(GENERATION_ERROR in dtype.to_schema())
    else:
        return None
    rows = pl.when(relevant & state.is_not_null()).then(pl.struct(state.alias("state"), silent.alias("silent")))
    return rowwise(rows, lambda row: _of_state(row["state"], silent=row["silent"]), pl.String)
