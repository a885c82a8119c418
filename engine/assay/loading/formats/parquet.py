"""Parquet files, row group by row group.

Two readers give the same rows. The engine's decodes whole row groups, several at once: quick, and what it holds grows with them.
The buffered one decodes a few pages ahead, whatever the size of a group, and joins groups that are small. It serves where the
types of all columns are the same either way, and always where pages are to be checked or mended.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from polars.exceptions import PolarsError

from assay.errors import InputError, shown_path
from assay.loading.formats.engine_source import as_source, by_engine
from assay.loading.formats.parquet_pages import are_checked, chunks_of, find_fault, largest_page, largest_value, mended
from assay.loading.formats.reading import HARMLESS, BadRow, Reading, Unit
from assay.system.memory import room, share
from assay.system.special_files import engine_path
from assay.thresholds import THRESHOLDS

__all__ = ["ParquetFile", "open_parquet"]

_PLACE = 16
"""Bytes that the engine takes for each text, besides the text itself."""

_TOGETHER = 1024
"""Rows that are decoded together, or fewer where they are long or may be."""

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
        dense: Whether columns are so small for what they become that it matters which of them are read.
    """

    path: Path
    schema: pl.Schema
    units: tuple[Unit, ...]
    reading: Reading = field(default_factory=Reading)
    plain: bool = False
    dense: bool = False
    bad: tuple[BadRow, ...] = ()
    notes: tuple[str, ...] = ()

    def scan(self, first: int = 0, last: int | None = None) -> pl.LazyFrame:
        """The rows of some row groups; by default all."""
        units = self.units[first:last]
        if self.dense or (self.plain and self._buffered(units)):
            return as_source(partial(self.read, first, last), self.schema)
        return self._by_engine(first, last)

    def _by_engine(self, first: int, last: int | None) -> pl.LazyFrame:
        units = self.units[first:last]
        frame = pl.scan_parquet(engine_path(self.path), glob=False)
        if len(units) == len(self.units):
            return frame
        rows = [unit.rows or 0 for unit in self.units]
        return frame.slice(sum(rows[:first]), sum(rows[first:last]))

    def read(self, first: int, last: int | None, names: list[str], rows: int) -> Iterator[pl.DataFrame]:
        """The same frame by frame."""
        units = self.units[first:last]
        in_pieces = self.dense and _refuse_bomb(self, names)
        if not (self.plain and (in_pieces or self._buffered(units))):
            yield from by_engine(self._by_engine(first, last), names, _held(units))
            return
        for table in _pieces(self, range(first, first + len(units)), names, rows):
            yield pl.DataFrame(pl.from_arrow(_valid(self, table), rechunk=False))

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


def _held(units: Sequence[Unit]) -> int:
    """Bytes of row groups once they are read, about: of text that stands there once, each row still has its place."""
    return sum(unit.size + _PLACE * (unit.rows or 0) for unit in units)


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
        schema = pl.scan_parquet(engine_path(path), glob=False).collect_schema()
        with pq.ParquetFile(engine_path(path)) as source:
            footer, arrow = source.metadata, source.schema_arrow
    except (PolarsError, pa.ArrowException) as wrong:
        said = _seems(path) or str(wrong).strip().split("\n", 1)[0]
        raise InputError(f"{shown_path(path)}: not a readable parquet file: {said}") from None
    groups = [footer.row_group(at) for at in range(footer.num_row_groups)]
    units = tuple(Unit(group.num_rows, group.total_byte_size) for group in groups)
    _refuse_lies(path, groups)
    plain, dense = (
        _is_plain(arrow.remove_metadata().serialize().to_pybytes(), tuple(schema.items())),
        _is_dense(groups, arrow.names, reading),
    )
    file = ParquetFile(path, schema, units, reading, plain, dense)
    return _checked(file) if reading.verify_checksums else file


def _checked(file: ParquetFile) -> ParquetFile:
    """The file once its pages are known to be good, or to be looked at as they are read."""
    notes = (
        ()
        if are_checked(file.path)
        else (f"{shown_path(file.path)}: its pages have no checksums that could be compared",)
    )
    if not file.plain and (said := find_fault(file.path, checksums=True)):
        raise InputError(said)
    return replace(file, notes=notes)


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
                    f"{shown_path(path)}: column `{column.path_in_schema}`, row group {at}: the footer speaks of what is not there."
                )


# ── bombs ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _weighed(group: Any, names: Sequence[str]) -> dict[str, tuple[int, int]]:
    """What each column of a row group is packed in, and what it becomes."""
    found = dict.fromkeys(names, (0, 0))
    for name, leaf in chunks_of(group, names):
        packed, size = found[name]
        found[name] = packed + leaf.total_compressed_size, size + leaf.total_uncompressed_size
    return found


def _sums(sizes: Iterable[tuple[int, int]]) -> tuple[int, int]:
    packed, size = 0, 0
    for one in sizes:
        packed, size = packed + one[0], size + one[1]
    return packed, size


def _is_dense(groups: Sequence[Any], names: Sequence[str], reading: Reading) -> bool:
    """Whether it matters which columns are read: some become too much for what they are packed in, or all become too much."""
    total, limit = sum(group.total_byte_size for group in groups), reading.max_uncompressed
    if limit is not None and total > limit:
        return True
    if total <= HARMLESS:
        return False
    weighed = [_weighed(group, names) for group in groups]
    columns = [_sums(each[name] for each in weighed) for name in names]
    dense = sum(size for packed, size in columns if size > reading.max_ratio * packed)
    return dense > HARMLESS or reading.is_dense(*reversed(_sums(columns)))


def _refuse_bomb(file: ParquetFile, names: Sequence[str]) -> bool:
    """Refuse columns that become too much, or too much for what they are packed in and not piece by piece.

    Returns:
        Whether they are to be read in pieces, for they become much.

    Raises:
        InputError: They do.
    """
    footer, reading = pq.read_metadata(file.path), file.reading
    groups = [_sums(_weighed(footer.row_group(at), names).values()) for at in range(footer.num_row_groups)]
    packed, size = _sums(groups)
    reading.refuse_large(file.path, size)
    if not reading.is_dense(size, packed):
        return False
    piece = largest_page(file.path, names) if file.plain else max(size for _, size in groups)
    if piece > HARMLESS:
        reading.refuse_bomb(file.path, size, packed)
    return True


@lru_cache(64)  # thousands of files have one schema; as bytes, for two that differ in their metadata are equal to Arrow
def _is_plain(serialized: bytes, schema: tuple[tuple[str, pl.DataType], ...]) -> bool:
    arrow = pa.ipc.read_schema(pa.py_buffer(serialized))
    names = arrow.names
    if not names or any(
        one.startswith(f"{other}.") for one in names for other in names
    ):  # a path of theirs means either
        return False
    if not all(_has_plain_type(column.type) for column in arrow):
        return False
    return tuple(pl.DataFrame(arrow.empty_table()).schema.items()) == schema


def _has_plain_type(dtype: Any) -> bool:
    if pa.types.is_struct(dtype):
        return dtype.num_fields > 0 and all(_has_plain_type(one.type) for one in dtype)
    if pa.types.is_list(dtype) or pa.types.is_large_list(dtype):
        return _has_plain_type(dtype.value_type)
    return any(is_one(dtype) for is_one in _PLAIN)


# ── the buffered reader ─────────────────────────────────────────────────────────────────────────────────────────────


def _pieces(file: ParquetFile, groups: range, names: list[str], rows: int) -> Iterator[pa.Table]:
    """Rows of some groups, so many together, or fewer where they are long."""
    units = [file.units[at] for at in groups]
    most = share(file.reading.memory_limit)
    known = sum(unit.rows or 0 for unit in units)
    a_row = sum(unit.size for unit in units) // max(1, known)
    # few at once, so that some long rows among short ones do not make a large piece
    at_once = min(_TOGETHER, most // (16 * max(1, a_row)))
    read = there = largest = 0
    try:
        with pq.ParquetFile(
            engine_path(file.path),
            pre_buffer=False,
            buffer_size=_BUFFER,
            page_checksum_verification=file.reading.verify_checksums,
        ) as source:
            value = largest_value(file.path, source.metadata, groups, names, 4 * HARMLESS // _TOGETHER)
            at_once = max(1, min(at_once, 4 * HARMLESS // max(1, value)))
            held: list[pa.RecordBatch] = []
            rows_held = size_held = 0
            for batch in source.iter_batches(at_once, row_groups=list(groups), columns=names, use_threads=False):
                held.append(batch)
                there += batch.num_rows
                read += batch.nbytes
                largest = max(largest, batch.nbytes)
                rows_held, size_held = rows_held + batch.num_rows, size_held + batch.nbytes
                if rows_held >= rows or size_held >= most:
                    _refuse_counted(file, read, largest)
                    yield pa.Table.from_batches(held)
                    held, rows_held, size_held = [], 0, 0
            if held:
                _refuse_counted(file, read, largest)
                yield pa.Table.from_batches(held)
        if there != known:  # a column that ends early ends the rows, without a word
            raise InputError(f"{shown_path(file.path)}: a column ends early: {there:,} of {known:,} rows can be read.")
    except MemoryError:  # the engine's kind as well as Python's
        raise
    except (pa.ArrowException, OSError) as wrong:
        said = find_fault(file.path, checksums=file.reading.verify_checksums) or f"{shown_path(file.path)}: {wrong}"
        raise InputError(said) from None


def _refuse_counted(file: ParquetFile, read: int, largest: int) -> None:
    """Refuse what has become too much, whatever the footer says: values that stand there once count as often as they are read."""
    if largest > HARMLESS:
        file.reading.refuse_bomb(file.path, read)
    file.reading.refuse_large(file.path, read)


def _valid(file: ParquetFile, table: pa.Table) -> pa.Table:
    # NOTE: invalid UTF-8 would crash the engine later
    try:
        table.validate(full=True)
    except pa.ArrowInvalid:
        if file.reading.utf8 != "replace":
            raise InputError(find_fault(file.path)) from None
        return mended(table)
    return table
