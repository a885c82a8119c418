"""Rows frame by frame: what readers make becomes a source of the engine, and what the engine makes becomes frames.

Several files are one source. A source for each of them would cost the engine a phase of its own, in which it looks at all others,
and a thread: time would grow with the square of the files.
"""

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import polars as pl
import polars.selectors as cs
from polars.exceptions import ComputeError
from polars.io.plugins import register_io_source

from assay.loading.formats.reading import File
from assay.names import HIDDEN
from assay.system.memory import share
from assay.system.signals import signalled

__all__ = ["Read", "as_source", "batches", "by_engine", "one_after_another", "pick"]

Read = Callable[[list[str], int], Iterator[pl.DataFrame]]
"""Gives the rows of some columns, in their order, in frames of about so many rows."""

_ROWS = 16_384
"""Rows that are worked on together, where the engine has no wish of its own."""

_LITTLE = 1 << 18
"""Bytes that are read at once, whatever reads them."""

_END = HIDDEN + "end"


def as_source(read: Read, schema: pl.Schema) -> pl.LazyFrame:
    """What a reader reads as a lazy frame; the next frame is made in a thread while the last is worked on.

    Args:
        read: The reader.
        schema: Its columns.
    """

    def source(
        names: list[str] | None, predicate: pl.Expr | None, limit: int | None, rows: int | None
    ) -> Iterator[pl.DataFrame]:
        wanted = list(schema) if names is None else names
        for made in _ahead(read(wanted, rows or _ROWS)):
            frame = pick(made, wanted)
            if limit is not None:
                frame = frame.head(limit)
                limit -= frame.height
            yield frame if predicate is None else frame.filter(predicate)
            if limit == 0:
                return

    return register_io_source(source, schema=schema, is_pure=True)


def _ahead(frames: Iterator[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    made: queue.Queue[pl.DataFrame | BaseException | None] = queue.Queue(1)
    ended = threading.Event()

    def make() -> None:
        try:
            for frame in frames:
                made.put(frame)
                if ended.is_set():
                    return
            made.put(None)
        except BaseException as wrong:  # noqa: BLE001  (it is raised where the frames are taken)
            made.put(wrong)

    threading.Thread(target=make, name="assay-reader", daemon=True).start()
    try:
        while (frame := made.get()) is not None:
            if isinstance(frame, BaseException):
                raise frame
            yield frame
    finally:
        ended.set()
        if not made.empty():
            made.get_nowait()


def pick(frame: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """Columns of a frame, in the order of the names; a select would be a query, which costs more than to read a few rows."""
    if frame.columns == list(names):
        return frame
    return pl.DataFrame({name: frame.get_column(name) for name in names}) if names else frame.select()


# ── several files ───────────────────────────────────────────────────────────────────────────────────────────────────


def one_after_another(
    parts: Sequence[tuple[File, int, int]], schema: pl.Schema, memory_limit: int | None
) -> pl.LazyFrame:
    """Units of several files as one source; one file is open at a time.

    Args:
        parts: Files, each with its first unit and the one after its last.
        schema: The columns of all of them; those that a file lacks are null there.
        memory_limit: Bytes that a process may take that reads them; None for the default.
    """
    return as_source(partial(_read_all, parts, schema, share(memory_limit)), schema)


def _read_all(
    parts: Sequence[tuple[File, int, int]], schema: pl.Schema, most: int, names: list[str], rows: int
) -> Iterator[pl.DataFrame]:
    wanted = pl.Schema({name: schema[name] for name in names})
    made = (frame for file, first, last in parts for frame in _read_one(file, first, last, wanted, rows))
    return _gathered(made, rows, most)


def _read_one(file: File, first: int, last: int, wanted: pl.Schema, rows: int) -> Iterator[pl.DataFrame]:
    own = [name for name in wanted if name in file.schema]
    given = pl.Schema({name: file.schema[name] for name in own})
    # where a file has none of the columns, one of its own tells how many rows there are
    for frame in file.read(first, last, own or list(file.schema)[:1], rows):
        if given == wanted:
            yield pick(frame, own)
            continue
        kept = pick(frame, own) if own else pl.DataFrame({next(iter(wanted)): [None] * frame.height})
        yield pl.concat([pl.DataFrame(schema=wanted), kept], how="diagonal_relaxed")


def _gathered(frames: Iterator[pl.DataFrame], rows: int, most: int) -> Iterator[pl.DataFrame]:
    """Frames of a few rows together: what is done with a frame costs as much for one row as for thousands."""
    held: list[pl.DataFrame] = []
    there = size = 0
    for frame in frames:
        if held and (there + frame.height > rows or size > most):
            yield pl.concat(held, rechunk=True)
            held, there, size = [], 0, 0
        if 2 * frame.height > rows:
            yield frame
            continue
        held.append(frame)
        there += frame.height
        size += int(frame.estimated_size())
    if held:
        yield pl.concat(held, rechunk=True)


# ── what the engine makes ───────────────────────────────────────────────────────────────────────────────────────────


def by_engine(frame: pl.LazyFrame, names: Sequence[str], size: int | None = None) -> Iterator[pl.DataFrame]:
    """Columns of what the engine reads.

    Args:
        frame: What it reads.
        names: The columns.
        size: Bytes of it, where that is known: to stream a little costs more than to read it.
    """
    wanted = frame.select(cs.by_name(names))
    return batches(wanted) if size is None or size > _LITTLE else iter([wanted.collect()])


def batches(made: pl.LazyFrame, together: int | None = None) -> Iterator[pl.DataFrame]:
    """What the engine makes, in order, gathered into batches that are worth the Python around each.

    Args:
        made: What it is to make.
        together: Rows of a batch; None for what the engine works on at a time.

    Raises:
        KeyboardInterrupt: The engine ended the stream before its end, for a signal came.
        ComputeError: It did, and none came.
    """
    # NOTE: at an interrupt the engine ends a stream as if there were no more rows, whoever handles the signal, and even where
    # nobody does, and so it does where one of its threads fails; so the end is a row of its own
    last = pl.LazyFrame([{_END: True}], schema={**made.collect_schema(), _END: pl.Boolean})
    stream = pl.concat([made.with_columns(pl.lit(value=False).alias(_END)), last])
    ended = False
    for batch in stream.collect_batches(engine="streaming", chunk_size=together):
        ended = bool(batch[_END].any())
        rows = batch.drop(_END)
        yield rows.head(-1) if ended else rows
    if not ended and signalled():
        raise KeyboardInterrupt
    if not ended:
        raise ComputeError("a thread of the engine failed; standard error says where")
