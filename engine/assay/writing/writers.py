"""Write results with their provenance, and read the provenance back."""

import base64
import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import IO, Any, Protocol

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from assay.errors import InputError, OutputError, UsageError, printable, shown_path
from assay.expressions.lane import exactly
from assay.expressions.readable import has_type, readable
from assay.names import MANIFEST, PROVENANCE_KEY
from assay.spec.stored_json import Stored, StoredError, parse_stored
from assay.system.atomic_file import DiskGuard, new_file, refused_by_disk
from assay.system.special_files import refuse_url, what_is
from assay.system.stdout import standard_output
from assay.writing.digests import ContentDigest
from assay.writing.footers import Footer, Summed

ENDINGS = (".parquet", ".jsonl", ".csv")
STDOUT = "-"
SUMMARY = "_summary.json"
"""File in a folder of parts with the summary of the run; written after all parts."""

_FORMULA = r"^([=+\-@\t\r])"


class Writer(Protocol):
    """Writes the batches of a result, in order."""

    def write(self, batch: pl.DataFrame) -> None:
        """Write rows."""

    def close(self, provenance: Mapping[str, Any]) -> str:
        """Finish the file, and add the provenance if the format can hold it; return the root of its content, or ``""``."""

    def abandon(self) -> None:
        """Discard an unfinished file."""


Opener = Callable[[IO[bytes], pl.Schema], Writer]
"""Makes a writer to an open file, for the columns of a result."""


class _Parquet:
    def __init__(self, file: IO[bytes], schema: pl.Schema) -> None:
        for name, dtype in schema.items():
            if any("\0" in field for field in (name, *_names_inside(dtype))):
                hint = "Leave the column out with --keep, or write .jsonl or .csv."
                raise InputError(f"`{name}`: column names in parquet cannot contain NUL.", hint)
        empty = plain_frame(pl.DataFrame(schema=schema))
        self._schema = _arrow(empty).schema
        self._content = ContentDigest(empty.schema)
        self._writer = pq.ParquetWriter(file, self._schema, compression="zstd")

    def write(self, batch: pl.DataFrame) -> None:
        if batch.height:
            # rechunk, because the engine's chunks would show in the bytes
            plain = plain_frame(batch.rechunk())
            table = _arrow(plain)
            self._content.add(plain, table)
            self._writer.write_table(in_schema(table, self._schema))

    def close(self, provenance: Mapping[str, Any]) -> str:
        content = self._content.content()
        self._writer.add_key_value_metadata({PROVENANCE_KEY: json.dumps({**provenance, "content": content})})
        self._writer.close()
        root: str = content["root"]
        return root

    def abandon(self) -> None:
        self._content.close()
        with contextlib.suppress(Exception):
            self._writer.close()
        self._writer.is_open = False  # otherwise the garbage collector closes it, after the file is gone


def _names_inside(dtype: Any) -> Iterator[str]:
    """Yield the names of all struct fields in a type."""
    for field in dtype.fields if isinstance(dtype, pl.Struct) else ():
        yield field.name
        yield from _names_inside(field.dtype)
    if hasattr(dtype, "inner"):
        yield from _names_inside(dtype.inner)


class JsonLines:
    """Rows as JSON lines."""

    def __init__(self, file: IO[bytes], schema: pl.Schema) -> None:
        del schema
        self._file = file

    def write(self, batch: pl.DataFrame) -> None:
        """Write rows."""
        lines = _as_text(_without_extensions(batch), lambda dtype: _holds(dtype, _NOT_IN_TEXT)).write_ndjson()
        if self._file.isatty():
            lines = printable(lines, lines=True)
        self._file.write(lines.encode())  # Polars would not report why the pipe or the disk failed

    def close(self, provenance: Mapping[str, Any]) -> str:
        """Return no root: lines hold none."""
        del provenance
        return ""

    def abandon(self) -> None:
        """Do nothing: there is no buffer."""


class _Csv:
    def __init__(self, file: IO[bytes], schema: pl.Schema, *, raw: bool) -> None:
        self._file = file
        self._raw = raw
        header = pl.DataFrame([pl.Series("name", list(schema), dtype=pl.String)])
        names = header["name"] if raw else header.select(_escaped(pl.col("name"))).to_series()
        self._file.write(pl.DataFrame(schema=dict.fromkeys(names, pl.String)).write_csv().encode())

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

    def close(self, provenance: Mapping[str, Any]) -> str:
        del provenance
        return ""

    def abandon(self) -> None:
        """Do nothing: there is no buffer."""


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


_NOT_IN_PARQUET = (pl.Int128, pl.UInt128, pl.Object)
_NOT_IN_TEXT = (pl.Binary, pl.Duration, pl.Int128, pl.UInt128, pl.Object)


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
    return frame.with_columns(
        pl.Series(name, [_text(value) for value in _values(frame, name)], dtype=pl.String)
        for name, dtype in frame.schema.items()
        if needs(dtype)
    )


def _values(frame: pl.DataFrame, name: str) -> list[Any]:
    values, dtype = exactly(name), frame.schema[name]
    if has_type(dtype, pl.Object):
        return frame.get_column(name).to_list()
    return frame.select(readable(values, dtype, as_text=False)[0]).to_series().to_list()


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return _bytes(value) if isinstance(value, bytes) else json.dumps(value, default=_bytes)


def _bytes(value: Any) -> str:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)


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

    The file appears at its path when the block ends without an exception.

    Args:
        out: The output path; None for no output.
        schema: Columns of the result.
        raw_csv: Whether to leave formulas in CSV cells unescaped.
        alone: Whether to lock the path against other runs.
        lines: Makes a writer of JSON lines of another form.

    Yields:
        The writer, or None.

    Raises:
        OutputError: The file cannot be written; an existing file is unchanged.
        UsageError: Another run is writing it.
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
        openers = {".parquet": _Parquet, ".jsonl": lines}
        opener = openers.get(Path(out).suffix.lower(), partial(_Csv, raw=raw_csv))
        yield from _atomic(Path(out), schema, opener, alone=alone)


def _atomic(path: Path, schema: pl.Schema, opener: Opener, *, alone: bool) -> Iterator[Writer]:
    with new_file(path, alone=alone) as (file, guard):
        with guard():
            writer = opener(file, schema)
        try:
            yield _Guarded(writer, guard)
        except BaseException:
            writer.abandon()
            raise


class _Guarded:
    """A writer whose errors name the file."""

    def __init__(self, writer: Writer, guard: DiskGuard) -> None:
        self._writer, self._guard = writer, guard

    def write(self, batch: pl.DataFrame) -> None:
        with self._guard():
            self._writer.write(batch)

    def close(self, provenance: Mapping[str, Any]) -> str:
        with self._guard():
            return self._writer.close(provenance)

    def abandon(self) -> None:
        self._writer.abandon()


def read_provenance(path: str | Path) -> dict[str, Any]:
    """Read the provenance of a parquet file of rewards, or of a folder of parts.

    Args:
        path: A file or a folder that Assay wrote.

    Returns:
        ``assay_version``, ``polars_version``, ``libraries`` (the versions of those that decide verdicts, if a check needs one),
        ``command``, ``rows``, ``content`` (rows, columns with name, type and SHA-256, and the ``root`` of them), ``inputs`` (name, size in bytes, rows: null for Arrow
        and CSV files in a run over several), ``tasks`` (name, size) and ``verifiers`` (id, kind, sha256, canonical
        spec, checks with weights, and ``code``: the functions and classes used, with a hash of the source of those that are not
        built in). For a folder, its manifest: also ``settings``, ``columns``, ``shards`` and a hash of the ``task_table``;
        ``rows`` is null until the run is finished. A part holds only its ``run``; the manifest beside it holds the rest.

    Raises:
        InputError: The file cannot be read, its provenance is damaged, or Assay did not write it.
        UsageError: The path does not end in ``.parquet``.
    """
    provenance = provenance_in(path)
    if provenance is None:
        where = f"it has no {MANIFEST}" if Path(path).is_dir() else "its footer has no provenance"
        raise InputError(f"{shown_path(path)}: not written by Assay; {where}.")
    return provenance


def provenance_in(path: str | Path) -> dict[str, Any] | None:
    """``read_provenance``, but None for a file or a folder that has none.

    Raises:
        InputError: The file cannot be read, or its provenance is damaged.
        UsageError: The path does not end in ``.parquet``.
    """
    refuse_url(path, InputError)
    if Path(path).is_dir():
        return _of_folder(Path(path))
    if Path(path).suffix.lower() != ".parquet":
        raise UsageError(f"{shown_path(path)}: only parquet files hold a provenance.")
    if kind := what_is(Path(path)):
        raise InputError(f"{shown_path(path)}: is {kind}.")
    try:
        with Path(path).open("rb") as file:
            metadata = pq.read_metadata(file).metadata or {}
    except FileNotFoundError:
        raise InputError(f"{shown_path(path)}: no such file.") from None
    except PermissionError as error:
        raise InputError(f"{shown_path(path)}: {error.strerror}.") from None
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:  # of the name of a column
        raise InputError(f"{shown_path(path)}: not a readable parquet file: {error}") from None
    stored = metadata.get(PROVENANCE_KEY.encode())
    return None if stored is None else _checked(stored, Footer, path)


def _of_folder(folder: Path) -> dict[str, Any] | None:
    if (manifest := text_beside(folder / MANIFEST)) is None:
        return None
    summary = text_beside(folder / SUMMARY)
    rows = None if summary is None else _checked(summary, Summed, folder / SUMMARY)["rows"]
    return {**_checked(manifest, Footer, folder / MANIFEST), "rows": rows}


def text_beside(path: Path) -> bytes | None:
    """Return the content of a file beside the parts of a folder; None if there is none.

    Raises:
        InputError: It cannot be read, or is no file.
    """
    if kind := what_is(path):
        raise InputError(f"{shown_path(path)}: is {kind}.")
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(f"{shown_path(path)}: {error.strerror}.") from None


def _checked(text: bytes, kind: type[Stored], path: str | Path) -> dict[str, Any]:
    try:
        return parse_stored(text, kind)
    except StoredError as error:
        fact = f"{shown_path(path)}: its provenance cannot be read: {error}."
        raise InputError(fact, "Score the rollouts again.") from None
