"""Prompts of training sets: their messages, numbers that stand for them, and what form they lack."""

from typing import Any

import polars as pl

from assay.insight.exporting.targets import (
    ASSISTANT_TURNS,
    IS_MESSAGES,
    MESSAGES,
    NOT_ALTERNATING,
    NOT_ONE_MESSAGE,
    NOT_PLAIN,
    RENDERED,
)
from assay.insight.integrity.prompts import Asked, Codes, asked, compact, joined, of_distinct, readable_values

_TEMPLATES = ("<|im_start|>", "<|start_header_id|>", "<start_of_turn>", "[INST]", "<|user|>", "<｜User｜>")
_ROLES = ("system", "user", "assistant")


def form_of(prompt: Asked, forms: tuple[int, ...]) -> int:
    """Return the first of ``forms`` that holds of a prompt, as a number of ``FORMS``; 0 if none does."""
    roles = [role for role, _ in prompt.pairs]
    holds = {
        IS_MESSAGES: lambda: prompt.is_messages,
        NOT_PLAIN: lambda: any(role not in _ROLES or not isinstance(content, str) for role, content in prompt.pairs),
        RENDERED: lambda: any(mark in content for _, content in prompt.pairs for mark in _TEMPLATES),
        ASSISTANT_TURNS: lambda: "assistant" in roles,
        NOT_ALTERNATING: lambda: not _alternate(roles[1:] if roles[0] == "system" else roles),
        NOT_ONE_MESSAGE: lambda: roles != ["user"],
    }
    return next((form for form in forms if form in holds and holds[form]()), 0)


def _alternate(roles: list[Any]) -> bool:
    return len(roles) % 2 == 1 and roles == [("user", "assistant")[at % 2] for at in range(len(roles))]


class Prompts:
    """The prompts of results, by number."""

    def __init__(self, forms: tuple[int, ...]) -> None:
        self._forms = forms
        self._codes = Codes()
        self.units: dict[int, int] = {}
        """The number of a prompt whose white space is joined, where that makes it another one."""

    def of(self, values: pl.Series) -> pl.DataFrame:
        """Return ``prompt``, the number of each, null where there is none; its ``form``; and ``name``, which stands for it as a task."""
        texts, read = readable_values(values)
        schema = {"prompt": pl.UInt32, "form": pl.UInt8, "name": pl.String}
        return of_distinct(texts, lambda text: self._known(read(text)), schema)

    def _known(self, value: Any) -> tuple[int | None, int, str | None]:
        prompt = asked(value)
        if prompt is None:
            return None, 0, None
        text, short = compact(prompt.pairs), joined(prompt.pairs)
        code, name = self._codes.code(text), text
        if short != prompt.pairs:
            name = compact(short)
            self.units[code] = self._codes.code(name)
        return code, form_of(prompt, self._forms), name


def messages_of(values: pl.Series) -> pl.Series:
    """Return prompts that are plain as messages."""
    dtype = values.dtype
    if dtype == pl.String:
        message = pl.struct(pl.lit("user").alias("role"), pl.lit(values).alias("content"))
        return pl.select(pl.when(values.is_not_null()).then(pl.concat_list(message))).to_series().cast(MESSAGES)
    inner = dtype.inner if isinstance(dtype, pl.List) else None
    fields = dict(inner.to_schema()) if isinstance(inner, pl.Struct) else {}
    if fields.get("role") == fields.get("content") == pl.String:
        message = pl.struct(pl.element().struct.field(name) for name in ("role", "content"))
        return pl.select(pl.lit(values).list.eval(message)).to_series()
    texts, read = readable_values(values)
    prompts = [None if text is None else asked(read(text)) for text in texts]
    rows = [prompt and [{"role": role, "content": content} for role, content in prompt.pairs] for prompt in prompts]
    return pl.Series(rows, dtype=MESSAGES)
