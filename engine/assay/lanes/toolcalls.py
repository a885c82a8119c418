"""Whether a tool call in the output matches the wanted one: the definition, and the same for a batch of rows.

A call is the JSON object from the first ``{`` of a text to its last ``}``; code fences and blanks around it hold no brace, so
they need no stripping. ``tool`` and ``action`` must be equal (absent on both sides is equal), ``ref`` and ``text`` where the
wanted call has them, and each axis of a ``coordinate`` within a tolerance. Equal is Python's ``==``.

For a batch, each distinct wanted call is read once. The engine's JSON parser answers for outputs it accepts where the wanted
fields are null or strings that are no JSON themselves: its text of a field then equals the string exactly when the field does.
Everything else goes to the definition.
"""

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, TypeGuard

import polars as pl

from assay.errors import quoted
from assay.lanes.fncolumns import quoted_expr
from assay.lanes.jsontext import NOT_JSON, loads, mended

__all__ = ["TOLERANCE", "tool_call", "tool_calls_differ", "tool_calls_match_expr"]

TOLERANCE = "coordinate_tolerance"
_DEFAULT_TOLERANCE = 25
_ALWAYS, _WHERE_WANTED, _AT = ("tool", "action"), ("ref", "text"), "coordinate"
_NO_CALL = "the output has no JSON object"
_NO_GOLD = "expected is not a JSON object"
_BAD_COORDINATE = "expected.coordinate is not a list of two numbers"
_PAIR = r"^\[(-?[0-9]{1,9}),(-?[0-9]{1,9})\]$"
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
    texts = expected.unique(maintain_order=True).drop_nulls().to_list()
    golds = pl.DataFrame([_gold(text) for text in texts], schema=_GOLD, orient="row")
    frame = pl.DataFrame({"span": _span(output), "gold": expected})
    frame = frame.join(golds, on="gold", how="left", maintain_order="left").drop("gold")
    has = pl.col("span").is_not_null()
    # one field after the other, each looked up only where all before it were equal: a parse costs more than all else here
    frame = frame.with_columns(open=pl.col("known") & has, valid=pl.lit(value=False), off=pl.lit(None, dtype=pl.String))
    for name in _FIELDS:
        asked = pl.col("open") & pl.col(f"asked/{name}")
        frame = frame.with_columns(said=pl.when(asked).then("span").str.json_path_match(f"$.{name}"))
        differs = asked & pl.col("said").ne_missing(pl.col(name))
        frame = frame.with_columns(
            valid=pl.col("valid") | pl.col("said").is_not_null(),
            open=pl.col("open") & differs.not_(),
            off=pl.when(differs).then(pl.lit(name)).otherwise("off"),
        )
    frame = _compare_places(frame, tolerance)
    # nothing found may mean no such fields, or no JSON that the engine accepts
    doubt = pl.when(pl.col("known") & has & pl.col("valid").not_()).then("span")
    exact = pl.col("known") & (has.not_() | pl.col("valid") | doubt.str.json_path_match("$").is_not_null())
    wanted = pl.coalesce(*(pl.when(pl.col("off") == name).then(name) for name in _FIELDS))
    wanted = quoted_expr(wanted).fill_null(pl.lit("none"))
    wanted = pl.when(pl.col("off") == _AT).then(pl.format("[{}, {}]", "x", "y")).otherwise(wanted)
    off = pl.concat_str("off", pl.lit(" differs: expected "), pl.when(pl.col("off").is_not_null()).then(wanted))
    why = pl.when(has).then(off).otherwise(pl.lit(_NO_CALL))
    return frame.select(
        pl.struct(score=pl.when(exact).then(why.is_null()), reason=why, error=pl.lit(None, dtype=pl.String)).cast(
            _ANSWER
        )
    ).to_series()


def _compare_places(frame: pl.DataFrame, tolerance: int) -> pl.DataFrame:
    """The coordinate, where it is asked for and all before it was equal; unusual ones are not known here."""
    asked = pl.col("open") & pl.col("x").is_not_null()
    frame = frame.with_columns(said=pl.when(asked).then("span").str.json_path_match(f"$.{_AT}"))
    pair = pl.col("said").str.extract_groups(_PAIR)
    axes = [pair.struct.field(str(at + 1)).cast(pl.Int64) - pl.col(name) for at, name in enumerate(("x", "y"))]
    near = pl.all_horizontal(axis.abs() <= tolerance for axis in axes).fill_null(value=False)
    odd = asked & pl.col("said").is_not_null() & pair.struct.field("1").is_null()
    return frame.with_columns(
        known=pl.col("known") & odd.not_(),
        valid=pl.col("valid") | pl.col("said").is_not_null(),
        off=pl.when(asked & near.not_()).then(pl.lit(_AT)).otherwise("off"),
    )


def _span(output: pl.Series) -> pl.Series:
    """From the first brace to the last; null where there is none."""
    bare = pl.col("output").str.strip_chars(" \t\n\r`").str.strip_prefix("json").str.strip_chars_start(" \t\n\r")
    whole = bare.str.starts_with("{") & bare.str.ends_with("}")
    braced = pl.col("output").str.contains("{", literal=True) & pl.col("output").str.contains("}", literal=True)
    rest = pl.when(whole.not_() & braced).then("output").str.extract(r"(?s)\{.*\}", 0)
    return pl.DataFrame({"output": output}).select(pl.when(whole).then(bare).otherwise(rest)).to_series()
