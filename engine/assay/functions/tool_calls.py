"""Compare a tool call in the output with the expected one: the definition, and the same for a batch of rows.

A call is the JSON object from the first ``{`` of a text to its last ``}``; code fences and blanks around it contain no brace, so
they need no stripping. ``tool`` and ``action`` must be equal (absent on both sides is equal), also ``ref`` and ``text`` if the
expected call has them, and each axis of ``coordinate`` must be within a tolerance. Equality is Python's ``==``.

For a batch, columns compare flat calls, as nearly all are: a field is what follows its name in quotes. Everything else goes to the
definition.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, TypeGuard

import polars as pl

from assay.errors import quoted
from assay.expressions.json import FLAT_OBJECT, NOT_JSON, loads
from assay.expressions.pairs import quoted_expr
from assay.expressions.shared_columns import encoded, in_place

TOLERANCE = "coordinate_tolerance"
_DEFAULT_TOLERANCE = 25
_ALWAYS, _WHERE_WANTED, _AT = ("tool", "action"), ("ref", "text"), "coordinate"
_NO_CALL = "the output has no JSON object"
_NO_GOLD = "expected is not a JSON object"
_BAD_COORDINATE = "expected.coordinate is not a list of two numbers"
_FARTHEST = 10**9
_AXES = 2

Verdict = tuple[str, str | None]
"""Why the calls do not match (``""`` if they do), and the error of the expected call, or None."""


def tool_call(value: Any) -> dict[str, Any] | None:
    """Return the JSON object that a value is or that its text contains; None if there is none."""
    if isinstance(value, dict):
        return value
    text = "" if value is None else str(value)
    parsed = loads(text[text.find("{") : text.rfind("}") + 1]) if "{" in text else NOT_JSON
    return parsed if isinstance(parsed, dict) else None


def tool_calls_differ(output: str, expected: Any, params: Mapping[str, Any]) -> Verdict:
    """Compare a tool call with the expected one, an object or its text; this is the definition."""
    reference = tool_call(expected)
    if reference is None:
        return _NO_GOLD, f"ValueError: {_NO_GOLD}"
    call = tool_call(output)
    if call is None:
        return _NO_CALL, None
    for name in (*_ALWAYS, *(name for name in _WHERE_WANTED if name in reference)):
        if call.get(name) != reference.get(name):
            return _differs(name, reference.get(name)), None
    if _AT not in reference:
        return "", None
    tolerance = int(params.get(TOLERANCE, _DEFAULT_TOLERANCE))
    target, point = reference[_AT], call.get(_AT)
    if not _is_pair(target):
        return _BAD_COORDINATE, f"ValueError: {_BAD_COORDINATE}"
    try:
        is_near = _is_pair(point) and all(abs(a - b) <= tolerance for a, b in zip(point, target, strict=True))
    except OverflowError:  # an integer too large to be compared to a float is far away
        is_near = False
    return "" if is_near else _differs(_AT, target), None


def _is_pair(value: Any) -> TypeGuard[list[Any]]:
    return isinstance(value, list) and len(value) == _AXES and all(isinstance(axis, int | float) for axis in value)


def _differs(name: str, expected: Any) -> str:
    if expected is None:
        return f"{name} differs: expected none"
    return f"{name} differs: expected {quoted(expected) if isinstance(expected, str) else quoted(str(expected))[1:-1]}"


def tool_calls_match_expr(output: pl.Expr, expected: pl.Expr, params: Mapping[str, Any]) -> pl.Expr:
    """``tool_calls_differ`` as an elementwise expression: ``score`` (null where the definition must run), ``reason``, ``error``."""
    tolerance = int(params.get(TOLERANCE, _DEFAULT_TOLERANCE))
    run = partial(_match_batch, tolerance=max(-1, min(tolerance, 2 * _FARTHEST)))
    return pl.map_batches([output, expected], run, return_dtype=pl.Struct(_ANSWER), is_elementwise=True)


_ANSWER: dict[str, Any] = {"score": pl.Boolean, "reason": pl.String, "error": pl.String}
_FIELDS = (*_ALWAYS, *_WHERE_WANTED)
_NULL = "null"
_BLANK = r"[ \t\n\r]*"
_PAIR = rf"^\[{_BLANK}(-?[0-9]{{1,9}}){_BLANK},{_BLANK}(-?[0-9]{{1,9}}){_BLANK}\]$"
_FLAT = rf'\A[^{{}}"]*{FLAT_OBJECT}[^{{}}"]*\z'
"""A text whose only braces and quotes are those of one flat object; no key in it has escapes."""
_TOKEN = rf'\A{_BLANK}:{_BLANK}("[^"\\]*"|\[[^\]"]*\]|[^",\]}}\[\\ \t\n\r]+)'
"""A colon and value after a key: a string without escapes, a list without strings, a number or a constant."""


def _match_batch(columns: Sequence[pl.Series], tolerance: int) -> pl.Series:
    output, expected = columns
    texts, which = encoded(expected)
    golds = _golds(texts)
    rows = pl.DataFrame({"source": output, "which": which}).with_row_index("at")
    rows = rows.filter(golds["known"].gather(which), pl.col("source").str.contains(_FLAT))
    kept, answers = rows.columns, []
    for name in (
        *_FIELDS,
        _AT,
    ):  # reading is the most expensive step, so each is read only where all earlier ones are equal
        wanted = rows.with_columns_seq(wanted=golds[name].gather(rows["which"])).filter(pl.col("wanted").is_not_null())
        read = _read(wanted, name)
        same = pl.col("value").fill_null(_NULL) == pl.col("wanted")
        if name == _AT:
            x, y = _axes()
            read = read.hstack(golds.select_seq("x", "y")[read["which"]])
            read = read.with_columns_seq(dx=x - pl.col("x"), dy=y - pl.col("y"))
            same = (pl.max_horizontal(pl.col("dx", "dy").abs()) <= tolerance).fill_null(value=False)
            odd = pl.col("value").is_not_null() & pl.col("dx").is_null()
            read = read.with_columns_seq(doubt=pl.col("doubt") | odd)
        read = read.with_columns_seq(same=same)
        differing = read.filter(~pl.col("doubt") & ~pl.col("same"))
        answers.append(differing.select_seq("at", reason=_differs_expr(name)))
        out = read.filter(pl.col("doubt") | ~pl.col("same"))["at"]
        rows = rows.filter(~pl.col("at").is_in(out.implode())).select_seq(kept)
    equal = rows.select_seq("at", reason=pl.lit(None, dtype=pl.String))
    compared = in_place(pl.concat([*answers, equal]).with_columns_seq(score=pl.col("reason").is_null()), len(output))
    return compared.select_seq(pl.struct("score", "reason", error=pl.lit(None, dtype=pl.String))).to_series()


def _golds(texts: pl.Series) -> pl.DataFrame:
    """Return expected calls by fields, as the JSON text of their equals: ``known`` where columns compare them exactly."""
    value = pl.col("value")
    frame = texts.to_frame("source").with_columns_seq(known=pl.col("source").str.contains(_FLAT))
    for name in _FIELDS:
        exact = value.is_null() | (value == _NULL) | value.str.starts_with('"')
        is_compared = value.is_not_null() | pl.lit(name in _ALWAYS)
        field = pl.when(is_compared).then(value.fill_null(_NULL)).alias(name)
        frame = _read(frame, name).with_columns_seq(field, known=pl.col("known") & exact & ~pl.col("doubt"))
    x, y = _axes()
    frame = _read(frame, _AT).with_columns_seq(x=x, y=y)
    exact = (value.is_null() | pl.col("x").is_not_null()) & ~pl.col("doubt")
    pair = pl.concat_str(pl.lit("["), "x", pl.lit(", "), "y", pl.lit("]"))
    return frame.with_columns_seq(pair.alias(_AT), known=pl.col("known") & exact)


def _read(frame: pl.DataFrame, name: str) -> pl.DataFrame:
    """Add ``value``, a field of flat ``source``, and ``doubt``: a name that occurs twice, or a value with escapes."""
    key, source = f'"{name}"', pl.col("source")
    start = source.str.find(key, literal=True) + len(key)  # in bytes
    frame = frame.with_columns_seq(rest=source.cast(pl.Binary).bin.slice(start).cast(pl.String))
    frame = frame.with_columns_seq(value=pl.col("rest").str.extract(_TOKEN, 1))
    odd = pl.col("value").is_null() | pl.col("rest").str.contains(key, literal=True)
    return frame.with_columns_seq(doubt=pl.col("rest").is_not_null() & odd)


def _axes() -> tuple[pl.Expr, pl.Expr]:
    pair = pl.col("value").str.extract_groups(_PAIR).struct
    return pair.field("1").cast(pl.Int64), pair.field("2").cast(pl.Int64)


def _differs_expr(name: str) -> pl.Expr:
    before, wanted = f"{name} differs: expected ", pl.col("wanted")
    if name == _AT:
        return pl.concat_str(pl.lit(before), wanted)
    value = pl.when(wanted != _NULL).then(wanted.str.strip_prefix('"').str.strip_suffix('"'))
    return quoted_expr(value, before).fill_null(pl.lit(f"{before}none"))
