"""What a reward function sees of a rollout: the columns of a row as the arguments that the field's libraries give.

Structure comes from tables as structs, in which a null field counts as absent, or as JSON text. This is the definition for both
faces: a reward function is Python, and there is no other.
"""

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from itertools import islice, repeat
from typing import Any

import polars as pl

from assay.expressions.json import loads
from assay.expressions.mixed import TYPED, untyped, untyped_expr
from assay.names import HIDDEN
from assay.values import tagged_json as exact
from assay.values.chats import EXACT, chat_of

__all__ = [
    "ARGUMENTS",
    "COLUMN_OF",
    "MEMO",
    "PLURALS",
    "RAW",
    "arguments",
    "is_read",
    "messages",
    "python_values",
    "shown_expr",
    "without_nulls",
]

ARGUMENTS = ("prompt", "completion", "answer", "state", "task", "info", "example_id")
"""What a rollout gives to the functions that name it."""

PLURALS = {
    "prompts": "prompt",
    "completions": "completion",
    "answers": "answer",
    "states": "state",
    "tasks": "task",
    "infos": "info",
    "example_ids": "example_id",
}
"""What a function names to see all rollouts of an example, and the argument of each of them."""

COLUMN_OF = {name: (name,) for name in ARGUMENTS} | {"example_id": ("example_id", "id")}
"""The columns that an argument is read from: the first that is there."""

RAW = HIDDEN + "completion"
"""Key of a row under which the completion stands as it was loaded, beside its text."""

MEMO = HIDDEN + "memo"
"""Key of a row under which checks that run together keep what they found for each other."""

_ATOMS = frozenset((str, int, float, bool, type(None)))


def messages(value: Any) -> Any:
    """A prompt or a completion as it was written: text, or a list of messages.

    Messages that were JSON text are read; fields that are null in a struct were absent before rows were made alike, but for
    ``role`` and ``content``.
    """
    if isinstance(value, str):
        found = loads(value) if value.startswith("[{") else None
        if not isinstance(found, list) or not all(map(_is_message, found)):
            return value
        value = found
    if not isinstance(value, list | tuple):
        return value
    return value if all(map(_is_plain, value)) else [_message(one) for one in value]


def _is_plain(message: Any) -> bool:
    """Role and text, and so nearly every message: it is as it was written."""
    return type(message) is dict and len(message) == 2 and type(message.get("content")) is str and "role" in message  # noqa: PLR2004


def _is_message(one: Any) -> bool:
    return isinstance(one, dict) and "role" in one


def _message(message: Any) -> Any:
    if _is_plain(message):
        return message
    if not isinstance(message, Mapping):
        return message
    if EXACT in message:  # written by Assay
        return chat_of([message], EXACT)[0]
    found = {
        key: without_nulls(value) for key, value in message.items() if value is not None or key in ("role", "content")
    }
    if isinstance(found.get("tool_calls"), list):  # datasets have each as JSON text
        found["tool_calls"] = [_object(call) if isinstance(call, str) else call for call in found["tool_calls"]]
    return found


def without_nulls(value: Any) -> Any:
    """A value of a column without the fields that are null: in structs they were absent before rows were made alike."""
    if type(value) in _ATOMS:
        return value
    if isinstance(value, Mapping):
        return {
            key: inner if type(inner) in _ATOMS else without_nulls(inner)
            for key, inner in value.items()
            if inner is not None
        }
    return [without_nulls(inner) for inner in value] if isinstance(value, list) else value


def _object(value: Any) -> Any:
    """An object, from a struct or JSON text; empty where there is none, and what is no object as it is."""
    if value is None:
        return {}
    if isinstance(value, str):
        try:
            found = exact.read(value)
        except (ValueError, RecursionError):
            return value
        return {} if found is None else found if isinstance(found, dict) else value
    return without_nulls(untyped(value))


def shown_expr(values: pl.Expr, dtype: Any) -> pl.Expr:
    """A column as people see it: without what stands beside the messages for exactness, and JSON text for several types."""
    inner = dtype.inner if isinstance(dtype, pl.List) else None
    if not isinstance(inner, pl.Struct) or EXACT not in inner.to_schema():
        return untyped_expr(values, dtype)
    return values.list.eval(pl.struct(pl.element().struct.field(name) for name in inner.to_schema() if name != EXACT))


def _new_states(rollouts: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """States of rollouts that bring none: their own arguments, and nothing that happened."""
    names = ("prompt", "completion", "answer", "task", "info", "example_id")
    return [
        {
            "prompt": prompt,
            "completion": completion,
            "answer": answer,
            "task": task,
            "info": info,
            "example_id": example_id,
            "responses": [],
            "turn": 0,
            "timing": {"generation_ms": 0.0, "scoring_ms": 0.0, "total_ms": 0.0},
        }
        for prompt, completion, answer, task, info, example_id in zip(*(rollouts[name] for name in names), strict=True)
    ]


_ROLE_AND_CONTENT = ["role", "content"]
_READ: dict[str, Callable[[Any], Any]] = {
    "prompt": messages,
    # NOTE: a completion is never JSON text of messages: one that looks so is what the model wrote
    "completion": lambda value: value if isinstance(value, str) else messages(value),
    "answer": untyped,
    "task": lambda value: "default" if value is None else value,
    "info": _object,
}


def python_values(column: pl.Series) -> list[Any]:
    """``column.to_list()``, of lists of structs in a third of the time."""
    inner = column.dtype.inner if isinstance(column.dtype, pl.List) else None
    if not isinstance(inner, pl.Struct) or not inner.fields:
        return column.to_list()
    lengths = column.list.len()
    structs = column.filter(lengths > 0).explode()
    if structs.null_count():
        return column.to_list()
    fields = structs.struct.unnest()
    values = zip(*(python_values(one) for one in fields), strict=True)
    each = iter(_dicts(fields.columns, values))
    return [None if length is None else [*islice(each, length)] for length in lengths.to_list()]


def _dicts(names: list[str], rows: Iterable[tuple[Any, ...]]) -> Iterable[dict[str, Any]]:
    if names == _ROLE_AND_CONTENT:  # a literal takes a third of the time
        return ({"role": role, "content": content} for role, content in rows)
    return map(dict, map(zip, repeat(names), rows))


def is_read(column: pl.Series) -> bool:
    """Whether the values of a column are arguments as they are: messages of nothing but role and text, structs without nulls."""
    dtype = column.dtype
    if isinstance(dtype, pl.List) and isinstance(dtype.inner, pl.Struct):
        return [(one.name, one.dtype) for one in dtype.inner.fields] == [
            (name, pl.String) for name in _ROLE_AND_CONTENT
        ]
    if not isinstance(dtype, pl.Struct) or dtype == TYPED or column.null_count():
        return False
    return not any(one.dtype.is_nested() or one.null_count() for one in column.struct.unnest())


def arguments(
    columns: Mapping[str, Sequence[Any]], wanted: Sequence[str], rows: int, read: Container[str] = ()
) -> dict[str, list[Any]]:
    """The arguments of rollouts, as columns.

    Args:
        columns: What was loaded, by the name of the column, and is nobody else's; a column that is missing is null everywhere.
        wanted: Names of ``ARGUMENTS``.
        rows: Number of rollouts.
        read: Columns whose values are arguments as they are.

    Returns:
        A list of ``rows`` values for each name. A rollout shares nothing with another, so that none can change another's.
    """
    names = [name for name in ARGUMENTS if name != "state" and (name in wanted or "state" in wanted)]
    nulls = [None] * rows
    found: dict[str, list[Any]] = {}
    for name in names:
        column = next((column for column in COLUMN_OF[name] if column in columns), "")
        given = columns.get(column, nulls)
        found[name] = list(given) if name not in _READ or column in read else [*map(_READ[name], given)]
    if "state" in wanted:
        found["state"] = _new_states(found)
        for state, brought in zip(found["state"], map(_object, columns.get("state", ())), strict=False):
            state.update(brought if isinstance(brought, dict) else ())
    return {name: found[name] for name in wanted}
