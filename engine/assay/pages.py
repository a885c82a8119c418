"""The pages of a parquet file: whether they have checksums, what in them cannot be read, and text that is no UTF-8."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from assay.errors import shown_path
from assay.special_files import engine_path

__all__ = ["are_checked", "find_fault", "mended"]

_NO_TEXT = "text that is not UTF-8; --utf8 replace reads U+FFFD in its place"
_ROWS = 1024
_INT32 = 0x15
"""A field of a page's header, next in number, that holds an integer: the checksum is the fourth of them."""


def find_fault(path: Path, *, checksums: bool = False) -> str:
    """The first column and row group that cannot be read, for a message; ``""`` when all can be.

    Args:
        path: A parquet file.
        checksums: Compare each page with its checksum.
    """
    with pq.ParquetFile(
        engine_path(path), pre_buffer=False, buffer_size=1 << 20, page_checksum_verification=checksums
    ) as file:
        for group in range(file.metadata.num_row_groups):
            for name in file.schema_arrow.names:
                try:
                    for batch in file.iter_batches(_ROWS, row_groups=[group], columns=[name], use_threads=False):
                        batch.validate(full=True)
                except (pa.ArrowException, OSError) as wrong:
                    said = str(wrong).strip().split("\n", 1)[0]
                    said = _NO_TEXT if "UTF8" in said else said.rstrip(".")
                    return f"{shown_path(path)}: column `{name}`, row group {group}: {said}."
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
