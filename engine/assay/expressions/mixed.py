"""Columns of values of several types: each value as its JSON text, in a struct that says so."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from assay.names import HIDDEN

__all__ = ["JSON", "TYPED", "typed", "untyped", "untyped_expr"]

JSON = HIDDEN + "json"
"""Field of a struct that stands for a value of any type, as its JSON text."""

TYPED = pl.Struct({JSON: pl.String})
"""Type of a column of values of several types, each as its JSON text."""


def untyped(value: Any) -> Any:
    """A value of a column: the one that its JSON text stands for, where the column has several types."""
    if isinstance(value, Mapping) and [*value] == [JSON]:
        return None if value[JSON] is None else json.loads(value[JSON])
    return value


def typed(name: str, texts: Sequence[str | None]) -> pl.Series:
    """JSON texts of values of several types as a column of ``TYPED``."""
    return pl.DataFrame({JSON: texts}, schema={JSON: pl.String}).to_struct(name)


def untyped_expr(values: pl.Expr, dtype: Any) -> pl.Expr:
    """A column as people see it: what came as ``TYPED`` is JSON text."""
    return values.struct.field(JSON) if dtype == TYPED else values
