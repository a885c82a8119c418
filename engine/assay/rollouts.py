"""Rollouts from wherever they are to one lazy frame with canonical column names."""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import IO, Any, Unpack

import polars as pl
import polars.selectors as cs
import pyarrow as pa
from pydantic import BaseModel

from assay.arrow import from_arrow
from assay.cells import STRUCTURED
from assay.errors import ColumnsError, InputError, did_you_mean
from assay.files import Cut, Files, as_one, expand, first_line, open_lines, opened
from assay.lanes.base import BAD, HIDDEN, exactly
from assay.quarantine import check_bad_rows
from assay.reading import BadRow, File, Reading, ReadingOptions
from assay.remote import Remote, RemoteFile, is_url
from assay.rows import from_columns, from_rows
from assay.secrets import redacted
from assay.setdown import set_down

__all__ = ["InputFile", "Rollouts", "open_rollouts", "rename", "scan", "unchanged"]


_READ = (
    *("completion", "prompt", "task_id", "answer", "target", *STRUCTURED),
    *("fn_name", "expected", "params"),
)
"""Columns that something in Assay reads."""


@dataclass(frozen=True)
class InputFile:
    """One input of a run, as the provenance names it.

    Attributes:
        name: Path as given, or what the object is.
        size: Bytes, where it is a file.
        rows: Rows, where the file tells before it is read.
        modified: When it was last written to, in nanoseconds since 1970, where it is a file.
    """

    name: str
    size: int | None = None
    rows: int | None = None
    modified: int | None = None


Step = Callable[[pl.LazyFrame], pl.LazyFrame]
"""What is done to rollouts before they are scored; it pickles."""


@dataclass(frozen=True)
class Rollouts:
    """A lazy frame, what it was made of, and what the run's owner should know of that.

    Attributes:
        frame: All rollouts.
        inputs: What they were made of.
        read: The files they came from, or None.
        steps: What makes the frame of what was read.
        notes: What the run's owner should know.
    """

    frame: pl.LazyFrame
    inputs: tuple[InputFile, ...]
    read: Files | None = None
    steps: tuple[Step, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def files(self) -> tuple[File, ...]:
        """The files that the rollouts came from, if that is what they came from."""
        return self.read.files if self.read else ()

    @property
    def bad(self) -> tuple[BadRow, ...]:
        """The rows that are no rollouts."""
        return tuple(row for file in self.files for row in file.bad)

    @property
    def rows(self) -> int | None:
        """Rows in all, where the inputs tell."""
        rows = [one.rows for one in self.inputs]
        return None if None in rows else sum(n for n in rows if n is not None)

    def then(self, step: Step, *notes: str) -> "Rollouts":
        """These rollouts after one more step."""
        return replace(self, frame=step(self.frame), steps=(*self.steps, step), notes=(*self.notes, *notes))

    def part(self, cut: Cut) -> pl.LazyFrame:
        """The rollouts of some units of a file, with the columns of all.

        Raises:
            ValueError: They came from no file.
        """
        if self.read is None:
            raise ValueError("rollouts that came from no file have no parts")
        frame = self.read.scan(cut)
        for step in self.steps:
            frame = step(frame)
        return frame


def scan(
    source: Any,
    *,
    mapping: Mapping[str, str] | None = None,
    storage_options: Mapping[str, str] | None = None,
    **reading: Unpack[ReadingOptions],
) -> pl.LazyFrame:
    """Rollouts as a lazy frame; nothing is read before it is needed, but that JSONL is looked through once.

    Args:
        source: A path, glob or folder of parquet, JSONL, Arrow IPC or CSV files, a URL of one (``s3://``, ``gs://``, ``az://``,
            ``hf://``, ``https://``), or a list of these; ``-`` for JSONL on standard input; a Polars frame; a pyarrow Table, RecordBatch or RecordBatchReader, or anything with
            ``__arrow_c_stream__`` (validated in full); a Hugging Face ``Dataset``; a list of mappings; a mapping of columns;
            ``GenerateInputs`` with completions, or ``GenerateOutputs``.
            Every column of a CSV is text. In JSONL and mappings ``metadata`` and ``expected_output_schema`` become JSON text.
        mapping: Columns to rename, ``{"completion": "response"}``: the name Assay reads, and the name in the file.
        storage_options: Of the store that URLs name, as Polars has them (``aws_endpoint_url``, ``max_retries`` …); what is not
            there comes from the environment. Values are never shown.
        reading: ``max_bad_rows``, ``utf8``, ``max_ratio`` and ``max_uncompressed``, as of ``assay.score``. A bad row is one of nulls.

    Returns:
        One row for each rollout, in order.

    Raises:
        InputError: The source cannot be read.
        BadRowsError: More lines than ``max_bad_rows`` are no rollouts.
        ColumnsError: A column to rename is not there, or its new name is nearly one that Assay reads.
    """
    found = open_rollouts(source, Reading(mapping or {}, **reading), storage_options=storage_options)
    return found.frame.drop(BAD) if found.bad else found.frame


def open_rollouts(
    source: Any,
    reading: Reading,
    known: Iterable[str] = (),
    *,
    storage_options: Mapping[str, str] | None = None,
) -> Rollouts:
    """``scan``, with what the frame was made of; ``known`` are names that checks read. Bad rows have a column that says why."""
    mapping = reading.mapping
    try:
        found = _open(source, reading, storage_options)
        found = found.then(partial(rename, mapping=mapping, known=tuple(known))) if mapping else found
        names = found.frame.collect_schema().names()
    except OSError as wrong:
        shown = redacted(str(source)) if isinstance(source, str | Path) else "The rollouts"
        raise InputError(f"{shown}: {wrong.strerror or first_line(wrong)}.") from None
    for name in names:
        if name.startswith(HIDDEN) and not (name == BAD and found.bad):
            raise InputError(
                f"There is a column `{name}`; names that begin with `{HIDDEN}` are reserved.", "Rename it."
            )
    return found


def _open(source: Any, reading: Reading, storage_options: Mapping[str, str] | None) -> Rollouts:
    paths = [source] if isinstance(source, str | Path) else source
    if isinstance(paths, list | tuple) and paths and all(isinstance(one, str | Path) for one in paths):
        return _open_paths([str(one) for one in paths], reading, storage_options)
    if isinstance(source, pl.LazyFrame):
        return Rollouts(source, (InputFile("polars.LazyFrame"),))
    frame = _frame(_columns_of(source) if isinstance(source, BaseModel) else source, reading.mapping)
    return Rollouts(frame.lazy(), (InputFile(_kind(source), rows=frame.height),))


def _columns_of(model: Any) -> Any:
    """``GenerateOutputs`` as their table, ``GenerateInputs`` as columns."""
    if hasattr(model, "to_arrow"):
        return model.to_arrow()
    return {name: values for name, values in model if values is not None}


def _kind(source: Any) -> str:
    return f"{type(source).__module__.split('.')[0]}.{type(source).__name__}"


def _frame(source: Any, mapping: Mapping[str, str]) -> pl.DataFrame:
    if isinstance(source, pl.DataFrame):
        return source
    if _kind(source).startswith("datasets."):
        if isinstance(source, Mapping):
            raise InputError("A DatasetDict holds several splits.", f"Pick one: {', '.join(map(repr, source))}.")
        if not hasattr(source, "num_rows"):
            raise InputError(f"{_kind(source)} cannot be read.", "Give a datasets.Dataset, loaded in full.")
        return from_arrow(source.with_format("arrow")[:])
    if _kind(source) == "pandas.DataFrame":
        return _of_pandas(source)
    if hasattr(source, "__arrow_c_stream__") or hasattr(source, "read_next_batch"):
        return from_arrow(source)
    if isinstance(source, Mapping):
        return from_columns(source, mapping)
    if isinstance(source, Sequence) and not isinstance(source, bytes):
        return from_rows(source, mapping)
    raise InputError(
        f"Rollouts of type {type(source).__name__} cannot be read.",
        "Give a path, a Polars or Arrow table, a Hugging Face Dataset, or a list of mappings.",
    )


def _of_pandas(frame: Any) -> pl.DataFrame:
    """A pandas frame by way of Arrow, or, where a column of it has values of several types, value by value."""
    try:
        return from_arrow(pa.Table.from_pandas(frame, preserve_index=False))
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return from_columns({str(name): frame[name].tolist() for name in frame.columns})


def _open_paths(paths: list[str], reading: Reading, options: Mapping[str, str] | None) -> Rollouts:
    if "-" in paths:
        if len(paths) > 1:
            raise InputError("Standard input (-) cannot be mixed with files.")
        return _open_stdin(reading)
    found: list[Path | Remote] = []
    for path in paths:
        found += Remote(path, options).expand() if is_url(path) else expand(path)
    seen: set[Path | str] = set()
    for one in found:
        real = one.url if isinstance(one, Remote) else one.resolve()
        if real in seen:
            shown = one.shown if isinstance(one, Remote) else one
            raise InputError(f"{shown} is named twice.", "Its rollouts would be scored twice.")
        seen.add(real)
    there = iter(opened([one for one in found if isinstance(one, Path)], reading))
    read = as_one([one.open(reading) if isinstance(one, Remote) else next(there) for one in found])
    return _opened(read, reading, [str(file.path) for file in read.files])


def _opened(read: Files, reading: Reading, names: Iterable[str]) -> Rollouts:
    check_bad_rows(read.files, reading)
    notes = tuple(note for file in read.files for note in file.notes)
    inputs = tuple(_input(file, name) for file, name in zip(read.files, names, strict=True))
    return Rollouts(read.scan(), inputs, read, notes=notes)


def _input(file: File, name: str) -> InputFile:
    rows = [unit.rows for unit in file.units]
    known = None if None in rows else sum(n for n in rows if n is not None)
    if isinstance(file, RemoteFile):
        return InputFile(file.name, rows=known)
    there = file.path.stat()
    return InputFile(name, there.st_size, known, there.st_mtime_ns if str(file.path) == name else None)


def unchanged(inputs: Iterable[InputFile]) -> None:
    """Find out whether files are as they were when the run looked at them first.

    Raises:
        InputError: One has been written to, or is gone.
    """
    for one in inputs:
        if one.modified is None:
            continue
        try:
            there = Path(one.name).stat()
        except OSError as wrong:
            raise InputError(f"{one.name}: {wrong.strerror}, while it was scored.", _ANEW) from None
        if (there.st_size, there.st_mtime_ns) != (one.size, one.modified):
            raise InputError(f"{one.name}: was changed while it was scored.", _ANEW)


_ANEW = "Score it again when nothing writes to it any more."


def _open_stdin(reading: Reading) -> Rollouts:
    return _opened(_set_down(sys.stdin.buffer, "standard input", reading), reading, ["-"])


def _set_down(stream: IO[bytes], name: str, reading: Reading) -> Files:
    """JSON lines from elsewhere, set down in a file so that they are read as any other."""
    (file,) = open_lines([set_down(stream, name)], reading, [name])
    return Files((file,), file.schema)


def rename(frame: pl.LazyFrame, mapping: Mapping[str, str], known: Iterable[str] = ()) -> pl.LazyFrame:
    """Give columns the names that Assay reads, or others; a column that had such a name gives way.

    Args:
        frame: The rollouts.
        mapping: The name to give, and the name in the frame.
        known: Names that are read besides those of Assay's own.

    Raises:
        ColumnsError: A column to rename is not there, or its new name is nearly one that Assay reads.
    """
    if not mapping:
        return frame
    there = frame.collect_schema().names()
    for name, column in mapping.items():
        if name not in (*_READ, *known) and (near := did_you_mean(name, (*_READ, *known), cutoff=0.8)):
            raise ColumnsError(f"--map {name}={column}: Assay reads no column `{name}`.", near)
        if column not in there:
            hint = did_you_mean(column, there) or f"There are: {', '.join(there)}."
            raise ColumnsError(f"--map {name}={column}: the rollouts have no column `{column}`.", hint)
    named = frame.with_columns(exactly(column).alias(name) for name, column in mapping.items())
    return named.drop(cs.by_name([column for column in set(mapping.values()) if column not in mapping]))
