"""Open rollouts from any source as one lazy frame with canonical column names."""

import logging
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Unpack

import polars as pl
import polars.selectors as cs

from assay.errors import ColumnsError, InputError, did_you_mean, listed, path_text, printable, shown_path
from assay.expressions.completion import completion_source, completions_hint
from assay.expressions.lane import exactly, not_hidden
from assay.loading.bad_rows import check_bad_rows
from assay.loading.detection import Choice, Preview, choose, preview, preview_remote
from assay.loading.documents.document import form_of
from assay.loading.folders import InFolder, expand, in_folders
from assay.loading.formats.files import Cut, Files, combined
from assay.loading.formats.format import LINES, first_line, format_of, open_each
from assay.loading.formats.reading import BadRow, File, Reading, changed, reading_of, rows_in_all
from assay.loading.formats.remote import Remote, RemoteFile, is_url
from assay.loading.presets.preset import NONE
from assay.names import BAD, COMPLETION, HIDDEN
from assay.options import ReadingOptions, documented, settle
from assay.system.processes import prepare_process
from assay.system.redaction import redacted
from assay.system.special_files import engine_path, is_stream, open_input, path_of, regular
from assay.system.spool import spool
from assay.values.column import STRUCTURED
from assay.values.paths import merged
from assay.values.rows import from_rows, library_of, table_of

_logger = logging.getLogger(__name__)

_READ = (
    *("completion", "prompt", "task_id", "answer", "target", *STRUCTURED),
    *("fn_name", "expected", "params"),
)
"""Columns that something in Assay reads."""

_PREVIEW_ROWS = 100
"""Rows in memory that detection looks at."""


@dataclass(frozen=True)
class InputFile:
    """One input of a run, as the provenance names it.

    Attributes:
        size: Bytes, for a file.
        modified: Time of the last modification of a file, in nanoseconds since 1970.
        read_as: The preset and its mapping from values to columns; None for a file that was read as it is.
        sha256: SHA-256 of a file's bytes, if the run is sealed.
    """

    name: str
    size: int | None = None
    rows: int | None = None
    modified: int | None = None
    read_as: str | None = None
    skipped: str | None = None
    sha256: str | None = None


Step = Callable[[pl.LazyFrame], pl.LazyFrame]
"""A transformation of rollouts before they are scored; it can be pickled."""


@dataclass(frozen=True)
class Rollouts:
    """A lazy frame with its inputs and notes for the user."""

    frame: pl.LazyFrame
    inputs: tuple[InputFile, ...]
    read: Files | None = None
    steps: tuple[Step, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def files(self) -> tuple[File, ...]:
        """The files that the rollouts come from, if any."""
        return self.read.files if self.read else ()

    @property
    def bad(self) -> tuple[BadRow, ...]:
        """The malformed rows."""
        return tuple(row for file in self.files for row in file.bad)

    @property
    def rows(self) -> int | None:
        """Rows in total, if all inputs know theirs."""
        return rows_in_all(source.rows for source in self.inputs)

    def then(self, step: Step, *notes: str) -> "Rollouts":
        """Return these rollouts after one more step."""
        return replace(self, frame=step(self.frame), steps=(*self.steps, step), notes=(*self.notes, *notes))


def part_of(read: Files, steps: Iterable[Step], cut: Cut) -> pl.LazyFrame:
    """Return the rollouts of some units of the files, with the columns of all."""
    frame = read.scan(cut)
    for step in steps:
        frame = step(frame)
    return frame


@documented(ReadingOptions)
def scan(source: Any, **options: Unpack[ReadingOptions]) -> pl.LazyFrame:
    """Rollouts as a lazy frame; nothing is read before it is needed, but that JSONL, JSON and workbooks are looked through once.

    Args:
        source: A path, glob or folder of parquet, JSONL, JSON, Arrow IPC, CSV or Excel files, a URL of one (``s3://``, ``gs://``, ``az://``,
            ``hf://``, ``https://``), or a list of these; ``-`` for JSONL on standard input; a Polars frame; a pyarrow Table, RecordBatch or RecordBatchReader, or anything with
            ``__arrow_c_stream__`` (validated in full); a Hugging Face ``Dataset``; a list of mappings; a mapping of columns;
            ``GenerateInputs`` with completions, or ``GenerateOutputs``.
            Every column of a CSV is text. In JSONL, JSON, workbooks and mappings ``metadata`` and ``expected_output_schema`` become JSON text.
        options: How the rollouts are read.

    Returns:
        One row for each rollout, in order.

    Raises:
        InputError: The source cannot be read, or fits several presets.
        BadRowsError: More than ``max_bad_rows`` lines are malformed.
        UsageError: There is no such preset, or a path is not valid.
        ColumnsError: A column to rename is missing, or its new name is probably a typo of a column that Assay reads.
    """
    frame = open_rollouts(source, reading_of(settle(ReadingOptions, options, "scan"))).frame
    return frame.drop(cs.by_name(BAD, require_all=False))


def open_rollouts(source: Any, reading: Reading) -> Rollouts:
    """``scan`` with inputs and notes; a hidden column says why a bad row is bad."""
    prepare_process()
    _check_names(reading.mapping, reading.known)
    try:
        paths = [source] if isinstance(source, str | Path) else source
        if isinstance(paths, list | tuple) and paths and all(isinstance(path, str | Path) for path in paths):
            return _open_paths([str(path) for path in paths], reading)
        return _open_object(source, reading)
    except OSError as error:
        raise InputError(f"{_shown(source, error)}: {error.strerror or first_line(error)}.") from None


def _shown(source: Any, error: OSError) -> str:
    if isinstance(source, list | tuple) and len(source) == 1:
        source = source[0]
    subject = error.filename or source
    return redacted(shown_path(subject)) if isinstance(subject, str | bytes | Path) else "The rollouts"


def _arranged(
    records: Rollouts, chosen: Choice, mapping: Mapping[str, str], reshaped: Sequence[Any] | None = None
) -> Rollouts:
    for name in (*records.frame.collect_schema(), *mapping):
        if name.startswith(HIDDEN) and not (name == BAD and (reshaped is not None or records.bad)):
            raise InputError(
                f"The column name `{name}` is reserved, as all that begin with `{HIDDEN}`.", "Rename the column."
            )
    layout = chosen.layout
    if layout is None:
        records = records.then(partial(rename, mapping=mapping)) if mapping else records
    elif reshaped is not None:
        layout.check(records.frame.collect_schema(), merged(reshaped))
        records = records.then(layout.completed)
    else:
        records = records.then(layout.frame)
    if not (description := chosen.description(records.frame.collect_schema().names())):
        return records
    _logger.info("%s: %s", ", ".join(source.name for source in records.inputs[:3]), description)
    keeps_rows = layout is None or layout.keeps_rows
    inputs = [
        replace(source, read_as=description, rows=source.rows if keeps_rows else None) for source in records.inputs
    ]
    return replace(records, inputs=tuple(inputs), notes=(*records.notes, description))


def _open_object(source: Any, reading: Reading) -> Rollouts:
    name, mapping = library_of(source), reading.mapping
    preset = NONE if reading.preset is None else reading.preset
    if isinstance(source, list | tuple):
        preview_of_rows = Preview(
            name, LINES.name, lambda: [row for row in source[:_PREVIEW_ROWS] if isinstance(row, Mapping)]
        )
        chosen = choose([preview_of_rows], preset, mapping)
        reading = chosen.reading(reading, LINES.name)
        rows = source if reading.reshape is None else [row for record in source for row in reading.reshape(record)]
        frame = from_rows(rows, reading.mapping, reading.exact)
        outlines = None if reading.reshape is None else preview_of_rows.outlines
        return _arranged(Rollouts(frame.lazy(), (InputFile(name, rows=frame.height),)), chosen, mapping, outlines)
    if isinstance(source, pl.LazyFrame):
        rollouts = Rollouts(source, (InputFile(name),))
    else:
        frame = table_of(source, mapping, reading.exact)
        rollouts = Rollouts(frame.lazy(), (InputFile(name, rows=frame.height),))
    return _arranged(rollouts, choose([Preview(name, "ipc", frame=lambda: rollouts.frame)], preset, mapping), mapping)


def _open_paths(paths: list[str], reading: Reading) -> Rollouts:
    if "-" in paths:
        if len(paths) > 1:
            raise InputError("Standard input (-) cannot be combined with files.")
        return _open_stdin(reading)
    if any(_is_stream(path) for path in paths):
        return _open_streams(paths, reading)
    sources, notes = list[Path | Remote](), list[str]()
    for path in paths:
        if is_url(path):
            sources += Remote(path, reading.storage_options).expand()
            continue
        files, left_out = expand(regular(Path(path)))
        sources, notes = [*sources, *files], [*notes, *left_out]
    places = {name: place for place, name in enumerate(reading.first)}
    sources.sort(
        key=lambda source: places.get(source.shown if isinstance(source, Remote) else path_text(source), len(places))
    )
    known: set[Path | str] = set()
    for source in sources:
        if isinstance(source, Path) and not _is_utf8(source):
            hint = "Rename it, or open it through a link."
            raise InputError(f"{shown_path(source)}: Polars cannot open a file whose name is not UTF-8.", hint)
        real = source.url if isinstance(source, Remote) else source.resolve()
        if real in known:
            shown = source.shown if isinstance(source, Remote) else shown_path(source)
            raise InputError(f"{shown} is listed twice.", "Its rollouts would be scored twice.")
        known.add(real)
    rollouts = _open_files(sources, reading)
    return replace(rollouts, notes=(*rollouts.notes, *notes))


def _open_files(
    sources: Sequence[Path | Remote], original: Reading, names: Mapping[Path, str] | None = None
) -> Rollouts:
    """Open files and URLs; ``names`` maps copies to their original names."""
    local, skipped, tried = _open_remotes(sources, original)
    previews = [
        preview_remote(source, original) if isinstance(source, RemoteFile) else preview(source, original)
        for source in local
    ]
    chosen = choose(previews, original.preset, original.mapping)
    reading = chosen.reading(original, previews[0].kind)
    opened = in_folders(_open_all(local, reading, original, names or {}, tried), names or {})
    exact = [reading.mapping.get(name, name) for name in reading.exact]
    files = combined(opened, skipped, original.memory_limit, exact)
    check_bad_rows(files.files, original)
    notes = [note for file in files.files for note in file.notes]
    notes += [f"skipped: {reason}" for _, reason in files.skipped]
    of_folders = dict.fromkeys(name for file in opened if isinstance(file, InFolder) for name, *_ in file.columns)
    notes += [f"columns from the names of folders: {', '.join(map(printable, of_folders))}"] if of_folders else []
    left_out = [InputFile(name, rows=0, skipped=reason) for name, reason in files.skipped]
    inputs = [_input(file, (names or {}).get(file.path, "")) for file in files.files]
    rollouts = Rollouts(files.scan(), (*inputs, *left_out), files, notes=tuple(notes))
    outlines = None if reading.reshape is None else [outline for source in previews for outline in source.outlines]
    return _arranged(rollouts, chosen, original.mapping, outlines)


def _open_remotes(
    sources: Sequence[Path | Remote], reading: Reading
) -> tuple[list[Path | RemoteFile], list[tuple[str, str]], dict[Path, tuple[File, Reading]]]:
    local: list[Path | RemoteFile] = []
    tried: dict[Path, tuple[File, Reading]] = {}
    skipped: list[tuple[str, str]] = []
    for source in sources:
        try:
            if reading.skip_bad_files and isinstance(source, Path):
                named = _named_reading(reading, format_of(source).name)
                tried[source] = open_each([source], named)[0], named
            local.append(
                source.open(_named_reading(reading, source.kind.name)) if isinstance(source, Remote) else source
            )
        except InputError as error:
            skipped.append((source.shown if isinstance(source, Remote) else path_text(source), error.fact))
            if not reading.skip_bad_files or len(skipped) == len(sources):
                raise
    return local, skipped, tried


def _named_reading(reading: Reading, kind: str) -> Reading:
    if reading.preset is None:
        return reading
    return choose([Preview("", kind)], reading.preset, reading.mapping).reading(reading, kind)


def _open_all(
    local: Sequence[Path | RemoteFile],
    reading: Reading,
    original: Reading,
    names: Mapping[Path, str],
    tried: Mapping[Path, tuple[File, Reading]],
) -> list[File]:
    """Return the opened files, in order; those that were tried are not opened again, unless they are read differently."""
    if names:
        return open_each(list(names), reading, names)
    paths = [source for source in local if isinstance(source, Path)]
    # several files of JSON lines settle the types of their columns together
    alone = len(paths) == 1
    opened = {
        path: file
        for path, (file, named) in tried.items()
        if named == reading and (alone or format_of(path) is not LINES)
    }
    opened |= zip(rest := [path for path in paths if path not in opened], open_each(rest, reading), strict=True)
    local_files = iter([opened[path] for path in paths])
    remote_files = (
        source if reading == original else source.reopen(reading) for source in local if isinstance(source, RemoteFile)
    )
    return [next(local_files) if isinstance(source, Path) else next(remote_files) for source in local]


def _input(file: File, name: str) -> InputFile:
    rows = rows_in_all(unit.rows for unit in file.units)
    if isinstance(file, RemoteFile):
        return InputFile(file.name, rows=rows)
    status = file.path.stat()
    return InputFile(name or path_text(file.path), status.st_size, rows, None if name else status.st_mtime_ns)


def unchanged(inputs: Iterable[InputFile]) -> None:
    """Check that files have not changed since the run opened them."""
    for source in inputs:
        if source.modified is None:
            continue
        try:
            status = path_of(source.name).stat()
        except OSError as error:
            raise changed(source.name, f"{error.strerror},") from None
        if (status.st_size, status.st_mtime_ns) != (source.size, source.modified):
            raise changed(source.name)


def _open_stdin(reading: Reading) -> Rollouts:
    stream = getattr(sys.stdin, "buffer", None)
    if stream is None:
        why = "is closed" if sys.stdin is None else "gives no bytes here"
        raise InputError(f"Standard input {why}.", "Pipe JSON lines into it, or name a file.")
    path = spool(stream, "standard input")
    rollouts = _open_files([path], reading, {path: "standard input"})
    return replace(rollouts, inputs=tuple(replace(file, name="-") for file in rollouts.inputs))


def _is_utf8(path: Path) -> bool:
    try:
        engine_path(path)
    except UnicodeDecodeError:
        return False
    return True


def _is_stream(path: str) -> bool:
    return not is_url(path) and is_stream(Path(path))


def _open_streams(paths: Sequence[str], reading: Reading) -> Rollouts:
    if not all(map(_is_stream, paths)):
        raise InputError("Pipes cannot be combined with files.", "Write their output to files first.")
    if len(set(paths)) < len(paths):
        raise InputError("A pipe is listed twice.", "It can be read only once.")
    names: dict[Path, str] = {}
    for path in paths:
        with open_input(Path(path)) as stream:
            names[spool(stream, shown_path(path), form_of(Path(path)) or LINES.suffixes[0])] = path_text(path)
    return _open_files(list(names), reading, names)


def _check_names(mapping: Mapping[str, str], known: Iterable[str]) -> None:
    for name, column in mapping.items():
        if name not in (*_READ, *known) and (guess := did_you_mean(name, (*_READ, *known), cutoff=0.8)):
            raise ColumnsError(f"--map {name}={column}: Assay reads no column `{name}`.", guess)


def rename(frame: pl.LazyFrame, mapping: Mapping[str, str]) -> pl.LazyFrame:
    """Rename columns, replacing any column that already has the new name."""
    schema = frame.collect_schema()
    columns = schema.names()
    for name, column in mapping.items():
        if column not in columns:
            hint = did_you_mean(column, columns) or f"Columns: {listed(not_hidden(columns))}."
            raise ColumnsError(f"--map {name}={column}: the rollouts have no column `{column}`.", hint)
        if name == COMPLETION and completion_source(column, schema[column]) not in ("", column):
            fact = f"--map {name}={column}: `{column}` is a list of completions, {schema[column]}."
            raise ColumnsError(fact, completions_hint(column, schema[column]))
    renamed = frame.with_columns(exactly(column).alias(name) for name, column in mapping.items())
    return renamed.drop(cs.by_name([column for column in set(mapping.values()) if column not in mapping]))
