"""The pages of a parquet file: their checksums and sizes, unreadable columns, and text that is not UTF-8."""

import os
import sys
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import IO, Any

from assay.errors import shown_path
from assay.loading.formats.parquet_footer import read_struct
from assay.loading.formats.reading import HARMLESS
from assay.system.arrow import file_errors, pa, pc, pq
from assay.system.special_files import engine_path

_NO_TEXT = "text that is not UTF-8; --utf8 replace reads U+FFFD in its place"
_ROWS = 1024
_BUFFER = 1 << 20
_INT32 = 0x15
"""Marks an integer field that follows the previous field of a page header; the checksum is the fourth."""


def find_fault(path: Path, *, checksums: bool = False) -> str:
    """Return the first column and row group that cannot be read, for a message; ``""`` if all can."""
    try:
        file = pq.ParquetFile(
            engine_path(path), pre_buffer=False, buffer_size=_BUFFER, page_checksum_verification=checksums
        )
    except file_errors() as error:  # it is gone or has been replaced
        number = getattr(error, "errno", None)
        return f"{shown_path(path)}: {os.strerror(number) if number else str(error).strip().rstrip('.')}."
    with file:
        for group in range(file.metadata.num_row_groups):
            for name in file.schema_arrow.names:
                if fault := _fault_of(file, group, name):
                    return f"{shown_path(path)}: column `{name}`, row group {group}: {fault}."
    return ""


def _fault_of(file: "pq.ParquetFile", group: int, name: str) -> str:
    try:
        for batch in file.iter_batches(_ROWS, row_groups=[group], columns=[name], use_threads=False):
            batch.validate(full=True)
    except file_errors() as error:
        fault = str(error).strip().split("\n", 1)[0]
        return _NO_TEXT if "UTF8" in fault else fault.rstrip(".")
    return ""


def are_checked(path: Path) -> bool:
    """Whether the first page of each column has a checksum; writers add one to all pages or to none."""
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
    """Return the leaves of some columns in a row group, each with the name of its column."""
    leaves = [group.column(number) for number in range(group.num_columns)]
    by_name: dict[str, list[Any]] = {}
    for leaf in leaves:
        steps = leaf.path_in_schema.split(".")  # a name may contain dots
        for at in range(1, len(steps) + 1):
            by_name.setdefault(".".join(steps[:at]), []).append(leaf)
    return [(name, leaf) for name in names for leaf in by_name.get(name, [])]


def largest_page(path: Path, names: Collection[str]) -> int:
    """Return the uncompressed size of the largest page of some columns, by its header: a page cannot be read in pieces.

    A column whose headers cannot be read counts with all its bytes.
    """
    footer = pq.read_metadata(path)
    groups = map(footer.row_group, range(footer.num_row_groups))
    with path.open("rb") as file:
        return max(
            (max(_sizes_of(leaf, file), default=0) for group in groups for _, leaf in chunks_of(group, names)),
            default=0,
        )


def largest_value(path: Path, footer: Any, groups: Iterable[int], names: Collection[str], harmless: int) -> int:
    """Return the maximum bytes of a value that a dictionary stores once and any number of rows may repeat."""
    largest = 0
    with path.open("rb") as file:
        for group in groups:
            for name, leaf in chunks_of(footer.row_group(group), names):
                if leaf.has_dictionary_page and leaf.total_uncompressed_size > harmless:
                    page = next(_sizes_of(leaf, file), 0)
                    is_examined = harmless < page <= HARMLESS and leaf.path_in_schema == name
                    largest = max(largest, min(page, _longest(path, group, name)) if is_examined else page)
    return largest


def _longest(path: Path, group: int, name: str) -> int:
    with pq.ParquetFile(path, pre_buffer=False, buffer_size=_BUFFER, read_dictionary=[name]) as source:
        for batch in source.iter_batches(1, row_groups=[group], columns=[name], use_threads=False):
            column = batch.column(0)
            if isinstance(column, pa.DictionaryArray):
                return pc.max(pc.binary_length(column.dictionary)).as_py() or 0
            break
    return sys.maxsize


def _sizes_of(leaf: Any, file: IO[bytes]) -> Iterator[int]:
    position = leaf.data_page_offset
    if leaf.has_dictionary_page and leaf.dictionary_page_offset:
        position = min(position, leaf.dictionary_page_offset)
    end = position + leaf.total_compressed_size
    while position < end:
        file.seek(position)
        try:
            header = read_struct(file.read(_HEADER))
            size, packed = header[_SIZE], header[_PACKED]
        except (KeyError, ValueError, OverflowError, IndexError):
            size, packed = -1, -1
        if not isinstance(size, int) or not isinstance(packed, int) or min(size, packed) < 0:
            yield int(leaf.total_uncompressed_size)
            return
        yield size
        position += header.end + packed


_HEADER = 1 << 16
"""Maximum bytes of a page header."""

_SIZE, _PACKED = 2, 3
"""Fields of a page header: uncompressed and compressed size."""


def _has_checksum(header: Iterator[int]) -> bool:
    for _ in range(3):
        if next(header, 0) != _INT32:
            return False
        while next(header, 0) & 0x80:
            pass
    return next(header, 0) == _INT32


def mended(table: "pa.Table") -> "pa.Table":
    """Replace bytes that are not UTF-8 by U+FFFD, as ``bytes.decode(errors="replace")`` does."""
    columns = [pa.chunked_array([_mended(chunk) for chunk in column.chunks], column.type) for column in table.columns]
    return pa.Table.from_arrays(columns, schema=table.schema)


def _mended(array: Any) -> Any:
    dtype = array.type
    if pa.types.is_string(dtype) or pa.types.is_large_string(dtype):
        raw = array.view(pa.binary() if pa.types.is_string(dtype) else pa.large_binary())
        return pa.array(
            [None if value is None else value.decode("utf-8", "replace") for value in raw.to_pylist()], dtype
        )
    if pa.types.is_struct(dtype):
        fields = [_mended(array.field(at)) for at in range(dtype.num_fields)]
        return pa.StructArray.from_arrays(fields, fields=list(dtype), mask=array.is_null())
    if pa.types.is_list(dtype) or pa.types.is_large_list(dtype):
        list_type = pa.LargeListArray if pa.types.is_large_list(dtype) else pa.ListArray
        return list_type.from_arrays(array.offsets, _mended(array.values), dtype, mask=array.is_null())
    return array
