"""Sources: the text that the steps of a check begin with, in Python and as expressions."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from assay.expressions.completion import completion_text
from assay.expressions.json import mended
from assay.expressions.lane import exactly, rowwise
from assay.names import COMPLETION
from assay.values.arguments import RAW, messages
from assay.values.paths import parse
from assay.values.references import Reference, source_text

__all__ = ["SOURCES", "Source"]

_REASONING = ("reasoning_content", "reasoning")


def _role(message: Any, role: str) -> bool:
    return isinstance(message, Mapping) and message.get("role") == role


def _prompt(row: Mapping[str, Any]) -> str | None:
    """Return the text of the prompt; of messages, that of the last user message."""
    prompt = messages(row.get("prompt"))
    if not isinstance(prompt, list | tuple):
        return None if prompt is None else source_text(prompt)
    asked = [message for message in prompt if _role(message, "user")] or prompt
    return completion_text(asked[-1:], any_role=True) if asked else None


def _assistant_messages(row: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    completion = row.get(RAW)
    if not isinstance(completion, list | tuple):
        return ()
    return [message for message in messages(completion) if _role(message, "assistant")]


def _reasoning(row: Mapping[str, Any]) -> str | None:
    """Return the reasoning of the last assistant message."""
    spoken = _assistant_messages(row)
    texts = (spoken[-1].get(name) for name in _REASONING) if spoken else ()
    return next((text for text in texts if isinstance(text, str)), None)


def _assistant(row: Mapping[str, Any]) -> str | None:
    """Return the texts of all assistant messages, a line each; of a completion that is text, the text."""
    completion = row.get(RAW)
    if completion is None or isinstance(completion, str):
        return completion
    return "\n".join(completion_text([message]) or "" for message in _assistant_messages(row))


def _tool_calls(row: Mapping[str, Any]) -> str | None:
    """Return the calls of all assistant messages, in order, as JSON text: a list of ``name`` and ``arguments``."""
    calls = [call for message in _assistant_messages(row) for call in _calls_of(message)]
    return json.dumps(calls, ensure_ascii=False, default=str) if calls else None


def _calls_of(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    requests = [_function(call) for call in _items(message.get("tool_calls"))]
    requests.append(message.get("function_call"))
    content = [*_items(message.get("content")), *_items(message.get("parts"))]
    parts = [part for part in content if isinstance(part, Mapping)]
    requests += [
        {"name": part.get("name"), "arguments": part.get("input")} for part in parts if _type(part, "tool_use")
    ]
    requests += [part for part in parts if _type(part, "function_call")]
    functions = [part["functionCall"] for part in parts if isinstance(part.get("functionCall"), Mapping)]
    requests += [{"name": call.get("name"), "arguments": call.get("args")} for call in functions]
    return [_call(request) for request in requests if isinstance(request, Mapping) and request.get("name")]


def _items(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else ()


def _type(part: Mapping[str, Any], name: str) -> bool:
    return part.get("type") == name


def _function(call: Any) -> Any:
    return call.get("function", call) if isinstance(call, Mapping) else None


def _call(request: Mapping[str, Any]) -> dict[str, Any]:
    arguments = request.get("arguments")
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            return {"name": request["name"], "arguments": arguments}
    return {"name": request["name"], "arguments": {} if arguments is None else arguments}


SOURCES = {
    "prompt": (_prompt, ("prompt",)),
    "reasoning": (_reasoning, (COMPLETION,)),
    "assistant": (_assistant, (COMPLETION,)),
    "toolCalls": (_tool_calls, (COMPLETION,)),
}
"""Sources besides the completion's text and columns: the text of a row, and the columns that it is made of."""


@dataclass(frozen=True)
class Source:
    """A source other than the completion's text.

    Attributes:
        name: A name of ``SOURCES``, or ``""``.
        reference: A value that the row brings, where there is no name.
    """

    name: str = ""
    reference: Reference | None = None

    def __str__(self) -> str:
        return self.name or str(self.reference)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads."""
        return SOURCES[self.name][1] if self.reference is None else self.reference.columns

    @property
    def reads(self) -> Reference:
        """The value that a row has to bring."""
        return self.reference or Reference((parse(self.columns[0]),))

    def explain(self) -> str:
        """Return which engine reads the text, and why."""
        return "Python, row by row: the text of messages" if self.reference is None else self.reference.explain()

    def row(self, row: Mapping[str, Any]) -> str | None:
        """Return the text of a row; None if it has none."""
        if self.reference is not None:
            value = self.reference.row(row)
            return None if value is None else source_text(value)
        text = SOURCES[self.name][0](row)
        return None if text is None else mended(text)

    def expr(self, schema: pl.Schema) -> pl.Expr:
        """Return ``row`` as a String expression."""
        if self.reference is not None:
            return self.reference.text_expr(schema)
        column = self.columns[0]
        if column not in schema:
            return pl.lit(None, dtype=pl.String)
        key = RAW if column == COMPLETION else column
        return rowwise(pl.struct(exactly(column).alias(key)), lambda row: self.row(dict(row)), pl.String)
