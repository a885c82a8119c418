"""Rows of plain Python as a frame: what type inference would get wrong is settled before it is asked."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from assay.errors import InputError
from assay.expressions.json import mended
from assay.values.column import Column, column

__all__ = ["Columns", "from_columns", "from_rows"]


class Columns:
    """The columns of rows that come in batches: all batches are seen first, then each becomes a frame of one schema.

    Args:
        mapping: Columns that are read under another name, ``{"completion": "response"}``.
    """

    def __init__(self, mapping: Mapping[str, str]) -> None:
        self._mapping = mapping
        self._columns: dict[str, Column] = {}

    def see(self, rows: Sequence[Mapping[str, Any]], first: int = 0) -> None:
        """Learn from a batch.

        Args:
            rows: The batch.
            first: Number of its first row, for messages.

        Raises:
            InputError: A value cannot be put into any column.
        """
        for name, values in _transposed(rows).items():
            self._columns.setdefault(name, column(name, self._mapping)).see(values, first)

    def settle(self) -> pl.Schema:
        """All is seen.

        Returns:
            Schema of the frames.

        Raises:
            InputError: What was seen cannot be read.
        """
        for one in self._columns.values():
            one.settle()
        return self.schema

    @property
    def schema(self) -> pl.Schema:
        """Schema of the frames, if nothing else were seen."""
        return pl.Schema({name: one.dtype for name, one in self._columns.items()})

    def frame(self, rows: Sequence[Mapping[str, Any]], names: Collection[str] | None = None) -> pl.DataFrame:
        """A batch that was seen before as a frame, or some columns of it."""
        values = _transposed(rows)
        nulls = [None] * len(rows)
        wanted = self._columns if names is None else [name for name in self._columns if name in names]
        return pl.DataFrame({name: self._columns[name].series(values.get(name, nulls)) for name in wanted})


def from_rows(rows: Iterable[Any], mapping: Mapping[str, str] | None = None) -> pl.DataFrame:
    """A frame from mappings; a key that a row lacks is null there.

    Chat messages keep role and text, structure becomes JSON text, and so does any other column whose values have several
    types, nest deeply or have very many fields. A lone surrogate becomes U+FFFD.

    Args:
        rows: The mappings.
        mapping: Columns that are read under another name, ``{"completion": "response"}``.

    Raises:
        InputError: A row is not a mapping, a completion is neither text nor messages, or a value fits no column.
    """
    return from_columns(_transposed(rows), mapping)


def _transposed(rows: Iterable[Any]) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {}
    for height, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise InputError(f"Row {height} is {type(row).__name__}; a row is a mapping of columns to values.")
        for key, value in row.items():
            name = key if key in columns else mended(str(key))
            if name not in columns:
                columns[name] = [None] * height
            elif len(columns[name]) > height:
                raise InputError(f"Row {height} has two keys that read `{name}`.")
            columns[name].append(value)
        for values in columns.values():
            if len(values) == height:
                values.append(None)
    return columns


def from_columns(columns: Mapping[Any, Any], mapping: Mapping[str, str] | None = None) -> pl.DataFrame:
    """A frame from columns of plain values, as ``from_rows``.

    Raises:
        InputError: A column is a single value, two have one name, they have several lengths, or a value fits no column.
    """
    series: dict[str, pl.Series] = {}
    for key, values in columns.items():
        name = mended(str(key))
        if name in series:
            raise InputError(f"Two columns have names that read `{name}`.", "Rename one of them.")
        if not isinstance(values, pl.Series | Sequence) or isinstance(values, str | bytes):
            raise InputError(f"The column `{name}` is {type(values).__name__}, not a list of values.")
        series[name] = values.alias(name) if isinstance(values, pl.Series) else _series(name, values, mapping or {})
    if len({len(one) for one in series.values()}) > 1:
        said = ", ".join(f"`{name}` {len(one)}" for name, one in series.items())
        raise InputError(f"The columns have several lengths: {said}.")
    return pl.DataFrame(series)  # by name: in a list, a series named "" would get another


def _series(name: str, values: Sequence[Any], mapping: Mapping[str, str]) -> pl.Series:
    one = column(name, mapping)
    one.see(values)
    one.settle()
    return one.series(values)
