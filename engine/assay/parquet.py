"""Parquet files, row group by row group."""

from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq

from assay.reading import BadRow, Unit

__all__ = ["ParquetFile", "open_parquet"]


@dataclass(frozen=True)
class ParquetFile:
    """A ``File`` whose units are row groups."""

    path: Path
    schema: pl.Schema
    units: tuple[Unit, ...]
    bad: tuple[BadRow, ...] = ()
    notes: tuple[str, ...] = ()

    def scan(self, first: int = 0, last: int | None = None) -> pl.LazyFrame:
        """The rows of some row groups; by default all."""
        frame = pl.scan_parquet(self.path, glob=False)
        if first == 0 and last in (None, len(self.units)):
            return frame
        rows = [unit.rows or 0 for unit in self.units]
        return frame.slice(sum(rows[:first]), sum(rows[first:last]))


def open_parquet(path: Path) -> ParquetFile:
    """Look at the footer of a parquet file.

    Raises:
        PolarsError: It cannot be read.
        ArrowException: As ``PolarsError``.
    """
    schema = pl.scan_parquet(path, glob=False).collect_schema()
    footer = pq.read_metadata(path)
    groups = (footer.row_group(at) for at in range(footer.num_row_groups))
    return ParquetFile(path, schema, tuple(Unit(group.num_rows, group.total_byte_size) for group in groups))
