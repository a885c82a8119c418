"""The pages of a parquet file: whether they have checksums, what in them cannot be read, and text that is no UTF-8."""

import io
import os
import sys
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from assay.errors import shown_path
from assay.loading.formats.reading import HARMLESS
from assay.loading.formats.thrift import read_struct
from assay.system.special_files import engine_path

__all__ = ["are_checked", "chunks_of", "find_fault", "largest_page", "largest_value", "mended"]

_NO_TEXT = "text that is not UTF-8; --utf8 replace reads U+FFFD in its place"
_ROWS = 1024
_BUFFER = 1 << 20
_INT32 = 0x15
"""A field of a page's header, next in number, that holds an integer: the checksum is the fourth of them."""


def find_fault(path: Path, *, checksums: bool = False) -> str:
    """The first column and row group that cannot be read, for a message; ``""`` when all can be.

    Args:
        path: A parquet file.
        checksums: Compare each page with its checksum.
    """
    try:
        file = pq.ParquetFile(
            engine_path(path), pre_buffer=False, buffer_size=_BUFFER, page_checksum_verification=checksums
        )
    except (pa.ArrowException, OSError) as wrong:  # it is gone, or another one by now
        number = getattr(wrong, "errno", None)
        return f"{shown_path(path)}: {os.strerror(number) if number else str(wrong).strip().rstrip('.')}."
    with file:
        for group in range(file.metadata.num_row_groups):
            for name in file.schema_arrow.names:
                if said := _fault_of(file, group, name):
                    return f"{shown_path(path)}: column `{name}`, row group {group}: {said}."
    return ""


def _fault_of(file: pq.ParquetFile, group: int, name: str) -> str:
    try:
        for batch in file.iter_batches(_ROWS, row_groups=[group], columns=[name], use_threads=False):
            batch.validate(full=True)
    except (pa.ArrowException, OSError) as wrong:
        said = str(wrong).strip().split("\n", 1)[0]
        return _NO_TEXT if "UTF8" in said else said.rstrip(".")
    return ""


def are_checked(path: Path) -> bool:
    """Whether the first page of each column has a checksum; a writer gives one to all pages or to none."""
    footer = pq.read_metadata(engine_path(path))
    if not footer.num_row_groups:
        return True
    group = footer.row_group(0)
    with path.open("rb") as file:
        for at in range(group.num_columns):
            column = group.column(at)
            start = column.data_page_offset
            if column.has_dictionary_page and column.dictionary_page_offset:
                start = min(start, column.dictionary_page_offset)
            file.seek(start)
            if not _has_checksum(iter(file.read(64))):
                return False
    return True


def chunks_of(group: Any, names: Iterable[str]) -> list[tuple[str, Any]]:
    """What a row group has of some columns: all their leaves, each with the name of its column."""
    leaves = [group.column(number) for number in range(group.num_columns)]
    by_name: dict[str, list[Any]] = {}
    for leaf in leaves:
        steps = leaf.path_in_schema.split(".")  # a name may have dots itself
        for at in range(1, len(steps) + 1):
            by_name.setdefault(".".join(steps[:at]), []).append(leaf)
    return [(name, leaf) for name in names for leaf in by_name.get(name, [])]


def largest_page(path: Path, names: Collection[str]) -> int:
    """Bytes of the largest page of some columns, uncompressed, as its header says: what cannot be read piece by piece.

    Of a column whose headers cannot be read, all its bytes.
    """
    footer = pq.read_metadata(path)
    groups = map(footer.row_group, range(footer.num_row_groups))
    with path.open("rb") as file:
        return max((_largest_of(leaf, file) for group in groups for _, leaf in chunks_of(group, names)), default=0)


def largest_value(path: Path, footer: Any, groups: Iterable[int], names: Collection[str], harmless: int) -> int:
    """Bytes that a value may have which stands in a dictionary once and in any number of rows.

    Args:
        path: The file.
        footer: Its footer.
        groups: Row groups that are read.
        names: Columns that are.
        harmless: Bytes that no column is looked at for.
    """
    largest = 0
    with path.open("rb") as file:
        for group in groups:
            for name, leaf in chunks_of(footer.row_group(group), names):
                if leaf.has_dictionary_page and leaf.total_uncompressed_size > harmless:
                    page = next(_sizes_of(leaf, file), 0)
                    looked_at = harmless < page <= HARMLESS and leaf.path_in_schema == name
                    largest = max(largest, min(page, _longest(path, group, name)) if looked_at else page)
    return largest


def _longest(path: Path, group: int, name: str) -> int:
    """Bytes of the longest text in the dictionary of a column, which comes with its first row; as many as can be where it has none."""
    with pq.ParquetFile(path, pre_buffer=False, buffer_size=_BUFFER, read_dictionary=[name]) as source:
        for batch in source.iter_batches(1, row_groups=[group], columns=[name], use_threads=False):
            column = batch.column(0)
            if isinstance(column, pa.DictionaryArray):
                return pc.max(pc.binary_length(column.dictionary)).as_py() or 0
            break
    return sys.maxsize


def _largest_of(leaf: Any, file: IO[bytes]) -> int:
    return max(_sizes_of(leaf, file), default=0)


def _sizes_of(leaf: Any, file: IO[bytes]) -> Iterator[int]:
    """Bytes of the pages of a column in a row group, in order; all its bytes for one whose header cannot be read, and no more."""
    at = leaf.data_page_offset
    if leaf.has_dictionary_page and leaf.dictionary_page_offset:
        at = min(at, leaf.dictionary_page_offset)
    end = at + leaf.total_compressed_size
    while at < end:
        file.seek(at)
        header = io.BytesIO(file.read(_HEADER))
        try:
            sizes = read_struct(header)
            size, packed = sizes[_SIZE], sizes[_PACKED]
        except (KeyError, ValueError, OverflowError):
            size, packed = -1, -1
        if min(size, packed) < 0:
            yield int(leaf.total_uncompressed_size)
            return
        yield size
        at += header.tell() + packed


_HEADER = 1 << 16
"""Bytes that the header of a page has at most."""

_SIZE, _PACKED = 2, 3
"""Fields of the header of a page: its bytes, and those that it is packed in."""


def _has_checksum(header: Iterator[int]) -> bool:
    """Whether the header of a page, in Thrift's compact protocol, goes on to its fourth field: type, two sizes, checksum."""
    for _ in range(3):
        if next(header, 0) != _INT32:
            return False
        while next(header, 0) & 0x80:
            pass
    return next(header, 0) == _INT32


def mended(table: pa.Table) -> pa.Table:
    """A table with U+FFFD where its text is no UTF-8, as ``bytes.decode(errors="replace")`` has it."""
    columns = [pa.chunked_array([_mended(chunk) for chunk in column.chunks], column.type) for column in table.columns]
    return pa.Table.from_arrays(columns, schema=table.schema)


def _mended(array: Any) -> Any:
    dtype = array.type
    if pa.types.is_string(dtype) or pa.types.is_large_string(dtype):
        raw = array.view(pa.binary() if pa.types.is_string(dtype) else pa.large_binary())
        return pa.array([None if one is None else one.decode("utf-8", "replace") for one in raw.to_pylist()], dtype)
    if pa.types.is_struct(dtype):
        fields = [_mended(array.field(at)) for at in range(dtype.num_fields)]
        return pa.StructArray.from_arrays(fields, fields=list(dtype), mask=array.is_null())
    if pa.types.is_list(dtype) or pa.types.is_large_list(dtype):
        made = pa.LargeListArray if pa.types.is_large_list(dtype) else pa.ListArray
        return made.from_arrays(array.offsets, _mended(array.values), dtype, mask=array.is_null())
    return array
