"""JSON lines, plain or compressed, chunk by chunk: a first pass finds columns and chunks, then any process reads any chunk."""

import codecs
import contextlib
import io
import json
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import IO, Any, NoReturn

import polars as pl

from assay.errors import InputError, shown_path
from assay.expressions.json import MAX_DEPTH, mended, too_deep
from assay.expressions.mixed import TYPED
from assay.frozen import frozen
from assay.loading.formats.documents import RecordDocument, form_of, other_kind, read_json, reader, refuse
from assay.loading.formats.json_forms import Forms, fits, parse, plain_rows, type_of
from assay.loading.formats.reading import BadRow, File, Reading, Unit, changed, looked_through, pick, rows_in_all
from assay.names import BAD, EXPECTED, GOLD_COLUMNS, VERIFIER
from assay.system.arrow import pa
from assay.system.memory import room, uncollected
from assay.thresholds import THRESHOLDS
from assay.values.chats import EXACT
from assay.values.rows import LearnedColumns

_SAMPLE = 200
_ANY_RATIO = 1 << 20
"""Uncompressed size in bytes up to which any compression ratio is allowed."""

_COPIES = 4
"""Shares of the memory for rows that a document takes: its bytes, those of its lines, and twice that for frames and places."""

_HELD = 8
"""Sizes of a piece that looking through it takes: its bytes, its text, and its rows."""

_MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}


def compression(path: Path) -> str:
    """Return the compression of a file, by its first bytes: ``gzip``, ``zstd`` or ``""``."""
    with path.open("rb") as file:
        first = file.read(4)
    return next((kind for magic, kind in _MAGIC.items() if first.startswith(magic)), "")


def _stamp(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns


@frozen
class LineSource:
    """A file with its state at some moment; reading fails if it has changed since.

    Attributes:
        form: Suffix of a document, which is read whole and gives lines; ``""`` for a file of lines.
    """

    path: Path
    name: str
    reading: Reading
    compression: str
    stamp: tuple[int, int]
    form: str = ""

    @classmethod
    def of(cls, path: Path, name: str, reading: Reading) -> "LineSource":
        """Return a file in its current state; refuse one that is larger than allowed."""
        kind, stamp, limit = compression(path), _stamp(path), reading.max_uncompressed
        if not kind and limit is not None and stamp[0] > limit:
            fact = f"{shown_path(name)}: {stamp[0]:,} bytes; --max-uncompressed allows {limit:,}."
            raise InputError(fact, "Raise the limit if you trust the file.")
        return cls(path, name, reading, kind, stamp, form_of(path))

    @property
    def is_stream(self) -> bool:
        """Whether its lines can only be read from the beginning."""
        return bool(self.compression or self.form)

    @contextlib.contextmanager
    def open(self, look: Callable[[RecordDocument], object] = lambda _: None) -> Iterator[Callable[[int], bytes]]:
        """Yield a function that returns the given number of bytes from the beginning, fewer at the end.

        ``look`` is called with a document before it is read.
        """
        if not self.form:
            with self._open_bytes() as read:
                yield read
        else:
            document = self._document()
            look(document)
            yield reader(document.data)

    def refuse(self) -> NoReturn:
        """Refuse a document with a record that is not JSON, with the place."""
        refuse(self._whole(), self.name)

    def _document(self) -> RecordDocument:
        if self.form == ".eval":
            from assay.loading.formats.inspect_log import read_inspect_log

            return read_inspect_log(self.path, self.name, self._most(self.stamp[0]), self.reading.end("stop_reason"))
        data = self._whole()
        if self.form == ".json":
            return read_json(data, self.name)
        from assay.loading.formats.workbook import read_workbook

        return read_workbook(data, self.name, self._most(len(data)))

    def _most(self, packed: int) -> int:
        most = max(_ANY_RATIO, int(self.reading.max_ratio * packed))
        return min(most, room(self.reading.memory_limit) // _COPIES, self.reading.max_uncompressed or most)

    def _whole(self) -> bytearray:
        data, limit = bytearray(), room(self.reading.memory_limit) // _COPIES
        with self._open_bytes() as read:
            while block := read(1 << 20):
                data += block
                if max(len(data), self.stamp[0]) > limit:
                    shown = shown_path(self.name)
                    lines = f"make JSON lines of it: jq -c '.[]' {shown} > NAME.jsonl"
                    raise InputError(
                        f"{shown}: {self.stamp[0]:,} bytes; a document is read whole, and the memory limit allows {limit:,}.",
                        f"Raise it with --memory-limit, or {lines if self.form == '.json' else 'save it as CSV.'}",
                    )
        return data

    @contextlib.contextmanager
    def _open_bytes(self) -> Iterator[Callable[[int], bytes]]:
        if not self.compression:
            with self.seek() as file:
                yield file.read
            return
        self._check_unchanged()
        with pa.OSFile(str(self.path)) as file, pa.CompressedInputStream(file, self.compression) as stream:
            unpacked = 0

            def read(size: int) -> bytes:
                nonlocal unpacked
                try:
                    block: bytes = stream.read(size)
                except OSError as error:
                    state = "cut short" if "Truncated" in str(error) else f"not readable: {error}"
                    raise InputError(f"{shown_path(self.name)}: its {self.compression} bytes are {state}.") from None
                unpacked += len(block)
                self._check_size(unpacked, file.tell())
                return block

            yield read
        self._check_unchanged()

    def _check_size(self, size: int, packed: int) -> None:
        fact = f"{shown_path(self.name)}: its first {packed:,} bytes expand to {size:,} bytes or more"
        limit, ratio = self.reading.max_uncompressed, self.reading.max_ratio
        if limit is not None and size > limit:
            hint = "Raise the limit if you trust the file."
            raise InputError(f"{fact}; --max-uncompressed allows {limit:,}.", hint)
        if size > max(_ANY_RATIO, ratio * packed):
            hint = "Raise the limit if the file is not a decompression bomb."
            raise InputError(f"{fact}, {size / packed:,.0f} times as many; --max-ratio allows {ratio:g}.", hint)

    @contextlib.contextmanager
    def seek(self) -> Iterator[IO[bytes]]:
        """Open a file that is not compressed, for reading at any offset."""
        self._check_unchanged()
        with self.path.open("rb") as file:
            yield file
        self._check_unchanged()

    def _check_unchanged(self) -> None:
        if not self.path.exists() or _stamp(self.path) != self.stamp:
            raise changed(self.name)


@frozen
class Piece:
    """Bytes of a file.

    Attributes:
        length: The number of bytes in the file.
    """

    data: bytes
    length: int
    whole: bool = True


def cut(read: Callable[[int], bytes], max_line: int) -> Iterator[Piece]:
    """Cut bytes into pieces of whole lines."""
    size, pending, pieces = max(1, THRESHOLDS.first_chunk), 0, list[bytes]()
    while block := read(size):
        end = block.rfind(b"\n") + 1
        if not end:
            pieces.append(block)
            pending += len(block)
            if pending > max_line:
                long_line, block = _skip_line(b"".join(pieces), read)
                yield long_line
                pieces, pending = [block], len(block)
        else:
            data = b"".join([*pieces, memoryview(block)[:end]])
            yield Piece(data, len(data))
            pieces, pending = [block[end:]], len(block) - end
        size = max(1, THRESHOLDS.chunk)
    if pending:
        data = b"".join(pieces)
        yield Piece(data, len(data))


def _skip_line(beginning: bytes, read: Callable[[int], bytes]) -> tuple[Piece, bytes]:
    length = len(beginning)
    while block := read(max(1, THRESHOLDS.chunk)):
        end = block.find(b"\n") + 1
        length += end or len(block)
        if end:
            return Piece(beginning[:_SAMPLE], length, whole=False), block[end:]
    return Piece(beginning[:_SAMPLE], length, whole=False), b""


_FIRST = 100
_FIRST_BYTES = 1 << 24
_FIRST_BLOCK = 1 << 18
"""Limits of detection in a JSONL file: objects, bytes in total, and bytes read at a time."""


def first_records(path: Path, reading: Reading) -> list[dict[str, Any]]:
    """Return the objects of the first lines of a file of JSON lines; other lines are skipped."""
    records: list[dict[str, Any]] = []
    with LineSource.of(path, str(path), reading).open() as read:
        size, rest = 0, b""
        while size < _FIRST_BYTES and len(records) < _FIRST:
            block = read(_FIRST_BLOCK)
            # the last line may be cut off
            *lines, rest = (rest + block).split(b"\n") if block else (rest, b"")
            size += len(block) or _FIRST_BYTES
            for raw in lines:
                with contextlib.suppress(ValueError, RecursionError):
                    value = json.loads(raw.decode("utf-8-sig", errors="replace"))
                    records += [value] if isinstance(value, dict) else []
    return records[:_FIRST]


BOM = b"\xef\xbb\xbf"
_NOTES = {
    "bom": "{rows} with a byte order mark, which was skipped",
    "blank": "{rows} blank and skipped",
    "bytes": "{rows} with bytes that are not UTF-8, read as U+FFFD",
    "surrogate": "{rows} with lone surrogates, read as U+FFFD",
    "keys": "{rows} with a duplicate key in an object; the last one is used",
    "numbers": "{rows} with NaN or Infinity, read as null",
}


@frozen
class Bad:
    """The error of a line: a code for programs, and a reason for people."""

    code: str
    reason: str


class LineReader:
    """Reads lines of JSON objects in Python, and counts the odd ones: the definition of the meaning of every line."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._golds = [reading.mapping.get(name, name) for name in (EXPECTED, VERIFIER)]  # they keep NaN
        self._kinds: set[str] = set()
        self._odd: dict[str, tuple[int, int]] = {}  # count and first line, by kind
        self._decoder = json.JSONDecoder(
            parse_constant=lambda _: self._kinds.add("numbers"), object_pairs_hook=self._object
        )

    @property
    def odd_lines(self) -> int:
        """How many lines were odd; once for each kind."""
        return sum(count for count, _ in self._odd.values())

    def notes(self, name: str, places: Sequence[int] = ()) -> tuple[str, ...]:
        """Return the notes on the odd lines of a file; ``places`` are the numbers that stand for the first, second … line."""
        notes = []
        for kind in [kind for kind in _NOTES if kind in self._odd]:
            count, first = self._odd[kind]
            rows = "a line" if count == 1 else f"the first of {count:,} lines"
            place = places[first - 1] if places else first
            notes.append(f"{shown_path(name)}:{place}: {_NOTES[kind].format(rows=rows)}")
        return tuple(notes)

    def lines(self, data: bytes, line: int) -> Iterator[tuple[int, int, bytes, list[dict[str, Any]] | Bad]]:
        """Read the lines of a chunk: yield the number of each, its offset in the chunk, its bytes and its rows."""
        offset = 0
        for number, raw in enumerate(io.BytesIO(data), line):
            yield number, offset, raw, self.read(raw, number)
            offset += len(raw)

    def read(self, raw: bytes, number: int) -> list[dict[str, Any]] | Bad:
        """Return the rows of a line, given by its bytes and its number from 1; one unless ``reshape`` gives more."""
        self._kinds.clear()
        result = self._rows(raw, number)
        for kind in self._kinds:
            count, first = self._odd.get(kind, (0, number))
            self._odd[kind] = count + 1, first
        return result

    def _rows(self, raw: bytes, number: int) -> list[dict[str, Any]] | Bad:
        if len(raw) > self._reading.max_line:
            return too_long(self._reading.max_line)
        if number == 1 and raw.startswith(BOM):
            self._kinds.add("bom")
            raw = raw[len(BOM) :]
        try:
            line = raw.decode()
        except UnicodeDecodeError as error:
            if self._reading.utf8 == "strict":
                return Bad("invalid_utf8", f"not UTF-8 (byte {error.start + 1} of the line).")
            self._kinds.add("bytes")
            line = raw.decode(errors="replace")
        if not line.strip():
            self._kinds.add("blank")
            return []
        value = self._value(line, raw)
        if isinstance(value, Bad) or self._reading.reshape is None:
            return value if isinstance(value, Bad) else [value]
        try:
            return self._reading.reshape(value)
        except InputError as error:
            return Bad("not_a_rollout", error.fact)

    def _value(self, line: str, raw: bytes) -> dict[str, Any] | Bad:
        if too_deep(line):
            return Bad("too_deep", f"nested deeper than {MAX_DEPTH} levels.")
        try:
            value = self._decoded(line)
        except json.JSONDecodeError as error:
            code = "malformed" if raw.endswith(b"\n") else "truncated_tail"
            column = min(error.pos, len(line.rstrip())) + 1  # a missing part is missing at the end of the text
            return Bad(code, f"not valid JSON: {error.msg} (column {column}).")
        except ValueError as error:
            return Bad("integer_too_long", f"not readable: {error}.")
        if not isinstance(value, dict):
            return Bad("not_an_object", f"a line must be a JSON object, not {type(value).__name__}.")
        if "numbers" in self._kinds:
            value |= {name: constant for name, constant in json.loads(line).items() if name in self._golds}
        if ("\\ud" in line or "\\uD" in line) and _has_surrogate(value):
            self._kinds.add("surrogate")
            if len({mended(name) for name in value}) < len(value):
                return Bad("same_key", "two keys that read the same once a lone surrogate is U+FFFD.")
        return value

    def _decoded(self, line: str) -> Any:
        try:
            return self._decoder.decode(line)
        except RecursionError:  # the caller's stack is deep, and a result must not depend on that
            results: list[Any] = []
            thread = threading.Thread(target=lambda: results.append(self._decoder.decode(line)))
            thread.start()
            thread.join()
            return results[0]

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members = dict(pairs)
        if len(members) < len(pairs):
            self._kinds.add("keys")
        return members


def too_long(limit: int) -> Bad:
    """Return the error of a line that is too long."""
    return Bad("too_long", f"longer than {limit:,} bytes.")


def _has_surrogate(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False


@frozen
class Chunk:
    """Consecutive lines of a file.

    Attributes:
        length: Their size in bytes.
        line: Number of the first line, from 1.
        columns: The columns that Arrow reads, all others being null; None if Python reads the chunk.
        has_nothing_odd: Whether nothing odd was found in it.
    """

    offset: int
    length: int
    line: int
    rows: int
    columns: tuple[str, ...] | None = None
    whole: bool = True
    has_nothing_odd: bool = False


@frozen
class JsonlFile(File):
    """A ``File`` of JSON objects, one per line; a compressed file or a document is one unit.

    ``LineReader`` defines the meaning of a line; ``Forms`` defines which chunks Arrow may read.
    """

    source: LineSource
    columns: LearnedColumns
    chunks: tuple[Chunk, ...]

    def read(self, first: int, last: int | None, names: list[str], rows: int) -> Iterator[pl.DataFrame]:  # noqa: ARG002
        """Yield the rows of each chunk."""
        is_stream = self.source.is_stream
        is_whole_stream = is_stream and (first, last) in ((0, None), (0, 1))
        chosen = self.chunks if is_whole_stream else () if is_stream else self.chunks[first:last]
        opening: Any = self.source.open() if is_stream else self.source.seek()
        with opening as opened:
            for chunk in chosen:
                if not is_stream:
                    opened.seek(chunk.offset)
                data = _bytes_of(chunk, opened if is_stream else opened.read if chunk.whole else lambda _: b"")
                if chunk.whole and len(data) < chunk.length:
                    raise changed(self.source.name)
                frame = self._frame(chunk, data, names)
                if frame.height != chunk.rows:
                    raise changed(self.source.name)
                yield pick(frame, names)

    @uncollected()
    def _frame(self, chunk: Chunk, data: bytes, columns: Sequence[str]) -> pl.DataFrame:
        names = [name for name in columns if name != BAD]
        if chunk.columns is None:
            rows = plain_rows(data) if chunk.has_nothing_odd else None
            return self._frame_in_python(chunk, data, names) if rows is None else self._rows_frame(rows, names)
        by_arrow = {name: self.schema[name] for name in chunk.columns if name in names}
        null_columns = [name for name in names if name not in by_arrow]
        frame = self._rows_frame([{}] * chunk.rows, null_columns)
        return frame.hstack(parse(data, by_arrow).get_columns()) if by_arrow else frame

    def _frame_in_python(self, chunk: Chunk, data: bytes, names: Sequence[str]) -> pl.DataFrame:
        rows: list[dict[str, Any]] = []
        reasons: list[str | None] = []
        reading = self.source.reading
        lines = (
            LineReader(reading).lines(data, chunk.line) if chunk.whole else [(0, 0, b"", too_long(reading.max_line))]
        )
        for _, _, _, result in lines:
            rows += [{}] if isinstance(result, Bad) else result
            reasons += [result.reason] if isinstance(result, Bad) else [row.get(BAD) for row in result]
        return self._rows_frame(rows, names, reasons)

    def _rows_frame(
        self, rows: list[dict[str, Any]], names: Sequence[str], reasons: list[str | None] | None = None
    ) -> pl.DataFrame:
        bad = pl.DataFrame({BAD: reasons or [None] * len(rows)}, schema={BAD: pl.String})
        return bad.hstack(self.columns.frame(rows, names).get_columns())


def _bytes_of(chunk: Chunk, read: Callable[[int], bytes]) -> bytes:
    pieces, size = [], chunk.length
    while size and (block := read(size if chunk.whole else min(size, 1 << 20))):
        pieces += [block] if chunk.whole else []
        size -= len(block)
    return b"".join(pieces)


MOST_BAD = 100_000
"""Bad lines after which a file is rejected as not JSON lines."""

MANY = 16
"""Number of files above which the cost of small files matters."""

FEW = 1 << 14
"""With many files, chunks up to this size, in bytes, are read by Python, which is faster than starting Arrow."""

_HEAD = 1 << 16

_NOT_JSON = ("malformed", "truncated_tail")
_NOT_OBJECTS = (*_NOT_JSON, "not_an_object")


def open_jsonl(files: Sequence[tuple[Path, str]], reading: Reading) -> list[JsonlFile]:
    """Open files of JSON objects, one per line, to be read one after another; structured columns become JSON text."""
    columns = LearnedColumns(reading.mapping, reading.exact)
    surveys: list[_Survey] = []
    forms = Forms({})
    small_chunk = FEW if len(files) > MANY else 0
    sources: list[LineSource] = []
    seen = 0
    at_once = max(1, min(pl.thread_pool_size(), room(reading.memory_limit) // (_HELD * max(1, THRESHOLDS.chunk))))
    with ThreadPoolExecutor(at_once, "assay-jsonl") as pool:
        try:
            for path, name in files:
                sources.append(LineSource.of(path, name, reading))
            total = rows_in_all(None if source.is_stream else source.stamp[0] for source in sources)
            for source in sources:
                name, offset = source.name, 0
                survey = _Survey(source, reading, columns, forms, small_chunk)
                for offset in survey.run(pool, at_once):
                    looked_through(seen + offset, total)
                forms = survey.forms
                seen += offset
                surveys.append(survey)
        except OSError as error:
            raise InputError(f"{shown_path(name)}: {error.strerror or error}.") from None
    try:
        schema = columns.finish()
    except InputError as error:
        others = f" and {len(files) - 1:,} more" if len(files) > 1 else ""
        raise InputError(f"{files[0][1]}{others}: {error.fact}", error.hint) from None
    return [survey.file(schema) for survey in surveys]


_ReadAhead = Future[pl.DataFrame | None] | None
"""A piece that is being read with the forms of those before it."""


class _Survey:
    """One pass over a file: finds its columns, chunks, bad lines and oddities."""

    def __init__(
        self, source: LineSource, reading: Reading, columns: LearnedColumns, forms: Forms, small_chunk: int
    ) -> None:
        self.forms = forms
        self._source, self._reading, self._columns, self._small_chunk = source, reading, columns, small_chunk
        self._reader = LineReader(reading)
        self._chunks: list[tuple[Chunk, Forms | None]] = []
        self._bad: list[BadRow] = []
        self._rows, self._offset, self._line, self._head = 0, 0, 1, b""
        self._document = RecordDocument(b"", ())
        if source.stamp[0] == 0:
            raise InputError(f"{shown_path(source.name)}: the file is empty.")

    def run(self, pool: ThreadPoolExecutor, at_once: int) -> Iterator[int]:
        """Look through the file; yield how many bytes have been looked through."""
        with self._source.open(lambda document: setattr(self, "_document", document)) as read:
            pieces = cut(read, self._reading.max_line)
            pending: deque[tuple[Piece, Forms, _ReadAhead]] = deque()
            while True:
                for piece in islice(pieces, at_once + 1 - len(pending)):
                    # the forms of a file are mostly those of its first lines
                    is_large = self._is_plain(piece) and len(piece.data) > THRESHOLDS.first_chunk
                    ahead = pool.submit(self.forms.read, piece.data) if is_large else None
                    pending.append((piece, self.forms, ahead))
                if not pending:
                    break
                piece, forms, ahead = pending.popleft()
                self._head = self._head or piece.data[:_HEAD]
                self._survey_piece(piece, ahead if forms is self.forms else None)
                yield self._offset
        if (error := self._other_kind()) is not None:
            raise error

    def file(self, schema: pl.Schema) -> JsonlFile:
        source = self._source
        chunks = tuple(_with_columns(chunk, forms, schema) for chunk, forms in self._chunks)
        if BAD in schema and self._reading.reshape is None:
            raise InputError(f"{shown_path(source.name)}: the column name `{BAD}` is reserved.", "Rename the column.")
        if self._bad or BAD in schema:
            schema = pl.Schema({**schema, BAD: pl.String()})
        units = [Unit(chunk.rows, chunk.length) for chunk in chunks]
        if source.is_stream:
            units = [Unit(sum(unit.rows or 0 for unit in units), sum(unit.size for unit in units))]
        notes = (*self._document.notes, *self._reader.notes(source.name, self._document.places))
        opened = JsonlFile(source.path, schema, tuple(units), source, self._columns, chunks)
        return replace(opened, bad=tuple(self._bad), notes=notes)

    def _is_plain(self, piece: Piece) -> bool:
        """Whether Arrow may read a piece, if its lines have the known forms."""
        size = len(piece.data) if piece.whole and self._reading.reshape is None else 0
        return self._small_chunk < size <= self._reading.max_line

    def _survey_piece(self, piece: Piece, ahead: _ReadAhead) -> None:
        rows_before, lines, forms, is_plain = self._rows, 0, None, self._is_plain(piece)
        has_nothing_odd = False
        if not piece.whole:
            self._add_bad(self._line, 0, piece.data, too_long(self._reading.max_line))
        elif is_plain and self._is_read_by_engine(piece, ahead):
            forms, lines, has_nothing_odd = self.forms, self._rows - rows_before, True
        elif (rows := self._read(piece.data)) is not None:
            has_nothing_odd = self._reading.reshape is None
            if is_plain:
                forms = self._forms_of(piece, rows)
        chunk = Chunk(
            self._offset, piece.length, self._line, self._rows - rows_before, None, piece.whole, has_nothing_odd
        )
        self._chunks.append((chunk, forms))
        self._offset += piece.length
        self._line += lines or piece.data.count(b"\n") or 1

    def _forms_of(self, piece: Piece, rows: list[dict[str, Any]]) -> Forms | None:
        """Return the forms of a piece that Python has read, from which on those that follow are read by Arrow."""
        by_python = self._types_by_python(rows)
        schema = {name: _plain_type(dtype) for name, dtype in self._columns.schema.items()} | by_python
        if schema == self.forms.all_types:
            return None
        exact = (self._reading.mapping.get(name, name) for name in (*GOLD_COLUMNS, *self._reading.exact))
        checked = [name for name, dtype in by_python.items() if dtype.is_nested()]
        self.forms = Forms(schema, [*exact], checked)
        return self.forms if not checked and self.forms.read(piece.data) is not None else None

    def _types_by_python(self, rows: list[dict[str, Any]]) -> dict[str, pl.DataType]:
        """Return the types, in these rows and those before, of columns that only Python gives: where lines have them, nothing is odd."""
        types = {name: self.forms.all_types.get(name, pl.Null()) for name in self._columns.settled}
        names = [name for name, dtype in types.items() if dtype != pl.Object()]
        return types | {name: type_of([row.get(name) for row in rows], types[name]) for name in names}

    def _is_read_by_engine(self, piece: Piece, ahead: _ReadAhead) -> bool:
        """Whether Arrow can read the lines because all have the known forms.

        Only the range of integers can be new then, that there are texts where a completion, which may be messages, was null so far,
        and that a message has a content.
        """
        frame = self.forms.read(piece.data) if ahead is None else ahead.result()
        if frame is None:
            return False
        for values in frame:
            if values.name not in self.forms.checked:
                self._learn([{values.name: value} for value in _telling(values)])
        self._rows += frame.height
        return True

    @uncollected()
    def _read(self, data: bytes) -> list[dict[str, Any]] | None:
        """Learn from lines, and return their rows if nothing about them is odd."""
        rows: list[dict[str, Any]] = []
        first, oddities, bad_lines = self._rows, self._reader.odd_lines, len(self._bad)
        for number, position, raw, result in self._reader.lines(data, self._line):
            if isinstance(result, Bad):
                self._add_bad(number, position, raw, result)
                rows.append({})
            else:
                rows += result
                self._rows += len(result)
        self._learn(rows, first)
        return rows if (oddities, bad_lines) == (self._reader.odd_lines, len(self._bad)) else None

    def _learn(self, rows: list[dict[str, Any]], first: int = 0) -> None:
        try:
            self._columns.see(rows, first)
        except InputError as error:
            raise InputError(f"{shown_path(self._source.name)}: {error.fact}", error.hint) from None

    def _add_bad(self, line: int, position: int, raw: bytes, error: Bad) -> None:
        name, places = self._source.name, self._document.places
        if self._source.form and error.code in _NOT_JSON:
            self._source.refuse()
        if len(self._bad) == MOST_BAD:
            first = self._bad[0]
            hint = f"The first is line {first.line}: {first.reason}"
            many = InputError(f"{shown_path(name)}: more than {MOST_BAD:,} lines are not JSON objects.", hint)
            raise self._other_kind() or many
        place, offset = places[line - 1] if places else line, self._offset + position
        self._bad.append(BadRow(name, self._rows, place, offset, error.code, error.reason, _sample(raw)))
        self._rows += 1

    def _other_kind(self) -> InputError | None:
        if not self._bad or self._bad[0].row or self._bad[0].code not in _NOT_OBJECTS or self._source.form:
            return None
        # where other lines are rows, only an array that its line does not end makes an array of the file
        begins = self._bad[0].code in _NOT_JSON and self._head.removeprefix(BOM).lstrip().startswith(b"[")
        if len(self._bad) < self._rows and not begins:
            return None
        texts = self._reading.max_bad_rows in (None, 0)
        return other_kind(self._head, self._source.name, "JSON lines", whole=len(self._head) < _HEAD, texts=texts)


def _with_columns(chunk: Chunk, forms: Forms | None, schema: pl.Schema) -> Chunk:
    if forms is None or forms.checked or not all(fits(dtype, schema[name]) for name, dtype in forms.schema.items()):
        return chunk
    return replace(chunk, columns=tuple(name for name, dtype in forms.schema.items() if dtype != pl.Null))


def _telling(values: pl.Series) -> list[Any]:
    """Return those of the values of a known type from which a column may learn."""
    values = values.alias("values")  # NOTE: methods of a series named "^y$" take its name as a pattern
    if values.dtype == pl.Int64:
        return [end for end in (values.min(), values.max()) if end is not None]
    if values.dtype == pl.String:
        return values.drop_nulls().head(1).to_list()
    if isinstance(values.dtype, pl.List):
        return values.slice((values.list.len() > 0).arg_max() or 0, 1).to_list()
    return []


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
