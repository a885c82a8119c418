"""Lines that are no rollouts: how many a run allows, and the table of those that it met."""

import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import polars as pl

from assay.errors import BadRowsError, shown_path
from assay.loading.formats.reading import BadRow, File, Reading
from assay.system.atomic_file import check_target, new_file, refused_by_disk
from assay.system.quantities import RowLimit

__all__ = ["ENDING", "bad_rows_file", "check_bad_rows", "check_bad_rows_file", "write_bad_rows"]

ENDING = ".bad_rows.parquet"
"""What the name of a list of bad rows adds to that of the rewards."""

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
    """Refuse files that have more bad rows than the run allows, before anything is scored.

    Args:
        files: They were looked through.
        reading: How; by default it allows none.

    Raises:
        BadRowsError: There are more; the first of them are named.
    """
    bad = [row for file in files for row in file.bad]
    if not bad:
        return
    rows = sum(unit.rows or 0 for file in files for unit in file.units)
    allowed = RowLimit("--max-bad-rows", 0 if reading.max_bad_rows is None else reading.max_bad_rows)
    if not allowed.exceeded(len(bad), rows):
        return
    said = "1 line is no rollout" if len(bad) == 1 else f"{len(bad):,} lines are no rollouts"
    shown = [f"  {shown_path(row.file)}:{row.line}: {row.reason}" for row in bad[:_SHOWN]]
    shown += [f"  … {len(bad) - _SHOWN:,} more"] if len(bad) > _SHOWN else []
    share = min(1000, 1 + int(1000 * len(bad) / rows)) / 10
    raise BadRowsError(
        f"{said}; --max-bad-rows allows {allowed.given}.\n" + "\n".join(shown),
        f"Nothing was written. Mend the lines, or leave them unscored with --max-bad-rows {len(bad)} or {share:g}%.",
    )


def bad_rows_file(out: str | Path | None) -> Path | None:
    """Where the bad rows of a run are listed that writes to a path; None for one that writes to none."""
    if out is None or str(out) == "-":
        return None
    path = Path(out)
    if path.name in ("", ".."):  # of a folder such as ./
        path = Path(os.path.realpath(path))
    return Path(f"{path}{ENDING}")


def check_bad_rows_file(out: str | Path | None, *, overwrite: bool) -> None:
    """Refuse to replace a list of bad rows that nobody allowed to replace.

    Raises:
        UsageError: It is there.
    """
    path = bad_rows_file(out)
    if path is not None and not path.parent.is_dir():
        return  # the output itself is refused
    if path is not None:
        check_target(path, overwrite=overwrite, how="--overwrite")


def write_bad_rows(bad: Sequence[BadRow], out: str | Path | None) -> Path | None:
    """List the bad rows of a run beside what it wrote; without any, a list of an earlier run is removed.

    Returns:
        Where they are, or None.

    Raises:
        OutputError: The list cannot be written, or that of an earlier run not removed.
    """
    path = bad_rows_file(out)
    if path is None:
        return None
    if not bad:
        if (
            os.path.lexists(path) and not path.is_dir()
        ):  # NOTE: a name that is too long is nowhere, and raises nothing here
            with refused_by_disk(shown_path(path))():
                path.unlink(missing_ok=True)
        return None
    with new_file(path) as (file, told), told():
        pl.DataFrame([asdict(row) for row in bad], schema=_SCHEMA).write_parquet(file)
    return path
