"""The journal of a run: every finished rollout is a line on disk, from which a stopped run resumes.

The first line of ``rollouts.jsonl`` holds the settings of the run; each further line is a rollout, written and flushed as soon
as it is finished: a process that is killed loses only the rollouts in flight. An incomplete last line is cut off when the
journal is opened again. A run holds a lock on its folder, which the system releases when the process ends.
"""

import contextlib
import copy
import hashlib
import inspect
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from assay.environments.client import AttributeDict
from assay.environments.rollouts import Rollout
from assay.errors import RAISED, InputError, OutputError, UsageError, printable, shown_path
from assay.system.code_hash import stable_text
from assay.system.locks import locked as hold_lock
from assay.types import Info, Messages
from assay.values import tagged_json as exact

RESULTS = "results.parquet"
_JOURNAL, _LOCK = "rollouts.jsonl", ".lock"
_SHOWN_LENGTH = 80
"""Characters of a setting that a message shows."""

_VERSION = 1
_BEGINNING = b'{"journal"'
_IGNORED_SETTINGS = ("date", "functions")
"""Settings that may differ between sessions of the same run."""

_ROLLOUT_FIELDS = ("prompt", "answer", "info", "task", "example_id", "completion")
"""AttributeDict of the state that are not written if they equal those of the rollout."""


def _as_line(value: Any, losses: exact.Losses | None = None) -> bytes:
    return exact.write(value, "", losses or exact.Losses()).encode() + b"\n"


def digest(rollouts: Sequence[Rollout]) -> str:
    """Return the SHA-256 of the inputs of rollouts, as hexadecimal digits."""
    sha = hashlib.sha256()
    for rollout in rollouts:
        given = rollout.completion if rollout.given else None
        fields = [rollout.prompt, rollout.answer, rollout.info, rollout.task, rollout.example_id, given]
        sha.update(_as_line({"of": fields}))
    return sha.hexdigest()


def functions_digest(funcs: Sequence[Any]) -> str:
    """Return the SHA-256 of the code of functions, as hexadecimal digits; functions that they call are not included."""
    codes = [getattr(inspect.unwrap(function), "__code__", None) for function in funcs]
    return hashlib.sha256(stable_text(codes).encode("utf-8", "backslashreplace")).hexdigest()


class Journal:
    """The finished rollouts of a run, in a folder that this process has locked."""

    def __init__(self, folder: Path, settings: Mapping[str, Any]) -> None:
        self.path = folder / _JOURNAL
        self.finished = 0
        self._lines: list[Any] = []
        settings = exact.read(_as_line(settings).decode())
        recorded = self._read()
        if recorded is None and (folder / RESULTS).exists():
            fact = f"{folder / RESULTS} exists without a {_JOURNAL} that describes its run."
            raise UsageError(fact, "Give another results_path.")
        self.settings = settings if recorded is None else recorded
        differences = [
            "the inputs differ"
            if name == "inputs"
            else f"{name.replace('_', ' ')}: {_shown(self.settings.get(name))} before, {_shown(value)} now"
            for name, value in settings.items()
            if name not in _IGNORED_SETTINGS and value != self.settings.get(name)
        ]
        if differences:
            raise UsageError(
                f"{shown_path(self.path)} holds another run: {'; '.join(differences)}.",
                f"Give another results_path, or delete {shown_path(self.path)} to start again.",
            )
        # whether the reward functions have changed since the rewards were recorded
        self.stale = self.settings.get("functions", settings["functions"]) != settings["functions"]
        try:
            self._file: IO[bytes] = self.path.open("ab")
            if recorded is None:
                self._write({"journal": _VERSION, **settings})
        except OSError as error:
            raise OutputError(f"{shown_path(self.path)}: {error.strerror}.") from error

    def _read(self) -> dict[str, Any] | None:
        complete = size = 0
        header: dict[str, Any] | None = None
        try:
            with self.path.open("rb") as file:
                for line in file:
                    size += len(line)
                    if not line.endswith(b"\n"):
                        if not complete and not line.startswith(_BEGINNING):
                            self._header(line)
                        break
                    if not complete:
                        header = self._header(line)
                    else:
                        with contextlib.suppress(ValueError, RecursionError):  # corrupt: run the rollout again
                            self._lines.append(exact.read(line.decode()))
                    complete = size
            if size > complete:
                os.truncate(self.path, complete)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise InputError(f"{shown_path(self.path)}: {error.strerror}.") from None
        return header

    def _header(self, line: bytes) -> dict[str, Any]:
        header = None
        with contextlib.suppress(ValueError, RecursionError):
            header = exact.read(line.decode())
        if not isinstance(header, dict) or header.pop("journal", None) != _VERSION:
            raise InputError(f"{shown_path(self.path)} is not a journal of rollouts.", "Give another results_path.")
        return header

    def restore(self, rollouts: Sequence[Rollout], *, to_score: bool = True) -> int:
        """Restore rollouts from the journal, and return how many are finished.

        If they are to be scored, a state that was saved with losses is usable only with its reward.
        """
        kinds = {"state": dict, "as_given": list, "completion": str | list}
        for line in self._lines:
            number = line.get("rollout") if isinstance(line, dict) else None
            if isinstance(number, int) and 0 <= number < len(rollouts):
                is_usable = not (to_score and line.get("lossy") and "reward" not in line)
                if is_usable and all(isinstance(line.get(name), kind) for name, kind in kinds.items()):
                    _restore(rollouts[number], line)
        self._lines = []
        self.finished = sum(rollout.state is not None and not rollout.given for rollout in rollouts)
        return self.finished

    def append(self, number: int, rollout: Rollout, prompt: Messages, info: Info) -> None:
        """Append a finished rollout, given its prompt and info before the run; of a failed one only the error, as it is to be run again."""
        try:
            self._write(_line(number, rollout, {"prompt": prompt, "info": info}))
        except OSError as error:
            raise OutputError(
                f"{shown_path(self.path)}: {error.strerror}.", "The rollouts written so far are kept."
            ) from error
        self.finished += not rollout.failed

    def _write(self, line: Mapping[str, Any]) -> None:
        losses = exact.Losses()
        data = _as_line(line, losses)
        if losses.places:  # other objects are written as text and come back as text
            data = _as_line({**line, "lossy": True}, losses)
        self._file.write(data)
        self._file.flush()

    def close(self) -> None:
        """Flush the file to disk and close it."""
        try:
            os.fsync(self._file.fileno())
        finally:
            # NOTE: closing retries a write that failed on a full disk; that failure has been reported already
            with contextlib.suppress(OSError):
                self._file.close()


def _shown(value: Any) -> str:
    text = printable(json.dumps(value, ensure_ascii=False, default=str))
    return text if len(text) <= _SHOWN_LENGTH else f"{text[:_SHOWN_LENGTH]}…"


def _line(number: int, rollout: Rollout, before: Mapping[str, Any]) -> dict[str, Any]:
    if rollout.failed or rollout.state is None:
        return {"rollout": number, "error": rollout.error}
    original = {name: getattr(rollout, name) for name in _ROLLOUT_FIELDS} | dict(before)
    same = [name for name in _ROLLOUT_FIELDS if name in rollout.state and _equal(rollout.state[name], original[name])]
    line = {
        "rollout": number,
        "completion": rollout.completion,
        "state": {name: None if name in same else value for name, value in rollout.state.items() if name != "error"},
        "as_given": same,
        **{name: getattr(rollout, name) for name in before if not _equal(getattr(rollout, name), before[name])},
    }
    # rollouts with a scoring error are scored again when the run resumes
    if rollout.reward is not None and not rollout.state.get("error"):
        line |= {"reward": rollout.reward, "metrics": rollout.metrics}
    return line


def _equal(left: Any, right: Any) -> bool:
    try:
        return bool(left == right)
    except RAISED:  # comparing arrays, for example, gives no single truth value
        return False


def _restore(rollout: Rollout, line: Mapping[str, Any]) -> None:
    rollout.completion = _with_calls(line["completion"])
    # copied: scoring must not change the dataset
    original = {name: copy.deepcopy(getattr(rollout, name)) for name in ("prompt", "info")}
    same = [name for name in line["as_given"] if name in _ROLLOUT_FIELDS]
    state = dict(line["state"])  # keeps the order of its fields
    state.update((name, original.get(name, getattr(rollout, name))) for name in same)
    if "completion" in state:
        state["completion"] = _with_calls(state["completion"])
    if isinstance(state.get("responses"), list):
        state["responses"] = _as_fields(state["responses"])
    rollout.state = state
    rollout.prompt, rollout.info = line.get("prompt", original["prompt"]), line.get("info", original["info"])
    rollout.reward, rollout.metrics = line.get("reward"), line.get("metrics")


def _as_fields(values: list[Any]) -> list[Any]:
    return [AttributeDict(value) if isinstance(value, dict) else value for value in values]


def _with_calls(messages: Any) -> Any:
    for message in messages if isinstance(messages, list) else ():
        if isinstance(message, dict) and isinstance(message.get("tool_calls"), list):
            message["tool_calls"] = _as_fields(message["tool_calls"])
    return messages


@contextlib.contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Create a folder and lock it against other runs."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        fact = f"results_path: {shown_path(folder)} is a file."
        raise UsageError(fact, "Give a folder; it is created if it does not exist.") from None
    except OSError as error:
        raise OutputError(f"{shown_path(folder)}: {error.strerror}.") from error
    with hold_lock(folder / _LOCK, str(folder), "Wait for it to end, or give another results_path."):
        yield
