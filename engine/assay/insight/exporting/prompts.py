"""Prompts in one form, golds as text, and codes for what is compared: digests are kept, never the texts."""

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import polars as pl

from assay.expressions.mixed import JSON, TYPED, without_nulls
from assay.insight.exporting.targets import (
    ASSISTANT_TURNS,
    IS_MESSAGES,
    MESSAGES,
    NOT_ALTERNATING,
    NOT_ONE_MESSAGE,
    NOT_PLAIN,
    RENDERED,
)

_TEMPLATES = ("<|im_start|>", "<|start_header_id|>", "<start_of_turn>", "[INST]", "<|user|>", "<｜User｜>")
_ROLES = ("system", "user", "assistant")


_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str)


def compact(value: Any) -> str:
    """Return a value as compact JSON."""
    return _ENCODER.encode(value)


def digest(text: str) -> bytes:
    """Return sixteen bytes that stand for a text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:16]


class Codes:
    """Numbers for texts, in the order in which they come; ``key`` is what is kept of each."""

    def __init__(self, key: Callable[[str], Any] = digest) -> None:
        self._key = key
        self.numbers: dict[Any, int] = {}

    def code(self, text: str) -> int:
        """Return the number of a text."""
        return self.numbers.setdefault(self._key(text), len(self.numbers))

    def of(self, texts: pl.Series) -> pl.Series:
        """Return the numbers of texts; null where there is none."""
        distinct = texts.drop_nulls().unique()
        table = pl.DataFrame(
            {"text": distinct, "code": pl.Series([self.code(text) for text in distinct], dtype=pl.UInt32)}
        )
        return pl.DataFrame({"text": texts}).join(table, on="text", how="left", maintain_order="left")["code"]


class Asked(NamedTuple):
    """A prompt: the pairs of role and content of its messages, and whether it was messages already."""

    pairs: list[tuple[Any, Any]]
    is_messages: bool


def asked(value: Any) -> Asked | None:
    """Return a prompt; None if there is none: it is null, blank, or ends in a message of the assistant."""
    if value is None or isinstance(value, str):
        return Asked([("user", value)], is_messages=False) if value and value.strip() else None
    messages = value if isinstance(value, list | tuple) else [value]
    pairs = [
        (message.get("role"), message.get("content")) if isinstance(message, Mapping) else (None, message)
        for message in messages
    ]
    is_blank = all(isinstance(content, str) and not content.strip() for _, content in pairs)
    return None if is_blank or pairs[-1][0] == "assistant" else Asked(pairs, is_messages=True)


def joined(pairs: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Return messages whose white space is joined."""
    return [(role, " ".join(content.split()) if isinstance(content, str) else content) for role, content in pairs]


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
        self.codes, self.joined = Codes(), Codes()
        self.units: list[int] = []
        """Of each prompt, the number of what it is with its white space joined."""

    def of(self, values: pl.Series) -> pl.DataFrame:
        """Return ``prompt``, the number of each, null where there is none; its ``form``; and ``name``, which stands for it as a task."""
        texts, read = readable_values(values)
        distinct = texts.drop_nulls().unique()
        known = [self._known(read(text)) for text in distinct]
        schema = {"prompt": pl.UInt32, "form": pl.UInt8, "name": pl.String}
        table = pl.DataFrame(known, schema=schema, orient="row").with_columns(text=distinct)
        frame = pl.DataFrame({"text": texts}).join(table, on="text", how="left", maintain_order="left")
        return frame.select(*schema)

    def _known(self, value: Any) -> tuple[int | None, int, str | None]:
        prompt = asked(value)
        if prompt is None:
            return None, 0, None
        text, short = compact(prompt.pairs), joined(prompt.pairs)
        code, name = self.codes.code(text), text if short == prompt.pairs else compact(short)
        if code == len(self.units):
            self.units.append(self.joined.code(name))
        return code, form_of(prompt, self._forms), name


def readable_values(values: pl.Series) -> tuple[pl.Series, Callable[[str], Any]]:
    """Return a column as texts, equal where its values are, and what gives the value of such a text."""
    dtype = values.dtype
    if dtype == pl.String or isinstance(dtype, pl.Categorical | pl.Enum):
        return values.cast(pl.String), str
    if dtype == TYPED:
        return values.struct.field(JSON), json.loads
    if _is_of_texts(dtype):
        wrapped = pl.select(pl.struct(value=values).struct.json_encode()).to_series()
        return wrapped.set(values.is_null(), None), lambda text: json.loads(text)["value"]
    texts = [None if value is None else compact(value) for value in values.to_list()]
    return pl.Series(texts, dtype=pl.String), json.loads


def _is_of_texts(dtype: Any) -> bool:
    """Return whether a type is lists and objects of texts, which the engine writes as JSON."""
    if isinstance(dtype, pl.Struct):
        return bool(dtype.fields) and all(_is_of_texts(field.dtype) for field in dtype.fields)
    return _is_of_texts(dtype.inner) if isinstance(dtype, pl.List) else dtype == pl.String


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


def gold_texts(values: pl.Series) -> pl.Series:
    """Return golds as text: a text as it is, lists and objects as compact JSON, others by ``str``."""
    if values.dtype == pl.String:
        return values
    texts, read = readable_values(values)
    if values.dtype in (pl.Categorical, pl.Enum):
        return texts
    return pl.Series([None if text is None else _gold(read(text)) for text in texts], dtype=pl.String)


def _gold(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return compact(without_nulls(value)) if isinstance(value, list | dict) else str(value)
