"""The check of a JSON Schema: json_schema."""

from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar

from pydantic import Field, ValidationInfo, field_validator

from assay.checks.base import JSON_STEPS, Example, GoldKind, Traits
from assay.checks.json.keys import not_json
from assay.checks.json.schemas import Schema, compiled, compiled_anew, decoded, json_value
from assay.checks.pairs import NO_ANSWER, Answers, PairCheck
from assay.expressions.json import NOT_JSON
from assay.thresholds import THRESHOLDS
from assay.values.params import Params
from assay.values.references import OF_ROW, json_text


def _is_refused(schema: Schema) -> bool:
    """Return whether rows cannot use it; one that takes too long is an error of the row, as an output is that takes too long."""
    return bool(schema.problem) and not schema.is_late


def _judged(value: str | bytes, schema: Schema) -> tuple[float, str]:
    """Return the score of a text and the reason."""
    parsed = json_value(value)
    if parsed is NOT_JSON:
        return 0.0, not_json(decoded(value))
    # most fit, and need not be decoded
    reason = "" if schema.fits_surely(parsed, len(value)) else schema.reason(parsed, decoded(value))
    return float(not reason), reason


class SchemaParams(Params):
    """A JSON Schema."""

    spellings: ClassVar = {"schema": "schema_"}

    validate_formats: bool = Field(default=False, description="Check `format`, too: `email`, `date-time`, `uri` …")
    schema_: dict[str, Any] | bool | str = Field(
        alias="schema",
        description="The schema, its JSON text, or the name of a `.json` file beside the spec; its draft is that of `$schema`, else 2020-12.",
    )

    @field_validator("schema_")
    @classmethod
    def _is_a_schema(cls, value: Any, info: ValidationInfo) -> Any:
        schema = compiled(json_text(value), info.data.get("validate_formats", False))
        if _is_refused(schema) or (schema.is_late and info.context != OF_ROW):
            raise ValueError(schema.problem)
        return value


class JsonSchema(PairCheck):
    """The output is JSON and matches a JSON Schema, by ``jsonschema_rs``, which never fetches what a schema refers to.

    Text is read as ``json_valid`` reads it; a lone surrogate becomes U+FFFD. Drafts 4, 6, 7, 2019-09 and 2020-12 are known. ``format``
    is a remark unless ``validateFormats`` is set. NaN and Infinity have no type. The reason names the first three violations; of very
    large outputs, the first.
    """

    type = "json_schema"
    runs_as = "jsonschema_rs, once for each distinct text and schema; each schema is compiled once"
    graded = False
    reads_utf8 = True
    golds = GoldKind("schema_", is_json=True, lazy=True, steps=lambda _: JSON_STEPS)
    traits = Traits(in_files=("schema_",), libraries={"jsonschema-rs": ()})
    Params = SchemaParams
    params: SchemaParams
    examples = (
        Example('{"n": 1}', 1.0, {"schema": {"properties": {"n": {"type": "integer"}}, "required": ["n"]}}),
        Example('{"n": "1"}', 0.0, {"schema": {"properties": {"n": {"type": "integer"}}}}),
        Example("{}", 0.0, {"schema": {"required": ["n"]}}),
        Example('"x"', 1.0, {"schema": {"format": "email"}}),
        Example('"x"', 0.0, {"schema": {"format": "email"}, "validateFormats": True}),
        Example("n = 1", 0.0, {"schema": True}),
    )

    def judge(self, value: str, gold: str) -> tuple[float, str]:
        return _judged(value, compiled(gold, self.params.validate_formats))

    def judge_all(self, values: Sequence[bytes], golds: Sequence[str]) -> Answers:
        """Return the answer for each pair; golds are not looked at before, so that each is compiled once, however many there are."""
        uses, formats = Counter(golds), self.params.validate_formats
        # few come again, as in the calls of a training run
        is_kept = len(uses) <= THRESHOLDS.small_batch

        def answer(value: bytes, gold: str) -> Any:
            # of many, one that is used once is dropped at once: to fill the memory takes longer than to compile it
            schema = (compiled if is_kept or uses[gold] > 1 else compiled_anew)(gold, formats)
            return NO_ANSWER if _is_refused(schema) else self.answered(_judged, value, schema)

        return [*map(answer, values, golds)]

    @cached_property
    def own_gold(self) -> str:
        return json_text(self.params.schema_)

    def claim(self) -> str:
        keys = self.params.schema_.get("required") if isinstance(self.params.schema_, dict) else None
        named = f" with {', '.join(map(str, keys))}" if isinstance(keys, list) and keys else ""
        return f"is JSON that matches the schema{named}"
