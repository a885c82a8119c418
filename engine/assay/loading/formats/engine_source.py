"""Rows frame by frame: turn readers into a Polars source, and Polars results into frames.

Several files are one source. With a source per file, Polars would need a phase and a thread for each, and visit all others in it:
the time would grow with the square of the number of files.
"""

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import polars as pl
import polars.selectors as cs
from polars.exceptions import ComputeError
from polars.io.plugins import register_io_source

from assay.expressions.lane import exactly
from assay.expressions.mixed import TYPED, typed_expr
from assay.loading.formats.reading import File
from assay.names import HIDDEN
from assay.system.memory import share
from assay.system.signals import signalled

Read = Callable[[list[str], int], Iterator[pl.DataFrame]]
"""Yields the rows of some columns, in order, in frames of about the given number of rows."""

_ROWS = 16_384
"""Rows per frame if Polars does not ask for a number."""

_LITTLE = 1 << 18
"""Bytes up to which a frame is collected at once instead of streamed."""

_END = HIDDEN + "end"


def as_source(read: Read, schema: pl.Schema) -> pl.LazyFrame:
    """Return a reader's rows as a lazy frame; a thread reads the next frame while Polars processes the last."""

    def source(
        names: list[str] | None, predicate: pl.Expr | None, limit: int | None, rows: int | None
    ) -> Iterator[pl.DataFrame]:
        columns = list(schema) if names is None else names
        for frame_read in _read_ahead(read(columns, rows or _ROWS)):
            frame = pick(frame_read, columns)
            if limit is not None:
                frame = frame.head(limit)
                limit -= frame.height
            yield frame if predicate is None else frame.filter(predicate)
            if limit == 0:
                return

    return register_io_source(source, schema=schema, is_pure=True)


def _read_ahead(frames: Iterator[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """Yield frames; a thread reads the next one, and no further, because each may be a large part of the memory."""
    frames_read: queue.SimpleQueue[pl.DataFrame | BaseException | None] = queue.SimpleQueue()
    may_read = threading.Semaphore()
    is_closed = threading.Event()

    def run() -> None:
        try:
            while may_read.acquire() and not is_closed.is_set():
                frame = next(frames, None)
                frames_read.put(frame)
                if frame is None:
                    return
                del frame
        except BaseException as error:  # noqa: BLE001  (raised again in the consuming thread)
            frames_read.put(error)

    threading.Thread(target=run, name="assay-reader", daemon=True).start()
    try:
        while (frame := frames_read.get()) is not None:
            if isinstance(frame, BaseException):
                raise frame
            may_read.release()
            yield frame
    finally:
        is_closed.set()
        may_read.release()


def pick(frame: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """Return columns of a frame in the order of the names; a select would be a query, which costs more than reading a few rows."""
    if frame.columns == list(names):
        return frame
    return pl.DataFrame({name: frame.get_column(name) for name in names}) if names else frame.select()


def one_after_another(
    parts: Sequence[tuple[File, int, int]], schema: pl.Schema, memory_limit: int | None
) -> pl.LazyFrame:
    """Return units of several files as one source; one file is open at a time."""
    return as_source(partial(_read_all, parts, schema, share(memory_limit)), schema)


def _read_all(
    parts: Sequence[tuple[File, int, int]], schema: pl.Schema, max_bytes: int, names: list[str], rows: int
) -> Iterator[pl.DataFrame]:
    columns = pl.Schema({name: schema[name] for name in names})
    frames = (frame for file, first, last in parts for frame in _read_one(file, first, last, columns, rows))
    return _combined(frames, rows, max_bytes)


def _read_one(file: File, first: int, last: int, columns: pl.Schema, rows: int) -> Iterator[pl.DataFrame]:
    names = [name for name in columns if name in file.schema]
    file_columns = pl.Schema({name: file.schema[name] for name in names})
    # if a file has none of the columns, any of its columns gives the number of rows
    for frame in file.read(first, last, names or list(file.schema)[:1], rows):
        if file_columns == columns:
            yield pick(frame, names)
            continue
        kept = pick(frame, names) if names else pl.DataFrame({next(iter(columns)): [None] * frame.height})
        kept = kept.with_columns(own_types(file_columns, columns))
        yield pl.concat([pl.DataFrame(schema=columns), kept], how="diagonal_relaxed")


def own_types(source: pl.Schema, target: pl.Schema) -> list[pl.Expr]:
    """Return the columns of a file that have several types in all files, as values that keep theirs."""
    mixed = (name for name, dtype in source.items() if target.get(name) == TYPED != dtype)
    return [typed_expr(exactly(name), source[name]).alias(name) for name in mixed]


def _combined(frames: Iterator[pl.DataFrame], rows: int, max_bytes: int) -> Iterator[pl.DataFrame]:
    """Combine small frames, because processing a frame costs the same for one row as for thousands."""
    pending: list[pl.DataFrame] = []
    row_count = size = 0
    for frame in frames:
        if pending and (row_count + frame.height > rows or size > max_bytes):
            yield pl.concat(pending, rechunk=True)
            pending, row_count, size = [], 0, 0
        if 2 * frame.height > rows:
            yield frame
            continue
        pending.append(frame)
        row_count += frame.height
        size += int(frame.estimated_size())
    if pending:
        yield pl.concat(pending, rechunk=True)


def by_engine(frame: pl.LazyFrame, names: Sequence[str], size: int | None = None) -> Iterator[pl.DataFrame]:
    """Yield columns of a lazy frame that Polars reads."""
    selection = frame.select(cs.by_name(names))
    return batches(selection) if size is None or size > _LITTLE else iter([selection.collect()])


def batches(frame: pl.LazyFrame, batch_rows: int | None = None) -> Iterator[pl.DataFrame]:
    """Yield the rows of a lazy frame, in order, in batches large enough for the Python code around each."""
    # NOTE: on an interrupt, or if one of its threads fails, Polars ends a stream as if there were no more rows, whoever handles
    # the signal; so an extra row marks the end
    end_mark = pl.LazyFrame([{_END: True}], schema={**frame.collect_schema(), _END: pl.Boolean})
    stream = pl.concat([frame.with_columns(pl.lit(value=False).alias(_END)), end_mark])
    has_ended = False
    for batch in stream.collect_batches(engine="streaming", chunk_size=batch_rows):
        has_ended = bool(batch[_END].any())
        rows = batch.drop(_END)
        yield rows.head(-1) if has_ended else rows
    if not has_ended and signalled():
        raise KeyboardInterrupt
    if not has_ended:
        raise ComputeError("a thread of Polars failed; standard error says where")
