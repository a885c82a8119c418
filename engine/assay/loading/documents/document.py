"""The records of a document as JSON lines, which are then read as those of any other file."""

import contextlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

DOCUMENTS = (".json", ".xlsx", ".eval")
"""Suffixes of documents."""


@dataclass(frozen=True)
class Document:
    """A document in memory."""

    data: bytes | bytearray
    places: Sequence[int]
    notes: tuple[str, ...] = ()


def reader(data: bytes | bytearray) -> Callable[[int], bytes]:
    """Return a function that returns the given number of the next bytes, fewer at the end."""
    position, view = 0, memoryview(data)

    def read(size: int) -> bytes:
        nonlocal position
        position += size
        return bytes(view[position - size : position])

    return read


_JSON_LOG = re.compile(rb'\s*\{\s*"version"\s*:\s*\d+\s*,\s*"status"\s*:\s*"\w+"\s*,\s*"eval"\s*:\s*\{')
"""The beginning of a log of Inspect that is JSON."""


def form_of(path: Path) -> str:
    """Return the suffix of a document that is read whole, without that of its compression; ``""`` for a file of lines.

    A log of Inspect is ``.eval``, in JSON too.
    """
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes[-1:] == [".json"] and _JSON_LOG.match(_beginning(path)):
        return ".eval"
    if suffixes[-1:] in ([".gz"], [".zst"]):
        suffixes.pop()
    return suffixes[-1] if suffixes and suffixes[-1] in DOCUMENTS else ""


def _beginning(path: Path) -> bytes:
    """Return the first bytes of a file; none of what is not there, or not a file."""
    if not path.is_file():
        return b""
    with contextlib.suppress(OSError), path.open("rb") as file:
        return file.read(512)
    return b""
