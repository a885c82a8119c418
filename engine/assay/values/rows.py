"""Convert rows of plain Python values to a frame, with types chosen here and not by inference."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from assay.errors import InputError, printable
from assay.expressions.json import mended
from assay.values.column import Column, column


class Columns:
    """The columns of rows that come in batches: first all batches determine the schema, then each becomes a frame.

    Args:
        mapping: Columns to read under another name, ``{"completion": "response"}``.
        exact: Columns in which each row keeps its own value, as they are read.
    """

    def __init__(self, mapping: Mapping[str, str], exact: Collection[str] = ()) -> None:
        self._mapping, self._exact = mapping, exact
        self._columns: dict[str, Column] = {}

    def see(self, rows: Sequence[Mapping[str, Any]], first: int = 0) -> None:
        """Learn from a batch."""
        for name, values in transposed(rows).items():
            self._columns.setdefault(name, column(name, self._mapping, self._exact)).see(values, first)

    def settle(self) -> pl.Schema:
        """End learning."""
        for each in self._columns.values():
            each.settle()
        return self.schema

    @property
    def schema(self) -> pl.Schema:
        """Schema of the frames, by the batches so far."""
        return pl.Schema({name: each.dtype for name, each in self._columns.items()})

    def frame(self, rows: Sequence[Mapping[str, Any]], names: Collection[str] | None = None) -> pl.DataFrame:
        """Return a known batch, or some of its columns, as a frame."""
        values = transposed(rows)
        nulls = [None] * len(rows)
        selected = self._columns if names is None else [name for name in self._columns if name in names]
        return pl.DataFrame({name: self._columns[name].series(values.get(name, nulls)) for name in selected})


def from_rows(
    rows: Iterable[Any], mapping: Mapping[str, str] | None = None, exact: Collection[str] = ()
) -> pl.DataFrame:
    """Convert mappings to a frame; a missing key gives null."""
    return from_columns(transposed(rows), mapping, exact)


def transposed(rows: Iterable[Any]) -> dict[str, list[Any]]:
    """Return mappings as columns; a missing key gives None."""
    columns: dict[str, list[Any]] = {}
    for height, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise InputError(f"Row {height} is {type(row).__name__}; a row is a mapping of columns to values.")
        for key, value in row.items():
            name = key if key in columns else mended(str(key))
            if name not in columns:
                columns[name] = [None] * height
            elif len(columns[name]) > height:
                raise InputError(f"Row {height} has two keys that read `{printable(name)}`.")
            columns[name].append(value)
        for values in columns.values():
            if len(values) == height:
                values.append(None)
    return columns


def from_columns(
    columns: Mapping[Any, Any], mapping: Mapping[str, str] | None = None, exact: Collection[str] = ()
) -> pl.DataFrame:
    """Convert columns of plain values to a frame, as ``from_rows``."""
    series: dict[str, pl.Series] = {}
    for key, values in columns.items():
        name = mended(str(key))
        if name in series:
            raise InputError(f"Two columns have names that read `{printable(name)}`.", "Rename one of them.")
        if not isinstance(values, pl.Series | Sequence) or isinstance(values, str | bytes):
            fact = f"The column `{printable(name)}` is {type(values).__name__}, not a list of values."
            raise InputError(fact, "A single rollout is a list of one mapping: [{…}]")
        if isinstance(values, pl.Series):
            series[name] = values.alias(name)
        else:
            series[name] = _series(name, values, mapping or {}, exact)
    if len({len(values) for values in series.values()}) > 1:
        lengths = ", ".join(f"`{printable(name)}` {len(values)}" for name, values in series.items())
        raise InputError(f"The columns have different lengths: {lengths}.")
    return pl.DataFrame(series)  # by name: in a list, a series named "" would be renamed


def _series(name: str, values: Sequence[Any], mapping: Mapping[str, str], exact: Collection[str]) -> pl.Series:
    learner = column(name, mapping, exact)
    learner.see(values)
    learner.settle()
    return learner.series(values)
