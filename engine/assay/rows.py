"""Rows of plain Python as a frame: what the engine's own type inference would get wrong is settled before it sees it."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl

from assay.errors import InputError
from assay.lanes.jsontext import mended
from assay.lanes.messages import completion_text

__all__ = ["STRUCTURED", "from_rows"]

STRUCTURED = ("metadata", "expected_output_schema")
"""Columns with structure; they travel as JSON text, for rows may differ in every field."""


def from_rows(rows: Iterable[Any]) -> pl.DataFrame:
    """A frame from mappings; a key that a row lacks is null there.

    Chat messages keep role and text, structure becomes JSON text, and any other column whose values have several types
    becomes JSON text too. A lone surrogate becomes U+FFFD.

    Raises:
        InputError: A row is not a mapping.
    """
    columns: dict[str, list[Any]] = {}
    for height, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise InputError(f"Row {height} is {type(row).__name__}; a row is a mapping of columns to values.")
        for name, value in row.items():
            columns.setdefault(str(name), [None] * height).append(value)
        for values in columns.values():
            if len(values) == height:
                values.append(None)
    return pl.DataFrame([_series(name, values) for name, values in columns.items()])


def _series(name: str, values: list[Any]) -> pl.Series:
    if name in STRUCTURED:
        values = [json.dumps(value, default=str) if isinstance(value, dict | list) else value for value in values]
    if name == "completion":
        values = _completions(values)
    try:
        return pl.Series(name, values)
    except UnicodeEncodeError:
        return _series(name, [_mended(value) for value in values])
    except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError):
        texts = (value if isinstance(value, str | None) else json.dumps(value, default=str) for value in values)
        return pl.Series(name, list(texts), dtype=pl.String)


def _completions(values: list[Any]) -> list[Any]:
    """Strings as they are; messages reduced to role and text, so that all have one type."""
    listed = [isinstance(value, list | tuple) for value in values]
    if not any(listed):
        return values
    if all(is_list or value is None for value, is_list in zip(values, listed, strict=True)):
        return [None if value is None else [_message(message) for message in value] for value in values]
    return [completion_text(value) if isinstance(value, list | tuple) else value for value in values]


def _message(message: Any) -> dict[str, str | None]:
    if not isinstance(message, Mapping):
        raise InputError(f"A chat message is {type(message).__name__}, not a mapping with `role` and `content`.")
    role = message.get("role")
    return {
        "role": role if isinstance(role, str) else None,
        "content": completion_text([{"content": message.get("content")}]),
    }


def _mended(value: Any) -> Any:
    if isinstance(value, str):
        return mended(value)
    if isinstance(value, list | tuple):
        return [_mended(inner) for inner in value]
    if isinstance(value, Mapping):
        return {_mended(key): _mended(inner) for key, inner in value.items()}
    return value
