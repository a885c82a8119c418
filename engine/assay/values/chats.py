"""Chat messages as Arrow structs that anybody can read, and back without loss.

A message is ``role``, ``content`` as text (of parts, the text that checks read), ``tool_calls``, each as JSON, and
``tool_call_id``; ``exact`` is JSON of the fields of which these do not say all, and null where they do.
"""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from pydantic import BaseModel

from assay.errors import RAISED, InputError
from assay.expressions.completion import completion_text
from assay.expressions.json import mended
from assay.values import tagged_json as exact

__all__ = ["EXACT", "TEXT", "Cells", "chat_cells", "chat_of", "chat_type", "value_of"]

EXACT = "exact"
"""Name of the field, and of the column, that says what the others leave unsaid."""

# offsets of 64 bits, for what a run holds can be more than 2 GB
TEXT = pa.large_string()
"""Type of every text."""

_TEXTS = ("role", "content", "tool_call_id")
_CALLS = "tool_calls"

Cells = list[dict[str, Any] | None]


def chat_type(chats: list[Cells | None]) -> Any:
    """The type of a column of chats; without the field ``exact`` where no message needs it."""
    fields = [("role", TEXT), ("content", TEXT), (_CALLS, pa.large_list(TEXT)), ("tool_call_id", TEXT)]
    if any(message and EXACT in message for chat in chats for message in chat or ()):
        fields.append((EXACT, TEXT))
    return pa.large_list(pa.struct(fields))


def chat_cells(value: Any, place: str, losses: exact.Losses) -> Cells | None:
    """Messages as structs.

    Args:
        value: Anything.
        place: Where it stands, to tell where a loss is.
        losses: Takes note of what will not come back as it was.

    Returns:
        One struct a message, or None where the value is not messages.
    """
    if not isinstance(value, list | tuple):
        return None
    messages = [_fields(message) for message in value]
    if any(fields is None and message is not None for fields, message in zip(messages, value, strict=True)):
        return None
    return [None if fields is None else _cells(fields, f"{place}[{at}]", losses) for at, fields in enumerate(messages)]


def _fields(message: Any) -> dict[Any, Any] | None:
    try:
        if isinstance(message, BaseModel):
            return message.model_dump(mode="json", warnings=False)
        return dict(message) if isinstance(message, Mapping) else None
    except RAISED:
        return None


def _cells(fields: dict[Any, Any], place: str, losses: exact.Losses) -> dict[str, Any]:
    """A message as a struct; takes from its fields those that the struct says exactly."""
    cells: dict[str, Any] = {}
    for name in _TEXTS:
        value = fields.get(name)
        if isinstance(value, str):
            cells[name] = mended(value)
            if cells[name] == value:
                del fields[name]
        elif name == "content" and isinstance(value, list | tuple):
            cells[name] = mended(completion_text([{"content": value}]) or "")
    if isinstance(fields.get(_CALLS), list):
        calls = enumerate(fields.pop(_CALLS))
        cells[_CALLS] = [exact.write(call, f"{place}.{_CALLS}[{at}]", losses) for at, call in calls]
    if fields:
        cells[EXACT] = exact.write(fields, place, losses)
    return cells


def chat_of(cells: Any, place: str) -> Any:
    """The messages of structs, or of those of another program: the fields that are not null.

    Raises:
        InputError: What should be JSON is not.
    """
    return [_message(one, place) for one in cells] if isinstance(cells, list) else cells


def _message(cells: Any, place: str) -> Any:
    if not isinstance(cells, dict):
        return cells
    message = {name: cell for name, cell in cells.items() if cell is not None and name != EXACT}
    if isinstance(message.get(_CALLS), list):
        message[_CALLS] = [value_of(call, place) for call in message[_CALLS]]
    rest = value_of(cells.get(EXACT), place)
    return message | rest if isinstance(rest, dict) else message


def value_of(cell: Any, place: str) -> Any:
    """A value from its JSON; one that another program has parsed already, as it is.

    Raises:
        InputError: It is not JSON.
    """
    if not isinstance(cell, str):
        return cell
    try:
        return exact.read(cell)
    except (ValueError, RecursionError) as wrong:
        raise InputError(f"{place}: not the JSON that was saved: {wrong}.") from None
