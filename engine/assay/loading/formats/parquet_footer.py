"""The footer of a parquet file with plain columns, read without pyarrow: for a small file its import takes longer than all the rest.

What is not as simple as here is left to pyarrow, damaged footers too: it has the words for what is wrong with them.
"""

import base64
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from assay.frozen import frozen

_TRUE, _FALSE, _BYTE, _INTEGERS, _DOUBLE, _BINARY, _LISTS, _STRUCT = 1, 2, 3, (4, 5, 6), 7, 8, (9, 10), 12
_MAX_DEPTH = 16


class Struct(dict[int, Any]):
    """The values of the fields of a struct by number.

    Attributes:
        places: Where the bytes of each value begin and end.
        end: Where the struct ends.
    """

    __slots__ = ("end", "places")

    places: dict[int, tuple[int, int]]
    end: int


def read_struct(data: bytes, at: int = 0, depth: int = 0) -> Struct:
    """Return the struct that begins at a place.

    Raises:
        ValueError: The bytes are no struct.
        IndexError: They end early.
    """
    if depth > _MAX_DEPTH:
        raise ValueError("nested too deeply")
    fields, number = Struct(), 0
    fields.places = {}
    while header := data[at]:
        kind, at = header & 0x0F, at + 1
        if header >> 4:
            number += header >> 4
        else:
            number, at = _integer(data, at)
        start = at
        if kind in (_TRUE, _FALSE):
            fields[number] = kind == _TRUE
        else:
            fields[number], at = _value(data, at, kind, depth)
        fields.places[number] = (start, at)
    fields.end = at + 1
    return fields


def _value(data: bytes, at: int, kind: int, depth: int) -> tuple[Any, int]:
    if kind in _INTEGERS:
        return _integer(data, at)
    if kind == _BINARY:
        size, at = _varint(data, at)
        return _bytes(data, at, size)
    if kind == _STRUCT:
        fields = read_struct(data, at, depth + 1)
        return fields, fields.end
    if kind in (_BYTE, _TRUE, _FALSE):  # a flag only within a list: elsewhere its header is its value
        return data[at], at + 1
    if kind == _DOUBLE:
        return _bytes(data, at, 8)
    if kind in _LISTS and depth < _MAX_DEPTH:
        header, at = data[at], at + 1
        count, at = (header >> 4, at) if header >> 4 < 15 else _varint(data, at)  # noqa: PLR2004
        items = []
        for _ in range(count):
            item, at = _value(data, at, header & 0x0F, depth + 1)
            items.append(item)
        return items, at
    raise ValueError(f"unknown type {kind}")


def _bytes(data: bytes, at: int, size: int) -> tuple[bytes, int]:
    end = at + size
    if end > len(data):
        raise IndexError("ends early")
    return data[at:end], end


def _varint(data: bytes, at: int) -> tuple[int, int]:
    byte = data[at]
    value, shift = byte & 0x7F, 0
    while byte > 0x7F:  # noqa: PLR2004
        at, shift = at + 1, shift + 7
        if shift > 63:  # noqa: PLR2004
            raise ValueError("number too long")
        byte = data[at]
        value |= (byte & 0x7F) << shift
    return value, at + 1


def _integer(data: bytes, at: int) -> tuple[int, int]:
    value, at = _varint(data, at)
    return (value >> 1) ^ -(value & 1), at


@frozen
class Chunk:
    """A column in a row group, with the names that pyarrow gives."""

    path_in_schema: str
    data_page_offset: int
    dictionary_page_offset: int | None
    total_compressed_size: int
    total_uncompressed_size: int

    @property
    def has_dictionary_page(self) -> bool:
        """Whether values are stored in a dictionary."""
        return self.dictionary_page_offset is not None


@frozen
class Group:
    """A row group, with the names that pyarrow gives."""

    num_rows: int
    total_byte_size: int
    columns: tuple[Chunk, ...]

    @property
    def num_columns(self) -> int:
        """Number of columns."""
        return len(self.columns)

    def column(self, at: int) -> Chunk:
        """Return a column."""
        return self.columns[at]


_LARGEST = 1 << 19
"""Bytes of a footer up to which Python reads it in less time than pyarrow is imported, whatever it has in them."""

_TAIL = 8
"""Bytes behind the footer: its size, and the mark of the format."""

PLAIN = (pl.String, pl.Boolean, pl.Float32, pl.Float64, *pl.datatypes.group.INTEGER_DTYPES)
"""The types of plain columns."""

_TEXT = 6
_PHYSICAL = (0, 1, 2, 4, 5, _TEXT)
_REPEATED = 2
_CHILDREN, _ENCRYPTION = 5, 8
_UTF8 = 0
_WHOLE_NUMBERS = range(11, 19)
_LOGICAL_TEXT, _LOGICAL_NUMBER = 1, 10


def plain_footer(path: Path) -> tuple[list[str], list[Group]] | None:
    """Return the names of the columns and the row groups of a file; None if pyarrow has to read its footer.

    All columns seem to be text, numbers or Booleans. If these are their types in Polars, too, pyarrow gives the same values.
    """
    try:
        footer = read_struct(_footer(path))
        root, *columns = footer[2]
        names = [column[4].decode() for column in columns]
        is_plain = root[_CHILDREN] == len(columns) and all(map(_is_plain, columns))
        notes = {pair[1]: pair.get(2, b"") for pair in footer.get(5, ())}
        # the types of other libraries, which Polars may not show
        is_plain = is_plain and b"ARROW:extension" not in base64.b64decode(notes.get(b"ARROW:schema", b""))
        return (names, [_group(group) for group in footer[4]]) if is_plain and _ENCRYPTION not in footer else None
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, MemoryError, OverflowError):
        return None


def _footer(path: Path) -> bytes:
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _TAIL - _LARGEST))
        data = file.read()
    length = int.from_bytes(data[-_TAIL:-4], "little")
    if data[-4:] != b"PAR1" or length > min(len(data) - _TAIL, _LARGEST):
        raise ValueError("no footer, or a large one")
    return data[-_TAIL - length : -_TAIL]


def _is_plain(column: Mapping[int, Any]) -> bool:
    if _CHILDREN in column or column[1] not in _PHYSICAL or column.get(3) == _REPEATED:
        return False
    if column[1] == _TEXT:
        return column.get(6) == _UTF8 and {*column.get(10, {_LOGICAL_TEXT: {}})} == {_LOGICAL_TEXT}
    converted = column.get(6) is None or column[6] in _WHOLE_NUMBERS
    return converted and {*column.get(10, {})} <= {_LOGICAL_NUMBER}


def _group(group: Mapping[int, Any]) -> Group:
    chunks = []
    for column in group[1]:
        facts = column[3]
        if column.keys() & {1, 8, 9}:
            raise ValueError("in another file, or encrypted")
        path = ".".join(step.decode() for step in facts[3])
        chunks.append(Chunk(path, _whole(facts[9]), facts.get(11), _whole(facts[7]), _whole(facts[6])))
    return Group(_whole(group[3]), _whole(group[2]), tuple(chunks))


def _whole(value: Any) -> int:
    if not isinstance(value, int):
        raise TypeError("not a number")
    return value
