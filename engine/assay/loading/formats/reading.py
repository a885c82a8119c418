"""What reading a file of rollouts takes and gives, whatever its format."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypedDict, Unpack

import polars as pl

from assay.calls.limits import MAX_RATIO, RowLimit
from assay.errors import InputError, UsageError, shown_path
from assay.system.quantities import read_size

__all__ = [
    "HARMLESS",
    "BadRow",
    "File",
    "Reading",
    "ReadingOptions",
    "Reshape",
    "Unit",
    "name_of",
    "reading_of",
    "rows_in_all",
]

Reshape = Callable[[dict[str, Any]], list[dict[str, Any]]]
"""From the object of a line to the rows that it means; it pickles, and raises ``InputError`` for one that means none."""

HARMLESS = 64 << 20
"""Bytes that any file, and any piece of a file, may have when it is read."""


@dataclass(frozen=True)
class Reading:
    """How files are to be read.

    Attributes:
        mapping: Columns that are read under another name, ``{"completion": "response"}``.
        preset: How records become rollouts: a preset's name, file or mapping; None to recognise the file, ``none`` for as it is.
        reshape: From an object of a JSONL file to the rows that it stands for; it pickles. Every line is then read by Python,
            and ``mapping`` is that of the rows.
        storage_options: Of the stores that URLs name.
        utf8: What to do with bytes that are no UTF-8: ``replace`` them by U+FFFD, or ``strict``; ``""`` for the format's own way.
        max_line: Bytes of the longest JSON line that is read.
        max_ratio: How many times its size a file may have when it is read.
        max_uncompressed: Bytes that a file may have when it is read; None for any number.
        max_bad_rows: How many lines may be no rollouts: a number, or a share such as ``"1%"``; None for none.
        verify_checksums: Compare the pages of parquet files with their checksums.
        skip_bad_files: Leave files out that cannot be opened.
        memory_limit: Bytes that the process may take; None for the default.
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

    def refuse_bomb(self, path: Path, size: int, packed: int | None = None) -> None:
        """Refuse what is too large when read, or too large for what it is packed in.

        Args:
            path: The file.
            size: Bytes that it becomes, as it says itself or as counted.
            packed: Bytes that it is packed in; None for those of the file.

        Raises:
            InputError: It is.
        """
        self.refuse_large(path, size)
        there = path.stat().st_size if packed is None else packed
        if self.is_dense(size, there):
            raise InputError(
                f"{shown_path(path)}: {there:,} bytes become {size:,} when read, {size / max(1, there):,.0f} times as many; --max-ratio allows "
                f"{self.max_ratio:g}.",
                f"Write --max-ratio {size // max(1, there) + 1} if you trust the file.",
            )

    def is_dense(self, size: int, packed: int) -> bool:
        """Whether bytes are so few for what they become that they may be a bomb."""
        return size > max(HARMLESS, self.max_ratio * packed)

    def refuse_large(self, path: Path, size: int) -> None:
        """Refuse what has more bytes when read than the caller allows.

        Raises:
            InputError: It has.
        """
        limit = self.max_uncompressed
        if limit is not None and size > limit:
            raise InputError(
                f"{shown_path(path)}: {size:,} bytes when read; --max-uncompressed allows {limit:,}.",
                "Allow more if you trust the file.",
            )

    def settings(self) -> dict[str, Any]:
        """What of this decides what comes out, as plain data."""
        return {"mapping": dict(self.mapping), "utf8": self.utf8, "skip_bad_files": self.skip_bad_files}


class ReadingOptions(TypedDict, total=False):
    """How files are to be read, as a caller says it.

    Attributes:
        mapping: Where columns come from, ``{"completion": "response"}``: the name Assay reads, and the name in the file, or a
            path such as ``$.response.choices[0].text``.
        preset: How the file's records become rollouts: the name of a preset (``assay presets``), a file or a mapping like those,
            or ``none``. None: a file is recognised by its columns, what is no file is read as it is.
        storage_options: Of the store that URLs name, as Polars has them (``aws_endpoint_url``, ``max_retries`` …); what is not
            there comes from the environment. Values are never shown.
        memory_limit: Bytes that the process may take, such as ``"2GB"``; by default 640 MiB and 128 MiB a core. It is kept as
            far as single rows and pages of a file allow.
        max_bad_rows: Lines of JSONL that may be no rollouts, a number or a share such as ``"1%"``; by default none. Such a row is
            unscored, with an ``error``.
        utf8: ``"replace"`` reads U+FFFD for bytes that are no UTF-8; ``"strict"`` refuses such a parquet file, and makes such a
            line of JSONL a bad row. By default parquet is strict and JSONL is not.
        max_ratio: Refuse a file that becomes so many times larger when read, and more than 64 MiB; by default 200.
        max_uncompressed: Refuse a file that has more bytes when read, such as ``"100GB"``.
        verify_checksums: Compare the pages of parquet files with their checksums.
        skip_bad_files: Leave files out that cannot be opened; a note and the provenance name them.
    """

    mapping: Mapping[str, str] | None
    preset: Any
    storage_options: Mapping[str, str] | None
    memory_limit: int | str | None
    max_bad_rows: int | str | None
    utf8: str
    max_ratio: float
    max_uncompressed: int | str | None
    verify_checksums: bool
    skip_bad_files: bool


def reading_of(**options: Unpack[ReadingOptions]) -> Reading:
    """What a caller says, checked.

    Raises:
        UsageError: A value cannot be used.
    """
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    RowLimit("--max-bad-rows", given.get("max_bad_rows"))  # refuses what is no number
    if given.get("utf8", "") not in ("", "replace", "strict"):
        raise UsageError(f"--utf8 {given['utf8']}: expected replace or strict.")
    if not given.get("max_ratio", 1) >= 1:
        raise UsageError(f"--max-ratio {given['max_ratio']:g}: a ratio is at least 1.")
    for name in {"memory_limit", "max_uncompressed"} & given.keys():
        given[name] = read_size(f"--{name.replace('_', '-')}", given[name])
    return Reading(**given)


def rows_in_all(counts: Iterable[int | None]) -> int | None:
    """The sum of counts; None where one of them is not known."""
    total = 0
    for count in counts:
        if count is None:
            return None
        total += count
    return total


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

    def read(self, first: int, last: int | None, names: list[str], rows: int) -> Iterator[pl.DataFrame]:
        """The same frame by frame, some columns of them, about so many rows in each."""


def name_of(file: File) -> str:
    """What a file is called in messages: a URL where it came from one, else its path."""
    return str(getattr(file, "name", file.path))
