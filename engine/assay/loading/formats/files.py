"""The file formats, one record for each; opening files by them; several files as one table."""

import contextlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import polars as pl
from polars.exceptions import PanicException, PolarsError

from assay.errors import InputError, closest, path_text, shown_path
from assay.expressions.mixed import TYPED
from assay.expressions.shared_columns import plain_type
from assay.frozen import frozen
from assay.loading.formats.reading import File, Pace, Reading, one_after_another, own_types, rows_in_all
from assay.system.arrow import pa
from assay.system.memory import at_once


def _lazily(module: str, name: str) -> Callable[..., Any]:
    # few runs read more than one format
    def call(*given: Any) -> Any:
        return getattr(import_module(f"assay.loading.formats.{module}"), name)(*given)

    return call


@frozen
class Format:
    """A file format.

    Attributes:
        opener: Opens a file; of JSON lines, all files together, because they settle the types of their columns together.
        magic: First bytes of its files, if they are always the same.
        records: Gives the first records that a preset is recognised by, where columns have no types.
        scan_url: Reads a URL in place, given the options of the store, and the delimiter; without it, the file is copied first.
        counts_rows: Whether the rows of a URL can be counted without reading them.
    """

    name: str
    suffixes: tuple[str, ...]
    opener: Callable[..., Any]
    magic: bytes = b""
    has_types: bool = False
    records: Callable[[Path, Reading], Sequence[Mapping[str, Any]]] | None = None
    scan_url: Callable[..., pl.LazyFrame] | None = None
    delimiter: Callable[[str, Any], str] | None = None
    counts_rows: bool = False

    def open(self, files: Sequence[tuple[Path, str]], reading: Reading) -> Sequence[File]:
        """Open files that are read one after another, each with its name in messages."""
        if self is LINES:
            lines: Sequence[File] = self.opener(files, reading)
            return lines
        return [self._open(path, reading) for path, _ in files]

    def _open(self, path: Path, reading: Reading) -> File:
        try:
            file: File = self.opener(path, reading)
        except (PolarsError, PanicException, pa.ArrowException) as error:
            raise InputError(f"{shown_path(path)}: not a readable {self.name} file: {first_line(error)}") from None
        except OSError as error:
            raise InputError(f"{shown_path(path)}: {error.strerror or first_line(error)}.") from None
        return file


def first_line(error: BaseException) -> str:
    """Return the first line of a Polars error: its message without the trace of the query."""
    if isinstance(error, PanicException):  # Polars has printed its own message to standard error
        return "it is damaged, Polars fails on it"
    return str(error).strip().split("\n", 1)[0]


LINES = Format(
    "jsonl",
    (
        *(".jsonl", ".ndjson", ".jsonl.gz", ".jsonl.zst", ".ndjson.gz", ".ndjson.zst"),
        *(".json", ".json.gz", ".json.zst", ".xlsx", ".eval"),  # documents, whose records are read as lines
    ),
    _lazily("jsonl", "open_jsonl"),
    records=_lazily("jsonl", "first_records"),
)

_FORMATS = (
    Format(
        "parquet",
        (".parquet", ".pq"),
        _lazily("parquet", "open_parquet"),
        b"PAR1",
        has_types=True,
        scan_url=lambda url, options: pl.scan_parquet(url, glob=False, storage_options=options),
        counts_rows=True,
    ),
    LINES,
    Format(
        "ipc",
        (".arrow", ".ipc", ".feather"),
        _lazily("ipc", "open_ipc"),
        b"ARROW1",
        has_types=True,
        scan_url=lambda url, options: pl.scan_ipc(url, glob=False, storage_options=options),
    ),
    Format(
        "csv",
        (".csv", ".tsv"),
        _lazily("csv", "open_csv"),
        scan_url=_lazily("csv", "scan_csv"),
        delimiter=_lazily("csv", "delimiter_of_url"),
    ),
)

SUFFIXES = {suffix: kind for kind in _FORMATS for suffix in kind.suffixes}
"""Formats by the suffixes of their files."""


def known_suffixes() -> str:
    """Return the suffixes for a message."""
    return f"Known suffixes: {', '.join(SUFFIXES)}"


def suffix_of(path: Path) -> str:
    """Return a file's suffix; for a compressed file, the one before it too."""
    suffixes = [suffix.lower() for suffix in path.suffixes[-2:]]
    return "".join(suffixes) if suffixes[-1:] in ([".gz"], [".zst"]) else "".join(suffixes[-1:])


def format_of(path: str | Path) -> Format:
    """Return a file's format, by its suffix or its first bytes."""
    path = Path(path)
    if (by_suffix := SUFFIXES.get(suffix_of(path))) is not None:
        return by_suffix
    if path.is_file():
        with path.open("rb") as file:
            first = file.read(max(len(kind.magic) for kind in _FORMATS))
        by_magic = next((kind for kind in _FORMATS if kind.magic and first.startswith(kind.magic)), None)
        if by_magic is not None:
            return by_magic
        if _lazily("jsonl", "compression")(path):
            return LINES
    if path.suffix.lower() in (".yaml", ".yml", ".toml"):
        raise InputError(f"{shown_path(path)}: is a verifier's spec, not rollouts.", "Give it with --spec.")
    hint = known_suffixes()
    with contextlib.suppress(OSError), path.open("rb") as file:
        suffix = {b"{": ".jsonl", b"[": ".json"}.get(file.read(100).lstrip()[:1]) or closest(path.suffix, SUFFIXES)
        hint = f"Rename it: {shown_path(path.with_suffix(suffix))}\n{hint}" if suffix else hint
    raise InputError(f"{shown_path(path)}: unknown file format.", hint)


def open_each(paths: Sequence[Path], reading: Reading, names: Mapping[Path, str] | None = None) -> list[File]:
    """Open files in order; those of one format are opened together."""
    kinds = {path: LINES if names else format_of(path) for path in paths}
    opened: dict[Path, File] = {}
    for kind in dict.fromkeys(kinds.values()):
        files = [(path, (names or {}).get(path, path_text(path))) for path in paths if kinds[path] is kind]
        opened |= zip([path for path, _ in files], kind.open(files, reading), strict=True)
    return [opened[path] for path in paths]


_SHARES = 2
"""Shares of the memory that the rows of a piece may take: they are views of what the reader holds, and its columns are narrow."""

_READ_SHARES = 4
"""Shares of the memory from which the rows that are written together may come: of most, the texts are gone."""

ENGINE_ERRORS = (PolarsError, PanicException, OSError)
"""Errors of Polars for a file that it cannot read; a panic is not an ``Exception``."""


@frozen
class Cut:
    """A range of units, of one file or of several consecutive files: the input of a shard.

    Attributes:
        final: Index of the last file; None if there is one file.
    """

    file: int
    first: int
    last: int
    final: int | None = None

    @property
    def files(self) -> range:
        """Indices of its files."""
        return range(self.file, (self.file if self.final is None else self.final) + 1)

    def units(self, file: int, count: int) -> tuple[int, int]:
        """Return the range of units of one of its files: the first, and the one after the last."""
        return (self.first if file == self.files[0] else 0), (self.last if file == self.files[-1] else count)


@frozen
class Files:
    """Several files, read one after another as one.

    Attributes:
        memory_limit: Memory limit of the reading process, in bytes; None for the default.
        pace: What a run keeps its reader near with.
    """

    files: tuple[File, ...]
    schema: pl.Schema
    skipped: tuple[tuple[str, str], ...] = ()
    memory_limit: int | None = None
    pace: Pace = field(default_factory=Pace, compare=False)

    def at_once(self, rows: int) -> int:
        """Return how many rows to process at once: ``rows``, or fewer if they are long."""
        return at_once(rows, self._row_bytes, self.memory_limit, shares=_SHARES)

    def together(self, rows: int, kept: Collection[str]) -> int:
        """Return how many rows to write together, with some of their columns: ``rows``, or fewer if they are long; the same anywhere."""
        is_known = {*kept} <= self._column_bytes.keys()
        written = sum(self._column_bytes[name] for name in kept) if is_known else self._row_bytes
        return min(at_once(rows, written, None), at_once(rows, self._row_bytes, None, shares=_READ_SHARES))

    @cached_property
    def _rows(self) -> int | None:
        return rows_in_all(unit.rows for file in self.files for unit in file.units)

    @cached_property
    def _column_bytes(self) -> dict[str, int]:
        """Approximate bytes of a row in each column of which all files say them."""
        first, *others = (file.sizes for file in self.files)
        known = [name for name in first if all(name in sizes for sizes in others)]
        return {name: sum(file.sizes[name] for file in self.files) // max(1, self._rows or 0) for name in known}

    @cached_property
    def _row_bytes(self) -> int:
        """Approximate bytes of a row; 0 if unknown. Cached, because every shard needs it."""
        size = sum(unit.size for file in self.files for unit in file.units)
        return 0 if self._rows is None else size // max(1, self._rows)

    def scan(self, cut: Cut | None = None) -> pl.LazyFrame:
        """Return all rows, or those of a cut."""
        cut = cut or Cut(0, 0, len(self.files[-1].units), len(self.files) - 1)
        parts = [(self.files[at], *cut.units(at, len(self.files[at].units))) for at in cut.files]
        if len(parts) > 1:
            return one_after_another(parts, self.schema, self.memory_limit, self.pace)
        file, first, last = parts[0]
        frame = file.scan(first, last, self.pace)
        if len(self.files) == 1:
            return frame
        frame = frame.with_columns(own_types(file.schema, self.schema))
        return pl.concat([pl.LazyFrame(schema=self.schema), frame], how="diagonal_relaxed")


def combined(
    files: Sequence[File],
    skipped: Sequence[tuple[str, str]] = (),
    memory_limit: int | None = None,
    exact: Collection[str] = (),
) -> Files:
    """Combine opened files, to be read one after another."""
    schemas = [file.schema for file in files]
    # columns whose integers or fractions would become other values keep the type of each
    mixed = {
        name
        for name in exact
        if len({_kind(schema[name]) for schema in schemas if schema.get(name, pl.Null) != pl.Null}) > 1
    }
    if mixed:
        schemas = [
            pl.Schema({name: TYPED if name in mixed else dtype for name, dtype in schema.items()}) for schema in schemas
        ]
    first: dict[str, tuple[str, pl.DataType]] = {}
    for file, schema in zip(files, schemas, strict=True):
        for name, dtype in schema.items():
            where, first_type = first.setdefault(name, (file.name, dtype))
            if first_type == pl.Null:
                first[name] = (file.name, dtype)
            elif not _reconcilable(first_type, dtype):
                fact = f"`{name}` is {first_type} in {shown_path(where)} and {dtype} in {shown_path(file.name)}."
                raise InputError(fact, "Give the column one type in all files, or score them separately.")
    # each distinct schema once: thousands of equal ones give the same union
    empty = [pl.LazyFrame(schema=schema) for schema in {tuple(schema.items()): schema for schema in schemas}.values()]
    union = empty[0] if len(empty) == 1 else pl.concat(empty, how="diagonal_relaxed")
    return Files(tuple(files), union.collect_schema(), tuple(skipped), memory_limit)


def _kind(dtype: Any) -> Any:
    return "integer" if dtype.is_integer() else "float" if dtype.is_float() else plain_type(dtype)


def _reconcilable(left: Any, right: Any) -> bool:
    if left == right or pl.Null in (left, right) or (left.is_numeric() and right.is_numeric()):
        return True
    if isinstance(left, pl.List) and isinstance(right, pl.List):
        return _reconcilable(left.inner, right.inner)
    if isinstance(left, pl.Struct) and isinstance(right, pl.Struct):
        right_fields = dict(right.to_schema())
        return all(
            _reconcilable(dtype, right_fields[name]) for name, dtype in left.to_schema().items() if name in right_fields
        )
    return False


def broken_file(files: Sequence[File]) -> InputError | None:
    """Return the error of the first file that cannot be read to its end; None if all can."""
    for entry in files:
        file = getattr(entry, "within", entry)
        if message := file.fault():
            return InputError(message)
        try:
            # not in batches: that stream would end silently if a thread of Polars fails
            file.scan().select(pl.all().null_count()).collect(engine="streaming")
        except ENGINE_ERRORS as error:
            return InputError(f"{shown_path(file.name)}: {first_line(error)}")
        except InputError as error:
            return error
    return None
