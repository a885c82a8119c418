"""From a path, a glob or a folder to the files it means, and from a file to a lazy frame, by its format."""

import glob
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
from polars.exceptions import PolarsError

from assay.arrow import read_stream
from assay.errors import InputError, did_you_mean
from assay.rows import STRUCTURED, from_rows

__all__ = ["FORMATS", "count_rows", "expand", "format_of", "scan_file", "scan_files"]

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
TEXT_COLUMNS = ("completion", "prompt", "metadata", "expected_output_schema", "task_id", "answer")
"""Columns of a CSV that stay text whatever they look like: a completion ``007`` is not the number 7."""

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


def scan_files(paths: list[Path]) -> pl.LazyFrame:
    """Files one after another as one lazy frame; columns that a file lacks are null there.

    Raises:
        InputError: A file cannot be read, or a column has types that cannot be reconciled; both files are named.
    """
    frames = [scan_file(path) for path in paths]
    schemas = [frame.collect_schema() for frame in frames]
    if all(schema == schemas[0] for schema in schemas):
        return frames[0] if len(frames) == 1 else pl.concat(frames)
    try:
        joined = pl.concat(frames, how="diagonal_relaxed")
        joined.collect_schema()
    except PolarsError:
        raise _drift(paths, schemas) from None
    return joined


def _drift(paths: list[Path], schemas: list[pl.Schema]) -> InputError:
    first: dict[str, tuple[Path, pl.DataType]] = {}
    for path, schema in zip(paths, schemas, strict=True):
        for name, dtype in schema.items():
            where, before = first.setdefault(name, (path, dtype))
            if before != dtype:
                return InputError(
                    f"`{name}` is {before} in {where} and {dtype} in {path}.",
                    "Give the files one type, or score them apart.",
                )
    return InputError(f"The columns of {paths[0]} and the files after it do not fit together.")


def scan_file(path: Path) -> pl.LazyFrame:
    """One file as a lazy frame whose schema is known to be readable.

    Raises:
        InputError: The file cannot be read; the message names it, and the line where there is one.
    """
    kind = format_of(path)
    try:
        frame = _SCANS[kind](path)
        frame.collect_schema()
    except (PolarsError, pa.ArrowException) as wrong:
        where = _bad_line(path) if kind == "jsonl" else None
        raise InputError(where or f"{path}: not a readable {kind} file: {_first_line(wrong)}") from None
    except OSError as wrong:
        raise InputError(f"{path}: {wrong.strerror or wrong}.") from None
    return frame


def _first_line(wrong: Exception) -> str:
    return str(wrong).strip().split("\n", 1)[0]


def _scan_jsonl(path: Path) -> pl.LazyFrame:
    if path.stat().st_size == 0:
        raise InputError(f"{path}: the file is empty.")
    # every line is looked at for its type: a field may appear for the first time in the last one
    frame = pl.scan_ndjson(path, infer_schema_length=None)
    if _mixed(path, frame.collect_schema()):
        return from_rows(_json_lines(path)).lazy()
    return frame


def _mixed(path: Path, schema: pl.Schema) -> bool:
    """Whether a field that the reader calls a string holds lists or objects too, which it would hand over as JSON text."""
    names = [name for name, dtype in schema.items() if dtype == pl.String and name not in STRUCTURED]
    messages = any(isinstance(dtype, pl.List) and isinstance(dtype.inner, pl.Struct) for dtype in schema.values())
    fields = "|".join(
        json.dumps(name)[1:-1] for name in [*names, *(["content"] if messages else [])] if name.isidentifier()
    )
    if not fields:
        return False
    found = pl.scan_lines(path).select(pl.col("line").str.contains(rf'"(?:{fields})"\s*:\s*[\[{{]').any())
    return bool(found.collect(engine="streaming").item())


def _json_lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                try:
                    value = json.loads(line)
                except (ValueError, RecursionError) as wrong:
                    raise InputError(f"{path}:{number}: not valid JSON: {wrong}") from None
                if not isinstance(value, dict):
                    raise InputError(f"{path}:{number}: a line must be a JSON object, not {type(value).__name__}.")
                yield value


def _bad_line(path: Path) -> str | None:
    """The first line that is not a JSON object, for a message."""
    try:
        for _ in _json_lines(path):
            pass
    except InputError as wrong:
        return wrong.fact
    return None


def _scan_ipc(path: Path) -> pl.LazyFrame:
    with path.open("rb") as file:
        magic = file.read(6)
    return pl.scan_ipc(path) if magic == b"ARROW1" else read_stream(path).lazy()


def _scan_csv(path: Path) -> pl.LazyFrame:
    header = pl.scan_csv(path, infer_schema=False).collect_schema()
    texts = {name: pl.String for name in header if name in TEXT_COLUMNS}
    return pl.scan_csv(path, infer_schema_length=None, schema_overrides=texts)


_SCANS: dict[str, Callable[[Path], pl.LazyFrame]] = {
    "parquet": pl.scan_parquet,
    "jsonl": _scan_jsonl,
    "ipc": _scan_ipc,
    "csv": _scan_csv,
}


def count_rows(paths: Iterable[Path]) -> list[int | None]:
    """Rows of each file where its footer tells, else None."""
    counts: list[int | None] = []
    for path in paths:
        known = format_of(path) == "parquet"
        counts.append(pl.scan_parquet(path).select(pl.len()).collect().item() if known else None)
    return counts
