"""One pass over JSON lines files: finds their columns, chunks, bad lines and oddities."""

import codecs
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from assay.errors import InputError, shown_path
from assay.expressions.mixed import TYPED
from assay.loading.documents.document import Document
from assay.loading.documents.identity import other_kind
from assay.loading.formats.json_forms import Forms, fits
from assay.loading.formats.json_line import BOM, Bad, LineReader, too_long
from assay.loading.formats.jsonl import Chunk, JsonlFile, golds, rows_of
from assay.loading.formats.lines import Piece, Source, cut
from assay.loading.formats.reading import BadRow, Reading
from assay.names import BAD, GOLD_COLUMNS
from assay.values.chats import EXACT
from assay.values.rows import Columns

MOST_BAD = 100_000
"""Bad lines after which a file is rejected as not JSON lines."""

MANY = 16
"""Number of files above which the cost of small files matters."""

FEW = 1 << 14
"""With many files, chunks up to this size, in bytes, are read by Python, which is faster than starting Polars."""

_EXACT_INTEGER = 2**53
_SAMPLE = 200
_HEAD = 1 << 16

_NOT_JSON = ("malformed", "truncated_tail")
_NOT_OBJECTS = (*_NOT_JSON, "not_an_object")


def open_jsonl(files: Sequence[tuple[Path, str]], reading: Reading) -> list[JsonlFile]:
    """Open files of JSON objects, one per line, to be read one after another; structured columns become JSON text."""
    columns = Columns(reading.mapping, reading.exact)
    surveys: list[_Survey] = []
    forms = Forms({})
    small_chunk = FEW if len(files) > MANY else 0
    with ThreadPoolExecutor(1, "assay-jsonl") as pool:
        for path, name in files:
            try:
                survey = _Survey(Source.of(path, name, reading), reading, columns, forms, small_chunk)
                survey.run(pool)
            except OSError as error:
                raise InputError(f"{shown_path(name)}: {error.strerror or error}.") from None
            forms = survey.forms
            surveys.append(survey)
    try:
        schema = columns.settle()
    except InputError as error:
        others = f" and {len(files) - 1:,} more" if len(files) > 1 else ""
        raise InputError(f"{files[0][1]}{others}: {error.fact}", error.hint) from None
    return [survey.file(schema) for survey in surveys]


class _Survey:
    """The survey of one file."""

    def __init__(self, source: Source, reading: Reading, columns: Columns, forms: Forms, small_chunk: int) -> None:
        self.forms = forms
        self._source, self._reading, self._columns, self._small_chunk = source, reading, columns, small_chunk
        self._exact = [reading.mapping.get(name, name) for name in (*GOLD_COLUMNS, *reading.exact)]
        self._reader = LineReader(reading, golds(reading))
        self._chunks: list[tuple[Chunk, Forms | None]] = []
        self._bad: list[BadRow] = []
        self._rows, self._offset, self._line = 0, 0, 1
        self._places: Sequence[int] = ()
        self._notes: tuple[str, ...] = ()
        self._head = b""
        if source.stamp[0] == 0:
            raise InputError(f"{shown_path(source.name)}: the file is empty.")

    def run(self, pool: ThreadPoolExecutor) -> None:
        """Survey the file; the next lines are read while the last are surveyed."""
        with self._source.open(self._look) as read:
            pieces = cut(read, self._reading.max_line)
            next_piece = pool.submit(next, pieces, None)
            while (piece := next_piece.result()) is not None:
                next_piece = pool.submit(next, pieces, None)
                self._head = self._head or piece.data[:_HEAD]
                self._survey_piece(piece)
        if (error := self._other_kind()) is not None:
            raise error

    def _other_kind(self) -> InputError | None:
        """Return the error of a file that is not JSON lines, but something else; None if it has malformed lines."""
        if not self._bad or self._bad[0].row or self._bad[0].code not in _NOT_OBJECTS or self._source.form:
            return None
        # where other lines are rows, only an array that its line does not end makes an array of the file
        begins = self._bad[0].code in _NOT_JSON and self._head.removeprefix(BOM).lstrip().startswith(b"[")
        if len(self._bad) < self._rows and not begins:
            return None
        whole = len(self._head) < _HEAD
        texts = self._reading.max_bad_rows in (None, 0)
        return other_kind(self._head, self._source.name, "JSON lines", whole=whole, texts=texts)

    def _look(self, document: Document) -> None:
        self._places, self._notes = document.places, document.notes

    def file(self, schema: pl.Schema) -> JsonlFile:
        chunks = tuple(_with_columns(chunk, forms, schema) for chunk, forms in self._chunks)
        if BAD in schema and self._reading.reshape is None:
            raise InputError(
                f"{shown_path(self._source.name)}: the column name `{BAD}` is reserved.", "Rename the column."
            )
        if self._bad or BAD in schema:
            schema = pl.Schema({**schema, BAD: pl.String()})
        notes = (*self._notes, *self._reader.odd.notes(self._source.name, self._places))
        return JsonlFile(self._source, self._reading, self._columns, schema, chunks, tuple(self._bad), notes)

    def _survey_piece(self, piece: Piece) -> None:
        data, rows_before = piece.data, self._rows
        forms: Forms | None = None
        if not piece.whole:
            self._add_bad(self._line, 0, data, too_long(self._reading.max_line))
        elif len(data) <= self._small_chunk:
            self._read(data)
        elif self._is_read_by_engine(data) or (
            self._read(data) and self._has_new_forms() and self.forms.read(data) is not None
        ):
            forms = self.forms
        chunk = Chunk(self._offset, piece.length, self._line, self._rows - rows_before, None, piece.whole)
        self._chunks.append((chunk, forms))
        self._offset += piece.length
        self._line += data.count(b"\n") or 1

    def _is_read_by_engine(self, data: bytes) -> bool:
        """Whether Polars can read the lines because all have the known forms; only the range of integers can be new then."""
        frame = self.forms.read(data) if self._is_plain(data) else None
        if frame is None:
            return False
        for integers in frame.select(pl.col(pl.Int64)):
            ends = [bound for bound in (integers.min(), integers.max()) if isinstance(bound, int)]
            is_exact = all(abs(bound) <= _EXACT_INTEGER for bound in ends)
            self._learn([{integers.name: value} for value in (ends if is_exact else integers)])
        self._rows += frame.height
        return True

    def _is_plain(self, data: bytes) -> bool:
        return self._reading.reshape is None and len(data) <= self._reading.max_line

    def _read(self, data: bytes) -> bool:
        """Read lines in Python; return whether Polars could read them, too."""
        rows: list[dict[str, Any]] = []
        first, oddities, bad_lines = self._rows, len(self._reader.odd), len(self._bad)
        for number, position, raw, result in rows_of(data, self._line, self._reader):
            if isinstance(result, Bad):
                self._add_bad(number, position, raw, result)
                rows.append({})
            else:
                rows += result
                self._rows += len(result)
        self._learn(rows, first)
        return (oddities, bad_lines) == (len(self._reader.odd), len(self._bad)) and self._is_plain(data)

    def _learn(self, rows: list[dict[str, Any]], first: int = 0) -> None:
        try:
            self._columns.see(rows, first)
        except InputError as error:
            raise InputError(f"{shown_path(self._source.name)}: {error.fact}", error.hint) from None

    def _has_new_forms(self) -> bool:
        schema = {name: _plain_type(dtype) for name, dtype in self._columns.schema.items()}
        if schema == self.forms.all_types:
            return False
        self.forms = Forms(schema, self._exact)
        return True

    def _add_bad(self, line: int, position: int, raw: bytes, error: Bad) -> None:
        name = self._source.name
        if self._source.form and error.code in _NOT_JSON:
            self._source.refuse()
        if len(self._bad) == MOST_BAD:
            first = self._bad[0]
            hint = f"The first is line {first.line}: {first.reason}"
            many = InputError(f"{shown_path(name)}: more than {MOST_BAD:,} lines are not JSON objects.", hint)
            raise self._other_kind() or many
        place = self._places[line - 1] if self._places else line
        self._bad.append(
            BadRow(name, self._rows, place, self._offset + position, error.code, error.reason, _sample(raw)),
        )
        self._rows += 1


def _with_columns(chunk: Chunk, forms: Forms | None, schema: pl.Schema) -> Chunk:
    if forms is None or not all(fits(dtype, schema[name]) for name, dtype in forms.schema.items()):
        return chunk
    return replace(chunk, columns=tuple(name for name, dtype in forms.schema.items() if dtype != pl.Null))


def _plain_type(dtype: pl.DataType) -> pl.DataType:
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
