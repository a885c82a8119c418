"""Answers that come in pieces, put together into the answer that would have come whole."""

import contextlib
import importlib
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

from assay.errors import quoted

__all__ = ["Fields", "NotACompletion", "as_response", "gathered"]

_SET = ("id", "index", "role", "type", "finish_reason", "stop_reason")
"""Fields of which a later piece has the whole value, not more of it."""


class NotACompletion(Exception):  # noqa: N818  (``error`` shows the name, which reads as the sentence it is)
    """What came back is no answer of a model, or not all of one."""


class Fields(dict[str, Any]):
    """A JSON object whose fields are attributes, too, as the openai package has them: ``response.choices[0].message.content``.

    States keep answers and tool calls so: they read as the objects of that package do, and are equal to what is saved of them.
    """

    def __getattr__(self, name: str) -> Any:
        try:
            value = self[name]
        except KeyError:
            raise AttributeError(name) from None
        if type(value) is dict:
            value = self[name] = Fields(value)
        elif isinstance(value, list) and value and type(value[0]) is dict:
            value[:] = [Fields(one) if type(one) is dict else one for one in value]
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value

    def model_dump(self, **_: Any) -> dict[str, Any]:
        """A copy as a plain dict."""
        found: dict[str, Any] = json.loads(json.dumps(self))
        return found


def as_response(fields: Mapping[str, Any], message_type: str) -> Any:
    """An answer as the openai package has it; where that is not installed, what reads the same.

    Args:
        fields: The body of the answer.
        message_type: ``chat`` or ``completion``.
    """
    try:
        types = importlib.import_module("openai.types" if message_type == "completion" else "openai.types.chat")
    except ImportError:
        return Fields(fields)
    kind = types.Completion if message_type == "completion" else types.ChatCompletion
    return kind.construct(**fields)


async def gathered(stream: AsyncIterator[Any], message_type: str) -> Any:
    """One answer from the pieces of a stream; the stream is closed, whatever happens.

    Args:
        stream: Chunks of the openai package.
        message_type: ``chat`` or ``completion``.

    Raises:
        NotACompletion: The stream ended before every choice had its ``finish_reason``.
    """
    whole: dict[str, Any] = {}
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
            whole.update({name: value for name, value in piece.items() if value is not None})
    finally:
        close = getattr(stream, "close", None) or getattr(stream, "aclose", None)
        if close is not None:
            with contextlib.suppress(Exception):  # the connection may be gone; what ended the stream is told instead
                await close()
    if not choices or not all(choice.get("finish_reason") for choice in choices.values()):
        said = f": {quoted(str(whole['error']))}" if whole.get("error") else ""
        raise NotACompletion(f"the stream ended before the answer did{said}")
    for choice in choices.values():
        calls = choice.get("message", {}).get("tool_calls") or ()
        if not (isinstance(calls, list | tuple) and all(isinstance(call, dict) for call in calls)):
            raise NotACompletion(f"the tool calls of the stream are none: {quoted(str(calls))}")
        for call in calls:
            call.pop("index", None)  # the number of a piece, not a field of a call
    whole["object"] = "text_completion" if message_type == "completion" else "chat.completion"
    return as_response(whole | {"choices": [choices[index] for index in sorted(choices)]}, message_type)


def _add_choice(choices: dict[int, dict[str, Any]], part: dict[str, Any]) -> None:
    """Add a piece of one choice to what is there of it."""
    delta, index = part.pop("delta", None), int(part.get("index") or 0)
    found = choices.setdefault(index, {})
    _add(found, part)
    if delta is not None:
        _add(found.setdefault("message", {"role": "assistant", "content": None}), delta)


def _add(found: dict[str, Any], piece: Mapping[str, Any]) -> None:
    """Add a piece to what is there: texts and lists grow, fields of ``_SET`` are replaced."""
    for name, value in piece.items():
        before = found.get(name)
        if before is None or name in _SET:
            if value is not None or name not in found:
                found[name] = _whole(value)
        elif isinstance(value, str):
            if not (name == "name" and value == before):  # some servers send a function's name again with every piece
                found[name] = before + value
        elif isinstance(value, Mapping):
            _add(before, value)
        elif isinstance(value, list):
            _extend(before, value)
        elif value is not None:
            found[name] = value


def _whole(value: Any) -> Any:
    """A first piece, with pieces of one list item that came together made one."""
    if not isinstance(value, list):
        return value
    found: list[Any] = []
    _extend(found, value)
    return found


def _extend(found: list[Any], pieces: list[Any]) -> None:
    """Items that say which one they are a piece of (tool calls) are added to that one, others come last (log-probabilities)."""
    for piece in pieces:
        index = piece.get("index") if isinstance(piece, Mapping) else None
        same = next((one for one in found if one.get("index") == index), None) if index is not None else None
        if same is None:
            found.append(piece)
        else:
            _add(same, piece)
