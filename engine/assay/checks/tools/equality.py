"""Whether arguments of calls equal those that are expected, and how calls are shown in reasons."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from assay.errors import clipped, printable
from assay.expressions.json import dumps

ABSENT = object()
"""In place of an argument that is not there."""

_ATOMS = frozenset((str, int, float, bool, type(None)))
_SHOWN = 60
"""Maximum characters of a value in a reason."""
_NAMES = 5
"""Maximum names in a reason."""
OPTIONAL = ""
"""Among the values that are allowed: the argument may be absent."""


class ArgumentDifference(NamedTuple):
    """An argument that differs, which may be absent on either side."""

    argument: str
    got: Any
    expected: Any
    kind: str | Sequence[Any] | None = None
    """What is expected where it is no value: in words, or the values that are allowed."""

    def __str__(self) -> str:
        got = "missing" if self.got is ABSENT else shown(self.got)
        return f"{name_text(self.argument)} is {got}, expected {self._wanted()}"

    def _wanted(self) -> str:
        if isinstance(self.kind, str):
            return self.kind
        if self.kind is None:
            return "no such argument" if self.expected is ABSENT else shown(self.expected)
        values = [value for value in self.kind if value != OPTIONAL or type(value) is not str]
        if not values:
            return "no such argument"
        return shown(values[0]) if len(values) == 1 else f"one of {shown(values)}"


def equal(left: Any, right: Any) -> bool:
    """Return whether two JSON values are equal: 1 and 1.0 are, true and 1 are not, the order of keys does not matter."""
    if type(left) is type(right) and type(left) in _ATOMS:
        return bool(left == right)
    return alike(left, right, _same)


def _same(one: Any, other: Any) -> bool:
    return isinstance(one, bool) is isinstance(other, bool) and bool(one == other)


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
    if subset or got.keys() <= expected.keys():
        return None
    extra = next(name for name in got if name not in expected)
    return ArgumentDifference(extra, got[extra], ABSENT)


def shown(value: Any) -> str:
    """Return a JSON value for reasons: on one line, cut to 60 characters."""
    try:
        text = dumps(value)
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
