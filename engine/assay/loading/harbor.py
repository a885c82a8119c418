"""Folders of tasks as Harbor has them: ``NAME/task.toml`` and ``NAME/instruction.md``, or ``NAME/task.json`` under a ``dataset.toml``.

They are read and never run: not ``tests/test.sh``, not ``solution/``, not ``environment/``.
"""

import json
import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from assay.classes.registry import list_verifiers
from assay.errors import InputError, SpecError, counted, shown_path
from assay.names import FN_NAME, IN_PROCESS, NATIVE, TASK_ID, VERIFIER
from assay.system.documents import named, parse_text
from assay.system.special_files import open_input

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
    tasks, notes = list[dict[str, Any]](), list[str]()
    untold, untested = list[str](), list[str]()
    kinds = (IN_PROCESS, NATIVE, *list_verifiers())
    for path in _task_files(folder):
        if path.name == _JSON:
            tasks.append({TASK_ID: path.parent.name, **_json_task(path)})
            continue
        task = _toml_task(path, kinds)
        tasks.append(task)
        if _PROMPT not in task:
            untold.append(task[TASK_ID])
        if VERIFIER not in task and _is_there(path.with_name("tests")):
            untested.append(task[TASK_ID])
    if not tasks:
        raise InputError(f"{shown_path(folder)}: has {_DATASET}, but no */{_TOML} or */{_JSON}.")
    if untold:
        notes.append(f"no {_INSTRUCTION} in {_some(untold)}: there, the prompt is that of the rollouts")
    if untested:
        notes.append(
            f"the tests/ of {_some(untested)} are not run, and [verifier] of {_TOML} names no {FN_NAME}: only a spec scores them"
        )
    return tasks, tuple(notes)


def _task_files(folder: Path) -> Iterator[Path]:
    try:
        folders = [Path(os.path.abspath(folder))] if (folder / _TOML).is_file() else sorted(folder.iterdir())  # noqa: PTH100  (a link stays what it is)
    except OSError as error:
        raise InputError(f"{shown_path(folder)}: {error.strerror}.") from None
    for task in folders:
        yield from [path for path in (task / _JSON, task / _TOML) if _is_there(path)][:1]


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
    content = text_of(path)
    try:
        task = json.loads(content)
    except json.JSONDecodeError as error:
        raise InputError(f"{shown_path(path)}: not readable JSON: {error}") from None
    except RecursionError:
        raise InputError(f"{shown_path(path)}: not readable JSON: nested too deeply.") from None
    except ValueError:  # Python's own message is for programmers
        raise InputError(f"{shown_path(path)}: not readable JSON: a number with too many digits.") from None
    if not isinstance(task, dict):
        raise InputError(f"{shown_path(path)}: a task must be a JSON object, not {type(task).__name__}.")
    return task


def _toml_task(path: Path, kinds: Collection[str]) -> dict[str, Any]:
    try:
        content = parse_text(text_of(path), ".toml", shown_path(path)).data
    except SpecError as error:
        raise InputError(error.fact, error.hint) from None
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
