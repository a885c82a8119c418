"""From a path, a glob or a folder to the files it means, and from a file to a lazy frame, by its format."""

import glob
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
from polars.exceptions import PolarsError

from assay.arrow import read_stream
from assay.errors import InputError, did_you_mean
from assay.jsonl import scan_jsonl

__all__ = [
    "FORMATS",
    "broken_file",
    "count_rows",
    "expand",
    "first_line",
    "format_of",
    "scan_file",
    "scan_files",
]

FORMATS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".arrow": "ipc",
    ".ipc": "ipc",
    ".feather": "ipc",
    ".csv": "csv",
}
_SKIPPED = ("_", ".")


def expand(source: str | Path) -> list[Path]:
    """Files that a path means: itself, the files of a folder, or the matches of a glob, in order of name.

    Files whose name begins with ``_`` or ``.`` or ends in ``.tmp`` are left out of folders and globs.

    Raises:
        InputError: There are none.
    """
    path = Path(source)
    if path.is_file():
        return [path]
    if path.is_dir():
        found = [one for one in sorted(path.iterdir()) if one.is_file() and one.suffix.lower() in FORMATS]
        kinds = {FORMATS[one.suffix.lower()] for one in found if _visible(one)}
        if len(kinds) > 1:
            raise InputError(
                f"{path}: the folder holds {' and '.join(sorted(kinds))} files.", "Name one kind: FOLDER/*.jsonl"
            )
    elif glob.has_magic(str(source)):
        found = [Path(one) for one in sorted(glob.glob(str(source), recursive=True)) if Path(one).is_file()]  # noqa: PTH207  (takes absolute patterns)
    else:
        near = did_you_mean(path.name, [one.name for one in path.parent.iterdir()] if path.parent.is_dir() else [])
        raise InputError(f"{source}: no such file or folder.", near)
    found = [one for one in found if _visible(one)]
    if not found:
        raise InputError(f"{source}: no rollout files there.", f"Known endings: {', '.join(FORMATS)}")
    return found


def _visible(path: Path) -> bool:
    return not path.name.startswith(_SKIPPED) and path.suffix != ".tmp"


def format_of(path: str | Path) -> str:
    """Format of a file by its ending, else by its first bytes.

    Raises:
        InputError: Neither tells.
    """
    known = FORMATS.get(Path(path).suffix.lower())
    if known:
        return known
    if Path(path).is_file():
        with Path(path).open("rb") as file:
            magic = file.read(6)
        if magic[:4] == b"PAR1":
            return "parquet"
        if magic == b"ARROW1":
            return "ipc"
    raise InputError(f"{path}: unknown kind of file.", f"Known endings: {', '.join(FORMATS)}")


def scan_files(paths: list[Path], mapping: Mapping[str, str] | None = None) -> pl.LazyFrame:
    """Files one after another as one lazy frame; columns that a file lacks are null there.

    Args:
        paths: The files.
        mapping: Columns that are read under another name, ``{"completion": "response"}``.

    Raises:
        InputError: A file cannot be read, or a column has types that cannot be reconciled; both files are named.
    """
    frames = [scan_file(path, mapping) for path in paths]
    schemas = [frame.collect_schema() for frame in frames]
    if len(frames) == 1:
        return frames[0]
    _refuse_drift(paths, schemas)
    return pl.concat(frames, how="vertical" if all(one == schemas[0] for one in schemas) else "diagonal_relaxed")


def _refuse_drift(paths: list[Path], schemas: list[pl.Schema]) -> None:
    """Columns may widen from one number to another, or from null; structs may differ in their fields."""
    first: dict[str, tuple[Path, pl.DataType]] = {}
    for path, schema in zip(paths, schemas, strict=True):
        for name, dtype in schema.items():
            where, before = first.setdefault(name, (path, dtype))
            if before == pl.Null:
                first[name] = (path, dtype)
            elif not _reconcilable(before, dtype):
                fact = f"`{name}` is {before} in {where} and {dtype} in {path}."
                raise InputError(fact, "Give the files one type, or score them apart.")


def _reconcilable(one: Any, other: Any) -> bool:
    if one == other or pl.Null in (one, other) or (one.is_numeric() and other.is_numeric()):
        return True
    if isinstance(one, pl.List) and isinstance(other, pl.List):
        return _reconcilable(one.inner, other.inner)
    if isinstance(one, pl.Struct) and isinstance(other, pl.Struct):
        theirs = dict(other.to_schema())
        return all(_reconcilable(dtype, theirs[name]) for name, dtype in one.to_schema().items() if name in theirs)
    return False


def broken_file(paths: Iterable[Path]) -> str:
    """Which of the files cannot be read to its end, for a message; ``""`` when all can."""
    for path in paths:
        try:
            for _ in scan_file(path).collect_batches(engine="streaming"):
                pass
        except PolarsError as wrong:
            return f"{path}: {first_line(wrong)}"
        except InputError as wrong:
            return wrong.fact
    return ""


def scan_file(path: Path, mapping: Mapping[str, str] | None = None) -> pl.LazyFrame:
    """One file as a lazy frame whose schema is known to be readable.

    Args:
        path: The file.
        mapping: Columns that are read under another name, ``{"completion": "response"}``.

    Raises:
        InputError: The file cannot be read; the message names it, and the line where there is one.
    """
    kind = format_of(path)
    try:
        frame = scan_jsonl(path, mapping) if kind == "jsonl" else _SCANS[kind](path)
        frame.collect_schema()
    except (PolarsError, pa.ArrowException) as wrong:
        raise InputError(f"{path}: not a readable {kind} file: {first_line(wrong)}") from None
    except OSError as wrong:
        raise InputError(f"{path}: {wrong.strerror or first_line(wrong)}.") from None
    return frame


def first_line(wrong: Exception) -> str:
    """An engine's message without its trace of the query."""
    return str(wrong).strip().split("\n", 1)[0]


def _scan_ipc(path: Path) -> pl.LazyFrame:
    with path.open("rb") as file:
        magic = file.read(6)
    return pl.scan_ipc(path, glob=False) if magic == b"ARROW1" else read_stream(path).lazy()


_SCANS: dict[str, Callable[[Path], pl.LazyFrame]] = {
    "parquet": lambda path: pl.scan_parquet(path, glob=False),
    "ipc": _scan_ipc,
    # every cell is text: an id 007 is not the number 7
    "csv": lambda path: pl.scan_csv(path, infer_schema=False, glob=False),
}


def count_rows(paths: Iterable[Path]) -> list[int | None]:
    """Rows of each file where its footer tells, else None."""
    counts: list[int | None] = []
    for path in paths:
        known = format_of(path) == "parquet"
        counts.append(pl.scan_parquet(path, glob=False).select(pl.len()).collect().item() if known else None)
    return counts
