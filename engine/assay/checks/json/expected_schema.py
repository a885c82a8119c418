"""The keys that a task's expected output schema requires, and whether the output has them.

The keys are ``required``, else the keys of ``properties``, else the schema's own keys. An explicit ``required: []`` only requires an
object; an empty schema counts as missing. In a struct column a null field counts as absent.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import polars as pl

from assay.expressions.json import NO_OBJECT, NOT_JSON, OBJECT_TEXT, loads, mended, missing_keys, missing_keys_expr
from assay.expressions.mixed import without_nulls
from assay.expressions.shared_columns import (
    SharedColumn,
    distinct_rows,
    encoded,
    in_rows_of,
    nulls,
    plain,
    plain_type,
    text,
)
from assay.names import OUTPUT_SCHEMA, OUTPUT_SCHEMA_CAMEL
from assay.system.memory import uncollected
from assay.thresholds import THRESHOLDS

_NONE = f"no {OUTPUT_SCHEMA} on this row"
_NOT_OBJECT = f"{OUTPUT_SCHEMA} is not a JSON object"
_EMPTY = f"{OUTPUT_SCHEMA} is empty"
_BAD_REQUIRED = f"{OUTPUT_SCHEMA}.required is not a list of strings"
_BAD_PROPERTIES = f"{OUTPUT_SCHEMA}.properties is not an object"
_SPELLINGS = (OUTPUT_SCHEMA, OUTPUT_SCHEMA_CAMEL)
_RESULT = pl.Struct({"score": pl.Float64, "reason": pl.String, "error": pl.String})


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
        if isinstance(required, list):
            with suppress(TypeError):  # not all are strings
                return _names(required)
        raise ValueError(_BAD_REQUIRED)
    if properties is not None:
        if not isinstance(properties, dict):
            raise ValueError(_BAD_PROPERTIES)
        return _names([*properties])
    return _names([*schema])


def _names(keys: list[str]) -> list[str]:
    return keys if "".join(keys).isascii() else [*map(mended, keys)]


class _Reading(NamedTuple):
    """The keys that a schema requires, or why it has none."""

    keys: tuple[str, ...] | None
    error: str | None


def _read(schema: Any) -> _Reading:
    try:
        return _Reading(tuple(schema_keys(schema)), None)
    except ValueError as error:
        return _Reading(None, f"ValueError: {error}")


def _distinct(schemas: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Return the distinct schemas, and the index of each row's; null for a null row."""
    if not isinstance(schemas.dtype, pl.Struct):
        return encoded(schemas.cast(pl.String))
    distinct, which = distinct_rows(schemas.drop_nulls())
    return distinct, in_rows_of(schemas, which)


def _results(columns: Sequence[pl.Series]) -> pl.Series:
    """Return the results of objects and their schemas, in one or two columns of which the first that is not null counts."""
    objects, *spellings = columns
    readings, which = [_read(None)], nulls(objects, pl.UInt32)
    for schemas in spellings:
        distinct, each = _distinct(schemas)
        which = which.zip_with(which.is_not_null(), each.cast(pl.UInt32) + len(readings))
        with uncollected():
            readings += map(_read, distinct.to_list())
    which = which.fill_null(0)
    error = pl.Series([reading.error for reading in readings], dtype=pl.String).gather(which)
    missing = pl.when(objects.is_null()).then(pl.lit(NO_OBJECT)).otherwise(_missing(objects, readings, which))
    frame = pl.DataFrame({"error": error}).select_seq("error", reason=pl.coalesce("error", missing))
    score = frame["reason"].is_null().cast(pl.Float64)
    return frame.select_seq(score.alias("score"), "reason", "error").to_struct(objects.name)


def _missing(objects: pl.Series, readings: Sequence[_Reading], which: pl.Series) -> pl.Series:
    """Return which keys each object misses: in columns for the key lists of many rows, in Python for the others."""
    known: dict[tuple[str, ...], int] = {}
    numbers = [None if keys is None else known.setdefault(keys, len(known)) for keys, _ in readings]
    rows = pl.DataFrame({"object": objects, "number": pl.Series(numbers, dtype=pl.UInt32).gather(which)})
    rows = rows.with_row_index("at")
    rows = rows.filter(pl.col("object").is_not_null() & pl.col("number").is_not_null())
    counts = rows["number"].value_counts()
    frequent = rows["number"].is_in(counts.filter(pl.col("count") >= THRESHOLDS.schema_rows)["number"].implode())
    rare, lists = rows.filter(~frequent), [*known]
    reasons = [missing_keys(value, lists[number]) or None for _, value, number in rare.iter_rows()]
    answers = [rare.select_seq("at").with_columns_seq(reason=pl.Series(reasons, dtype=pl.String))]
    for part in rows.filter(frequent).partition_by("number") if frequent.any() else ():
        keys = lists[part["number"][0]]
        answers.append(part.select_seq("at", reason=missing_keys_expr(keys, pl.col("object"))))
    answer = pl.concat(answers)
    return nulls(objects, pl.String).scatter(answer["at"], answer["reason"])


def _result_expr(schema: pl.Schema) -> pl.Expr:
    given = [name for name in _SPELLINGS if plain_type(schema.get(name, pl.Null())) != pl.Null]
    columns = [OBJECT_TEXT.col, *(plain(pl.col(name), schema[name]) for name in given)]
    return pl.when(text().is_not_null()).then(
        # NOTE: all fields at once, because an expression that is used twice may be evaluated twice
        pl.map_batches(columns, _results, return_dtype=_RESULT, is_elementwise=True)
    )


SCHEMA_RESULT = SharedColumn("schema-result", _result_expr, after=(OBJECT_TEXT,))
"""A struct of ``score``, ``reason`` (null if no key is missing) and ``error`` (null if the row has a usable schema)."""
