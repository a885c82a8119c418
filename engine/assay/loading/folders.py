"""The files that a path means, and what the names of their folders say: ``model=x/`` is a column."""

import glob
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import polars as pl

from assay.errors import InputError, counted, shown_path
from assay.expressions.shared_columns import exactly
from assay.frozen import frozen
from assay.loading.formats.documents import form_of
from assay.loading.formats.files import ENGINE_ERRORS, SUFFIXES, known_suffixes, suffix_of
from assay.loading.formats.reading import File, Pace, pick
from assay.loading.formats.remote import RemoteFile
from assay.names import MANIFEST, PROVENANCE_KEY
from assay.system.special_files import is_folder, likely_file, what_is

_SKIPPED = ("_", ".")
_TEXTS = 'Texts that are to be scored stand in rows: [{"completion": "a text"}]'
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_SHOWN = 3


def expand(source: str | Path) -> tuple[list[Path], list[str]]:
    """Return the files of a path: the file itself, those of a folder and of the folders in it, or the matches of a glob, by name.

    In folders and globs, names are ignored that begin with ``_`` or ``.`` or end in ``.tmp``; in folders, JSON documents and
    workbooks, too, if there are files of other formats, and folders of results.
    """
    path, notes = Path(source), list[str]()
    is_dir = is_folder(path)
    if path.is_file():
        return [path], notes
    if is_dir:
        files = [file for file in _below(path, set(), notes) if suffix_of(file) in SUFFIXES]
        rollouts = [file for file in files if not form_of(file)]
        if rollouts and (documents := [file for file in files if form_of(file)]):  # documents are about the rollouts
            notes.append(f"left out beside other files: {_some(documents)}; name them to score them")
        files = rollouts or files
        kinds = {SUFFIXES[suffix_of(file)].name for file in files}
        if len(kinds) > 1:
            raise InputError(
                f"{shown_path(path)}: the folder holds {' and '.join(sorted(kinds))} files.",
                "Name one kind: 'FOLDER/**/*.jsonl'"
                if any(file.parent != path for file in files)
                else "Name one kind: FOLDER/*.jsonl",
            )
    elif glob.has_magic(str(source)):
        files = [Path(file) for file in sorted(glob.glob(str(source), recursive=True)) if Path(file).is_file()]  # noqa: PTH207  (takes absolute patterns)
        files = [file for file in files if _visible(file)]
    elif what := what_is(path):
        hint = "" if "link" in what else "Write its output to a file first."
        raise InputError(f"{shown_path(path)}: is {what}.", hint)
    else:
        raise InputError(
            f"{shown_path(path)}: no such file or folder.", likely_file(path) or ("" if path.suffix else _TEXTS)
        )
    if not files:
        raise InputError(f"{shown_path(source)}: no rollout files found.", "\n".join([*notes, known_suffixes()]))
    return files, notes


def _below(folder: Path, known: set[str], notes: list[str]) -> Iterator[Path]:
    is_top = not known
    known.add(os.path.realpath(folder))
    for entry in sorted(filter(_visible, folder.iterdir())):
        if not is_top and entry.is_file() and suffix_of(entry) == ".parquet" and _has_provenance(entry):
            # what is scored into a folder of the rollouts is not scored with them the next time
            notes.append(f"left out: {shown_path(entry)} is a result of assay score")
        elif entry.is_file():
            yield entry
        elif (entry / MANIFEST).exists():
            notes.append(f"left out: {shown_path(entry)}/ is a result of assay score")
        elif entry.is_dir() and os.path.realpath(entry) not in known:
            yield from _below(entry, known, notes)


def _has_provenance(path: Path) -> bool:
    try:
        return PROVENANCE_KEY in pl.read_parquet_metadata(path)
    except (*ENGINE_ERRORS, ValueError):  # told when it is opened
        return False


def _visible(path: Path) -> bool:
    return not path.name.startswith(_SKIPPED) and path.suffix != ".tmp"


def _some(files: Sequence[Path]) -> str:
    shown = ", ".join(map(shown_path, files[:_SHOWN]))
    return shown if len(files) <= _SHOWN else f"{shown} and {counted(len(files) - _SHOWN, 'other')}"


@frozen
class InFolder(File):
    """A ``File`` with a column for each ``name=value`` in its path."""

    within: File
    columns: tuple[tuple[str, Any, pl.DataType], ...]

    @property
    def _values(self) -> list[pl.Expr]:
        return [
            pl.coalesce(*([exactly(name)] if name in self.within.schema else []), pl.lit(value, dtype)).alias(name)
            for name, value, dtype in self.columns
        ]

    def scan(self, first: int = 0, last: int | None = None, pace: Pace | None = None) -> pl.LazyFrame:
        return self.within.scan(first, last, pace).with_columns(self._values)

    def read(self, first: int, last: int | None, names: list[str], rows: int) -> Iterator[pl.DataFrame]:
        own = [name for name in names if name in self.within.schema]
        for frame in self.within.read(first, last, own or list(self.within.schema)[:1], rows):
            values = [value for value in self._values if value.meta.output_name() in names]
            yield pick(frame.with_columns(values), names)


def in_folders(files: Sequence[File], names: Mapping[Path, str]) -> list[File]:
    """Return files with the columns that the names of their folders say, each of whole numbers if all of its values are.

    A row's own value of that name is used instead.
    """
    said = [{} if isinstance(file, RemoteFile) or file.path in names else _said(file.path) for file in files]
    values: dict[str, list[str]] = {}
    for parts in said:
        for name, value in parts.items():
            values.setdefault(name, []).extend([] if value is None else [value])
    whole = {name for name, texts in values.items() if texts and all(map(_is_whole, texts))}
    return [_in_folder(file, parts, whole) for file, parts in zip(files, said, strict=True)]


def _said(path: Path) -> dict[str, str | None]:
    pairs = [part.partition("=") for part in path.parent.parts]
    texts = {unquote(name): unquote(value) for name, equals, value in pairs if name and equals}
    return {name: None if text == _NO_VALUE else text for name, text in texts.items()}


def _is_whole(text: str) -> bool:
    return text.isascii() and text.removeprefix("-").isdecimal() and len(text) < 19 and text == str(int(text))  # noqa: PLR2004  (digits of 64 bits)


def _in_folder(file: File, parts: Mapping[str, str | None], whole: set[str]) -> File:
    columns: list[tuple[str, Any, pl.DataType]] = []
    for name, text in parts.items():
        own, of_folders = file.schema.get(name, pl.Null()), pl.Int64() if name in whole else pl.String()
        if own in (pl.Null, pl.String) or (own.is_integer() and name in whole):
            dtype = of_folders if own == pl.Null else own
            columns.append((name, int(text) if text is not None and dtype.is_integer() else text, dtype))
    if not columns:
        return file
    schema = pl.Schema({**file.schema, **{name: dtype for name, _, dtype in columns}})
    return InFolder(file.path, schema, file.units, file, tuple(columns), bad=file.bad, notes=file.notes)
