"""A log of Inspect: its samples as rollouts.

Inspect's own reader is used, because the format of its logs changes often.
"""

import json
import warnings
import zipfile
from array import array
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from assay.errors import RAISED, InputError, describe_error, install, shown_path
from assay.loading.formats.documents import RecordDocument

_NOT_READ = {"attachments", "events", "events_data", "model_usage", "role_usage", "scores", "store", "timelines"}
"""Fields of a sample that are most of its bytes, and no part of a rollout."""


def read_inspect_log(path: Path, name: str, limit: int, end: str = "") -> RecordDocument:
    """Return the samples of a log, as ``sample_columns`` has them, with ``id``, which is the ``task_id``, and ``epoch``.

    ``end`` names the column with the reason why the last message of a sample ended, if there is to be one.
    """
    shown = shown_path(name)
    try:
        from inspect_ai.log import read_eval_log
    except ImportError:
        raise InputError(f"{shown}: inspect_ai, which reads its logs, is not installed.", install("inspect")) from None
    lines, places = bytearray(), array("q")
    try:
        _refuse_large(path, shown, limit)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # on fields of older logs
            log = read_eval_log(str(path), format=_format(path), exclude_fields=_NOT_READ)
            records = []
            for sample in log.samples or ():
                record = {"task_id": str(sample.id)} | sample_columns(sample) | {"id": sample.id, "epoch": sample.epoch}
                record |= {end: _stop_reason(sample)} if end else {}
                failed = {} if sample.error is None else {"completion": None, "error": sample.error.message}
                records.append(record | failed)
    except InputError:
        raise
    except RAISED as error:
        raise InputError(
            f"{shown}: not a readable log of Inspect: {describe_error(error).partition(chr(10))[0]}"
        ) from None
    if not records:
        raise InputError(f"{shown}: the log has no samples.")
    has_messages = any(isinstance(record["completion"], list) for record in records)
    for number, record in enumerate(records, 1):
        if has_messages and isinstance(record["completion"], str):  # one type for the column
            record["completion"] = [{"role": "assistant", "content": record["completion"]}]
        lines += json.dumps(record, default=str).encode() + b"\n"
        places.append(number)
    return RecordDocument(lines, places, (f"{shown}: the rows are the samples of a log of Inspect",))


def _format(path: Path) -> Literal["eval", "json"]:
    return "json" if path.suffix.lower() == ".json" else "eval"


def _refuse_large(path: Path, shown: str, limit: int) -> None:
    if _format(path) == "json":
        sizes = [path.stat().st_size]
    else:
        with zipfile.ZipFile(path) as archive:
            sizes = [entry.file_size for entry in archive.infolist()]
    if (size := max(sizes, default=0)) > limit:
        hint = "Raise --memory-limit or --max-ratio if you trust it."
        raise InputError(f"{shown}: an entry of the log has {size:,} bytes; the limits allow {limit:,}.", hint)


def sample_columns(sample: Any) -> dict[str, Any]:
    """Return a sample of a log, or the state of a task, as a row."""
    targets = [sample.target] if isinstance(sample.target, str) else list(sample.target)
    columns = dict(sample.metadata or {})
    if any(targets):
        columns["answer"] = targets[0] if len(targets) == 1 else targets
    return columns | {"prompt": _prompt(sample.input), "completion": _completion(sample)}


def _prompt(given: Any) -> str:
    if isinstance(given, str):
        return given
    return next((message.text for message in reversed(given) if message.role == "user"), "")


def _completion(sample: Any) -> str | list[dict[str, Any]] | None:
    if sample.output is None or not sample.output.choices:
        return None
    text = str(sample.output.completion)
    if not any(getattr(message, "tool_calls", None) for message in sample.messages):
        return text
    messages = [_message(message) for message in sample.messages]
    spoken = [message["content"] for message in messages if message["role"] == "assistant"]
    return messages if spoken[-1] == text else [*messages, {"role": "assistant", "content": text}]


def _stop_reason(sample: Any) -> str | None:
    return None if sample.output is None or not sample.output.choices else str(sample.output.stop_reason)


def _message(message: Any) -> dict[str, Any]:
    calls: list[Mapping[str, Any]] = [
        {"function": {"name": call.function, "arguments": json.dumps(call.arguments, default=str)}}
        for call in getattr(message, "tool_calls", None) or ()
    ]
    return {"role": message.role, "content": message.text} | ({"tool_calls": calls} if calls else {})
