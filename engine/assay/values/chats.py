"""Convert chat messages to Arrow structs that any program can read, and back without loss.

A message has ``role``, ``content`` as text (for parts, the text that checks read), ``tool_calls``, each as JSON, and
``tool_call_id``. ``exact`` is JSON of the fields that these do not represent completely, or null.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from assay.errors import RAISED, InputError
from assay.expressions.completion import completion_text
from assay.expressions.json import mended
from assay.system.arrow import pa
from assay.values import tagged_json as exact

EXACT = "exact"
"""Name of the field, and of the column, for what the other fields cannot represent."""

PLAIN_TEXT = '""'
"""``exact`` of a message that stands for a text, in a column that also has messages."""

_TEXTS = ("role", "content", "tool_call_id")
_CALLS = "tool_calls"

Structs = list[dict[str, Any] | None]


def plain_text(text: str) -> list[dict[str, str]]:
    """Return a text completion as a conversation, for a column that also has messages: one message of the assistant."""
    return [{"role": "assistant", "content": text, EXACT: PLAIN_TEXT}]


def is_plain_text(completion: Any) -> bool:
    """Return whether a conversation stands for a text: whether ``plain_text`` returned it."""
    if not isinstance(completion, list | tuple) or len(completion) != 1:
        return False
    return isinstance(completion[0], Mapping) and completion[0].get(EXACT) == PLAIN_TEXT


def text_type() -> Any:
    """Return the type of all texts: with offsets of 64 bits, because a run can hold more than 2 GB of text."""
    return pa.large_string()


def chat_type(chats: list[Structs | None]) -> Any:
    """Return the type of a column of chats; without the field ``exact`` if no message needs it."""
    text = text_type()
    fields = [("role", text), ("content", text), (_CALLS, pa.large_list(text)), ("tool_call_id", text)]
    if any(message and EXACT in message for chat in chats for message in chat or ()):
        fields.append((EXACT, text))
    return pa.large_list(pa.struct(fields))


def chat_structs(value: Any, place: str, losses: exact.Losses) -> Structs | None:
    """Convert messages to structs."""
    if not isinstance(value, list | tuple):
        return None
    messages = [_fields(message) for message in value]
    if any(fields is None and message is not None for fields, message in zip(messages, value, strict=True)):
        return None
    return [
        None if fields is None else _struct_of(fields, f"{place}[{at}]", losses) for at, fields in enumerate(messages)
    ]


def _fields(message: Any) -> dict[Any, Any] | None:
    try:
        if isinstance(message, BaseModel):
            return message.model_dump(mode="json", warnings=False)
        return dict(message) if isinstance(message, Mapping) else None
    except RAISED:
        return None


def _struct_of(fields: dict[Any, Any], place: str, losses: exact.Losses) -> dict[str, Any]:
    struct: dict[str, Any] = {}
    for name in _TEXTS:
        value = fields.get(name)
        if isinstance(value, str):
            struct[name] = mended(value)
            if struct[name] == value:
                del fields[name]
        elif name == "content" and isinstance(value, list | tuple):
            struct[name] = mended(completion_text([{"content": value}], any_role=True) or "")
    if isinstance(fields.get(_CALLS), list):
        calls = enumerate(fields.pop(_CALLS))
        struct[_CALLS] = [exact.write(call, f"{place}.{_CALLS}[{at}]", losses) for at, call in calls]
    if fields:
        struct[EXACT] = exact.write(fields, place, losses)
    return struct


def chat_of(structs: Any, place: str) -> Any:
    """Return the messages from structs; for structs of another program, the fields that are not null."""
    return [_message(struct, place) for struct in structs] if isinstance(structs, list) else structs


def _message(struct: Any, place: str) -> Any:
    if not isinstance(struct, dict):
        return struct
    message = {name: value for name, value in struct.items() if value is not None and name != EXACT}
    if isinstance(message.get(_CALLS), list):
        message[_CALLS] = [value_of(call, place) for call in message[_CALLS]]
    rest = value_of(struct.get(EXACT), place)
    return message | rest if isinstance(rest, dict) else message


def value_of(value: Any, place: str) -> Any:
    """Decode a value from JSON; return a value that another program has already parsed unchanged."""
    if not isinstance(value, str):
        return value
    try:
        return exact.read(value)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{place}: not the JSON that was saved: {error}.") from None
