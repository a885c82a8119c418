"""The keys that a task's expected output schema requires, and whether the output has them.

The keys are ``required``, else the keys of ``properties``, else the schema's own keys. An explicit ``required: []`` only requires an
object; an empty schema counts as missing. In a struct column a null field counts as absent.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from assay.expressions.json import NO_OBJECT, NOT_JSON, OBJECT_TEXT, loads, mended, missing_keys, missing_keys_expr
from assay.expressions.mixed import without_nulls
from assay.expressions.shared_columns import SharedColumn, distinct_rows, plain, plain_type, positions, rowwise, text
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
    schema = loads(schema) if isinstance(schema, str) else without_nulls(schema)
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


def _keys_or_problem(schema: Any) -> dict[str, Any]:
    try:
        return {"keys": schema_keys(schema), "problem": None}
    except ValueError as error:
        return {"keys": None, "problem": str(error)}


def _keys_of_structs(schemas: pl.Series) -> pl.Series:
    distinct, which = distinct_rows(schemas.drop_nulls())
    answers = pl.Series([*map(_keys_or_problem, distinct.to_list())], dtype=_KEYS)
    return answers.gather(which).gather(positions(schemas.is_not_null())).alias(schemas.name)


def _keys_expr(schema: pl.Schema) -> pl.Expr:
    answers: list[pl.Expr] = []
    for name in (OUTPUT_SCHEMA, OUTPUT_SCHEMA_CAMEL):
        dtype = plain_type(schema.get(name, pl.Null()))
        if dtype == pl.Null:
            continue
        values = plain(pl.col(name), schema[name])
        if isinstance(dtype, pl.Struct):
            answers.append(values.map_batches(_keys_of_structs, _KEYS, is_elementwise=True))
        else:
            answers.append(rowwise(values.cast(pl.String), _keys_or_problem, _KEYS, distinct=True))
    return pl.coalesce(*answers, pl.struct(keys=None, problem=pl.lit(_NONE)).cast(_KEYS))


_SCHEMA_KEYS = SharedColumn("schema-keys", _keys_expr)


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


SCHEMA_RESULT = SharedColumn("schema-result", _result_expr, after=(_SCHEMA_KEYS, OBJECT_TEXT))
"""A struct of ``score``, ``reason`` (null if no key is missing) and ``error`` (null if the row has a usable schema)."""
