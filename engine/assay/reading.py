"""What reading a file of rollouts takes and gives, whatever its format."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, TypedDict

import polars as pl

from assay.errors import UsageError
from assay.limits import MAX_RATIO, Most

__all__ = ["BadRow", "File", "Reading", "ReadingOptions", "Reshape", "Unit", "name_of"]

Reshape = Callable[[dict[str, Any]], list[dict[str, Any]]]
"""From the object of a line to the rows that it means; it pickles, and raises ``InputError`` for one that means none."""


@dataclass(frozen=True)
class Reading:
    """How files are to be read.

    Attributes:
        mapping: Columns that are read under another name, ``{"completion": "response"}``.
        utf8: What becomes of bytes in JSON lines that are not UTF-8: U+FFFD, or a bad row.
        reshape: Makes the rows of each JSON line; None where the line is the row.
        max_line: Bytes of the longest JSON line that is read.
        max_ratio: Bytes that one byte of a compressed file may become.
        max_uncompressed: Bytes that a compressed file may become; None for any number.
        max_bad_rows: How many lines may be no rollouts: a number, or a share such as ``"1%"``.

    Raises:
        UsageError: A value that cannot be.
    """

    mapping: Mapping[str, str] = field(default_factory=dict)
    utf8: Literal["replace", "strict"] = "replace"
    reshape: Reshape | None = None
    max_line: int = 1 << 28
    max_ratio: float = MAX_RATIO
    max_uncompressed: int | None = None
    max_bad_rows: int | str | None = None

    def __post_init__(self) -> None:
        Most("--max-bad-rows", self.max_bad_rows)  # refuses what is no number
        if self.utf8 not in ("replace", "strict"):
            raise UsageError(f"--utf8 {self.utf8}: neither replace nor strict.")
        if not self.max_ratio >= 1:
            raise UsageError(f"--max-ratio {self.max_ratio}: a byte becomes at least one.")
        if self.max_uncompressed is not None and self.max_uncompressed < 1:
            raise UsageError(f"--max-uncompressed {self.max_uncompressed}: a number of bytes is at least 1.")


class ReadingOptions(TypedDict, total=False):
    """Options of a run that say how files are read, by their names in ``Reading``."""

    utf8: Literal["replace", "strict"]
    max_ratio: float
    max_uncompressed: int | None
    max_bad_rows: int | str | None


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
