"""The text of a completion, which is a string or a list of chat messages.

For messages, the text is the content of the last assistant message, or of the last message if there is no assistant message. Of a
list of parts, the text parts are concatenated. Content that is null, absent or not text, and an empty conversation, give ``""``.
A null completion has no text.
"""

from typing import Any

import polars as pl

from assay.errors import ColumnsError

__all__ = ["MESSAGE_HINT", "completion_text", "completion_text_expr", "content_warning"]

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


def completion_text(completion: Any) -> str | None:
    """Return the text of a completion: the definition in Python.

    Args:
        completion: A string, a list of ``{"role", "content"}`` mappings, or None.

    Returns:
        The text, or None for a null completion.
    """
    if completion is None or isinstance(completion, str):
        return completion
    messages = [message or {} for message in completion]
    candidates = [message for message in messages if message.get("role") == "assistant"] or messages
    return _content_text(candidates[-1].get("content")) if candidates else ""


def completion_text_expr(column: str, dtype: pl.DataType) -> pl.Expr:
    """Return ``completion_text`` as an expression.

    Args:
        column: Name of the completion column.
        dtype: Its type: String, or a list of structs.

    Returns:
        A String expression.

    Raises:
        ColumnsError: The type is neither.
    """
    values = pl.col(column)
    if dtype == pl.Null or _is_text(dtype):
        return values.cast(pl.String)
    inner = dtype.inner if isinstance(dtype, pl.List) else None
    if not isinstance(inner, pl.Struct | pl.Null):
        raise ColumnsError(
            f"`{column}` has type {dtype}; a completion is a string or a list of chat messages.",
            "Each message is a struct with `role` and `content`; rename another column with --map completion=NAME.",
        )
    fields = dict(inner.to_schema()) if isinstance(inner, pl.Struct) else {}
    text: pl.Expr = pl.lit("")
    if isinstance(inner, pl.Struct):
        last = values.list.last()
        if _is_text(fields.get("role")):
            assistant = pl.element().struct.field("role").cast(pl.String) == "assistant"
            last_assistant = values.list.filter(assistant).list.last()
            last = pl.when(last_assistant.is_not_null()).then(last_assistant).otherwise(last)
        if _is_content(fields.get("content")):
            text = _content_expr(last.struct.field("content"), fields["content"]).fill_null("")
    return pl.when(values.is_not_null()).then(text)


def content_warning(column: str, dtype: Any) -> str:
    """Return a warning if the messages, by their type, cannot have any readable content; else ``""``."""
    inner = dtype.inner if isinstance(dtype, pl.List) else None
    if not isinstance(inner, pl.Struct) or _is_content(inner.to_schema().get("content")):
        return ""
    fields = ", ".join(f"{field.name}: {field.dtype}" for field in inner.fields) or "none"
    return f"The messages of `{column}` have no readable `content`, so every text is empty; their fields: {fields}. {MESSAGE_HINT}"


def _is_text(dtype: Any) -> bool:
    """Return whether a type holds strings, plain or dictionary-encoded."""
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
