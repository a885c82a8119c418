"""Seals: hashes of the files that a result was made from, and whether a result still has the content that was written."""

import contextlib
import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from assay.errors import InputError, UsageError, shown_path
from assay.loading.formats.files import ENGINE_ERRORS, first_line, open_each
from assay.loading.formats.reading import Reading, batches
from assay.loading.rollouts import Rollouts
from assay.system.redaction import redacted
from assay.system.special_files import path_of
from assay.thresholds import THRESHOLDS
from assay.writing.digests import ContentDigest, root_of
from assay.writing.files import scan_files
from assay.writing.writers import read_provenance

_COPY = "Copy it to a file first."


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, or of the names and hashes of all files in a folder, as hexadecimal digits.

    Raises:
        UsageError: It is neither, as a URL.
        InputError: It cannot be read.
    """
    try:
        if path.is_dir():
            files = [Path(folder, name) for folder, _, names in os.walk(path, onerror=_raise) for name in names]
            files = sorted(file for file in files if file.is_file())
            names = "".join(f"{file.relative_to(path).as_posix()}\0{sha256_of(file)}\n" for file in files)
            return hashlib.sha256(names.encode("utf-8", "surrogateescape")).hexdigest()
        if not path.is_file():
            raise UsageError(f"{redacted(shown_path(path))}: only local files can be sealed.", _COPY)
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{shown_path(path)}: {error.strerror}.") from None


def _raise(error: OSError) -> None:
    raise error


def sealed(source: Rollouts) -> Rollouts:
    """Return rollouts whose inputs have the hashes of their files.

    Raises:
        UsageError: They are not local files.
    """
    if source.read is None:
        raise UsageError(f"--seal: {source.inputs[0].name} has no files that could be hashed.", "Write it to a file.")
    digests = [sha256_of(path_of(str(file.path))) for file in source.files]
    hashed = [replace(entry, sha256=digest) for entry, digest in zip(source.inputs, digests, strict=False)]
    return replace(source, inputs=(*hashed, *source.inputs[len(hashed) :]))


def is_sealed(provenance: Mapping[str, Any]) -> bool:
    """Return whether a provenance has the hashes of all files that the result was made from."""
    inputs, tasks = provenance.get("inputs", ()), provenance.get("tasks", ())
    return bool(inputs) and all(entry.get("sha256") for entry in (*inputs, *tasks) if not entry.get("skipped"))


@dataclass(frozen=True)
class Seal:
    """What a result holds, compared with its footer.

    Attributes:
        root: Digest of its rows as they are; for a folder, of the rows of all parts.
        rows: Their number.
        differ: The columns that are not as they were written, of a folder with the part; and entries of a footer that contradict
            each other.
    """

    root: str
    rows: int
    differ: tuple[str, ...]


def seal_of(path: str | Path, files: Sequence[Path]) -> Seal:
    """Compute the digests of a result anew, and compare them with those in its footers.

    Args:
        path: The result.
        files: Its files, in order.

    Raises:
        InputError: A file has no digests, or cannot be read.
    """
    open_each(files, Reading())  # refuses what is damaged, or grows without bound
    differ: list[str] = []
    rows, root, is_folder = 0, "", Path(path).is_dir()
    with contextlib.ExitStack() as stack:
        whole: list[ContentDigest] = []
        for file in files:
            provenance, frame = read_provenance(file), scan_files([file])
            try:
                schema = frame.collect_schema()
                if is_folder and not whole:
                    whole.append(stack.enter_context(contextlib.closing(ContentDigest(schema))))
                content = _digested(frame, schema, whole)
            except ENGINE_ERRORS as error:
                raise InputError(f"{shown_path(file)}: cannot be read: {first_line(error)}") from None
            name = f"{shown_path(file.name)}: " if is_folder else ""
            differ += [f"{name}{problem}" for problem in _differences(file, provenance, content)]
            rows, root = rows + content["rows"], content["root"]
        root = whole[0].content()["root"] if whole else root
    return Seal(root, rows, tuple(differ))


def _digested(frame: pl.LazyFrame, schema: pl.Schema, others: Sequence[ContentDigest]) -> dict[str, Any]:
    """Return the content of rows, and add them to other digests."""
    with contextlib.closing(ContentDigest(schema)) as digest:
        for batch in batches(frame, THRESHOLDS.batch):
            for each in (digest, *others):
                each.add(batch)
        return digest.content()


def _differences(file: Path, provenance: Mapping[str, Any], content: Mapping[str, Any]) -> Iterator[str]:
    stored = provenance.get("content")
    if stored is None:
        hint = "Files of before Assay wrote digests cannot be checked: score the rollouts again."
        raise InputError(f"{shown_path(file)}: its footer has no digests of its content.", hint)
    columns, rows, root = [tuple(column) for column in stored["columns"]], stored["rows"], stored["root"]
    before = {name: (dtype, digest) for name, dtype, digest in columns}
    now = {name: (dtype, digest) for name, dtype, digest in content["columns"]}
    yield from _differing(before, now)
    if list(before) != list(now) and {*before} == {*now}:
        yield "the order of the columns"
    if rows != content["rows"] or provenance.get("rows") != content["rows"]:
        yield "the number of rows"
    if root_of(columns, rows) != root:
        yield "the root in the footer"


def _differing(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterable[str]:
    return (name for name in dict.fromkeys([*before, *now]) if before.get(name) != now.get(name))
