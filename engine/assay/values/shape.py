"""The shape of values: their fields, and how deeply they are nested."""

import json
from collections.abc import Mapping
from typing import Any

from assay.expressions.json import MAX_DEPTH
from assay.thresholds import THRESHOLDS

LEAVES = {str, int, float, bool, type(None)}
NESTS = (dict, list, tuple, Mapping)


class Shape:
    """The fields of the values of a column, at any depth."""

    def __init__(self) -> None:
        self.fields = 0
        self._tree: dict[Any, Any] = {}

    def add(self, value: Any) -> int:
        """Add the fields of a value."""
        todo = [(value, 1, self._tree)] if isinstance(value, NESTS) else []
        deepest = 0
        while todo:
            outer, depth, node = todo.pop()
            deepest = max(deepest, depth)
            if depth > MAX_DEPTH:
                raise ValueError(f"is nested deeper than {MAX_DEPTH} levels, or contains itself")
            if isinstance(outer, list | tuple):
                node = self._below(node, None)
                todo += [(inner, depth + 1, node) for inner in outer if isinstance(inner, NESTS)]
            else:
                _check_keys(outer)
                for key, inner in outer.items():
                    below = self._below(node, key)
                    if type(inner) not in LEAVES and isinstance(inner, NESTS):
                        todo.append((inner, depth + 1, below))
        return deepest

    def _below(self, node: dict[Any, Any], key: Any) -> dict[Any, Any]:
        if key not in node:
            if self.fields > THRESHOLDS.struct_fields:
                return {}
            node[key] = {}
            self.fields += key is not None
        below: dict[Any, Any] = node[key]
        return below


def _check_keys(mapping: Mapping[Any, Any]) -> None:
    if all(type(key) is str for key in mapping):
        return
    for key in mapping:
        if not isinstance(key, str | int | float | None):
            raise ValueError(f"has a key of type {type(key).__name__}, {key!r}; a key is a string")
    names = [key if isinstance(key, str) else json.dumps(key) for key in mapping]
    if duplicate := next((name for at, name in enumerate(names) if name in names[:at]), None):
        raise ValueError(f"has two keys that read `{duplicate}`")
