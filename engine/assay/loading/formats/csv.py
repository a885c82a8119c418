"""CSV files, read as one unit; every cell is text, because the id 007 is not the number 7."""

from pathlib import Path
from typing import Any

import polars as pl

from assay.frozen import frozen
from assay.loading.formats.documents import delimiter_note, delimiter_of, sure_kind
from assay.loading.formats.reading import File, Reading, Unit, WholeFile
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
    units = (Unit(None, path.stat().st_size),)
    return _CsvFile(path, schema, units, delimiter, notes=delimiter_note(str(path), delimiter))


@frozen
class _CsvFile(WholeFile):
    delimiter: str

    def frame(self) -> pl.LazyFrame:
        return scan_csv(engine_path(self.path), separator=self.delimiter)


def scan_csv(path: str, options: Any = None, separator: str = ",") -> pl.LazyFrame:
    """Return the rows of a file or URL as a lazy frame of text."""
    return pl.scan_csv(path, infer_schema=False, glob=False, storage_options=options, separator=separator)


def scan_lossy_lines(url: str, options: Any, **given: Any) -> pl.LazyFrame:
    """Return the lines of a URL as one column.

    NOTE: as a CSV without quotes, because no other reader of Polars replaces bytes that are not UTF-8.
    """
    lossy: dict[str, Any] = {"has_header": False, "quote_char": None, "separator": "\0", "encoding": "utf8-lossy"}
    return pl.scan_csv(url, glob=False, storage_options=options, infer_schema=False, **lossy, **given)


def delimiter_of_url(url: str, options: Any) -> str:
    """Return the delimiter of the file at a URL; only its first lines are fetched."""
    lines = scan_lossy_lines(url, options, n_rows=_LINES, truncate_ragged_lines=True).collect()
    head = "\n".join(line or "" for line in lines.to_series())
    return delimiter_of(head.encode(), url.partition("?")[0], whole=lines.height < _LINES)
