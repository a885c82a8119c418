"""The files of a result and what their footers say: one parquet file, or the parts in a folder with a manifest.

A footer can be edited, or written by anybody. What is read from here on has the types below, checked once for all who read them; entries
that other versions add are kept. A verifier's canonical form, a text in it, is checked by ``assay.spec.canonical.forms_of``.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import polars as pl
from polars.exceptions import PanicException, PolarsError
from pydantic import Field

from assay.errors import InputError, UsageError, counted, did_you_mean, shown_path
from assay.names import MANIFEST, PROVENANCE_KEY
from assay.spec.stored_json import Count, StoredError, StoredObject, Whole, parse_stored
from assay.system.special_files import engine_path, is_folder, refuse_url, what_is

SUMMARY = "_summary.json"
"""File in a folder of parts with the summary of the run; written after all parts."""


class _FileEntry(StoredObject):
    """A file that a run has read."""

    name: str
    size: Count | None = None
    rows: Count | None = None
    modified: Whole | None = None
    read_as: str | None = None
    skipped: str | None = None
    sha256: str | None = None


class _CheckEntry(StoredObject):
    id: str
    type: str
    weight: float


class _CodeEntry(StoredObject):
    """A function or a class that ran."""

    name: str | None = None
    sha256: str | None = None


class _VerifierEntry(StoredObject):
    id: str
    kind: str
    sha256: str
    canonical: str
    source: str | None = None
    weight: float | None = None
    checks: list[_CheckEntry] = Field(default_factory=list)
    code: list[_CodeEntry] = Field(default_factory=list)


class _ContentEntry(StoredObject):
    """What a file holds: each column with its type and its digest."""

    rows: Count
    root: str
    columns: list[Annotated[list[str], Field(min_length=3, max_length=3)]]


_Shard = Annotated[list[Count | None], Field(min_length=4, max_length=5)]
"""The input of a part: file, first unit, unit after the last, rows if they are known, last file if there are several."""


class Footer(StoredObject):
    """A footer or a manifest."""

    assay_version: str | None = None
    polars_version: str | None = None
    command: str | None = None
    rows: Count | None = None
    inputs: list[_FileEntry] = Field(default_factory=list)
    tasks: list[_FileEntry] = Field(default_factory=list)
    verifiers: list[_VerifierEntry] = Field(default_factory=list)
    content: _ContentEntry | None = None
    settings: dict[str, Any] | None = None
    task_table: str | None = None
    derived_from: str | None = None
    run: str | None = None
    part: Count | None = None
    manifest: Count | None = None
    columns: dict[str, str] | None = None
    shards: list[_Shard] | None = None
    grown: list[Count] | None = None


class Described(Footer):
    """The manifest of a run that can be continued."""

    command: str
    settings: dict[str, Any]
    columns: dict[str, str]
    shards: list[_Shard]


class Summed(StoredObject):
    """The summary beside the parts of a folder, as far as it is read."""

    rows: Count


def read_provenance(path: str | Path) -> dict[str, Any]:
    """Read the provenance of a parquet file of rewards, or of a folder of parts.

    Args:
        path: A file or a folder that Assay wrote.

    Returns:
        ``assay_version``, ``polars_version``, ``libraries`` (the versions of those that decide verdicts, if a check needs one),
        ``graders`` (name, tool, version, and the revision of Assay's code, if a check is one),
        ``command``, ``rows``, ``content`` (rows, columns with name, type and SHA-256, and the ``root`` of them), ``inputs`` (name, size in bytes, rows: null for Arrow
        and CSV files in a run over several), ``tasks`` (name, size) and ``verifiers`` (id, kind, sha256, canonical
        spec, checks with weights, and ``code``: the functions and classes used, with a hash of the source of those that are not
        built in). For a folder, its manifest: also ``settings``, ``columns``, ``shards`` and a hash of the ``task_table``;
        ``rows`` is null until the run is finished. A part holds only its ``run``; the manifest beside it holds the rest.

    Raises:
        InputError: The file cannot be read, its provenance is damaged, or Assay did not write it.
        UsageError: The path does not end in ``.parquet``.
    """
    provenance = provenance_in(path)
    if provenance is None:
        where = f"it has no {MANIFEST}" if Path(path).is_dir() else "its footer has no provenance"
        raise InputError(f"{shown_path(path)}: not written by Assay; {where}.")
    return provenance


def provenance_in(path: str | Path) -> dict[str, Any] | None:
    """``read_provenance``, but None for a file or a folder that has none."""
    refuse_url(path, InputError)
    path, shown = Path(path), shown_path(path)
    if path.is_dir():
        if (manifest := text_beside(path / MANIFEST)) is None:
            return None
        summary = text_beside(path / SUMMARY)
        rows = None if summary is None else _checked(summary, Summed, path / SUMMARY)["rows"]
        return {**_checked(manifest, Footer, path / MANIFEST), "rows": rows}
    if path.suffix.lower() != ".parquet":
        raise UsageError(f"{shown}: only parquet files hold a provenance.")
    if kind := what_is(path):
        raise InputError(f"{shown}: is {kind}.")
    try:
        with path.open("rb") as file:
            metadata = pl.read_parquet_metadata(file)
    except FileNotFoundError:
        raise InputError(f"{shown}: no such file.") from None
    except PermissionError as error:
        raise InputError(f"{shown}: {error.strerror}.") from None
    except (OSError, PolarsError, PanicException) as error:
        raise InputError(f"{shown}: not a readable parquet file: {error}") from None
    stored = metadata.get(PROVENANCE_KEY)
    return None if stored is None else _checked(stored.encode(), Footer, path)


def text_beside(path: Path) -> bytes | None:
    """Return the content of a file beside the parts of a folder; None if there is none."""
    if kind := what_is(path):
        raise InputError(f"{shown_path(path)}: is {kind}.")
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(f"{shown_path(path)}: {error.strerror}.") from None


def _checked(text: bytes, kind: type[StoredObject], path: Path) -> dict[str, Any]:
    try:
        return parse_stored(text, kind)
    except StoredError as error:
        fact = f"{shown_path(path)}: its provenance cannot be read: {error}."
        raise InputError(fact, "Score the rollouts again.") from None


def scan_files(files: Sequence[Path]) -> pl.LazyFrame:
    """Return the rows of parquet files, one file behind the other, as they are stored."""
    return pl.scan_parquet([engine_path(file) for file in files], glob=False, hive_partitioning=False)


def result_files(path: Path) -> list[Path]:
    """Return the files of a result, in order: a parquet file, or the parts in a folder of a run that is finished."""
    refuse_url(path, InputError)
    try:
        files = _parts(path) if is_folder(path) else [path]
        if files == [path]:
            if path.suffix.lower() != ".parquet":
                hint = "Write it with: assay score … --out NAME.parquet"
                raise UsageError(f"{shown_path(path)}: a result is a parquet file or a folder of parts.", hint)
            if not path.exists():
                near = [file.name for file in path.parent.glob("*.parquet")] if path.parent.is_dir() else []
                raise InputError(f"{shown_path(path)}: no such file.", did_you_mean(path.name, near))
        for file in files:
            if kind := what_is(file):
                raise InputError(f"{shown_path(file)}: is {kind}.", "Write the result to a file first.")
    except OSError as error:  # such as a folder that nobody else may look into
        raise InputError(f"{shown_path(path)}: {error.strerror}.") from None
    return files


def _parts(folder: Path) -> list[Path]:
    # NOTE: `glob` finds nothing in a folder that it may not look into
    files = sorted(file for file in folder.iterdir() if re.fullmatch(r"[^_.].*\.parquet", file.name, re.DOTALL))
    try:
        expected = len((provenance_in(folder) or {}).get("shards", ()))
    except InputError:
        expected = 0
    if expected:
        files = [file for file in files if file.name.startswith("part-")]
        if len(files) != expected:
            fact = f"{shown_path(folder)}/: the run is not finished: {len(files):,} of {counted(expected, 'part')}."
            raise InputError(fact, "The command that started it continues it.")
    if not files:
        raise InputError(f"{shown_path(folder)}/: no parquet files in this folder.")
    return files
