"""Task tables, joined to rollouts on task_id; of files, and of folders of tasks as Harbor has them."""

import hashlib
import json
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from assay.errors import ColumnsError, InputError, SpecError, counted, did_you_mean, listed, shown_path
from assay.expressions.mixed import JSON, TYPED, typed_expr
from assay.expressions.readable import readable
from assay.expressions.shared_columns import exactly, not_hidden
from assay.loading.formats.files import ENGINE_ERRORS, broken_file, first_line
from assay.loading.formats.reading import Reading
from assay.loading.presets.preset import NONE
from assay.loading.rollouts import open_rollouts
from assay.names import COMPLETION, FN_NAME, HIDDEN, IN_PROCESS, NATIVE, TASK_FOUND, TASK_ID, VERIFIER
from assay.system.documents import named, parse_text
from assay.system.special_files import open_input
from assay.values.rows import from_rows

_DATASET, _JSON, _TOML, _INSTRUCTION = "dataset.toml", "task.json", "task.toml", "instruction.md"
_OF_THE_RUN = {"allowed_hosts", "env", "environment", "environment_mode", "network_mode", "timeout_sec", "user"}
"""Fields of ``[verifier]`` that say how Harbor runs the tests."""

_METADATA, _PROMPT = "metadata", "prompt"
_SHOWN = 3


def is_harbor(folder: Path) -> bool:
    """Return whether a folder holds tasks of Harbor, or is one."""
    if not os.path.isdir(folder):  # noqa: PTH112  (it does not raise)
        return False
    return any(map(os.path.isfile, (folder / _DATASET, folder / _TOML, *folder.glob(f"*/{_TOML}"))))


def text_of(path: Path) -> str:
    """Return the text of a file."""
    try:
        with open_input(path) as file:
            return file.read().decode("utf-8-sig")
    except OSError as error:
        raise InputError(f"{shown_path(path)}: {error.strerror}.") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{shown_path(path)}: not UTF-8 (byte {error.start}).") from None


def harbor_tasks(folder: Path) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """Read a folder of tasks, or a folder that is a task; the id of a task is the name of its folder.

    Of a ``task.toml``, ``[metadata]`` is the task's ``metadata``, and each of its fields a column; ``instruction.md`` is its
    ``prompt``; ``[verifier]`` is its ``verifier`` if it names an ``fn_name`` or a ``kind`` of Assay.
    """
    from assay.classes.registry import list_verifiers  # other tables need no classes

    tasks, notes = list[dict[str, Any]](), list[str]()
    no_prompt, not_run = list[str](), list[str]()
    kinds = (IN_PROCESS, NATIVE, *list_verifiers())
    try:
        folders = [Path(os.path.abspath(folder))] if (folder / _TOML).is_file() else sorted(folder.iterdir())  # noqa: PTH100  (a link stays what it is)
    except OSError as error:
        raise InputError(f"{shown_path(folder)}: {error.strerror}.") from None
    for path in filter(None, map(_task_file, folders)):
        if path.name == _JSON:
            tasks.append({TASK_ID: path.parent.name, **_json_task(path)})
            continue
        task = _toml_task(path, kinds)
        tasks.append(task)
        if _PROMPT not in task:
            no_prompt.append(task[TASK_ID])
        if VERIFIER not in task and _is_there(path.with_name("tests")):
            not_run.append(task[TASK_ID])
    if not tasks:
        raise InputError(f"{shown_path(folder)}: has {_DATASET}, but no */{_TOML} or */{_JSON}.")
    if no_prompt:
        notes.append(f"no {_INSTRUCTION} in {_some(no_prompt)}: there, the prompt is that of the rollouts")
    if not_run:
        rule = f"[verifier] of {_TOML} names no {FN_NAME}: only a spec scores them"
        notes.append(f"the tests/ of {_some(not_run)} are not run, and {rule}")
    return tasks, tuple(notes)


def _task_file(task: Path) -> Path | None:
    return next((path for path in (task / _JSON, task / _TOML) if _is_there(path)), None)


def _is_there(path: Path) -> bool:
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise InputError(f"{shown_path(path)}: {error.strerror}.") from None
    return True


def _some(names: list[str]) -> str:
    shown = ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
    return f"{counted(len(names), 'task')} ({shown})"


def _json_task(path: Path) -> dict[str, Any]:
    content, problem = text_of(path), ""
    try:
        task = json.loads(content)
    except json.JSONDecodeError as error:
        problem = str(error)
    except RecursionError:
        problem = "nested too deeply."
    except ValueError:  # Python's own message is for programmers
        problem = "a number with too many digits."
    if problem:
        raise InputError(f"{shown_path(path)}: not readable JSON: {problem}")
    if not isinstance(task, dict):
        raise InputError(f"{shown_path(path)}: a task must be a JSON object, not {type(task).__name__}.")
    return task


def _parsed(path: Path, suffix: str) -> Any:
    try:
        return parse_text(text_of(path), suffix, shown_path(path)).data
    except SpecError as error:
        raise InputError(error.fact, error.hint) from None


def _toml_task(path: Path, kinds: Collection[str]) -> dict[str, Any]:
    content = _parsed(path, ".toml")
    for name in (_METADATA, VERIFIER):
        if not isinstance(content.get(name, {}), dict):
            raise InputError(f"{shown_path(path)}: `{name}` must be a table, [{name}], not {named(content[name])}.")
    metadata: Mapping[str, Any] = content.get(_METADATA, {})
    verifier = {name: value for name, value in content.get(VERIFIER, {}).items() if name not in _OF_THE_RUN}
    task = {TASK_ID: path.parent.name, _METADATA: metadata}
    if _is_there(instruction := path.with_name(_INSTRUCTION)):
        task[_PROMPT] = text_of(instruction)
    if verifier.get(FN_NAME) or verifier.get("kind") in kinds:
        task[VERIFIER] = verifier
    return task | {
        name: value for name, value in metadata.items() if name not in {TASK_ID, _METADATA, _PROMPT, VERIFIER}
    }


_OWN = HIDDEN + "own/"

_AS_ANSWERS = "read as messages (detected)"
"""How a file is read whose only texts are chats; those of a task ask, and have no completion."""


def load_tasks(
    source: Any, storage_options: Mapping[str, str] | None = None, exact: tuple[str, ...] = ()
) -> tuple[pl.LazyFrame, tuple[str, ...]]:
    """Open a task table."""
    path = Path(source) if isinstance(source, str | Path) else None
    notes: tuple[str, ...] = ()
    if path is not None and path.suffix.lower() in (".yaml", ".yml"):
        frame = _task_rows(path, _yaml_tasks(path), exact)
    elif path is not None and is_harbor(path):
        tasks, notes = harbor_tasks(path)
        frame = _task_rows(path, tasks, exact)
    else:
        reading = Reading(storage_options=storage_options, max_bad_rows="100%", exact=exact)
        opened = open_rollouts(source, reading)
        if any((file.read_as or "").startswith(_AS_ANSWERS) for file in opened.inputs):
            opened = open_rollouts(source, replace(reading, preset=NONE))
        for bad in opened.bad:
            raise InputError(f"{bad.file}:{bad.line}: {bad.reason}", "Fix the task table: every line must be a task.")
        frame = opened.frame
        notes = tuple(f"the task table is {note}" if note.startswith("read ") else note for note in opened.notes)
    columns = frame.collect_schema().names()
    if TASK_ID not in columns:
        raise ColumnsError(
            f"The task table has no `{TASK_ID}`. Columns: {listed(columns)}.", did_you_mean(TASK_ID, columns)
        )
    _check_key(frame, "task table")
    frame = frame.with_columns(_id_text(frame.collect_schema()[TASK_ID]).alias(TASK_ID))
    unusable = pl.col(TASK_ID).is_null() | pl.col(TASK_ID).is_duplicated()
    ids = read_whole(frame.select(pl.col(TASK_ID).filter(unusable)), source, storage_options).to_series()
    if duplicates := ids.drop_nulls().head(1).to_list():
        raise InputError(f'The task table has task_id "{duplicates[0]}" more than once.', "Each task needs its own id.")
    if nulls := ids.null_count():
        subject = "1 task has" if nulls == 1 else f"{nulls:,} tasks have"
        notes = (*notes, f"{subject} no `{TASK_ID}` and cannot be joined to rollouts")
    return frame, notes


def read_whole(table: pl.LazyFrame, source: Any, storage_options: Mapping[str, str] | None = None) -> pl.DataFrame:
    """Collect a task table or a query on it."""
    try:
        return table.collect()
    except ENGINE_ERRORS as error:
        broken = broken_file(open_rollouts(source, Reading(storage_options=storage_options)).files)
        raise broken or InputError(f"The task table cannot be read: {first_line(error)}") from None


def _task_rows(path: Path, tasks: list[Any], exact: Collection[str]) -> pl.LazyFrame:
    try:
        return from_rows(tasks, exact=exact).lazy()
    except InputError as error:
        raise InputError(f"{shown_path(path)}: {error.fact}", error.hint) from None


def _yaml_tasks(path: Path) -> list[Any]:
    data = _parsed(path, ".yaml")
    tasks = data.get("tasks") if isinstance(data, dict) else data
    if not isinstance(tasks, list) or not tasks:
        raise InputError(f"{shown_path(path)}: expected a list of tasks, or `tasks:` with a list.")
    return tasks


def _check_key(frame: pl.LazyFrame, owner: str) -> None:
    dtype = frame.collect_schema()[TASK_ID]
    if readable(pl.col(TASK_ID), dtype, as_text=True)[1].is_nested() or dtype == pl.Object:
        raise ColumnsError(f"`{TASK_ID}` of the {owner} has type {dtype}; an id is a string or a number.")


def join_tasks(
    rollouts: pl.LazyFrame, tasks: pl.LazyFrame, wanted: Sequence[str], exact: Collection[str] = ()
) -> pl.LazyFrame:
    """Add columns of the tasks to their rollouts; a task's value takes precedence over the rollout's."""
    schema = rollouts.collect_schema()
    if TASK_ID not in schema:
        hint = did_you_mean(TASK_ID, schema) or "Rename a column with --map task_id=COLUMN."
        raise ColumnsError(
            f"The rollouts have no `{TASK_ID}` to join their tasks on. Columns: {listed(not_hidden(schema))}.", hint
        )
    _check_key(rollouts, "rollouts")
    task_schema = tasks.collect_schema()
    added = _added_columns(task_schema, wanted)
    shared = []
    for name in (name for name in added if name in schema):
        if _is_joined(name, schema[name], task_schema[name], exact):
            rollout, task = exactly(_OWN + name), exactly(name)
            if schema[name] == task_schema[name] != TYPED:
                shared.append(pl.coalesce(task, rollout))
            else:
                rollout, task = typed_expr(rollout, schema[name]), typed_expr(task, task_schema[name])
                shared.append(pl.when(task.struct.field(JSON).is_not_null()).then(task).otherwise(rollout).alias(name))
    key = HIDDEN + "task_id"
    table = tasks.select(pl.col(TASK_ID).alias(key), *map(exactly, added), pl.lit(value=True).alias(TASK_FOUND))
    return (
        rollouts.rename({name: _OWN + name for name in added if name in schema})
        .with_columns(_id_text(schema[TASK_ID]).alias(key))
        .join(table, on=key, how="left", maintain_order="left")
        # where the task's value is null, the rollout's value is used
        .with_columns(shared)
        .drop(key, *(_OWN + name for name in added if name in schema))
    )


def _is_joined(name: str, of_rollouts: Any, of_tasks: Any, exact: Collection[str]) -> bool:
    return name in exact or of_rollouts == of_tasks


def _added_columns(task_schema: pl.Schema, wanted: Sequence[str]) -> list[str]:
    # a task may have a completion, as a reference answer; the rollout's completion is scored
    return [name for name in task_schema if name in wanted and name not in (TASK_ID, COMPLETION)]


def override_notes(
    rollouts: pl.LazyFrame, tasks: pl.LazyFrame, wanted: Sequence[str], exact: Collection[str] = ()
) -> tuple[str, ...]:
    """Return notes on columns of the rollouts that ``join_tasks`` overrides."""
    schema, task_schema = rollouts.collect_schema(), tasks.collect_schema()
    effect = {True: "is used only where the task has null", False: "is ignored, because its type differs"}
    return tuple(
        f"the task table's `{name}` is used; the rollouts' column {effect[_is_joined(name, schema[name], task_schema[name], exact)]}"
        for name in _added_columns(task_schema, wanted)
        if name in schema
    )


def _id_text(dtype: pl.DataType) -> pl.Expr:
    ident, dtype = readable(pl.col(TASK_ID), dtype, as_text=True)
    if not dtype.is_float():
        return ident.cast(pl.String)
    whole = ident.cast(pl.Int64, strict=False)
    return pl.when(whole.cast(dtype) == ident).then(whole.cast(pl.String)).otherwise(ident.cast(pl.String))


def content_of_tasks(steps: Iterable[Any]) -> str | None:
    """Hash the content of the joined task table, whatever its source."""
    for step in steps:
        if isinstance(step, partial) and step.func is join_tasks:
            table = step.keywords["tasks"].collect()
            digest = hashlib.sha256(repr(table.schema).encode())
            values = (
                readable(exactly(name), dtype, as_text=False)[0].alias(name) for name, dtype in table.schema.items()
            )
            for row in table.select(values).iter_rows():
                digest.update(repr(row).encode("utf-8", "backslashreplace"))
            return digest.hexdigest()
    return None
