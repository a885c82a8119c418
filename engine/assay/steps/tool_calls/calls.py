"""Tool calls in messages: those of OpenAI, Anthropic, Gemini and the Responses API, in one form.

A call is ``{"name": …, "arguments": …}``, with arguments as they are given: an object, its JSON text, or anything else.
``parsed_calls`` parses JSON text once; arguments that are no JSON object stay as they are, so that they equal nothing that a check
expects.
"""

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from assay.expressions.json import MAX_DEPTH, NOT_JSON, dumps, loads, mended, nesting, too_deep

Call = dict[str, Any]
"""A call: ``name`` and ``arguments``."""

ARGUMENTS = ("arguments", "args", "input", "parameters")
"""Names of a call's arguments, in the order in which they are looked for."""
_BESIDE = frozenset(("name", "id", "call_id", "index", "type", "status", *ARGUMENTS))
"""Fields of an object that is a call by itself; one with other fields is data that has a name."""
_FIELDS = {"name", "arguments"}
_OWN_TYPES = ("function_call", "tool_use", "tool_call")
_ROLES = (None, "assistant", "model")
"""Roles of messages that may have calls; items of the Responses API have none."""
_DEEP = "nested too deeply"
_LIST_AND_CALL = 2
"""Brackets around the arguments of a call in a list."""


def calls_of_messages(messages: Sequence[Any]) -> list[Call]:
    """Return the calls of the assistant's messages, in order."""
    return [call for message in messages if is_assistant(message) for call in calls_of(message)]


def is_assistant(message: Any) -> bool:
    """Return whether a value is a message that may have calls."""
    return isinstance(message, dict) and message.get("role") in _ROLES


def calls_of(message: Mapping[str, Any]) -> list[Call]:
    """Return the calls of a message, or of an item that is itself a call.

    Of a message that has them in several forms, as some libraries write, those of the first form count: ``tool_calls``,
    ``function_call``, its own fields, its parts.
    """
    calls = [call for item in _items(message.get("tool_calls")) for call in requested_call(_function(item))]
    calls = calls or requested_call(_object(message.get("function_call"))) or _own_call(message)
    if calls:
        return calls
    parts = [*_items(message.get("content")), *_items(message.get("parts"))]
    return [call for part in parts if isinstance(part, dict) for call in _own_call(part)]


def bare_call(value: Mapping[str, Any]) -> list[Call]:
    """Return the call that an object is without any sign of it but its fields: a name, and nothing else but arguments."""
    return requested_call(value) if isinstance(value.get("name"), str) and value.keys() <= _BESIDE else []


def is_call(value: Any) -> bool:
    """Return whether a JSON value is a call as it stands, as most are that models write: it needs no other form."""
    return (
        type(value) is dict
        and value.keys() == _FIELDS
        and type(value["name"]) is str
        and value["name"] != ""
        and value["arguments"] is not None
    )


def _own_call(item: Mapping[str, Any]) -> list[Call]:
    for field in ("functionCall", "function_call"):
        if isinstance(item.get(field), dict):
            return requested_call(item[field])
    if item.get("type") == "function":
        return requested_call(_function(item))
    return requested_call(item) if item.get("type") in _OWN_TYPES else []


def _items(value: Any) -> Sequence[Any]:
    if isinstance(value, str) and value.startswith("["):
        value = loads(value)
    return value if isinstance(value, list | tuple) else ()


def _object(value: Any) -> Any:
    return loads(value) if isinstance(value, str) and value.startswith("{") else value


def _function(item: Any) -> Any:
    item = _object(item)
    return _object(item.get("function", item)) if isinstance(item, dict) else None


def requested_call(request: Any) -> list[Call]:
    """Return the call that an object with a name and arguments describes; none if it has no name."""
    if not isinstance(request, dict) or request.get("name") in (None, ""):
        return []
    arguments: Any = next((request[name] for name in ARGUMENTS if request.get(name) is not None), {})
    return [{"name": request["name"], "arguments": arguments}]


def parsed_calls(calls: Sequence[Call]) -> list[Call]:
    """Return calls with arguments in JSON text parsed."""
    return [
        call if type(call["arguments"]) is not str else {**call, "arguments": _parsed(call["arguments"])}
        for call in calls
    ]


def _parsed(arguments: str) -> Any:
    value = loads(arguments)
    return arguments if value is NOT_JSON else value


# ── as text ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def calls_text(calls: Sequence[Call]) -> str:
    """Return calls as JSON text that ``read_calls`` accepts; arguments that it would not are replaced by a text."""
    text = _dumped(calls)
    if text is None or too_deep(text):
        text = _dumped([call if _is_shallow(call) else {**call, "arguments": _DEEP} for call in calls])
    return mended(text or "[]")


def read_calls(text: str, *, parse: bool = True) -> list[Call]:
    """Return the calls that ``calls_text`` wrote, with arguments parsed if ``parse``; none from any other text."""
    calls = loads(text) if text.startswith("[") and text != "[]" else ()
    if not isinstance(calls, list):
        return []
    calls = [call for call in calls if isinstance(call, dict) and call.keys() == _FIELDS]
    return parsed_calls(calls) if parse else calls


def _is_shallow(call: Call) -> bool:
    text = _dumped(call["arguments"])
    return text is not None and nesting(text) <= MAX_DEPTH - _LIST_AND_CALL


def _dumped(value: Any) -> str | None:
    """Return JSON text; None for a value that has none, whatever the depth of the caller's stack."""
    try:
        return dumps(value)
    except (TypeError, ValueError):
        return None
    except RecursionError:
        texts: list[str | None] = [None]
        thread = threading.Thread(target=_dump_into, args=(value, texts))
        thread.start()
        thread.join()
        return texts[0]


def _dump_into(value: Any, texts: list[str | None]) -> None:
    try:
        texts[0] = dumps(value)
    except (TypeError, ValueError, RecursionError):
        return
