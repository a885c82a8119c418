"""Rollouts of a run, made of its inputs: datasets as rows of plain Python values, and rows as rollouts that are still to run."""

import copy
import io
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from assay.errors import InputError, quoted, shown_path
from assay.loading.folders import expand
from assay.loading.formats.files import LINES, format_of
from assay.loading.formats.jsonl import LineSource, cut
from assay.loading.formats.reading import Reading
from assay.loading.presets.preset import NONE
from assay.loading.rollouts import scan
from assay.types import GenerateInputs, Info, Messages, State
from assay.values.arguments import messages
from assay.values.failures import GENERATION_ERROR, generation_error

_FIELDS = ("prompt", "completion", "answer", "state", "task", "info", "example_id")


@dataclass(slots=True)
class Rollout:
    """One rollout: its inputs, its state and its reward."""

    prompt: Messages
    answer: str
    info: Info
    task: str
    example_id: int
    completion: Messages | None = None
    state: State | None = None  # once it has begun
    given: bool = False  # its completion was part of the input
    error: str = ""  # why it is unscored, ``<ExceptionType>: <message>``
    failed: bool = False  # its generation ended with that error
    reward: float | None = None
    metrics: dict[str, float] | None = None

    @property
    def fields(self) -> dict[str, Any]:
        """Return what rollouts are made of and scored by."""
        return {name: getattr(self, name) for name in _FIELDS}

    @property
    def to_generate(self) -> bool:
        """Return whether it has no completion, or one of a failed generation."""
        return not self.given and (self.state is None or self.failed)

    @property
    def to_score(self) -> bool:
        """Return whether it has a completion, but no reward."""
        return self.state is not None and not self.failed and not self.error and self.reward is None

    def begin(self, state: Any, completion: Messages) -> dict[str, Any]:
        """Add the fields that every state has at the start to a state, which an environment may have made."""
        if not isinstance(state, dict):
            raise TypeError(f"the state of a rollout is a dict, not {type(state).__name__}")
        standard = self.fields | {"completion": completion, "responses": [], "turn": 0, "timing": {}}
        del standard["state"]
        for name, value in standard.items():
            state.setdefault(name, value)
        if isinstance(state["timing"], dict):
            for name in ("generation_ms", "scoring_ms", "total_ms"):
                state["timing"].setdefault(name, 0.0)
        return state

    def fail(self, error: str, *, in_generation: bool) -> None:
        """Record why it is unscored; one whose generation failed is never scored."""
        self.error, self.failed = error, self.failed or in_generation
        if self.state is not None:
            self.state["error"] = error
            if in_generation:
                self.state[GENERATION_ERROR] = error


def read_rows(source: Any) -> list[dict[str, Any]]:
    """Return a dataset, anything ``assay.scan`` reads, as a list of rows, with nested values unchanged.

    Mappings, a Hugging Face ``Dataset`` and JSONL files are not converted to a table, so that no row gets fields that only others have.
    """
    if isinstance(source, str | Path) and "://" not in str(source) and str(source) != "-":
        files, _ = expand(source)
        if all(format_of(file) is LINES for file in files):
            return [row for file in files for row in _read_jsonl(file)]
    if isinstance(source, Mapping):
        return _rows_of_columns(source)
    if hasattr(source, "to_list") and hasattr(source, "column_names"):
        return list(source.to_list())
    is_list = isinstance(source, Sequence) and not isinstance(source, str | bytes)
    if is_list and not isinstance(next(iter(source), {}), str | Path):
        for number, row in enumerate(source):
            if not isinstance(row, Mapping):
                raise InputError(f"Row {number}: expected a mapping of columns to values, got {type(row).__name__}.")
        return [dict(row) for row in source]
    rows = scan(source, preset=NONE).collect().to_dicts()
    for row in rows:
        row.update((name, messages(row[name])) for name in ("prompt", "completion") if name in row)
    return rows


def _read_jsonl(path: Path) -> Iterable[dict[str, Any]]:
    with LineSource.of(path, str(path), Reading()).open() as stream:
        pieces = (io.BytesIO(piece.data) for piece in cut(stream, sys.maxsize))
        for number, line in enumerate(chain.from_iterable(pieces), 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line.decode("utf-8-sig" if number == 1 else "utf-8"))
            except (ValueError, RecursionError) as error:
                raise InputError(f"{shown_path(path)}: line {number} is not JSON: {error}") from None
            if not isinstance(row, dict):
                raise InputError(f"{shown_path(path)}: line {number} is not a JSON object.")
            yield row


def _rows_of_columns(columns: Mapping[str, Any]) -> list[dict[str, Any]]:
    present = {name: list(values) for name, values in columns.items() if values is not None}
    lengths = {name: len(values) for name, values in present.items()}
    if len(set(lengths.values())) > 1:
        counts = ", ".join(f"`{name}` {length}" for name, length in lengths.items())
        raise InputError(f"The columns have different lengths: {counts}.")
    return [dict(zip(present, values, strict=True)) for values in zip(*present.values(), strict=True)]


def numbered(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows with an ``example_id`` each; if ids are not integers, they move to ``src_id`` and the rows are numbered."""
    if _has_ids(rows, "example_id"):
        return rows
    return [
        {**({"src_id": row["example_id"]} if "example_id" in row else {}), **row, "example_id": number}
        for number, row in enumerate(rows)
    ]


def _has_ids(rows: list[dict[str, Any]], name: str) -> bool:
    ids = [row.get(name) for row in rows]
    return all(isinstance(value, int) and not isinstance(value, bool) for value in ids)


def rollouts_of(inputs: Any, *, message_type: str, ask: Callable[[str], Messages], client: bool) -> list[Rollout]:
    """Return the inputs of a run as rollouts; ``ask`` makes a prompt of a question.

    A rollout that has a completion is not generated. With a client, an empty completion and one of a failed generation count as
    missing. Without a client, an empty completion is a completion like any other, and a rollout whose generation failed stays
    unscored.
    """
    rows = _rows_of_columns(dict(inputs)) if isinstance(inputs, GenerateInputs) else read_rows(inputs)
    column = next((name for name in ("example_id", "id") if rows and _has_ids(rows, name)), "")
    return [
        _rollout(row, row[column] if column else number, f"Row {number}", message_type, ask, client)
        for number, row in enumerate(rows)
    ]


def _rollout(
    row: Mapping[str, Any], example_id: int, where: str, message_type: str, ask: Callable[[str], Messages], client: bool
) -> Rollout:
    completion = row.get("completion")
    failed = None if completion is None else generation_error(row)
    given = completion is not None and not (client and (failed or not completion))
    if given:
        _check_text_or_messages(completion, f"{where}: `completion`")
    is_chat = message_type == "chat"
    prompt: Any = row.get("prompt")
    if prompt is None and isinstance(row.get("question"), str):
        prompt = ask(row["question"]) if is_chat else row["question"]
    _check_text_or_messages(prompt, f"{where}: `prompt`")
    info = _parse_info(row.get("info"), where)
    if not given and is_chat:
        prompt = ask(prompt) if isinstance(prompt, str) else messages(prompt)
    elif not given and not isinstance(prompt, str):
        fact = f"{where}: `prompt` is a list of messages; text completions need text."
        raise InputError(fact, 'Use message_type="chat" for messages.')
    task, answer = row.get("task"), info.get("answer") if row.get("answer") is None else row["answer"]
    if isinstance(answer, dict | list):
        answer = json.dumps(answer, ensure_ascii=False, default=str)
    return Rollout(
        prompt=prompt,
        answer="" if answer is None else str(answer),
        info=info,
        task="default" if task is None else str(task),
        example_id=example_id,
        completion=completion if given else None,
        given=given,
        error=failed or "",
        failed=failed is not None,
    )


def is_text_or_messages(value: Any) -> bool:
    """Return whether a value is text or a list of messages, each a dict."""
    return isinstance(value, str) or (isinstance(value, list) and all(isinstance(message, dict) for message in value))


def _check_text_or_messages(value: Any, where: str) -> None:
    if not is_text_or_messages(value):
        actual = "missing" if value is None else f"{type(value).__name__} {quoted(str(value))}"
        raise InputError(f"{where} is {actual}.", "Expected text, or a list of messages {role, content}.")


def _parse_info(info: Any, where: str) -> Info:
    if isinstance(info, str):
        try:
            info = json.loads(info)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{where}: `info` is text that is not JSON: {error}") from None
    if info is None:
        return {}
    if not isinstance(info, Mapping):
        raise InputError(f"{where}: `info` is {type(info).__name__}; expected a mapping, or the JSON text of one.")
    # changes by a function must not affect the dataset or other rollouts
    return copy.deepcopy(dict(info))
