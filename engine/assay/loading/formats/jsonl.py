"""JSON lines as a lazy frame: chunk by chunk, by the engine where it provably reads as Python does, else by Python.

A file is looked through once, in chunks of whole lines, for the types that all lines of all files make together. Then any process
reads any of its chunks. What a line means is what ``LineReader`` makes of it; what a chunk that the engine reads must look
like, ``Forms`` says.
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
from assay.loading.formats.reading import BadRow, Reading, Unit
from assay.names import BAD, EXPECTED, VERIFIER
from assay.values.rows import Columns

__all__ = ["Chunk", "JsonlFile", "golds", "rows_of"]


@dataclass(frozen=True)
class Chunk:
    """Some lines of a file.

    Attributes:
        offset: Where they begin, in bytes of the file as it reads uncompressed.
        length: How many bytes they are.
        line: The number of the first, from 1.
        rows: How many rows they make.
        columns: The columns that the engine is to read, all others being null; None where Python reads.
        whole: Whether it is worth to read them: a single line may be too long.
    """

    offset: int
    length: int
    line: int
    rows: int
    columns: tuple[str, ...] | None = None
    whole: bool = True


@dataclass(frozen=True)
class JsonlFile:
    """A ``File`` of JSON objects, one a line.

    Attributes:
        source: The file as it was looked through.
        reading: How it is read.
        columns: The types that the values of all lines make.
        chunks: All its lines, in order.
    """

    source: Source
    reading: Reading
    columns: Columns
    schema: pl.Schema
    chunks: tuple[Chunk, ...]
    bad: tuple[BadRow, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def path(self) -> Path:
        """Where it is."""
        return self.source.path

    @property
    def units(self) -> tuple[Unit, ...]:
        """Its chunks; a compressed file is one unit, for it is read from its beginning."""
        if not self.source.compression:
            return tuple(Unit(chunk.rows, chunk.length) for chunk in self.chunks)
        return (Unit(sum(chunk.rows for chunk in self.chunks), sum(chunk.length for chunk in self.chunks)),)

    def scan(self, first: int = 0, last: int | None = None) -> pl.LazyFrame:
        """The rows of units ``first`` up to, not including, ``last``; by default all."""
        return as_source(partial(self.read, first, last), self.schema)

    def read(self, first: int, last: int | None, names: list[str], rows: int) -> Iterator[pl.DataFrame]:  # noqa: ARG002
        """The same frame by frame; a chunk is a frame."""
        chosen = self.chunks if self.source.compression and (first, last) in ((0, None), (0, 1)) else ()
        if not self.source.compression:
            chosen = self.chunks[first:last]
        return self._frames(chosen, names)

    def _frames(self, chosen: Sequence[Chunk], wanted: Sequence[str]) -> Iterator[pl.DataFrame]:
        opened = self.source.open() if self.source.compression else self.source.seek()
        with opened as given:
            for chunk in chosen:
                frame = self._frame(chunk, self._bytes(given, chunk), wanted)
                if frame.height != chunk.rows:
                    raise self.source.changed()
                yield pick(frame, wanted)

    def _bytes(self, given: Any, chunk: Chunk) -> bytes:
        if self.source.compression:
            data = _exactly(given, chunk.length) if chunk.whole else _passed(given, chunk.length)
        else:
            file: IO[bytes] = given
            file.seek(chunk.offset)
            data = file.read(chunk.length) if chunk.whole else b""
        if chunk.whole and len(data) < chunk.length:
            raise self.source.changed()
        return data

    def _frame(self, chunk: Chunk, data: bytes, wanted: Sequence[str]) -> pl.DataFrame:
        """The wanted columns of a chunk, and ``BAD``."""
        own = [name for name in wanted if name != BAD]
        if chunk.columns is None:
            return self._exactly_read(chunk, data, own)
        asked = {name: self.schema[name] for name in chunk.columns if name in own}
        absent = [name for name in own if name not in asked]
        frame = self._of_rows([{}] * chunk.rows, [None] * chunk.rows, absent)
        return frame.hstack(parse(data, asked).get_columns()) if asked else frame

    def _exactly_read(self, chunk: Chunk, data: bytes, own: Sequence[str]) -> pl.DataFrame:
        rows: list[dict[str, Any]] = []
        why: list[str | None] = []
        reader = LineReader(self.reading, golds(self.reading))
        found = rows_of(data, chunk.line, reader) if chunk.whole else [(0, 0, b"", too_long(self.reading.max_line))]
        for _, _, _, given in found:
            rows += [{}] if isinstance(given, Bad) else given
            why += [given.reason] if isinstance(given, Bad) else [row.get(BAD) for row in given]
        return self._of_rows(rows, why, own)

    def _of_rows(self, rows: list[dict[str, Any]], why: list[str | None], own: Sequence[str]) -> pl.DataFrame:
        bad = pl.DataFrame({BAD: why}, schema={BAD: pl.String})
        return bad.hstack(self.columns.frame(rows, own).get_columns())


def golds(reading: Reading) -> list[str]:
    """Columns of a file in which NaN is compared by its ``str()``."""
    return [reading.mapping.get(name, name) for name in (EXPECTED, VERIFIER)]


def rows_of(data: bytes, line: int, reader: LineReader) -> Iterator[tuple[int, int, bytes, list[dict[str, Any]] | Bad]]:
    """The lines of a chunk as Python reads them: for each its number, its place in the chunk, its bytes and its rows."""
    place = 0
    for number, raw in enumerate(io.BytesIO(data), line):
        yield number, place, raw, reader.read(raw, number)
        place += len(raw)


def _exactly(read: Callable[[int], bytes], size: int) -> bytes:
    pieces = []
    while size and (found := read(size)):
        pieces.append(found)
        size -= len(found)
    return b"".join(pieces)


def _passed(read: Callable[[int], bytes], size: int) -> bytes:
    while size and (found := read(min(size, 1 << 20))):
        size -= len(found)
    return b""
