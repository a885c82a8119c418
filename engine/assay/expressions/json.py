"""``json.loads`` as an expression: whether a text is JSON, and which keys its object has.

Polars' parser is stricter than CPython's: CPython accepts everything that Polars accepts, but not vice versa (NaN, a lone
surrogate, ``1e999``, depth past 128, a null value). So a text that cannot be JSON by its first and last characters is rejected
at once, a text that Polars accepts is accepted, and only the rest is parsed by Python.

The JSON path asks for something small, the first value or one key, because Polars serialises what it finds.
"""

import json
import re
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from json.encoder import c_make_encoder, encode_basestring  # type: ignore[attr-defined]
from typing import Any

import polars as pl
from pydantic_core import from_json

from assay.errors import encodable
from assay.expressions.shared_columns import SharedColumn, among, is_small, on_rows, rowwise, text
from assay.expressions.text import begins_with
from assay.thresholds import THRESHOLDS

MAX_DEPTH = 500
"""Maximum nesting: CPython's own limit depends on the caller's stack, and a verdict must not."""

MAX_DIGITS = 4300
"""CPython's default limit on the digits of an integer, regardless of the setting of this process."""

_BLANKS = " \t\n\r"
_SPACE = rf"[{_BLANKS}]*"
_BEGINS = rf"\A{_SPACE}(?:[\[{{\x22]|(?:-?[0-9][0-9.eE+-]*|true|false|null|NaN|-?Infinity){_SPACE}\z)"
_FIRST = ' \t\n\r[{"-0123456789'
_FIRST_WORDS = ("true", "false", "null", "NaN", "Infinity")
BEGINNINGS = ("{", "[", *_FIRST, *_FIRST_WORDS)
"""A text that begins otherwise is not JSON: a failing parser takes ten times as long to find out."""
_LAST_CHARACTER = chr(0x10FFFF)
_ENDS = rf"[\]}}\x220-9.eE+lyN-]{_SPACE}\z"
# possessive, and up to the end of the text for an unclosed string: no character is read twice
_STRING_OR_BRACKET = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)|[\[{]|[\]}]', re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")
PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
"""Matches the keys that need no quotes in a JSON path."""
STRING = r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"'
"""Matches a string that CPython accepts, with its quotes."""
_ATOM = rf"(?:{STRING}|-?(?:0|[1-9][0-9]{{0,17}})(?:\.[0-9]{{1,18}})?(?:[eE][+-]?[0-9]{{1,3}})?|true|false|null)"
_LIST = rf"\[{_SPACE}(?:{_ATOM}{_SPACE}(?:,{_SPACE}{_ATOM}{_SPACE})*)?\]"
_MEMBER = rf'"[^"\\\x00-\x1f]*"{_SPACE}:{_SPACE}(?:{_ATOM}|{_LIST}){_SPACE}'
FLAT_OBJECT = rf"\{{{_SPACE}(?:{_MEMBER}(?:,{_SPACE}{_MEMBER})*)?\}}"
"""Matches objects that CPython accepts: scalars and lists of scalars, without escapes in keys. It does not match all of them."""

NOT_JSON = object()
"""Returned by ``loads`` for text that is not JSON."""

NO_OBJECT = "the output is not a JSON object"


def _number(digits: str) -> int:
    """Replace ``int``, which has the limit of this process; ``from_json`` has that of ``MAX_DIGITS``."""
    size: int = from_json(digits.removeprefix("-"))
    return -size if digits.startswith("-") else size


_decoder, _quick_decoder = json.JSONDecoder(parse_int=_number), json.JSONDecoder()
# what ``JSONEncoder.encode`` builds anew for each value, which takes longer than to write a small one
_pieces = c_make_encoder(None, str, encode_basestring, None, ": ", ", ", False, False, True)


def dumps(value: Any) -> str:
    """Write JSON as ``json.dumps(value, ensure_ascii=False, default=str)``, small values in half its time."""
    return encode_basestring(value) if type(value) is str else "".join(_pieces(value, 0))


def nesting(value: str) -> int:
    """Return the depth of nested brackets outside strings; stop at the first bracket past ``MAX_DEPTH``."""
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
    """Return whether brackets outside strings nest past ``MAX_DEPTH``."""
    return value.count("[") + value.count("{") > MAX_DEPTH and nesting(value) > MAX_DEPTH


def loads(value: str) -> Any:
    """Parse JSON as ``json.loads`` with the limits of ``MAX_DEPTH`` and ``MAX_DIGITS``; return ``NOT_JSON`` if it is not JSON."""
    parsed = quick_loads(value)
    return slow_loads(value) if parsed is NOT_JSON else parsed


def quick_loads(value: str | bytes) -> Any:
    """Return ``loads`` of a text, or of its UTF-8, in half its time.

    ``NOT_JSON`` also for what may be JSON: if it has a lone surrogate, or is nested past 200.
    """
    try:
        return from_json(value, cache_strings="keys")  # long values do not come again
    except (ValueError, TypeError):
        return NOT_JSON


def slow_loads(value: str) -> Any:
    """Return ``loads`` of any text."""
    if too_deep(value):
        return NOT_JSON
    try:
        return _decoder.decode(value)
    except ValueError:
        return NOT_JSON
    except RecursionError:
        return _on_fresh_stack(partial(_decoder.decode, value), NOT_JSON)


def _on_fresh_stack(decoded: Callable[[], Any], otherwise: Any) -> Any:
    """Decode in a new thread, so that the verdict does not depend on the depth of the caller's stack."""
    result: list[Any] = [otherwise]

    def decode() -> None:
        try:
            result[0] = decoded()
        except (ValueError, RecursionError):
            return

    thread = threading.Thread(target=decode)
    thread.start()
    thread.join()
    return result[0]


MAX_STARTS = 100
"""Maximum brackets of a text at which JSON is looked for."""
_BEGIN = re.compile(rf"\{{{_SPACE}[\x22}}]|\[{_SPACE}[\[{{\x22\]0-9tfnNI-]")
"""Matches where an object or a list may begin: a failing parser takes ten times as long."""


def values_within(text: str) -> Iterator[Any]:
    """Yield the JSON objects and lists within a text, from the left, by the limits of ``loads``."""
    return (value for value, _ in placed_within(text))


def placed_within(text: str) -> Iterator[tuple[Any, int]]:
    """Yield them, each with the place where it begins."""
    at, deep = 0, text.count("[") + text.count("{") > MAX_DEPTH
    object_at, list_at = text.find("{"), text.find("[")  # five times as fast as a search for either
    for _ in range(MAX_STARTS):
        object_at = text.find("{", at) if 0 <= object_at < at else object_at
        list_at = text.find("[", at) if 0 <= list_at < at else list_at
        at = max(object_at, list_at) if min(object_at, list_at) < 0 else min(object_at, list_at)
        if at < 0:
            return
        possible = _BEGIN.match(text, at) and not (deep and _too_deep_from(text, at))
        start = at
        value, at = _value_from(text, at) if possible else (NOT_JSON, at + 1)
        if value is not NOT_JSON:
            yield value, start


def _value_from(text: str, start: int) -> tuple[Any, int]:
    """Return the value that begins with a bracket and where it ends; or ``NOT_JSON``, and where to search on."""
    # ``int`` is ten times as fast, where the limit of this process is ours
    decoder = _quick_decoder if sys.get_int_max_str_digits() == MAX_DIGITS else _decoder
    decode = partial(decoder.raw_decode, text, start)
    nothing = NOT_JSON, start + 1
    try:
        return decode()
    except ValueError:
        return nothing
    except RecursionError:
        decoded: tuple[Any, int] = _on_fresh_stack(decode, nothing)
        return decoded


def _too_deep_from(text: str, start: int) -> bool:
    """Return whether the value that begins with a bracket nests past ``MAX_DEPTH``."""
    depth = 0
    for match in _STRING_OR_BRACKET.finditer(text, start):
        bracket = match.group()
        depth += bracket in "[{"
        depth -= bracket in "]}"
        if not 0 < depth <= MAX_DEPTH:
            return depth > MAX_DEPTH
    return False


def mended(value: str) -> str:
    """Replace lone surrogates in a JSON string, which a column cannot hold, by U+FFFD."""
    if not value.isascii():
        try:
            value.encode()  # ten times faster than searching for a surrogate
        except UnicodeEncodeError:
            return _SURROGATE.sub("\ufffd", value)
    return value


def is_json(value: str) -> bool:
    """Return whether ``json.loads`` succeeds, by CPython's rules, at any stack depth and any digit limit."""
    return loads(value) is not NOT_JSON


def missing_keys(value: str, keys: Sequence[str]) -> str:
    """Check that a text is a JSON object that has every key; a null value counts as present."""
    parsed = loads(value)
    if not isinstance(parsed, dict):
        return NO_OBJECT
    missing = [key for key in keys if key not in parsed]
    return encodable(f"missing keys: {', '.join(missing)}") if missing else ""


def candidates(values: pl.Series) -> pl.Series:
    """Return the texts that begin and end like JSON, and null for the others: none of these is JSON."""
    if is_small(values):  # a few texts are not worth a query; the parsers reject what begins like JSON and is none
        kept = [value if value and value.startswith(BEGINNINGS) else None for value in values.to_list()]
        return pl.Series(values.name, kept, dtype=pl.String)
    texts = pl.col(values.name)
    words = (texts.is_between(pl.lit(word), pl.lit(word + _LAST_CHARACTER)) for word in _FIRST_WORDS)
    possible = pl.any_horizontal(begins_with(texts, _FIRST), *words)
    begins = on_rows(texts, possible, _begin_and_end, pl.Boolean, otherwise=False)
    return values.to_frame().select_seq(pl.when(begins).then(texts)).to_series()


def _begin_and_end(texts: pl.Series) -> pl.Series:
    # two anchored patterns, because a single one would read everything in between
    ends = texts.str.contains(_ENDS)
    return among(ends, ends, texts, lambda ending: ending.str.contains(_BEGINS))


CANDIDATE = SharedColumn(
    "json-candidate", lambda _: text().map_batches(candidates, return_dtype=pl.String, is_elementwise=True)
)
"""The text if it begins and ends like JSON, else null."""


def _object_expr(_: pl.Schema) -> pl.Expr:
    padded = pl.when(CANDIDATE.col < "!").then(CANDIDATE.col).str.strip_chars_start(" \t\n\r")
    return pl.when(begins_with(CANDIDATE.col, "{") | begins_with(padded, "{")).then(CANDIDATE.col)


OBJECT_TEXT = SharedColumn("json-object", _object_expr, after=(CANDIDATE,))
"""The text if it could be a JSON object, else null."""


def _read(values: pl.Expr, path: str) -> pl.Expr:
    """Return whether Polars parses the text as JSON and finds a value other than null at a path."""
    return values.str.json_path_match(path).is_not_null()


def _unless(known: pl.Expr) -> pl.Expr:
    return pl.when(known.not_()).then(CANDIDATE.col)


# NOTE: separate columns, because an expression that is used twice may be evaluated twice
_FIRST_VALUE = SharedColumn(
    "json-first",
    lambda _: _read(CANDIDATE.col, "$.*"),
    after=(CANDIDATE,),
    build_known=lambda known: known | _read(_unless(known), "$.*"),
)
"""Whether Polars parses the text as an object or a list with a first value other than null."""


_ACCEPTED = SharedColumn(
    "json-accepted",
    lambda _: _FIRST_VALUE.col | _read(_unless(_FIRST_VALUE.col), "$"),
    after=(CANDIDATE, _FIRST_VALUE),
)
"""Whether Polars parses the text, and its value is not null."""


def _valid_expr(_: pl.Schema) -> pl.Expr:
    by_python = rowwise(_unless(_ACCEPTED.col), is_json, pl.Boolean)
    return pl.when(text().is_not_null()).then(pl.coalesce(by_python, _ACCEPTED.col))


JSON_VALID = SharedColumn("json-valid", _valid_expr, after=(CANDIDATE, _ACCEPTED))
"""Whether the text is JSON."""


def keys_lane(keys: Sequence[str]) -> SharedColumn:
    """Return ``missing_keys`` of the completion as a lane: String, null where no key is missing."""
    keys = tuple(keys)
    name = f"json-keys:{keys!r}"
    present = SharedColumn(
        f"{name}:present",
        lambda _: _all_present(keys, OBJECT_TEXT.col),
        after=(OBJECT_TEXT,),
        implies=_FIRST_VALUE.name,
    )
    return SharedColumn(name, lambda _: _missing_expr(keys, OBJECT_TEXT.col, present.col), after=(OBJECT_TEXT, present))


def missing_keys_expr(keys: Sequence[str], objects: pl.Expr) -> pl.Expr:
    """Return ``missing_keys`` as an expression: String, null where no key is missing."""
    return _missing_expr(keys, objects, _all_present(keys, objects))


def _all_present(keys: Sequence[str], objects: pl.Expr) -> pl.Expr:
    """Return whether Polars finds all keys, the last with a value other than null; false for many keys or unusual names."""
    if not 0 < len(keys) <= THRESHOLDS.engine_keys or not all(PLAIN_KEY.fullmatch(key) for key in keys):
        return pl.lit(value=False)
    if len(keys) == 1:
        return _read(objects, f"$.{keys[0]}")
    # the filter applies to the object itself, not to its values
    return _read(objects, f"$[?({' && '.join(f'@.{key}' for key in keys)})].{keys[-1]}")


def _missing_expr(keys: Sequence[str], objects: pl.Expr, present: pl.Expr) -> pl.Expr:
    undecided = pl.when(present.not_()).then(objects)
    reason = rowwise(undecided, lambda value: missing_keys(value, keys) or None, pl.String)
    return pl.when(objects.is_null()).then(pl.lit(NO_OBJECT)).otherwise(reason)
