"""Prompts and golds of rows in one form, so that equal ones are equal: as texts, as messages, and as numbers."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl

from assay.expressions.mixed import JSON, TYPED, without_nulls
from assay.expressions.shared_columns import exactly

PROMPTS = ("prompt", "instruction")
"""Columns of prompts; the first that has a value is used."""

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

    @property
    def texts(self) -> pl.Series:
        """The keys by number, where they are texts."""
        return pl.Series([*self.numbers], dtype=pl.String)

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


def of_distinct(
    texts: pl.Series, function: Callable[[str], tuple[Any, ...]], schema: Mapping[str, Any]
) -> pl.DataFrame:
    """Return what a function says of each text, asked once for equal ones; nulls where there is none."""
    distinct = texts.drop_nulls().unique()
    table = pl.DataFrame([function(text) for text in distinct], schema=schema, orient="row").with_columns(text=distinct)
    return pl.DataFrame({"text": texts}).join(table, on="text", how="left", maintain_order="left").select_seq([*schema])


def readable_values(values: pl.Series) -> tuple[pl.Series, Callable[[str], Any]]:
    """Return a column as texts, equal where its values are, and what gives the value of such a text."""
    dtype = values.dtype
    if dtype == pl.String or isinstance(dtype, pl.Categorical | pl.Enum):
        return values.cast(pl.String), str
    if dtype == TYPED:
        return values.struct.field(JSON), json.loads
    if _is_of_texts(dtype):
        wrapped = pl.DataFrame({"value": values}).select_seq(pl.struct("value").struct.json_encode()).to_series()
        return wrapped.set(values.is_null(), None), lambda text: json.loads(text)["value"]
    texts = [None if value is None else compact(value) for value in values.to_list()]
    return pl.Series(texts, dtype=pl.String), json.loads


def _is_of_texts(dtype: Any) -> bool:
    """Return whether a type is lists and objects of texts, which the engine writes as JSON."""
    if isinstance(dtype, pl.Struct):
        return bool(dtype.fields) and all(_is_of_texts(field.dtype) for field in dtype.fields)
    return _is_of_texts(dtype.inner) if isinstance(dtype, pl.List) else dtype == pl.String


def gold_texts(values: pl.Series) -> pl.Series:
    """Return golds as text: a text as it is, lists and objects as compact JSON, others by ``str``."""
    if values.dtype == pl.String:
        return values
    texts, read = readable_values(values)
    if values.dtype in (pl.Categorical, pl.Enum):
        return texts
    return of_distinct(texts, lambda text: (_gold(read(text)),), {"gold": pl.String})["gold"]


def _gold(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return compact(without_nulls(value)) if isinstance(value, list | dict) else str(value)


def prompt_keys(schema: pl.Schema) -> list[pl.Expr]:
    """Return numbers that stand for the prompt of a row, ``prompt``, and for it with its white space joined, ``joined``.

    They are equal where the messages are, and null where there is no prompt. Without a column of prompts there are none.
    """
    keys: list[pl.Expr] = []
    for name in [name for name in PROMPTS if name in schema][::-1]:
        own = [text_key(text) for text in _prompt_texts(name, schema[name])]
        is_there = exactly(name).is_not_null()
        keys = [pl.when(is_there).then(one).otherwise(other) for one, other in zip(own, keys or own, strict=True)]
    return [key.alias(name) for key, name in zip(keys, ("prompt", "joined"), strict=bool(keys))]


def gold_keys(schema: pl.Schema, names: Sequence[str]) -> list[pl.Expr]:
    """Return a number that stands for the gold of a row, ``gold``, null where there is none; nothing without a column of golds.

    The gold is in the first column of ``names`` that has a value.
    """
    golds = [
        exactly(name)
        if schema[name] == pl.String
        else exactly(name).map_batches(gold_texts, pl.String, is_elementwise=True)
        for name in names
        if name in schema
    ]
    return [text_key(pl.coalesce(golds)).alias("gold")] if golds else []


def text_key(text: pl.Expr) -> pl.Expr:
    """Return a number that stands for a text, null where there is none."""
    return pl.when(text.is_not_null()).then(text.hash())


_TEXTS = pl.Struct({"prompt": pl.String, "joined": pl.String})
_BLANKS = r"[\s\x1c-\x1f]+"
"""White space as Python has it."""


def _prompt_texts(name: str, dtype: Any) -> list[pl.Expr]:
    """Return texts that stand for a prompt, and for it with its white space joined: of one user message, what it says."""
    value = exactly(name)
    if dtype == pl.String or isinstance(dtype, pl.Categorical | pl.Enum):
        text = value.cast(pl.String)
        joined_text = text.str.replace_all(_BLANKS, " ").str.strip_chars(" ")
        return [pl.when(joined_text != "").then(own) for own in (text, joined_text)]
    texts = value.map_batches(_canonical_prompts, _TEXTS, is_elementwise=True)
    return [texts.struct.field(field.name) for field in _TEXTS.fields]


def _canonical_prompts(values: pl.Series) -> pl.Series:
    texts, read = readable_values(values)
    return of_distinct(texts, lambda text: _canonical_prompt(read(text)), dict(_TEXTS.to_schema())).to_struct(
        values.name
    )


def _canonical_prompt(value: Any) -> tuple[str | None, str | None]:
    if (prompt := asked(value)) is None:
        return None, None
    pairs, short = prompt.pairs, joined(prompt.pairs)
    [(role, content), *others] = pairs
    if role == "user" and isinstance(content, str) and not others:
        return content, short[0][1]
    return f"\0{compact(pairs)}", f"\0{compact(short)}"  # what no user begins with
