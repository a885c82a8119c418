"""From a completion, a string or a list of chat messages, to the text that checks read.

For messages the text is the content of the last assistant message, else of the last message. Content that is a list of
parts is the concatenation of its text parts. Content that is null, absent or no text, and a conversation without a message, is
``""``: the model said nothing. A null completion has no text at all.
"""

from typing import Any

import polars as pl

from assay.errors import ColumnsError

__all__ = ["HOW_TO_SAY", "completion_text", "completion_text_expr", "unsaid"]

HOW_TO_SAY = "Write each message as `role` and `content`: text, or a list of parts with `text`."


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
    """The definition.

    Args:
        completion: A string, a list of ``{"role", "content"}`` mappings, or None.

    Returns:
        The text, or None for a null completion.
    """
    if completion is None or isinstance(completion, str):
        return completion
    messages = [message or {} for message in completion]
    spoken = [message for message in messages if message.get("role") == "assistant"] or messages
    return _content_text(spoken[-1].get("content")) if spoken else ""


def completion_text_expr(column: str, dtype: pl.DataType) -> pl.Expr:
    """The same as an expression.

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
    said: pl.Expr = pl.lit("")
    if isinstance(inner, pl.Struct):
        last = values.list.last()
        if _is_text(fields.get("role")):
            assistant = pl.element().struct.field("role").cast(pl.String) == "assistant"
            spoken = values.list.filter(assistant).list.last()
            last = pl.when(spoken.is_not_null()).then(spoken).otherwise(last)
        if _is_content(fields.get("content")):
            said = _content_expr(last.struct.field("content"), fields["content"]).fill_null("")
    return pl.when(values.is_not_null()).then(said)


def unsaid(column: str, dtype: Any) -> str:
    """What to tell of messages none of which can have a content to read, by their type; ``""`` where one can."""
    inner = dtype.inner if isinstance(dtype, pl.List) else None
    if not isinstance(inner, pl.Struct) or _is_content(inner.to_schema().get("content")):
        return ""
    have = ", ".join(f"{field.name}: {field.dtype}" for field in inner.fields) or "nothing"
    return (
        f"The messages of `{column}` have no `content` to read, so every text is empty; they have: {have}. {HOW_TO_SAY}"
    )


def _is_text(dtype: Any) -> bool:
    """Strings, plain or dictionary-encoded."""
    return dtype == pl.String or isinstance(dtype, pl.Categorical | pl.Enum)


def _is_content(dtype: Any) -> bool:
    """Text, parts, or a field in which nothing was ever said."""
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
