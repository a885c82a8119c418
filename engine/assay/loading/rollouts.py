"""Open rollouts from any source as one lazy frame with canonical column names."""

import logging
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Unpack

import polars as pl
import polars.selectors as cs

from assay.errors import ColumnsError, InputError, did_you_mean, listed, path_text, printable, shown_path
from assay.expressions.completion import completion_source, completions_hint
from assay.expressions.shared_columns import exactly, not_hidden
from assay.frozen import frozen
from assay.loading.bad_rows import check_bad_rows
from assay.loading.folders import InFolder, expand, in_folders
from assay.loading.formats.documents import form_of
from assay.loading.formats.files import ENGINE_ERRORS, LINES, Cut, Files, combined, first_line, format_of, open_each
from assay.loading.formats.reading import BadRow, File, Reading, changed, reading_of, rows_in_all
from assay.loading.formats.remote import Remote, RemoteFile, is_url
from assay.loading.presets.preset import FINISH_REASON, NONE, Preset, PresetSource, laid_out, load_preset, matching
from assay.loading.presets.record_layout import Layout
from assay.names import BAD, COMPLETION, HIDDEN
from assay.options import ReadingOptions, documented, settle
from assay.system.processes import prepare_process
from assay.system.redaction import redacted
from assay.system.special_files import engine_path, is_stream, open_input, path_of, regular
from assay.system.spool import spool
from assay.values.column import STRUCTURED
from assay.values.paths import is_path, merged, outline, outline_of
from assay.values.rows import from_rows, library_of, table_of


@frozen
class Facts:
    """What can be told of a source before it is chosen how to read it."""

    name: str
    kind: str
    peek: Callable[[], pl.LazyFrame | Sequence[Mapping[str, Any]]] = tuple
    path: Path | None = None
    remote: Remote | None = None
    file: File | None = None

    @cached_property
    def _seen(self) -> pl.LazyFrame | Sequence[Mapping[str, Any]]:
        return self.peek()

    @cached_property
    def outlines(self) -> tuple[Any, ...]:
        """The outline of each of the first records, or one for all. A file that cannot be read fails later, on opening."""
        try:
            if isinstance(self._seen, pl.LazyFrame):
                return (outline_of(pl.Struct(self._seen.collect_schema())),)
            return tuple(map(outline, self._seen))
        except (*ENGINE_ERRORS, InputError):
            return ()

    def first_of(self, column: str) -> list[Any]:
        """Return a list with the first value of a column, empty if there is none."""
        frame = self._seen
        if not isinstance(frame, pl.LazyFrame):
            return [record[column] for record in frame if record.get(column) is not None][:1]
        if column not in frame.collect_schema():
            return []
        try:
            return frame.select(exactly(column)).drop_nulls().head(1).collect().to_series().to_list()
        except (*ENGINE_ERRORS, InputError):
            return []


def probe(source: Path | Remote, reading: Reading) -> Facts:
    """Return what can be told of a file, or of a URL, which is copied or opened for that."""
    remote = source if isinstance(source, Remote) else None
    if remote is not None and remote.kind.scan_url is not None:
        file = remote.open()
        return Facts(file.name, remote.kind.name, file.scan, None, remote, file)
    path = source.copy() if isinstance(source, Remote) else source
    kind = format_of(path)

    def peek() -> pl.LazyFrame | Sequence[Mapping[str, Any]]:
        if kind.has_types:
            return kind.open([(path, str(path))], replace(reading, verify_checksums=False))[0].scan()
        return () if kind.records is None else kind.records(path, reading)

    return Facts(str(path) if remote is None else remote.shown, kind.name, peek, path, remote)


@frozen
class PresetChoice:
    """The chosen way to read files.

    Attributes:
        name: Name of the preset; ``""`` for none.
        end: Column that gets the reason why a rollout ended, if the preset says where that is.
    """

    layout: Layout | None = None
    name: str = ""
    how: str = ""
    end: str = ""

    def reading(self, reading: Reading, kind: str) -> Reading:
        """Return the options for a file of some format, before the layout is applied; with ``reshape``, its rows are rollouts."""
        if self.layout is None:
            return reading
        if self.layout.is_flat:
            return replace(reading, mapping=self.layout.renamed)
        return replace(reading, mapping={}, reshape=self.layout.rows if kind == LINES.name else None)

    def description(self, columns: Sequence[str]) -> str:
        """Describe the choice for the summary and the provenance; ``""`` if there is nothing to say."""
        if not self.name and self.layout is None:
            return ""
        fields = () if self.layout is None else self.layout.fields
        shown = [field for field in fields if field.name in columns and field.name != self.end]
        parts = [str(field) for field in shown if not field.stays]
        if self.layout is not None and self.layout.each is not None:
            parts.append(f"a row for each element of `{self.layout.each}`")
        if self.layout is not None and self.layout.only is not None:
            column, values = self.layout.only
            parts.append(f"only where {column} is {' or '.join(map(str, values))}")
        prefix = f"read as {self.name} ({self.how})" if self.name else "read by --map"
        return f"{prefix}: {', '.join(parts) or 'the columns have the names that Assay reads'}"


def choose(
    sources: Sequence[Facts], preset: PresetSource | None, mapping: Mapping[str, str], end: str = ""
) -> PresetChoice:
    """Choose how to read sources: as the preset that the caller names, else as the one whose signature all of them match."""
    named = None if preset is None or preset == NONE else load_preset(preset)
    chosen = _detected(sources) if preset is None else named
    has_paths = any(map(is_path, mapping.values()))
    if chosen is None:
        return PresetChoice(laid_out(None, mapping)) if has_paths else PresetChoice()
    how = "detected" if named is None else "--preset"
    if chosen.changes_nothing and not has_paths:
        return PresetChoice(None, chosen.name, how)
    is_sure = all(chosen.signature.fits(facts.outlines) for facts in sources)
    column = chosen.first_only
    first = [value for facts in sources for value in facts.first_of(column)] if column is not None else []
    layout = laid_out(chosen, mapping, sure=is_sure, first=[*dict.fromkeys(first)], detected=named is None, end=end)
    kinds = {facts.kind for facts in sources}
    if len(kinds) > 1 and not layout.is_flat:
        raise InputError(
            f"The preset `{chosen.name}` cannot read {' and '.join(sorted(kinds))} files in one run.",
            "Score them separately.",
        )
    has_end = any(field.name == end for field in layout.fields) and FINISH_REASON not in chosen.fields
    return PresetChoice(layout, chosen.name, how, end if has_end else "")


def _detected(sources: Sequence[Facts]) -> Preset | None:
    presets = [_fitting(facts) for facts in sources]
    if all(preset is None or preset.changes_nothing for preset in presets):
        return presets[0] if len({preset and preset.name for preset in presets}) == 1 else None
    other = next((index for index, preset in enumerate(presets) if preset != presets[0]), None)
    if other is not None:
        names = [
            f"{shown_path(sources[index].name)} is {'not recognised' if (preset := presets[index]) is None else preset.name}"
            for index in (0, other)
        ]
        raise InputError(
            f"The files have different formats: {', '.join(names)}.",
            "Score them separately, or name one with --preset NAME.",
        )
    return presets[0]


def _fitting(facts: Facts) -> Preset | None:
    presets = matching(facts.outlines, facts.kind)
    if len(presets) > 1 and not all(preset.changes_nothing for preset in presets):
        names = [preset.name for preset in presets]
        ways = [f"--preset {name}" for name in (*names, NONE)]
        raise InputError(
            f"{shown_path(facts.name)} matches several presets: {', '.join(names)}.",
            f"Choose one: {' | '.join(ways)} (as it is).",
        )
    return presets[0] if len(presets) == 1 else None


_logger = logging.getLogger(__name__)

_READ = (*("completion", "prompt", "task_id", "answer", "target", *STRUCTURED), *("fn_name", "expected", "params"))
"""Columns that something in Assay reads."""

_PREVIEW_ROWS = 100
"""Rows in memory that detection looks at."""


@frozen
class InputFile:
    """One input of a run, as the provenance names it.

    Attributes:
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


@frozen
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
    known = (*_READ, *reading.known)
    for name, column in reading.mapping.items():
        if name not in known and (guess := did_you_mean(name, known, cutoff=0.8)):  # probably a typo
            raise ColumnsError(f"--map {name}={column}: Assay reads no column `{name}`.", guess)
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
    records: Rollouts,
    chosen: PresetChoice,
    mapping: Mapping[str, str],
    reshaped: Sequence[Any] | None = None,
    ends: Collection[str] = (),
) -> Rollouts:
    for name in (*records.frame.collect_schema(), *mapping):
        is_ours = (name == BAD and (reshaped is not None or records.bad)) or name in ends
        if name.startswith(HIDDEN) and not is_ours:
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
        first = [row for row in source[:_PREVIEW_ROWS] if isinstance(row, Mapping)]
        facts = Facts(name, LINES.name, lambda: first)
        chosen = choose([facts], preset, mapping, reading.end(FINISH_REASON))
        reading = chosen.reading(reading, LINES.name)
        rows = source if reading.reshape is None else [row for record in source for row in reading.reshape(record)]
        frame = from_rows(rows, reading.mapping, reading.exact)
        outlines = None if reading.reshape is None else facts.outlines
        return _arranged(
            Rollouts(frame.lazy(), (InputFile(name, rows=frame.height),)), chosen, mapping, outlines, [chosen.end]
        )
    if isinstance(source, pl.LazyFrame):
        rollouts = Rollouts(source, (InputFile(name),))
    else:
        frame = table_of(source, mapping, reading.exact)
        rollouts = Rollouts(frame.lazy(), (InputFile(name, rows=frame.height),))
    chosen = choose([Facts(name, "ipc", lambda: rollouts.frame)], preset, mapping, reading.end(FINISH_REASON))
    return _arranged(rollouts, chosen, mapping)


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
    sources.sort(key=lambda source: places.get(_name(source), len(places)))
    known: set[Path | str] = set()
    for source in sources:
        if isinstance(source, Path):
            try:
                engine_path(source)
            except UnicodeDecodeError:
                fact = f"{shown_path(source)}: Polars cannot open a file whose name is not UTF-8."
                raise InputError(fact, "Rename it, or open it through a link.") from None
        real = source.url if isinstance(source, Remote) else source.resolve()
        if real in known:
            shown = source.shown if isinstance(source, Remote) else shown_path(source)
            raise InputError(f"{shown} is listed twice.", "Its rollouts would be scored twice.")
        known.add(real)
    rollouts = _open_files(sources, reading)
    return replace(rollouts, notes=(*rollouts.notes, *notes))


def _name(source: Path | Remote) -> str:
    return source.shown if isinstance(source, Remote) else path_text(source)


def _open_files(
    sources: Sequence[Path | Remote], reading: Reading, names: Mapping[Path, str] | None = None
) -> Rollouts:
    names = names or {}
    probed, skipped = _probe_all(sources, reading)
    choice = choose(probed, reading.preset, reading.mapping, reading.end(FINISH_REASON))
    chosen = choice.reading(reading, probed[0].kind)
    fresh = [facts.path for facts in probed if facts.path and not (facts.file or facts.remote)]
    local = iter(open_each(fresh, chosen, names))
    opened = in_folders([_opened(facts, chosen) or next(local) for facts in probed], names)
    exact = [chosen.mapping.get(name, name) for name in chosen.exact]
    files = combined(opened, skipped, reading.memory_limit, exact)
    check_bad_rows(files.files, reading)
    notes = [note for file in files.files for note in file.notes]
    notes += [f"skipped: {reason}" for _, reason in files.skipped]
    of_folders = dict.fromkeys(name for file in opened if isinstance(file, InFolder) for name, *_ in file.columns)
    notes += [f"columns from the names of folders: {', '.join(map(printable, of_folders))}"] if of_folders else []
    inputs = [_input(file, names.get(file.path, "")) for file in files.files]
    inputs += [InputFile(name, rows=0, skipped=reason) for name, reason in files.skipped]
    rollouts = Rollouts(files.scan(), tuple(inputs), files, notes=tuple(notes))
    outlines = None if chosen.reshape is None else [outline for facts in probed for outline in facts.outlines]
    is_log = all(form_of(facts.path) == ".eval" for facts in probed if facts.path is not None)
    ends = [choice.end, *([reading.end("stop_reason")] if is_log else [])]
    return _arranged(rollouts, choice, reading.mapping, outlines, ends)


def _probe_all(sources: Sequence[Path | Remote], reading: Reading) -> tuple[list[Facts], list[tuple[str, str]]]:
    probed: list[Facts] = []
    skipped: list[tuple[str, str]] = []
    for source in sources:
        try:
            facts = probe(source, reading)
            if reading.skip_bad_files and facts.path is not None:
                # as far as the caller names a preset, it may take the completion from elsewhere
                named = (
                    PresetChoice()
                    if reading.preset is None
                    else choose([Facts("", facts.kind)], reading.preset, reading.mapping)
                )
                as_named = named.reading(reading, facts.kind)
                opened = _opened(facts, as_named) or open_each([facts.path], as_named)[0]
                # files of lines are opened again, because all settle the types of their columns together
                facts = facts if facts.kind == LINES.name else replace(facts, file=opened)
            probed.append(facts)
        except InputError as error:
            skipped.append((_name(source), error.fact))
            if not reading.skip_bad_files or len(skipped) == len(sources):
                raise
    return probed, skipped


def _opened(facts: Facts, reading: Reading) -> File | None:
    if facts.file is None and facts.remote and facts.path:
        return facts.remote.open_copy(facts.path, reading)
    return facts.file


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
