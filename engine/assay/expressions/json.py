"""``json.loads`` as an expression: whether a text is JSON, and which keys its object has.

The engine's parser is stricter than CPython's: what it accepts CPython accepts, but its "no" is only a question (NaN, a lone
surrogate, ``1e999``, depth past 128, a null value). So a text that cannot be JSON by its first and last character is
refused at once, what the engine accepts is accepted, and only the rest is parsed by Python.

The engine is asked for something small, the first value or one of the keys: it writes out what it finds.
"""

import json
import re
import threading
from collections.abc import Sequence
from typing import Any

import polars as pl

from assay.errors import encodable
from assay.expressions.lane import Lane, rowwise, text
from assay.thresholds import THRESHOLDS

__all__ = [
    "CANDIDATE",
    "FLAT_OBJECT",
    "JSON_VALID",
    "LIKE_JSON",
    "MAX_DEPTH",
    "MAX_DIGITS",
    "NOT_JSON",
    "NO_OBJECT",
    "NO_STRING",
    "OBJECT_TEXT",
    "is_json",
    "keys_lane",
    "loads",
    "mended",
    "missing_keys",
    "missing_keys_expr",
    "nesting",
    "parse",
    "too_deep",
]

MAX_DEPTH = 500
"""Nesting past this is refused: CPython's own limit moves with the caller's stack, a verdict must not."""

MAX_DIGITS = 4300
"""CPython's default limit on the digits of an integer, whatever this process has set."""

_SPACE = r"[ \t\n\r]*"
_BEGINS = rf"\A{_SPACE}(?:[\[{{\x22]|(?:-?[0-9][0-9.eE+-]*|true|false|null|NaN|-?Infinity){_SPACE}\z)"
_ENDS = rf"[\]}}\x220-9.eE+lyN-]{_SPACE}\z"
# possessive, and to the end of the text where a string is not closed: no character is looked at twice
_STRING_OR_BRACKET = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)|[\[{]|[\]}]', re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
NO_STRING = r"(?:-?[0-9][0-9.eE+-]*|true|false|\[.*\]|\{.*\})"
"""What the engine's JSON writes of values that are no strings: a pattern for either engine, where ``.`` is any character."""
LIKE_JSON = rf"(?s)\A{NO_STRING}\z"
_STRING = r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"'
_ATOM = rf"(?:{_STRING}|-?(?:0|[1-9][0-9]{{0,17}})(?:\.[0-9]{{1,18}})?(?:[eE][+-]?[0-9]{{1,3}})?|true|false|null)"
_LIST = rf"\[{_SPACE}(?:{_ATOM}{_SPACE}(?:,{_SPACE}{_ATOM}{_SPACE})*)?\]"
_MEMBER = rf'"[^"\\\x00-\x1f]*"{_SPACE}:{_SPACE}(?:{_ATOM}|{_LIST}){_SPACE}'
FLAT_OBJECT = rf"\{{{_SPACE}(?:{_MEMBER}(?:,{_SPACE}{_MEMBER})*)?\}}"
"""An object that CPython reads, of values and lists of values, with no escapes in its keys. Not every such object."""

NOT_JSON = object()
"""What ``parse`` returns for text that is not JSON."""

NO_OBJECT = "the output is not a JSON object"


def _whole(digits: str) -> int:
    """Stand-in for ``int``: no verdict needs the value, only that CPython would have read it."""
    if len(digits) - digits.startswith("-") > MAX_DIGITS:
        raise ValueError("integer has too many digits")
    return 0


def _number(digits: str) -> int:
    _whole(digits)
    return int(digits)


_decoder = json.JSONDecoder(parse_int=_whole, parse_float=lambda _: 0.0, parse_constant=lambda _: 0.0)
_full_decoder = json.JSONDecoder(parse_int=_number)


def nesting(value: str) -> int:
    """Deepest nesting of brackets outside strings; where it passes ``MAX_DEPTH``, nothing more is looked at."""
    depth = deepest = 0
    for match in _STRING_OR_BRACKET.finditer(value):
        bracket = match.group()
        if bracket in "[{":
            depth += 1
            deepest = max(deepest, depth)
            if depth > MAX_DEPTH:
                break
        elif bracket in "]}":
            depth -= 1
    return deepest


def too_deep(value: str) -> bool:
    """Whether brackets outside strings nest past ``MAX_DEPTH``."""
    return value.count("[") + value.count("{") > MAX_DEPTH and nesting(value) > MAX_DEPTH


def parse(value: str) -> Any:
    """The JSON value, its numbers reduced to 0 (for verdicts that do not read them), or ``NOT_JSON``."""
    return _decoded(value, _decoder)


def loads(value: str) -> Any:
    """The JSON value, or ``NOT_JSON``; as ``json.loads``, with the limits of ``parse``."""
    return _decoded(value, _full_decoder)


def _decoded(value: str, decoder: json.JSONDecoder) -> Any:
    if too_deep(value):
        return NOT_JSON
    try:
        return decoder.decode(value)
    except ValueError:
        return NOT_JSON
    except RecursionError:
        return _decoded_on_fresh_stack(value, decoder)


def _decoded_on_fresh_stack(value: str, decoder: json.JSONDecoder) -> Any:
    """A caller deep in its own stack must get the same verdict: parse where the stack is empty."""
    found: list[Any] = [NOT_JSON]

    def decode() -> None:
        try:
            found[0] = decoder.decode(value)
        except (ValueError, RecursionError):
            return

    thread = threading.Thread(target=decode)
    thread.start()
    thread.join()
    return found[0]


def mended(value: str) -> str:
    """A JSON string as a column can hold it: a lone surrogate becomes U+FFFD."""
    if not value.isascii():
        try:
            value.encode()  # a tenth of the time of looking for one
        except UnicodeEncodeError:
            return _SURROGATE.sub("\ufffd", value)
    return value


def is_json(value: str) -> bool:
    """The definition: ``json.loads`` succeeds, with CPython's rules at any stack depth and any digit limit."""
    return parse(value) is not NOT_JSON


def missing_keys(value: str, keys: Sequence[str]) -> str:
    """The definition of "is a JSON object having every key"; a null value counts as present.

    Returns:
        ``""`` when it has, else the reason.
    """
    found = parse(value)
    if not isinstance(found, dict):
        return NO_OBJECT
    missing = [key for key in keys if key not in found]
    return encodable(f"missing keys: {', '.join(missing)}") if missing else ""


def _candidate_expr(_: pl.Schema) -> pl.Expr:
    # two anchored patterns, for one would read everything between
    return pl.when(text().str.contains(_BEGINS) & text().str.contains(_ENDS)).then(text())


CANDIDATE = Lane("json-candidate", _candidate_expr)
"""The text where it begins and ends as JSON can, else null."""


def _object_expr(_: pl.Schema) -> pl.Expr:
    padded = pl.when(CANDIDATE.col < "!").then(CANDIDATE.col).str.strip_chars_start(" \t\n\r")
    first = (_is_open_brace(CANDIDATE.col), _is_open_brace(padded))
    return pl.when(pl.any_horizontal(*first)).then(CANDIDATE.col)


def _is_open_brace(values: pl.Expr) -> pl.Expr:
    return (values >= "{") & (values < "|")  # a tenth of the time of looking for it


OBJECT_TEXT = Lane("json-object", _object_expr, after=(CANDIDATE,))
"""The text where it could be a JSON object, else null."""


def _read(values: pl.Expr, path: str) -> pl.Expr:
    """Whether the engine reads the text as JSON, and a value other than null at a path."""
    return values.str.json_path_match(path).is_not_null()


def _first_of_the_rest(known: pl.Expr) -> pl.Expr:
    return known | _read(pl.when(known.not_()).then(CANDIDATE.col), "$.*")


# NOTE: columns of their own, for an expression that is read twice may be evaluated twice
_FIRST_VALUE = Lane("json-first", lambda _: _read(CANDIDATE.col, "$.*"), after=(CANDIDATE,), spared=_first_of_the_rest)
"""Whether the engine reads the text as an object or a list, and a first value in it."""


def _accepted_expr(_: pl.Schema) -> pl.Expr:
    rest = pl.when(_FIRST_VALUE.col.not_()).then(CANDIDATE.col)
    return _FIRST_VALUE.col | _read(rest, "$")


_ACCEPTED = Lane("json-accepted", _accepted_expr, after=(CANDIDATE, _FIRST_VALUE))
"""Whether the engine reads the text, and its value is not null."""


def _valid_expr(_: pl.Schema) -> pl.Expr:
    asked = rowwise(pl.when(_ACCEPTED.col.not_()).then(CANDIDATE.col), is_json, pl.Boolean)
    return pl.when(text().is_not_null()).then(pl.coalesce(asked, _ACCEPTED.col))


JSON_VALID = Lane("json-valid", _valid_expr, after=(CANDIDATE, _ACCEPTED))
"""Whether the text is JSON."""


def keys_lane(keys: Sequence[str]) -> Lane:
    """``missing_keys`` of the completion as a lane: String, null where nothing is missing."""
    keys = tuple(keys)
    name = f"json-keys:{keys!r}"
    there = Lane(
        f"{name}:there", lambda _: _all_there(keys, OBJECT_TEXT.col), after=(OBJECT_TEXT,), spares=_FIRST_VALUE.name
    )
    return Lane(name, lambda _: _missing_expr(keys, OBJECT_TEXT.col, there.col), after=(OBJECT_TEXT, there))


def missing_keys_expr(keys: Sequence[str], objects: pl.Expr) -> pl.Expr:
    """``missing_keys`` as an expression: String, null where nothing is missing.

    Args:
        keys: The keys to look for.
        objects: Texts that could be an object, null for the others.
    """
    return _missing_expr(keys, objects, _all_there(keys, objects))


def _all_there(keys: Sequence[str], objects: pl.Expr) -> pl.Expr:
    """Whether the engine finds all the keys, the last with a value other than null: false where they are many, or no plain words."""
    if not 0 < len(keys) <= THRESHOLDS.engine_keys or not all(_PLAIN_KEY.fullmatch(key) for key in keys):
        return pl.lit(value=False)
    if len(keys) == 1:
        return _read(objects, f"$.{keys[0]}")
    # a filter is asked of an object itself, not of what is in it
    return _read(objects, f"$[?({' && '.join(f'@.{key}' for key in keys)})].{keys[-1]}")


def _missing_expr(keys: Sequence[str], objects: pl.Expr, there: pl.Expr) -> pl.Expr:
    """What is missing, where the engine does not find everything."""
    asked = pl.when(there.not_()).then(objects)
    found = rowwise(asked, lambda value: missing_keys(value, keys) or None, pl.String)
    return pl.when(objects.is_null()).then(pl.lit(NO_OBJECT)).otherwise(found)
