"""CSV files, read as one unit; every cell is text, because the id 007 is not the number 7."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from assay.loading.formats.engine_source import by_engine
from assay.loading.formats.reading import BadRow, File, Reading, Unit
from assay.system.special_files import engine_path

__all__ = ["open_csv"]


def open_csv(path: Path, reading: Reading) -> File:
    """Open a CSV file."""
    del reading
    return _CsvFile(path, _scan(path).collect_schema(), (Unit(None, path.stat().st_size),))


@dataclass(frozen=True)
class _CsvFile:
    path: Path
    schema: pl.Schema
    units: tuple[Unit, ...]
    bad: tuple[BadRow, ...] = ()
    notes: tuple[str, ...] = ()

    def scan(self, first: int = 0, last: int | None = None) -> pl.LazyFrame:
        """Return all rows, or none if the range excludes its one unit."""
        frame = _scan(self.path)
        return frame if (first, last) in ((0, None), (0, 1)) else frame.clear()

    def read(self, first: int, last: int | None, names: list[str], rows: int) -> Iterator[pl.DataFrame]:  # noqa: ARG002
        """Yield the same rows frame by frame."""
        return by_engine(self.scan(first, last), names, self.units[0].size)


def _scan(path: Path) -> pl.LazyFrame:
    return pl.scan_csv(engine_path(path), infer_schema=False, glob=False)
