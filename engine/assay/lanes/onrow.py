"""The verifier that a row carries: which function scores it, against what, with which params.

It stands in a column ``verifier``, a struct or JSON text ``{kind, fn_name, expected, params}``, or, where there is none, in the
columns ``fn_name``, ``expected`` and ``params``. The definition reads one row; ``ROW_VERIFIER`` is the same for columns.

``expected`` may be any JSON value. It travels as two strings: its ``str()``, which most functions compare, and for all but
strings its JSON text, from which the value itself can be had. In a struct a null field counts as absent.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from assay.errors import quoted
from assay.lanes.base import Lane, rowwise
from assay.lanes.jsontext import loads, mended
from assay.lanes.words import strip_expr

__all__ = ["COLUMNS", "EXPECTED", "FN_NAME", "IN_PROCESS", "PARAMS", "VERIFIER", "Asked", "row_verifier", "verifier_of"]

VERIFIER, FN_NAME, EXPECTED, PARAMS = COLUMNS = ("verifier", "fn_name", "expected", "params")
IN_PROCESS = "in_process"

NOT_OBJECT = "verifier is not a JSON object"
_BAD_PARAMS = "verifier.params is not an object"
_NO_NAME = "verifier.fn_name is not a string"


@dataclass(frozen=True)
class Asked:
    """What a row asks for.

    Attributes:
        fn: Name of the function; ``""`` when neither the row nor the run names one.
        expected: The gold, a JSON value; None when absent.
        params: Options of the function.
        problem: Why the row cannot be scored; ``""`` when it can.
        refused: Whether the problem is one that a run refuses before it scores anything.
    """

    fn: str = ""
    expected: Any = None
    params: Mapping[str, Any] | None = None
    problem: str = ""
    refused: bool = False


def verifier_of(row: Mapping[str, Any], default: str = "") -> Asked:
    """The definition.

    Args:
        row: The rollout's columns.
        default: The function of rows that name none.
    """
    if VERIFIER in row:
        return _read(row[VERIFIER], default)
    return _read({name: row[name] for name in COLUMNS if name in row and name != VERIFIER}, default)


def _read(verifier: Any, default: str) -> Asked:
    verifier = loads(verifier) if isinstance(verifier, str) else _plain(verifier)
    if not isinstance(verifier, dict | None):
        return Asked(problem=f"ValueError: {NOT_OBJECT}")
    verifier = verifier or {}
    if (kind := verifier.get("kind")) not in (None, "", IN_PROCESS):
        return Asked(problem=f"verifier kind {quoted(str(kind))} is not {IN_PROCESS}", refused=True)
    fn = verifier.get(FN_NAME)
    if not isinstance(fn, str | None):
        return Asked(problem=f"ValueError: {_NO_NAME}")
    fn = mended(fn) if fn and fn.strip() else default
    params = verifier.get(PARAMS)
    if isinstance(params, str):
        params = loads(params)
    if not isinstance(params, dict | None):
        return Asked(fn, problem=f"ValueError: {_BAD_PARAMS}")
    expected = verifier.get(EXPECTED)
    return Asked(fn, mended(expected) if isinstance(expected, str) else expected, params or {})


def _plain(value: Any) -> Any:
    """A value of a column as JSON has it; fields that are null in a struct were absent before rows were made alike."""
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value if isinstance(value, str | int | float | None) else str(value)


# ── columns ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

_ASKED = pl.Struct(
    {
        "fn": pl.String,
        "expected": pl.String,
        "typed": pl.String,
        "params": pl.String,
        "problem": pl.String,
        "refused": pl.Boolean,
    }
)


def _row(asked: Asked) -> dict[str, Any]:
    text, typed = _two_texts(asked.expected)
    return {
        "fn": asked.fn,
        "expected": text,
        "typed": typed,
        "params": json.dumps(asked.params) if asked.params else None,
        "problem": asked.problem or None,
        "refused": asked.refused,
    }


def _two_texts(expected: Any) -> tuple[str | None, str | None]:
    """``str(expected)``, and its JSON text where it is not a string."""
    if expected is None or isinstance(expected, str):
        return expected, None
    return mended(str(expected)), json.dumps(expected)


def row_verifier(default: str = "") -> Lane:
    """A struct column of what every row asks for.

    Its fields are ``fn``, ``expected`` (its ``str()``), ``typed`` (its JSON text, null for a string), ``params`` (JSON text, null
    when there are none), ``problem`` (null when there is none) and ``refused``.

    Args:
        default: The function of rows that name none.
    """
    return Lane(f"row-verifier:{default}", lambda schema: _asked_expr(schema, default))


def _asked_expr(schema: pl.Schema, default: str) -> pl.Expr:
    if VERIFIER not in schema:
        return _from_fields({name: (pl.col(name), schema[name]) for name in COLUMNS if name in schema}, default)
    column, dtype = pl.col(VERIFIER), schema[VERIFIER]
    if isinstance(dtype, pl.Struct):
        fields = dict(dtype.to_schema())
        return _from_fields({name: (column.struct.field(name), kind) for name, kind in fields.items()}, default)
    found = rowwise(column.cast(pl.String), lambda value: _row(_read(value, default)), _ASKED, distinct=True)
    nothing = pl.lit(_row(_read(None, default)), dtype=_ASKED)
    return pl.when(column.is_null()).then(nothing).otherwise(found)


Field = tuple[pl.Expr, Any]


def _from_fields(fields: Mapping[str, Field], default: str) -> pl.Expr:
    """The struct from columns of its parts; whatever is not plain text is read row by row."""
    absent: Field = (pl.lit(None, dtype=pl.String), pl.Null())
    kind, fn = (fields.get(name, absent) for name in ("kind", FN_NAME))
    (expected, expected_type), (params, params_type) = (fields.get(name, absent) for name in (EXPECTED, PARAMS))
    texts = all(dtype in (pl.Null, pl.String) for _, dtype in (kind, fn))
    if not texts or expected_type not in (pl.Null, pl.String) or not _is_safe(params_type):
        # NOTE: numbers too, for the engine writes a float as text in its own way
        whole = pl.struct(values.alias(name) for name, (values, _) in fields.items() if name in ("kind", *COLUMNS))
        return rowwise(whole, lambda value: _row(_read(value, default)), _ASKED)
    settled = _read_expr(params, params_type)
    name = fn[0].cast(pl.String)
    named = pl.when(strip_expr(name) != "").then(name).otherwise(pl.lit(default))
    other = kind[0].cast(pl.String)
    wrong_kind = other.is_not_null() & other.is_in(["", IN_PROCESS]).not_()
    said = rowwise(pl.when(wrong_kind).then(other), lambda value: _read({"kind": value}, "").problem, pl.String)
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
    )


def _is_safe(dtype: Any) -> bool:
    """Whether the engine's JSON text of a type holds its values exactly: text, whole numbers, Booleans, and structs of them."""
    if isinstance(dtype, pl.Struct):
        return all(_is_safe(field.dtype) for field in dtype.fields)
    if isinstance(dtype, pl.List):
        return _is_safe(dtype.inner)
    return dtype in (pl.String, pl.Boolean, pl.Null) or (dtype.is_integer() and dtype not in (pl.Int128, pl.UInt128))


_PARAMS = pl.Struct({"params": pl.String, "problem": pl.String})


def _read_expr(params: pl.Expr, dtype: Any) -> pl.Expr:
    """Params as canonical JSON text, and what is wrong with them."""
    text, read = params, _params_of_text
    if isinstance(dtype, pl.Struct):
        text, read = pl.when(params.is_not_null()).then(params.struct.json_encode()), _params_of_struct
    elif dtype not in (pl.String, pl.Null):
        text, read = pl.when(params.is_not_null()).then(pl.lit("0")), _params_of_text
    return rowwise(text.cast(pl.String), _settled(read), _PARAMS, distinct=True)


def _settled(read: Callable[[str], Asked]) -> Callable[[str], dict[str, Any]]:
    def run(text: str) -> dict[str, Any]:
        row = _row(read(text))
        return {"params": row["params"], "problem": row["problem"]}

    return run


def _params_of_text(text: str) -> Asked:
    return _read({PARAMS: text}, "")


def _params_of_struct(text: str) -> Asked:
    return _read({PARAMS: json.loads(text)}, "")
