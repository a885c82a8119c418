"""The journal of a run of rollouts: every finished one is a line on the disk, and a run that was stopped goes on from there.

``rollouts.jsonl`` begins with a line that says what is run; each further line is a rollout. A line is written once its rollout
is finished and handed to the system at once: a process that is killed loses the rollouts in flight. What a last line lacks is
cut off when the journal is opened again. A run holds a lock on its folder, which the system lets go of when the process ends.
"""

import contextlib
import copy
import hashlib
import inspect
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import CodeType
from typing import IO, Any, Self

from assay.environments.inputs import Rollout
from assay.environments.streams import Fields
from assay.errors import RAISED, InputError, OutputError, UsageError, printable, shown_path
from assay.system.locks import locked as locking
from assay.types import Info, Messages
from assay.values import tagged_json as exact

__all__ = ["JOURNAL", "RESULTS", "Journal", "digest", "functions_digest", "locked"]

JOURNAL = "rollouts.jsonl"
RESULTS = "results.parquet"
_LOCK = ".lock"
_SHOWN = 80
"""Characters of a setting that a message shows."""

_VERSION = 1
_BEGINNING = b'{"journal"'
_MAY_DIFFER = ("date", "functions")
"""Settings in which a run may differ and be the same run."""

_KNOWN = ("prompt", "answer", "info", "task", "example_id", "completion")
"""Fields of the state that are not written again where they equal those of the rollout."""


def _as_line(value: Any, losses: exact.Losses | None = None) -> bytes:
    return exact.write(value, "", losses or exact.Losses()).encode() + b"\n"


def digest(rollouts: Sequence[Rollout]) -> str:
    """SHA-256 of what rollouts are made from, as hexadecimal digits."""
    found = hashlib.sha256()
    for one in rollouts:
        given = one.completion if one.given else None
        found.update(_as_line({"of": [one.prompt, one.answer, one.info, one.task, one.example_id, given]}))
    return found.hexdigest()


def functions_digest(funcs: Sequence[Any]) -> str:
    """SHA-256 of the code of functions, as hexadecimal digits; what they call is not looked into."""
    return hashlib.sha256(
        _as_line([_code(getattr(inspect.unwrap(one), "__code__", None)) for one in funcs])
    ).hexdigest()


def _code(code: Any) -> Any:
    if not isinstance(code, CodeType):
        return code
    return [code.co_code, code.co_names, [_code(one) for one in code.co_consts]]


class Journal:
    """The rollouts of a run that are finished.

    Attributes:
        path: The file.
        settings: What is run, as the journal has it.
        finished: Rollouts in it that need not be run again.
        stale: Its rewards are of reward functions that have been changed since.

    Args:
        folder: Where the run is saved; it is locked by this process.
        settings: What is run; a journal of something else is refused.

    Raises:
        UsageError: The folder holds another run; the message says in what it differs.
        InputError: The file there is no journal.
        OutputError: It cannot be written.
    """

    def __init__(self, folder: Path, settings: Mapping[str, Any]) -> None:
        self.path = folder / JOURNAL
        self.finished = 0
        self.stale = False
        settings = exact.read(_as_line(settings).decode())
        self._lines: list[Any] = []
        self.settings = settings
        there = self._read()
        if there is None and (folder / RESULTS).exists():
            fact = f"{folder / RESULTS} is there, and no {JOURNAL} beside it says what made it."
            raise UsageError(fact, "Give another results_path.")
        if there is not None:
            self._refuse_other(there, settings)
            self.stale = there.get("functions", settings["functions"]) != settings["functions"]
            self.settings = there
        try:
            self._file: IO[bytes] = self.path.open("ab")
            if there is None:
                self._write({"journal": _VERSION, **settings})
        except OSError as wrong:
            raise OutputError(f"{shown_path(self.path)}: {wrong.strerror}.") from wrong

    def _read(self) -> dict[str, Any] | None:
        """The settings of a journal that is there, its rollouts kept for ``restore``; what is torn is cut off."""
        whole = size = 0
        header: dict[str, Any] | None = None
        try:
            with self.path.open("rb") as file:
                for line in file:
                    size += len(line)
                    if not line.endswith(b"\n"):
                        if not whole and not line.startswith(_BEGINNING):
                            self._header(line)
                        break
                    if not whole:
                        header = self._header(line)
                    else:
                        with contextlib.suppress(ValueError, RecursionError):  # spoilt: a rollout to run again
                            self._lines.append(exact.read(line.decode()))
                    whole = size
            if size > whole:
                os.truncate(self.path, whole)
        except FileNotFoundError:
            return None
        except OSError as wrong:
            raise InputError(f"{shown_path(self.path)}: {wrong.strerror}.") from None
        return header

    def _header(self, line: bytes) -> dict[str, Any]:
        found = None
        with contextlib.suppress(ValueError, RecursionError):
            found = exact.read(line.decode())
        if not isinstance(found, dict) or found.pop("journal", None) != _VERSION:
            raise InputError(f"{shown_path(self.path)} is no journal of rollouts.", "Give another results_path.")
        return found

    def _refuse_other(self, there: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
        differ = [name for name in settings if name not in _MAY_DIFFER and settings[name] != there.get(name)]
        if differ:
            said = "; ".join(_difference(name, there.get(name), settings[name]) for name in differ)
            raise UsageError(
                f"{shown_path(self.path)} holds another run: {said}.",
                f"Give another results_path, or delete {shown_path(self.path)} to begin again.",
            )

    def restore(self, rollouts: Sequence[Rollout], *, to_score: bool = True) -> int:
        """Give rollouts what the journal knows of them.

        Args:
            rollouts: Those of the run.
            to_score: They are to be scored, so that a state which did not come back as it was will not do without its reward.

        Returns:
            How many are finished.
        """
        for line in self._lines:
            number = line.get("rollout") if isinstance(line, dict) else None
            if isinstance(number, int) and 0 <= number < len(rollouts) and _is_whole(line, to_score):
                _restore(rollouts[number], line)
        self._lines = []
        self.finished = sum(one.state is not None and not one.given for one in rollouts)
        return self.finished

    def append(self, number: int, rollout: Rollout, prompt: Messages, info: Info) -> None:
        """Write down a finished rollout: one that failed by its error only, for it is to be run again.

        Args:
            number: Its place in the run.
            rollout: The rollout.
            prompt: Its prompt before it was run.
            info: The same of its info.

        Raises:
            OutputError: It cannot be written.
        """
        try:
            self._write(_line(number, rollout, {"prompt": prompt, "info": info}))
        except OSError as wrong:
            raise OutputError(f"{shown_path(self.path)}: {wrong.strerror}.", "What is there is kept.") from wrong
        self.finished += not rollout.failed

    def _write(self, line: Mapping[str, Any]) -> None:
        losses = exact.Losses()
        written = _as_line(line, losses)
        if losses.places:  # objects of an environment's own, which come back as text
            written = _as_line({**line, "lossy": True}, losses)
        self._file.write(written)
        self._file.flush()

    def close(self) -> None:
        """Bring it to the disk."""
        try:
            os.fsync(self._file.fileno())
        finally:
            # NOTE: what a full disk did not take is tried again here; that it could not be written has been told
            with contextlib.suppress(OSError):
                self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _difference(name: str, there: Any, here: Any) -> str:
    words = name.replace("_", " ")
    if name == "inputs":
        return "its inputs are others"
    return f"{words} {_short(there)} there, {_short(here)} here"


def _short(value: Any) -> str:
    said = printable(json.dumps(value, ensure_ascii=False, default=str))
    return said if len(said) <= _SHOWN else f"{said[:_SHOWN]}…"


def _line(number: int, rollout: Rollout, before: Mapping[str, Any]) -> dict[str, Any]:
    if rollout.failed or rollout.state is None:
        return {"rollout": number, "error": rollout.error}
    known = {name: getattr(rollout, name) for name in _KNOWN} | dict(before)
    same = [name for name in _KNOWN if name in rollout.state and _same(rollout.state[name], known[name])]
    changed = {name: getattr(rollout, name) for name in before if not _same(getattr(rollout, name), before[name])}
    # what could not be scored, or a function of the rubric failed on, is scored again when the run goes on
    scored = rollout.reward is not None and not rollout.state.get("error")
    kept = {name: value for name, value in rollout.state.items() if name != "error"}
    line = {
        "rollout": number,
        "completion": rollout.completion,
        "state": {name: None if name in same else value for name, value in kept.items()},
        "as_given": same,
        **changed,
    }
    if scored:
        line |= {"reward": rollout.reward, "metrics": rollout.metrics}
    return line


def _same(one: Any, other: Any) -> bool:
    try:
        return bool(one == other)
    except RAISED:  # arrays, say, are not just equal or not
        return False


def _is_whole(line: Mapping[str, Any], to_score: bool) -> bool:
    """Whether a rollout need not be run again."""
    if to_score and line.get("lossy") and "reward" not in line:
        return False
    return (
        isinstance(line.get("state"), dict)
        and isinstance(line.get("as_given"), list)
        and isinstance(line.get("completion"), str | list)
    )


def _restore(rollout: Rollout, line: Mapping[str, Any]) -> None:
    rollout.completion = _with_calls(line.get("completion"))
    # what scores it again must not reach the dataset
    known = {name: copy.deepcopy(getattr(rollout, name)) for name in ("prompt", "info")}
    same = [name for name in line.get("as_given", ()) if name in _KNOWN]
    state = dict(line["state"])  # in the order that it had
    state.update((name, known.get(name, getattr(rollout, name))) for name in same)
    if isinstance(state.get("completion"), list):
        state["completion"] = _with_calls(state["completion"])
    if isinstance(state.get("responses"), list):
        state["responses"] = [Fields(one) if isinstance(one, dict) else one for one in state["responses"]]
    rollout.state = state
    rollout.prompt, rollout.info = line.get("prompt", known["prompt"]), line.get("info", known["info"])
    rollout.reward, rollout.metrics = line.get("reward"), line.get("metrics")


def _with_calls(messages: Any) -> Any:
    """Messages whose tool calls are read as those of a rollout are."""
    for message in messages if isinstance(messages, list) else ():
        if isinstance(message, dict) and isinstance(message.get("tool_calls"), list):
            message["tool_calls"] = [Fields(one) if isinstance(one, dict) else one for one in message["tool_calls"]]
    return messages


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a folder against other runs.

    Raises:
        UsageError: Another run holds it, or the path is a file.
        OutputError: It cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise UsageError(
            f"results_path: {shown_path(folder)} is a file.", "Give a folder; it is made if need be."
        ) from None
    except OSError as wrong:
        raise OutputError(f"{shown_path(folder)}: {wrong.strerror}.") from wrong
    with locking(folder / _LOCK, str(folder), "Wait for it to end, or give another results_path."):
        yield
