"""Tool calls in text: JSON, ``<tool_call>`` tags, and calls written as Python."""

import re
from collections.abc import Iterator
from typing import Any, Literal

from assay.expressions.json import NOT_JSON, loads, quick_loads
from assay.steps.tool_calls.calls import Call, bare_call, calls_of, calls_text, is_assistant, is_call, requested_call
from assay.values.references import as_list

Format = Literal["any", "json", "tags", "python"]
FORMAT = (
    "How calls stand in a text: JSON, `<tool_call>` tags, or Python as in `[f(a=1)]`. Messages that have calls of their own "
    "are not searched for others."
)
"""Description of the param ``format``."""

_OPEN, _CLOSE = "<tool_call>", "</tool_call>"
_NAME = '"name"'
"""Key of every call."""
_SHORTEST_LINE = len('{"name":"f"}')
_LINE = re.compile(rf"^[ \t]*([\[{{][^\n]{{{_SHORTEST_LINE - 2},}}[\]}}])[ \t\r]*$", re.MULTILINE)
"""Matches lines that may be JSON with a call."""


def calls_in_text(text: str, form: Format = "any") -> list[Call]:
    """Return the calls that a text writes, in order."""
    if form == "tags" or (form == "any" and _OPEN in text):
        return [call for inner in _tagged(text) for call in _in_tag(inner)]
    if "{" not in text and "(" not in text:
        return []
    calls = _in_json(text) if form != "python" else []
    if calls or form == "json":
        return calls
    from assay.steps.tool_calls.python import calls_in_python

    return calls_in_python(text)


def calls_text_in(text: str, form: Format = "any") -> str:
    """Return ``calls_text`` of these calls, or the text of calls in tags as it is, which ``read_calls`` reads as the same calls."""
    if form == "tags" or (form == "any" and _OPEN in text):
        written = [*map(str.strip, _tagged(text))]
        if all(map(is_call, map(quick_loads, written))):
            return f"[{','.join(written)}]"
    return calls_text(calls_in_text(text, form))


def _tagged(text: str) -> Iterator[str]:
    """Yield what stands between tags; a tag that is not closed has nothing."""
    at = 0
    while (start := text.find(_OPEN, at)) >= 0 and (end := text.find(_CLOSE, start)) >= 0:
        yield text[start + len(_OPEN) : end]
        at = end + len(_CLOSE)


def _in_tag(inner: str) -> list[Call]:
    """Return the calls in a tag; what cannot be read is a call without a name, so that it is not taken for none."""
    value = loads(inner.strip())
    calls = [] if value is NOT_JSON else _of_value(value) or requested_call(value)
    return calls or [{"name": None, "arguments": inner.strip()}]


def _in_json(text: str) -> list[Call]:
    if _NAME not in text:
        return []
    whole = text.strip()
    value = loads(whole) if whole.startswith(("{", "[")) else NOT_JSON
    if value is not NOT_JSON:
        return _of_value(value)
    lines = (loads(match[1]) for match in _LINE.finditer(text) if _NAME in match[1])
    return [call for line in lines if line is not NOT_JSON for call in _of_value(line)]


def _of_value(value: Any) -> list[Call]:
    items = as_list(value)
    messages = [item for item in items if is_assistant(item)]
    return [call for message in messages for call in bare_call(message) or calls_of(message)]
