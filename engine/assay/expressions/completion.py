"""The text of a completion, which is a string or a list of chat messages.

For messages, the text is the content of the last assistant message. Of a list of parts, the text parts are concatenated. Content
that is null, absent or not text gives ``""``. A null completion has no text, and neither has a conversation without an assistant
message: its last message was written by somebody else. With ``any_role``, the last message of such a conversation counts, and an
empty conversation is an empty text.
"""

import json
import shlex
from functools import lru_cache
from typing import Any

import polars as pl

from assay.errors import ColumnsError

NULL_COMPLETION = "the completion is null"
NO_ASSISTANT = "the conversation has no assistant message (--any-role: the last message counts)"

MESSAGE_HINT = "Write each message as `role` and `content`: text, or a list of parts with `text`."


def _content_text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list | tuple):
        return "".join(_part_text(part) for part in content)
    return ""


def _part_text(part: Any) -> str:
    if isinstance(part, dict):
        part = part.get("text")
    return part if isinstance(part, str) else ""


def completion_text(completion: Any, *, any_role: bool = False) -> str | None:
    """Return the text of a completion: the definition in Python."""
    if completion is None or isinstance(completion, str):
        return completion
    messages = [message or {} for message in completion]
    candidates = [message for message in messages if message.get("role") == "assistant"]
    if any_role:
        candidates = candidates or messages or [{}]
    return _content_text(candidates[-1].get("content")) if candidates else None


def no_text(completion: Any) -> str:
    """Return why a completion has no text."""
    return NULL_COMPLETION if completion is None else NO_ASSISTANT


@lru_cache(8)
def no_text_expr(column: str) -> pl.Expr:
    """Return ``no_text`` as an expression."""
    return pl.when(pl.col(column).is_null()).then(pl.lit(NULL_COMPLETION)).otherwise(pl.lit(NO_ASSISTANT))


def completion_text_expr(column: str, dtype: pl.DataType, *, any_role: bool = False) -> pl.Expr:
    """Return ``completion_text`` as an expression."""
    values = pl.col(column)
    if dtype == pl.Null or _is_text(dtype):
        return values.cast(pl.String)
    inner = dtype.inner if isinstance(dtype, pl.List) else None
    if not isinstance(inner, pl.Struct | pl.Null):
        fact = f"`{column}` has type {dtype}; a completion is a string or a list of chat messages."
        raise ColumnsError(fact, completions_hint(column, dtype))
    fields = dict(inner.to_schema()) if isinstance(inner, pl.Struct) else {}
    last = values.list.last()
    has_assistant: pl.Expr = pl.lit(value=False)
    if _is_text(fields.get("role")):
        assistant = pl.element().struct.field("role").cast(pl.String) == "assistant"
        last_assistant = values.list.filter(assistant).list.last()
        has_assistant = last_assistant.is_not_null()
        last = pl.when(has_assistant).then(last_assistant).otherwise(last) if any_role else last_assistant
    text: pl.Expr = pl.lit("")
    if _is_content(fields.get("content")):
        text = _content_expr(last.struct.field("content"), fields["content"]).fill_null("")
    return pl.when(values.is_not_null() & (pl.lit(value=True) if any_role else has_assistant)).then(text)


def completions_hint(column: str, dtype: Any) -> str:
    """Return what to do about a column that is no completion: to read each of its elements, if they are completions."""
    if source := completion_source(column, dtype):
        return f"For a row for each element: --map {shlex.quote(f'completion={source}')}"
    return "Each message is a struct with `role` and `content`; rename another column with --map completion=NAME."


def completion_source(column: str, dtype: Any) -> str:
    """Return what ``--map`` takes to read a column as the completion."""
    if _is_completion(dtype):
        return column
    inner = dtype.inner if isinstance(dtype, pl.List | pl.Array) else None
    plain = not any(char in column for char in '.[]"$')
    return (
        f"$.{column if plain else f'[{json.dumps(column)}]'}[]" if inner is not None and _is_completion(inner) else ""
    )


def _is_completion(dtype: Any) -> bool:
    """Return whether a type can be that of a completion: text, or messages with a field that messages have."""
    inner = dtype.inner if isinstance(dtype, pl.List) else None
    fields = inner.to_schema() if isinstance(inner, pl.Struct) else {}
    return _is_text(dtype) or "role" in fields or "content" in fields


def content_warning(column: str, dtype: Any) -> str:
    """Return a warning if the messages, by their type, cannot have any readable content; else ``""``."""
    inner = dtype.inner if isinstance(dtype, pl.List) else None
    if not isinstance(inner, pl.Struct) or _is_content(inner.to_schema().get("content")):
        return ""
    fields = ", ".join(f"{field.name}: {field.dtype}" for field in inner.fields) or "none"
    return f"The messages of `{column}` have no readable `content`, so every text is empty; their fields: {fields}. {MESSAGE_HINT}"


def _is_text(dtype: Any) -> bool:
    return dtype == pl.String or isinstance(dtype, pl.Categorical | pl.Enum)


def _is_content(dtype: Any) -> bool:
    """Return whether a type can be the content of a message: text, parts, or only nulls."""
    if dtype == pl.Null or _is_text(dtype):
        return True
    inner = dtype.inner if isinstance(dtype, pl.List | pl.Array) else None
    return inner == pl.Null or isinstance(inner, pl.Struct) or _is_text(inner)


def _content_expr(content: pl.Expr, dtype: Any) -> pl.Expr:
    if _is_text(dtype):
        return content.cast(pl.String)
    if isinstance(dtype, pl.Array):
        dtype = pl.List(dtype.inner)
        content = content.cast(dtype, strict=False)
    inner = dtype.inner if isinstance(dtype, pl.List) else None
    part = pl.element()
    if isinstance(inner, pl.Struct):
        part = part.struct.field("text")
        inner = dict(inner.to_schema()).get("text")
    if not _is_text(inner):
        return pl.lit(None, dtype=pl.String)
    return content.list.eval(part.cast(pl.String)).list.join("", ignore_nulls=True)
