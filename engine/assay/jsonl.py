"""JSON lines as a lazy frame: the engine's reader for files it provably reads as Python does, Python for the rest.

The engine takes the first of duplicate keys, a lone surrogate for NUL, ``"anyOf": "a"`` for ``["a"]`` where another line has a
list, and a list for its JSON text where another line has a string; it refuses NaN and a BOM. One pass over the lines looks for
what any of this needs; a file that has it is read by ``json.loads``, line by line.
"""

import glob
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
from polars.exceptions import PolarsError

from assay.errors import InputError
from assay.rows import STRUCTURED, from_rows

__all__ = ["scan_jsonl"]

_VALUE = r'"\s*:\s*'
_STRING = r'"(?:[^"\\]|\\.)*"'
_STARTS = (  # the first character of a value of each type, null aside
    (pl.String, r'"'),
    (pl.List, r"\["),
    (pl.Struct, r"\{"),
    (pl.Boolean, "tf"),
    (pl.Null, ""),
)
_NUMBER = r"0-9-"
_STRUCTURE = (
    rf'"(?:anyOf|any_of|mustMention|must_mention|mustNotMention|must_not_mention|required){_VALUE}[^\[n\s]',
    rf'"(?:anyOf|any_of|required){_VALUE}\[\s*(?:{_STRING}\s*,\s*)*[^"\]\s]',
    rf'"(?:text|message|role|content){_VALUE}[^"n\s]',
    rf'"(?:expectations|properties){_VALUE}[^\[{{n\s]',
    rf'"expected_output_schema{_VALUE}\{{.*:\s*null',
)
"""Values inside messages, metadata and schemas whose type is not the one that checks read."""

_READABLE = (pl.String, pl.Struct, pl.Null)
_NO_OBJECT = r"^\s*[^{\s]"
_HIGH, _LOW = r"\\u[dD][89abAB][0-9a-fA-F]{2}", r"\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_ESCAPED_KEY = r'\\u[0-9a-fA-F]{4}(?:[^"\\]|\\.)*"\s*:'


def scan_jsonl(path: Path) -> pl.LazyFrame:
    """One file of JSON objects, one a line.

    Raises:
        InputError: A line is not a JSON object; the message names file and line.
    """
    if path.stat().st_size == 0:
        raise InputError(f"{path}: the file is empty.")
    try:
        # every line is looked at for its type: a field may appear for the first time in the last one
        frame = pl.scan_ndjson(glob.escape(str(path)), infer_schema_length=None)
        exact = _needs_python(path, frame.collect_schema())
        if not exact:  # a type that inference settled on may still refuse a value: every one of them is parsed once
            frame.select(pl.all().null_count()).collect(engine="streaming")
    except PolarsError:
        exact = True
    return from_rows(_lines(path)).lazy() if exact else frame


def _needs_python(path: Path, schema: pl.Schema) -> bool:
    line = pl.col("line")
    if any(name in STRUCTURED and not isinstance(dtype, _READABLE) for name, dtype in schema.items()):
        return True
    tests = [line.str.contains(pattern) for pattern in (*_STRUCTURE, _ESCAPED_KEY, _NO_OBJECT)]
    # surrogates come in pairs, or else
    escaped = pl.when(line.str.contains(_HIGH) | line.str.contains(_LOW)).then(line)
    pairs = escaped.str.count_matches(_HIGH + _LOW)
    tests.append((escaped.str.count_matches(_HIGH) != pairs) | (escaped.str.count_matches(_LOW) != pairs))
    by_start: dict[str, list[str]] = {}
    for name, dtype in schema.items():
        key = _escaped(name)
        tests.append(line.str.count_matches(f'"{key}{_VALUE}') > 1)
        start = next((start for kind, start in _STARTS if dtype == kind), _NUMBER)
        by_start.setdefault(start, []).append(key)
    for start, keys in by_start.items():
        tests.append(line.str.contains(rf'"(?:{"|".join(keys)}){_VALUE}[^{start}n\s]'))
    found = pl.scan_lines(path, glob=False).select(pl.any_horizontal(tests).any())
    return bool(found.collect(engine="streaming").item())


def _escaped(name: str) -> str:
    """A column's name as a pattern for the key it is in the file."""
    written = json.dumps(name, ensure_ascii=False)[1:-1]
    return "".join(code if code.isalnum() or code == "_" else f"\\x{{{ord(code):X}}}" for code in written)


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open("rb") as file:
        for number, raw in enumerate(file, 1):
            line = raw.decode("utf-8-sig" if number == 1 else "utf-8", errors="replace")
            if not line.strip():
                continue
            try:
                value = json.loads(line, parse_constant=lambda _: None)
            except json.JSONDecodeError as wrong:
                raise InputError(f"{path}:{number}: not valid JSON: {wrong.msg} (column {wrong.colno}).") from None
            except (ValueError, RecursionError) as wrong:
                raise InputError(f"{path}:{number}: not readable: {wrong}") from None
            if not isinstance(value, dict):
                raise InputError(f"{path}:{number}: a line must be a JSON object, not {type(value).__name__}.")
            yield value
