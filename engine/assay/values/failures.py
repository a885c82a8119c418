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
from assay.expressions.mixed import without_nulls
from assay.expressions.shared_columns import exactly, row_of, rowwise
from assay.names import BAD, COMPLETION
from assay.values.chats import is_plain_text

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
"""JSON texts of values that mean no error, as in columns of several types."""

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


def _prefixes(name: str, names: AbstractSet[str]) -> int:
    times = 0
    while _PRIOR * times + name in names:
        times += 1
    return times


def failure_columns(names: AbstractSet[str]) -> set[str]:
    """Return the columns, of those that there are, that tell whether a generation failed."""
    source = _source(names)
    return {GENERATION_ERROR, source.error or GENERATION_ERROR, source.reward or GENERATION_ERROR} & names


def failure(row: Mapping[str, Any]) -> str | None:
    """Return why a row cannot be scored if its generation failed, from its columns as loaded; else None."""
    return _reason(row, _source(row.keys()))


def _reason(row: Mapping[str, Any], source: _Source) -> str | None:
    error = _error(row, source)
    return None if error is None else f"generation failed: {error}"


def generation_error(row: Mapping[str, Any]) -> str | None:
    """Return the error of a row whose generation failed; else None."""
    return _error(row, _source(row.keys()))


def _error(row: Mapping[str, Any], source: _Source) -> str | None:
    error = _error_text(row.get(GENERATION_ERROR))
    if error is not None or not source.error:
        return error
    silent = source.always or _is_silent(row, source)
    value = row.get(source.error)
    if source.error != _STATE:
        return _error_text(value) if silent else None
    if isinstance(value, str):  # parsing is expensive
        value = loads(value) if silent or GENERATION_ERROR in value else None
    if not isinstance(value, Mapping):
        return None
    error = _error_text(value.get(GENERATION_ERROR))
    return _error_text(value.get(_ERROR)) if error is None and silent else error


def _is_silent(row: Mapping[str, Any], source: _Source) -> bool:
    """Return whether a row has no complete answer and was not scored."""
    if source.reward and row[source.reward] is not None:
        return False
    completion = row.get(COMPLETION)
    if not completion or (is_plain_text(completion) and not completion[0]["content"]):
        return True
    last = completion[-1] if isinstance(completion, list | tuple) else None
    return source.breaks_off and isinstance(last, Mapping) and last.get("role") != "assistant"


def _error_text(error: Any) -> str | None:
    """Return an error as text; None for values that mean no error."""
    if isinstance(error, str) and error.startswith(("{", "[")):  # JSON text, as in columns of several types
        parsed = loads(error)
        error = error if parsed is NOT_JSON else parsed
    error = without_nulls(error)
    if not error or error != error or (isinstance(error, str) and error in _NOTHING):  # noqa: PLR0124  (NaN)
        return None
    if isinstance(error, float) and error.is_integer():  # an integer in a column of floats
        error = int(error)
    message = error if isinstance(error, str) else json.dumps(error, ensure_ascii=False, default=str)
    return message[:_SHOWN]


def no_rollout_expr(schema: pl.Schema) -> pl.Expr | None:
    """Return why a row has nothing to score, as a String expression: it could not be read, or a request or the generation failed."""
    source = _source(schema.keys())
    # NOTE: "" is no column here, but a column may have that name
    columns = [name for name in (GENERATION_ERROR, source.error) if name and schema.get(name, pl.Null) != pl.Null]
    reasons = [pl.col(BAD)] if BAD in schema else []
    if columns:
        read = [name for name in (*columns, source.reward, COMPLETION) if name and name in schema]
        rows = pl.when(pl.any_horizontal(_may_fail(name, schema, source) for name in columns)).then(
            row_of(map(exactly, read))
        )
        reasons.append(rowwise(rows, lambda row: _reason(row, source), pl.String))
    return pl.coalesce(reasons) if reasons else None


def _may_fail(name: str, schema: pl.Schema, source: _Source) -> pl.Expr:
    values, dtype = exactly(name), schema[name]
    if name == _STATE:
        named = values.str.contains(GENERATION_ERROR, literal=True) if dtype == pl.String else pl.lit(value=True)
        return values.is_not_null() & (exactly(source.reward).is_null() | named)
    return values.is_in(["", *_NOTHING]).not_() if dtype == pl.String else values.is_not_null()
