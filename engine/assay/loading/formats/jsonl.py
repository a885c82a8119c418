"""JSON lines as a lazy frame: chunk by chunk, by Polars where it provably reads as Python does, else by Python.

A first pass over all files, in chunks of whole lines, finds the column types. After that, any process can read any chunk.
``LineReader`` defines the meaning of a line; ``Forms`` defines which chunks Polars may read.
"""

import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

import polars as pl

from assay.loading.formats.engine_source import as_source, pick
from assay.loading.formats.json_forms import parse
from assay.loading.formats.json_line import Bad, LineReader, too_long
from assay.loading.formats.lines import Source
from assay.loading.formats.reading import BadRow, Reading, Unit, changed
from assay.names import BAD, EXPECTED, VERIFIER
from assay.values.rows import Columns


@dataclass(frozen=True)
class Chunk:
    """Consecutive lines of a file.

    Attributes:
        length: Their size in bytes.
        line: Number of the first line, from 1.
        columns: The columns that Polars reads, all others being null; None if Python reads the chunk.
        whole: Whether the chunk can be read; false for a single line that is too long.
    """

    offset: int
    length: int
    line: int
    rows: int
    columns: tuple[str, ...] | None = None
    whole: bool = True


@dataclass(frozen=True)
class JsonlFile:
    """A ``File`` of JSON objects, one per line."""

    source: Source
    reading: Reading
    columns: Columns
    schema: pl.Schema
    chunks: tuple[Chunk, ...]
    bad: tuple[BadRow, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def path(self) -> Path:
        """Path of the file."""
        return self.source.path

    @property
    def units(self) -> tuple[Unit, ...]:
        """Its chunks; a compressed file or a document is one unit, because it can only be read from the beginning."""
        if not self.source.is_stream:
            return tuple(Unit(chunk.rows, chunk.length) for chunk in self.chunks)
        return (Unit(sum(chunk.rows for chunk in self.chunks), sum(chunk.length for chunk in self.chunks)),)

    def scan(self, first: int = 0, last: int | None = None) -> pl.LazyFrame:
        """Return the rows of units ``first`` up to, not including, ``last``; by default all."""
        return as_source(partial(self.read, first, last), self.schema)

    def read(self, first: int, last: int | None, names: list[str], rows: int) -> Iterator[pl.DataFrame]:  # noqa: ARG002
        """Yield the same rows frame by frame, one frame per chunk."""
        chosen = self.chunks if self.source.is_stream and (first, last) in ((0, None), (0, 1)) else ()
        if not self.source.is_stream:
            chosen = self.chunks[first:last]
        return self._frames(chosen, names)

    def _frames(self, chosen: Sequence[Chunk], columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        opening = self.source.open() if self.source.is_stream else self.source.seek()
        with opening as file:
            for chunk in chosen:
                frame = self._frame(chunk, self._bytes(file, chunk), columns)
                if frame.height != chunk.rows:
                    raise changed(self.source.name)
                yield pick(frame, columns)

    def _bytes(self, opened: Any, chunk: Chunk) -> bytes:
        if self.source.is_stream:
            data = _read_exactly(opened, chunk.length) if chunk.whole else _skip_bytes(opened, chunk.length)
        else:
            file: IO[bytes] = opened
            file.seek(chunk.offset)
            data = file.read(chunk.length) if chunk.whole else b""
        if chunk.whole and len(data) < chunk.length:
            raise changed(self.source.name)
        return data

    def _frame(self, chunk: Chunk, data: bytes, columns: Sequence[str]) -> pl.DataFrame:
        names = [name for name in columns if name != BAD]
        if chunk.columns is None:
            return self._frame_in_python(chunk, data, names)
        by_polars = {name: self.schema[name] for name in chunk.columns if name in names}
        null_columns = [name for name in names if name not in by_polars]
        frame = self._rows_frame([{}] * chunk.rows, [None] * chunk.rows, null_columns)
        return frame.hstack(parse(data, by_polars).get_columns()) if by_polars else frame

    def _frame_in_python(self, chunk: Chunk, data: bytes, names: Sequence[str]) -> pl.DataFrame:
        rows: list[dict[str, Any]] = []
        reasons: list[str | None] = []
        reader = LineReader(self.reading, golds(self.reading))
        lines = rows_of(data, chunk.line, reader) if chunk.whole else [(0, 0, b"", too_long(self.reading.max_line))]
        for _, _, _, result in lines:
            rows += [{}] if isinstance(result, Bad) else result
            reasons += [result.reason] if isinstance(result, Bad) else [row.get(BAD) for row in result]
        return self._rows_frame(rows, reasons, names)

    def _rows_frame(self, rows: list[dict[str, Any]], reasons: list[str | None], names: Sequence[str]) -> pl.DataFrame:
        bad = pl.DataFrame({BAD: reasons}, schema={BAD: pl.String})
        return bad.hstack(self.columns.frame(rows, names).get_columns())


def golds(reading: Reading) -> list[str]:
    """Return the columns of a file in which NaN is compared by its ``str()``."""
    return [reading.mapping.get(name, name) for name in (EXPECTED, VERIFIER)]


def rows_of(data: bytes, line: int, reader: LineReader) -> Iterator[tuple[int, int, bytes, list[dict[str, Any]] | Bad]]:
    """Read the lines of a chunk in Python: yield the number of each, its offset in the chunk, its bytes and its rows."""
    offset = 0
    for number, raw in enumerate(io.BytesIO(data), line):
        yield number, offset, raw, reader.read(raw, number)
        offset += len(raw)


def _read_exactly(read: Callable[[int], bytes], size: int) -> bytes:
    pieces = []
    while size and (block := read(size)):
        pieces.append(block)
        size -= len(block)
    return b"".join(pieces)


def _skip_bytes(read: Callable[[int], bytes], size: int) -> bytes:
    while size and (block := read(min(size, 1 << 20))):
        size -= len(block)
    return b""
