"""Parquet files, row group by row group.

Two ways to read give the same rows. Polars decodes row groups whole, some at once, small ones together. The buffered reader (pyarrow)
decodes a few pages ahead, whatever the size of a group; it takes twice the time. It is used for groups that are too large for the
memory, where both give all columns the same types, and always to verify checksums or replace invalid UTF-8, and for types that Polars
cannot read itself.
"""

import contextlib
import itertools
import os
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property, lru_cache
from itertools import accumulate, islice
from pathlib import Path
from typing import Any

import polars as pl
import polars.selectors as cs
from polars.exceptions import PolarsError

from assay.errors import InputError, shown_path
from assay.frozen import frozen
from assay.loading.formats.parquet_footer import PLAIN, plain_footer
from assay.loading.formats.parquet_pages import are_checked, chunks_of, find_fault, largest_page, largest_value, mended
from assay.loading.formats.reading import HARMLESS, File, Reading, Unit, about_file, pick
from assay.names import COMPLETION
from assay.system.arrow import file_errors, pa, pq
from assay.system.memory import bytes_of_texts, room, share
from assay.system.processes import keeps_memory
from assay.system.special_files import engine_path
from assay.thresholds import THRESHOLDS
from assay.values.arrow import frame_of, held, held_schema

_PLACE = 16
"""Bytes that Polars needs for each string besides its text."""

_TOGETHER = 1024
"""Rows that are decoded together; fewer if they are, or may be, long."""

_BUFFER = 1 << 20


@frozen
class ParquetFile(File):
    """A ``File`` whose units are row groups.

    Attributes:
        foreign: Whether there are columns that only the buffered reader can read.
        dense: Whether columns expand so much that limits have to be checked for the columns that are read.
    """

    reading: Reading
    foreign: bool = False
    dense: bool = False

    @cached_property
    def plain(self) -> bool:
        """Whether the buffered reader gives the columns the same types as Polars."""
        if self.foreign:
            return False
        with pq.ParquetFile(engine_path(self.path)) as source:
            serialized = source.schema_arrow.remove_metadata().serialize().to_pybytes()
        return _is_plain(serialized, tuple(self.schema.items()))

    def is_read_by_pages(self, units: Sequence[Unit]) -> bool:
        """Return whether a run gets some row groups in frames of a few pages, not as they are decoded."""
        return self.dense or self._buffered(units)

    @property
    def is_as_polars_reads(self) -> bool:
        """Whether Polars' own scan gives the same rows, or an error."""
        return not (self.dense or self.foreign or self.reading.verify_checksums or self.reading.utf8 == "replace")

    def fault(self) -> str | None:
        return None if self.dense else find_fault(self.path)

    def read(self, first: int, last: int | None, names: list[str], rows: int) -> Iterator[pl.DataFrame]:
        units = self.units[first:last]
        in_pieces = self.dense and _refuse_bomb(self, names)
        if not (self._buffered(units) or (in_pieces and self.plain)):
            begun = _BEGUN.pop(self.path, None)
            decoder = begun if begun is not None and begun.is_of(self.path, units) else _Decoder(self, first, last)
            yield from decoder.frames(names or list(self.schema)[:1])
            return
        for table in _pieces(self, range(first, first + len(units)), names, rows):
            try:
                table.validate(full=True)  # NOTE: invalid UTF-8 would crash Polars later
                valid = table
            except pa.ArrowInvalid:
                if self.reading.utf8 != "replace":
                    raise InputError(find_fault(self.path)) from None
                valid = mended(table)
            with about_file(self.path):
                converted = held(valid)
            yield frame_of(converted)

    def _buffered(self, units: Sequence[Unit]) -> bool:
        if self.foreign:
            return True
        if self.reading.verify_checksums or self.reading.utf8 == "replace":
            return self.plain
        if not units:
            return False
        largest, rows = max(_size_of([unit]) for unit in units), _rows_of(units)
        # values within lists that are stored once for many rows are only seen by pyarrow; of one small group its import takes longer
        is_harmless = len(units) == 1 and rows * units[0].size <= HARMLESS
        are_small = rows < THRESHOLDS.small_group * len(units) and not is_harmless
        is_nested = any(dtype.is_nested() for dtype in self.schema.values())
        too_large = room(self.reading.memory_limit) < 2 * _frames() * largest
        return (too_large or (are_small and is_nested)) and self.plain


class _Decoder:
    """Decodes the row groups of a file with Polars, some at once in threads, and small ones together."""

    def __init__(self, file: ParquetFile, first: int = 0, last: int | None = None) -> None:
        self._file, self._units, self._state = file, file.units[first:last], _state(file.path)
        memory, threads = room(file.reading.memory_limit), pl.thread_pool_size()
        self._parts: list[list[Unit]] = [[]]
        rows = size = 0
        for unit in self._units:
            rows, size = rows + _rows_of([unit]), size + _size_of([unit])
            if self._parts[-1] and (size > memory // (_frames() * threads) or rows > THRESHOLDS.piece):
                self._parts.append([])
                rows, size = _rows_of([unit]), _size_of([unit])
            self._parts[-1].append(unit)
        self._starts = [*accumulate(map(_rows_of, self._parts), initial=_rows_of(file.units[:first]))]
        self._at_once = min(threads, max(1, memory // (_frames() * max(1, *map(_size_of, self._parts)))))
        self._frame = pl.scan_parquet(engine_path(file.path), glob=False)
        self._pool = ThreadPoolExecutor(self._at_once, thread_name_prefix="assay-reader")
        self._begun: dict[int, Future[pl.DataFrame]] = {}
        self._bytes = 0

    def begin(self) -> None:
        """Decode the first completions, more than are decoded at once later, for there is time."""
        for at in range(len(self._parts))[: self._at_once + 1]:
            self._begun[at] = self._pool.submit(self._decode, at, [COMPLETION])

    def is_of(self, path: Path, units: Sequence[Unit]) -> bool:
        """Return whether these are the row groups of a file, which has not changed."""
        return self._units == units and self._state == _state(path)

    def frames(self, names: list[str]) -> Iterator[pl.DataFrame]:
        """Yield the columns, in order."""
        # a thread for each of many small files would take longer than reading them
        if len(self._parts) == 1 and not self._begun:
            yield from self._bounded(self._decode(0, names), self._parts[0])
            return
        parts = iter(range(len(self._parts)))
        with self._pool as pool:
            pending = deque(pool.submit(self._whole, at, names) for at in islice(parts, self._at_once))
            for part in self._parts:
                yield from self._bounded(pending.popleft().result(), part)
                more = islice(parts, self._at_once - len(pending))
                pending.extend(pool.submit(self._whole, at, names) for at in more)

    def _whole(self, at: int, names: list[str]) -> pl.DataFrame:
        begun = self._begun.pop(at, None)
        if begun is None or COMPLETION not in names:
            return self._decode(at, names)
        rest = [name for name in names if name != COMPLETION]
        return pick(self._decode(at, rest).hstack(begun.result()), names) if rest else begun.result()

    def _decode(self, at: int, names: list[str]) -> pl.DataFrame:
        start, end = self._starts[at : at + 2]
        return self._frame.select(cs.by_name(names)).slice(start, end - start).collect(engine="in-memory")

    def _bounded(self, frame: pl.DataFrame, part: Sequence[Unit]) -> Iterator[pl.DataFrame]:
        """Yield a frame, in pieces if texts that are stored once make it larger than the footer says."""
        size = bytes_of_texts(frame)
        self._bytes += size
        self._file.reading.refuse_large(self._file.path, self._bytes)
        if size <= max(HARMLESS, 2 * _size_of(part)):
            yield frame
            return
        starts = accumulate((unit.rows or 0 for unit in part), initial=0)
        groups = (frame.slice(start, unit.rows) for start, unit in zip(starts, part, strict=False))
        for piece in (piece for group in groups for piece in group.iter_slices(_TOGETHER)):
            if bytes_of_texts(piece) > HARMLESS:
                self._file.reading.refuse_bomb(self._file.path, self._bytes)
            yield piece


_BEGUN: dict[Path, _Decoder] = {}
"""Files whose first row groups are being decoded."""


def begin(path: Path) -> None:
    """Decode the first completions of a file before a run has found out which columns it needs: nearly all need these.

    Errors are left to the run.
    """
    with contextlib.suppress(Exception):
        file = open_parquet(path, Reading())
        if COMPLETION in file.schema and not file.is_read_by_pages(file.units):
            _BEGUN[path] = _Decoder(file)
            _BEGUN[path].begin()


def _state(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns


def _frames() -> int:
    # row groups that must fit for each that is decoded: itself, one that is scored, and what decoding takes or was just freed
    return 6 if keeps_memory() else 3


def _rows_of(units: Sequence[Unit]) -> int:
    return sum(unit.rows or 0 for unit in units)


def _size_of(units: Sequence[Unit]) -> int:
    return sum(unit.size + _PLACE * (unit.rows or 0) for unit in units)


def open_parquet(path: Path, reading: Reading) -> ParquetFile:
    """Open a parquet file by reading its footer."""
    room(reading.memory_limit)
    try:
        schema, groups, foreign = _plain_columns(path) or _columns(path)
    except file_errors(PolarsError, UnicodeDecodeError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise OSError(error.errno, os.strerror(error.errno)) from None  # Arrow's words have the path in them
        problem = _seems(path) or str(error).strip().split("\n", 1)[0]
        raise InputError(f"{shown_path(path)}: not a readable parquet file: {problem}") from None
    units = tuple(Unit(group.num_rows, group.total_byte_size) for group in groups)
    _refuse_false_footer(path, groups)
    sizes = _sizes(groups, list(schema))
    file = ParquetFile(
        path,
        schema,
        units,
        reading,
        foreign,
        _is_dense(units, sizes, reading),
        sizes={name: size for name, (_, size) in sizes.items()},
    )
    if not reading.verify_checksums:
        return file
    if not file.plain and (fault := find_fault(path, checksums=True)):  # else the buffered reader will verify them
        raise InputError(fault)
    return (
        file
        if are_checked(path)
        else replace(file, notes=(f"{shown_path(path)}: its pages have no checksums to verify",))
    )


def _plain_columns(path: Path) -> tuple[pl.Schema, Sequence[Any], bool] | None:
    footer = plain_footer(path)
    if footer is None:
        return None
    try:
        schema = pl.scan_parquet(engine_path(path), glob=False).collect_schema()
    except (PolarsError, OSError):
        return None  # pyarrow says why
    names, groups = footer
    is_plain = names == list(schema) and all(dtype in PLAIN for dtype in schema.values())
    return (schema, groups, False) if is_plain else None


def _columns(path: Path) -> tuple[pl.Schema, Sequence[Any], bool]:
    with pq.ParquetFile(engine_path(path)) as source:
        footer, arrow = source.metadata, source.schema_arrow
    with about_file(path):
        converted = held_schema(arrow)
    foreign = not converted.equals(arrow, check_metadata=True)
    # NOTE: for such types, Polars panics, or reads other values
    schema = _frame_schema(converted) if foreign else pl.scan_parquet(engine_path(path), glob=False).collect_schema()
    return schema, [footer.row_group(number) for number in range(footer.num_row_groups)], foreign


def _seems(path: Path) -> str:
    with path.open("rb") as file:
        head = file.read(64)
        file.seek(-min(4, path.stat().st_size), 2)
        tail = file.read()
    if not head:
        return "the file is empty."
    if head[:4] == b"PAR1":
        return "" if tail == b"PAR1" else "it is cut short: its footer is missing."
    kinds = {
        b"<": "an HTML or XML page",
        b"{": "JSON",
        b"[": "JSON",
        b"ARROW1": "an Arrow file",
        b"PK": "a zip archive",
    }
    kinds |= {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"PARE": "encrypted parquet"}
    kinds[b"version https://git-lfs"] = "a Git LFS pointer"
    matches = [kind for magic, kind in kinds.items() if head.lstrip().startswith(magic)]
    return f"it seems to be {matches[-1]}." if matches else "it does not begin like one."


def _refuse_false_footer(path: Path, groups: Sequence[Any]) -> None:
    size = path.stat().st_size
    for number, group in enumerate(groups):
        for column in (group.column(index) for index in range(group.num_columns)):
            starts = [column.data_page_offset, *([column.dictionary_page_offset] if column.has_dictionary_page else [])]
            if min(*starts, column.total_compressed_size, group.num_rows) < 0 or (
                max(*starts, min(starts) + column.total_compressed_size) > size
            ):
                raise InputError(
                    f"{shown_path(path)}: column `{column.path_in_schema}`, row group {number}: the footer refers to bytes that the file does not have."
                )


def _sizes(groups: Sequence[Any], names: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Return the bytes of columns, packed and unpacked."""
    sizes = dict.fromkeys(names, (0, 0))
    for name, leaf in (chunk for group in groups for chunk in chunks_of(group, names)):
        packed, size = sizes[name]
        sizes[name] = packed + leaf.total_compressed_size, size + leaf.total_uncompressed_size
    return sizes


def _in_all(sizes: Mapping[str, tuple[int, int]]) -> tuple[int, int]:
    return sum(packed for packed, _ in sizes.values()), sum(size for _, size in sizes.values())


def _is_dense(units: Sequence[Unit], sizes: Mapping[str, tuple[int, int]], reading: Reading) -> bool:
    total, limit = sum(unit.size for unit in units), reading.max_uncompressed
    if limit is not None and total > limit:
        return True
    if total <= HARMLESS:
        return False
    packed_in_all, size_in_all = _in_all(sizes)
    dense = sum(size for packed, size in sizes.values() if size > reading.max_ratio * packed)
    return dense > HARMLESS or reading.is_dense(size_in_all, packed_in_all)


def _refuse_bomb(file: ParquetFile, names: Sequence[str]) -> bool:
    footer, reading = pq.read_metadata(file.path), file.reading
    groups = [footer.row_group(at) for at in range(footer.num_row_groups)]
    packed, size = _in_all(_sizes(groups, names))
    reading.refuse_large(file.path, size)
    if not reading.is_dense(size, packed):
        return False
    in_pages = file.plain or file.foreign
    piece = largest_page(file.path, names) if in_pages else max(_in_all(_sizes([group], names))[1] for group in groups)
    if piece > HARMLESS:
        reading.refuse_bomb(file.path, size, packed)
    return True


# thousands of files share one schema; keyed by bytes, because Arrow ignores metadata when it compares schemas
@lru_cache(64)
def _is_plain(serialized: bytes, schema: tuple[tuple[str, pl.DataType], ...]) -> bool:
    arrow = pa.ipc.read_schema(pa.py_buffer(serialized))
    names = arrow.names
    if not names or any(name.startswith(f"{other}.") for name in names for other in names):  # an ambiguous path
        return False
    if not all(_has_plain_type(column.type) for column in arrow):
        return False
    # NOTE: not `arrow.empty_table()`: to make its arrays, pyarrow imports pandas, which takes 0.2 s
    return tuple(_frame_schema(arrow).items()) == schema


def _frame_schema(arrow: "pa.Schema") -> pl.Schema:
    return frame_of(pa.Table.from_batches([], arrow)).schema


def _has_plain_type(dtype: Any) -> bool:
    if pa.types.is_struct(dtype):
        return dtype.num_fields > 0 and all(_has_plain_type(field.type) for field in dtype)
    if pa.types.is_list(dtype) or pa.types.is_large_list(dtype):
        return _has_plain_type(dtype.value_type)
    types = pa.types
    checks = (
        *(types.is_boolean, types.is_integer, types.is_float32, types.is_float64, types.is_date32),
        *(types.is_string, types.is_large_string, types.is_binary, types.is_large_binary),
        *(types.is_decimal128, types.is_timestamp, types.is_null),
    )
    return any(is_type(dtype) for is_type in checks)


def _pieces(file: ParquetFile, groups: range, names: list[str], rows: int) -> "Iterator[pa.Table]":
    units = [file.units[at] for at in groups]
    max_bytes = share(file.reading.memory_limit)
    expected_rows = sum(unit.rows or 0 for unit in units)
    row_bytes = sum(unit.size for unit in units) // max(1, expected_rows)
    # few at once, so that a few long rows among short ones do not make a large table
    at_once = min(_TOGETHER, max_bytes // (16 * max(1, row_bytes)))
    bytes_read = row_count = largest = 0
    pending: list[pa.RecordBatch] = []
    rows_held = size_held = 0
    try:
        with pq.ParquetFile(
            engine_path(file.path),
            pre_buffer=False,
            buffer_size=_BUFFER,
            page_checksum_verification=file.reading.verify_checksums,
        ) as source:
            value = largest_value(file.path, source.metadata, groups, names, 4 * HARMLESS // _TOGETHER)
            at_once = max(1, min(at_once, 4 * HARMLESS // max(1, value)))
            batches = source.iter_batches(at_once, row_groups=list(groups), columns=names, use_threads=False)
            for batch in itertools.chain(batches, [None]):
                if batch is not None:
                    pending.append(batch)
                    row_count, bytes_read = row_count + batch.num_rows, bytes_read + batch.nbytes
                    rows_held, size_held = rows_held + batch.num_rows, size_held + batch.nbytes
                    largest = max(largest, batch.nbytes)
                if pending and (batch is None or rows_held >= rows or size_held >= max_bytes):
                    # whatever the footer says: a value stored once counts each time it is read
                    if largest > HARMLESS:
                        file.reading.refuse_bomb(file.path, bytes_read)
                    file.reading.refuse_large(file.path, bytes_read)
                    yield pa.Table.from_batches(pending)
                    pending, rows_held, size_held = [], 0, 0
        if row_count != expected_rows:  # a column that ends early ends the rows silently
            raise InputError(
                f"{shown_path(file.path)}: a column ends early: {row_count:,} of {expected_rows:,} rows can be read."
            )
    except MemoryError:  # pyarrow's as well as Python's
        raise
    except file_errors() as error:
        fault = find_fault(file.path, checksums=file.reading.verify_checksums) or f"{shown_path(file.path)}: {error}"
        raise InputError(fault) from None
