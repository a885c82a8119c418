"""The task's expected output schema: which keys it asks for, and that the columns agree with the definition."""

import polars as pl
import pytest
from cases import each

from assay.checks.json.expected_schema import OUTPUT_SCHEMA, SCHEMA_RESULT, schema_keys
from assay.expressions.json import missing_keys
from assay.expressions.shared_columns import layers
from assay.names import TEXT

TEXTS = ('{"a":1,"b":null}', '{"a":1,"b":2}', "x", '{"a":1}', None, '{"a b":1}', "[1]", '{"b":NaN,"a":1}', "{}", "")

AS_TEXT = (
    None, "{}", "null", '{"required":["a","b"]}', '{"required":[]}', '{"properties":{"a":{},"b":null}}',
    '{"a":1,"b":null}', '{"required":3}', '{"required":["a",null]}', '{"properties":[]}', "[1]", "bad", "",
    '{"required":["a b"]}', '{"required":["\\ud800"]}', '{"required":null,"properties":{"b":1}}',
)  # fmt: skip
AS_STRUCT = (
    [{"required": ["a", "b"]}, {"required": []}, {"required": None}, None, {"required": ["a", None]}],
    [
        {"required": ["a"], "properties": None},
        {"properties": {"a": 1, "b": None}},
        {"properties": {"a": None, "b": {}}},
        {"x": 1},
        {"a": 1},
    ],
    [{"required": [1]}, {"required": []}, {"properties": 5}],
    [{"required": 5}, {"a": 1}],
    [{"required": [None]}, {"required": []}],
    [{"properties": {}}, {"properties": None}],
    [{}],
    [None, None],
)


def expected(text, schema):
    if text is None:
        return None
    try:
        reason = missing_keys(text, schema_keys(schema))
        return {"score": float(not reason), "reason": reason or None, "error": None}
    except ValueError as wrong:
        return {"score": 0.0, "reason": f"ValueError: {wrong}", "error": f"ValueError: {wrong}"}


def assert_columns_agree(frame):
    for engine in ("in-memory", "streaming"):
        for part in (frame, frame[:1], frame[3:5], frame[:0], pl.concat([frame] * 40, rechunk=False)):
            lazy = part.lazy().with_columns(pl.col("t").alias(TEXT))
            for layer in layers([SCHEMA_RESULT], part.schema):
                lazy = lazy.with_columns(layer)
            found = lazy.select(SCHEMA_RESULT.col).collect(engine=engine).to_series().to_list()
            assert found == [expected(row["t"], row[OUTPUT_SCHEMA]) for row in part.to_dicts()]


def test_json_text():
    rows = [(text, schema) for text in TEXTS for schema in AS_TEXT]
    assert_columns_agree(pl.DataFrame(rows, schema={"t": pl.String, OUTPUT_SCHEMA: pl.String}, orient="row"))


@each("schemas", AS_STRUCT, ids=lambda schemas: str(schemas)[:40])
def test_struct_columns(schemas):
    rows = [{"t": text, OUTPUT_SCHEMA: schema} for text in TEXTS for schema in schemas]
    assert_columns_agree(pl.DataFrame(rows, infer_schema_length=None, schema_overrides={"t": pl.String}))


@each("required", [pl.List(pl.Categorical), pl.Array(pl.Enum(["a", "b"]), 2), pl.Array(pl.Int8, 2)])
def test_dictionary_encoded_text_and_lists_of_a_fixed_length_are_text_and_lists(required):
    named = [1, 2] if required.inner == pl.Int8 else ["a", "b"]
    schemas = [{"required": named}, {"required": None}, None]
    rows = [{"t": text, OUTPUT_SCHEMA: schema} for text in TEXTS for schema in schemas]
    assert_columns_agree(pl.DataFrame(rows, schema={"t": pl.String, OUTPUT_SCHEMA: pl.Struct({"required": required})}))


@each(
    ("schema", "keys"),
    [
        ({"required": ["a"], "properties": {"a": 1, "b": 2}}, ["a"]),
        ({"properties": {"a": 1, "b": 2}}, ["a", "b"]),
        ({"a": 1, "b": 2}, ["a", "b"]),
        ({"required": [], "properties": {"a": 1}}, []),
        ('{"a": null}', ["a"]),
        ({"a": None, "b": 1}, ["b"]),
    ],
)
def test_the_keys_are_required_else_properties_else_its_own(schema, keys):
    assert schema_keys(schema) == keys


@each(
    ("schema", "said"),
    [
        (None, "no expected_output_schema on this row"),
        ({}, "expected_output_schema is empty"),
        ("[]", "expected_output_schema is not a JSON object"),
        ("{", "expected_output_schema is not a JSON object"),
        ({"required": "a"}, "expected_output_schema.required is not a list of strings"),
        ({"properties": ["a"]}, "expected_output_schema.properties is not an object"),
    ],
)
def test_a_schema_that_cannot_be_read_is_an_error(schema, said):
    with pytest.raises(ValueError, match=f"^{said}$"):
        schema_keys(schema)
