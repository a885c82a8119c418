"""What reading a file of rollouts takes and gives, whatever its format."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import polars as pl

__all__ = ["BadRow", "File", "Reading", "Unit", "name_of"]


@dataclass(frozen=True)
class Reading:
    """How files are to be read.

    Attributes:
        mapping: Columns that are read under another name, ``{"completion": "response"}``.
        reshape: From an object of a JSONL file to the rows that it stands for; it pickles. Every line is then read by Python,
            and ``mapping`` is that of the rows.
    """

    mapping: Mapping[str, str] = field(default_factory=dict)
    reshape: Callable[[dict[str, Any]], list[dict[str, Any]]] | None = None


@dataclass(frozen=True)
class Unit:
    """The least that a file can be cut into: a row group, some lines.

    Attributes:
        rows: How many rows; None where only reading tells.
        size: Bytes when read, about.
    """

    rows: int | None
    size: int


@dataclass(frozen=True)
class BadRow:
    """A line that is no rollout. It keeps its place among the rows, unscored.

    Attributes:
        file: The file's name as given.
        row: Its place among the rows of the file, from 0.
        line: Its line, from 1.
        offset: Where that begins, in bytes of the file as it reads uncompressed.
        code: What is wrong, in one word for programs.
        reason: What is wrong, for a person.
        sample: Its first 200 bytes; as hexadecimal digits where they are not UTF-8.
    """

    file: str
    row: int
    line: int
    offset: int
    code: str
    reason: str
    sample: str


class File(Protocol):
    """A file that has been looked through. It pickles, and any process reads the same rows from any of its units."""

    @property
    def path(self) -> Path:
        """Where it is."""

    @property
    def schema(self) -> pl.Schema:
        """The columns of every scan."""

    @property
    def units(self) -> tuple[Unit, ...]:
        """What it can be cut into, in order."""

    @property
    def bad(self) -> tuple[BadRow, ...]:
        """Its lines that are no rollouts."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What the run's owner should know of it."""

    def scan(self, first: int = 0, last: int | None = None) -> pl.LazyFrame:
        """The rows of units ``first`` up to, not including, ``last``; by default all."""


def name_of(file: File) -> str:
    """What a file is called in messages: a URL where it came from one, else its path."""
    return str(getattr(file, "name", file.path))
