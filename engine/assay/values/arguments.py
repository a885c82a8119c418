"""The arguments of reward functions: the columns of a row in the form that RL libraries pass them.

Structured values come from tables as structs, in which a null field counts as absent, or as JSON text. There is no columnar version,
because reward functions are Python.
"""

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from itertools import islice, repeat
from typing import Any

import polars as pl

from assay.expressions.json import loads
from assay.expressions.mixed import TYPED, is_typed, untyped, untyped_expr, without_nulls
from assay.expressions.shared_columns import field_of
from assay.names import HIDDEN
from assay.values import tagged_json as exact
from assay.values.chats import EXACT, chat_of, is_plain_text

ARGUMENTS = ("prompt", "completion", "answer", "state", "task", "info", "example_id")
"""The arguments that a function may name."""

PLURALS = {
    "prompts": "prompt",
    "completions": "completion",
    "answers": "answer",
    "states": "state",
    "tasks": "task",
    "infos": "info",
    "example_ids": "example_id",
}
"""The names of arguments of functions that see all rollouts of an example, and the argument of each rollout."""

COLUMN_OF = {name: (name,) for name in ARGUMENTS} | {"example_id": ("example_id", "id")}
"""The columns for each argument; the first one present is used."""

COLUMN = HIDDEN + "column/"
"""Prefix of an argument that is a column of the rollouts by its own name."""

RAW = HIDDEN + "completion"
"""Key of a row for the completion as it was loaded, in addition to its text."""

MEMO = HIDDEN + "memo"
"""Key of a row for results that checks share."""
_ROLE_AND_CONTENT = ["role", "content"]
_OF_COLUMNS = ("prompt", "completion", "answer", "task", "info", "example_id")
"""The arguments that a new state has, in its order, besides those of its own."""


def messages(value: Any) -> Any:
    """Return a prompt or a completion in its original form: text, or a list of messages."""
    if isinstance(value, str):
        parsed = loads(value) if value.startswith("[{") else None
        if not isinstance(parsed, list) or not all(isinstance(item, dict) and "role" in item for item in parsed):
            return value
        value = parsed
    if not isinstance(value, list | tuple):
        return value
    if all(map(_is_plain, value)):
        return value
    return value[0]["content"] if is_plain_text(value) else [_message(message) for message in value]


def _is_plain(message: Any) -> bool:
    """Return whether a message consists of role and text, as nearly all do; it needs no conversion."""
    return type(message) is dict and len(message) == 2 and type(message.get("content")) is str and "role" in message  # noqa: PLR2004


def _message(message: Any) -> Any:
    if _is_plain(message) or not isinstance(message, Mapping):
        return message
    if EXACT in message:  # written by Assay
        return chat_of([message], EXACT)[0]
    fields = {
        key: without_nulls(value) for key, value in message.items() if value is not None or key in ("role", "content")
    }
    if isinstance(fields.get("tool_calls"), list):  # JSON texts in datasets
        fields["tool_calls"] = [_object(call) if isinstance(call, str) else call for call in fields["tool_calls"]]
    return fields


def own(value: Any) -> Any:
    """Return a column's value without the null fields that its type adds; one that its row alone decides keeps all fields."""
    return untyped(value, with_bytes=True) if is_typed(value) else without_nulls(value)


def _object(value: Any) -> Any:
    if value is None:
        return {}
    if isinstance(value, str):
        try:
            parsed = exact.read(value)
        except (ValueError, RecursionError):
            return value
        return {} if parsed is None else parsed if isinstance(parsed, dict) else value
    return own(value)


def shown_expr(values: pl.Expr, dtype: Any) -> pl.Expr:
    """Return a column for output: messages without the field ``exact``, and JSON text for values of several types."""
    inner = dtype.inner if isinstance(dtype, pl.List) else None
    if not isinstance(inner, pl.Struct) or EXACT not in inner.to_schema():
        return untyped_expr(values, dtype)
    fields = (field_of(pl.element(), inner, name).alias(name) for name in inner.to_schema() if name != EXACT)
    return values.list.eval(pl.struct(fields))


_READ: dict[str, Callable[[Any], Any]] = {
    "prompt": lambda value: messages(untyped(value)),
    # NOTE: a string completion is the model's output, even if it looks like JSON text of messages
    "completion": lambda value: value if isinstance(value, str) else messages(value),
    "answer": untyped,
    "task": lambda value: "default" if value is None else untyped(value),
    "example_id": untyped,
    "info": _object,
}


def python_values(column: pl.Series) -> list[Any]:
    """Return ``column.to_list()``, three times faster for lists of structs."""
    inner = column.dtype.inner if isinstance(column.dtype, pl.List) else None
    if not isinstance(inner, pl.Struct) or not inner.fields:
        return column.to_list()
    column = column.alias("values")  # NOTE: methods of a series named "^y$" take its name as a pattern
    lengths = column.list.len()
    structs = column.filter(lengths > 0).explode()
    if structs.null_count():
        return column.to_list()
    fields = structs.struct.unnest()
    values = zip(*(python_values(field) for field in fields), strict=True)
    each: Iterator[dict[str, Any]]
    if fields.columns == _ROLE_AND_CONTENT:  # a literal is three times faster
        each = iter([{"role": role, "content": content} for role, content in values])
    else:
        each = map(dict, map(zip, repeat(fields.columns), values))
    return [None if length is None else [*islice(each, length)] for length in lengths.to_list()]


def is_read(column: pl.Series) -> bool:
    """Return whether the values of a column need no conversion: messages of role and text only, structs without nulls."""
    dtype = column.dtype
    if isinstance(dtype, pl.List) and isinstance(dtype.inner, pl.Struct):
        return [(field.name, field.dtype) for field in dtype.inner.fields] == [
            (name, pl.String) for name in _ROLE_AND_CONTENT
        ]
    if not isinstance(dtype, pl.Struct) or dtype == TYPED or column.null_count():
        return False
    return not any(field.dtype.is_nested() or field.null_count() for field in column.struct.unnest())


def arguments(
    columns: Mapping[str, Sequence[Any]], requested: Sequence[str], rows: int, read: Container[str] = ()
) -> dict[str, list[Any]]:
    """Return the arguments of rollouts, as columns: a list of ``rows`` values for each name."""
    result: dict[str, list[Any]] = {}
    for name in _OF_COLUMNS:
        if name in requested or "state" in requested:
            column = next((column for column in COLUMN_OF[name] if column in columns), "")
            values = columns.get(column, [None] * rows)
            result[name] = list(values) if name not in _READ or column in read else [*map(_READ[name], values)]
    if "state" in requested:
        given = zip(*(result[name] for name in _OF_COLUMNS), strict=True)
        states = [
            dict(zip(_OF_COLUMNS, values, strict=True))
            | {"responses": [], "turn": 0, "timing": dict.fromkeys(("generation_ms", "scoring_ms", "total_ms"), 0.0)}
            for values in given
        ]
        for state, loaded in zip(states, map(_object, columns.get("state", ())), strict=False):
            state.update(loaded if isinstance(loaded, dict) else ())
        result["state"] = states
    return {name: result[name] for name in requested}


def column_arguments(
    columns: Mapping[str, Sequence[Any]], names: Sequence[str], read: Container[str] = ()
) -> dict[str, list[Any]]:
    """Return some columns by their own names, as ``arguments`` with the prefix ``COLUMN``."""
    return {
        COLUMN + name: list(columns[name]) if name in read else [*map(_READ.get(name, own), columns[name])]
        for name in names
    }
