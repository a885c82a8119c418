"""Sources: the text that the steps of a check begin with, in Python and as expressions."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import polars as pl

from assay.expressions.completion import completion_text
from assay.expressions.json import mended
from assay.expressions.mixed import untyped
from assay.expressions.shared_columns import among, distinct_rows, exactly, row_of, rowwise
from assay.frozen import frozen
from assay.names import COMPLETION
from assay.steps.tool_calls.calls import Call, calls_of_messages, calls_text, is_assistant, parsed_calls
from assay.steps.tool_calls.text import Format, calls_in_text, calls_text_in
from assay.values.arguments import RAW, messages
from assay.values.paths import parse
from assay.values.references import Reference, source_text

Scope = Literal["all", "last"]
TOOL_CALLS = "toolCalls"
"""Name of the source of calls."""
_REASONING = ("reasoning_content", "reasoning")


def _role(message: Any, role: str) -> bool:
    return isinstance(message, Mapping) and message.get("role") == role


def _prompt(row: Mapping[str, Any]) -> str | None:
    """Return the text of the prompt; of messages, that of the last user message."""
    prompt = messages(untyped(row.get("prompt")))
    if not isinstance(prompt, list | tuple) or not all(isinstance(message, Mapping | None) for message in prompt):
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
    """Return the calls of a row, in order, as JSON text: a list of ``name`` and ``arguments``; None if there are none."""
    calls = _calls_of_row(row)
    return calls_text(parsed_calls(calls)) if calls else None


def _calls_of_row(row: Mapping[str, Any], form: Format = "any", scope: Scope = "all") -> list[Call]:
    """Return the calls of a row, in order.

    Those of messages count, else those that their texts write.
    """
    completion = row.get(RAW)
    spoken = messages(completion) if isinstance(completion, list | tuple) else completion
    if spoken is None or isinstance(spoken, str):
        return calls_in_text(spoken or "", form)
    own = [message for message in spoken if is_assistant(message)]
    own = own[-1:] if scope == "last" else own
    texts = (completion_text([message], any_role=True) or "" for message in own)
    return calls_of_messages(own) or [call for text in texts for call in calls_in_text(text, form)]


SOURCES = {
    "prompt": (_prompt, ("prompt",)),
    "reasoning": (_reasoning, (COMPLETION,)),
    "assistant": (_assistant, (COMPLETION,)),
    TOOL_CALLS: (_tool_calls, (COMPLETION,)),
}
"""Sources besides the completion's text and columns: the text of a row, and the columns that it is made of."""


@frozen
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
        return rowwise(row_of([exactly(column).alias(key)]), lambda row: self.row(dict(row)), pl.String)


@frozen
class CallSource(Source):
    """The calls of each row as a check of calls reads them: a row without any has an empty list.

    Attributes:
        form: How calls stand in a text.
        scope: Whether ``all`` messages of the assistant count or the ``last``.
    """

    name: str = TOOL_CALLS
    form: Format = "any"
    scope: Scope = "all"

    def explain(self) -> str:
        """Return which engine reads the calls, and why."""
        return "Python, once for each distinct completion: its calls"

    def row(self, row: Mapping[str, Any]) -> str:
        """Return the calls of a row as JSON text for ``read_calls``."""
        completion = row.get(RAW)
        if isinstance(completion, str):
            return calls_text_in(completion, self.form)
        return calls_text(_calls_of_row(row, self.form, self.scope))

    def expr(self, schema: pl.Schema) -> pl.Expr:
        """Return ``row`` as a String expression."""
        values, dtype = exactly(COMPLETION), schema[COMPLETION]
        if not isinstance(dtype, pl.List):
            return rowwise(values.cast(pl.String), self._of_value, pl.String, distinct=True)
        return values.map_batches(self._column, return_dtype=pl.String, is_elementwise=True)

    def _of_value(self, completion: Any) -> str | None:
        return None if completion is None else self.row({RAW: completion})

    def _column(self, completions: pl.Series) -> pl.Series:
        if not has_plain_calls(completions.dtype):
            return self._by_value(completions)
        texts = calls_of_structs(completions, last=self.scope == "last")
        others = texts.is_null()
        return among(texts, others, completions, self._by_value) if others.any() else texts

    def _by_value(self, completions: pl.Series) -> pl.Series:
        distinct, which = distinct_rows(completions.to_frame(COMPLETION).to_struct())
        texts = [*map(self._of_value, distinct.struct.field(COMPLETION).to_list())]
        return pl.Series(completions.name, texts, dtype=pl.String).gather(which)


# Tool calls of messages in columns: those of the form that OpenAI has and most tables hold.

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
