"""The records of a document as JSON lines, which are then read as those of any other file."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["DOCUMENTS", "Document", "form_of", "reader"]

DOCUMENTS = (".json", ".xlsx", ".eval")
"""Suffixes of documents."""


@dataclass(frozen=True)
class Document:
    """A document in memory.

    Attributes:
        data: Its records, one per line.
        places: For each of them the number of the line, or of the row of the sheet, in which it begins.
        notes: Notes for the user.
    """

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


def form_of(path: Path) -> str:
    """Return the suffix of a document that is read whole, without that of its compression; ``""`` for a file of lines."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes[-1:] in ([".gz"], [".zst"]):
        suffixes.pop()
    return suffixes[-1] if suffixes and suffixes[-1] in DOCUMENTS else ""
