"""Columns as Python reads them, whatever types a file or a frame gives them, and bytes as text.

A value that Python has no object for, such as the date of a year above 9999, is null: to ask Polars for it raises or panics. Bytes
are the text that they encode in UTF-8, as files from before there was a mark for text store it; other bytes are null.
"""

from collections.abc import Mapping
from typing import Any

import polars as pl

from assay.expressions.shared_columns import field_of

_DAY = 86_400
_FIRST, _LAST = -62_135_596_800, 253_402_300_799
"""The first and the last second of Python's dates, from 1970."""
_LONGEST = 999_999_999 * _DAY
"""Seconds of Python's longest duration."""
_PER_SECOND = {"ms": 10**3, "us": 10**6, "ns": 10**9}
_INT64 = -(2**63), 2**63 - 1


def readable(values: pl.Expr, dtype: Any, *, as_text: bool) -> tuple[pl.Expr, Any]:
    """Return values that Python can read, and their type."""
    if not _is_foreign(dtype, as_text=as_text):
        return values, dtype
    if isinstance(dtype, pl.BaseExtension):
        return readable(values.ext.storage(), dtype.ext_storage(), as_text=as_text)
    if dtype == pl.Binary:
        return values.map_batches(_decoded, return_dtype=pl.String, is_elementwise=True), pl.String()
    if dtype.is_nested():
        kinds = {pl.List: _readable_list, pl.Array: _readable_list, pl.Struct: _readable_struct, pl.Map: _readable_map}
        return kinds[dtype.base_type()](values, dtype, as_text)
    first, last = _limits(dtype)
    return pl.when(values.to_physical().is_between(first, last)).then(values), dtype


def _readable_list(values: pl.Expr, dtype: Any, as_text: bool) -> tuple[pl.Expr, Any]:
    items, inner = readable(pl.element(), dtype.inner, as_text=as_text)
    return values.cast(pl.List(dtype.inner), strict=False).list.eval(items), pl.List(inner)


def _readable_struct(values: pl.Expr, dtype: Any, as_text: bool) -> tuple[pl.Expr, Any]:
    fields = {
        name: readable(field_of(values, dtype, name), inner, as_text=as_text)
        for name, inner in dtype.to_schema().items()
    }
    whole = pl.struct(field.alias(name) for name, (field, _) in fields.items())
    return pl.when(values.is_not_null()).then(whole), pl.Struct({name: inner for name, (_, inner) in fields.items()})


def _readable_map(values: pl.Expr, dtype: Any, as_text: bool) -> tuple[pl.Expr, Any]:
    """Return a mapping with texts as keys; a list of keys and values if the keys have no text that stands for them."""
    pairs = pl.List(pl.Struct({"key": dtype.key, "value": dtype.value}))
    values, pairs = readable(values.cast(pairs), pairs, as_text=as_text)
    key, value = pairs.inner.to_schema().values()
    if not (key in (pl.String, pl.Binary) or key.is_integer() or isinstance(key, pl.Categorical | pl.Enum)):
        return values, pairs
    key = pl.Binary() if key == pl.Binary else pl.String()
    has_key = pl.element().struct.field("key").is_not_null()
    values = values.list.filter(has_key).cast(pl.List(pl.Struct({"key": key, "value": value})))
    return values.cast(pl.Map(key, value)), pl.Map(key, value)


def _is_foreign(dtype: Any, *, as_text: bool) -> bool:
    """Return whether a type has values that Python cannot read, or bytes that are to be text."""
    if isinstance(dtype, pl.Struct):
        return any(_is_foreign(field.dtype, as_text=as_text) for field in dtype.fields)
    if isinstance(dtype, pl.List | pl.Array):
        return _is_foreign(dtype.inner, as_text=as_text)
    if isinstance(dtype, pl.Map):
        is_plain = dtype.key == pl.String or (dtype.key == pl.Binary and not as_text)
        return not is_plain or _is_foreign(dtype.value, as_text=as_text)
    if dtype.is_temporal():
        return _limits(dtype) != _INT64
    return isinstance(dtype, pl.BaseExtension) or (dtype == pl.Binary and as_text)


def _limits(dtype: Any) -> tuple[int, int]:
    """Return the least and the greatest number behind the values that Python has of a type of times."""
    if dtype == pl.Date:
        return _FIRST // _DAY, _LAST // _DAY
    if dtype == pl.Time:
        return 0, _DAY * 10**9 - 1
    unit = _PER_SECOND[dtype.time_unit]
    if isinstance(dtype, pl.Duration):
        return (-_LONGEST * unit, _LONGEST * unit) if dtype.time_unit == "ms" else _INT64
    if dtype.time_unit == "ns":
        return _INT64
    zone = _DAY if dtype.time_zone else 0
    return (_FIRST + zone) * unit, (_LAST + 1 - zone) * unit - 1


def has_type(dtype: Any, kinds: Any) -> bool:
    """Return whether a type is one of some kinds of types, or contains one."""
    if isinstance(dtype, kinds):
        return True
    if isinstance(dtype, pl.Struct):
        return any(has_type(field.dtype, kinds) for field in dtype.fields)
    if isinstance(dtype, pl.List | pl.Array):
        return has_type(dtype.inner, kinds)
    return isinstance(dtype, pl.Map) and (has_type(dtype.key, kinds) or has_type(dtype.value, kinds))


def is_all_text(values: pl.Series) -> bool:
    """Return whether all bytes within values are UTF-8; perhaps not, if some behind nulls are not."""
    dtype = values.dtype
    if not has_type(dtype, pl.Binary):
        return True
    if isinstance(dtype, pl.Map):
        values = values.cast(pl.List(pl.Struct({"key": dtype.key, "value": dtype.value})))
    if isinstance(values.dtype, pl.List | pl.Array):
        return is_all_text(values.explode())
    if isinstance(values.dtype, pl.Struct):
        return all(map(is_all_text, values.struct.unnest().get_columns()))
    try:
        values.cast(pl.String)
    except pl.exceptions.ComputeError:
        return False
    return True


def _decoded(values: pl.Series) -> pl.Series:
    try:
        return values.cast(pl.String)
    except pl.exceptions.ComputeError:
        return pl.Series(values.name, [*map(_text, values.to_list())], dtype=pl.String)


def _text(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None


LOST = object()
"""Stands for bytes that are not UTF-8, where they are looked for."""


def readable_value(value: Any, lost: Any = None) -> Any:
    """Return a value of a row with bytes as text, and mappings with texts as keys."""
    if isinstance(value, str | int | float | None):
        return value
    if isinstance(value, bytes):
        text = _text(value)
        return lost if text is None else text
    if isinstance(value, list | tuple):
        return [readable_value(item, lost) for item in value]
    return _readable_mapping(value, lost) if isinstance(value, Mapping) else value


def _readable_mapping(value: Mapping[Any, Any], lost: Any) -> Any:
    pairs = [(readable_value(key, lost), readable_value(inner, lost)) for key, inner in value.items()]
    if all(key is LOST or (isinstance(key, str | int | None) and not isinstance(key, bool)) for key, _ in pairs):
        return {key if key is LOST else str(key): inner for key, inner in pairs if key is not None}
    return [{"key": key, "value": inner} for key, inner in pairs]
