"""Arrow IPC files and streams, record batch by record batch.

Polars' own reader trusts the file: a damaged one kills threads, or the process if it asks for more memory than there is. So
pyarrow reads them, and each batch is validated in full before Polars sees it.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from functools import lru_cache
from pathlib import Path

import polars as pl
import pyarrow as pa

from assay.errors import InputError, shown_path
from assay.frozen import frozen
from assay.loading.formats.reading import File, Reading, Unit, about_file
from assay.system.special_files import engine_path
from assay.values.arrow import check_names, from_arrow, held_schema

_MAGIC = b"ARROW1"


@frozen
class IpcFile(File):
    """A ``File`` whose units are record batches; a stream is one unit, because it has no index of its batches."""

    reading: Reading

    def read(self, first: int, last: int | None, names: list[str], rows: int) -> Iterator[pl.DataFrame]:
        size, dictionaries = 0, Dictionaries()
        for batch in _batches(self.path, range(len(self.units))[first:last]):
            table = pa.Table.from_batches([batch]).select(names)
            with about_file(self.path):
                frame = from_arrow(table)
            size += dictionaries.weigh(batch.select(names))  # only after validation: counting trusts the batch
            self.reading.refuse_bomb(self.path, size)
            yield from frame.iter_slices(rows)


class Dictionaries:
    """The size of batches in memory, counting shared dictionaries, and additions to them, only once."""

    def __init__(self) -> None:
        self._last: dict[tuple[int, ...], pa.Array] = {}

    def weigh(self, batch: pa.RecordBatch) -> int:
        """Return the bytes of a batch that no earlier batch had."""
        return _size(batch) - sum(self._counted_bytes(column, (at,)) for at, column in enumerate(batch.columns))

    def _counted_bytes(self, array: pa.Array, place: tuple[int, ...]) -> int:
        dtype = array.type
        if pa.types.is_dictionary(dtype):
            last, self._last[place] = self._last.get(place), array.dictionary
            current = array.dictionary
            if last is None:
                return 0
            if _addresses(last) == _addresses(current):
                return int(current.nbytes)
            extends = len(current) >= len(last) and current.slice(0, len(last)).equals(last)
            return int(last.nbytes) if extends else 0
        if isinstance(array, pa.StructArray):
            return sum(self._counted_bytes(array.field(at), (*place, at)) for at in range(dtype.num_fields))
        if isinstance(array, pa.ListArray | pa.LargeListArray | pa.FixedSizeListArray | pa.MapArray):
            return self._counted_bytes(array.values, (*place, 0))
        return 0


def _size(batch: pa.RecordBatch) -> int:
    try:
        return int(batch.nbytes)
    except pa.ArrowNotImplementedError:  # of extension types within lists and structs
        return int(batch.get_total_buffer_size())


def _addresses(array: pa.Array) -> list[int | None]:
    return [None if buffer is None else buffer.address for buffer in array.buffers()]


def open_ipc(path: Path, reading: Reading) -> IpcFile:
    """Open an Arrow file or stream by reading its schema."""
    with ExitStack() as stack:
        source = _open_reader(path, stack)
        units = source.num_record_batches if isinstance(source, pa.ipc.RecordBatchFileReader) else 1
        with about_file(path):
            schema = _schema(source.schema.serialize().to_pybytes())
    size = path.stat().st_size // max(1, units)
    return IpcFile(path, schema, (Unit(None, size),) * units, reading)


def _open_reader(path: Path, stack: ExitStack) -> pa.ipc.RecordBatchFileReader | pa.ipc.RecordBatchStreamReader:
    try:
        file = stack.enter_context(pa.memory_map(engine_path(path)))
        is_file = file.read(len(_MAGIC)) == _MAGIC
        file.seek(0)
        return stack.enter_context((pa.ipc.open_file if is_file else pa.ipc.open_stream)(file))
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{shown_path(path)}: neither an Arrow file nor an Arrow stream: {error}") from None


# thousands of files share one schema; keyed by bytes, because Arrow ignores metadata when it compares schemas
@lru_cache(64)
def _schema(serialized: bytes) -> pl.Schema:
    schema = pa.ipc.read_schema(pa.py_buffer(serialized))
    check_names(schema)
    return from_arrow(pa.Table.from_batches([], held_schema(schema))).schema


def _batches(path: Path, numbers: range) -> Iterator[pa.RecordBatch]:
    with ExitStack() as stack:
        source = _open_reader(path, stack)
        try:
            if isinstance(source, pa.ipc.RecordBatchFileReader):
                for number in numbers:
                    yield source.get_batch(number)
            elif numbers:
                yield from source
        except (pa.ArrowException, OSError) as error:
            raise InputError(f"{shown_path(path)}: is damaged: {error}") from None
