"""The files of a result: one parquet file, or the parts in a folder."""

import re
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from assay.errors import InputError, UsageError, counted, did_you_mean, shown_path
from assay.system.special_files import engine_path, refuse_url, what_is
from assay.writing.writers import provenance_in


def scan_files(files: Sequence[Path]) -> pl.LazyFrame:
    """Return the rows of parquet files, one file behind the other, as they are stored."""
    return pl.scan_parquet([engine_path(file) for file in files], glob=False, hive_partitioning=False)


def result_files(path: Path) -> list[Path]:
    """Return the files of a result, in order.

    Args:
        path: A parquet file, or a folder of parts.

    Raises:
        InputError: There is no such file, or the folder is of a run that is not finished.
        UsageError: It is something else.
    """
    refuse_url(path, InputError)
    try:
        return _parts(path) if path.is_dir() else _file(path)
    except OSError as error:  # such as a folder that nobody else may look into
        raise InputError(f"{shown_path(path)}: {error.strerror}.") from None


def _file(path: Path) -> list[Path]:
    if path.suffix.lower() != ".parquet":
        hint = "Write it with: assay score … --out NAME.parquet"
        raise UsageError(f"{shown_path(path)}: a result is a parquet file or a folder of parts.", hint)
    _refuse_special(path)
    if not path.exists():
        near = [file.name for file in path.parent.glob("*.parquet")] if path.parent.is_dir() else []
        raise InputError(f"{shown_path(path)}: no such file.", did_you_mean(path.name, near))
    return [path]


def _refuse_special(path: Path) -> None:
    if path.exists() and (kind := what_is(path)):
        raise InputError(f"{shown_path(path)}: is {kind}.", "Write the result to a file first.")


def _parts(folder: Path) -> list[Path]:
    # NOTE: `glob` finds nothing in a folder that it may not look into
    files = sorted(file for file in folder.iterdir() if re.fullmatch(r"[^_.].*\.parquet", file.name, re.DOTALL))
    if expected := _expected(folder):
        files = [file for file in files if file.name.startswith("part-")]
        if len(files) != expected:
            fact = f"{shown_path(folder)}/: the run is not finished: {len(files):,} of {counted(expected, 'part')}."
            raise InputError(fact, "The command that started it continues it.")
    if not files:
        raise InputError(f"{shown_path(folder)}/: no parquet files in this folder.")
    for file in files:
        _refuse_special(file)
    return files


def _expected(folder: Path) -> int:
    """Return the number of parts of a finished run; 0 if the folder does not say."""
    try:
        return len((provenance_in(folder) or {}).get("shards", ()))
    except InputError:
        return 0
