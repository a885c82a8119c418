"""Whether arguments of calls equal those that are expected, and how calls are shown in reasons."""

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from assay.errors import clipped, printable

ABSENT = object()
"""In place of an argument that is not there."""

_ATOMS = frozenset((str, int, float, bool, type(None)))
_ENCODER = json.JSONEncoder(ensure_ascii=False, default=str)
_SHOWN = 60
"""Maximum characters of a value in a reason."""
_NAMES = 5
"""Maximum names in a reason."""


class ArgumentDifference(NamedTuple):
    """An argument that differs, which may be absent on either side."""

    argument: str
    got: Any
    expected: Any
    kind: str = ""
    """What is expected, in words, where it is no value."""

    def __str__(self) -> str:
        name = name_text(self.argument)
        expected = self.kind or shown(self.expected)
        if self.got is ABSENT:
            return f"{name} is missing, expected {expected}"
        if self.expected is ABSENT and not self.kind:
            return f"{name} is {shown(self.got)}, expected no such argument"
        return f"{name} is {shown(self.got)}, expected {expected}"


def equal(left: Any, right: Any) -> bool:
    """Return whether two JSON values are equal: 1 and 1.0 are, true and 1 are not, the order of keys does not matter."""
    return alike(
        left, right, lambda one, other: isinstance(one, bool) is isinstance(other, bool) and bool(one == other)
    )


def alike(left: Any, right: Any, same: Callable[[Any, Any], bool]) -> bool:
    """Return whether two JSON values have the same shape and the same atoms, whatever the depth of the stack."""
    stack = [(left, right)]
    while stack:
        one, other = stack.pop()
        if type(one) is type(other) and type(one) in _ATOMS:  # what most values are
            if one != other:
                return False
        elif isinstance(one, dict) and isinstance(other, dict):
            if one.keys() != other.keys():
                return False
            stack += [(value, other[key]) for key, value in one.items()]
        elif isinstance(one, list) and isinstance(other, list):
            if len(one) != len(other):
                return False
            stack += zip(one, other, strict=True)
        elif isinstance(one, dict | list) or isinstance(other, dict | list) or not same(one, other):
            return False
    return True


def difference(got: Mapping[str, Any], expected: Mapping[str, Any], *, subset: bool) -> ArgumentDifference | None:
    """Return the first argument that differs; None if there is none."""
    for name, value in expected.items():
        if name not in got:
            return ArgumentDifference(name, ABSENT, value)
        if not equal(got[name], value):
            return ArgumentDifference(name, got[name], value)
    extra = None if subset else next((name for name in got if name not in expected), None)
    return None if extra is None else ArgumentDifference(extra, got[extra], ABSENT)


def shown(value: Any) -> str:
    """Return a JSON value for reasons: on one line, cut to 60 characters."""
    try:
        text = _ENCODER.encode(value)
    except RecursionError:
        return "a value that is nested deeply"
    return printable(clipped(text, _SHOWN))


def listed_names(names: list[Any]) -> str:
    """Return names for reasons."""
    rest = f" and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
    return ", ".join(name_text(name) for name in names[:_NAMES]) + rest


def name_text(name: Any) -> str:
    """Return the name of a function or of an argument for reasons."""
    is_plain = isinstance(name, str) and 0 < len(name) <= _SHOWN and name.isprintable()
    return name if is_plain else shown(name)


def call_text(name: Any, arguments: Any) -> str:
    """Return a call for reasons: ``get_weather {"city": "Oslo"}``."""
    return f"{name_text(name)} {shown(arguments)}"
