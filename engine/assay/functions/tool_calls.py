"""Compare a tool call in the output with the expected one: the definition, and the same for a batch of rows.

A call is the JSON object from the first ``{`` of a text to its last ``}``; code fences and blanks around it contain no brace, so
they need no stripping. ``tool`` and ``action`` must be equal (absent on both sides is equal), also ``ref`` and ``text`` if the
expected call has them, and each axis of ``coordinate`` must be within a tolerance. Equality is Python's ``==``.

For a batch, each distinct expected call is parsed once. The JSON parser of Polars answers for outputs that it accepts if the
expected fields are null or strings that are not JSON themselves: its text of a field then equals the string exactly if the
field does. Everything else goes to the definition.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeGuard

import polars as pl

from assay.errors import quoted
from assay.expressions.json import FLAT_OBJECT, NO_STRING, NOT_JSON, loads, mended
from assay.expressions.lane import encoded, in_place
from assay.expressions.pairs import quoted_expr

TOLERANCE = "coordinate_tolerance"
_DEFAULT_TOLERANCE = 25
_ALWAYS, _WHERE_WANTED, _AT = ("tool", "action"), ("ref", "text"), "coordinate"
_NO_CALL = "the output has no JSON object"
_NO_GOLD = "expected is not a JSON object"
_BAD_COORDINATE = "expected.coordinate is not a list of two numbers"
_BLANK = r"[ \t\n\r]*"
_PAIR = rf"^\[{_BLANK}(-?[0-9]{{1,9}}){_BLANK},{_BLANK}(-?[0-9]{{1,9}}){_BLANK}\]$"
_FLAT = rf'\A[^{{}}"]*{FLAT_OBJECT}[^{{}}"]*\z'
"""A text whose only braces and quotes are those of one flat object."""
_TOKEN = rf'\A{_BLANK}:{_BLANK}("[^"\\]*"|\[[^\]"]*\]|[^",\]}}\[\\ \t\n\r]+)'
"""A colon and value after a key: a string without escapes, a list without strings, a number or a constant."""
_LIKE_JSON = re.compile(rf"{NO_STRING}\Z", re.DOTALL)
_QUOTED_JSON = rf'(?s)\A"{NO_STRING}"\z'
_ANY_FIELD = rf'"(?:{"|".join((*_ALWAYS, *_WHERE_WANTED, _AT))})"'
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
    """Compare a tool call with the expected one; this is the definition."""
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
    return "" if _is_pair(point) and _near(point, target, tolerance) else _differs(_AT, target), None


def _is_pair(value: Any) -> TypeGuard[list[Any]]:
    return isinstance(value, list) and len(value) == _AXES and all(isinstance(axis, int | float) for axis in value)


def _near(point: list[Any], target: list[Any], tolerance: int) -> bool:
    try:
        return all(abs(a - b) <= tolerance for a, b in zip(point, target, strict=True))
    except OverflowError:  # an integer too large to be compared to a float is far away
        return False


def _differs(name: str, expected: Any) -> str:
    if expected is None:
        return f"{name} differs: expected none"
    return f"{name} differs: expected {quoted(expected) if isinstance(expected, str) else quoted(str(expected))[1:-1]}"


def tool_calls_match_expr(output: pl.Expr, expected: pl.Expr, params: Mapping[str, Any]) -> pl.Expr:
    """``tool_calls_differ`` as an elementwise expression."""
    tolerance = int(params.get(TOLERANCE, _DEFAULT_TOLERANCE))
    run = partial(_match_batch, tolerance=max(-1, min(tolerance, 2 * _FARTHEST)))
    return pl.map_batches([output, expected], run, return_dtype=pl.Struct(_ANSWER), is_elementwise=True)


_ANSWER: dict[str, Any] = {"score": pl.Boolean, "reason": pl.String, "error": pl.String}
_FIELDS = (*_ALWAYS, *_WHERE_WANTED)
_GOLD: dict[str, Any] = {
    "at": pl.UInt32,
    "known": pl.Boolean,
    "members": pl.String,
    "x": pl.Int64,
    "y": pl.Int64,
    **dict.fromkeys((*_FIELDS, _AT), pl.String),
}
"""An expected call: its index; whether columns compare it exactly; the text between its braces if it matches ``_FLAT`` and begins
with ``{"tool"``; the axes of its coordinate; and each field to compare, as the JSON text of its equals."""

_NULL = "null"
_Read = Callable[[pl.DataFrame, str], pl.DataFrame]
"""Adds ``value``, a field of the texts as JSON text (a string in quotes), and ``doubt``, where that value may be wrong."""


def _read_flat(frame: pl.DataFrame, name: str) -> pl.DataFrame:
    key, source = f'"{name}"', pl.col("source")
    start = source.str.find(key, literal=True) + len(key)  # in bytes
    frame = frame.with_columns_seq(rest=source.cast(pl.Binary).bin.slice(start).cast(pl.String))
    frame = frame.with_columns_seq(value=pl.col("rest").str.extract(_TOKEN, 1))
    odd = pl.col("value").is_null() | pl.col("rest").str.contains(key, literal=True)
    return frame.with_columns_seq(doubt=pl.col("rest").is_not_null() & odd)


def _read_any(frame: pl.DataFrame, name: str) -> pl.DataFrame:
    source = pl.col("source").str
    value, doubt = source.json_path_match(f"$.{name}"), pl.lit(value=False)
    if name == _AT:  # a string that looks like a list has no first element
        doubt = value.is_not_null() & source.json_path_match(f"$.{name}[0]").is_null()
    else:
        value = pl.concat_str(pl.lit('"'), value, pl.lit('"'))
    return frame.with_columns_seq(value=value, doubt=doubt).with_columns_seq(
        valid=pl.col("valid") | pl.col("value").is_not_null()
    )


def _axes() -> tuple[pl.Expr, pl.Expr]:
    pair = pl.col("value").str.extract_groups(_PAIR).struct
    return pair.field("1").cast(pl.Int64), pair.field("2").cast(pl.Int64)


def _golds(texts: pl.Series) -> pl.DataFrame:
    frame = texts.to_frame("source").with_row_index("at").with_columns_seq(known=pl.col("source").str.contains(_FLAT))
    members = pl.when(pl.col("source").str.starts_with('{"tool"')).then(pl.col("source").str.strip_prefix("{"))
    flat, value = frame.filter("known").with_columns_seq(members=members.str.strip_suffix("}")), pl.col("value")
    for name in _FIELDS:
        flat = _read_flat(flat, name)
        plain = value.str.starts_with('"') & value.str.contains(_QUOTED_JSON).not_()
        exact = value.is_null() | (value == _NULL) | plain
        is_compared = value.is_not_null() | pl.lit(name in _ALWAYS)
        field = pl.when(is_compared).then(value.fill_null(_NULL)).alias(name)
        flat = flat.with_columns_seq(field, known=pl.col("known") & exact & pl.col("doubt").not_())
    x, y = _axes()
    flat = _read_flat(flat, _AT).with_columns_seq(x=x, y=y)
    exact = (value.is_null() | pl.col("x").is_not_null()) & pl.col("doubt").not_()
    flat = flat.with_columns_seq(pl.format("[{}, {}]", "x", "y").alias(_AT), known=pl.col("known") & exact)
    rest = pl.concat([part.filter(~pl.col("known")).select_seq("at", "source") for part in (frame, flat)])
    read = pl.DataFrame([(at, *_gold(text)) for at, text in rest.iter_rows()], schema=_GOLD, orient="row")
    return in_place(pl.concat([flat.filter("known").select_seq(*_GOLD), read]), len(texts))


def _gold(text: str) -> tuple[Any, ...]:
    unknown = (False, *[None] * (len(_GOLD) - 2))
    reference = tool_call(text)
    if reference is None:
        return unknown
    values = [reference.get(name) for name in _FIELDS]
    if not all(value is None or _is_plain(value) for value in values):
        return unknown
    target = reference.get(_AT, (None, None))
    if _AT in reference and not (
        _is_pair(target) and all(type(axis) is int and abs(axis) < _FARTHEST for axis in target)
    ):
        return unknown
    is_compared = [name in _ALWAYS or name in reference for name in _FIELDS]
    fields = [
        (_NULL if value is None else f'"{value}"') if compared else None
        for value, compared in zip(values, is_compared, strict=True)
    ]
    return (True, None, *target, *fields, f"[{target[0]}, {target[1]}]" if _AT in reference else None)


def _is_plain(value: Any) -> bool:
    return isinstance(value, str) and not _LIKE_JSON.match(value) and mended(value) == value


def _match_batch(columns: Sequence[pl.Series], tolerance: int) -> pl.Series:
    output, expected = columns
    texts, which = encoded(expected)
    golds = _golds(texts)
    rows = pl.DataFrame({"source": output, "which": which, "known": golds["known"].gather(which)}).with_row_index("at")
    rows = rows.filter("known").select_seq("at", "source", "which", valid=pl.col("source").str.contains(_FLAT))
    equal, flat = rows.clear(), rows.filter("valid")
    if tolerance >= 0:
        equal, flat = _as_written(flat, golds)
    answers, doubtful = _compared(flat, golds, _read_flat, tolerance)
    answers = pl.concat([answers, equal.with_columns_seq(reason=pl.lit(None, dtype=pl.String))])
    rest = pl.concat([rows.filter(~pl.col("valid")), doubtful.with_columns_seq(valid=pl.lit(value=False))])
    if rest.height:
        rest = rest.with_columns_seq(source=_span(rest["source"]))
        empty = rest.filter(pl.col("source").is_null()).with_columns_seq(reason=pl.lit(_NO_CALL))
        parsed, _ = _compared(rest.filter(pl.col("source").is_not_null()), golds, _read_any, tolerance)
        unconfirmed = pl.when(pl.col("valid").not_()).then("source")
        parsed = parsed.filter(pl.col("valid") | unconfirmed.str.json_path_match("$").is_not_null())
        answers = pl.concat([frame.select_seq("at", "reason") for frame in (answers, empty, parsed)])
    answers = in_place(answers.select_seq("at", "reason", score=pl.col("reason").is_null()), len(output))
    return answers.select_seq(pl.struct("score", "reason", error=pl.lit(None, dtype=pl.String))).to_series()


def _as_written(frame: pl.DataFrame, golds: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    source, members, size = pl.col("source").cast(pl.Binary), pl.col("members"), pl.col("size")
    start = pl.col("source").str.find(f'"{_ALWAYS[0]}"', literal=True)  # in bytes
    frame = frame.with_columns_seq(start=start, members=golds["members"].gather(frame["which"]))
    frame = frame.with_columns_seq(call=source.bin.slice(pl.col("start")).cast(pl.String), size=members.str.len_bytes())
    matches = pl.col("call").str.starts_with(members).fill_null(value=False)
    prefix, suffix = source.bin.slice(0, pl.col("start")), source.bin.slice(pl.col("start") + size)
    repeats = (part.cast(pl.String).str.contains(_ANY_FIELD) for part in (prefix, suffix))
    candidates = frame.filter(matches).with_columns_seq(again=pl.any_horizontal(repeats))
    equal, others = candidates.filter(~pl.col("again")), candidates.filter("again")
    kept = ("at", "source", "which", "valid")
    return equal.select_seq(kept), pl.concat([frame.filter(~matches).select_seq(kept), others.select_seq(kept)])


def _compared(
    frame: pl.DataFrame, golds: pl.DataFrame, read: _Read, tolerance: int
) -> tuple[pl.DataFrame, pl.DataFrame]:
    kept, answers, doubtful = frame.columns, [], [frame.clear()]
    for name in (*_FIELDS, _AT):
        if golds[name].null_count() == golds.height:
            continue
        frame = frame.with_columns_seq(wanted=golds[name].gather(frame["which"]))
        compared = read(frame.filter(pl.col("wanted").is_not_null()), name)
        same, doubt = (pl.col("value").fill_null(_NULL) == pl.col("wanted")), pl.col("doubt")
        if name == _AT:
            x, y = _axes()
            compared = compared.hstack(golds.select_seq("x", "y")[compared["which"]])
            compared = compared.with_columns_seq(dx=x - pl.col("x"), dy=y - pl.col("y"))
            same = (pl.max_horizontal(pl.col("dx", "dy").abs()) <= tolerance).fill_null(value=False)
            doubt = doubt | (pl.col("value").is_not_null() & pl.col("dx").is_null())
        compared = compared.with_columns_seq(same=same, doubt=doubt)
        doubtful.append(compared.filter("doubt").select_seq(kept))
        compared = compared.filter(~pl.col("doubt"))
        answers.append(compared.filter(~pl.col("same")).select_seq(*kept, reason=_differs_expr(name)))
        frame = pl.concat(
            [frame.filter(pl.col("wanted").is_null()).select_seq(kept), compared.filter("same").select_seq(kept)]
        )
    answers.append(frame.with_columns_seq(reason=pl.lit(None, dtype=pl.String)))
    return pl.concat(answers), pl.concat(doubtful)


def _differs_expr(name: str) -> pl.Expr:
    before, wanted = f"{name} differs: expected ", pl.col("wanted")
    if name == _AT:
        return pl.concat_str(pl.lit(before), wanted)
    value = pl.when(wanted != _NULL).then(wanted.str.strip_prefix('"').str.strip_suffix('"'))
    return quoted_expr(value, before).fill_null(pl.lit(f"{before}none"))


def _span(output: pl.Series) -> pl.Series:
    bare = pl.col("output").str.strip_chars(" \t\n\r`").str.strip_prefix("json").str.strip_chars_start(" \t\n\r")
    whole = bare.str.starts_with("{") & bare.str.ends_with("}")
    braced = pl.col("output").str.contains("{", literal=True) & pl.col("output").str.contains("}", literal=True)
    rest = pl.when(whole.not_() & braced).then("output").str.extract(r"(?s)\{.*\}", 0)
    return pl.DataFrame({"output": output}).select_seq(pl.when(whole).then(bare).otherwise(rest)).to_series()
