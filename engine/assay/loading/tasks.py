"""Task tables, joined to rollouts on ``task_id``: what a task expects stands once, however many rollouts it has."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from assay.errors import ColumnsError, InputError, SpecError, did_you_mean, listed, shown_path
from assay.expressions.lane import exactly, not_hidden
from assay.loading.formats.files import ENGINE_ERRORS, broken_file, first_line
from assay.loading.formats.reading import Reading
from assay.loading.rollouts import open_rollouts
from assay.names import COMPLETION, HIDDEN, TASK_FOUND, TASK_ID
from assay.system.documents import parse_text
from assay.system.special_files import open_input
from assay.values.rows import from_rows

__all__ = ["content_of_tasks", "join_tasks", "load_tasks", "outspoken", "read_whole"]

_HARBOR = "dataset.toml"
_OWN = HIDDEN + "own/"


def load_tasks(source: Any, storage_options: Mapping[str, str] | None = None) -> tuple[pl.LazyFrame, tuple[str, ...]]:
    """A task table.

    Args:
        source: A YAML file (a list of tasks, or ``tasks: […]``), a Harbor folder (``dataset.toml`` and ``*/task.json``; a task
            without ``task_id`` has its folder's name), or anything that ``scan`` reads.
        storage_options: Of the store that URLs name.

    Returns:
        One row for each task, ``task_id`` as String; and how the table was read, where that is to be told.

    Raises:
        InputError: It cannot be read, or two tasks have one id.
        ColumnsError: There is no ``task_id``.
    """
    path = Path(source) if isinstance(source, str | Path) else None
    notes: tuple[str, ...] = ()
    if path is not None and path.suffix.lower() in (".yaml", ".yml"):
        frame = _named(path, _yaml_tasks(path))
    elif path is not None and path.is_dir() and (path / _HARBOR).is_file():
        frame = _named(path, _harbor_tasks(path))
    else:
        opened = open_rollouts(source, Reading(storage_options=storage_options, max_bad_rows="100%"))
        for bad in opened.bad:
            raise InputError(f"{bad.file}:{bad.line}: {bad.reason}", "Mend the task table: every line of it is a task.")
        frame = opened.frame
        notes = tuple(f"the task table is {note}" if note.startswith("read ") else note for note in opened.notes)
    there = frame.collect_schema().names()
    if TASK_ID not in there:
        raise ColumnsError(
            f"The task table has no `{TASK_ID}`. There are: {listed(there)}.", did_you_mean(TASK_ID, there)
        )
    _check_key(frame, "task table")
    frame = frame.with_columns(_id_text(frame.collect_schema()[TASK_ID]).alias(TASK_ID))
    odd = pl.col(TASK_ID).is_null() | pl.col(TASK_ID).is_duplicated()
    ids = read_whole(frame.select(pl.col(TASK_ID).filter(odd)), source, storage_options).to_series()
    if twice := ids.drop_nulls().head(1).to_list():
        raise InputError(
            f'The task table has task_id "{twice[0]}" more than once.', "A rollout must know which one is its own."
        )
    if missing := ids.null_count():
        said = "1 task has" if missing == 1 else f"{missing:,} tasks have"
        notes = (*notes, f"{said} no `{TASK_ID}`: no rollout can be of such a task")
    return frame, notes


def read_whole(table: pl.LazyFrame, source: Any, storage_options: Mapping[str, str] | None = None) -> pl.DataFrame:
    """A task table, or what is asked of it.

    Args:
        table: What to read.
        source: What ``load_tasks`` was given.
        storage_options: Of the stores that URLs name.

    Raises:
        InputError: It cannot be read; the message names the file.
    """
    try:
        return table.collect()
    except ENGINE_ERRORS as wrong:
        broken = broken_file(open_rollouts(source, Reading(storage_options=storage_options)).files)
        raise broken or InputError(f"The task table cannot be read: {first_line(wrong)}") from None


def _named(path: Path, tasks: list[Any]) -> pl.LazyFrame:
    try:
        return from_rows(tasks).lazy()
    except InputError as wrong:
        raise InputError(f"{shown_path(path)}: {wrong.fact}", wrong.hint) from None


def _yaml_tasks(path: Path) -> list[Any]:
    try:
        with open_input(path) as file:
            data = parse_text(file.read().decode("utf-8-sig"), ".yaml", shown_path(path)).data
    except OSError as wrong:
        raise InputError(f"{shown_path(path)}: {wrong.strerror}.") from None
    except UnicodeDecodeError as wrong:
        raise InputError(f"{shown_path(path)}: not UTF-8 (byte {wrong.start}).") from None
    except SpecError as wrong:
        raise InputError(str(wrong)) from None
    tasks = data.get("tasks") if isinstance(data, dict) else data
    if not isinstance(tasks, list) or not tasks:
        raise InputError(f"{shown_path(path)}: expected a list of tasks, or `tasks:` with a list.")
    return tasks


def _harbor_tasks(folder: Path) -> list[dict[str, Any]]:
    tasks = []
    for path in sorted(folder.glob("*/task.json")):
        try:
            task = json.loads(path.read_text("utf-8-sig"))
        except (OSError, UnicodeDecodeError, json.JSONDecodeError) as wrong:
            raise InputError(f"{shown_path(path)}: not readable JSON: {wrong}") from None
        except RecursionError:
            raise InputError(f"{shown_path(path)}: not readable JSON: nested too deeply.") from None
        except ValueError:  # what Python says of it is for programmers
            raise InputError(f"{shown_path(path)}: not readable JSON: a number with too many digits.") from None
        if not isinstance(task, dict):
            raise InputError(f"{shown_path(path)}: a task must be a JSON object, not {type(task).__name__}.")
        tasks.append({TASK_ID: path.parent.name, **task})
    if not tasks:
        raise InputError(f"{shown_path(folder)}: a {_HARBOR}, but no */task.json.")
    return tasks


def _check_key(frame: pl.LazyFrame, whose: str) -> None:
    dtype = frame.collect_schema()[TASK_ID]
    if dtype.is_nested() or dtype == pl.Binary:
        raise ColumnsError(f"`{TASK_ID}` of the {whose} has type {dtype}; an id is a string or a number.")


def join_tasks(rollouts: pl.LazyFrame, tasks: pl.LazyFrame, wanted: Sequence[str]) -> pl.LazyFrame:
    """Rollouts with the wanted columns of their tasks; what a task says comes before what the rollout says.

    Args:
        rollouts: Rollouts with ``task_id``.
        tasks: A task table of ``load_tasks``.
        wanted: Columns to take where the tasks have them.

    Returns:
        The rollouts in order, with ``TASK_FOUND``: null where the task is missing.

    Raises:
        ColumnsError: The rollouts have no ``task_id``.
    """
    there = rollouts.collect_schema()
    if TASK_ID not in there:
        hint = did_you_mean(TASK_ID, there) or "Rename a column with --map task_id=COLUMN."
        raise ColumnsError(
            f"The rollouts have no `{TASK_ID}` to find their tasks by. There are: {listed(not_hidden(there))}.", hint
        )
    _check_key(rollouts, "rollouts")
    theirs = tasks.collect_schema()
    taken = _taken(theirs, wanted)
    key = HIDDEN + "task_id"
    table = tasks.select(pl.col(TASK_ID).alias(key), *map(exactly, taken), pl.lit(value=True).alias(TASK_FOUND))
    return (
        rollouts.rename({name: _OWN + name for name in taken if name in there})
        .with_columns(_id_text(there[TASK_ID]).alias(key))
        .join(table, on=key, how="left", maintain_order="left")
        # where the task says nothing, what the rollout says of itself holds
        .with_columns(pl.coalesce(exactly(name), _OWN + name) for name in taken if there.get(name) == theirs[name])
        .drop(key, *(_OWN + name for name in taken if name in there))
    )


def _taken(theirs: pl.Schema, wanted: Sequence[str]) -> list[str]:
    # a task may carry a completion of its own, a reference answer: what is scored is the rollout's
    return [name for name in theirs if name in wanted and name not in (TASK_ID, COMPLETION)]


def outspoken(rollouts: pl.LazyFrame, tasks: pl.LazyFrame, wanted: Sequence[str]) -> tuple[str, ...]:
    """What to tell of the columns that rollouts have of their own and ``join_tasks`` takes from their tasks."""
    there, theirs = rollouts.collect_schema(), tasks.collect_schema()
    own = {True: "holds only where the task says null", False: "is not read, for it has another type"}
    return tuple(
        f"the task table's `{name}` is used; the rollouts' own {own[there[name] == theirs[name]]}"
        for name in _taken(theirs, wanted)
        if name in there
    )


def _id_text(dtype: pl.DataType) -> pl.Expr:
    """An id as text; the float that pandas makes of an integer beside a null is that integer."""
    ident = pl.col(TASK_ID)
    if not dtype.is_float():
        return ident.cast(pl.String)
    whole = ident.cast(pl.Int64, strict=False)
    return pl.when(whole.cast(dtype) == ident).then(whole.cast(pl.String)).otherwise(ident.cast(pl.String))


def content_of_tasks(steps: Iterable[Any]) -> str | None:
    """What a task table says that is joined, wherever it came from.

    Args:
        steps: Those that make rollouts of what is read.

    Returns:
        SHA-256 of its columns and rows; None where no step joins one.
    """
    for step in steps:
        if isinstance(step, partial) and step.func is join_tasks:
            table = step.keywords["tasks"].collect()
            digest = hashlib.sha256(repr(table.schema).encode())
            for row in table.iter_rows():
                digest.update(repr(row).encode("utf-8", "backslashreplace"))
            return digest.hexdigest()
    return None
