"""From a path, a glob or a folder to the files it means, and from a file to a lazy frame, by its format."""

import glob
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
from polars.exceptions import PanicException, PolarsError

from assay.errors import InputError, did_you_mean, path_text, shown_path
from assay.loading.formats.engine_source import by_engine, one_after_another
from assay.loading.formats.ipc import open_ipc
from assay.loading.formats.jsonl import JsonlFile
from assay.loading.formats.jsonl_survey import open_jsonl
from assay.loading.formats.lines import compression
from assay.loading.formats.parquet import ParquetFile, open_parquet
from assay.loading.formats.reading import BadRow, File, Reading, Unit, name_of, rows_in_all
from assay.system.memory import at_once
from assay.system.special_files import engine_path, what_is

__all__ = [
    "ENGINE_ERRORS",
    "FORMATS",
    "Cut",
    "Files",
    "as_one",
    "broken_file",
    "expand",
    "first_line",
    "format_of",
    "open_files",
    "open_lines",
    "opened",
]

FORMATS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".jsonl.gz": "jsonl",
    ".jsonl.zst": "jsonl",
    ".ndjson.gz": "jsonl",
    ".ndjson.zst": "jsonl",
    ".arrow": "ipc",
    ".ipc": "ipc",
    ".feather": "ipc",
    ".csv": "csv",
}
_SKIPPED = ("_", ".")

ENGINE_ERRORS = (PolarsError, PanicException, OSError)
"""What the engine raises for a file that it cannot read; a panic is no ``Exception``."""


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
        found = [one for one in sorted(path.iterdir()) if one.is_file() and _ending(one) in FORMATS]
        kinds = {FORMATS[_ending(one)] for one in found if _visible(one)}
        if len(kinds) > 1:
            raise InputError(
                f"{shown_path(path)}: the folder holds {' and '.join(sorted(kinds))} files.",
                "Name one kind: FOLDER/*.jsonl",
            )
    elif glob.has_magic(str(source)):
        found = [Path(one) for one in sorted(glob.glob(str(source), recursive=True)) if Path(one).is_file()]  # noqa: PTH207  (takes absolute patterns)
    elif what := what_is(path):
        hint = "" if "link" in what else "Write what it gives to a file first."
        raise InputError(f"{shown_path(path)}: is {what}.", hint)
    else:
        near = did_you_mean(
            path.name, [shown_path(one.name) for one in path.parent.iterdir()] if path.parent.is_dir() else []
        )
        raise InputError(f"{shown_path(path)}: no such file or folder.", near)
    found = [one for one in found if _visible(one)]
    if not found:
        raise InputError(f"{shown_path(source)}: no rollout files there.", f"Known endings: {', '.join(FORMATS)}")
    return found


def _ending(path: Path) -> str:
    """A file's ending; of a compressed one, the one before, too."""
    endings = [suffix.lower() for suffix in path.suffixes[-2:]]
    return "".join(endings) if endings[-1:] in ([".gz"], [".zst"]) else "".join(endings[-1:])


def _visible(path: Path) -> bool:
    return not path.name.startswith(_SKIPPED) and path.suffix != ".tmp"


def format_of(path: str | Path) -> str:
    """Format of a file by its ending, else by its first bytes.

    Raises:
        InputError: Neither tells.
    """
    known = FORMATS.get(_ending(Path(path)))
    if known:
        return known
    if Path(path).is_file():
        with Path(path).open("rb") as file:
            magic = file.read(6)
        if magic[:4] == b"PAR1":
            return "parquet"
        if magic == b"ARROW1":
            return "ipc"
        if compression(Path(path)):
            return "jsonl"
    raise InputError(f"{shown_path(path)}: unknown kind of file.", f"Known endings: {', '.join(FORMATS)}")


@dataclass(frozen=True)
class Cut:
    """Units in order, of one file or of several in a row: what a shard reads.

    Attributes:
        file: The file, by its place among all; of several, the first.
        first: The first unit of it.
        last: The unit after the last; of several files, in the last of them.
        final: The last file; None where there is one.
    """

    file: int
    first: int
    last: int
    final: int | None = None

    @property
    def files(self) -> range:
        """The places of its files."""
        return range(self.file, (self.file if self.final is None else self.final) + 1)

    def units(self, file: int, there: int) -> tuple[int, int]:
        """Of one of its files, which has so many units, the first that it reads and the one after the last."""
        return (self.first if file == self.files[0] else 0), (self.last if file == self.files[-1] else there)


@dataclass(frozen=True)
class Files:
    """Files one after another, read as one.

    Attributes:
        files: The files.
        schema: The columns of all of them; those that a file lacks are null there.
        skipped: Files that were left out, and why.
        memory_limit: Bytes that a process may take that reads them; None for the default.
    """

    files: tuple[File, ...]
    schema: pl.Schema
    skipped: tuple[tuple[str, str], ...] = ()
    memory_limit: int | None = None

    def at_once(self, rows: int, *, anywhere: bool = False) -> int:
        """So many rows, or fewer where they are long.

        Args:
            rows: How many at most.
            anywhere: The same number on any machine and for any limit of memory, for what shows in the bytes of the result.
        """
        return at_once(rows, self._row_bytes, None if anywhere else self.memory_limit)

    @cached_property
    def _row_bytes(self) -> int:
        """Bytes of a row, about; 0 where that is not known. Asked for by every shard, so worked out once."""
        units = [unit for file in self.files for unit in file.units]
        rows = rows_in_all(unit.rows for unit in units)
        return 0 if rows is None else sum(unit.size for unit in units) // max(1, rows)

    def scan(self, cut: Cut | None = None) -> pl.LazyFrame:
        """All rows, or those of a cut."""
        cut = cut or Cut(0, 0, len(self.files[-1].units), len(self.files) - 1)
        parts = [(self.files[at], *cut.units(at, len(self.files[at].units))) for at in cut.files]
        if len(parts) > 1:
            return one_after_another(parts, self.schema, self.memory_limit)
        file, first, last = parts[0]
        frame = file.scan(first, last)
        if len(self.files) == 1:
            return frame
        return pl.concat([pl.LazyFrame(schema=self.schema), frame], how="diagonal_relaxed")


def open_files(paths: Sequence[Path], reading: Reading) -> Files:
    """Look through files that are to be read one after another.

    Args:
        paths: The files.
        reading: How.

    Raises:
        InputError: A file cannot be read, or a column has types that cannot be reconciled; both files are named.
    """
    return as_one(opened(paths, reading), memory_limit=reading.memory_limit)


def as_one(files: Sequence[File], skipped: Sequence[tuple[str, str]] = (), memory_limit: int | None = None) -> Files:
    """Files that were looked through, one after another.

    Raises:
        InputError: A column has types that cannot be reconciled; both files are named.
    """
    schemas = [file.schema for file in files]
    _refuse_drift(list(map(name_of, files)), schemas)
    # each schema once: what is made of thousands that are alike is no other
    empty = [pl.LazyFrame(schema=schema) for schema in {tuple(schema.items()): schema for schema in schemas}.values()]
    union = empty[0] if len(empty) == 1 else pl.concat(empty, how="diagonal_relaxed")
    return Files(tuple(files), union.collect_schema(), tuple(skipped), memory_limit)


def opened(paths: Sequence[Path], reading: Reading) -> list[File]:
    """The files in order; those of JSON lines settle the types of their columns together."""
    lines = [path for path in paths if format_of(path) == "jsonl"]
    found: dict[Path, File] = dict(zip(lines, open_lines(lines, reading), strict=True)) if lines else {}
    return [found[path] if path in found else _open_file(path, reading) for path in paths]


def open_lines(paths: Sequence[Path], reading: Reading, names: Sequence[str] = ()) -> list[JsonlFile]:
    """Look through files of JSON lines that are to be read one after another.

    Args:
        paths: The files.
        reading: How.
        names: What to call them, if not by their paths.

    Raises:
        InputError: A file cannot be read, or its values fit no column.
    """
    return open_jsonl(list(zip(paths, names or map(path_text, paths), strict=True)), reading)


def _refuse_drift(names: list[str], schemas: list[pl.Schema]) -> None:
    """Columns may widen from one number to another, or from null; structs may differ in their fields."""
    first: dict[str, tuple[str, pl.DataType]] = {}
    for path, schema in zip(names, schemas, strict=True):
        for name, dtype in schema.items():
            where, before = first.setdefault(name, (path, dtype))
            if before == pl.Null:
                first[name] = (path, dtype)
            elif not _reconcilable(before, dtype):
                fact = f"`{name}` is {before} in {shown_path(where)} and {dtype} in {shown_path(path)}."
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


def broken_file(files: Sequence[File]) -> InputError | None:
    """Which of the files cannot be read to its end, and what to do; None when all can."""
    for file in files:
        if isinstance(file, ParquetFile) and not file.dense and (said := file.fault()):
            return InputError(said)
        try:
            # a stream of batches would end without a word where a thread of the engine fails
            file.scan().select(pl.all().null_count()).collect(engine="streaming")
        except ENGINE_ERRORS as wrong:
            return InputError(f"{shown_path(name_of(file))}: {first_line(wrong)}")
        except InputError as wrong:
            return wrong
    return None


def _open_file(path: Path, reading: Reading) -> File:
    kind = format_of(path)
    try:
        return _OPENERS[kind](path, reading)
    except (PolarsError, PanicException, pa.ArrowException) as wrong:
        raise InputError(f"{shown_path(path)}: not a readable {kind} file: {first_line(wrong)}") from None
    except OSError as wrong:
        raise InputError(f"{shown_path(path)}: {wrong.strerror or first_line(wrong)}.") from None


def first_line(wrong: BaseException) -> str:
    """An engine's message without its trace of the query; what it says of itself when it fails is on standard error."""
    if isinstance(wrong, PanicException):
        return "it is damaged, the engine fails on it"
    return str(wrong).strip().split("\n", 1)[0]


@dataclass(frozen=True)
class _Whole:
    """A ``File`` that is read as one unit."""

    path: Path
    schema: pl.Schema
    units: tuple[Unit, ...]
    reader: Callable[[Path], pl.LazyFrame]
    bad: tuple[BadRow, ...] = ()
    notes: tuple[str, ...] = ()

    def scan(self, first: int = 0, last: int | None = None) -> pl.LazyFrame:
        """All rows; none where the one unit is left out."""
        frame = self.reader(self.path)
        return frame if (first, last) in ((0, None), (0, 1)) else frame.clear()

    def read(self, first: int, last: int | None, names: list[str], rows: int) -> Iterator[pl.DataFrame]:  # noqa: ARG002
        """The same frame by frame."""
        return by_engine(self.scan(first, last), names, self.units[0].size)


def _whole(path: Path, reader: Callable[[Path], pl.LazyFrame]) -> File:
    return _Whole(path, reader(path).collect_schema(), (Unit(None, path.stat().st_size),), reader)


def _scan_csv(path: Path) -> pl.LazyFrame:
    return pl.scan_csv(
        engine_path(path), infer_schema=False, glob=False
    )  # every cell is text: an id 007 is not the number 7


_OPENERS: dict[str, Callable[[Path, Reading], File]] = {
    "parquet": open_parquet,
    "ipc": open_ipc,
    "csv": lambda path, _: _whole(path, _scan_csv),
}
