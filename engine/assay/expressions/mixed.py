"""Columns with values of several types: each value is JSON text in a marker struct."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from assay.names import HIDDEN

__all__ = ["JSON", "TYPED", "typed", "untyped", "untyped_expr"]

JSON = HIDDEN + "json"
"""Field of the struct that holds a value of any type as JSON text."""

TYPED = pl.Struct({JSON: pl.String})
"""Type of a column with values of several types, each as JSON text."""


def untyped(value: Any) -> Any:
    """Return a column's value; decode it if it comes from a ``TYPED`` column."""
    if isinstance(value, str) or value is None:  # most values; to ask whether one is a mapping takes ten times as long
        return value
    if isinstance(value, Mapping) and [*value] == [JSON]:
        return None if value[JSON] is None else json.loads(value[JSON])
    return value


def typed(name: str, texts: Sequence[str | None]) -> pl.Series:
    """Return JSON texts as a ``TYPED`` column."""
    return pl.DataFrame({JSON: texts}, schema={JSON: pl.String}).to_struct(name)


def untyped_expr(values: pl.Expr, dtype: Any) -> pl.Expr:
    """Return a column for output: JSON text for a ``TYPED`` column, any other column unchanged."""
    return values.struct.field(JSON) if dtype == TYPED else values
