"""Malformed lines: the limit of a run, and the table that lists them."""

import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import polars as pl

from assay.errors import BadRowsError, shown_path
from assay.loading.formats.reading import BadRow, File, Reading
from assay.system.atomic_file import check_target, new_file, refused_by_disk
from assay.system.quantities import RowLimit

ENDING = ".bad_rows.parquet"
"""Suffix of the file that lists the bad rows, after the name of the rewards."""

_SHOWN = 5
_SCHEMA = {
    "file": pl.String,
    "row": pl.Int64,
    "line": pl.Int64,
    "offset": pl.Int64,
    "code": pl.String,
    "reason": pl.String,
    "sample": pl.String,
}


def check_bad_rows(files: Sequence[File], reading: Reading) -> None:
    """Reject files with more bad rows than the run allows, before anything is scored."""
    bad = [row for file in files for row in file.bad]
    if not bad:
        return
    rows = sum(unit.rows or 0 for file in files for unit in file.units)
    limit = RowLimit("--max-bad-rows", 0 if reading.max_bad_rows is None else reading.max_bad_rows)
    if not limit.exceeded(len(bad), rows):
        return
    count = f"{len(bad):,} malformed line{'s' * (len(bad) > 1)}"
    examples = [f"  {shown_path(row.file)}:{row.line}: {row.reason}" for row in bad[:_SHOWN]]
    examples += [f"  … {len(bad) - _SHOWN:,} more"] if len(bad) > _SHOWN else []
    share = min(1000, 1 + int(1000 * len(bad) / rows)) / 10
    raise BadRowsError(
        f"{count} (limit {limit.given}; see --max-bad-rows).\n" + "\n".join(examples),
        f"Nothing was written. Fix the lines, or leave them unscored with --max-bad-rows {len(bad)} or {share:g}%.",
    )


def bad_rows_file(out: str | Path | None) -> Path | None:
    """Return the path of the list of bad rows for a run's output; None if the output is not a path."""
    if out is None or str(out) == "-":
        return None
    path = Path(out)
    if path.name in ("", ".."):  # a folder such as ./
        path = Path(os.path.realpath(path))
    return Path(f"{path}{ENDING}")


def check_bad_rows_file(out: str | Path | None, *, overwrite: bool) -> None:
    """Refuse to replace an existing list of bad rows without permission."""
    path = bad_rows_file(out)
    if path is not None and not path.parent.is_dir():
        return  # the output itself will be rejected
    if path is not None:
        check_target(path, overwrite=overwrite, how="--overwrite")


def write_bad_rows(bad: Sequence[BadRow], out: str | Path | None) -> Path | None:
    """Write the list of bad rows beside a run's output; without bad rows, remove the list of an earlier run."""
    path = bad_rows_file(out)
    if path is None:
        return None
    if not bad:
        # NOTE: lexists is false for a name that is too long; unlink would raise
        if os.path.lexists(path) and not path.is_dir():
            with refused_by_disk(shown_path(path)):
                path.unlink(missing_ok=True)
        return None
    with new_file(path) as (file, reporting), reporting():
        pl.DataFrame([asdict(row) for row in bad], schema=_SCHEMA).write_parquet(file)
    return path
