"""Write results whole or not at all, with what made them, and read that back.

A result is written to a hidden sibling, flushed to the disk, read back where it has a footer, and only then renamed: nobody
ever sees half a file, and a failed run leaves the old one as it was.
"""

import contextlib
import json
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Protocol

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from assay.errors import InputError, OutputError, UsageError

__all__ = ["ENDINGS", "PROVENANCE_KEY", "STDOUT", "Writer", "open_writer", "read_provenance"]

ENDINGS = (".parquet", ".jsonl", ".csv")
STDOUT = "-"
PROVENANCE_KEY = "assay"
"""Key of the footer's metadata under which the provenance stands, as JSON."""

_FORMULA = r"^([=+\-@\t\r])"


class Writer(Protocol):
    """Takes the batches of a result in order."""

    def write(self, batch: pl.DataFrame) -> None:
        """Write rows."""

    def close(self, provenance: Mapping[str, Any]) -> None:
        """Finish the file, with what made it where the format has a place for that."""


class _Parquet:
    def __init__(self, file: IO[bytes], schema: pl.Schema) -> None:
        self._schema = self._arrow(pl.DataFrame(schema=schema)).schema
        self._writer = pq.ParquetWriter(file, self._schema, compression="zstd")

    @staticmethod
    def _arrow(frame: pl.DataFrame) -> Any:
        # the oldest layout: string views would lock older readers out
        return frame.to_arrow(compat_level=pl.CompatLevel.oldest())

    def write(self, batch: pl.DataFrame) -> None:
        if batch.height:
            self._writer.write_table(self._arrow(batch).cast(self._schema))

    def close(self, provenance: Mapping[str, Any]) -> None:
        self._writer.add_key_value_metadata({PROVENANCE_KEY: json.dumps(provenance)})
        self._writer.close()


class _JsonLines:
    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def write(self, batch: pl.DataFrame) -> None:
        self._file.write(batch.write_ndjson().encode())  # our own write says why the pipe or the disk refused

    def close(self, provenance: Mapping[str, Any]) -> None:
        del provenance


class _Csv:
    def __init__(self, file: IO[bytes], schema: pl.Schema, *, raw: bool) -> None:
        self._file = file
        self._raw = raw
        self._file.write(pl.DataFrame(schema=dict.fromkeys(schema, pl.String)).write_csv().encode())

    def write(self, batch: pl.DataFrame) -> None:
        flat = batch.with_columns(
            pl.Series(
                name, [None if value is None else json.dumps(value, default=str) for value in batch[name].to_list()]
            )
            for name, dtype in batch.schema.items()
            if dtype.is_nested()
        )
        if not self._raw:  # a spreadsheet runs a cell that begins so
            flat = flat.with_columns(pl.col(pl.String).str.replace(_FORMULA, "'$1"))
        self._file.write(flat.write_csv(include_header=False).encode())

    def close(self, provenance: Mapping[str, Any]) -> None:
        del provenance


@contextlib.contextmanager
def open_writer(out: str | Path | None, schema: pl.Schema, *, raw_csv: bool = False) -> Iterator[Writer | None]:
    """A writer for a path by its ending, for standard output (``-``, JSON lines), or None.

    The file appears under its name when the block ends without an exception.

    Args:
        out: Where to.
        schema: Columns of the result.
        raw_csv: Leave cells that a spreadsheet would run as they are.

    Raises:
        OutputError: The file cannot be written; what was there before is untouched.
    """
    if out is None:
        yield None
    elif str(out) == STDOUT:
        yield _JsonLines(sys.stdout.buffer)
        sys.stdout.buffer.flush()
    else:
        yield from _atomic(Path(out), schema, raw_csv=raw_csv)


def _atomic(path: Path, schema: pl.Schema, *, raw_csv: bool) -> Iterator[Writer]:
    target = Path(os.path.realpath(path))  # a link stays a link
    draft = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with _told(path, draft):
            file = draft.open("wb")
        with file:
            with _told(path, draft):
                writer = _writer(path.suffix.lower(), file, schema, raw_csv=raw_csv)
            yield _Told(writer, path, draft)
            with _told(path, draft):
                file.flush()
                os.fsync(file.fileno())
        with _told(path, draft):
            if path.suffix.lower() == ".parquet":
                pq.read_metadata(draft)
            draft.replace(target)
            _sync_folder(target.parent)
    finally:
        draft.unlink(missing_ok=True)


@contextlib.contextmanager
def _told(path: Path, draft: Path) -> Iterator[None]:
    """What the disk refuses, as an error that names the file."""
    try:
        yield
    except (OSError, pa.ArrowException) as wrong:
        written = draft.stat().st_size if draft.exists() else 0
        said = getattr(wrong, "strerror", None) or str(wrong)
        raise OutputError(f"{path}: {said}, after {written:,} bytes.", "What was there before is untouched.") from wrong


class _Told:
    """A writer whose errors name the file."""

    def __init__(self, writer: Writer, path: Path, draft: Path) -> None:
        self._writer, self._path, self._draft = writer, path, draft

    def write(self, batch: pl.DataFrame) -> None:
        with _told(self._path, self._draft):
            self._writer.write(batch)

    def close(self, provenance: Mapping[str, Any]) -> None:
        with _told(self._path, self._draft):
            self._writer.close(provenance)


def _writer(suffix: str, file: IO[bytes], schema: pl.Schema, *, raw_csv: bool) -> Writer:
    if suffix == ".parquet":
        return _Parquet(file, schema)
    return _JsonLines(file) if suffix == ".jsonl" else _Csv(file, schema, raw=raw_csv)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def read_provenance(path: str | Path) -> dict[str, Any]:
    """What made a reward parquet.

    Args:
        path: A file that Assay wrote.

    Returns:
        ``assay_version``, ``polars_version``, ``command``, ``inputs`` (name, size in bytes, rows) and ``verifiers`` (id, sha256,
        canonical spec, checks with weights).

    Raises:
        InputError: The file cannot be read or Assay did not write it.
        UsageError: The path does not end in ``.parquet``.
    """
    if Path(path).suffix.lower() != ".parquet":
        raise UsageError(f"{path}: only reward files in parquet say what made them.")
    try:
        metadata = pq.read_metadata(path).metadata or {}
    except FileNotFoundError:
        raise InputError(f"{path}: no such file.") from None
    except (OSError, pa.ArrowException) as wrong:
        raise InputError(f"{path}: not a readable parquet file: {wrong}") from None
    if PROVENANCE_KEY.encode() not in metadata:
        raise InputError(f"{path}: not written by Assay; its footer has no provenance.")
    provenance: dict[str, Any] = json.loads(metadata[PROVENANCE_KEY.encode()])
    return provenance
