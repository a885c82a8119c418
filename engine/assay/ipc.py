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

from assay.arrow import check_names, from_arrow
from assay.errors import InputError
from assay.frames import as_source
from assay.reading import BadRow, Reading, Unit

__all__ = ["IpcFile", "open_ipc"]

_MAGIC = b"ARROW1"


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
        return as_source(partial(self.read, first, last), self.schema)

    def read(self, first: int, last: int | None, names: list[str], rows: int) -> Iterator[pl.DataFrame]:
        """The same frame by frame."""
        size = 0
        for batch in _batches(self.path, range(len(self.units))[first:last]):
            table = pa.Table.from_batches([batch]).select(names)
            whole = _checked(self.path, table)
            size += table.nbytes  # not before it is known to be valid: to count it is to believe it
            self.reading.refuse_bomb(self.path, size)
            yield from whole.iter_slices(rows)


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
        file = opened.enter_context(pa.memory_map(str(path)))
        is_file = file.read(len(_MAGIC)) == _MAGIC
        file.seek(0)
        return opened.enter_context((pa.ipc.open_file if is_file else pa.ipc.open_stream)(file))
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError) as wrong:
        raise InputError(f"{path}: neither an Arrow file nor an Arrow stream: {wrong}") from None


def _schema(path: Path, schema: pa.Schema) -> pl.Schema:
    try:
        check_names(schema)
        return from_arrow(schema.empty_table()).schema
    except InputError as wrong:
        raise InputError(f"{path}: {wrong.fact}", wrong.hint) from None


def _checked(path: Path, table: pa.Table) -> pl.DataFrame:
    try:
        return from_arrow(table)
    except InputError as wrong:
        raise InputError(f"{path}: {wrong.fact}", wrong.hint) from None


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
            raise InputError(f"{path}: is damaged: {wrong}") from None
