"""The step for a value of JSON."""

import json
from collections.abc import Iterator
from typing import Any, Literal

import polars as pl
from pydantic import Field, field_validator

from assay.expressions.json import NOT_JSON, candidates, loads, mended, values_within
from assay.expressions.lane import rowwise
from assay.expressions.regex.stacks import on_any_stack
from assay.steps.base import Step, StepExample
from assay.values.params import Params
from assay.values.paths import ABSENT, find, parse_within


class JsonParams(Params):
    """Where the JSON is, and which value to take of it."""

    at: Literal["whole", "first", "last"] = Field(
        default="whole", description="`whole`: the text is JSON; else the first or the last object or list within it."
    )
    path: str | None = Field(default=None, description="A value within it: `a.b`, `[0].a`, `items[-1]`.")

    @field_validator("path")
    @classmethod
    def _is_a_path(cls, path: str | None) -> str | None:
        if path is not None:
            parse_within(path)
        return path


class Json(Step):
    r"""A value of JSON as text: a string as it is, null is nothing found, any other value as `json.dumps` writes it.

    The text is read as `json_valid` reads it. `first` and `last` try at most 100 brackets as the start of an object or a list. A lone
    surrogate becomes U+FFFD.
    """

    name = "json"
    shorthand = "at"
    Params = JsonParams
    params: JsonParams
    examples = (
        StepExample('{"a": {"b": "x"}}', "x", {"path": "a.b"}),
        StepExample('{"a": [1, 2.50]}', "[1, 2.5]", {"path": "a"}),
        StepExample('[{"a": true}]', "true", {"path": "[0].a"}),
        StepExample('"é"', "é"),
        StepExample('see {"a": 1} and [2]', '{"a": 1}', {"at": "first"}),
        StepExample('see {"a": 1} and [2]', "[2]", {"at": "last"}),
        StepExample("[[1, {} [2]", "{}", {"at": "first"}),
        StepExample('{"a": null}', None, {"path": "a"}),
        StepExample("see [1]", None),
    )

    def row(self, text: str) -> str | None:
        value = self._value(text)
        if value is NOT_JSON or value is None:
            return None
        if self.params.path is not None:
            value = find(value, parse_within(self.params.path))
        if value is ABSENT or value is None:
            return None
        written = value if isinstance(value, str) else on_any_stack(lambda: json.dumps(value, ensure_ascii=False))
        return mended(written)

    def _value(self, text: str) -> Any:
        if self.params.at == "whole":
            return loads(text)
        values: Iterator[Any] = values_within(text)
        if self.params.at == "first":
            return next(values, None)
        value = None
        for value in values:  # noqa: B007  (the last)
            pass
        return value

    def expr(self, texts: pl.Expr) -> pl.Expr:
        if self.params.at == "whole":
            possible = texts.map_batches(candidates, return_dtype=pl.String, is_elementwise=True)
        else:
            possible = pl.when(texts.str.contains(r"[\[{]")).then(texts)
        return rowwise(possible, self.row, pl.String, distinct=True)

    def explain(self) -> str:
        return "columns tell which texts may have JSON; Python reads them, equal ones once"

    def describe(self) -> str:
        which = "the JSON" if self.params.at == "whole" else f"the {self.params.at} JSON"
        return f"{which} at {self.params.path}" if self.params.path else which
