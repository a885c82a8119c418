"""Arrow IPC files and streams, record batch by record batch.

The engine's own reader believes what a file says of itself: a damaged one ends threads, or the process where it asks for more
memory than there is. So Arrow reads them, and each batch is validated in full before the engine sees it.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path

import polars as pl
import pyarrow as pa

from assay.errors import InputError, shown_path
from assay.loading.formats.engine_source import as_source
from assay.loading.formats.reading import BadRow, Reading, Unit
from assay.system.special_files import engine_path
from assay.values.arrow import check_names, from_arrow

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
        size, dictionaries = 0, Dictionaries()
        for batch in _batches(self.path, range(len(self.units))[first:last]):
            table = pa.Table.from_batches([batch]).select(names)
            whole = _checked(self.path, table)
            size += dictionaries.weigh(
                batch.select(names)
            )  # not before it is known to be valid: to count it is to believe it
            self.reading.refuse_bomb(self.path, size)
            yield from whole.iter_slices(rows)


class Dictionaries:
    """What batches have in memory, where many of them share their dictionaries: each counts once, and so does what is added to it."""

    def __init__(self) -> None:
        self._last: dict[tuple[int, ...], pa.Array] = {}

    def weigh(self, batch: pa.RecordBatch) -> int:
        """Bytes of a batch that none before it had."""
        return int(batch.nbytes) - sum(self._known(column, (at,)) for at, column in enumerate(batch.columns))

    def _known(self, array: pa.Array, place: tuple[int, ...]) -> int:
        """Bytes of the dictionaries in an array, at any depth, that were counted already."""
        dtype = array.type
        if pa.types.is_dictionary(dtype):
            last, self._last[place] = self._last.get(place), array.dictionary
            return 0 if last is None else _shared(last, array.dictionary)
        if isinstance(array, pa.StructArray):
            return sum(self._known(array.field(at), (*place, at)) for at in range(dtype.num_fields))
        if isinstance(array, pa.ListArray | pa.LargeListArray | pa.FixedSizeListArray | pa.MapArray):
            return self._known(array.values, (*place, 0))
        return 0


def _shared(last: pa.Array, now: pa.Array) -> int:
    """Bytes of a dictionary that are those of the last one, which it is or goes on."""
    if _places(last) == _places(now):
        return int(now.nbytes)
    return int(last.nbytes) if len(now) >= len(last) and now.slice(0, len(last)).equals(last) else 0


def _places(array: pa.Array) -> list[int | None]:
    return [None if one is None else one.address for one in array.buffers()]


def open_ipc(path: Path, reading: Reading) -> IpcFile:
    """Look at the schema of an Arrow file or stream.

    Raises:
        InputError: It is neither, or the engine has no such columns.
    """
    with ExitStack() as opened:
        source = _opened(path, opened)
        units = source.num_record_batches if isinstance(source, pa.ipc.RecordBatchFileReader) else 1
        schema = _schema_of(path, source.schema)
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


@lru_cache(64)  # thousands of files have one schema; as bytes, for two that differ in their metadata are equal to Arrow
def _schema(serialized: bytes) -> pl.Schema:
    schema = pa.ipc.read_schema(pa.py_buffer(serialized))
    check_names(schema)
    return from_arrow(schema.empty_table()).schema


def _schema_of(path: Path, schema: pa.Schema) -> pl.Schema:
    try:
        return _schema(schema.serialize().to_pybytes())
    except InputError as wrong:
        raise InputError(f"{shown_path(path)}: {wrong.fact}", wrong.hint) from None


def _checked(path: Path, table: pa.Table) -> pl.DataFrame:
    try:
        return from_arrow(table)
    except InputError as wrong:
        raise InputError(f"{shown_path(path)}: {wrong.fact}", wrong.hint) from None


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
