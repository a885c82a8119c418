"""Streamed responses, merged into the response that would have come without streaming."""

import contextlib
import importlib
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

from assay.errors import quoted

_REPLACED_FIELDS = ("id", "index", "role", "type", "finish_reason", "stop_reason")
"""Fields whose later values replace earlier ones instead of extending them."""


class NotACompletion(Exception):  # noqa: N818  (``error`` shows the name, and users know it)
    """The response is not a completion, or an incomplete one."""


class Fields(dict[str, Any]):
    """A JSON object whose fields are also attributes, as in the openai package: ``response.choices[0].message.content``."""

    def __getattr__(self, name: str) -> Any:
        try:
            value = self[name]
        except KeyError:
            raise AttributeError(name) from None
        if type(value) is dict:
            value = self[name] = Fields(value)
        elif isinstance(value, list) and value and type(value[0]) is dict:
            value[:] = [Fields(item) if type(item) is dict else item for item in value]
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value

    def model_dump(self, **_: Any) -> dict[str, Any]:
        """Return a copy as plain dicts and lists."""
        copied: dict[str, Any] = json.loads(json.dumps(self))
        return copied


def as_response(fields: Mapping[str, Any], message_type: str) -> Any:
    """Return the body of a response as an object of the openai package, or as ``Fields`` if that package is not installed."""
    try:
        types = importlib.import_module("openai.types" if message_type == "completion" else "openai.types.chat")
    except ImportError:
        return Fields(fields)
    kind = types.Completion if message_type == "completion" else types.ChatCompletion
    return kind.construct(**fields)


async def gather(stream: AsyncIterator[Any], message_type: str) -> Any:
    """Merge the chunks of a stream into one response and close the stream in any case; ``NotACompletion`` if it ends early."""
    merged: dict[str, Any] = {}
    choices: dict[int, dict[str, Any]] = {}
    try:
        async for chunk in stream:
            piece = chunk.model_dump(exclude_unset=True, warnings=False)
            parts = piece.pop("choices", None) or ()
            try:
                for part in parts:
                    _add_choice(choices, part)
            except (AttributeError, KeyError, TypeError, ValueError):  # a server may send anything
                raise NotACompletion(f"a piece of the stream is no piece of an answer: {quoted(str(parts))}") from None
            merged.update({name: value for name, value in piece.items() if value is not None})
    finally:
        close = getattr(stream, "close", None) or getattr(stream, "aclose", None)
        if close is not None:
            with contextlib.suppress(
                Exception
            ):  # the connection may be gone; the error that ended the stream matters more
                await close()
    if not choices or not all(choice.get("finish_reason") for choice in choices.values()):
        detail = f": {quoted(str(merged['error']))}" if merged.get("error") else ""
        raise NotACompletion(f"the stream ended before the answer did{detail}")
    for choice in choices.values():
        calls = choice.get("message", {}).get("tool_calls") or ()
        if not (isinstance(calls, list | tuple) and all(isinstance(call, dict) for call in calls)):
            raise NotACompletion(f"the tool calls of the stream are none: {quoted(str(calls))}")
        for call in calls:
            call.pop("index", None)  # a field of chunks, not of calls
    merged["object"] = "text_completion" if message_type == "completion" else "chat.completion"
    return as_response(merged | {"choices": [choices[index] for index in sorted(choices)]}, message_type)


def _add_choice(choices: dict[int, dict[str, Any]], part: dict[str, Any]) -> None:
    delta, index = part.pop("delta", None), int(part.get("index") or 0)
    choice = choices.setdefault(index, {})
    _add_fields(choice, part)
    if delta is not None:
        _add_fields(choice.setdefault("message", {"role": "assistant", "content": None}), delta)


def _add_fields(target: dict[str, Any], piece: Mapping[str, Any]) -> None:
    for name, value in piece.items():
        before = target.get(name)
        if before is None or name in _REPLACED_FIELDS:
            if value is not None or name not in target:
                target[name] = _merge_items(value)
        elif isinstance(value, str):
            if not (name == "name" and value == before):  # some servers repeat a function's name in every chunk
                target[name] = before + value
        elif isinstance(value, Mapping):
            _add_fields(before, value)
        elif isinstance(value, list):
            _extend(before, value)
        elif value is not None:
            target[name] = value


def _merge_items(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    items: list[Any] = []
    _extend(items, value)
    return items


def _extend(items: list[Any], pieces: list[Any]) -> None:
    for piece in pieces:
        index = piece.get("index") if isinstance(piece, Mapping) else None
        same = next((item for item in items if item.get("index") == index), None) if index is not None else None
        if same is None:
            items.append(piece)
        else:
            _add_fields(same, piece)
