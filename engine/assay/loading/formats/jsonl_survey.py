"""JSON lines files looked through, once: their columns, their chunks, their bad lines and what was odd about them."""

import codecs
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from assay.errors import InputError, shown_path
from assay.expressions.mixed import TYPED
from assay.loading.formats.json_forms import Forms, fits
from assay.loading.formats.json_line import Bad, LineReader, too_long
from assay.loading.formats.jsonl import Chunk, JsonlFile, golds, rows_of
from assay.loading.formats.lines import Piece, Source, cut
from assay.loading.formats.reading import BadRow, Reading
from assay.names import BAD, EXPECTED
from assay.values.chats import EXACT
from assay.values.rows import Columns

__all__ = ["FEW", "MANY", "MOST_BAD", "open_jsonl"]

MOST_BAD = 100_000
"""Bad lines of a file after which it is taken for one that has no JSON lines."""

MANY = 16
"""Files that are so many that it counts what a small one of them costs."""

FEW = 1 << 14
"""Bytes of a chunk that Python reads sooner than the engine would begin, where there are many files."""

_EXACT_INTEGER = 2**53
_SAMPLE = 200


def open_jsonl(files: Sequence[tuple[Path, str]], reading: Reading) -> list[JsonlFile]:
    """Files of JSON objects, one a line, that are read one after another; structure is JSON text.

    Args:
        files: Each with what to call it.
        reading: How.

    Raises:
        InputError: A file cannot be read, or its values fit no column.
    """
    columns = Columns(reading.mapping)
    looks: list[_Look] = []
    forms = Forms({})
    few = FEW if len(files) > MANY else 0
    with ThreadPoolExecutor(1, "assay-jsonl") as pool:
        for path, name in files:
            try:
                look = _Look(Source.of(path, name, reading), reading, columns, forms, few)
                look.through(pool)
            except OSError as wrong:
                raise InputError(f"{shown_path(name)}: {wrong.strerror or wrong}.") from None
            forms = look.forms
            looks.append(look)
    try:
        schema = columns.settle()
    except InputError as wrong:
        others = f" and {len(files) - 1:,} more" if len(files) > 1 else ""
        raise InputError(f"{files[0][1]}{others}: {wrong.fact}", wrong.hint) from None
    return [look.file(schema) for look in looks]


class _Look:
    """What a look through one file finds.

    Args:
        source: The file.
        reading: How it is read.
        columns: What is known of the columns; it learns.
        forms: What values looked like in the files before.
        few: Bytes of a chunk that Python reads sooner than the engine would begin.
    """

    def __init__(self, source: Source, reading: Reading, columns: Columns, forms: Forms, few: int) -> None:
        self.forms = forms
        self._source, self._reading, self._columns, self._few = source, reading, columns, few
        self._golds = [reading.mapping.get(name, name) for name in ("answer", EXPECTED)]
        self._reader = LineReader(reading, golds(reading))
        self._chunks: list[tuple[Chunk, Forms | None]] = []
        self._bad: list[BadRow] = []
        self._rows, self._offset, self._line = 0, 0, 1
        if source.stamp[0] == 0:
            raise InputError(f"{shown_path(source.name)}: the file is empty.")

    def through(self, pool: ThreadPoolExecutor) -> None:
        """Look through the file; the next lines are read while the last are looked at."""
        with self._source.open() as read:
            pieces = cut(read, self._reading.max_line)
            ahead = pool.submit(next, pieces, None)
            while (piece := ahead.result()) is not None:
                ahead = pool.submit(next, pieces, None)
                self._look(piece)

    def file(self, schema: pl.Schema) -> JsonlFile:
        """The file, now that the types of the columns are settled."""
        chunks = tuple(_settled(chunk, forms, schema) for chunk, forms in self._chunks)
        if BAD in schema and self._reading.reshape is None:
            raise InputError(
                f"{shown_path(self._source.name)}: there is a column `{BAD}`; such names are reserved.", "Rename it."
            )
        if self._bad or BAD in schema:
            schema = pl.Schema({**schema, BAD: pl.String()})
        notes = self._reader.odd.notes(self._source.name)
        return JsonlFile(self._source, self._reading, self._columns, schema, chunks, tuple(self._bad), notes)

    def _look(self, piece: Piece) -> None:
        data, before = piece.data, self._rows
        forms: Forms | None = None
        if not piece.whole:
            self._quarantine(self._line, 0, data, too_long(self._reading.max_line))
        elif len(data) <= self._few:
            self._read(data)
        elif self._is_read_by_engine(data) or (
            self._read(data) and self._has_new_forms() and self.forms.read(data) is not None
        ):
            forms = self.forms
        chunk = Chunk(self._offset, piece.length, self._line, self._rows - before, None, piece.whole)
        self._chunks.append((chunk, forms))
        self._offset += piece.length
        self._line += data.count(b"\n") or 1

    def _is_read_by_engine(self, data: bytes) -> bool:
        """Whether all lines have the forms that are known; then all that they can teach is how large integers are."""
        frame = self.forms.read(data) if self._is_plain(data) else None
        if frame is None:
            return False
        for integers in frame.select(pl.col(pl.Int64)):
            ends = [one for one in (integers.min(), integers.max()) if isinstance(one, int)]
            held = all(abs(one) <= _EXACT_INTEGER for one in ends)
            self._learn([{integers.name: value} for value in (ends if held else integers)])
        self._rows += frame.height
        return True

    def _is_plain(self, data: bytes) -> bool:
        return self._reading.reshape is None and len(data) <= self._reading.max_line

    def _read(self, data: bytes) -> bool:
        """Read lines in Python; whether there is nothing about them that the engine cannot do."""
        rows: list[dict[str, Any]] = []
        first, odd, bad = self._rows, len(self._reader.odd), len(self._bad)
        for number, place, raw, given in rows_of(data, self._line, self._reader):
            if isinstance(given, Bad):
                self._quarantine(number, place, raw, given)
                rows.append({})
            else:
                rows += given
                self._rows += len(given)
        self._learn(rows, first)
        return (odd, bad) == (len(self._reader.odd), len(self._bad)) and self._is_plain(data)

    def _learn(self, rows: list[dict[str, Any]], first: int = 0) -> None:
        try:
            self._columns.see(rows, first)
        except InputError as wrong:
            raise InputError(f"{shown_path(self._source.name)}: {wrong.fact}", wrong.hint) from None

    def _has_new_forms(self) -> bool:
        schema = {name: _plainly(dtype) for name, dtype in self._columns.schema.items()}
        if schema == self.forms.given:
            return False
        self.forms = Forms(schema, self._golds)
        return True

    def _quarantine(self, line: int, place: int, raw: bytes, wrong: Bad) -> None:
        name = self._source.name
        if len(self._bad) == MOST_BAD:
            first = self._bad[0]
            hint = f"The first is line {first.line}: {first.reason}"
            raise InputError(f"{shown_path(name)}: more than {MOST_BAD:,} lines are no JSON objects.", hint)
        self._bad.append(
            BadRow(name, self._rows, line, self._offset + place, wrong.code, wrong.reason, _sample(raw)),
        )
        self._rows += 1


def _settled(chunk: Chunk, forms: Forms | None, schema: pl.Schema) -> Chunk:
    """A chunk that is read by the engine where its values have the types of the columns, or those that become them."""
    if forms is None or not all(fits(dtype, schema[name]) for name, dtype in forms.schema.items()):
        return chunk
    return replace(chunk, columns=tuple(name for name, dtype in forms.schema.items() if dtype != pl.Null))


def _plainly(dtype: pl.DataType) -> pl.DataType:
    """The type of what the engine may read of a column: messages that say no more than role and text, no golds of all types."""
    if dtype == TYPED:
        return pl.Null()
    if isinstance(dtype, pl.List) and isinstance(dtype.inner, pl.Struct):
        fields = dtype.inner.to_schema()
        return pl.List(pl.Struct({name: inner for name, inner in fields.items() if name != EXACT}))
    return dtype


def _sample(raw: bytes) -> str:
    start = raw[:_SAMPLE].rstrip(b"\r\n")
    try:
        return codecs.getincrementaldecoder("utf-8")().decode(start, final=len(raw) <= _SAMPLE)
    except UnicodeDecodeError:
        return start.hex()
