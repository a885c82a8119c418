"""Values of other libraries as plain Python: arrays, tensors, series, scalars, models, configurations. None of these libraries is imported."""

from collections.abc import Mapping, Sequence
from typing import Any

from assay.errors import RAISED
from assay.values.shape import LEAVES

_CONVERTERS = ("tolist", "to_list", "as_py", "model_dump")
"""Methods by which arrays, tensors, series, scalars and models of other libraries give plain values; none of them is imported."""

_DEPTH = 100
"""Levels of nesting that are converted."""


def plain(value: Any, depth: int = _DEPTH) -> Any:
    """Return a value of plain Python types: arrays as lists, scalars as numbers, models as mappings."""
    if type(value) in LEAVES or not depth:
        return value
    if type(value) is dict or isinstance(value, Mapping):
        return {_key(key): plain(inner, depth - 1) for key, inner in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray):
        return [plain(inner, depth - 1) for inner in value]
    try:
        method = next((found for name in _CONVERTERS if callable(found := getattr(value, name, None))), None)
        return value if method is None or isinstance(value, type) else plain(method(), depth - 1)
    except RAISED:
        return _text(value)


def _key(key: Any) -> Any:
    if isinstance(key, bytes):
        key = key.decode(errors="backslashreplace")
    converted = key if type(key) in LEAVES else plain(key)
    return converted if type(converted) in LEAVES else _text(key)


def _text(value: Any) -> Any:
    try:
        return str(value)
    except RAISED:
        return value
