"""Rows and columns of plain Python values, and tables of other libraries, as frames; types are chosen here and not by inference."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import polars as pl
from pydantic import BaseModel

from assay.errors import InputError, printable
from assay.expressions.json import mended
from assay.system.arrow import pa
from assay.values.arrow import from_arrow
from assay.values.column import Column, column


class LearnedColumns:
    """The columns of rows that come in batches: first all batches determine the schema, then each becomes a frame."""

    def __init__(self, mapping: Mapping[str, str], exact: Collection[str] = ()) -> None:
        self._mapping, self._exact = mapping, exact
        self._columns: dict[str, Column] = {}

    def see(self, rows: Sequence[Mapping[str, Any]], first: int = 0) -> None:
        """Learn from a batch whose first row has a number, for messages."""
        for name, values in transposed(rows).items():
            self._columns.setdefault(name, column(name, self._mapping, self._exact)).see(values, first)

    def finish(self) -> pl.Schema:
        """End learning, and return the schema of the frames."""
        for each in self._columns.values():
            each.finish()
        return self.schema

    @property
    def schema(self) -> pl.Schema:
        """Schema of the frames, by the batches so far."""
        return pl.Schema({name: each.dtype for name, each in self._columns.items()})

    @property
    def settled(self) -> list[str]:
        """The columns that only Python gives, and that learn no more from JSON values whose parts have the types of those seen."""
        return [name for name, each in self._columns.items() if each.is_settled]

    def frame(self, rows: Sequence[Mapping[str, Any]], names: Collection[str] | None = None) -> pl.DataFrame:
        """Return a known batch, or some of its columns, as a frame."""
        values = transposed(rows)
        nulls = [None] * len(rows)
        selected = self._columns if names is None else [name for name in self._columns if name in names]
        return pl.DataFrame({name: self._columns[name].series(values.get(name, nulls)) for name in selected})


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


def from_rows(
    rows: Iterable[Any], mapping: Mapping[str, str] | None = None, exact: Collection[str] = ()
) -> pl.DataFrame:
    """Convert mappings to a frame, as ``from_columns``; a missing key gives null."""
    return from_columns(transposed(rows), mapping, exact)


def from_columns(
    columns: Mapping[Any, Any], mapping: Mapping[str, str] | None = None, exact: Collection[str] = ()
) -> pl.DataFrame:
    """Convert columns of plain values to a frame."""
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
            learner = column(name, mapping or {}, exact)
            learner.see(values)
            learner.finish()
            series[name] = learner.series(values)
    if len({len(values) for values in series.values()}) > 1:
        lengths = ", ".join(f"`{printable(name)}` {len(values)}" for name, values in series.items())
        raise InputError(f"The columns have different lengths: {lengths}.")
    return pl.DataFrame(series)  # by name: in a list, a series named "" would be renamed


def library_of(source: Any) -> str:
    """Return an object's type for the provenance: ``polars.DataFrame``."""
    return f"{type(source).__module__.split('.')[0]}.{type(source).__name__}"


def table_of(source: Any, mapping: Mapping[str, str], exact: Collection[str] = ()) -> pl.DataFrame:
    """Convert data in memory to a frame."""
    if isinstance(source, BaseModel):  # of ``types``: outputs are a table, inputs are columns
        to_arrow = getattr(source, "to_arrow", None)
        source = {name: values for name, values in source if values is not None} if to_arrow is None else to_arrow()
    if isinstance(source, pl.DataFrame):
        return source
    if library_of(source) == "pandas.DataFrame":
        try:
            source = pa.Table.from_pandas(source, preserve_index=False)
        except (pa.ArrowInvalid, pa.ArrowTypeError):  # a column has values of several types
            source = {str(name): source[name].tolist() for name in source.columns}
    if library_of(source).startswith("datasets."):
        source = _of_datasets(source)
    if hasattr(source, "__arrow_c_stream__") or hasattr(source, "read_next_batch"):
        return from_arrow(source)
    if isinstance(source, Mapping):
        return from_columns(source, mapping, exact)
    if isinstance(source, Sequence) and not isinstance(source, bytes):
        return from_rows(source, mapping, exact)  # a sequence of rows other than a list
    raise InputError(
        f"Rollouts of type {type(source).__name__} cannot be read.",
        "Give a path, a Polars or Arrow table, a Hugging Face Dataset, or a list of mappings.",
    )


def _of_datasets(source: Any) -> Any:
    """Return a Hugging Face Dataset as Arrow data, and the batch that its ``map`` passes to a function as columns."""
    if isinstance(source, dict):
        raise InputError("A DatasetDict holds several splits.", f"Pick one: {', '.join(map(repr, source))}.")
    if isinstance(source, Mapping):
        return {name: source[name] for name in source}
    if not hasattr(source, "num_rows"):
        raise InputError(f"{library_of(source)} cannot be read.", "Give a datasets.Dataset, loaded in full.")
    return source.with_format("arrow")[:]
