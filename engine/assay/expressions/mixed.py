"""Columns with values of several types: each value is JSON text in a marker struct."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from assay.expressions.json import mended
from assay.names import HIDDEN

_ATOMS = frozenset((str, int, float, bool, type(None)))

JSON = HIDDEN + "json"
"""Field of the struct that holds a value of any type as JSON text."""

BYTES = HIDDEN + "bytes"
"""Key of the object in such a text that stands for bytes that are not UTF-8; its value is their hexadecimal form."""

TYPED = pl.Struct({JSON: pl.String})
"""Type of a column with values of several types, each as JSON text."""


def is_typed(value: Any) -> bool:
    """Return whether a column's value comes from a ``TYPED`` column."""
    # to ask whether a value is a mapping takes ten times as long, and most are texts
    return not isinstance(value, str) and value is not None and isinstance(value, Mapping) and [*value] == [JSON]


def untyped(value: Any, *, with_bytes: bool = False) -> Any:
    """Return a column's value; decode it if it comes from a ``TYPED`` column."""
    if not is_typed(value):
        return value
    text = value[JSON]
    if text is None:
        return None
    if BYTES not in text:
        return json.loads(text)
    return json.loads(text, object_hook=_with_bytes if with_bytes else _without_bytes)


def _with_bytes(value: dict[str, Any]) -> Any:
    return bytes.fromhex(value[BYTES]) if [*value] == [BYTES] else value


def _without_bytes(value: dict[str, Any]) -> Any:
    return None if [*value] == [BYTES] else value


def typed(name: str, texts: Sequence[str | None]) -> pl.Series:
    """Return JSON texts as a ``TYPED`` column."""
    return pl.DataFrame({JSON: texts}, schema={JSON: pl.String}).to_struct(name)


def without_nulls(value: Any) -> Any:
    """Remove null fields from a column's value, because a struct column adds them to every row."""
    if type(value) in _ATOMS:
        return value
    if isinstance(value, Mapping):
        return {
            key: inner if type(inner) in _ATOMS else without_nulls(inner)
            for key, inner in value.items()
            if inner is not None
        }
    return [without_nulls(inner) for inner in value] if isinstance(value, list | tuple) else value


def typed_expr(values: pl.Expr, dtype: Any) -> pl.Expr:
    """Return a column of any type as a ``TYPED`` one."""
    if dtype == TYPED:
        return values
    return pl.struct(values.map_batches(_json_texts, pl.String, is_elementwise=True).alias(JSON))


def _json_texts(values: pl.Series) -> pl.Series:
    texts = [None if value is None else json.dumps(without_nulls(value), default=str) for value in values.to_list()]
    return pl.Series(values.name, texts, dtype=pl.String)


def plain_text(text: str) -> str:
    """Return the JSON text of a value, or the text itself if it is one."""
    value = json.loads(text)
    return mended(value) if isinstance(value, str) else text


def untyped_expr(values: pl.Expr, dtype: Any) -> pl.Expr:
    """Return a column for output: JSON text for a ``TYPED`` column, any other column unchanged."""
    return values.struct.field(JSON) if dtype == TYPED else values
