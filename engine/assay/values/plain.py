"""Values of other libraries as plain Python, and what plain values are made of. None of these libraries is imported."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from typing import Any

from assay.calls.limits import scalar
from assay.errors import RAISED
from assay.expressions.json import MAX_DEPTH
from assay.thresholds import THRESHOLDS

LEAVES = {str, int, float, bool, type(None)}
NESTS = (dict, list, tuple, Mapping)

_CONVERTERS = ("tolist", "to_list", "as_py", "model_dump")
"""Methods by which arrays, tensors, series, scalars and models give plain values."""

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
        method = next((converter for name in _CONVERTERS if callable(converter := getattr(value, name, None))), None)
        return value if method is None or isinstance(value, type) else plain(method(), depth - 1)
    except RAISED:
        return _text(value)


def json_data(value: Any) -> Any:
    """Return a value as JSON data: what JSON has no form for as text, and a number that is not finite as None."""
    kind = type(value)
    if kind is str or kind is int or kind is bool or value is None:  # most are: to ask for a ``Mapping`` costs the most
        return value
    if kind is dict or isinstance(value, Mapping):
        return {str(name): json_data(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_data(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, int | str):
        return value
    own = scalar(value)
    return str(value) if own is value else json_data(own)


def _key(key: Any) -> Any:
    """Return a key as JSON and columns have them: a scalar of another library as a number, a tuple as text."""
    if isinstance(key, bytes):
        key = key.decode(errors="backslashreplace")
    converted = key if type(key) in LEAVES else plain(key)
    return converted if type(converted) in LEAVES else _text(key)


def _text(value: Any) -> Any:
    try:
        return str(value)
    except RAISED:
        return value


class Shape:
    """The fields of the values of a column, at any depth."""

    def __init__(self) -> None:
        self.fields = 0
        self._tree: dict[Any, Any] = {}

    def add(self, value: Any) -> int:
        """Add the fields of a value, and return its depth."""
        todo = [(value, 1, self._tree)] if isinstance(value, NESTS) else []
        deepest = 0
        while todo:
            outer, depth, node = todo.pop()
            deepest = max(deepest, depth)
            if depth > MAX_DEPTH:
                raise ValueError(f"is nested deeper than {MAX_DEPTH} levels, or contains itself")
            fields: Iterable[tuple[Any, Any]]
            if isinstance(outer, list | tuple):
                fields = zip(repeat(None), outer, strict=False)
            else:
                fields = outer.items()
                if not {str}.issuperset(map(type, outer)):
                    _check_keys(outer)
            for key, inner in fields:
                below = node.get(key)
                if below is None:
                    below = self._added(node, key)
                if type(inner) not in LEAVES and isinstance(inner, NESTS):
                    todo.append((inner, depth + 1, below))
        return deepest

    def _added(self, node: dict[Any, Any], key: Any) -> dict[Any, Any]:
        """Return a new node of a field, or of the elements of a list (None); past the limit, it is not stored."""
        below: dict[Any, Any] = {}
        if self.fields <= THRESHOLDS.struct_fields:
            node[key] = below
            self.fields += key is not None
        return below


def _check_keys(mapping: Mapping[Any, Any]) -> None:
    for key in mapping:
        if not isinstance(key, str | int | float | None):
            raise ValueError(f"has a key of type {type(key).__name__}, {key!r}; a key is a string")
    names = [key if isinstance(key, str) else json.dumps(key) for key in mapping]
    if duplicate := next((name for at, name in enumerate(names) if name in names[:at]), None):
        raise ValueError(f"has two keys that read `{duplicate}`")
