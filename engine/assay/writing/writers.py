"""Write results to parquet, JSON lines and CSV."""

import base64
import contextlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import IO, Any

import polars as pl

from assay.errors import InputError, OutputError, UsageError, printable
from assay.expressions.readable import has_type, readable
from assay.expressions.shared_columns import exactly
from assay.loading.formats.parquet_footer import PLAIN
from assay.names import PROVENANCE_KEY
from assay.system.arrow import pq
from assay.system.atomic_file import DiskGuard, new_file, refused_by_disk
from assay.system.memory import WRITTEN_OUT, bytes_of_texts, written_out
from assay.system.stdout import standard_output
from assay.thresholds import THRESHOLDS
from assay.writing.digests import ContentDigest
from assay.writing.row_groups import RowGroups

ENDINGS = (".parquet", ".jsonl", ".csv")
STDOUT = "-"

_FORMULA = r"^([=+\-@\t\r])"
_NOT_IN_PARQUET = (pl.Int128, pl.UInt128, pl.Object)
_NOT_IN_TEXT = (pl.Binary, pl.Duration, pl.Int128, pl.UInt128, pl.Object)
_SAMPLE, _RESULT = ("id", "epoch"), ("reward", "feedback", "error")


class Writer(ABC):
    """Writes the batches of a result to an open file, in order."""

    def __init__(self, file: IO[bytes], schema: pl.Schema) -> None:
        self._file, self._schema = file, schema

    @abstractmethod
    def write(self, batch: pl.DataFrame) -> None:
        """Write rows."""

    def close(self, provenance: Mapping[str, Any]) -> str:  # noqa: ARG002
        """Finish the file, and add the provenance if the format can hold it; return the root of its content, or ``""``."""
        return ""

    def abandon(self) -> None:  # noqa: B027  (most have nothing to discard)
        """Discard an unfinished file."""


Opener = Callable[[IO[bytes], pl.Schema], Writer]


class _Parquet(Writer):
    def __init__(self, file: IO[bytes], schema: pl.Schema) -> None:
        for name, dtype in schema.items():
            if any("\0" in field for field in (name, *_names_inside(dtype))):
                hint = "Leave the column out with --keep, or write .jsonl or .csv."
                raise InputError(f"`{name}`: column names in parquet cannot contain NUL.", hint)
        self._empty = plain_frame(pl.DataFrame(schema=schema))
        self._content = ContentDigest(self._empty.schema)
        self._held: list[pl.DataFrame] = []
        self._rows = self._size = 0
        self._tables: RowGroups | _ArrowParquet
        if all(dtype in PLAIN for dtype in self._empty.schema.values()):
            self._tables, self._most = RowGroups(file), THRESHOLDS.held_rows
        else:
            self._tables, self._most = _ArrowParquet(file, self._empty), 0

    def write(self, batch: pl.DataFrame) -> None:
        if not batch.height:
            return
        plain = plain_frame(batch)
        self._held.append(plain)
        self._rows += plain.height
        self._size += max(int(plain.estimated_size()), bytes_of_texts(plain))
        if self._rows > self._most or self._size > WRITTEN_OUT:
            self._tables.write(self._all_held())

    def _all_held(self) -> pl.DataFrame:
        # rechunk, because the engine's chunks would show in the bytes
        whole = pl.concat(self._held, rechunk=True) if self._held else self._empty
        self._held.clear()
        self._rows = self._size = 0
        self._content.add(whole)
        return whole

    def close(self, provenance: Mapping[str, Any]) -> str:
        whole = self._all_held()
        content = self._content.content()
        footer = {PROVENANCE_KEY: json.dumps({**provenance, "content": content})}
        self._tables.close(whole, footer)
        return str(content["root"])

    def abandon(self) -> None:
        self._content.close()
        self._tables.abandon()


class _ArrowParquet:
    """Writes columns of types that Polars' writer stores otherwise."""

    def __init__(self, file: IO[bytes], empty: pl.DataFrame) -> None:
        self._schema = _arrow(empty).schema
        self._writer = pq.ParquetWriter(file, self._schema, compression="zstd")

    def write(self, plain: pl.DataFrame) -> None:
        self._writer.write_table(in_schema(_arrow(plain), self._schema))

    def close(self, plain: pl.DataFrame, footer: Mapping[str, str]) -> None:
        if plain.height:
            self.write(plain)
        self._writer.add_key_value_metadata(footer)
        self._writer.close()

    def abandon(self) -> None:
        with contextlib.suppress(Exception):
            self._writer.close()
        self._writer.is_open = False  # otherwise the garbage collector closes it, after the file is gone


def _names_inside(dtype: Any) -> Iterator[str]:
    for field in dtype.fields if isinstance(dtype, pl.Struct) else ():
        yield field.name
        yield from _names_inside(field.dtype)
    if hasattr(dtype, "inner"):
        yield from _names_inside(dtype.inner)


class JsonLines(Writer):
    """JSON lines; what JSON has no form for is text."""

    def write(self, batch: pl.DataFrame) -> None:
        """Write rows."""
        lines = _as_text(_without_extensions(batch), lambda dtype: _holds(dtype, _NOT_IN_TEXT)).write_ndjson()
        if self._file.isatty():
            lines = printable(lines, lines=True)
        self._file.write(lines.encode())  # Polars would not report why the pipe or the disk failed


class InspectScores(Writer):
    """Scores in the form that Inspect's ``precomputed_scores`` reads: a JSON line for each sample of a log.

    It has ``id``, ``epoch``, ``value``, ``explanation`` and ``metadata``, which has the other results.

    NOTE: an unscored sample has the value NaN, which Inspect leaves out of its metrics. It is no JSON, but what Inspect writes and reads.
    """

    def __init__(self, file: IO[bytes], schema: pl.Schema) -> None:
        if missing := [name for name in _SAMPLE if name not in schema]:
            fact = f"Scores of a log of Inspect need {' and '.join(f'`{name}`' for name in missing)}."
            raise UsageError(fact, "Keep them: --keep id,epoch; or write a table: --out NAME.parquet")
        super().__init__(file, schema)

    def write(self, batch: pl.DataFrame) -> None:
        """Write rows."""
        names = list(self._schema)
        results = names[names.index("reward") :]
        for row in batch.select(*_SAMPLE, *results).iter_rows(named=True):
            is_scored = row["reward"] is not None
            record = {
                **{name: row[name] for name in _SAMPLE},
                "value": row["reward"] if is_scored else float("nan"),
                "explanation": row["feedback"] if is_scored else row["error"],
                "metadata": {name: row[name] for name in results if name not in _RESULT},
            }
            self._file.write(json.dumps(record, default=str).encode() + b"\n")


class _Csv(Writer):
    def __init__(self, file: IO[bytes], schema: pl.Schema, *, raw: bool) -> None:
        super().__init__(file, schema)
        self._raw = raw
        names = pl.DataFrame({"name": list(schema)}, schema={"name": pl.String})
        names = names if raw else names.select(_escaped(pl.col("name")))
        self._file.write(pl.DataFrame(schema=dict.fromkeys(names["name"], pl.String)).write_csv().encode())

    def write(self, batch: pl.DataFrame) -> None:
        flat = _as_text(_without_extensions(batch), lambda dtype: dtype.is_nested() or _holds(dtype, _NOT_IN_TEXT))
        flat = flat.with_columns(pl.col(pl.Categorical, pl.Enum).cast(pl.String))
        # NOTE: Polars panics at dates that are far from Python's
        flat = flat.select(
            readable(exactly(name), dtype, as_text=False)[0].alias(name) for name, dtype in flat.schema.items()
        )
        if not self._raw:
            flat = flat.with_columns(_escaped(pl.col(pl.String)))
        self._file.write(flat.write_csv(include_header=False).encode())


def plain_frame(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a frame as parquet holds it: what parquet has no type for is text."""
    return _as_text(frame, lambda dtype: _holds(dtype, _NOT_IN_PARQUET))


def plain_arrow(frame: pl.DataFrame) -> Any:
    """Return a frame as an Arrow table in the oldest layout: older readers do not support string views."""
    return _arrow(plain_frame(frame))


def _arrow(plain: pl.DataFrame) -> Any:
    return plain.to_arrow(compat_level=pl.CompatLevel.oldest())


def in_schema(table: Any, schema: Any) -> Any:
    """Cast the columns of a table to the types of a schema.

    NOTE: columns of the right type are left alone: Arrow corrupts a list of structs with a field of nulls when it casts it, even
    to the same type.
    """
    for index, field in enumerate(schema):
        if not table.schema.field(index).equals(field):
            table = table.set_column(index, field, table.column(index).cast(field.type))
    return table


def _escaped(text: pl.Expr) -> pl.Expr:
    """Prefix cells that a spreadsheet would run as formulas with a quote."""
    return text.str.replace(_FORMULA, "'$1")


def _holds(dtype: Any, kinds: tuple[Any, ...]) -> bool:
    """Return whether a type is or contains one of these types, or a struct without fields."""
    if isinstance(dtype, pl.Struct):
        return not dtype.fields or any(_holds(field.dtype, kinds) for field in dtype.fields)
    if isinstance(dtype, pl.Map):
        return dtype.key != pl.String or _holds(dtype.value, kinds)
    return dtype in kinds or (hasattr(dtype, "inner") and _holds(dtype.inner, kinds))


def _without_extensions(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a frame with what columns of extension types store."""
    extended = [name for name, dtype in frame.schema.items() if isinstance(dtype, pl.BaseExtension)]
    return frame.with_columns(frame.get_column(name).ext.storage() for name in extended)


def _as_text(frame: pl.DataFrame, needs: Callable[[Any], bool]) -> pl.DataFrame:
    """Convert columns of types that a format does not support to JSON text, and bytes to base64."""

    def text(value: Any) -> str | None:
        plain = value is None or isinstance(value, str)
        return value if plain else unpacked(value) if isinstance(value, bytes) else json.dumps(value, default=unpacked)

    def unpacked(value: Any) -> str:
        return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)

    columns = []
    for name, dtype in frame.schema.items():
        if needs(dtype):
            values = frame.get_column(name)
            if not has_type(dtype, pl.Object):
                values = frame.select(readable(exactly(name), dtype, as_text=False)[0]).to_series()
            columns.append(pl.Series(name, [text(value) for value in values.to_list()], dtype=pl.String))
    return frame.with_columns(columns)


@contextlib.contextmanager
def open_writer(
    out: str | Path | None,
    schema: pl.Schema,
    *,
    raw_csv: bool = False,
    alone: bool = True,
    lines: Opener | None = None,
) -> Iterator[Writer | None]:
    """Open a writer for a path, by its ending, or for standard output (``-``, JSON lines).

    The file appears at its path when the block ends without an exception; else an existing file is unchanged. ``alone`` locks the path
    against other runs; ``lines`` makes a writer of JSON lines of another form. The errors of the writer name the file.
    """
    lines = lines or JsonLines
    if out is None:
        yield None
    elif str(out) == STDOUT:
        stream = standard_output()
        if stream is None:
            raise OutputError("Standard output is closed.")
        yield _Guarded(lines(stream.buffer, schema), partial(refused_by_disk, "standard output"))
        with refused_by_disk("standard output"):
            stream.buffer.flush()
    else:
        openers: dict[str, Opener] = {".parquet": _Parquet, ".jsonl": lines}
        opener = openers.get(Path(out).suffix.lower(), partial(_Csv, raw=raw_csv))
        with new_file(Path(out), alone=alone) as (file, guard):
            with guard():
                writer = opener(file, schema)
            try:
                yield _Guarded(writer, guard)
            except BaseException:
                writer.abandon()
                raise


class _Guarded(Writer):
    def __init__(self, writer: Writer, guard: DiskGuard) -> None:
        self._writer, self._guard = writer, guard

    def write(self, batch: pl.DataFrame) -> None:
        with self._guard():
            for piece in written_out(batch):
                self._writer.write(piece)

    def close(self, provenance: Mapping[str, Any]) -> str:
        with self._guard():
            return self._writer.close(provenance)
