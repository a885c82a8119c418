"""Parquet by Polars, a row group at a time: the pages of each as Polars writes them, and one footer for all.

Polars writes a table that is in memory, or a stream, of which it gathers as many rows for a row group as it was told, however long
they are. So each table is written to memory, and its pages are copied from there. Polars also would not report why a disk failed.
"""

import io
from collections.abc import Mapping
from typing import IO

import polars as pl

from assay.loading.formats.parquet_footer import Struct, read_struct
from assay.loading.formats.reading import cut_short

_MARK = b"PAR1"
_TAIL = 8
_ROWS, _GROUPS, _CHUNKS, _BYTES, _FACTS, _PACKED = 3, 4, 1, 2, 3, 7
_DATA, _INDEX, _DICTIONARY = 9, 10, 11
"""Fields of a column that say where pages are, which follow each other."""


class RowGroups:
    """Writes tables of one schema, each as a row group."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._groups, self._rows = file, list[bytes](), 0
        self._at = file.write(_MARK)

    def write(self, frame: pl.DataFrame, metadata: Mapping[str, str] | None = None) -> tuple[bytes, Struct]:
        """Write a table; return the footer that Polars gives it."""
        written = io.BytesIO()
        height = max(1, frame.height)
        frame.write_parquet(
            written, compression="zstd", compression_level=1, row_group_size=height, metadata=dict(metadata or {})
        )
        data = written.getbuffer()
        size = int.from_bytes(data[-_TAIL:-4], "little")
        footer = bytes(data[-_TAIL - size : -_TAIL])
        fields = read_struct(footer)
        if fields[_ROWS] != frame.height:
            raise cut_short()
        for group in fields[_GROUPS]:
            self._groups.append(self._copied(group, data, footer, frame.height))
        self._rows += frame.height
        return footer, fields

    def _copied(self, group: Struct, data: memoryview, footer: bytes, rows: int) -> bytes:
        """Copy the pages of a row group, and return what the footer says of it; the indices of pages are left out."""
        begin, columns = self._at, []
        for chunk in group[_CHUNKS]:
            facts: Struct = chunk[_FACTS]
            start = min(facts[field] for field in (_DATA, _DICTIONARY) if field in facts)
            self._file.write(data[start : start + facts[_PACKED]])
            at, end = chunk.places[_FACTS]
            parts = [_field(2, 0), b"\x1c"]
            for field in (_DATA, _INDEX, _DICTIONARY):
                if field in facts:
                    first, last = facts.places[field]
                    parts += [footer[at:first], _integer(facts[field] - start + self._at)]
                    at = last
            columns.append(b"".join((*parts, footer[at:end], b"\0")))
            self._at += facts[_PACKED]
        sizes = (_field(1, group[_BYTES]), _field(1, rows), _field(2, begin), _field(1, self._at - begin))
        return b"".join((b"\x19", _list_of(columns), *sizes, b"\0"))

    def close(self, frame: pl.DataFrame, metadata: Mapping[str, str]) -> None:
        """Write a last table, which may be empty, and the footer."""
        footer, fields = self.write(frame, metadata)
        (rows, behind_rows), (groups, behind_groups) = fields.places[_ROWS], fields.places[_GROUPS]
        parts = (footer[:rows], _integer(self._rows), footer[behind_rows:groups], _list_of(self._groups))
        whole = b"".join((*parts, footer[behind_groups:]))
        self._file.write(whole + len(whole).to_bytes(4, "little") + _MARK)

    def abandon(self) -> None:
        """Leave the file unfinished."""


def _field(step: int, value: int) -> bytes:
    """Return an integer whose field has a number that is larger by ``step`` than the one before."""
    return bytes([step << 4 | 6]) + _integer(value)


def _integer(value: int) -> bytes:
    return _varint(2 * value)


def _varint(value: int) -> bytes:
    steps = []
    while value > 0x7F:  # noqa: PLR2004
        steps.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*steps, value])


def _list_of(structs: list[bytes]) -> bytes:
    return b"\xfc" + _varint(len(structs)) + b"".join(structs)
