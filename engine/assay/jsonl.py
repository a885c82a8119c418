"""JSON lines as a lazy frame: the engine's reader for files it provably reads as Python does, Python for the rest.

The engine takes the first of duplicate keys, a lone surrogate for NUL, and a list for its JSON text where another line has a
string; it refuses NaN and a BOM; structure makes it type a column by all lines, in time quadratic in the number of fields. A
pass over the lines looks for what any of this needs; a file that has it is read by ``json.loads``, line by line, twice: once
for the types of the columns and once for their values, so that it is never in memory as a whole.
"""

import glob
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import polars.selectors as cs
from polars.exceptions import PolarsError
from polars.io.plugins import register_io_source

from assay.cells import MAX_NESTING, OPEN, STRUCTURED
from assay.errors import InputError
from assay.lanes.base import exactly, rowwise
from assay.lanes.jsontext import MAX_DEPTH, nesting, too_deep
from assay.lanes.onrow import EXPECTED, VERIFIER
from assay.reading import BadRow, Reading, Unit
from assay.rows import Columns
from assay.shape import MAX_FIELDS

__all__ = ["open_jsonl"]

_ANSWER = "answer"
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
_PARTS = rf'"(?:text|message|role|content){_VALUE}[^"n\s]'
"""Values inside messages that are no text."""

_NO_OBJECT = r"^\s*[^{\s]"
_HIGH, _LOW = r"\\u[dD][89abAB][0-9a-fA-F]{2}", r"\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_KEY = rf"{_STRING}\s*:"
_HUGE = r"[\[,:]\s*-?[0-9]{16,}\s*[,\]}]"
"""An integer that may be none among floats."""

_ESCAPED_KEY = r'\\u[0-9a-fA-F]{4}(?:[^"\\]|\\.)*"\s*:'
_DECODER = json.JSONDecoder(parse_constant=lambda _: None)
_BATCH = 1 << 22
"""Bytes of lines that Python holds at once."""


@dataclass(frozen=True)
class JsonlFile:
    """A ``File`` of JSON objects, one a line.

    Attributes:
        columns: The types that the values of all lines make, where Python reads them; None where the engine does.
    """

    path: Path
    schema: pl.Schema
    units: tuple[Unit, ...]
    reading: Reading
    columns: Columns | None = None
    bad: tuple[BadRow, ...] = ()
    notes: tuple[str, ...] = ()

    def scan(self, first: int = 0, last: int | None = None) -> pl.LazyFrame:
        """All rows; none where the one unit is left out."""
        if (first, last) not in ((0, None), (0, 1)):
            return pl.LazyFrame(schema=self.schema)
        if self.columns is not None:
            return _exactly_read(self.path, self.reading, self.columns, self.schema)
        return _structured(_scanned(self.path), self.reading.mapping)


def open_jsonl(path: Path, reading: Reading) -> JsonlFile:
    """One file of JSON objects, one a line; ``metadata`` and ``expected_output_schema`` are JSON text.

    Args:
        path: The file.
        reading: How.

    Raises:
        InputError: A line is not a JSON object; the message names file and line.
    """
    size = path.stat().st_size
    if size == 0:
        raise InputError(f"{path}: the file is empty.")
    mapping = reading.mapping
    try:
        frame = None if reading.reshape or _is_hard(path, mapping) else _engine(path, mapping)
    except PolarsError:
        frame = None
    columns = _learned(path, reading) if frame is None else None
    schema = columns.settle() if columns else _structured(_scanned(path), mapping).collect_schema()
    return JsonlFile(path, schema, (Unit(None, size),), reading, columns)


def _scanned(path: Path) -> pl.LazyFrame:
    # every line is looked at for its type: a field may appear for the first time in the last one
    return pl.scan_ndjson(glob.escape(str(path)), infer_schema_length=None)


def _structured(frame: pl.LazyFrame, mapping: Mapping[str, str]) -> pl.LazyFrame:
    there = frame.collect_schema()
    names = [mapping.get(name, name) for name in STRUCTURED]
    return frame.with_columns(exactly(name).cast(pl.String) for name in names if name in there)


def _engine(path: Path, mapping: Mapping[str, str]) -> pl.LazyFrame | None:
    """The engine's reader, where it reads every line as Python does."""
    frame = _scanned(path)
    schema = frame.collect_schema()
    if any(_fields(dtype) > MAX_FIELDS for dtype in schema.values()) or _is_ambiguous(path, schema, mapping):
        return None
    # a type that inference settled on may still refuse a value: every one of them is parsed once
    frame.select(pl.all().null_count()).collect(engine="streaming")
    return frame


def _fields(dtype: Any) -> int:
    if isinstance(dtype, pl.Struct):
        return sum(1 + _fields(field.dtype) for field in dtype.fields)
    return _fields(dtype.inner) if isinstance(dtype, pl.List) else 0


def _has_floats(dtype: Any) -> bool:
    if isinstance(dtype, pl.Struct):
        return any(_has_floats(field.dtype) for field in dtype.fields)
    return _has_floats(dtype.inner) if isinstance(dtype, pl.List) else dtype.is_float()


def _is_hard(path: Path, mapping: Mapping[str, str]) -> bool:
    """Whether the engine must not even look for the types of the columns."""
    line = pl.col("line")
    texts, opens = (
        "|".join(_escaped(mapping.get(name, name)) for name in names) for names in ((*STRUCTURED, EXPECTED), OPEN)
    )
    patterns = (_PARTS, _ESCAPED_KEY, _NO_OBJECT, rf'"(?:{texts}){_VALUE}[^"n\s]', rf'"(?:{opens}){_VALUE}[\[{{]')
    tests = [line.str.contains(pattern) for pattern in patterns]
    # surrogates come in pairs, or else
    escaped = pl.when(line.str.contains(_HIGH) | line.str.contains(_LOW)).then(line)
    pairs = escaped.str.count_matches(_HIGH + _LOW)
    tests.append((escaped.str.count_matches(_HIGH) != pairs) | (escaped.str.count_matches(_LOW) != pairs))
    bracketed = pl.when(line.str.count_matches(r"[\[{]") > MAX_NESTING).then(line)
    tests.append(rowwise(bracketed, nesting, pl.Int64) > MAX_NESTING)
    if _any(path, tests):
        return True
    keys = pl.scan_lines(path, glob=False).select(line.str.extract_all(_KEY).explode().n_unique())
    return bool(keys.collect(engine="streaming").item() > MAX_FIELDS)


def _is_ambiguous(path: Path, schema: pl.Schema, mapping: Mapping[str, str]) -> bool:
    """Whether a line has a column twice, or a value that the type which inference settled on cannot hold."""
    line = pl.col("line")
    tests = []
    by_start: dict[str, list[str]] = {}
    for name, dtype in schema.items():
        key = _escaped(name)
        tests.append(line.str.count_matches(f'"{key}{_VALUE}') > 1)
        start = next((start for kind, start in _STARTS if dtype == kind), _NUMBER)
        by_start.setdefault(start, []).append(key)
    if any(_has_floats(dtype) for dtype in schema.values()):
        tests.append(line.str.contains(_HUGE))
    gold = mapping.get(_ANSWER, _ANSWER)
    if gold in schema and schema[gold].is_float():  # 1 beside 2.5 is "1", not "1.0"
        tests.append(line.str.contains(rf'"{_escaped(gold)}{_VALUE}-?[0-9]+\s*[,}}]'))
    for start, keys in by_start.items():
        tests.append(line.str.contains(rf'"(?:{"|".join(keys)}){_VALUE}[^{start}n\s]'))
    return _any(path, tests)


def _any(path: Path, tests: list[pl.Expr]) -> bool:
    found = pl.scan_lines(path, glob=False).filter(pl.any_horizontal(tests)).head(1)
    return found.collect(engine="streaming").height > 0


def _escaped(name: str) -> str:
    """A column's name as a pattern for the key it is in the file."""
    written = json.dumps(name, ensure_ascii=False)[1:-1]
    return "".join(code if code.isalnum() or code == "_" else f"\\x{{{ord(code):X}}}" for code in written)


def _golds(mapping: Mapping[str, str]) -> list[str]:
    return [mapping.get(name, name) for name in (EXPECTED, VERIFIER)]


def _learned(path: Path, reading: Reading) -> Columns:
    """The types that all lines make."""
    columns = Columns(reading.mapping)
    try:
        for batch in _batches(path, reading):
            columns.see(batch)
        columns.settle()
    except InputError as wrong:
        raise InputError(wrong.fact if str(path) in wrong.fact else f"{path}: {wrong.fact}", wrong.hint) from None
    return columns


def _exactly_read(path: Path, reading: Reading, columns: Columns, schema: pl.Schema) -> pl.LazyFrame:
    def read(
        names: list[str] | None, predicate: pl.Expr | None, limit: int | None, _: int | None
    ) -> Iterator[pl.DataFrame]:
        for batch in _batches(path, reading):
            frame = columns.frame(batch if limit is None else batch[:limit])
            if limit is not None:
                limit -= frame.height
            frame = frame if names is None else frame.select(cs.by_name(names))
            yield frame if predicate is None else frame.filter(predicate)
            if limit == 0:
                break

    return register_io_source(read, schema=schema)


def _batches(path: Path, reading: Reading) -> Iterator[list[dict[str, Any]]]:
    batch: list[dict[str, Any]] = []
    size = 0
    golds = _golds(reading.mapping)
    with path.open("rb") as file:
        for number, raw in enumerate(file, 1):
            line = raw.decode("utf-8-sig" if number == 1 else "utf-8", errors="replace")
            if line.strip():
                record = _read(line, f"{path}:{number}", golds)
                batch += [record] if reading.reshape is None else reading.reshape(record)
            size += len(raw)
            if size > _BATCH:
                yield batch
                batch, size = [], 0
    yield batch


def _read(line: str, where: str, golds: Sequence[str]) -> dict[str, Any]:
    if too_deep(line):
        raise InputError(f"{where}: nested deeper than {MAX_DEPTH} levels.")
    try:
        value = _DECODER.decode(line)
    except json.JSONDecodeError as wrong:
        raise InputError(f"{where}: not valid JSON: {wrong.msg} (column {wrong.colno}).") from None
    except (ValueError, RecursionError) as wrong:
        raise InputError(f"{where}: not readable: {wrong}") from None
    if not isinstance(value, dict):
        raise InputError(f"{where}: a line must be a JSON object, not {type(value).__name__}.")
    if "NaN" in line or "Infinity" in line:  # elsewhere they are null; a gold is compared by its str()
        value |= {name: given for name, given in json.loads(line).items() if name in golds}
    return value
