"""``request.verifier_of`` for columns: the verifier of each row, as one struct column.

``expected`` may be any JSON value: a string is in the field ``expected``, anything else is JSON text in ``typed``.
"""

import json
from collections.abc import Mapping
from functools import partial
from typing import Any

import polars as pl

from assay.expressions.json import FLAT_OBJECT, loads, mended
from assay.expressions.lane import Lane, field_of, is_small, once, positions, rowwise
from assay.expressions.text import strip_expr
from assay.functions.request import FIELDS, RowVerifier, gold_column, read_verifier, unread
from assay.names import EXPECTED, FN_NAME, IN_PROCESS, PARAMS, VERIFIER, VERIFIER_COLUMNS
from assay.thresholds import THRESHOLDS

ROW_VERIFIER = pl.Struct(
    {
        "fn": pl.String,
        "expected": pl.String,
        "typed": pl.String,
        "params": pl.String,
        "problem": pl.String,
        "refused": pl.Boolean,
        "doubt": pl.String,
    }
)


def row_verifier(default: str = "") -> Lane:
    """Return the lane of the rows' verifiers, a column of ``ROW_VERIFIER``: ``expected`` has strings, and ``typed`` other values as JSON text."""
    return Lane(f"row-verifier:{default}", lambda schema: _verifier_expr(schema, default), after=(_ROW_PARAMS,))


def struct_of(verifier: RowVerifier) -> dict[str, Any]:
    """Return a verifier as a value of ``ROW_VERIFIER``."""
    is_text = isinstance(verifier.expected, str)
    return {
        "fn": verifier.fn,
        "expected": verifier.expected if is_text else None,
        "typed": None if is_text or verifier.expected is None else json.dumps(verifier.expected),
        "params": json.dumps(verifier.params) if verifier.params else None,
        "problem": verifier.problem or None,
        "refused": verifier.refused,
        "doubt": verifier.doubt or None,
    }


Field = tuple[pl.Expr, Any]


def _fields(schema: pl.Schema) -> dict[str, Field]:
    if VERIFIER not in schema:
        columns = {name: name for name in VERIFIER_COLUMNS if name in schema}
        if (gold := gold_column(schema)) is not None:
            columns[EXPECTED] = gold
        return {name: (pl.col(column), schema[column]) for name, column in columns.items()}
    dtype = schema[VERIFIER]
    parts = dict(dtype.to_schema()) if isinstance(dtype, pl.Struct) else {}
    return {name: (field_of(pl.col(VERIFIER), dtype, name), kind) for name, kind in parts.items()}


def _verifier_expr(schema: pl.Schema, default: str) -> pl.Expr:
    if VERIFIER not in schema or isinstance(schema[VERIFIER], pl.Struct):
        return _from_fields(_fields(schema), default)
    column = pl.col(VERIFIER)
    # a null means the same as JSON's null
    return once(
        pl.coalesce(column.cast(pl.String), pl.lit("null")), partial(_read_texts, default=default), ROW_VERIFIER
    )


_HOLE = "\ue000gold\ue000"
_KEY = '"expected":'
_FLAT = rf"\A{FLAT_OBJECT}\z"
_STRING = r'(?s)\A"([^"\\]*(?:\\.[^"\\]*)*)"(.*)\z'
_PLAIN_STRING = r'\A(?:[^\\\x00-\x1f]|\\["\\/])*\z'
_PLAIN_ESCAPE = r'\\(["\\/])'


def _read_texts(texts: pl.Series, default: str) -> pl.Series:
    if is_small(texts):
        return _read_in_python(texts, default)
    result = _read_templates(texts, default)
    unread_rows = result.is_null()
    if not unread_rows.any():
        return result
    rest = _read_in_python(texts.filter(unread_rows), default)
    if len(rest) == len(texts):
        return rest
    return result.zip_with(~unread_rows, rest.gather(positions(unread_rows)))


def _read_templates(texts: pl.Series, default: str) -> pl.Series:
    frame = texts.to_frame("text").select_seq(pl.col("text").str.splitn(_KEY, 2).struct.rename_fields(["head", "rest"]))
    frame = frame.unnest("text").with_columns_seq(pl.col("rest").str.strip_chars_start(" \t\n\r"))
    rest, is_text = pl.col("rest"), pl.col("rest").str.starts_with('"')
    frame = frame.with_columns_seq(
        quote=pl.when(is_text).then(rest).str.extract_groups(_STRING).struct.rename_fields(["gold", "tail"]),
        brace=pl.when(rest.str.starts_with("{")).then(rest).str.splitn("}", 2).struct.rename_fields(["gold", "tail"]),
    )
    # NOTE: separate columns, because an expression that is used twice is computed twice
    tails = (pl.col(name).struct.field("tail") for name in ("quote", "brace"))
    frame = frame.select_seq(
        "head",
        gold=pl.col("quote").struct.field("gold"),
        typed=pl.col("brace").struct.field("gold") + "}",
        tail=pl.coalesce(tails),
    )
    gold, typed, plain = pl.col("gold"), pl.col("typed"), pl.col("plain")
    frame = frame.with_columns_seq(plain=gold.str.contains(_PLAIN_STRING))
    other = rowwise(pl.when(plain.not_()).then(pl.concat_str(pl.lit('"'), gold, pl.lit('"'))), _string_value, pl.String)
    frame = frame.with_columns_seq(
        expected=pl.when(plain).then(gold.str.replace_all(_PLAIN_ESCAPE, "$1")).otherwise(other),
        typed=pl.when(typed.str.contains(_FLAT)).then(typed),
    )
    template = pl.concat_str("head", pl.lit(f'{_KEY}"{_HOLE}"'), "tail")
    usable = pl.col("expected").is_not_null() | pl.col("typed").is_not_null()
    frame = frame.select_seq("expected", "typed", template=pl.when(usable).then(template))
    uses = THRESHOLDS.template_uses
    if frame["template"].n_unique() * uses > len(texts) + uses:
        return pl.repeat(None, len(texts), dtype=ROW_VERIFIER, eager=True)

    def read(template: str) -> dict[str, Any] | None:
        verifier = read_verifier(template, default)
        return struct_of(verifier) if verifier.expected == _HOLE and template.count(_HOLE) == 1 else None

    frame = frame.with_columns_seq(read=rowwise(pl.col("template"), read, ROW_VERIFIER, distinct=True))
    filled = pl.col("read").struct.with_fields(expected=pl.col("expected"), typed=pl.col("typed"))
    return frame.select_seq(pl.when(pl.col("read").is_not_null()).then(filled)).to_series()


def _string_value(text: str) -> str | None:
    value = loads(text)
    return mended(value) if isinstance(value, str) else None


def _read_in_python(texts: pl.Series, default: str) -> pl.Series:
    verifiers = [struct_of(read_verifier(text, default)) for text in texts.to_list()]
    # field by field: Polars takes five times as long for a list of mappings
    fields = ROW_VERIFIER.to_schema()
    return pl.DataFrame({name: [row[name] for row in verifiers] for name in fields}, schema=fields).to_struct()


def _from_fields(fields: Mapping[str, Field], default: str) -> pl.Expr:
    absent: Field = (pl.lit(None, dtype=pl.String), pl.Null())
    kind, fn = (fields.get(own_name, absent) for own_name in ("kind", FN_NAME))
    expected, expected_type = fields.get(EXPECTED, absent)
    texts = all(dtype in (pl.Null, pl.String) for _, dtype in (kind, fn))
    is_list = isinstance(expected_type, pl.List | pl.Array) and expected_type.inner == pl.String
    is_text = expected_type in (pl.Null, pl.String)
    if not (texts and (is_text or is_list) and _is_safe(fields.get(PARAMS, absent)[1])):
        # NOTE: numbers too, because Polars formats a float differently from Python
        whole = pl.struct(values.alias(own_name) for own_name, (values, _) in fields.items())
        return rowwise(whole, lambda value: struct_of(read_verifier(value, default)), ROW_VERIFIER)
    row_params = _ROW_PARAMS.col
    own_name = fn[0].cast(pl.String)
    fn_name = pl.when(strip_expr(own_name) != "").then(own_name).otherwise(pl.lit(default))
    kind_text = kind[0].cast(pl.String)
    is_other_kind = kind_text.is_not_null() & kind_text.is_in(["", IN_PROCESS]).not_()
    kind_problem = rowwise(
        pl.when(is_other_kind).then(kind_text), lambda value: read_verifier({"kind": value}).problem, pl.String
    )
    doubts: list[pl.Expr] = [
        pl.when(values.is_not_null()).then(pl.lit(unread(own_name)))
        for own_name, (values, _) in fields.items()
        if own_name not in FIELDS
    ] or [pl.lit("")]
    is_in_process = is_other_kind.fill_null(value=False).not_()
    problem = pl.coalesce(kind_problem, row_params.struct.field("problem"))
    usable = problem.is_null()
    return pl.struct(
        fn=pl.when(is_in_process).then(fn_name).otherwise(pl.lit("")),
        expected=pl.when(usable).then(expected.cast(pl.String)) if is_text else pl.lit(None, dtype=pl.String),
        typed=pl.when(usable).then(_list_json(expected)) if is_list else pl.lit(None, dtype=pl.String),
        params=pl.when(usable).then(row_params.struct.field("params")),
        problem=problem,
        refused=is_in_process.not_(),
        doubt=pl.when(usable).then(pl.concat_str(doubts, separator="; ", ignore_nulls=True).replace("", None)),
    )


def _list_json(lists: pl.Expr) -> pl.Expr:
    whole = pl.struct(lists.alias(EXPECTED)).struct.json_encode()
    text = whole.str.strip_prefix(f'{{"{EXPECTED}":').str.strip_suffix("}")
    return pl.when(lists.is_not_null()).then(text)


def _is_safe(dtype: Any) -> bool:
    if isinstance(dtype, pl.Struct):
        return all(_is_safe(field.dtype) for field in dtype.fields)
    if isinstance(dtype, pl.List):
        return _is_safe(dtype.inner)
    return dtype in (pl.String, pl.Boolean, pl.Null) or (dtype.is_integer() and dtype not in (pl.Int128, pl.UInt128))


_PARAMS = pl.Struct({"params": pl.String, "problem": pl.String})


def _row_params(schema: pl.Schema) -> pl.Expr:
    params, dtype = _fields(schema).get(PARAMS, (pl.lit(None, dtype=pl.String), None))
    if dtype is None or not _is_safe(dtype):
        return pl.lit(None, dtype=_PARAMS)
    if isinstance(dtype, pl.Struct):
        params = pl.when(params.is_not_null()).then(params.struct.json_encode())
    elif dtype not in (pl.String, pl.Null):
        params = pl.when(params.is_not_null()).then(pl.lit("0"))  # any JSON that is not an object
    read = partial(_read_params, is_struct=isinstance(dtype, pl.Struct))
    return rowwise(params.cast(pl.String), read, _PARAMS, distinct=True)


def _read_params(text: str, *, is_struct: bool) -> dict[str, Any]:
    row = struct_of(read_verifier({PARAMS: json.loads(text) if is_struct else text}))
    return {name: row[name] for name in ("params", "problem")}


_ROW_PARAMS = Lane("row-params", _row_params)
"""Params from a column: canonical JSON text, and any problem with them."""
