"""Rows of plain Python as a frame: what type inference would get wrong is settled before it is asked."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl
import pyarrow as pa

from assay.errors import InputError
from assay.lanes.jsontext import mended
from assay.lanes.messages import completion_text

__all__ = ["STRUCTURED", "from_columns", "from_rows"]

STRUCTURED = ("metadata", "expected_output_schema", "verifier")
"""Columns with structure; they travel as JSON text, for rows may differ in every field."""


_ALIKE = ({int, float}, {list, tuple})
"""Types that make one column together."""


def from_rows(rows: Iterable[Any]) -> pl.DataFrame:
    """A frame from mappings; a key that a row lacks is null there.

    Chat messages keep role and text, structure becomes JSON text, and any other column whose values have several types
    becomes JSON text too. A lone surrogate becomes U+FFFD.

    Raises:
        InputError: A row is not a mapping, or a completion is neither text nor messages.
    """
    columns: dict[str, list[Any]] = {}
    for height, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise InputError(f"Row {height} is {type(row).__name__}; a row is a mapping of columns to values.")
        for key, value in row.items():
            name = key if key in columns else mended(str(key))
            if name not in columns:
                columns[name] = [None] * height
            elif len(columns[name]) > height:
                raise InputError(f"Row {height} has two keys that read `{key}`.")
            columns[name].append(value)
        for values in columns.values():
            if len(values) == height:
                values.append(None)
    return from_columns(columns)


def from_columns(columns: Mapping[str, Any]) -> pl.DataFrame:
    """A frame from columns of plain values, as ``from_rows``.

    Raises:
        InputError: A column is a single value, the columns have several lengths, or a completion cannot be read.
    """
    series = []
    for name, values in columns.items():
        if not isinstance(values, pl.Series | Sequence) or isinstance(values, str | bytes):
            raise InputError(f"The column `{name}` is {type(values).__name__}, not a list of values.")
        series.append(values.alias(name) if isinstance(values, pl.Series) else _series(str(name), list(values)))
    lengths = {len(one) for one in series}
    if len(lengths) > 1:
        said = ", ".join(f"`{one.name}` {len(one)}" for one in series)
        raise InputError(f"The columns have several lengths: {said}.")
    return pl.DataFrame(series)


def _series(name: str, values: list[Any]) -> pl.Series:
    dtype = None
    if name in STRUCTURED:
        values = [value if isinstance(value, str | None) else json.dumps(value, default=str) for value in values]
        dtype = pl.String
    if name == "completion":
        values = _completions(values)
        dtype = None if any(isinstance(value, list) for value in values) else pl.String
    try:
        # Arrow takes the fields of every struct together and refuses what has several types
        return pl.Series(name, _arrow(values), dtype=dtype)
    except UnicodeEncodeError:
        return _series(name, [_mended(value) for value in values])
    except (TypeError, ValueError, OverflowError, pa.ArrowException, pl.exceptions.PolarsError):
        texts = (
            value if value is None else _mended(value) if isinstance(value, str) else json.dumps(value, default=str)
            for value in values
        )
        return pl.Series(name, list(texts), dtype=pl.String)


def _arrow(values: list[Any]) -> Any:
    kinds = {type(value) for value in values if value is not None}
    if len(kinds) > 1 and not any(kinds <= alike for alike in _ALIKE):
        raise TypeError("several types")  # Arrow would take 1 for a date beside a date
    if kinds & {set, frozenset}:
        raise TypeError("a set has no order")
    return pa.array(values)


def _completions(values: list[Any]) -> list[Any]:
    """Strings as they are; messages reduced to role and text, so that all have one type."""
    for at, value in enumerate(values):
        if not isinstance(value, str | list | tuple | None):
            raise InputError(
                f"Row {at}: a completion is a string or a list of chat messages, not {type(value).__name__}."
            )
    chats = [value is None or not isinstance(value, str) for value in values]
    messages = [[_message(one) for one in value] if isinstance(value, list | tuple) else value for value in values]
    return messages if all(chats) else [completion_text(value) for value in messages]


def _message(message: Any) -> dict[str, str | None]:
    if not isinstance(message, Mapping | None):
        raise InputError(f"A chat message is {type(message).__name__}, not a mapping with `role` and `content`.")
    role = (message or {}).get("role")
    text = completion_text([{"content": (message or {}).get("content")}])
    return {"role": role if isinstance(role, str) else None, "content": text}


def _mended(value: Any) -> Any:
    if isinstance(value, str):
        return mended(value)
    if isinstance(value, list | tuple):
        return [_mended(inner) for inner in value]
    if isinstance(value, Mapping):
        return {_mended(key): _mended(inner) for key, inner in value.items()}
    return value
