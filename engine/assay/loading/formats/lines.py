"""A file of lines as bytes: plain or compressed, cut into chunks of whole lines, in memory that does not grow with it."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from assay.errors import InputError, shown_path
from assay.loading.formats.reading import Reading
from assay.thresholds import THRESHOLDS

__all__ = ["Piece", "Source", "compression", "cut"]

_SAMPLE = 200
_NO_BOMB = 1 << 20
"""Bytes that no file is too small for, whatever its ratio."""

_MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}


def compression(path: Path) -> str:
    """How a file is compressed, by its first bytes: ``gzip``, ``zstd`` or ``""``."""
    with path.open("rb") as file:
        first = file.read(4)
    return next((kind for magic, kind in _MAGIC.items() if first.startswith(magic)), "")


@dataclass(frozen=True)
class Source:
    """A file that was seen at some moment, and is to be read as it was then.

    Attributes:
        path: Where it is.
        name: What to call it.
        compression: As of ``compression``.
        stamp: Its size and its time of modification.
        max_ratio: Bytes that one compressed byte may become.
        max_bytes: Bytes that it may become in all; None for any number.
    """

    path: Path
    name: str
    compression: str
    stamp: tuple[int, int]
    max_ratio: float
    max_bytes: int | None

    @classmethod
    def of(cls, path: Path, name: str, reading: Reading) -> "Source":
        """A file as it is now.

        Raises:
            InputError: It is larger than what may be read.
        """
        found, stamp, most = compression(path), _stamp(path), reading.max_uncompressed
        if not found and most is not None and stamp[0] > most:
            said = f"{shown_path(name)}: {stamp[0]:,} bytes; --max-uncompressed allows {most:,}."
            raise InputError(said, "Allow more, if it is yours.")
        return cls(path, name, found, stamp, reading.max_ratio, most)

    @contextlib.contextmanager
    def open(self) -> Iterator[Callable[[int], bytes]]:
        """The file, to be read from its beginning by so many bytes; fewer come only at its end.

        Raises:
            InputError: It was changed since it was seen, its compressed bytes are broken or become too many.
        """
        self._check_unchanged()
        if not self.compression:
            with self.path.open("rb") as file:
                yield file.read
        else:
            with pa.OSFile(str(self.path)) as file, pa.CompressedInputStream(file, self.compression) as stream:
                yield _Counted(self, file, stream).read
        self._check_unchanged()

    @contextlib.contextmanager
    def seek(self) -> Iterator[IO[bytes]]:
        """A file that is not compressed, to be read from anywhere; raises as ``open``."""
        self._check_unchanged()
        with self.path.open("rb") as file:
            yield file
        self._check_unchanged()

    def _check_unchanged(self) -> None:
        if not self.path.exists() or _stamp(self.path) != self.stamp:
            raise self.changed()

    def changed(self) -> InputError:
        """What to say when the file is not what it was."""
        return InputError(
            f"{shown_path(self.name)}: changed while it was read.", "Score it when nothing writes to it any more."
        )


def _stamp(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_size, found.st_mtime_ns


class _Counted:
    """A compressed file as it reads uncompressed, up to what is allowed."""

    def __init__(self, source: Source, file: Any, stream: Any) -> None:
        self._source, self._file, self._stream = source, file, stream
        self._given = 0

    def read(self, size: int) -> bytes:
        try:
            found: bytes = self._stream.read(size)
        except OSError as wrong:
            said = "cut short" if "Truncated" in str(wrong) else f"not readable: {wrong}"
            raise InputError(
                f"{shown_path(self._source.name)}: its {self._source.compression} bytes are {said}."
            ) from None
        self._given += len(found)
        self._check()
        return found

    def _check(self) -> None:
        given, taken, source = self._given, self._file.tell(), self._source
        said = f"{shown_path(source.name)}: its first {taken:,} bytes become {given:,} bytes or more"
        if source.max_bytes is not None and given > source.max_bytes:
            raise InputError(f"{said}; --max-uncompressed allows {source.max_bytes:,}.", "Allow more, if it is yours.")
        if given > max(_NO_BOMB, source.max_ratio * taken):
            hint = "Allow more, if it is no decompression bomb."
            raise InputError(f"{said}, {given / taken:,.0f} for one; --max-ratio allows {source.max_ratio:g}.", hint)


@dataclass(frozen=True)
class Piece:
    """Bytes of a file.

    Attributes:
        data: Whole lines; of a line that is too long, its beginning.
        length: How many bytes of the file they are.
        whole: Whether they are all there.
    """

    data: bytes
    length: int
    whole: bool = True


def cut(read: Callable[[int], bytes], most: int) -> Iterator[Piece]:
    """Cut bytes into pieces of whole lines.

    Args:
        read: Gives so many bytes, none at the end.
        most: Bytes of the longest line that is held; a longer one is a piece by its beginning.
    """
    size, held, pieces = max(1, THRESHOLDS.first_chunk), 0, list[bytes]()
    while block := read(size):
        end = block.rfind(b"\n") + 1
        if not end:
            pieces.append(block)
            held += len(block)
            if held > most:
                long, block = _skipped(b"".join(pieces), read)
                yield long
                pieces, held = [block], len(block)
        else:
            data = b"".join([*pieces, block[:end]])
            yield Piece(data, len(data))
            pieces, held = [block[end:]], len(block) - end
        size = max(1, THRESHOLDS.chunk)
    if held:
        data = b"".join(pieces)
        yield Piece(data, len(data))


def _skipped(begun: bytes, read: Callable[[int], bytes]) -> tuple[Piece, bytes]:
    """A line that is too long, and what was read after it."""
    length = len(begun)
    while block := read(max(1, THRESHOLDS.chunk)):
        end = block.find(b"\n") + 1
        length += end or len(block)
        if end:
            return Piece(begun[:_SAMPLE], length, whole=False), block[end:]
    return Piece(begun[:_SAMPLE], length, whole=False), b""
