"""Parquet files, row group by row group.

Two readers give the same rows. The engine's decodes whole row groups, several at once: quick, and what it holds grows with them.
The buffered one decodes a few pages ahead, whatever the size of a group, and joins groups that are small. It serves where the
types of all columns are the same either way, and always where pages are to be checked or mended.
"""

import queue
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import polars.selectors as cs
import pyarrow as pa
import pyarrow.parquet as pq
from polars.exceptions import PolarsError
from polars.io.plugins import register_io_source

from assay.errors import InputError
from assay.memory import room, share
from assay.pages import are_checked, find_fault, mended
from assay.reading import BadRow, Reading, Unit
from assay.thresholds import THRESHOLDS

__all__ = ["ParquetFile", "open_parquet"]

_ROWS = 16_384
_BUFFER = 1 << 20
_PLAIN = (
    *(pa.types.is_boolean, pa.types.is_integer, pa.types.is_float32, pa.types.is_float64, pa.types.is_date32),
    *(pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary),
    *(pa.types.is_decimal128, pa.types.is_timestamp, pa.types.is_null),
)


@dataclass(frozen=True)
class ParquetFile:
    """A ``File`` whose units are row groups.

    Attributes:
        reading: How it is to be read.
        plain: Whether the buffered reader gives the columns the types that the engine gives them.
    """

    path: Path
    schema: pl.Schema
    units: tuple[Unit, ...]
    reading: Reading = field(default_factory=Reading)
    plain: bool = False
    bad: tuple[BadRow, ...] = ()
    notes: tuple[str, ...] = ()

    def scan(self, first: int = 0, last: int | None = None) -> pl.LazyFrame:
        """The rows of some row groups; by default all."""
        units = self.units[first:last]
        if self.plain and self._buffered(units):
            groups = range(first, first + len(units))
            return register_io_source(partial(_read, self, groups), schema=self.schema, is_pure=True)
        frame = pl.scan_parquet(self.path, glob=False)
        if len(units) == len(self.units):
            return frame
        rows = [unit.rows or 0 for unit in self.units]
        return frame.slice(sum(rows[:first]), sum(rows[first:last]))

    def fault(self) -> str:
        """What of it cannot be read, for a message; ``""`` when all can be."""
        return find_fault(self.path)

    def _buffered(self, units: Sequence[Unit]) -> bool:
        if self.reading.verify_checksums or self.reading.utf8 == "replace":
            return True
        if not units:
            return False
        largest = max(unit.size for unit in units)
        rows = sum(unit.rows or 0 for unit in units)
        held = max(1, THRESHOLDS.groups_at_once)
        return largest > room(self.reading.memory_limit) // held or rows < THRESHOLDS.small_group * len(units)


def open_parquet(path: Path, reading: Reading) -> ParquetFile:
    """Look at the footer of a parquet file.

    Args:
        path: The file.
        reading: How it is to be read.

    Raises:
        InputError: It cannot be read; the message says what it seems to be. Or it would be too large when read.
    """
    room(reading.memory_limit)
    try:
        schema = pl.scan_parquet(path, glob=False).collect_schema()
        with pq.ParquetFile(path) as source:
            footer, arrow = source.metadata, source.schema_arrow
    except (PolarsError, pa.ArrowException) as wrong:
        said = _seems(path) or str(wrong).strip().split("\n", 1)[0]
        raise InputError(f"{path}: not a readable parquet file: {said}") from None
    groups = [footer.row_group(at) for at in range(footer.num_row_groups)]
    units = tuple(Unit(group.num_rows, group.total_byte_size) for group in groups)
    _refuse_lies(path, groups)
    reading.refuse_bomb(path, sum(unit.size for unit in units))
    file = ParquetFile(path, schema, units, reading, _is_plain(arrow, schema))
    return _checked(file) if reading.verify_checksums else file


def _checked(file: ParquetFile) -> ParquetFile:
    """The file once its pages are known to be good, or to be looked at as they are read."""
    notes = () if are_checked(file.path) else (f"{file.path}: its pages have no checksums that could be compared",)
    if not file.plain and (said := find_fault(file.path, checksums=True)):
        raise InputError(said)
    return ParquetFile(file.path, file.schema, file.units, file.reading, file.plain, notes=notes)


def _seems(path: Path) -> str:
    """What a file is that is no parquet file, or why it is none any more."""
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
    kinds |= {
        b"\x1f\x8b": "gzip",
        b"\x28\xb5\x2f\xfd": "zstd",
        b"PARE": "encrypted parquet",
        b"version https://git-lfs": "a Git LFS pointer",
    }
    seems = [kind for magic, kind in kinds.items() if head.lstrip().startswith(magic)]
    return f"it seems to be {seems[-1]}." if seems else "it does not begin as one."


def _refuse_lies(path: Path, groups: Sequence[Any]) -> None:
    """Refuse a footer that speaks of what is not in the file: the engine would believe it."""
    there = path.stat().st_size
    for at, group in enumerate(groups):
        for column in (group.column(number) for number in range(group.num_columns)):
            starts = [column.data_page_offset, *([column.dictionary_page_offset] if column.has_dictionary_page else [])]
            if min(*starts, column.total_compressed_size, group.num_rows) < 0 or (
                max(*starts, min(starts) + column.total_compressed_size) > there
            ):
                raise InputError(
                    f"{path}: column `{column.path_in_schema}`, row group {at}: the footer speaks of what is not there."
                )


def _is_plain(arrow: pa.Schema, schema: pl.Schema) -> bool:
    names = arrow.names
    if not names or any(
        one.startswith(f"{other}.") for one in names for other in names
    ):  # a path of theirs means either
        return False
    if not all(_has_plain_type(column.type) for column in arrow):
        return False
    return pl.DataFrame(arrow.empty_table()).schema == schema


def _has_plain_type(dtype: Any) -> bool:
    if pa.types.is_struct(dtype):
        return dtype.num_fields > 0 and all(_has_plain_type(one.type) for one in dtype)
    if pa.types.is_list(dtype) or pa.types.is_large_list(dtype):
        return _has_plain_type(dtype.value_type)
    return any(is_one(dtype) for is_one in _PLAIN)


# ── the buffered reader ─────────────────────────────────────────────────────────────────────────────────────────────


def _read(
    file: ParquetFile,
    groups: range,
    names: list[str] | None,
    predicate: pl.Expr | None,
    limit: int | None,
    rows: int | None,
) -> Iterator[pl.DataFrame]:
    names = list(file.schema) if names is None else names
    for table in _ahead(_pieces(file, groups, names, rows or _ROWS)):
        frame = pl.DataFrame(pl.from_arrow(_valid(file, table), rechunk=False)).select(cs.by_name(names))
        if limit is not None:
            frame = frame.head(limit)
            limit -= frame.height
        yield frame if predicate is None else frame.filter(predicate)
        if limit == 0:
            return


def _pieces(file: ParquetFile, groups: range, names: list[str], rows: int) -> Iterator[pa.Table]:
    """Rows of some groups, so many together, or fewer where they are long."""
    units = [file.units[at] for at in groups]
    most = share(file.reading.memory_limit)
    known = sum(unit.rows or 0 for unit in units)
    a_row = sum(unit.size for unit in units) // max(1, known)
    # few at once, so that some long rows among short ones do not make a large piece
    at_once = max(1, min(1024, most // (16 * max(1, a_row))))
    read = there = 0
    try:
        with pq.ParquetFile(
            file.path, pre_buffer=False, buffer_size=_BUFFER, page_checksum_verification=file.reading.verify_checksums
        ) as source:
            held: list[pa.RecordBatch] = []
            for batch in source.iter_batches(at_once, row_groups=list(groups), columns=names, use_threads=False):
                held.append(batch)
                there += batch.num_rows
                read += batch.nbytes
                if sum(one.num_rows for one in held) >= rows or sum(one.nbytes for one in held) >= most:
                    file.reading.refuse_bomb(file.path, read)
                    yield pa.Table.from_batches(held)
                    held = []
            if held:
                yield pa.Table.from_batches(held)
        if there != known:  # a column that ends early ends the rows, without a word
            raise InputError(f"{file.path}: a column ends early: {there:,} of {known:,} rows can be read.")
    except MemoryError:  # the engine's kind as well as Python's
        raise
    except (pa.ArrowException, OSError) as wrong:
        said = find_fault(file.path, checksums=file.reading.verify_checksums) or f"{file.path}: {wrong}"
        raise InputError(said) from None


def _valid(file: ParquetFile, table: pa.Table) -> pa.Table:
    # NOTE: invalid UTF-8 would crash the engine later
    try:
        table.validate(full=True)
    except pa.ArrowInvalid:
        if file.reading.utf8 != "replace":
            raise InputError(find_fault(file.path)) from None
        return mended(table)
    return table


def _ahead(pieces: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """Pieces, the next of them made in a thread while the last is worked on."""
    made: queue.Queue[pa.Table | BaseException | None] = queue.Queue(1)
    ended = threading.Event()

    def make() -> None:
        try:
            for piece in pieces:
                made.put(piece)
                if ended.is_set():
                    return
            made.put(None)
        except BaseException as wrong:  # noqa: BLE001  (it is raised where the pieces are taken)
            made.put(wrong)

    threading.Thread(target=make, name="assay-parquet", daemon=True).start()
    try:
        while (piece := made.get()) is not None:
            if isinstance(piece, BaseException):
                raise piece
            yield piece
    finally:
        ended.set()
        if not made.empty():
            made.get_nowait()
