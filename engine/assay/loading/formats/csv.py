"""CSV files, read as one unit; every cell is text, because the id 007 is not the number 7."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from assay.loading.documents.delimiters import delimiter_note, delimiter_of
from assay.loading.documents.identity import sure_kind
from assay.loading.formats.engine_source import by_engine
from assay.loading.formats.reading import BadRow, File, Reading, Unit
from assay.system.special_files import engine_path

_HEAD = 1 << 20
_LINES = 100
"""Bytes of a file, and lines at a URL, in which the delimiter is found."""


def open_csv(path: Path, reading: Reading) -> File:
    """Open a CSV file; its delimiter is found in its header."""
    del reading
    with path.open("rb") as file:
        head = file.read(_HEAD)
    if (error := sure_kind(head, str(path), "CSV")) is not None:
        raise error
    delimiter = delimiter_of(head, str(path), whole=len(head) < _HEAD)
    schema = scan_csv(engine_path(path), separator=delimiter).collect_schema()
    notes = delimiter_note(str(path), delimiter)
    return _CsvFile(path, schema, (Unit(None, path.stat().st_size),), delimiter, notes=notes)


@dataclass(frozen=True)
class _CsvFile:
    path: Path
    schema: pl.Schema
    units: tuple[Unit, ...]
    delimiter: str = ","
    bad: tuple[BadRow, ...] = ()
    notes: tuple[str, ...] = ()

    def scan(self, first: int = 0, last: int | None = None) -> pl.LazyFrame:
        """Return all rows, or none if the range excludes its one unit."""
        frame = scan_csv(engine_path(self.path), separator=self.delimiter)
        return frame if (first, last) in ((0, None), (0, 1)) else frame.clear()

    def read(self, first: int, last: int | None, names: list[str], rows: int) -> Iterator[pl.DataFrame]:  # noqa: ARG002
        return by_engine(self.scan(first, last), names, self.units[0].size)


def scan_csv(path: str, options: Any = None, separator: str = ",") -> pl.LazyFrame:
    """Return the rows of a file or URL as a lazy frame of text."""
    return pl.scan_csv(path, infer_schema=False, glob=False, storage_options=options, separator=separator)


def delimiter_of_url(url: str, options: Any) -> str:
    """Return the delimiter of the file at a URL; only its first lines are fetched."""
    lines = pl.scan_csv(  # as a CSV without quotes, because no other reader of lines replaces bytes that are not UTF-8
        url,
        has_header=False,
        quote_char=None,
        separator="\0",
        encoding="utf8-lossy",
        infer_schema=False,
        glob=False,
        storage_options=options,
        n_rows=_LINES,
        truncate_ragged_lines=True,
    ).collect()
    head = "\n".join(line or "" for line in lines.to_series())
    return delimiter_of(head.encode(), url.partition("?")[0], whole=lines.height < _LINES)
