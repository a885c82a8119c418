"""``request.verifier_of`` for columns: what every row asks for, as one struct column.

``expected`` may be any JSON value. It travels as ``expected`` where it is a string, as JSON text in ``typed`` where it is not.
"""

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import polars as pl

from assay.expressions.json import FLAT_OBJECT, LIKE_JSON, loads, mended
from assay.expressions.lane import Lane, is_small, once, positions, rowwise
from assay.expressions.text import strip_expr
from assay.functions.request import FIELDS, Asked, read_verifier, unread
from assay.names import EXPECTED, FN_NAME, IN_PROCESS, PARAMS, VERIFIER, VERIFIER_COLUMNS
from assay.thresholds import THRESHOLDS

__all__ = ["PLAIN_VALUE", "named_verifier", "row_verifier"]

_ASKED = pl.Struct(
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
    """A struct column of what every row asks for.

    Its fields are ``fn``, ``expected`` (null unless a string), ``typed`` (JSON text, null for a string and for nothing),
    ``params`` (JSON text, null when there are none), ``problem`` (null when there is none), ``refused`` and ``doubt``.

    Args:
        default: The function of rows that name none.
    """
    return Lane(f"row-verifier:{default}", lambda schema: _asked_expr(schema, default), after=(_ROW_PARAMS,))


def named_verifier(fn: str, params: Mapping[str, Any], golds: Sequence[str]) -> Lane:
    """The same struct where one function is meant for all rows: its gold stands in the first of ``golds`` that is there."""
    given = {PARAMS: dict(params)}

    def build(schema: pl.Schema) -> pl.Expr:
        gold = next((name for name in golds if name in schema), None)
        dtype = pl.Null() if gold is None else schema[gold]
        if dtype not in (pl.Null, pl.String):
            value = pl.struct(pl.col(str(gold)).alias(EXPECTED))
            return rowwise(value, lambda value: _row(read_verifier(value | given, fn)), _ASKED)
        asked = _row(read_verifier(given, fn))
        expected = pl.lit(None, dtype=pl.String) if gold is None else pl.col(gold).cast(pl.String)
        parts = {name: pl.lit(asked[name], dtype=dtype) for name, dtype in _ASKED.to_schema().items()}
        return pl.struct((parts | {EXPECTED: expected})[name].alias(name) for name in parts)

    return Lane(f"named-verifier:{fn}:{json.dumps(given, sort_keys=True, default=repr)}", build)


def _row(asked: Asked) -> dict[str, Any]:
    is_text = isinstance(asked.expected, str)
    return {
        "fn": asked.fn,
        "expected": asked.expected if is_text else None,
        "typed": None if is_text or asked.expected is None else json.dumps(asked.expected),
        "params": json.dumps(asked.params) if asked.params else None,
        "problem": asked.problem or None,
        "refused": asked.refused,
        "doubt": asked.doubt or None,
    }


Field = tuple[pl.Expr, Any]


def _fields(schema: pl.Schema) -> dict[str, Field]:
    """The parts of a verifier that stand in columns or in the fields of one struct, each with its type."""
    if VERIFIER not in schema:
        return {name: (pl.col(name), schema[name]) for name in VERIFIER_COLUMNS if name in schema}
    dtype = schema[VERIFIER]
    parts = dict(dtype.to_schema()) if isinstance(dtype, pl.Struct) else {}
    return {name: (pl.col(VERIFIER).struct.field(name), kind) for name, kind in parts.items()}


def _asked_expr(schema: pl.Schema, default: str) -> pl.Expr:
    if VERIFIER not in schema or isinstance(schema[VERIFIER], pl.Struct):
        return _from_fields(_fields(schema), default)
    column = pl.col(VERIFIER)
    # a null asks for what JSON's null asks for
    return once(pl.coalesce(column.cast(pl.String), pl.lit("null")), partial(_read_texts, default=default), _ASKED)


# ── JSON text ───────────────────────────────────────────────────────────────────────────────────────────────────────────

_NAME = r"^[A-Za-z_][A-Za-z0-9_. -]*$"
_CONSTANT = r"^(?:true|false)$"
PLAIN_VALUE = r'(?:true|false|null|-?[0-9]{1,15}|"[^"\\]*")'
_PLAIN_PARAMS = rf'^\{{(?:"[^"\\]+":{PLAIN_VALUE}(?:,"[^"\\]+":{PLAIN_VALUE})*)?\}}$'
_INEXACT = r"[0-9]{16}|[0-9][.eE]|-0|\\"
"""Numbers that the engine's JSON may write otherwise than Python would, and keys that may be written in two ways."""
_ANY_KEY, _KNOWN_KEY = (rf'"{name}"\s*:' for name in (r'[^"\\]*', "(?:kind|fn_name|expected|params)"))


_HOLE = "\ue000gold\ue000"
_KEY = '"expected":'
_FLAT = rf"\A{FLAT_OBJECT}\z"
_STRING = r'(?s)\A"([^"\\]*(?:\\.[^"\\]*)*)"(.*)\z'
_PLAIN_STRING = r'\A(?:[^\\\x00-\x1f]|\\["\\/])*\z'
_PLAIN_ESCAPE = r'\\(["\\/])'


def _read_texts(texts: pl.Series, default: str) -> pl.Series:
    """Verifiers as JSON text: by their templates where those are few, the rest one by one."""
    if is_small(texts):
        return _read_in_python(texts, default)
    found = _read_templates(texts, default)
    left = found.is_null()
    if not left.any():
        return found
    rest = _read_singly(texts.filter(left), default)
    if len(rest) == len(texts):
        return rest
    return found.zip_with(~left, rest.gather(positions(left)))


def _read_templates(texts: pl.Series, default: str) -> pl.Series:
    """Verifiers that differ in their gold only, null for the others.

    A text with its gold cut out is a template; there are few, and Python reads each with a word of ours in the hole. Where that
    word comes back as ``expected``, so would any other JSON value that stands in its place: a string, which Python reads where it
    has other escapes than those of a character by itself, or a flat object, which stays text.
    """
    frame = texts.to_frame("text").select(pl.col("text").str.splitn(_KEY, 2).struct.rename_fields(["head", "rest"]))
    frame = frame.unnest("text").with_columns(pl.col("rest").str.strip_chars_start(" \t\n\r"))
    rest, is_text = pl.col("rest"), pl.col("rest").str.starts_with('"')
    frame = frame.with_columns(
        quote=pl.when(is_text).then(rest).str.extract_groups(_STRING).struct.rename_fields(["gold", "tail"]),
        brace=pl.when(rest.str.starts_with("{")).then(rest).str.splitn("}", 2).struct.rename_fields(["gold", "tail"]),
    )
    # NOTE: columns of their own, for what is read twice is computed twice
    tails = (pl.col(name).struct.field("tail") for name in ("quote", "brace"))
    frame = frame.select(
        "head",
        gold=pl.col("quote").struct.field("gold"),
        typed=pl.col("brace").struct.field("gold") + "}",
        tail=pl.coalesce(tails),
    )
    gold, typed, plain = pl.col("gold"), pl.col("typed"), pl.col("plain")
    frame = frame.with_columns(plain=gold.str.contains(_PLAIN_STRING))
    other = rowwise(pl.when(plain.not_()).then(pl.concat_str(pl.lit('"'), gold, pl.lit('"'))), _said, pl.String)
    frame = frame.with_columns(
        expected=pl.when(plain).then(gold.str.replace_all(_PLAIN_ESCAPE, "$1")).otherwise(other),
        typed=pl.when(typed.str.contains(_FLAT)).then(typed),
    )
    template = pl.concat_str("head", pl.lit(f'{_KEY}"{_HOLE}"'), "tail")
    usable = pl.col("expected").is_not_null() | pl.col("typed").is_not_null()
    frame = frame.select("expected", "typed", template=pl.when(usable).then(template))
    uses = THRESHOLDS.template_uses
    if frame["template"].n_unique() * uses > len(texts) + uses:
        return pl.repeat(None, len(texts), dtype=_ASKED, eager=True)

    def read(template: str) -> dict[str, Any] | None:
        asked = read_verifier(template, default)
        return _row(asked) if asked.expected == _HOLE and template.count(_HOLE) == 1 else None

    frame = frame.with_columns(read=rowwise(pl.col("template"), read, _ASKED, distinct=True))
    known = pl.col("read").struct.with_fields(expected=pl.col("expected"), typed=pl.col("typed"))
    return frame.select(pl.when(pl.col("read").is_not_null()).then(known)).to_series()


def _said(quoted: str) -> str | None:
    said = loads(quoted)
    return mended(said) if isinstance(said, str) else None


def _read_singly(texts: pl.Series, default: str) -> pl.Series:
    """Verifiers as JSON text, each by itself.

    The engine's JSON answers where it cannot differ: a text that it finds a plain name in is JSON, a value that does not look
    like JSON is a string, and objects without large numbers and fractions come out as they went in. A key that nothing reads
    may stand in the params only. Python reads the rest.
    """
    path = pl.col("text").str.json_path_match
    frame = texts.to_frame("text").select(
        "text", fn=path("$.fn_name"), kind=path("$.kind"), gold=path("$.expected"), params=path("$.params")
    )
    gold, params = pl.col("gold"), pl.col("params")
    is_text = gold.str.contains(LIKE_JSON).not_()
    is_object = gold.str.starts_with("{") & pl.col("text").str.contains(_INEXACT).not_()
    # a string that looks like an object would come out the same
    is_object = is_object & pl.col("text").str.contains(r'"expected"\s*:\s*"').not_()
    unknown, in_params = (
        said.str.count_matches(_ANY_KEY).cast(pl.Int64) - said.str.count_matches(_KNOWN_KEY)
        for said in (pl.col("text"), params.fill_null(""))
    )
    exact = (
        (pl.col("fn").str.contains(_NAME) & pl.col("fn").str.contains(_CONSTANT).not_())
        & (pl.col("kind").is_null() | (pl.col("kind") == IN_PROCESS))
        & (gold.is_null() | is_text | is_object)
        & (params.is_null() | params.str.contains(_PLAIN_PARAMS))
        & (unknown == in_params)
        & ((in_params == 0) | pl.col("text").str.contains("\\", literal=True).not_())
    ).fill_null(value=False)
    read = pl.struct(
        fn="fn",
        expected=pl.when(is_text).then(gold),
        typed=pl.when(is_text.not_()).then(gold),
        params=pl.when(params != "{}").then(params),
        problem=pl.lit(None, dtype=pl.String),
        refused=pl.lit(value=False),
        doubt=pl.lit(None, dtype=pl.String),
    )
    rest = rowwise(pl.when(exact.not_()).then("text"), lambda text: _row(read_verifier(text, default)), _ASKED)
    return frame.select(pl.when(exact).then(read).otherwise(rest)).to_series()


def _read_in_python(texts: pl.Series, default: str) -> pl.Series:
    return pl.Series([_row(read_verifier(text, default)) for text in texts.to_list()], dtype=_ASKED)


# ── structs and flat columns ────────────────────────────────────────────────────────────────────────────────────────────


def _from_fields(fields: Mapping[str, Field], default: str) -> pl.Expr:
    """The struct from columns of its parts; whatever is not plain text is read row by row."""
    absent: Field = (pl.lit(None, dtype=pl.String), pl.Null())
    kind, fn = (fields.get(name, absent) for name in ("kind", FN_NAME))
    expected, expected_type = fields.get(EXPECTED, absent)
    texts = all(dtype in (pl.Null, pl.String) for _, dtype in (kind, fn))
    if not texts or expected_type not in (pl.Null, pl.String) or not _is_safe(fields.get(PARAMS, absent)[1]):
        # NOTE: numbers too, for the engine writes a float as text in its own way
        whole = pl.struct(values.alias(name) for name, (values, _) in fields.items())
        return rowwise(whole, lambda value: _row(read_verifier(value, default)), _ASKED)
    settled = _ROW_PARAMS.col
    name = fn[0].cast(pl.String)
    named = pl.when(strip_expr(name) != "").then(name).otherwise(pl.lit(default))
    other = kind[0].cast(pl.String)
    wrong_kind = other.is_not_null() & other.is_in(["", IN_PROCESS]).not_()
    said = rowwise(pl.when(wrong_kind).then(other), lambda value: read_verifier({"kind": value}).problem, pl.String)
    doubts: list[pl.Expr] = [
        pl.when(values.is_not_null()).then(pl.lit(unread(name)))
        for name, (values, _) in fields.items()
        if name not in FIELDS
    ] or [pl.lit("")]
    clean = wrong_kind.fill_null(value=False).not_()
    problem = pl.coalesce(said, settled.struct.field("problem"))
    usable = problem.is_null()
    return pl.struct(
        fn=pl.when(clean).then(named).otherwise(pl.lit("")),
        expected=pl.when(usable).then(expected.cast(pl.String)),
        typed=pl.lit(None, dtype=pl.String),
        params=pl.when(usable).then(settled.struct.field("params")),
        problem=problem,
        refused=clean.not_(),
        doubt=pl.when(usable).then(pl.concat_str(doubts, separator="; ", ignore_nulls=True).replace("", None)),
    )


def _is_safe(dtype: Any) -> bool:
    """Whether the engine's JSON text of a type holds its values exactly: text, whole numbers, Booleans, and structs of them."""
    if isinstance(dtype, pl.Struct):
        return all(_is_safe(field.dtype) for field in dtype.fields)
    if isinstance(dtype, pl.List):
        return _is_safe(dtype.inner)
    return dtype in (pl.String, pl.Boolean, pl.Null) or (dtype.is_integer() and dtype not in (pl.Int128, pl.UInt128))


_PARAMS = pl.Struct({"params": pl.String, "problem": pl.String})


def _row_params(schema: pl.Schema) -> pl.Expr:
    """Params as canonical JSON text, and what is wrong with them; null where the row as a whole is read in Python."""
    params, dtype = _fields(schema).get(PARAMS, (pl.lit(None, dtype=pl.String), None))
    if dtype is None or not _is_safe(dtype):
        return pl.lit(None, dtype=_PARAMS)
    if isinstance(dtype, pl.Struct):
        params = pl.when(params.is_not_null()).then(params.struct.json_encode())
    elif dtype not in (pl.String, pl.Null):
        params = pl.when(params.is_not_null()).then(pl.lit("0"))  # no object, whatever it is
    read = partial(_read_params, is_struct=isinstance(dtype, pl.Struct))
    return rowwise(params.cast(pl.String), read, _PARAMS, distinct=True)


def _read_params(text: str, *, is_struct: bool) -> dict[str, Any]:
    row = _row(read_verifier({PARAMS: json.loads(text) if is_struct else text}))
    return {name: row[name] for name in ("params", "problem")}


_ROW_PARAMS = Lane("row-params", _row_params)
"""Params that stand in a column: canonical JSON text, and what is wrong with them."""
