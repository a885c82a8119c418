"""What a check takes for the answer of each row, in columns: two rows answer the same where the check would not tell them apart."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import polars as pl

from assay.checks.json.schemas import json_value
from assay.errors import UsageError, listed
from assay.expressions.json import NOT_JSON
from assay.expressions.shared_columns import layers, reading_column, rowwise, text
from assay.insight.evidence.reader import CheckReader
from assay.steps.numbers import number_values
from assay.steps.subject import Subject

ANSWER = "answer"
"""The column of answers; null where a row has none."""


def answers_of(reader: CheckReader, texts: pl.DataFrame) -> pl.Series:
    """Return the answers of rows: what the steps of a check make of ``TEXT``, as the check compares it.

    Args:
        reader: The reader of a check that compares what it reads: ``compares`` says whether it does.
        texts: ``TEXT``, and the columns that the check's source reads.

    Returns:
        Numbers for ``number``, texts for other types; null where the steps find nothing, fail, or find what is no answer.
    """
    subject = reader.spec.subject or Subject()
    for layer in layers(subject.lanes(), texts.schema):
        texts = texts.with_columns_seq(layer)
    with reading_column(subject.column):
        return texts.select_seq(_ANSWERS[reader.type](reader).alias(ANSWER)).to_series()


def check_compares(reader: CheckReader | None, name: str) -> CheckReader:
    """Return the reader of a check; a ``UsageError`` for a check whose answers cannot be compared, such as one that searches."""
    if reader is not None and reader.type in _ANSWERS:
        return reader
    fact = f"--answer {name}: the check does not read an answer that could be compared with those of other rows."
    raise UsageError(fact, f"Name a column, or a check of type {listed(list(_ANSWERS))}.")


def _each(function: Callable[[Any], str | None]) -> pl.Expr:
    return rowwise(text(), function, pl.String, distinct=True)


def _items(reader: CheckReader) -> pl.Expr:
    check: Any = reader.bare

    def items(value: Any) -> str:
        parts = check.items(value)
        parts = sorted({*parts}) if check.params.as_ == "set" else parts
        parts = parts if check.params.as_ == "list" else sorted(parts)
        return f"{check.params.sep} ".join(parts)

    return rowwise(text(), items, pl.String)


def _json(value: str) -> str | None:
    data = json_value(value)
    return None if data is NOT_JSON else json.dumps(_one_number(data), sort_keys=True, ensure_ascii=False)


def _one_number(value: Any) -> Any:
    """Return a JSON value in which 1.0 is 1, as where values are compared."""
    if isinstance(value, dict):
        return {name: _one_number(item) for name, item in value.items()}
    if isinstance(value, list):
        return [*map(_one_number, value)]
    return int(value) if isinstance(value, float) and value.is_integer() else value


_ANSWERS: Mapping[str, Callable[[CheckReader], pl.Expr]] = {
    "number": lambda _: number_values(text()),
    "equals": lambda reader: _each(reader.bare.compared),  # type: ignore[attr-defined]
    "choice": lambda _: _each(str.upper),
    "list_equals": _items,
    "json_match": lambda _: _each(_json),
    "tool_calls": lambda _: _each(_json),
    "math": lambda _: _each(str.strip),
    "similarity": lambda _: _each(str.strip),
}
