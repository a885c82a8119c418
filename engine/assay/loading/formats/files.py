"""Several files, opened each by its format, as one table."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import polars as pl
from polars.exceptions import PanicException, PolarsError

from assay.errors import InputError, shown_path
from assay.expressions.lane import plain_type
from assay.expressions.mixed import TYPED
from assay.loading.formats.engine_source import one_after_another, own_types
from assay.loading.formats.format import first_line
from assay.loading.formats.parquet import ParquetFile
from assay.loading.formats.reading import File, name_of, rows_in_all
from assay.system.memory import at_once

_SHARES = 2
"""Shares of the memory that the rows of a piece may take: they are views of what the reader holds, and its columns are narrow."""

ENGINE_ERRORS = (PolarsError, PanicException, OSError)
"""Errors of Polars for a file that it cannot read; a panic is not an ``Exception``."""


@dataclass(frozen=True)
class Cut:
    """A range of units, of one file or of several consecutive files: the input of a shard.

    Attributes:
        final: Index of the last file; None if there is one file.
    """

    file: int
    first: int
    last: int
    final: int | None = None

    @property
    def files(self) -> range:
        """Indices of its files."""
        return range(self.file, (self.file if self.final is None else self.final) + 1)

    def units(self, file: int, count: int) -> tuple[int, int]:
        """Return the range of units of one of its files: the first, and the one after the last."""
        return (self.first if file == self.files[0] else 0), (self.last if file == self.files[-1] else count)


@dataclass(frozen=True)
class Files:
    """Several files, read one after another as one.

    Attributes:
        memory_limit: Memory limit of the reading process, in bytes; None for the default.
    """

    files: tuple[File, ...]
    schema: pl.Schema
    skipped: tuple[tuple[str, str], ...] = ()
    memory_limit: int | None = None

    def at_once(self, rows: int, *, anywhere: bool = False) -> int:
        """Return how many rows to process at once: ``rows``, or fewer if they are long."""
        if anywhere:
            return at_once(rows, self._row_bytes, None)
        return at_once(rows, self._row_bytes, self.memory_limit, shares=_SHARES)

    @cached_property
    def _row_bytes(self) -> int:
        """Approximate bytes of a row; 0 if unknown. Cached, because every shard needs it."""
        units = [unit for file in self.files for unit in file.units]
        rows = rows_in_all(unit.rows for unit in units)
        return 0 if rows is None else sum(unit.size for unit in units) // max(1, rows)

    def scan(self, cut: Cut | None = None) -> pl.LazyFrame:
        """Return all rows, or those of a cut."""
        cut = cut or Cut(0, 0, len(self.files[-1].units), len(self.files) - 1)
        parts = [(self.files[at], *cut.units(at, len(self.files[at].units))) for at in cut.files]
        if len(parts) > 1:
            return one_after_another(parts, self.schema, self.memory_limit)
        file, first, last = parts[0]
        frame = file.scan(first, last)
        if len(self.files) == 1:
            return frame
        frame = frame.with_columns(own_types(file.schema, self.schema))
        return pl.concat([pl.LazyFrame(schema=self.schema), frame], how="diagonal_relaxed")


def combined(
    files: Sequence[File],
    skipped: Sequence[tuple[str, str]] = (),
    memory_limit: int | None = None,
    exact: Collection[str] = (),
) -> Files:
    """Combine opened files, to be read one after another."""
    schemas = _with_own_types([file.schema for file in files], exact)
    _refuse_drift(list(map(name_of, files)), schemas)
    # each distinct schema once: thousands of equal ones give the same union
    empty = [pl.LazyFrame(schema=schema) for schema in {tuple(schema.items()): schema for schema in schemas}.values()]
    union = empty[0] if len(empty) == 1 else pl.concat(empty, how="diagonal_relaxed")
    return Files(tuple(files), union.collect_schema(), tuple(skipped), memory_limit)


def _with_own_types(schemas: list[pl.Schema], exact: Collection[str]) -> list[pl.Schema]:
    mixed = set()
    for name in exact:
        kinds = {_kind(schema[name]) for schema in schemas if schema.get(name, pl.Null) != pl.Null}
        mixed |= {name} if len(kinds) > 1 else set()
    return [
        pl.Schema({name: TYPED if name in mixed else dtype for name, dtype in schema.items()}) for schema in schemas
    ]


def _kind(dtype: Any) -> Any:
    return "integer" if dtype.is_integer() else "float" if dtype.is_float() else plain_type(dtype)


def _refuse_drift(names: list[str], schemas: list[pl.Schema]) -> None:
    first: dict[str, tuple[str, pl.DataType]] = {}
    for path, schema in zip(names, schemas, strict=True):
        for name, dtype in schema.items():
            where, first_type = first.setdefault(name, (path, dtype))
            if first_type == pl.Null:
                first[name] = (path, dtype)
            elif not _reconcilable(first_type, dtype):
                fact = f"`{name}` is {first_type} in {shown_path(where)} and {dtype} in {shown_path(path)}."
                raise InputError(fact, "Give the column one type in all files, or score them separately.")


def _reconcilable(left: Any, right: Any) -> bool:
    if left == right or pl.Null in (left, right) or (left.is_numeric() and right.is_numeric()):
        return True
    if isinstance(left, pl.List) and isinstance(right, pl.List):
        return _reconcilable(left.inner, right.inner)
    if isinstance(left, pl.Struct) and isinstance(right, pl.Struct):
        right_fields = dict(right.to_schema())
        return all(
            _reconcilable(dtype, right_fields[name]) for name, dtype in left.to_schema().items() if name in right_fields
        )
    return False


def broken_file(files: Sequence[File]) -> InputError | None:
    """Return the error of the first file that cannot be read to its end; None if all can."""
    for entry in files:
        file = getattr(entry, "within", entry)
        if isinstance(file, ParquetFile) and not file.dense and (message := file.fault()):
            return InputError(message)
        try:
            # not in batches: that stream would end silently if a thread of Polars fails
            file.scan().select(pl.all().null_count()).collect(engine="streaming")
        except ENGINE_ERRORS as error:
            return InputError(f"{shown_path(name_of(file))}: {first_line(error)}")
        except InputError as error:
            return error
    return None
