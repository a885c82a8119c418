"""Checks for JSON output: json_valid, json_keys, expected_output_schema."""

from collections.abc import Sequence
from functools import reduce
from operator import and_
from typing import ClassVar

import polars as pl
from pydantic import Field

from assay.checks.base import Check, Columns, Example, FactCheck, Row, Traits
from assay.checks.json.expected_schema import SCHEMA_RESULT, output_schema, schema_keys
from assay.errors import encodable
from assay.expressions.json import JSON_VALID, NO_OBJECT, is_json, keys_lane, missing_keys
from assay.expressions.shared_columns import rowwise, text
from assay.expressions.text import WHITESPACE, begins_with
from assay.kernel.facts import Fact
from assay.names import OUTPUT_SCHEMA, OUTPUT_SCHEMA_CAMEL
from assay.values.params import Params

_EMPTY = "the output is empty, not JSON"
_FENCED = "the output is wrapped in a Markdown code fence, not bare JSON"
_INVALID = "the output is not valid JSON"
_COLUMNS = "columns: Polars' JSON parser; Python's for text that Polars rejects and CPython may accept"


class JsonValid(FactCheck):
    """``json.loads(output)`` succeeds, by CPython's rules; nesting deeper than 500 is refused.

    NaN, Infinity, 1e999, duplicate keys and lone surrogates are accepted; a BOM, code fences, text around the JSON and
    integers past CPython's digit limit are not.
    """

    type = "json_valid"
    words = ("is valid JSON", "")
    examples = (
        Example('{"a": [1, 2, NaN]}', 1.0),
        Example('```json\n{"a": 1}\n```', 0.0),
        Example("{'a': 1}", 0.0),
        Example("", 0.0),
    )

    def row(self, row: Row) -> float:
        return float(is_json(row["completion"]))

    def expr(self) -> pl.Expr:
        return JSON_VALID.col

    def facts(self) -> tuple[Fact, ...]:
        return Fact("json"), Fact("pattern", r"\A\s*\Z"), Fact("pattern", r"\A\s*```")

    def from_facts(self, bits: Sequence[pl.Expr]) -> Columns:
        is_valid, is_blank, is_fenced = bits
        reason = (
            pl.when(is_blank).then(pl.lit(_EMPTY)).when(is_fenced).then(pl.lit(_FENCED)).otherwise(pl.lit(_INVALID))
        )
        return Columns(is_valid, reason)

    def reason(self, row: Row) -> str:
        return not_json(row["completion"])

    def reason_expr(self) -> pl.Expr:
        possible = (text() == "") | begins_with(text(), f"`{WHITESPACE}")  # others are plainly prose: ten times faster
        by_python = rowwise(pl.when(possible).then(text()), not_json, pl.String)
        return pl.when(possible).then(by_python).when(text().is_not_null()).then(pl.lit(_INVALID))

    def explain(self) -> str:
        return _COLUMNS


def not_json(text: str) -> str:
    """Return why a text that is not JSON is not."""
    trimmed = text.strip()
    return _EMPTY if not trimmed else _FENCED if trimmed.startswith("```") else _INVALID


class KeysParams(Params):
    """Keys of a JSON object."""

    spellings: ClassVar = {"keys": "required_keys"}

    required_keys: list[str] = Field(description="Keys that must be there; a null value counts as present.")


class JsonKeys(FactCheck):
    """The output is a JSON object that has every key; all or nothing."""

    type = "json_keys"
    Params = KeysParams
    params: KeysParams
    examples = (
        Example('{"urgency": "high", "sentiment": null}', 1.0, {"requiredKeys": ["urgency", "sentiment"]}),
        Example('{"urgency": "high"}', 0.0, {"keys": ["urgency", "sentiment"]}),
        Example('["urgency"]', 0.0, {"keys": ["urgency"]}),
    )

    def row(self, row: Row) -> float:
        return float(missing_keys(row["completion"], self.params.required_keys) == "")

    def facts(self) -> tuple[Fact, ...]:
        return Fact("object"), *(Fact("key", key) for key in self.params.required_keys)

    def from_facts(self, bits: Sequence[pl.Expr]) -> Columns:
        is_object, *present = bits
        pairs = zip(self.params.required_keys, present, strict=True)
        each = [pl.when(is_there.not_()).then(pl.lit(encodable(key))) for key, is_there in pairs]
        missing = pl.lit("missing keys: ") + pl.concat_str(
            [pl.lit(None, dtype=pl.String), *each], separator=", ", ignore_nulls=True
        )
        return Columns(reduce(and_, bits), pl.when(is_object).then(missing).otherwise(pl.lit(NO_OBJECT)))

    def expr(self) -> pl.Expr:
        return pl.when(text().is_not_null()).then(self.reason_expr().is_null())

    def claim(self) -> str:
        return f"is a JSON object with the keys {', '.join(self.params.required_keys)}"

    def reason(self, row: Row) -> str:
        return missing_keys(row["completion"], self.params.required_keys)

    def reason_expr(self) -> pl.Expr:
        return keys_lane(self.params.required_keys).col

    def explain(self) -> str:
        return _COLUMNS


class ExpectedOutputSchema(Check):
    """As json_keys, with the keys of the task's ``expected_output_schema``, also spelled ``expectedOutputSchema``.

    The keys are the schema's ``required``, else the keys of its ``properties``, else its own. A row without a schema scores
    0.0 and fills ``error``.
    """

    type = "expected_output_schema"
    runs_as = "columns, one pass for each frequent key list of a batch; Python for the rest of the objects"
    words = ("has the keys of the expected output schema", "")
    traits = Traits(reads=(OUTPUT_SCHEMA,), may_read=(OUTPUT_SCHEMA_CAMEL,))
    examples = (
        Example('{"city": "Oslo"}', 1.0, expected_output_schema={"required": ["city"]}),
        Example('{"town": "Oslo"}', 0.0, expected_output_schema={"required": ["city"]}),
        Example('{"city": "Oslo"}', 0.0),
    )

    def row(self, row: Row) -> float:
        return float(missing_keys(row["completion"], schema_keys(output_schema(row))) == "")

    def columns(self) -> Columns:
        return Columns.of(SCHEMA_RESULT.col, graded=self.graded)

    def reason(self, row: Row) -> str:
        return missing_keys(row["completion"], schema_keys(output_schema(row)))
