"""The bytes of a file of lines, plain or compressed, or of a document as lines: cut into chunks of whole lines, in constant memory."""

import contextlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NoReturn

import pyarrow as pa

from assay.errors import InputError, shown_path
from assay.loading.documents.document import Document, form_of, reader
from assay.loading.documents.json_document import read_json, refuse
from assay.loading.formats.reading import Reading, changed
from assay.system.memory import room
from assay.thresholds import THRESHOLDS

_SAMPLE = 200
_ANY_RATIO = 1 << 20
"""Uncompressed size in bytes up to which any compression ratio is allowed."""

_COPIES = 4
"""Shares of the memory for rows that a document takes: its bytes, those of its lines, and twice that for frames and places."""

_MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}


def compression(path: Path) -> str:
    """Return the compression of a file, by its first bytes: ``gzip``, ``zstd`` or ``""``."""
    with path.open("rb") as file:
        first = file.read(4)
    return next((kind for magic, kind in _MAGIC.items() if first.startswith(magic)), "")


@dataclass(frozen=True)
class Source:
    """A file with its state at some moment; reading fails if it has changed since.

    Attributes:
        compression: The result of ``compression``.
        max_ratio: Maximum ratio of uncompressed to compressed bytes.
        max_bytes: Maximum uncompressed size in bytes; None for no limit.
        form: Suffix of a document, which is read whole and gives lines; ``""`` for a file of lines.
        memory_limit: Memory limit of the reading process, in bytes; None for the default.
    """

    path: Path
    name: str
    compression: str
    stamp: tuple[int, int]
    max_ratio: float
    max_bytes: int | None
    form: str = ""
    memory_limit: int | None = None

    @classmethod
    def of(cls, path: Path, name: str, reading: Reading) -> "Source":
        """Return a file in its current state."""
        kind, stamp, limit = compression(path), _stamp(path), reading.max_uncompressed
        if not kind and limit is not None and stamp[0] > limit:
            fact = f"{shown_path(name)}: {stamp[0]:,} bytes; --max-uncompressed allows {limit:,}."
            raise InputError(fact, "Raise the limit if you trust the file.")
        return cls(path, name, kind, stamp, reading.max_ratio, limit, form_of(path), reading.memory_limit)

    @property
    def is_stream(self) -> bool:
        """Whether its lines can only be read from the beginning."""
        return bool(self.compression or self.form)

    @contextlib.contextmanager
    def open(self, look: Callable[[Document], object] = lambda _: None) -> Iterator[Callable[[int], bytes]]:
        """Open the file for reading from the beginning: yield a function that returns the given number of bytes, fewer at the end."""
        if not self.form:
            with self._open_bytes() as read:
                yield read
        else:
            document = self._document()
            look(document)
            yield reader(document.data)

    def refuse(self) -> NoReturn:
        """Refuse a document with a record that is not JSON."""
        refuse(self._whole(), self.name)

    def _document(self) -> Document:
        if self.form == ".eval":
            from assay.loading.documents.inspect_log import read_inspect_log

            return read_inspect_log(self.path, self.name, self._most(self.stamp[0]))
        data = self._whole()
        if self.form == ".json":
            return read_json(data, self.name)
        from assay.loading.documents.workbook import read_workbook

        return read_workbook(data, self.name, self._most(len(data)))

    def _most(self, packed: int) -> int:
        most = max(_ANY_RATIO, int(self.max_ratio * packed))
        return min(most, self._room, self.max_bytes or most)

    @property
    def _room(self) -> int:
        return room(self.memory_limit) // _COPIES

    def _whole(self) -> bytearray:
        data, limit = bytearray(), self._room
        with self._open_bytes() as read:
            while block := read(1 << 20):
                data += block
                if max(len(data), self.stamp[0]) > limit:
                    raise self._too_large(limit)
        return data

    def _too_large(self, limit: int) -> InputError:
        lines = f"jq -c '.[]' {shown_path(self.name)} > NAME.jsonl"
        return InputError(
            f"{shown_path(self.name)}: {self.stamp[0]:,} bytes; a document is read whole, and the memory limit allows {limit:,}.",
            f"Raise it with --memory-limit, or {f'make JSON lines of it: {lines}' if self.form == '.json' else 'save it as CSV.'}",
        )

    @contextlib.contextmanager
    def _open_bytes(self) -> Iterator[Callable[[int], bytes]]:
        self._check_unchanged()
        if not self.compression:
            with self.path.open("rb") as file:
                yield file.read
        else:
            with pa.OSFile(str(self.path)) as file, pa.CompressedInputStream(file, self.compression) as stream:
                yield _LimitedStream(self, file, stream).read
        self._check_unchanged()

    @contextlib.contextmanager
    def seek(self) -> Iterator[IO[bytes]]:
        """Open a file that is not compressed, for reading at any offset; raises as ``open``."""
        self._check_unchanged()
        with self.path.open("rb") as file:
            yield file
        self._check_unchanged()

    def _check_unchanged(self) -> None:
        if not self.path.exists() or _stamp(self.path) != self.stamp:
            raise changed(self.name)


def _stamp(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns


class _LimitedStream:
    """The uncompressed bytes of a compressed file, up to its limits."""

    def __init__(self, source: Source, file: Any, stream: Any) -> None:
        self._source, self._file, self._stream = source, file, stream
        self._bytes_read = 0

    def read(self, size: int) -> bytes:
        try:
            block: bytes = self._stream.read(size)
        except OSError as error:
            state = "cut short" if "Truncated" in str(error) else f"not readable: {error}"
            raise InputError(
                f"{shown_path(self._source.name)}: its {self._source.compression} bytes are {state}."
            ) from None
        self._bytes_read += len(block)
        self._check()
        return block

    def _check(self) -> None:
        size, packed, source = self._bytes_read, self._file.tell(), self._source
        fact = f"{shown_path(source.name)}: its first {packed:,} bytes expand to {size:,} bytes or more"
        if source.max_bytes is not None and size > source.max_bytes:
            hint = "Raise the limit if you trust the file."
            raise InputError(f"{fact}; --max-uncompressed allows {source.max_bytes:,}.", hint)
        if size > max(_ANY_RATIO, source.max_ratio * packed):
            hint = "Raise the limit if the file is not a decompression bomb."
            raise InputError(
                f"{fact}, {size / packed:,.0f} times as many; --max-ratio allows {source.max_ratio:g}.", hint
            )


@dataclass(frozen=True)
class Piece:
    """Bytes of a file.

    Attributes:
        length: The number of bytes in the file.
        whole: Whether ``data`` is complete.
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
            data = b"".join([*pieces, block[:end]])
            yield Piece(data, len(data))
            pieces, pending = [block[end:]], len(block) - end
        size = max(1, THRESHOLDS.chunk)
    if pending:
        data = b"".join(pieces)
        yield Piece(data, len(data))


def _skip_line(beginning: bytes, read: Callable[[int], bytes]) -> tuple[Piece, bytes]:
    """Skip a line that is too long; return its piece and the bytes read after it."""
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
    with Source.of(path, str(path), reading).open() as read:
        for raw in _first_lines(read):
            try:
                value = json.loads(raw.decode("utf-8-sig", errors="replace"))
            except (ValueError, RecursionError):
                continue
            if isinstance(value, dict):
                records.append(value)
            if len(records) == _FIRST:
                break
    return records


def _first_lines(read: Callable[[int], bytes]) -> Iterator[bytes]:
    """Yield the lines of the first bytes of a file; the last one may be cut off."""
    size, rest = 0, b""
    while size < _FIRST_BYTES and (block := read(_FIRST_BLOCK)):
        *whole, rest = (rest + block).split(b"\n")
        yield from whole
        size += len(block)
    yield rest
