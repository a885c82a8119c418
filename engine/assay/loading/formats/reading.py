"""What every file format shares: how files are read, and the protocol of an open file."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import polars as pl

from assay.errors import InputError, shown_path
from assay.options import MAX_RATIO, ReadingOptions, options_of

Reshape = Callable[[dict[str, Any]], list[dict[str, Any]]]
"""Convert the object of a line to rows. It pickles, and raises ``InputError`` for an object without rows."""

HARMLESS = 64 << 20
"""Bytes that any file, or piece of a file, may have when read."""


@dataclass(frozen=True)
class Reading:
    """How files are read.

    Attributes:
        mapping: Columns read under another name, ``{"completion": "response"}``.
        preset: How records become rollouts: a preset's name, file or mapping; None to recognise the file, ``none`` to read it as it is.
        reshape: Convert an object of a JSONL file to rows. Python then reads every line, and ``mapping`` applies to the rows.
        utf8: Invalid UTF-8: ``replace`` it with U+FFFD, or refuse it (``strict``); ``""`` for the default of the format.
        max_line: Most bytes of a JSON line.
        max_ratio: Most times that a file may grow when read.
        max_uncompressed: Most bytes of a file when read; None for no limit.
        max_bad_rows: Most malformed lines: a number, or a percentage such as ``"1%"``; None for 0.
        memory_limit: Bytes of memory to work in; None for the default.
        known: Columns that checks read, besides those that Assay reads anyway; for guesses at misspelt names.
    """

    mapping: Mapping[str, str] = field(default_factory=dict)
    preset: Any = None
    reshape: Reshape | None = None
    storage_options: Mapping[str, str] | None = None
    utf8: str = ""
    max_line: int = 1 << 28
    max_ratio: float = MAX_RATIO
    max_uncompressed: int | None = None
    max_bad_rows: int | str | None = None
    verify_checksums: bool = False
    skip_bad_files: bool = False
    memory_limit: int | None = None
    known: tuple[str, ...] = ()
    exact: tuple[str, ...] = ()
    first: tuple[str, ...] = ()

    def refuse_bomb(self, path: Path, size: int, packed: int | None = None) -> None:
        """Refuse a file that is too large when read, or grows too much."""
        self.refuse_large(path, size)
        compressed = path.stat().st_size if packed is None else packed
        if self.is_dense(size, compressed):
            raise InputError(
                f"{shown_path(path)}: {compressed:,} bytes expand to {size:,} when read, {size / max(1, compressed):,.0f} times as many; "
                f"--max-ratio allows {self.max_ratio:g}.",
                f"Write --max-ratio {size // max(1, compressed) + 1} if you trust the file.",
            )

    def is_dense(self, size: int, packed: int) -> bool:
        """Return whether a file grows so much that it may be a decompression bomb."""
        return size > max(HARMLESS, self.max_ratio * packed)

    def refuse_large(self, path: Path, size: int) -> None:
        """Refuse a file with more bytes when read than ``max_uncompressed``."""
        limit = self.max_uncompressed
        if limit is not None and size > limit:
            raise InputError(
                f"{shown_path(path)}: {size:,} bytes when read; --max-uncompressed allows {limit:,}.",
                "Allow more if you trust the file.",
            )


def reading_of(options: ReadingOptions) -> Reading:
    """Return how files are read, given the settled options of any function that reads files."""
    fields: dict[str, Any] = {name: value for name, value in options.items() if name in options_of(ReadingOptions)}
    return Reading(**fields)


def rows_in_all(counts: Iterable[int | None]) -> int | None:
    """Return the sum of counts; None if one of them is unknown."""
    total = 0
    for count in counts:
        if count is None:
            return None
        total += count
    return total


@dataclass(frozen=True)
class Unit:
    """The smallest part of a file that can be read by itself: a row group, or some lines.

    Attributes:
        rows: Number of rows; None if only reading tells.
        size: Approximate bytes when read.
    """

    rows: int | None
    size: int


@dataclass(frozen=True)
class BadRow:
    """A malformed line. It keeps its place among the rows, unscored.

    Attributes:
        row: Its row in the file, from 0.
        line: Its line, from 1.
        sample: Its first 200 bytes; in hexadecimal if they are not UTF-8.
    """

    file: str
    row: int
    line: int
    offset: int
    code: str
    reason: str
    sample: str


class File(Protocol):
    """An open file. It pickles, and any process reads the same rows from its units."""

    @property
    def path(self) -> Path:
        """Path of the file."""

    @property
    def schema(self) -> pl.Schema:
        """The columns of every scan."""

    @property
    def units(self) -> tuple[Unit, ...]:
        """Its parts that can be read alone, in order."""

    @property
    def bad(self) -> tuple[BadRow, ...]:
        """Its malformed lines."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the user."""

    def scan(self, first: int = 0, last: int | None = None) -> pl.LazyFrame:
        """Return the rows of the units from ``first`` up to, not including, ``last``; by default all."""

    def read(self, first: int, last: int | None, names: list[str], rows: int) -> Iterator[pl.DataFrame]:
        """Yield the same rows, with some of the columns, in frames of about ``rows`` rows."""


@contextmanager
def about_file(path: Path) -> Iterator[None]:
    """Name the file in an ``InputError`` about its data."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{shown_path(path)}: {error.fact}", error.hint) from None


def changed(name: str, how: str = "changed") -> InputError:
    """Return the error of a file that changed while it was read, or is gone."""
    return InputError(
        f"{shown_path(name)}: {how} while it was read.", "Score it again when no other program writes to it."
    )


def name_of(file: File) -> str:
    """Return a file's name for messages: its URL if it has one, else its path."""
    return str(getattr(file, "name", file.path))
