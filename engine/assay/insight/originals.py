"""What rows of a result were made from: the scored text and other columns, from the result, its inputs, or other files."""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import polars as pl

from assay.errors import SHOWN, AssayError, InputError, counted, shown_path
from assay.expressions.json import NOT_JSON, loads
from assay.expressions.mixed import untyped, without_nulls
from assay.expressions.shared_columns import exactly
from assay.frozen import frozen
from assay.insight.results import ROW, Result, compact
from assay.loading.formats.parquet import ParquetFile
from assay.loading.formats.reading import batches
from assay.loading.rollouts import Rollouts, open_rollouts
from assay.loading.tasks import join_tasks, load_tasks
from assay.names import COMPLETION, HIDDEN, TASK_ID, TEXT
from assay.runs.file_run import recorded_reading
from assay.scoring.in_memory import engine_errors
from assay.writing.documents import cut
from assay.writing.footers import scan_files
from assay.writing.provenance import files_of
from assay.writing.recorded_files import recorded_files

NO_TEXTS = pl.DataFrame(schema={ROW: pl.UInt32, TEXT: pl.String})
NO_SOURCE = "the result does not say what it was made from"
HOW = "name the files that were scored with --rollouts"
"""What people can do where texts cannot be had, for commands with that option."""


def originals(
    result: Result, rows: Sequence[int], columns: Sequence[str] = (), rollouts: Any = None, *, kept: bool = True
) -> tuple[pl.DataFrame, str]:
    """Return the scored texts of some rows, and columns of the rollouts or of their tasks that the result does not have.

    They come from the ``rollouts`` that are named, which must be those that were scored; else from the result itself if it keeps their
    texts, or from the inputs that its provenance names, if they have not changed. Returned are ``ROW``, ``TEXT`` and the columns, in order of
    the row; no rows if the texts cannot be had, and why. Without ``kept``, what the result keeps is not enough.
    """
    if not rows:
        return NO_TEXTS, ""
    if rollouts is not None:
        return _of(result, rows, columns, rollouts, None), ""
    if kept and COMPLETION in result.schema:
        wanted = [name for name in columns if name in result.schema]
        text = result.text_of(result.schema[COMPLETION])
        return some_rows(result, rows, [text, *map(exactly, wanted)]), ""
    sources = files_of(result.provenance)
    if not sources:
        return NO_TEXTS, NO_SOURCE
    try:
        names = recorded_files(result.provenance, "inputs", result.folder, result.name)
        return _of(result, rows, columns, names, sources[0]), ""
    except AssayError as error:
        return NO_TEXTS, error.fact.removesuffix(".")


_MOST_SLICES = 64
"""Runs of rows that are fetched by slices, unless files have fewer row groups: each slice reads half of one, about."""


def some_rows(
    result: Result, rows: Sequence[int], columns: Sequence[Any], opened: Rollouts | None = None
) -> pl.DataFrame:
    """Return ``ROW`` and columns of rows of a result, or of its rollouts; each once, by their numbers."""
    source = result if opened is None else opened
    in_slices = _in_slices(opened) if opened is not None else result.frame if result.has_cheap_slices else None
    wanted = pl.Series(sorted({*rows}), dtype=pl.UInt32)
    runs = pl.DataFrame({"row": wanted}).group_by(wanted - pl.int_range(len(wanted), eager=True), maintain_order=True)
    ends = runs.agg(pl.col("row").first().alias("first"), pl.len()).select("first", "len").rows() if rows else []
    most = min(_MOST_SLICES, sum(len(file.units) for file in source.files)) if source.files else _MOST_SLICES
    if in_slices is None or not 0 < len(ends) <= most:
        return result.collect(_filtered(source.frame, wanted, columns))
    parts = [
        in_slices.slice(first, size).with_row_index(ROW, offset=first).select(ROW, *columns) for first, size in ends
    ]
    # NOTE: Polars would take what the parts share for one scan of all rows
    return result.collect(compact(pl.concat(parts)), optimizations=pl.QueryOptFlags(comm_subplan_elim=False))


def _filtered(frame: pl.LazyFrame, rows: pl.Series, columns: Sequence[Any]) -> pl.LazyFrame:
    return compact(_only(frame.with_row_index(ROW), rows).select(ROW, *columns)).sort(ROW)


def all_texts(result: Result, rollouts: Any = None) -> pl.LazyFrame:
    """Return the scored texts of all rows, ``TEXT``, from where ``originals`` has them; an ``InputError`` if they cannot be had."""
    if rollouts is None and COMPLETION in result.schema:
        return result.frame.select(result.text_of(result.schema[COMPLETION]))
    frame = _opened_of(result, rollouts).frame
    return frame.select(result.text_of(frame.collect_schema()[COMPLETION]))


def bytes_in_footers(result: Result, rollouts: Any = None) -> int | None:
    """Return the bytes of all columns of the rollouts, equal values perhaps once, as footers of parquet files tell; None for others."""
    try:
        opened = _opened_of(result, rollouts)
    except AssayError:  # told when texts are read
        return None
    is_parquet = opened.files and all(isinstance(file, ParquetFile) for file in opened.files)
    return sum(unit.size for file in opened.files for unit in file.units) if is_parquet else None


def _opened_of(result: Result, rollouts: Any) -> Rollouts:
    """Return rollouts, or the unchanged inputs of a result."""
    if rollouts is not None:
        return _opened(result, rollouts, None)
    sources = files_of(result.provenance)
    if not sources:
        raise InputError(NO_SOURCE)
    return _opened(result, recorded_files(result.provenance, "inputs", result.folder, result.name), sources[0])


def _opened(result: Result, rollouts: Any, source: Mapping[str, Any] | None, *, needs_texts: bool = True) -> Rollouts:
    opened = open_rollouts(rollouts, recorded_reading(result.provenance, result.name))
    if source is not None and opened.inputs[0].read_as != source.get("read_as"):
        name = shown_path(str(source["name"]))
        fact = f"{name}: was read in another way then: {source.get('read_as') or 'as it is'}."
        raise InputError(fact, "Score again with --keep +completion.")
    if needs_texts and COMPLETION not in opened.frame.collect_schema():
        raise InputError("The rollouts have no column `completion`.")
    return opened


def beside_rollouts(result: Result, opened: Rollouts) -> Result:
    """Return a result with the columns that it lacks of the rollouts that were scored, whose rows are in the same order."""
    in_slices = _in_slices(opened)
    there = opened.frame if in_slices is None else in_slices
    lacking = [exactly(name) for name in there.collect_schema() if name not in result.schema]
    frame = pl.concat([result.frame, there.select(lacking)], how="horizontal") if lacking else result.frame
    return replace(
        result,
        frame=frame,
        schema=frame.collect_schema(),
        files=(*result.files, *opened.files),  # an error names the file
        has_cheap_slices=result.has_cheap_slices and in_slices is not None,
    )


def _in_slices(opened: Rollouts) -> pl.LazyFrame | None:
    """Return rollouts as a frame of which a few rows can be read without those before them; None if they have none.

    NOTE: a run reads large row groups in pieces, from the first on, and so would each slice of its frame.
    """
    files = [file for file in opened.files if isinstance(file, ParquetFile) and file.is_as_polars_reads]
    if opened.steps or len(files) < len(opened.files):
        return None
    if not files:  # in memory
        return opened.frame
    frame = scan_files([file.path for file in files])
    is_same = all(file.schema == files[0].schema for file in files) and files[0].schema == opened.frame.collect_schema()
    return frame if is_same else None


def _comparable(value: Any) -> Any:
    """Return a value as it is in every form that a file may give it: objects and lists may be JSON text, and lack nulls."""
    value = untyped(value)
    if isinstance(value, str) and value.startswith(("{", "[")):
        parsed = loads(value)
        value = value if parsed is NOT_JSON else parsed
    return without_nulls(value)


def _of(
    result: Result, rows: Sequence[int], columns: Sequence[str], rollouts: Any, source: Mapping[str, Any] | None
) -> pl.DataFrame:
    opened = _opened(result, rollouts, source)
    schema = opened.frame.collect_schema()
    shared = [name for name in result.passed_through if name in schema and name != COMPLETION]
    wanted = [name for name in columns if name in schema and name not in shared]
    may_have_more = source is None or COMPLETION not in result.schema or files_of(result.provenance, "tasks")
    if not may_have_more and {*wanted} <= {*result.schema}:
        raise InputError("The rollouts have no more of these columns than the result.")
    text = result.text_of(schema[COMPLETION])
    texts = some_rows(result, rows, [text, *map(exactly, dict.fromkeys([*shared, *wanted]))], opened)
    kept = some_rows(result, rows, [*map(exactly, shared)])
    both = kept.head(texts.height)
    for name in shared:
        _compare(result, name, both[ROW], both[name], texts[name])
    if texts.height < kept.height:
        raise _other_rows(result, opened)
    missing = [name for name in columns if name not in texts.columns]
    if missing and TASK_ID in texts.columns:
        with contextlib.suppress(AssayError):  # columns of the tasks are shown where they can be had, unchanged
            tasks = recorded_files(result.provenance, "tasks", result.folder, result.name, rollouts)
            table, _ = load_tasks(tasks[0] if len(tasks) == 1 else tasks)
            return result.collect(join_tasks(texts.lazy(), table, missing))
    return texts


def _compare(result: Result, name: str, rows: pl.Series, here: pl.Series, there: pl.Series) -> None:
    """Refuse rollouts in which a column of the result has another value; equal values of one type need no look."""
    if here.equals(there):
        return
    if here.dtype == there.dtype and not here.dtype.is_nested():
        differs = here.ne_missing(there)
        rows, here, there = rows.filter(differs), here.filter(differs), there.filter(differs)
    for row, *values in zip(rows, here.to_list(), there.to_list(), strict=True):
        ours, theirs = map(_comparable, values)
        if ours != theirs and str(ours) != str(theirs):
            shown, other = (cut(str(value), SHOWN) for value in (ours, theirs))
            fact = (
                f"{result.name} was not made from these rollouts: row {row:,}: {name} is {shown} there, {other} here."
            )
            raise InputError(fact, "Name the files that were scored, in the order of the run.")


def _other_rows(result: Result, opened: Rollouts) -> InputError:
    fact = f"The rollouts have {counted(result.collect(opened.frame.select(pl.len())).item(), 'row')}, "
    return InputError(f"{fact}the result has {result.rows:,}.", "Name all files, in the order of the run.")


_HERE, _THERE = HIDDEN + "here/", HIDDEN + "there/"


@frozen
class WholeRows:
    """A result with columns that it lacks, from what it was made from.

    Attributes:
        build: Return numbered rows with all columns, given those of the result and the same ones of the rollouts, if there are any.
        schema: All columns.
        shared: The columns that are compared with the rollouts.
    """

    result: Result
    build: Callable[[pl.LazyFrame, pl.LazyFrame | None], pl.LazyFrame]
    schema: pl.Schema
    shared: tuple[str, ...] = ()
    opened: Rollouts | None = None

    def batches(self, *columns: pl.Expr, check: bool = False, rows: pl.Series | None = None) -> Iterator[pl.DataFrame]:
        """Yield columns of all rows, or of those with some numbers, in order, each from its own row; ``check`` compares them with the rollouts."""
        shared = self.shared if check else ()
        sides = [exactly(side + name) for name in shared for side in (_HERE, _THERE)]
        try:
            with engine_errors(self.result.files):
                for frame in self._windows(rows):
                    for batch in batches(frame.select(*columns, *sides), _ROWS_AT_ONCE):
                        for name in shared:
                            _compare(self.result, name, batch[ROW], batch[_HERE + name], batch[_THERE + name])
                        yield batch.drop(side + name for name in shared for side in (_HERE, _THERE))
        except InputError as error:
            if self.opened is not None and "non-equal length" in str(error):
                raise _other_rows(self.result, self.opened) from None
            raise

    def _windows(self, rows: pl.Series | None) -> Iterator[pl.LazyFrame]:
        """Yield the rows, a window after the other where that costs little; windows without one of the rows that are wanted are not read.

        NOTE: Polars reads ahead of a slow reader, up to all texts of a large file.
        """
        there = None if self.opened is None else _in_slices(self.opened)
        rows = None if rows is None else rows.sort()
        if not self.result.has_cheap_slices or (self.opened is not None and there is None):
            yield _only(self.build(self.result.numbered, None if self.opened is None else self.opened.frame), rows)
            return
        for first in range(0, max(1, self.result.rows), _WINDOW):
            wanted = None if rows is None else rows.filter(rows.is_between(first, first + _WINDOW, closed="left"))
            if wanted is not None and wanted.is_empty():
                continue
            here = self.result.frame.slice(first, _WINDOW).with_row_index(ROW, offset=first)
            is_last = first + _WINDOW >= self.result.rows  # it has all rows that there are, also too many
            window = self.build(here, there if there is None else there.slice(first, None if is_last else _WINDOW))
            yield _only(window, wanted)


def _only(frame: pl.LazyFrame, rows: pl.Series | None) -> pl.LazyFrame:
    return frame if rows is None else frame.filter(pl.col(ROW).is_in(rows.implode()))


_ROWS_AT_ONCE, _WINDOW = 1 << 14, 1 << 15


def whole_rows(
    result: Result, wanted: Sequence[str], rollouts: Any = None, tasks: Any = None, first: Sequence[str] = ()
) -> tuple[WholeRows, str]:
    """Return a result with the columns of ``wanted`` that it lacks, as far as they can be had, and why they cannot, or ``""``.

    They come from ``rollouts``, which must be those that were scored, else from the inputs and the tasks of its provenance, if they have
    not changed. Columns of ``first`` come from the ``tasks`` that are named, whatever the result has.
    """
    schema = result.schema
    lacking, why = [name for name in wanted if name not in schema], ""
    shared, opened, columns = tuple[str, ...](), None, list[pl.Expr]()
    sources = files_of(result.provenance)
    if rollouts is not None or (lacking and sources):
        try:
            names = (
                recorded_files(result.provenance, "inputs", result.folder, result.name)
                if rollouts is None
                else rollouts
            )
            opened = _opened(result, names, sources[0] if rollouts is None else None, needs_texts=COMPLETION in lacking)
        except AssayError as error:
            if rollouts is not None:
                raise
            why = error.fact.removesuffix(".")
    elif lacking:
        why = NO_SOURCE
    if opened is not None:
        there = opened.frame.collect_schema()
        shared = tuple(name for name in result.passed_through if name in there and name != COMPLETION)
        columns = [exactly(name).alias(_THERE + name) for name in shared]
        columns += [exactly(name) for name in lacking if name in there]

    def side_by_side(here: pl.LazyFrame, there: pl.LazyFrame | None) -> pl.LazyFrame:
        if there is None or not columns:
            return here
        # of the result itself, whatever the tasks put in their place
        here = here.with_columns(exactly(name).alias(_HERE + name) for name in shared)
        return pl.concat([here, there.select(columns)], how="horizontal")

    def build(here: pl.LazyFrame, there: pl.LazyFrame | None) -> pl.LazyFrame:
        return join(side_by_side(here, there))

    whole = side_by_side(result.numbered, None if opened is None else opened.frame)
    join, reason = _with_tasks(result, whole.collect_schema(), wanted, rollouts, tasks, first)
    return WholeRows(result, build, join(whole).collect_schema(), shared, opened), why or reason


def _with_tasks(
    result: Result, schema: pl.Schema, wanted: Sequence[str], rollouts: Any, tasks: Any, first: Sequence[str]
) -> tuple[Callable[[pl.LazyFrame], pl.LazyFrame], str]:
    """Return what adds columns of the tasks that are named, or that the provenance names, to rows."""
    missing = [name for name in wanted if name not in schema]
    if tasks is None and not (missing and TASK_ID in schema and files_of(result.provenance, "tasks")):
        return lambda frame: frame, ""
    try:
        names = (
            recorded_files(result.provenance, "tasks", result.folder, result.name, rollouts) if tasks is None else tasks
        )
        table, _ = load_tasks(names[0] if isinstance(names, list) and len(names) == 1 else names)
        added = [*missing, *(first if tasks is not None else ())]
        join = partial(join_tasks, tasks=table.collect().lazy(), wanted=added)
        join(pl.LazyFrame(schema=schema))
    except AssayError as error:
        if tasks is not None:
            raise
        return lambda frame: frame, error.fact.removesuffix(".")
    return join, ""
