r"""Read chunks of JSON lines with Arrow where it provably reads them as Python does.

Given the types of all columns, Arrow refuses what Python refuses, other keys, a key twice in an object, a value of another type, and
a lone surrogate. The rest is looked for here:

- It reads values one after another, whatever lines they are on, and takes a carriage return for the end of one. Where none stands
  within a line, each line begins with a brace and ends with one, and there are as many values as lines, each line is one: nowhere
  within a value does a brace follow one without a comma.
- It reads text that is not UTF-8, and NaN and Infinity, which a line of JSON cannot hold.
- It takes a whole number for a float. In the columns where the difference counts, numbers with a point or an exponent are counted.
- It does not tell null from a key that is missing, which in a message is not the same.

JSON that becomes text is written by Python as it stands in the line, in the order of its keys; of it, Arrow only proves that nothing is
odd, so that lines are parsed once and not searched for keys that stand twice.

NOTE: where an object should begin, null ends the process with a fault of the memory (Arrow 26). So none may stand behind a brace, and no
block that a thread parses may begin elsewhere than a line.
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import polars as pl

from assay.expressions.json import NOT_JSON, quick_loads
from assay.system.arrow import pa, pj
from assay.thresholds import THRESHOLDS
from assay.values.column import DTYPES, FLOATABLE

_GAP = rb"[ \t]*"
_BROKEN = rb"-?[0-9]++[.eE][0-9.eE+-]*+"
_BROKEN_LIST = rb"\[%b(?:%b%b(?:,%b%b%b)*)?\]" % (_GAP, _BROKEN, _GAP, _GAP, _BROKEN, _GAP)
_FRACTIONS = {pl.Float64(): _BROKEN, pl.List(pl.Float64()): _BROKEN_LIST}
"""Types whose values must have no whole number in columns that keep the values of rows as they are, and the form of such values."""
_MINUS_ZERO = re.compile(rb"-0(?<=[:\[, \t]-0)[,}\] \t]")
"""It begins with a literal, for which Python looks fifteen times as fast: many files have a zero in each chunk, a reward or a label."""
_NULL_BEHIND = re.compile(rb"\}[ \t]*null")
_KINDS = DTYPES | {list: pl.List, dict: pl.Struct}
_BLOCK = 1 << 20
"""Bytes that a thread parses at a time."""
_NEWLINE, _RETURN, _OPENING, _CLOSING = b"\n\r{}"


class _NoForm(Exception):  # noqa: N818  (never leaves this module)
    """Arrow cannot read values of a type, or not provably."""


class Forms:
    """The types of the columns of JSON lines, and how their values have to be written.

    Attributes:
        checked: Columns whose values Python has to read, though nothing is odd about lines that have these types.
    """

    def __init__(
        self, schema: Mapping[str, pl.DataType], exact: Collection[str] = (), checked: Collection[str] = ()
    ) -> None:
        self.all_types, self.checked = dict(schema), frozenset(checked)
        self.schema: dict[str, pl.DataType] = {}
        self._fractions: dict[str, re.Pattern[bytes]] = {}
        names = [*schema, *(name for dtype in schema.values() for name in _names(dtype))]
        for name, dtype in schema.items():
            try:
                _arrow_type(dtype)
                if name in exact and dtype in _FRACTIONS:
                    self._fractions[name] = _written(name, _FRACTIONS[dtype], names)
            except _NoForm:
                continue
            self.schema[name] = dtype

    def read(self, data: bytes) -> pl.DataFrame | None:
        """Read a chunk if Arrow reads it as Python does and its columns have these types; else return None."""
        lines = _objects(data) if self.schema else None
        if lines is None:
            return None
        try:
            table = _table(data, self.schema, len(data) + 1, unexpected="error")
            table.validate(full=True)
        except (pa.ArrowException, UnicodeDecodeError):  # not UTF-8, not JSON, or not of these types
            return None
        frame = _frame(table)
        if frame.height != lines:
            return None
        if not all(_is_finite(each) if each.name in self.checked else _is_certain(each, data) for each in frame):
            return None
        fractions = self._fractions.items()
        is_exact = all(len(form.findall(data)) == lines - frame[name].null_count() for name, form in fractions)
        return frame if is_exact else None


def parse(data: bytes, schema: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """Parse lines that ``Forms`` has read, some of their columns, given the types."""
    try:
        table = _table(data, schema, _BLOCK)
    except pa.ArrowInvalid:  # a line is longer than a block
        table = _table(data, schema, len(data) + 1)
    return _frame(table)


def plain_rows(data: bytes) -> list[dict[str, Any]] | None:
    """Return the objects of lines in which nothing is odd; None if one is nested too deep for the quick parser."""
    rows = [*map(quick_loads, data.removesuffix(b"\n").split(b"\n"))]
    return None if NOT_JSON in rows else rows


def _frame(table: Any) -> pl.DataFrame:
    # by name: Polars renames a column that has none
    return pl.DataFrame(
        {name: pl.Series(values) for name, values in zip(table.column_names, table.itercolumns(), strict=True)}
    )


def _table(data: bytes, schema: Mapping[str, pl.DataType], block: int, unexpected: str = "ignore") -> Any:
    types = pa.schema([(name, _arrow_type(dtype)) for name, dtype in schema.items()])
    return pj.read_json(
        pa.BufferReader(data),
        read_options=pj.ReadOptions(use_threads=block < len(data), block_size=block),
        parse_options=pj.ParseOptions(explicit_schema=types, unexpected_field_behavior=unexpected),
    )


def _objects(data: bytes) -> int | None:
    """Return the number of lines if each begins and ends with a brace, and only their ends are ends of lines."""
    import numpy as np

    if not data.startswith(b"{") or _NULL_BEHIND.search(data):
        return None
    codes = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(codes == _NEWLINE)
    if not data.endswith(b"\n"):
        ends = np.append(ends, len(data))
    last = codes[ends - 1]
    has_return = last == _RETURN
    if b"\r" in data and data.count(b"\r") != has_return.sum():
        return None
    last = np.where(has_return, codes[ends - 2], last)
    is_each = (last == _CLOSING).all() and (codes[ends[:-1] + 1] == _OPENING).all()
    return len(ends) if is_each else None


def _parts(series: pl.Series, *, in_list: bool = False) -> Iterator[tuple[pl.Series, bool]]:
    """Yield values and all that is within them, each with whether it is the elements of lists."""
    series = series.alias("values")  # NOTE: methods of a series named "^y$" take its name as a pattern
    yield series, in_list
    if isinstance(series.dtype, pl.Struct):
        for field in series.struct.unnest():
            yield from _parts(field)
    elif isinstance(series.dtype, pl.List):
        yield from _parts(series.filter((series.list.len() > 0).fill_null(value=False)).explode(), in_list=True)


def _is_certain(series: pl.Series, data: bytes) -> bool:
    """Return whether numbers are those that are written, and no message lacks anything."""
    nested = series.dtype.is_nested()
    for part, in_list in _parts(series):
        if isinstance(part.dtype, pl.Struct):
            if in_list and any(field.null_count() for field in part.struct.unnest()):
                return False
        elif part.dtype in (pl.Int64, pl.Float64):
            # the next integer is read as the same float
            is_exact = part.is_between(-FLOATABLE + 1, FLOATABLE - 1).all() or (part.dtype == pl.Int64 and not nested)
            # -0 is 0 to Python, and to Arrow where it reads floats, as it may once all types are known, it is not
            if not is_exact or ((part == 0).any() and _MINUS_ZERO.search(data)):
                return False
    return True


def _is_finite(series: pl.Series) -> bool:
    """Return whether no number is one that JSON does not have."""
    return all(part.dtype != pl.Float64 or part.is_finite().all() for part, _ in _parts(series))


def type_of(values: Sequence[Any], known: pl.DataType) -> pl.DataType:
    """Return the type of JSON values and of those before them, which have a known one; ``Object`` if there is none, or of many fields."""
    try:
        dtype = _type_of(values, known)
        _arrow_type(dtype)
    except _NoForm:
        return pl.Object()
    return dtype if sum(1 for _ in _names(dtype)) <= THRESHOLDS.struct_fields else pl.Object()


def _type_of(values: Sequence[Any], known: Any) -> pl.DataType:
    kinds = {type(value) for value in values} - {type(None)}
    if known != pl.Null:
        kinds.add(next(kind for kind, dtype in _KINDS.items() if known.base_type() == dtype))
    if kinds == {dict}:
        fields = dict(known.to_schema()) if known == pl.Struct else {}
        found: dict[str, list[Any]] = {name: [] for name in fields}
        for value in values:
            for name, inner in (value or {}).items():
                found.setdefault(name, []).append(inner)
        types = {name: _type_of(inner, fields.get(name, pl.Null())) for name, inner in found.items()}
        return pl.Struct(types) if types else pl.Null()
    if kinds == {list}:
        return pl.List(_type_of([*chain.from_iterable(filter(None, values))], getattr(known, "inner", pl.Null())))
    if len(kinds) > 1 and kinds != {int, float}:
        raise _NoForm
    return DTYPES[float if float in kinds else kinds.pop()]() if kinds else pl.Null()


def fits(proven: Any, target: Any) -> bool:
    """Whether a chunk that provably has values of one type is read the same with another type."""
    try:
        _arrow_type(target)
    except _NoForm:
        return False
    return _widens(proven, target)


def _widens(proven: Any, target: Any) -> bool:
    if isinstance(proven, pl.List) and isinstance(target, pl.List):
        return _widens(proven.inner, target.inner)
    if isinstance(proven, pl.Struct) and isinstance(target, pl.Struct):
        target_fields = dict(target.to_schema())
        return all(
            name in target_fields and _widens(dtype, target_fields[name]) for name, dtype in proven.to_schema().items()
        )
    return proven in (target, pl.Null) or (proven == pl.Int64 and target == pl.Float64)


def _arrow_type(dtype: Any) -> Any:
    leaves = {pl.String: pa.string, pl.Boolean: pa.bool_, pl.Int64: pa.int64, pl.Float64: pa.float64, pl.Null: pa.null}
    if isinstance(dtype, pl.List):
        return pa.list_(_arrow_type(dtype.inner))
    if isinstance(dtype, pl.Struct) and dtype.fields:
        return pa.struct([(name, _arrow_type(inner)) for name, inner in dtype.to_schema().items()])
    if dtype.base_type() not in leaves:
        raise _NoForm
    return leaves[dtype.base_type()]()


def _names(dtype: Any) -> Iterator[str]:
    """Yield the names of fields at any depth."""
    if isinstance(dtype, pl.List):
        yield from _names(dtype.inner)
    elif isinstance(dtype, pl.Struct):
        for name, inner in dtype.to_schema().items():
            yield name
            yield from _names(inner)


def _written(name: str, form: bytes, names: Sequence[str]) -> re.Pattern[bytes]:
    """Return a pattern that matches a key with a value of a form, and within no string."""
    is_plain = json.dumps(name, ensure_ascii=False) == f'"{name}"'
    if not is_plain or names.count(name) > 1 or any('"' in other for other in names):
        raise _NoForm
    return re.compile(rb'"%b"%b:%b(?:%b)%b[,}]' % (re.escape(name.encode()), _GAP, _GAP, form, _GAP))
