"""Tool calls of messages in columns: those of the form that OpenAI has and most tables hold."""

from typing import Any

import polars as pl

_TEXT_FIELDS = frozenset(("role", "content"))
_OTHER_FORMS = frozenset(("function_call", "functionCall", "parts", "exact", "type"))
_CALL_FIELDS = frozenset(("id", "index", "type", "function"))
_FUNCTION = {"name": pl.String(), "arguments": pl.String()}
_ROLES = ("assistant", "model")


def has_plain_calls(dtype: Any) -> bool:
    """Return whether all calls of a column of messages are in ``tool_calls``, with names and arguments as text."""
    messages = _fields(dtype)
    if messages is None or not messages.keys() >= _TEXT_FIELDS or _OTHER_FORMS & messages.keys():
        return False
    calls = _fields(messages.get("tool_calls"))
    if calls is None or not calls.keys() <= _CALL_FIELDS or "function" not in calls:
        return False
    function = calls["function"]
    is_text = all(messages[name] == pl.String for name in _TEXT_FIELDS)
    return is_text and isinstance(function, pl.Struct) and dict(function.to_schema()) == _FUNCTION


def _fields(dtype: Any) -> dict[str, Any] | None:
    inner = dtype.inner if isinstance(dtype, pl.List) else None
    return dict(inner.to_schema()) if isinstance(inner, pl.Struct) else None


def calls_of_structs(completions: pl.Series, *, last: bool) -> pl.Series:
    """Return the calls of each row as ``calls_text`` writes them, in another spelling; null for a row without any."""
    rows = pl.DataFrame({"message": completions}).with_row_index("row")
    messages = rows.filter(pl.col("message").list.len() > 0).explode("message").filter(pl.col("message").is_not_null())
    field = pl.col("message").struct.field
    role = field("role")
    spoken = messages.filter(role.is_null() | role.is_in(_ROLES)).select_seq("row", call=field("tool_calls"))
    if last:
        spoken = spoken.unique("row", keep="last", maintain_order=True)
    calls = spoken.filter(pl.col("call").list.len() > 0).explode("call")
    function = pl.col("call").struct.field("function").struct.field
    name = function("name")
    requests = calls.filter(name.is_not_null() & (name != "")).select_seq(
        "row", text=pl.struct(name, function("arguments").fill_null("{}")).struct.json_encode()
    )
    texts = requests.group_by("row", maintain_order=True).agg(pl.col("text").str.join(","))
    joined = texts.select_seq("row", text=pl.concat_str(pl.lit("["), "text", pl.lit("]")))
    result = pl.Series(completions.name, [None], dtype=pl.String).new_from_index(0, len(completions))
    return result.scatter(joined["row"], joined["text"])
