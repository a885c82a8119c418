"""The verifier that a row carries: the function that scores it, the expected value and the params; row by row, and with columns.

It is in the column ``verifier``, a struct or JSON text ``{kind, fn_name, expected, params}``; without that column, it is in the
columns ``fn_name``, ``expected`` (else ``answer``, else ``target``) and ``params``. In a struct, a null field counts as absent.

A list or an array of expected values is a list of golds, of which the best counts; a nested one is flattened, and nulls are left out.
A function of yours gets the list as it is.
"""

import json
from collections.abc import Container, Mapping
from functools import partial
from typing import Any

import polars as pl

from assay.errors import did_you_mean, encodable, quoted
from assay.expressions.json import FLAT_OBJECT, loads, mended
from assay.expressions.mixed import JSON, untyped
from assay.expressions.shared_columns import SharedColumn, distinct_rows, field_of, is_small, once, positions, rowwise
from assay.expressions.text import strip_expr
from assay.frozen import frozen
from assay.names import EXPECTED, FN_NAME, GOLD_COLUMNS, IN_PROCESS, PARAMS, VERIFIER, VERIFIER_COLUMNS
from assay.system.cache import cached_within
from assay.thresholds import THRESHOLDS

_FIELDS = ("kind", FN_NAME, EXPECTED, PARAMS)
ROW_VERIFIER = pl.Struct(
    dict.fromkeys(("fn", "expected", "typed", "params", "problem"), pl.String)
    | {"refused": pl.Boolean, "doubt": pl.String}
)
"""``RowVerifier`` in a column: a string is in ``expected``, any other JSON value as JSON text in ``typed``."""


@frozen
class RowVerifier:
    """The verifier that a row carries."""

    fn: str = ""  # name of the function; ``""`` if neither the row nor the run names one
    expected: Any = None  # any JSON value; None if absent
    params: Mapping[str, Any] | None = None
    problem: str = ""  # why the row cannot be scored
    refused: bool = False  # a run with such a row stops before it scores anything
    doubt: str = ""  # a likely mistake in a row that can be scored: fields that nothing reads


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


def verifier_of(row: Mapping[str, Any], default: str = "") -> RowVerifier:
    """Return the verifier that a row carries, with a default function; this is the definition."""
    if VERIFIER in row:
        return read_verifier(row[VERIFIER], default)
    parts = {name: row[name] for name in VERIFIER_COLUMNS if name in row and name != VERIFIER}
    if EXPECTED not in row and (gold := gold_column(row)) is not None:
        parts[EXPECTED] = row[gold]
    return read_verifier(parts, default)


def read_verifier(verifier: Any, default: str = "") -> RowVerifier:
    """Read a ``verifier``: a mapping, its JSON text, or None."""
    verifier = loads(verifier) if isinstance(verifier, str) else _plain(verifier)
    if not isinstance(verifier, dict | None):
        return RowVerifier(problem="ValueError: verifier is not a JSON object")
    verifier = verifier or {}
    if (kind := verifier.get("kind")) not in (None, "", IN_PROCESS):
        return RowVerifier(problem=f"verifier kind {quoted(str(kind))} is not {IN_PROCESS}", refused=True)
    fn = verifier.get(FN_NAME)
    if not isinstance(fn, str | None):
        return RowVerifier(problem="ValueError: verifier.fn_name is not a string")
    fn = mended(fn) if fn and fn.strip() else default
    params = verifier.get(PARAMS)
    if isinstance(params, str):
        params = loads(params)
    if not isinstance(params, dict | None):
        return RowVerifier(fn, problem="ValueError: verifier.params is not an object")
    expected = verifier.get(EXPECTED)
    doubt = "; ".join(_unread(name) for name in verifier if name not in _FIELDS)
    return RowVerifier(fn, mended(expected) if isinstance(expected, str) else expected, params or {}, doubt=doubt)


@cached_within(500_000, lambda _, name: 8 * len(name))
def _unread(name: str) -> str:
    guess = did_you_mean(name, _FIELDS)
    return encodable(f"verifier.{name} is read by nothing{f'. {guess}' if guess else ''}")


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        if [*value] == [JSON]:
            return untyped(value)
        return {str(key): _plain(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value if isinstance(value, str | int | float | None) else str(value)


def gold_column(columns: Container[str]) -> str | None:
    """Return the column of expected values; None if there is none."""
    return next((name for name in GOLD_COLUMNS if name in columns), None)


def gold_note(columns: Container[str]) -> list[str]:
    """Return the note that says which column is used, if it is not ``expected``."""
    name = gold_column(columns)
    return [] if name in (None, EXPECTED) else [f"the expected values are in `{name}`: there is no column `{EXPECTED}`"]


def is_listed(expected: Any) -> bool:
    """Return whether an expected value is a list of golds."""
    if isinstance(expected, str | dict | None):  # most are
        return False
    return isinstance(expected, list | tuple) or (
        bool(getattr(expected, "ndim", 0)) and callable(getattr(expected, "tolist", None))
    )


def golds_of(expected: Any) -> list[Any]:
    """Return the golds of an expected value, in order; none of them is null or a list."""
    golds: list[Any] = []
    rest = [expected]
    while rest:
        value = rest.pop()
        if is_listed(value):
            rest.extend(reversed(value if isinstance(value, list | tuple) else value.tolist()))
        elif value is not None:
            golds.append(mended(value) if isinstance(value, str) else value)
    return golds


def is_absent(expected: Any) -> bool:
    """Return whether there is nothing to compare with: null, an empty list, or a list of nulls."""
    return expected is None or (is_listed(expected) and not golds_of(expected))


def _fields(schema: pl.Schema) -> dict[str, tuple[pl.Expr, Any]]:
    if VERIFIER not in schema:
        columns = {name: name for name in VERIFIER_COLUMNS if name in schema}
        if (gold := gold_column(schema)) is not None:
            columns[EXPECTED] = gold
        return {name: (pl.col(column), schema[column]) for name, column in columns.items()}
    dtype = schema[VERIFIER]
    parts = dict(dtype.to_schema()) if isinstance(dtype, pl.Struct) else {}
    return {name: (field_of(pl.col(VERIFIER), dtype, name), kind) for name, kind in parts.items()}


def row_verifier(default: str = "") -> SharedColumn:
    """Return the lane of the rows' verifiers, a column of ``ROW_VERIFIER``."""
    return SharedColumn(f"row-verifier:{default}", lambda schema: _verifier_expr(schema, default), after=(_ROW_PARAMS,))


def _verifier_expr(schema: pl.Schema, default: str) -> pl.Expr:
    if VERIFIER not in schema or isinstance(schema[VERIFIER], pl.Struct):
        return _from_fields(_fields(schema), default)
    texts = pl.coalesce(pl.col(VERIFIER).cast(pl.String), pl.lit("null"))  # a null means the same as JSON's null
    return once(texts, partial(_read_texts, default=default), ROW_VERIFIER)


_HOLE = "\ue000gold\ue000"
_KEY = '"expected":'
_FLAT = rf"\A{FLAT_OBJECT}\z"
_STRING = r'(?s)\A"((?:[^"\\\x00-\x1f]|\\["\\/])*)"(.*)\z'
"""A string without escapes other than an escaped quote, slash or backslash; and what follows it."""
_PLAIN_ESCAPE = r'\\(["\\/])'


def _read_texts(texts: pl.Series, default: str) -> pl.Series:
    if is_small(texts):
        return _read_in_python(texts, default)
    result = _read_templates(texts, default)
    others = result.is_null()
    if not others.any():
        return result
    rest = _read_in_python(texts.filter(others), default)
    return rest if len(rest) == len(texts) else result.zip_with(~others, rest.gather(positions(others)))


def _read_templates(texts: pl.Series, default: str) -> pl.Series:
    """Read verifiers that differ only in their expected value; null for the others.

    A text without its expected value is a template. There are few, so Python parses each with a placeholder in the gap. If the
    placeholder comes back as ``expected``, any other JSON value in its place would too: a plain string, or a flat object, which stays
    text.
    """
    frame = texts.to_frame("text").select_seq(pl.col("text").str.splitn(_KEY, 2).struct.rename_fields(["head", "rest"]))
    frame = frame.unnest("text").with_columns_seq(pl.col("rest").str.strip_chars_start(" \t\n\r"))
    rest = pl.col("rest")
    # NOTE: separate columns, because an expression that is used twice is computed twice
    frame = frame.with_columns_seq(
        quote=rest.str.extract_groups(_STRING).struct.rename_fields(["gold", "tail"]),
        brace=pl.when(rest.str.starts_with("{")).then(rest).str.splitn("}", 2).struct.rename_fields(["gold", "tail"]),
    )
    gold, tail = ({name: pl.col(name).struct.field(part) for name in ("quote", "brace")} for part in ("gold", "tail"))
    frame = frame.select_seq(
        "head",
        expected=gold["quote"].str.replace_all(_PLAIN_ESCAPE, "$1"),
        typed=gold["brace"] + "}",
        tail=pl.coalesce(tail.values()),
    )
    frame = frame.with_columns_seq(typed=pl.when(pl.col("typed").str.contains(_FLAT)).then("typed"))
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


def _read_structs(structs: pl.Series, default: str) -> pl.Series:
    if is_small(structs):
        return _read_in_python(structs, default)
    distinct, which = distinct_rows(structs)  # the rows of a task have the same
    return _read_in_python(distinct, default).gather(which)


def _read_in_python(verifiers: pl.Series, default: str) -> pl.Series:
    read = [struct_of(read_verifier(verifier, default)) for verifier in verifiers.to_list()]
    # field by field: Polars takes five times as long for a list of mappings
    fields = ROW_VERIFIER.to_schema()
    return pl.DataFrame({name: [row[name] for row in read] for name in fields}, schema=fields).to_struct(verifiers.name)


def _from_fields(fields: Mapping[str, tuple[pl.Expr, Any]], default: str) -> pl.Expr:
    absent: tuple[pl.Expr, Any] = (pl.lit(None, dtype=pl.String), pl.Null())
    kind, fn = (fields.get(own_name, absent) for own_name in ("kind", FN_NAME))
    expected, expected_type = fields.get(EXPECTED, absent)
    texts = all(dtype in (pl.Null, pl.String) for _, dtype in (kind, fn))
    is_list = isinstance(expected_type, pl.List | pl.Array) and expected_type.inner == pl.String
    is_text = expected_type in (pl.Null, pl.String)
    if not (texts and (is_text or is_list) and _is_safe(fields.get(PARAMS, absent)[1])):
        # NOTE: numbers too, because Polars formats a float differently from Python
        whole = pl.struct(values.alias(own_name) for own_name, (values, _) in fields.items())
        return whole.map_batches(partial(_read_structs, default=default), ROW_VERIFIER, is_elementwise=True)
    row_params = _ROW_PARAMS.col
    own_name = fn[0].cast(pl.String)
    fn_name = pl.when(strip_expr(own_name) != "").then(own_name).otherwise(pl.lit(default))
    kind_text = kind[0].cast(pl.String)
    is_other_kind = kind_text.is_not_null() & kind_text.is_in(["", IN_PROCESS]).not_()
    kind_problem = rowwise(
        pl.when(is_other_kind).then(kind_text), lambda value: read_verifier({"kind": value}).problem, pl.String
    )
    doubts: list[pl.Expr] = [
        pl.when(values.is_not_null()).then(pl.lit(_unread(own_name)))
        for own_name, (values, _) in fields.items()
        if own_name not in _FIELDS
    ] or [pl.lit("")]
    is_in_process = is_other_kind.fill_null(value=False).not_()
    problem = pl.coalesce(kind_problem, row_params.struct.field("problem"))
    usable = problem.is_null()
    as_json = pl.struct(expected.alias(EXPECTED)).struct.json_encode()
    as_json = as_json.str.strip_prefix(f'{{"{EXPECTED}":').str.strip_suffix("}")
    return pl.struct(
        fn=pl.when(is_in_process).then(fn_name).otherwise(pl.lit("")),
        expected=pl.when(usable).then(expected.cast(pl.String)) if is_text else pl.lit(None, dtype=pl.String),
        typed=pl.when(usable & expected.is_not_null()).then(as_json) if is_list else pl.lit(None, dtype=pl.String),
        params=pl.when(usable).then(row_params.struct.field("params")),
        problem=problem,
        refused=is_in_process.not_(),
        doubt=pl.when(usable).then(pl.concat_str(doubts, separator="; ", ignore_nulls=True).replace("", None)),
    )


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
    is_struct = isinstance(dtype, pl.Struct)

    def read(text: str) -> dict[str, Any]:
        row = struct_of(read_verifier({PARAMS: json.loads(text) if is_struct else text}))
        return {name: row[name] for name in ("params", "problem")}

    return rowwise(params.cast(pl.String), read, _PARAMS, distinct=True)


_ROW_PARAMS = SharedColumn("row-params", _row_params)
"""Params from a column: canonical JSON text, and any problem with them."""
