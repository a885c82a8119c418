"""The keys that a task's expected output schema requires, and whether the output has them.

The keys are ``required``, else the keys of ``properties``, else the schema's own keys. An explicit ``required: []`` only requires an
object; an empty schema counts as missing. In a struct column a null field counts as absent.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from assay.expressions.json import NO_OBJECT, NOT_JSON, OBJECT_TEXT, mended, missing_keys, missing_keys_expr, parse
from assay.expressions.lane import Lane, field_of, plain, plain_type, rowwise, text
from assay.expressions.mixed import without_nulls
from assay.names import OUTPUT_SCHEMA, OUTPUT_SCHEMA_CAMEL
from assay.thresholds import THRESHOLDS

_NONE = f"no {OUTPUT_SCHEMA} on this row"
_NOT_OBJECT = f"{OUTPUT_SCHEMA} is not a JSON object"
_EMPTY = f"{OUTPUT_SCHEMA} is empty"
_BAD_REQUIRED = f"{OUTPUT_SCHEMA}.required is not a list of strings"
_BAD_PROPERTIES = f"{OUTPUT_SCHEMA}.properties is not an object"
_KEYS = pl.Struct({"keys": pl.List(pl.String), "problem": pl.String})


def output_schema(row: Mapping[str, Any]) -> Any:
    """Return the expected output schema of a row, in whichever spelling it has; None if it has none."""
    schema = row.get(OUTPUT_SCHEMA)
    return row.get(OUTPUT_SCHEMA_CAMEL) if schema is None else schema


def schema_keys(schema: Any) -> list[str]:
    """Return the keys that the output must have: the definition in Python."""
    if schema is None:
        raise ValueError(_NONE)
    schema = parse(schema) if isinstance(schema, str) else without_nulls(schema)
    if schema is NOT_JSON or not isinstance(schema, dict):
        raise ValueError(_NOT_OBJECT)
    if not schema:
        raise ValueError(_EMPTY)
    required, properties = schema.get("required"), schema.get("properties")
    if required is not None:
        if not isinstance(required, list) or not all(isinstance(key, str) for key in required):
            raise ValueError(_BAD_REQUIRED)
        return [mended(key) for key in required]
    if properties is not None:
        if not isinstance(properties, dict):
            raise ValueError(_BAD_PROPERTIES)
        return [mended(key) for key in properties]
    return [mended(key) for key in schema]


def _keys_or_problem(schema: str) -> dict[str, Any]:
    try:
        return {"keys": schema_keys(schema), "problem": None}
    except ValueError as error:
        return {"keys": None, "problem": str(error)}


def _keys_expr(schema: pl.Schema) -> pl.Expr:
    if OUTPUT_SCHEMA not in schema:
        return _keys_of_column(OUTPUT_SCHEMA_CAMEL, schema)
    keys = _keys_of_column(OUTPUT_SCHEMA, schema)
    if OUTPUT_SCHEMA_CAMEL not in schema:
        return keys
    return (
        pl.when(pl.col(OUTPUT_SCHEMA).is_not_null()).then(keys).otherwise(_keys_of_column(OUTPUT_SCHEMA_CAMEL, schema))
    )


def _keys_of_column(name: str, schema: pl.Schema) -> pl.Expr:
    dtype = plain_type(schema.get(name, pl.Null()))
    values = plain(pl.col(name), schema[name]) if name in schema else pl.lit(None)
    if not isinstance(dtype, pl.Struct):
        result = rowwise(values.cast(pl.String), _keys_or_problem, _KEYS, distinct=True)
        return pl.coalesce(result, _keys_struct(pl.lit(None, dtype=pl.List(pl.String)), pl.lit(_NONE)))
    return _struct_keys(values, dtype)


def _keys_struct(keys: pl.Expr, problem: pl.Expr) -> pl.Expr:
    return pl.struct(keys=keys, problem=problem).cast(_KEYS)


def _present(values: pl.Expr, dtype: pl.Struct) -> pl.Expr:
    names = [field.name for field in dtype.fields]
    if not names:
        return pl.lit([], dtype=pl.List(pl.String))
    return pl.concat_list(
        pl.when(field_of(values, dtype, name).is_not_null()).then(pl.lit(name)) for name in names
    ).list.drop_nulls()


def _struct_keys(values: pl.Expr, dtype: pl.Struct) -> pl.Expr:
    fields = dict(dtype.to_schema())
    keys = _present(values, dtype)
    problem: pl.Expr = pl.when(keys.list.len() == 0).then(pl.lit(_EMPTY))
    if (properties := fields.get("properties", pl.Null())) != pl.Null:
        value = values.struct.field("properties")
        if isinstance(properties, pl.Struct):
            keys = pl.when(value.is_not_null()).then(_present(value, properties)).otherwise(keys)
        else:
            problem = pl.when(value.is_not_null()).then(pl.lit(_BAD_PROPERTIES)).otherwise(problem)
    if (required := fields.get("required", pl.Null())) != pl.Null:
        value = values.struct.field("required")
        valid = pl.lit(value=False)
        if isinstance(required, pl.List) and required.inner in (pl.String, pl.Null):
            valid = value.list.eval(pl.element().is_not_null()).list.all()
            keys = pl.when(value.is_not_null()).then(value.cast(pl.List(pl.String))).otherwise(keys)
        elif isinstance(required, pl.List):
            valid = value.list.len() == 0
            keys = pl.when(value.is_not_null()).then(pl.lit([], dtype=pl.List(pl.String))).otherwise(keys)
        invalid = pl.when(valid.not_()).then(pl.lit(_BAD_REQUIRED))
        problem = pl.when(value.is_not_null()).then(invalid).otherwise(problem)
    problem = pl.when(values.is_null()).then(pl.lit(_NONE)).otherwise(problem)
    return _keys_struct(pl.when(problem.is_null()).then(keys), problem)


_SCHEMA_KEYS = Lane("schema-keys", _keys_expr)


def _missing_by_row(columns: Sequence[pl.Series]) -> pl.Series:
    frame = pl.DataFrame({"object": columns[0], "keys": columns[1]}).with_row_index("at")
    rows = frame.filter(pl.col("object").is_not_null() & pl.col("keys").is_not_null())
    rows = rows.with_columns_seq(count=pl.len().over("keys")) if rows.height else rows.with_columns_seq(count=pl.lit(0))
    answers = [pl.DataFrame(schema={"at": pl.UInt32, "reason": pl.String})]
    is_frequent = pl.col("count") >= THRESHOLDS.schema_rows
    rare, frequent = rows.filter(is_frequent.not_()), rows.filter(is_frequent)
    for part in frequent.partition_by("keys", maintain_order=True) if frequent.height else []:
        keys = part["keys"][0].to_list()
        answers.append(part.select_seq("at", reason=missing_keys_expr(keys, pl.col("object"))))
    reasons = [missing_keys(value, keys) or None for value, keys in rare.select_seq("object", "keys").iter_rows()]
    answers.append(rare.select_seq("at").with_columns_seq(reason=pl.Series(reasons, dtype=pl.String)))
    return frame.join(pl.concat(answers), on="at", how="left", maintain_order="left")["reason"]


def _result_expr(_: pl.Schema) -> pl.Expr:
    keys, problem = _SCHEMA_KEYS.col.struct.field("keys"), _SCHEMA_KEYS.col.struct.field("problem")
    missing = pl.map_batches([OBJECT_TEXT.col, keys], _missing_by_row, return_dtype=pl.String, is_elementwise=True)
    complaint = pl.when(OBJECT_TEXT.col.is_null()).then(pl.lit(NO_OBJECT)).otherwise(missing)
    error = pl.lit("ValueError: ") + problem
    reason = pl.coalesce(error, complaint)
    return pl.when(text().is_not_null()).then(
        pl.struct(score=reason.is_null().cast(pl.Float64), reason=reason, error=error)
    )


SCHEMA_RESULT = Lane("schema-result", _result_expr, after=(_SCHEMA_KEYS, OBJECT_TEXT))
"""A struct of ``score``, ``reason`` (null if no key is missing) and ``error`` (null if the row has a usable schema)."""
