"""What every file format shares: how files are read, an open file, and its rows as a source of Polars."""

import queue
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import Any, Literal

import polars as pl
import polars.selectors as cs
from polars.exceptions import ComputeError
from polars.io.plugins import register_io_source

from assay.errors import InputError, shown_path
from assay.expressions.mixed import TYPED, typed_expr
from assay.expressions.shared_columns import exactly
from assay.frozen import frozen
from assay.names import HIDDEN
from assay.options import MAX_RATIO, ReadingOptions, options_of
from assay.system.memory import share
from assay.system.signals import signalled

Reshape = Callable[[dict[str, Any]], list[dict[str, Any]]]
"""Convert the object of a line to rows. It pickles, and raises ``InputError`` for an object without rows."""

HARMLESS = 64 << 20
"""Bytes that any file, or piece of a file, may have when read."""


@frozen
class Reading:
    """How files are read.

    Attributes:
        mapping: Columns read under another name, ``{"completion": "response"}``.
        preset: A preset's name, file or mapping; None to recognise the file, ``none`` to read it as it is.
        reshape: Convert an object of a JSONL file to rows. Python then reads every line, and ``mapping`` applies to the rows.
        utf8: Invalid UTF-8: ``replace`` it with U+FFFD, or refuse it (``strict``); ``""`` for the default of the format.
        max_line: Most bytes of a JSON line.
        max_ratio: Most times that a file may grow when read.
        max_uncompressed: Most bytes of a file when read; None for no limit.
        memory_limit: Bytes of memory to work in; None for the default.
        known: Columns that checks read, for guesses at misspelt names.
        exact: Columns in which each row keeps its own value, whatever the other rows have, unless the file types them.
        ends: Whether presets also give why a rollout ended: ``shown`` as a column that passes through, ``hidden`` as one that does not.
    """

    mapping: Mapping[str, str] = field(default_factory=dict)
    preset: Any = None
    reshape: Reshape | None = None
    storage_options: Mapping[str, str] | None = None
    utf8: str = ""
    max_line: int = 1 << 28
    max_ratio: float = MAX_RATIO
    max_uncompressed: int | None = None
    max_bad_rows: int | str | None = None
    verify_checksums: bool = False
    skip_bad_files: bool = False
    memory_limit: int | None = None
    known: tuple[str, ...] = ()
    exact: tuple[str, ...] = ()
    first: tuple[str, ...] = ()
    ends: Literal["", "shown", "hidden"] = ""

    def end(self, name: str) -> str:
        """Return the name of the column that says why a rollout ended; ``""`` where it is not asked for."""
        return {"shown": name, "hidden": HIDDEN + name}.get(self.ends, "")

    def refuse_bomb(self, path: Path, size: int, packed: int | None = None) -> None:
        """Refuse a file that is too large when read, or grows too much."""
        self.refuse_large(path, size)
        compressed = path.stat().st_size if packed is None else packed
        if self.is_dense(size, compressed):
            raise InputError(
                f"{shown_path(path)}: {compressed:,} bytes expand to {size:,} when read, {size / max(1, compressed):,.0f} times as many; "
                f"--max-ratio allows {self.max_ratio:g}.",
                f"Write --max-ratio {size // max(1, compressed) + 1} if you trust the file.",
            )

    def is_dense(self, size: int, packed: int) -> bool:
        """Return whether a file grows so much that it may be a decompression bomb."""
        return size > max(HARMLESS, self.max_ratio * packed)

    def refuse_large(self, path: Path, size: int) -> None:
        """Refuse a file with more bytes when read than ``max_uncompressed``."""
        limit = self.max_uncompressed
        if limit is not None and size > limit:
            raise InputError(
                f"{shown_path(path)}: {size:,} bytes when read; --max-uncompressed allows {limit:,}.",
                "Allow more if you trust the file.",
            )


def reading_of(options: ReadingOptions) -> Reading:
    """Return how files are read, given the settled options of any function that reads files."""
    fields: dict[str, Any] = {name: value for name, value in options.items() if name in options_of(ReadingOptions)}
    return Reading(**fields)


_LISTENER: ContextVar[Callable[[int, int | None], object] | None] = ContextVar("assay-looking", default=None)


@contextmanager
def listening(listener: Callable[[int, int | None], object]) -> Iterator[None]:
    """Tell how far files are that are looked through in this context: the bytes done, and all bytes, None if unknown."""
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


def looked_through(done: int, total: int | None) -> None:
    """Tell whoever listens how many bytes of files have been looked through, of how many."""
    if (listener := _LISTENER.get()) is not None:
        listener(done, total)


def rows_in_all(counts: Iterable[int | None]) -> int | None:
    """Return the sum of counts; None if one of them is unknown."""
    total = 0
    for count in counts:
        if count is None:
            return None
        total += count
    return total


@frozen
class Unit:
    """The smallest part of a file that can be read by itself: a row group, or some lines.

    Attributes:
        rows: Number of rows; None if only reading tells.
        size: Approximate bytes when read.
    """

    rows: int | None
    size: int


@frozen
class BadRow:
    """A malformed line. It keeps its place among the rows, unscored.

    Attributes:
        row: Its row in the file, from 0.
        line: Its line, from 1.
        sample: Its first 200 bytes; in hexadecimal if they are not UTF-8.
    """

    file: str
    row: int
    line: int
    offset: int
    code: str
    reason: str
    sample: str


_PATIENCE = 5
"""Seconds after which a reader goes on if the process did next to nothing: no run may hang for the sake of memory."""

_TURNS = 12
"""Times that a reader waits so long while the process works."""


class Pace:
    """Keeps a run's reader from getting ahead of it: Polars takes some fifteen frames, however large, before it waits for any."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._run: object | None = None
        self._size = 0
        self._column = ""
        self._rows = 0

    def __reduce__(self) -> tuple[type["Pace"], tuple[()]]:
        return Pace, ()  # another process has its own runs

    @contextmanager
    def kept(self, size: int) -> Iterator[None]:
        """Let a reader read on only when all its rows are being scored; for one run at a time, in Polars' streaming engine.

        A row group is handed on in slices of ``size`` bytes: a thread that scores it whole makes columns and Python's texts of all.
        """
        self._begin(object(), size)
        try:
            yield
        finally:
            self._begin(None)

    def _begin(self, run: object | None, size: int = 0) -> None:
        with self._changed:
            self._run, self._size, self._rows = run, size, 0
            self._changed.notify_all()

    def watched(self, frame: pl.LazyFrame, schema: pl.Schema) -> pl.LazyFrame:
        """Return a frame that tells which of its rows are scored now."""
        # by each column, for only those that a query needs are read
        return frame.with_columns(
            exactly(name).map_batches(partial(self._passed, name), return_dtype=dtype, is_elementwise=True)
            for name, dtype in schema.items()
        )

    def _passed(self, column: str, values: pl.Series) -> pl.Series:
        if column == self._column:
            with self._changed:
                self._rows -= len(values)
                self._changed.notify_all()
        return values

    def following(self, frames: Iterator[pl.DataFrame], column: str) -> Iterator[pl.DataFrame]:
        """Yield frames with some column in slices, the next one when all rows of those before are being scored."""
        run, most, self._column, rest = self._run, self._size, column, None
        while True:
            # Polars may come to hold fifteen of those that are not waited for
            size = most if self._are_scored(run) else most // 4
            if (rest := next(frames, None) if rest is None else rest) is None:
                return
            frame, rest = (rest, None) if run is None else _cut(rest, size)
            with self._changed:
                self._rows += frame.height if run is self._run else 0
            # a series: of a column that is one value for all rows, a function of columns gets one
            yield frame.clone().replace_column(frame.get_column_index(column), frame.get_column(column))
            del frame

    def _are_scored(self, run: object | None) -> bool:
        """Wait for the rows handed on; return whether all are being scored."""
        with self._changed:
            for _ in range(_TURNS):
                worked = time.process_time()
                if self._changed.wait_for(
                    lambda: run is None or run is not self._run or self._rows <= 0, timeout=_PATIENCE
                ):
                    return True
                if time.process_time() - worked < _PATIENCE / 10:
                    break
        return False


def _cut(frame: pl.DataFrame, size: int) -> tuple[pl.DataFrame, pl.DataFrame | None]:
    """Return the first of the fewest equal slices of about ``size`` bytes, and the others."""
    rows = frame.height // max(1, -(-int(frame.estimated_size()) // max(1, size))) + 1
    return (frame, None) if rows >= frame.height else (frame.head(rows), frame.slice(rows))


@frozen
class File(ABC):
    """An open file. It pickles, and any process reads the same rows from its units.

    Attributes:
        sizes: Approximate bytes of each column when read, if the file says so.
    """

    path: Path
    schema: pl.Schema
    units: tuple[Unit, ...]
    bad: tuple[BadRow, ...] = field(default=(), kw_only=True)
    notes: tuple[str, ...] = field(default=(), kw_only=True)
    sizes: Mapping[str, int] = field(default_factory=dict, kw_only=True, compare=False)

    @property
    def name(self) -> str:
        """Its name for messages."""
        return str(self.path)

    def scan(self, first: int = 0, last: int | None = None, pace: Pace | None = None) -> pl.LazyFrame:
        """Return the rows of the units from ``first`` up to, not including, ``last``; by default all."""
        return as_source(partial(self.read, first, last), self.schema, pace)

    @abstractmethod
    def read(self, first: int, last: int | None, names: list[str], rows: int) -> Iterator[pl.DataFrame]:
        """Yield the same rows, with some of the columns, in frames of about ``rows`` rows."""

    def fault(self) -> str | None:
        """Return the message about bytes that are damaged, where the format tells."""
        return None


@frozen
class WholeFile(File):
    """A file of one unit that Polars reads."""

    @abstractmethod
    def frame(self) -> pl.LazyFrame:
        """Return all rows."""

    def scan(self, first: int = 0, last: int | None = None, pace: Pace | None = None) -> pl.LazyFrame:  # noqa: ARG002
        """Return all rows, or none if the range excludes the unit."""
        return self.frame() if (first, last) in ((0, None), (0, 1)) else self.frame().clear()

    def read(self, first: int, last: int | None, names: list[str], rows: int) -> Iterator[pl.DataFrame]:  # noqa: ARG002
        """Yield the same rows frame by frame."""
        return by_engine(self.scan(first, last), names, self.units[0].size or None)


@contextmanager
def about_file(path: Path) -> Iterator[None]:
    """Name the file in an ``InputError`` about its data."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{shown_path(path)}: {error.fact}", error.hint) from None


def changed(name: str, how: str = "changed") -> InputError:
    """Return the error of a file that changed while it was read, or is gone."""
    return InputError(
        f"{shown_path(name)}: {how} while it was read.", "Score it again when no other program writes to it."
    )


Read = Callable[[list[str], int], Iterator[pl.DataFrame]]
"""Yields the rows of some columns, in order, in frames of about the given number of rows."""

_ROWS = 16_384
"""Rows per frame if Polars does not ask for a number."""

_LITTLE = 1 << 18
"""Bytes up to which a frame is collected at once instead of streamed."""

_END = HIDDEN + "end"


def as_source(read: Read, schema: pl.Schema, pace: Pace | None = None) -> pl.LazyFrame:
    """Return a reader's rows as a lazy frame; a thread reads the next frame while Polars processes the last."""

    def source(
        names: list[str] | None, predicate: pl.Expr | None, limit: int | None, rows: int | None
    ) -> Iterator[pl.DataFrame]:
        columns = list(schema) if names is None else names
        frames = read(columns, rows or _ROWS)
        for frame_read in _read_ahead(frames if pace is None or not columns else pace.following(frames, columns[0])):
            frame = pick(frame_read, columns)
            if limit is not None:
                frame = frame.head(limit)
                limit -= frame.height
            yield frame if predicate is None else frame.filter(predicate)
            if limit == 0:
                return

    frame = register_io_source(source, schema=schema, is_pure=True)
    return frame if pace is None else pace.watched(frame, schema)


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
    parts: Sequence[tuple[File, int, int]], schema: pl.Schema, memory_limit: int | None, pace: Pace
) -> pl.LazyFrame:
    """Return units of several files as one source; one file is open at a time."""
    max_bytes = share(memory_limit)

    def read(names: list[str], rows: int) -> Iterator[pl.DataFrame]:
        columns = pl.Schema({name: schema[name] for name in names})
        frames = (frame for file, first, last in parts for frame in _read_one(file, first, last, columns, rows))
        return _combined(frames, rows, max_bytes)

    return as_source(read, schema, pace)


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
        has_ended = bool(batch.drop_in_place(_END).any())  # ``drop`` would be a query
        yield batch.head(-1) if has_ended else batch
    if not has_ended:
        raise cut_short()


def cut_short() -> BaseException:
    """Return what to raise where Polars ended a stream early, as if there were no more rows."""
    if signalled():
        return KeyboardInterrupt()
    return ComputeError("a thread of Polars failed; standard error says where")
