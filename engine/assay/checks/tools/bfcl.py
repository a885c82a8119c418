"""Whether a call is one of those that the Berkeley Function-Calling Leaderboard allows.

Source: gorilla 6ea5797, ``ast_checker.py``: types are Python's, strings are compared without blanks and some punctuation, and an
argument that may be absent has ``""`` among its values.
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import repeat
from operator import eq
from typing import Any

from assay.checks.tools.equality import ABSENT, OPTIONAL, ArgumentDifference, alike

_TYPES: Mapping[str, tuple[type, str]] = {
    "string": (str, "a string"),
    "integer": (int, "an integer"),
    "float": (float, "a number"),
    "number": (float, "a number"),
    "boolean": (bool, "true or false"),
    "array": (list, "a list"),
    "tuple": (list, "a list"),
    "dict": (dict, "an object"),
    "object": (dict, "an object"),
    "any": (str, "a string"),
}
_UNKNOWN: tuple[None, str] = (None, "a value")
_ATOMS = (str, int, float, bool)
"""Types of which a value is allowed if it is written as one of the allowed."""
_IGNORED = re.compile(r"[ ,./\-_*^]")


def bfcl_difference(
    got: Mapping[str, Any],
    expected: Mapping[str, Any],
    schema: Mapping[str, Any],
    ignored: frozenset[str] = frozenset(),
) -> ArgumentDifference | None:
    """Return the first argument that differs from all that is allowed; None if there is none."""
    properties, required = schema.get("properties"), schema.get("required")
    if type(properties) is not dict:
        properties = {}
    missing = [name for name in required if name not in got] if type(required) is list else []
    for name in missing:
        if name not in ignored:
            return _absent(name, expected)
    for name, value in got.items():
        if name in ignored:
            continue
        if name not in properties or name not in expected:
            return ArgumentDifference(name, value, ABSENT)
        allowed = expected[name]
        kind = _misfit(value, properties[name], allowed if isinstance(allowed, list) else ())
        if kind is not None:
            return ArgumentDifference(name, value, allowed, kind)
    for name, values in expected.items():
        if name not in got and name not in ignored and OPTIONAL not in _texts(_allowed(values)):
            return _absent(name, expected)
    return None


def _absent(name: str, expected: Mapping[str, Any]) -> ArgumentDifference:
    return ArgumentDifference(name, ABSENT, ABSENT, _allowed(expected[name]) if name in expected else "a value")


def _kind(doc: Any) -> tuple[type | None, str]:
    """Return the type that a schema declares, and its words."""
    declared = doc.get("type") if isinstance(doc, dict) else None
    return _TYPES.get(declared, _UNKNOWN) if type(declared) is str else _UNKNOWN


def _allowed(values: Any) -> Sequence[Any]:
    return values if isinstance(values, list) else ()


def _texts(values: Sequence[Any]) -> list[str]:
    return [value for value in values if isinstance(value, str)]


def _misfit(value: Any, doc: Any, allowed: Sequence[Any]) -> str | Sequence[Any] | None:
    """Return what a value should be: a type in words, or one of those that are allowed; None if it is."""
    kind, words = _kind(doc)
    if type(value) is kind and kind in _ATOMS and value in allowed:
        return None
    if kind is float and type(value) is int:
        with suppress(OverflowError):
            value = float(value)
    item_kind = _kind(doc.get("items"))[0] if kind is list else None
    if item_kind is str and type(value) is list and {str}.issuperset(map(type, value)) and value in allowed:
        return None
    if type(value) is kind and (item_kind is None or _has_items(value, item_kind, allowed)):
        fits = _fits(value, kind, item_kind, allowed)
    elif type(value) is not kind and type(value) is _first_type(allowed):
        fits = _is_among(value, allowed)
    else:
        return words if type(value) is not kind else allowed
    return None if fits else allowed


def _first_type(allowed: Sequence[Any]) -> type | None:
    return next((type(value) for value in allowed if not (type(value) is str and value == OPTIONAL)), None)


def _has_items(value: Any, kind: type, allowed: Sequence[Any]) -> bool:
    """Return whether the items of a list are of a type, or of the type of the first item of a list that is allowed."""
    kinds = {type(item) for item in value}
    if kinds <= {kind}:
        return bool(allowed)
    if any(not isinstance(other, list) for other in allowed):
        return True
    return any(kinds <= {kind, _first_type(other)} for other in allowed)


def _fits(value: Any, kind: type, item_kind: type | None, allowed: Sequence[Any]) -> bool:
    if kind is dict:
        return any(map(_object_fits, repeat(value), allowed))
    if kind is list and item_kind is dict:
        lists = [[] if isinstance(other, str) and not other else other for other in allowed]
        return any(
            all(map(_object_fits, value, other))
            for other in lists
            if isinstance(other, list) and len(other) == len(value)
        )
    if kind is str:
        return _plain(value) in [_plain(other) for other in _texts(allowed)]
    if kind is list:
        plain = [_plain(item) for item in value]
        return any(
            alike(plain, [_plain(item) for item in other], eq) for other in allowed if isinstance(other, list | str)
        )
    return _is_among(value, allowed)


def _plain(value: Any) -> Any:
    return _IGNORED.sub("", value).lower().replace("'", '"') if isinstance(value, str) else value


def _object_fits(value: Any, allowed: Any) -> bool:
    if not (isinstance(value, dict) and isinstance(allowed, dict)):
        return False
    for key, inner in value.items():
        if key not in allowed:
            return False
        values = _allowed(allowed[key])
        is_written = type(inner) in _ATOMS and inner in values
        if not is_written and not _is_among(_plain(inner), [*map(_plain, values)]):
            return False
    return value.keys() == allowed.keys() or all(
        key in value or OPTIONAL in _texts(_allowed(values)) for key, values in allowed.items()
    )


def _is_among(value: Any, allowed: Sequence[Any]) -> bool:
    if not isinstance(value, dict | list):
        return value in allowed
    return any(alike(value, other, eq) for other in allowed)
