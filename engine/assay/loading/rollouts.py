"""Rollouts from wherever they are to one lazy frame with canonical column names."""

import logging
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Unpack

import polars as pl
import polars.selectors as cs

from assay.errors import ColumnsError, InputError, did_you_mean, listed, path_text, shown_path
from assay.expressions.lane import exactly, not_hidden
from assay.loading.bad_rows import check_bad_rows
from assay.loading.detection import Chosen, Seen, choose, see, see_remote
from assay.loading.formats.files import Cut, Files, as_one, expand, first_line, format_of, open_lines, opened
from assay.loading.formats.reading import BadRow, File, Reading, reading_of, rows_in_all
from assay.loading.formats.remote import Remote, RemoteFile, is_url
from assay.loading.presets.json_paths import merged
from assay.loading.presets.preset import NONE
from assay.names import BAD, HIDDEN
from assay.options import ReadingOptions, documented, settle
from assay.system.processes import prepare_process
from assay.system.redaction import redacted
from assay.system.special_files import engine_path, is_stream, open_input, path_of, regular
from assay.system.spool import spool
from assay.values.column import STRUCTURED
from assay.values.rows import from_rows
from assay.values.tables import library_of, table_of

__all__ = ["InputFile", "Rollouts", "open_rollouts", "part_of", "rename", "scan", "unchanged"]


_logger = logging.getLogger(__name__)

_READ = (
    *("completion", "prompt", "task_id", "answer", "target", *STRUCTURED),
    *("fn_name", "expected", "params"),
)
"""Columns that something in Assay reads."""

_LOOKED_AT = 100
"""Rows in memory that tell what there is, for messages."""


@dataclass(frozen=True)
class InputFile:
    """One input of a run, as the provenance names it.

    Attributes:
        name: Path as given, or what the object is.
        size: Bytes, where it is a file.
        rows: Rows, where the file tells before it is read.
        modified: When it was last written to, in nanoseconds since 1970, where it is a file.
        read_as: The preset it was read by, and which of its values became which columns; None for a file that was read as it is.
        skipped: Why it was left out, if it was.
    """

    name: str
    size: int | None = None
    rows: int | None = None
    modified: int | None = None
    read_as: str | None = None
    skipped: str | None = None


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
        return rows_in_all(one.rows for one in self.inputs)

    def then(self, step: Step, *notes: str) -> "Rollouts":
        """These rollouts after one more step."""
        return replace(self, frame=step(self.frame), steps=(*self.steps, step), notes=(*self.notes, *notes))


def part_of(read: Files, steps: Iterable[Step], cut: Cut) -> pl.LazyFrame:
    """The rollouts that steps make of some units of a file, with the columns of all."""
    frame = read.scan(cut)
    for step in steps:
        frame = step(frame)
    return frame


@documented(ReadingOptions)
def scan(source: Any, **options: Unpack[ReadingOptions]) -> pl.LazyFrame:
    """Rollouts as a lazy frame; nothing is read before it is needed, but that JSONL is looked through once.

    Args:
        source: A path, glob or folder of parquet, JSONL, Arrow IPC or CSV files, a URL of one (``s3://``, ``gs://``, ``az://``,
            ``hf://``, ``https://``), or a list of these; ``-`` for JSONL on standard input; a Polars frame; a pyarrow Table, RecordBatch or RecordBatchReader, or anything with
            ``__arrow_c_stream__`` (validated in full); a Hugging Face ``Dataset``; a list of mappings; a mapping of columns;
            ``GenerateInputs`` with completions, or ``GenerateOutputs``.
            Every column of a CSV is text. In JSONL and mappings ``metadata`` and ``expected_output_schema`` become JSON text.
        options: How the rollouts are read.

    Returns:
        One row for each rollout, in order.

    Raises:
        InputError: The source cannot be read, or fits several presets.
        BadRowsError: More lines than ``max_bad_rows`` are no rollouts.
        UsageError: There is no such preset, or a path cannot be read.
        ColumnsError: A column to rename is not there, or its new name is nearly one that Assay reads.
    """
    frame = open_rollouts(source, reading_of(settle(ReadingOptions, options, "scan"))).frame
    return frame.drop(cs.by_name(BAD, require_all=False))


def open_rollouts(source: Any, reading: Reading, known: Iterable[str] = ()) -> Rollouts:
    """``scan``, with what the frame was made of; ``known`` are names that checks read. Bad rows have a column that says why."""
    prepare_process()
    _check_names(reading.mapping, known)
    try:
        paths = [source] if isinstance(source, str | Path) else source
        if isinstance(paths, list | tuple) and paths and all(isinstance(one, str | Path) for one in paths):
            return _open_paths([str(one) for one in paths], reading)
        return _open_object(source, reading)
    except OSError as wrong:
        raise InputError(f"{_shown(source, wrong)}: {wrong.strerror or first_line(wrong)}.") from None


def _shown(source: Any, error: OSError) -> str:
    """What an error is about: the file that it names, else what was to be read."""
    if isinstance(source, list | tuple) and len(source) == 1:
        source = source[0]
    named = error.filename or source
    return redacted(shown_path(named)) if isinstance(named, str | bytes | Path) else "The rollouts"


def _arranged(
    found: Rollouts, chosen: Chosen, mapping: Mapping[str, str], reshaped: Sequence[Any] | None = None
) -> Rollouts:
    """Records with the columns that Assay reads.

    Args:
        found: The records.
        chosen: How they are read.
        mapping: What the caller renames.
        reshaped: Outlines of the records, where they are rollouts already.
    """
    for name in (*found.frame.collect_schema(), *mapping):
        if name.startswith(HIDDEN) and not (name == BAD and (reshaped is not None or found.bad)):
            raise InputError(
                f"There is a column `{name}`; names that begin with `{HIDDEN}` are reserved.", "Rename it."
            )
    layout = chosen.layout
    if layout is None:
        found = found.then(partial(rename, mapping=mapping)) if mapping else found
    elif reshaped is not None:
        layout.check(found.frame.collect_schema(), merged(reshaped))
        found = found.then(layout.completed)
    else:
        found = found.then(layout.frame)
    if not (said := chosen.told(found.frame.collect_schema().names())):
        return found
    _logger.info("%s: %s", ", ".join(one.name for one in found.inputs[:3]), said)
    counted = layout is None or layout.keeps_rows
    inputs = [replace(one, read_as=said, rows=one.rows if counted else None) for one in found.inputs]
    return replace(found, inputs=tuple(inputs), notes=(*found.notes, said))


def _open_object(source: Any, reading: Reading) -> Rollouts:
    """What is in memory."""
    name, mapping = library_of(source), reading.mapping
    preset = NONE if reading.preset is None else reading.preset
    if isinstance(source, list | tuple):
        seen = Seen(name, "jsonl", lambda: [row for row in source[:_LOOKED_AT] if isinstance(row, Mapping)])
        chosen = choose([seen], preset, mapping)
        reading = chosen.reading(reading, "jsonl")
        rows = source if reading.reshape is None else [row for record in source for row in reading.reshape(record)]
        frame = from_rows(rows, reading.mapping)
        outlines = None if reading.reshape is None else seen.outlines
        return _arranged(Rollouts(frame.lazy(), (InputFile(name, rows=frame.height),)), chosen, mapping, outlines)
    if isinstance(source, pl.LazyFrame):
        found = Rollouts(source, (InputFile(name),))
    else:
        frame = table_of(source, mapping)
        found = Rollouts(frame.lazy(), (InputFile(name, rows=frame.height),))
    return _arranged(found, choose([Seen(name, "ipc", frame=lambda: found.frame)], preset, mapping), mapping)


def _open_paths(paths: list[str], reading: Reading) -> Rollouts:
    if "-" in paths:
        if len(paths) > 1:
            raise InputError("Standard input (-) cannot be mixed with files.")
        return _open_stdin(reading)
    if any(_is_stream(path) for path in paths):
        return _open_streams(paths, reading)
    found: list[Path | Remote] = []
    for path in paths:
        found += Remote(path, reading.storage_options).expand() if is_url(path) else expand(regular(Path(path)))
    seen: set[Path | str] = set()
    for one in found:
        if isinstance(one, Path) and not _is_utf8(one):
            hint = "Rename it, or read it through a link."
            raise InputError(f"{shown_path(one)}: the engine opens no name that is not UTF-8.", hint)
        real = one.url if isinstance(one, Remote) else one.resolve()
        if real in seen:
            shown = one.shown if isinstance(one, Remote) else shown_path(one)
            raise InputError(f"{shown} is named twice.", "Its rollouts would be scored twice.")
        seen.add(real)
    return _open_files(found, reading)


def _open_files(sources: Sequence[Path | Remote], given: Reading, names: Mapping[Path, str] | None = None) -> Rollouts:
    """Files and URLs; ``names`` are those of copies."""
    near, skipped = _near(sources, given)
    looked = [see_remote(one, given) if isinstance(one, RemoteFile) else see(one, given) for one in near]
    chosen = choose(looked, given.preset, given.mapping)
    reading = chosen.reading(given, looked[0].kind)
    read = as_one(_opened(near, reading, given, names or {}), skipped, given.memory_limit)
    check_bad_rows(read.files, given)
    notes = [note for file in read.files for note in file.notes]
    notes += [f"left out: {why}" for _, why in read.skipped]
    left = [InputFile(name, rows=0, skipped=why) for name, why in read.skipped]
    inputs = [_input(file, (names or {}).get(file.path, "")) for file in read.files]
    found = Rollouts(read.scan(), (*inputs, *left), read, notes=tuple(notes))
    outlines = None if reading.reshape is None else [outlined for one in looked for outlined in one.outlines]
    return _arranged(found, chosen, given.mapping, outlines)


def _near(sources: Sequence[Path | Remote], reading: Reading) -> tuple[list[Path | RemoteFile], list[tuple[str, str]]]:
    """Files as they are, what is far away opened, before it is known how it is read; and what is left out, with why."""
    near: list[Path | RemoteFile] = []
    skipped: list[tuple[str, str]] = []
    for one in sources:
        try:
            if reading.skip_bad_files and isinstance(one, Path):
                opened([one], _said(reading, format_of(one)))
            near.append(one.open(_said(reading, one.kind)) if isinstance(one, Remote) else one)
        except InputError as wrong:
            skipped.append((one.shown if isinstance(one, Remote) else path_text(one), wrong.fact))
            if not reading.skip_bad_files or len(skipped) == len(sources):
                raise
    return near, skipped


def _said(reading: Reading, kind: str) -> Reading:
    """How a file is read, as far as the caller says it: a preset that was named may mean another completion than the file's."""
    if reading.preset is None:
        return reading
    return choose([Seen("", kind)], reading.preset, reading.mapping).reading(reading, kind)


def _opened(
    near: Sequence[Path | RemoteFile], reading: Reading, given: Reading, names: Mapping[Path, str]
) -> list[File]:
    """The files in order, each looked through."""
    if names:
        return list(open_lines(list(names), reading, list(names.values())))
    here = iter(opened([one for one in near if isinstance(one, Path)], reading))
    far = (one if reading == given else one.again(reading) for one in near if isinstance(one, RemoteFile))
    return [next(here) if isinstance(one, Path) else next(far) for one in near]


def _input(file: File, name: str) -> InputFile:
    known = rows_in_all(unit.rows for unit in file.units)
    if isinstance(file, RemoteFile):
        return InputFile(file.name, rows=known)
    there = file.path.stat()
    return InputFile(name or path_text(file.path), there.st_size, known, None if name else there.st_mtime_ns)


def unchanged(inputs: Iterable[InputFile]) -> None:
    """Find out whether files are as they were when the run looked at them first.

    Raises:
        InputError: One has been written to, or is gone.
    """
    for one in inputs:
        if one.modified is None:
            continue
        try:
            there = path_of(one.name).stat()
        except OSError as wrong:
            raise InputError(f"{shown_path(one.name)}: {wrong.strerror}, while it was read.", _ANEW) from None
        if (there.st_size, there.st_mtime_ns) != (one.size, one.modified):
            raise InputError(f"{shown_path(one.name)}: changed while it was read.", _ANEW)


_ANEW = "Score it when nothing writes to it any more."


def _open_stdin(reading: Reading) -> Rollouts:
    """JSON lines, set down in a file so that they are read as any other."""
    stream = getattr(sys.stdin, "buffer", None)
    if stream is None:
        why = "is closed" if sys.stdin is None else "gives no bytes here"
        raise InputError(f"Standard input {why}.", "Pipe JSON lines into it, or name a file.")
    path = spool(stream, "standard input")
    found = _open_files([path], reading, {path: "standard input"})
    return replace(found, inputs=tuple(replace(one, name="-") for one in found.inputs))


def _is_utf8(path: Path) -> bool:
    try:
        engine_path(path)
    except UnicodeDecodeError:
        return False
    return True


def _is_stream(path: str) -> bool:
    return not is_url(path) and is_stream(Path(path))


def _open_streams(paths: Sequence[str], reading: Reading) -> Rollouts:
    """JSON lines of pipes, as those of standard input."""
    if not all(map(_is_stream, paths)):
        raise InputError("Pipes cannot be mixed with files.", "Write what they give to files first.")
    if len(set(paths)) < len(paths):
        raise InputError("A pipe is named twice.", "It can be read once.")
    names: dict[Path, str] = {}
    for path in paths:
        with open_input(Path(path)) as stream:
            names[spool(stream, shown_path(path))] = path_text(path)
    return _open_files(list(names), reading, names)


def _check_names(mapping: Mapping[str, str], known: Iterable[str]) -> None:
    """Find a name that is nearly one that Assay reads."""
    for name, column in mapping.items():
        if name not in (*_READ, *known) and (near := did_you_mean(name, (*_READ, *known), cutoff=0.8)):
            raise ColumnsError(f"--map {name}={column}: Assay reads no column `{name}`.", near)


def rename(frame: pl.LazyFrame, mapping: Mapping[str, str]) -> pl.LazyFrame:
    """Give columns the names that Assay reads, or others; a column that had such a name gives way.

    Args:
        frame: The rollouts.
        mapping: The name to give, and the name in the frame.

    Raises:
        ColumnsError: A column to rename is not there.
    """
    there = frame.collect_schema().names()
    for name, column in mapping.items():
        if column not in there:
            hint = did_you_mean(column, there) or f"There are: {listed(not_hidden(there))}."
            raise ColumnsError(f"--map {name}={column}: the rollouts have no column `{column}`.", hint)
    named = frame.with_columns(exactly(column).alias(name) for name, column in mapping.items())
    return named.drop(cs.by_name([column for column in set(mapping.values()) if column not in mapping]))
