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
from assay.lanes.fncolumns import quoted_expr
from assay.lanes.jsontext import FLAT_OBJECT, LIKE_JSON, NOT_JSON, loads, mended

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
_LIKE_JSON = re.compile(r"-?[0-9][0-9.eE+-]*\Z|(?:true|false)\Z|\[.*\]\Z|\{.*\}\Z", re.DOTALL)
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
    return pl.map_batches([output, expected], run, return_dtype=_ANSWER, is_elementwise=True)


_ANSWER = pl.Struct({"score": pl.Boolean, "reason": pl.String, "error": pl.String})
_FIELDS = (*_ALWAYS, *_WHERE_WANTED)
_GOLD: dict[str, Any] = {
    "gold": pl.String,
    "known": pl.Boolean,
    "x": pl.Int64,
    "y": pl.Int64,
    **dict.fromkeys(_FIELDS, pl.String),
    **{f"asked/{name}": pl.Boolean for name in _FIELDS},
}
"""Of a wanted call, for each field ``f``: ``f``, its text, and ``asked/f``, whether it counts. ``known``: columns are exact."""

_NULL = "null"
_Read = Callable[[pl.DataFrame, str, pl.Expr], pl.DataFrame]
"""Adds ``said``, a field of the texts as JSON text (of a string: between quotes), and ``doubt``, where that may be wrong."""


def _read_flat(frame: pl.DataFrame, name: str, asked: pl.Expr) -> pl.DataFrame:
    """A field of texts that match ``_FLAT``.

    No key there has escapes, so a field that is there once is what follows its name in quotes. That name twice (the last one
    counts, or one is a value) and a value with escapes are in doubt.
    """
    parts = pl.when(asked).then("source").str.splitn(f'"{name}"', 3).struct.rename_fields(["before", "rest", "more"])
    frame = frame.with_columns(parts.alias("parts")).with_columns(pl.col("parts").struct.unnest())
    frame = frame.with_columns(said=pl.col("rest").str.extract(_TOKEN, 1))
    odd = pl.col("rest").is_not_null() & (pl.col("said").is_null() | pl.col("more").is_not_null())
    return frame.with_columns(doubt=odd).drop("before", "more", "parts")


def _read_any(frame: pl.DataFrame, name: str, asked: pl.Expr) -> pl.DataFrame:
    """A field by the engine's JSON; nothing found may mean no such field, or no JSON that the engine accepts."""
    source = pl.when(asked).then("source").str
    said, doubt = source.json_path_match(f"$.{name}"), pl.lit(value=False)
    if name == _AT:  # a string that looks like a list has no first element
        doubt = said.is_not_null() & source.json_path_match(f"$.{name}[0]").is_null()
    else:
        said = pl.concat_str(pl.lit('"'), said, pl.lit('"'))
    return frame.with_columns(said=said, doubt=doubt).with_columns(valid=pl.col("valid") | pl.col("said").is_not_null())


def _golds(texts: pl.Series) -> pl.DataFrame:
    """Wanted calls as columns compare them, ``_GOLD``, and of each field ``f`` as ``json/f`` what ``_Read`` has of its equals."""
    frame = pl.DataFrame({"gold": texts, "source": texts}).with_columns(known=pl.col("source").str.contains(_FLAT))
    for name in (*_FIELDS, _AT):
        frame = _read_flat(frame, name, pl.col("known"))
        said = pl.col("said")
        plain = said.is_null() | (said == _NULL)
        if name == _AT:
            pair = said.str.extract_groups(_PAIR)
            frame = frame.with_columns(
                pair.struct.field(str(at)).cast(pl.Int64).alias(axis) for at, axis in enumerate(("x", "y"), 1)
            )
            plain = said.is_null() | pl.col("x").is_not_null()
        else:
            value = said.str.extract(r'(?s)\A"(.*)"\z', 1)
            there = pl.col("rest").is_not_null() | pl.lit(name in _ALWAYS)
            frame = frame.with_columns(value.alias(name), there.alias(f"asked/{name}"))
            plain = plain | pl.col(name).str.contains(LIKE_JSON).not_()
        exact = pl.col("known") & pl.col("doubt").not_() & plain.fill_null(value=False)
        frame = frame.with_columns(known=exact)
    rest = frame.filter(~pl.col("known"))["gold"].to_list()
    read = pl.DataFrame([_gold(text) for text in rest], schema=_GOLD, orient="row")
    frame = pl.concat([frame.filter("known").select(*_GOLD), read])
    return frame.with_columns(
        pl.concat_str(pl.lit('"'), name, pl.lit('"')).fill_null(_NULL).alias(f"json/{name}") for name in _FIELDS
    )


def _gold(text: str) -> tuple[Any, ...]:
    """A wanted call as columns compare it, a row of ``_GOLD``."""
    unknown = (text, False, *[None] * (len(_GOLD) - 2))
    wanted = tool_call(text)
    if wanted is None:
        return unknown
    values = [wanted.get(name) for name in _FIELDS]
    asked = [name in _ALWAYS or name in wanted for name in _FIELDS]
    if not all(value is None or _is_plain(value) for value in values):
        return unknown
    at = wanted.get(_AT, (None, None))
    if _AT in wanted and not (_is_pair(at) and all(type(axis) is int and abs(axis) < _FARTHEST for axis in at)):
        return unknown
    return (text, True, *at, *values, *asked)


def _is_plain(value: Any) -> bool:
    """A string whose text nothing else has: no number, constant, list or object is written so."""
    return isinstance(value, str) and not _LIKE_JSON.match(value) and mended(value) == value


def _match_batch(columns: Sequence[pl.Series], tolerance: int) -> pl.Series:
    output, expected = columns
    frame = pl.DataFrame({"source": output, "gold": expected}).with_row_index("at")
    golds = _golds(expected.unique(maintain_order=True).drop_nulls())
    frame = frame.join(golds, on="gold", how="left", maintain_order="left").with_columns(
        flat=pl.col("source").str.contains(_FLAT), valid=pl.lit(value=False), off=pl.lit(None, dtype=pl.String)
    )
    flat = _compared(frame.filter("flat"), _read_flat, tolerance)
    again = flat.filter(pl.col("doubted"))["at"]
    rest = frame.filter(~pl.col("flat") | pl.col("at").is_in(again.implode()))
    parts = [_told(flat.filter(~pl.col("doubted")), pl.col("known"))]
    if rest.height:
        rest = _compared(rest.with_columns(source=_span(rest["source"])), _read_any, tolerance)
        has = pl.col("source").is_not_null()
        doubt = pl.when(pl.col("known") & has & pl.col("valid").not_()).then("source")
        accepted = has.not_() | pl.col("valid") | doubt.str.json_path_match("$").is_not_null()
        parts.append(_told(rest, pl.col("known") & accepted & pl.col("doubted").not_()))
    found = pl.concat(parts)
    return (found if len(parts) == 1 else found.sort("at"))["answer"]


def _compared(frame: pl.DataFrame, read: _Read, tolerance: int) -> pl.DataFrame:
    """With the first field that differs as ``off``, and ``doubted``.

    One field after the other, each looked up only where all before it were equal: reading costs more than all else here.
    """
    frame = frame.with_columns(open=pl.col("known") & pl.col("source").is_not_null(), doubted=pl.lit(value=False))
    for name in _FIELDS:
        asked = pl.col("open") & pl.col(f"asked/{name}")
        frame = read(frame, name, asked)
        differs = asked & (pl.col("said").fill_null(_NULL) != pl.col(f"json/{name}"))
        frame = _settled(frame, name, differs)
    asked = pl.col("open") & pl.col("x").is_not_null()
    frame = read(frame, _AT, asked).with_columns(pair=pl.col("said").str.extract_groups(_PAIR))
    pair = pl.col("pair").struct
    axes = [pair.field(str(at)).cast(pl.Int64) - pl.col(axis) for at, axis in enumerate(("x", "y"), 1)]
    near = pl.all_horizontal(axis.abs() <= tolerance for axis in axes).fill_null(value=False)
    other = asked & pl.col("said").is_not_null() & pair.field("1").is_null()
    frame = frame.with_columns(doubt=pl.col("doubt") | other)
    return _settled(frame, _AT, asked & near.not_())


def _settled(frame: pl.DataFrame, name: str, differs: pl.Expr) -> pl.DataFrame:
    doubt = pl.col("doubt").fill_null(value=False)
    return frame.with_columns(
        open=pl.col("open") & (differs | doubt).not_(),
        doubted=pl.col("doubted") | doubt,
        off=pl.when(differs).then(pl.lit(name)).otherwise("off"),
    )


def _told(frame: pl.DataFrame, exact: pl.Expr) -> pl.DataFrame:
    """Verdicts as ``answer``, without a score where columns are not exact."""
    wanted = pl.coalesce(*(pl.when(pl.col("off") == name).then(name) for name in _FIELDS))
    wanted = quoted_expr(wanted).fill_null(pl.lit("none"))
    places = (pl.when(pl.col("off") == _AT).then(axis) for axis in ("x", "y"))
    wanted = pl.coalesce(pl.format("[{}, {}]", *places), wanted)
    off = pl.concat_str("off", pl.lit(" differs: expected "), pl.when(pl.col("off").is_not_null()).then(wanted))
    why = pl.when(pl.col("source").is_not_null()).then(off).otherwise(pl.lit(_NO_CALL))
    answer = pl.struct(score=pl.when(exact).then(why.is_null()), reason=why, error=pl.lit(None, dtype=pl.String))
    return frame.select("at", answer=answer.cast(_ANSWER))


def _span(output: pl.Series) -> pl.Series:
    """From the first brace to the last; null where there is none."""
    bare = pl.col("output").str.strip_chars(" \t\n\r`").str.strip_prefix("json").str.strip_chars_start(" \t\n\r")
    whole = bare.str.starts_with("{") & bare.str.ends_with("}")
    braced = pl.col("output").str.contains("{", literal=True) & pl.col("output").str.contains("}", literal=True)
    rest = pl.when(whole.not_() & braced).then("output").str.extract(r"(?s)\{.*\}", 0)
    return pl.DataFrame({"output": output}).select(pl.when(whole).then(bare).otherwise(rest)).to_series()
