"""What each file format needs to be recognised, previewed and read: one record for each."""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
from polars.exceptions import PanicException, PolarsError

from assay.errors import InputError, closest, path_text, shown_path
from assay.loading.formats.parquet import open_parquet
from assay.loading.formats.reading import File, Reading


@dataclass(frozen=True)
class Format:
    """A file format.

    Attributes:
        magic: First bytes of its files, if they are always the same.
        counts_rows: Whether the rows of a URL can be counted without reading them.
    """

    name: str
    suffixes: tuple[str, ...]
    open: Callable[[Sequence[tuple[Path, str]], Reading], Sequence[File]]
    magic: bytes = b""
    frame: Callable[[Path, Reading], pl.LazyFrame] | None = None
    records: Callable[[Path, Reading], Sequence[Mapping[str, Any]]] | None = None
    scan_url: Callable[..., pl.LazyFrame] | None = None
    delimiter: Callable[[str, Any], str] | None = None
    counts_rows: bool = False


def _each(name: str, opener: Callable[[Path, Reading], File]) -> Callable[..., Sequence[File]]:
    def open_file(path: Path, reading: Reading) -> File:
        try:
            return opener(path, reading)
        except (PolarsError, PanicException, pa.ArrowException) as error:
            raise InputError(f"{shown_path(path)}: not a readable {name} file: {first_line(error)}") from None
        except OSError as error:
            raise InputError(f"{shown_path(path)}: {error.strerror or first_line(error)}.") from None

    return lambda files, reading: [open_file(path, reading) for path, _ in files]


# The module of a format is imported when a file of it is opened: few runs read more than one format.


def _open_jsonl(files: Sequence[tuple[Path, str]], reading: Reading) -> Sequence[File]:
    from assay.loading.formats.jsonl_survey import open_jsonl

    return open_jsonl(files, reading)


def _first_records(path: Path, reading: Reading) -> Sequence[Mapping[str, Any]]:
    from assay.loading.formats.lines import first_records

    return first_records(path, reading)


def _open_ipc(path: Path, reading: Reading) -> File:
    from assay.loading.formats.ipc import open_ipc

    return open_ipc(path, reading)


def _open_csv(path: Path, reading: Reading) -> File:
    from assay.loading.formats.csv import open_csv

    return open_csv(path, reading)


def _scan_csv(url: str, options: Any, delimiter: str) -> pl.LazyFrame:
    from assay.loading.formats.csv import scan_csv

    return scan_csv(url, options, delimiter)


def _delimiter(url: str, options: Any) -> str:
    from assay.loading.formats.csv import delimiter_of_url

    return delimiter_of_url(url, options)


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
    _open_jsonl,  # together, because the files settle the types of their columns together
    records=_first_records,
)

_FORMATS = (
    Format(
        "parquet",
        (".parquet", ".pq"),
        _each("parquet", open_parquet),
        b"PAR1",
        frame=lambda path, reading: open_parquet(path, replace(reading, verify_checksums=False)).scan(),
        scan_url=lambda url, options: pl.scan_parquet(url, glob=False, storage_options=options),
        counts_rows=True,
    ),
    LINES,
    Format(
        "ipc",
        (".arrow", ".ipc", ".feather"),
        _each("ipc", _open_ipc),
        b"ARROW1",
        frame=lambda path, reading: _open_ipc(path, reading).scan(),
        scan_url=lambda url, options: pl.scan_ipc(url, glob=False, storage_options=options),
    ),
    Format(
        "csv",
        (".csv", ".tsv"),
        _each("csv", _open_csv),
        scan_url=_scan_csv,
        delimiter=_delimiter,
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
        from assay.loading.formats.lines import compression

        if compression(path):
            return LINES
    if path.suffix.lower() in _OF_SPECS:
        raise InputError(f"{shown_path(path)}: is a verifier's spec, not rollouts.", "Give it with --spec.")
    raise InputError(f"{shown_path(path)}: unknown file format.", f"{_renamed(path)}{known_suffixes()}")


_OF_SPECS = (".yaml", ".yml", ".toml")


def _renamed(path: Path) -> str:
    """Return a line that names a file as its first characters or its suffix suggest, or ``""``."""
    with contextlib.suppress(OSError), path.open("rb") as file:
        suffix = {b"{": ".jsonl", b"[": ".json"}.get(file.read(100).lstrip()[:1]) or closest(path.suffix, SUFFIXES)
        return f"Rename it: {shown_path(path.with_suffix(suffix))}\n" if suffix else ""
    return ""


def open_each(paths: Sequence[Path], reading: Reading, names: Mapping[Path, str] | None = None) -> list[File]:
    """Open files in order; those of one format are opened together."""
    kinds = {path: LINES if names else format_of(path) for path in paths}
    opened: dict[Path, File] = {}
    for kind in dict.fromkeys(kinds.values()):
        files = [(path, (names or {}).get(path, path_text(path))) for path in paths if kinds[path] is kind]
        opened |= zip([path for path, _ in files], kind.open(files, reading), strict=True)
    return [opened[path] for path in paths]
