"""Whether a tool call in the output matches the wanted one: the definition, and the same for a batch of rows.

A call is the JSON object from the first ``{`` of a text to its last ``}``; code fences and blanks around it hold no brace, so
they need no stripping. ``tool`` and ``action`` must be equal (absent on both sides is equal), ``ref`` and ``text`` where the
wanted call has them, and each axis of a ``coordinate`` within a tolerance. Equal is Python's ``==``.

For a batch, each distinct wanted call is read once. The engine's JSON parser answers for outputs it accepts where the wanted
fields are null or strings that are no JSON themselves: its text of a field then equals the string exactly when the field does.
Everything else goes to the definition.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeGuard

import polars as pl

from assay.errors import quoted
from assay.expressions.json import FLAT_OBJECT, NO_STRING, NOT_JSON, loads, mended
from assay.expressions.lane import encoded, in_place
from assay.functions.text_twins import quoted_expr

__all__ = ["TOLERANCE", "tool_call", "tool_calls_differ", "tool_calls_match_expr"]

TOLERANCE = "coordinate_tolerance"
_DEFAULT_TOLERANCE = 25
_ALWAYS, _WHERE_WANTED, _AT = ("tool", "action"), ("ref", "text"), "coordinate"
_NO_CALL = "the output has no JSON object"
_NO_GOLD = "expected is not a JSON object"
_BAD_COORDINATE = "expected.coordinate is not a list of two numbers"
_BLANK = r"[ \t\n\r]*"
_PAIR = rf"^\[{_BLANK}(-?[0-9]{{1,9}}){_BLANK},{_BLANK}(-?[0-9]{{1,9}}){_BLANK}\]$"
_FLAT = rf'\A[^{{}}"]*{FLAT_OBJECT}[^{{}}"]*\z'
"""A text with no brace or quote but those of one flat object."""
_TOKEN = rf'\A{_BLANK}:{_BLANK}("[^"\\]*"|\[[^\]"]*\]|[^",\]}}\[\\ \t\n\r]+)'
"""What stands behind a key: a string without escapes, a list without strings, a number or a constant."""
_LIKE_JSON = re.compile(rf"{NO_STRING}\Z", re.DOTALL)
_QUOTED_JSON = rf'(?s)\A"{NO_STRING}"\z'
_ANY_FIELD = rf'"(?:{"|".join((*_ALWAYS, *_WHERE_WANTED, _AT))})"'
_FARTHEST = 10**9
_AXES = 2

Verdict = tuple[str, str | None]
"""Why the calls do not match (``""``: they do), and what is wrong with the wanted call."""


def tool_call(value: Any) -> dict[str, Any] | None:
    """The JSON object that a value is or its text holds; None when there is none."""
    if isinstance(value, dict):
        return value
    said = "" if value is None else str(value)
    found = loads(said[said.find("{") : said.rfind("}") + 1]) if "{" in said else NOT_JSON
    return found if isinstance(found, dict) else None


def tool_calls_differ(output: str, expected: Any, params: Mapping[str, Any]) -> Verdict:
    """The definition.

    Args:
        output: The completion's text.
        expected: The wanted call, an object or its text.
        params: ``coordinate_tolerance``, default 25, inclusive, on each axis.

    Returns:
        Which field differs first, ``""`` when none does; and an error where the wanted call cannot be used.

    Raises:
        ValueError, TypeError: The tolerance is not a number.
    """
    wanted = tool_call(expected)
    if wanted is None:
        return _NO_GOLD, f"ValueError: {_NO_GOLD}"
    found = tool_call(output)
    if found is None:
        return _NO_CALL, None
    for name in (*_ALWAYS, *(name for name in _WHERE_WANTED if name in wanted)):
        if found.get(name) != wanted.get(name):
            return _differs(name, wanted.get(name)), None
    if _AT not in wanted:
        return "", None
    tolerance = int(params.get(TOLERANCE, _DEFAULT_TOLERANCE))
    at, there = wanted[_AT], found.get(_AT)
    if not _is_pair(at):
        return _BAD_COORDINATE, f"ValueError: {_BAD_COORDINATE}"
    return "" if _is_pair(there) and _near(there, at, tolerance) else _differs(_AT, at), None


def _is_pair(value: Any) -> TypeGuard[list[Any]]:
    return isinstance(value, list) and len(value) == _AXES and all(isinstance(one, int | float) for one in value)


def _near(there: list[Any], at: list[Any], tolerance: int) -> bool:
    try:
        return all(abs(a - b) <= tolerance for a, b in zip(there, at, strict=True))
    except OverflowError:  # an integer too large to be compared to a float is far away
        return False


def _differs(name: str, wanted: Any) -> str:
    if wanted is None:
        return f"{name} differs: expected none"
    return f"{name} differs: expected {quoted(wanted) if isinstance(wanted, str) else quoted(str(wanted))[1:-1]}"


def tool_calls_match_expr(output: pl.Expr, expected: pl.Expr, params: Mapping[str, Any]) -> pl.Expr:
    """``tool_calls_differ`` as an elementwise expression.

    Args:
        output: The completions' texts, String.
        expected: The wanted calls as text, String.
        params: As in ``tool_calls_differ``.

    Returns:
        A struct of ``score`` (Boolean, null where the definition must answer), ``reason`` and ``error``.
    """
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
"""Of a wanted call: its place, whether columns are exact, what is between its braces where it matches ``_FLAT`` and begins with
``{"tool"``, the axes of its coordinate, and each field that counts as the JSON text of its equals."""

_NULL = "null"
_Read = Callable[[pl.DataFrame, str], pl.DataFrame]
"""Adds ``said``, a field of the texts as JSON text (of a string: between quotes), and ``doubt``, where that may be wrong."""


def _read_flat(frame: pl.DataFrame, name: str) -> pl.DataFrame:
    """A field of texts that match ``_FLAT``; ``rest`` is what follows its key.

    No key there has escapes, so a field that is there once is what follows its name in quotes. That name twice (the last one
    counts, or one is a value) and a value with escapes are in doubt.
    """
    key, source = f'"{name}"', pl.col("source")
    start = source.str.find(key, literal=True) + len(key)  # in bytes
    frame = frame.with_columns(rest=source.cast(pl.Binary).bin.slice(start).cast(pl.String))
    frame = frame.with_columns(said=pl.col("rest").str.extract(_TOKEN, 1))
    odd = pl.col("said").is_null() | pl.col("rest").str.contains(key, literal=True)
    return frame.with_columns(doubt=pl.col("rest").is_not_null() & odd)


def _read_any(frame: pl.DataFrame, name: str) -> pl.DataFrame:
    """A field by the engine's JSON; nothing found may mean no such field, or no JSON that the engine accepts."""
    source = pl.col("source").str
    said, doubt = source.json_path_match(f"$.{name}"), pl.lit(value=False)
    if name == _AT:  # a string that looks like a list has no first element
        doubt = said.is_not_null() & source.json_path_match(f"$.{name}[0]").is_null()
    else:
        said = pl.concat_str(pl.lit('"'), said, pl.lit('"'))
    return frame.with_columns(said=said, doubt=doubt).with_columns(valid=pl.col("valid") | pl.col("said").is_not_null())


def _axes() -> tuple[pl.Expr, pl.Expr]:
    """The axes of what is ``said``; null where it is no list of two short integers."""
    pair = pl.col("said").str.extract_groups(_PAIR).struct
    return pair.field("1").cast(pl.Int64), pair.field("2").cast(pl.Int64)


def _golds(texts: pl.Series) -> pl.DataFrame:
    """Wanted calls as columns compare them, ``_GOLD``, row for row."""
    frame = texts.to_frame("source").with_row_index("at").with_columns(known=pl.col("source").str.contains(_FLAT))
    members = pl.when(pl.col("source").str.starts_with('{"tool"')).then(pl.col("source").str.strip_prefix("{"))
    flat, said = frame.filter("known").with_columns(members=members.str.strip_suffix("}")), pl.col("said")
    for name in _FIELDS:
        flat = _read_flat(flat, name)
        plain = said.str.starts_with('"') & said.str.contains(_QUOTED_JSON).not_()
        exact = said.is_null() | (said == _NULL) | plain
        counts = said.is_not_null() | pl.lit(name in _ALWAYS)
        field = pl.when(counts).then(said.fill_null(_NULL)).alias(name)
        flat = flat.with_columns(field, known=pl.col("known") & exact & pl.col("doubt").not_())
    x, y = _axes()
    flat = _read_flat(flat, _AT).with_columns(x=x, y=y)
    exact = (said.is_null() | pl.col("x").is_not_null()) & pl.col("doubt").not_()
    flat = flat.with_columns(pl.format("[{}, {}]", "x", "y").alias(_AT), known=pl.col("known") & exact)
    rest = pl.concat([part.filter(~pl.col("known")).select("at", "source") for part in (frame, flat)])
    read = pl.DataFrame([(at, *_gold(text)) for at, text in rest.iter_rows()], schema=_GOLD, orient="row")
    return in_place(pl.concat([flat.filter("known").select(*_GOLD), read]), len(texts))


def _gold(text: str) -> tuple[Any, ...]:
    """A wanted call as columns compare it, a row of ``_GOLD``."""
    unknown = (False, *[None] * (len(_GOLD) - 2))
    wanted = tool_call(text)
    if wanted is None:
        return unknown
    values = [wanted.get(name) for name in _FIELDS]
    if not all(value is None or _is_plain(value) for value in values):
        return unknown
    at = wanted.get(_AT, (None, None))
    if _AT in wanted and not (_is_pair(at) and all(type(axis) is int and abs(axis) < _FARTHEST for axis in at)):
        return unknown
    counts = [name in _ALWAYS or name in wanted for name in _FIELDS]
    fields = [
        (_NULL if value is None else f'"{value}"') if count else None
        for value, count in zip(values, counts, strict=True)
    ]
    return (True, None, *at, *fields, f"[{at[0]}, {at[1]}]" if _AT in wanted else None)


def _is_plain(value: Any) -> bool:
    """A string whose text nothing else has: no number, constant, list or object is written so."""
    return isinstance(value, str) and not _LIKE_JSON.match(value) and mended(value) == value


def _match_batch(columns: Sequence[pl.Series], tolerance: int) -> pl.Series:
    output, expected = columns
    texts, which = encoded(expected)
    golds = _golds(texts)
    rows = pl.DataFrame({"source": output, "which": which, "known": golds["known"].gather(which)}).with_row_index("at")
    rows = rows.filter("known").select("at", "source", "which", valid=pl.col("source").str.contains(_FLAT))
    equal, flat = rows.clear(), rows.filter("valid")
    if tolerance >= 0:
        equal, flat = _as_written(flat, golds)
    told, doubtful = _compared(flat, golds, _read_flat, tolerance)
    told = pl.concat([told, equal.with_columns(reason=pl.lit(None, dtype=pl.String))])
    rest = pl.concat([rows.filter(~pl.col("valid")), doubtful.with_columns(valid=pl.lit(value=False))])
    if rest.height:
        rest = rest.with_columns(source=_span(rest["source"]))
        nothing = rest.filter(pl.col("source").is_null()).with_columns(reason=pl.lit(_NO_CALL))
        other, _ = _compared(rest.filter(pl.col("source").is_not_null()), golds, _read_any, tolerance)
        unsure = pl.when(pl.col("valid").not_()).then("source")
        other = other.filter(pl.col("valid") | unsure.str.json_path_match("$").is_not_null())
        told = pl.concat([frame.select("at", "reason") for frame in (told, nothing, other)])
    told = in_place(told.select("at", "reason", score=pl.col("reason").is_null()), len(output))
    return told.select(pl.struct("score", "reason", error=pl.lit(None, dtype=pl.String))).to_series()


def _as_written(frame: pl.DataFrame, golds: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Rows whose text, which matches ``_FLAT``, holds the wanted call as it is written and its fields nowhere else; the others.

    Only calls that begin with ``tool`` are looked for: the first ``"tool"`` before a colon is a key, for no key has escapes,
    and members follow it. A number at their end may go on in the text, but no field that counts is a number.
    """
    source, members, size = pl.col("source").cast(pl.Binary), pl.col("members"), pl.col("size")
    start = pl.col("source").str.find(f'"{_ALWAYS[0]}"', literal=True)  # in bytes
    frame = frame.with_columns(start=start, members=golds["members"].gather(frame["which"]))
    frame = frame.with_columns(call=source.bin.slice(pl.col("start")).cast(pl.String), size=members.str.len_bytes())
    there = pl.col("call").str.starts_with(members).fill_null(value=False)
    before, behind = source.bin.slice(0, pl.col("start")), source.bin.slice(pl.col("start") + size)
    again = (part.cast(pl.String).str.contains(_ANY_FIELD) for part in (before, behind))
    found = frame.filter(there).with_columns(again=pl.any_horizontal(again))
    equal, other = found.filter(~pl.col("again")), found.filter("again")
    kept = ("at", "source", "which", "valid")
    return equal.select(kept), pl.concat([frame.filter(~there).select(kept), other.select(kept)])


def _compared(
    frame: pl.DataFrame, golds: pl.DataFrame, read: _Read, tolerance: int
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Rows with the ``reason``, null where nothing differs; and rows that stay in doubt.

    One field after the other, each looked up only where all before it were equal: reading costs more than all else here.
    """
    kept, told, doubtful = frame.columns, [], [frame.clear()]
    for name in (*_FIELDS, _AT):
        if golds[name].null_count() == golds.height:
            continue
        frame = frame.with_columns(wanted=golds[name].gather(frame["which"]))
        asked = read(frame.filter(pl.col("wanted").is_not_null()), name)
        same, doubt = (pl.col("said").fill_null(_NULL) == pl.col("wanted")), pl.col("doubt")
        if name == _AT:
            x, y = _axes()
            asked = asked.hstack(golds.select("x", "y")[asked["which"]])
            asked = asked.with_columns(dx=x - pl.col("x"), dy=y - pl.col("y"))
            same = (pl.max_horizontal(pl.col("dx", "dy").abs()) <= tolerance).fill_null(value=False)
            doubt = doubt | (pl.col("said").is_not_null() & pl.col("dx").is_null())
        asked = asked.with_columns(same=same, doubt=doubt)
        doubtful.append(asked.filter("doubt").select(kept))
        asked = asked.filter(~pl.col("doubt"))
        told.append(asked.filter(~pl.col("same")).select(*kept, reason=_differs_expr(name)))
        frame = pl.concat([frame.filter(pl.col("wanted").is_null()).select(kept), asked.filter("same").select(kept)])
    told.append(frame.with_columns(reason=pl.lit(None, dtype=pl.String)))
    return pl.concat(told), pl.concat(doubtful)


def _differs_expr(name: str) -> pl.Expr:
    """``_differs`` of the fields that are ``wanted``."""
    before, wanted = f"{name} differs: expected ", pl.col("wanted")
    if name == _AT:
        return pl.concat_str(pl.lit(before), wanted)
    value = pl.when(wanted != _NULL).then(wanted.str.strip_prefix('"').str.strip_suffix('"'))
    return quoted_expr(value, before).fill_null(pl.lit(f"{before}none"))


def _span(output: pl.Series) -> pl.Series:
    """From the first brace to the last; null where there is none."""
    bare = pl.col("output").str.strip_chars(" \t\n\r`").str.strip_prefix("json").str.strip_chars_start(" \t\n\r")
    whole = bare.str.starts_with("{") & bare.str.ends_with("}")
    braced = pl.col("output").str.contains("{", literal=True) & pl.col("output").str.contains("}", literal=True)
    rest = pl.when(whole.not_() & braced).then("output").str.extract(r"(?s)\{.*\}", 0)
    return pl.DataFrame({"output": output}).select(pl.when(whole).then(bare).otherwise(rest)).to_series()
