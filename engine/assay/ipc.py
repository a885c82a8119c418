"""Arrow IPC files and streams, record batch by record batch.

The engine's own reader believes what a file says of itself: a damaged one ends threads, or the process where it asks for more
memory than there is. So Arrow reads them, and each batch is validated in full before the engine sees it.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import polars as pl
import pyarrow as pa
from polars.io.plugins import register_io_source

from assay.arrow import check_names, from_arrow
from assay.errors import InputError, shown_path
from assay.reading import BadRow, Reading, Unit
from assay.special_files import engine_path

__all__ = ["IpcFile", "open_ipc"]

_MAGIC = b"ARROW1"
_ROWS = 16_384
"""Rows that are worked on together, where the engine has no wish of its own."""


@dataclass(frozen=True)
class IpcFile:
    """A ``File`` whose units are record batches; a stream is one unit, for nothing tells where its batches begin."""

    path: Path
    schema: pl.Schema
    units: tuple[Unit, ...]
    reading: Reading = field(default_factory=Reading)
    bad: tuple[BadRow, ...] = ()
    notes: tuple[str, ...] = ()

    def scan(self, first: int = 0, last: int | None = None) -> pl.LazyFrame:
        """The rows of some record batches; by default all."""
        numbers = range(len(self.units))[first:last]
        return register_io_source(partial(_read, self, numbers), schema=self.schema, is_pure=True)


def open_ipc(path: Path, reading: Reading) -> IpcFile:
    """Look at the schema of an Arrow file or stream.

    Raises:
        InputError: It is neither, or the engine has no such columns.
    """
    with ExitStack() as opened:
        source = _opened(path, opened)
        units = source.num_record_batches if isinstance(source, pa.ipc.RecordBatchFileReader) else 1
        schema = _schema(path, source.schema)
    size = path.stat().st_size // max(1, units)
    return IpcFile(path, schema, (Unit(None, size),) * units, reading)


def _opened(path: Path, opened: ExitStack) -> pa.ipc.RecordBatchFileReader | pa.ipc.RecordBatchStreamReader:
    try:
        file = opened.enter_context(pa.memory_map(engine_path(path)))
        is_file = file.read(len(_MAGIC)) == _MAGIC
        file.seek(0)
        return opened.enter_context((pa.ipc.open_file if is_file else pa.ipc.open_stream)(file))
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError) as wrong:
        raise InputError(f"{shown_path(path)}: neither an Arrow file nor an Arrow stream: {wrong}") from None


def _schema(path: Path, schema: pa.Schema) -> pl.Schema:
    try:
        check_names(schema)
        return from_arrow(schema.empty_table()).schema
    except InputError as wrong:
        raise InputError(f"{shown_path(path)}: {wrong.fact}", wrong.hint) from None


def _checked(path: Path, table: pa.Table) -> pl.DataFrame:
    try:
        return from_arrow(table)
    except InputError as wrong:
        raise InputError(f"{shown_path(path)}: {wrong.fact}", wrong.hint) from None


def _read(
    file: IpcFile,
    numbers: range,
    names: list[str] | None,
    predicate: pl.Expr | None,
    limit: int | None,
    rows: int | None,
) -> Iterator[pl.DataFrame]:
    read = 0
    for batch in _batches(file.path, numbers):
        table = pa.Table.from_batches([batch])
        table = table if names is None else table.select(names)
        whole = _checked(file.path, table)
        read += table.nbytes  # not before it is known to be valid: to count it is to believe it
        file.reading.refuse_bomb(file.path, read)
        for piece in whole.iter_slices(rows or _ROWS):
            frame = piece if limit is None else piece.head(limit)
            limit = None if limit is None else limit - frame.height
            yield frame if predicate is None else frame.filter(predicate)
            if limit == 0:
                return


def _batches(path: Path, numbers: range) -> Iterator[pa.RecordBatch]:
    with ExitStack() as opened:
        source = _opened(path, opened)
        try:
            if isinstance(source, pa.ipc.RecordBatchFileReader):
                for at in numbers:
                    yield source.get_batch(at)
            elif numbers:
                yield from source
        except (pa.ArrowException, OSError) as wrong:
            raise InputError(f"{shown_path(path)}: is damaged: {wrong}") from None
