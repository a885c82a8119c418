"""Compare a tool call in the output with the expected one.

A call is the JSON object from the first ``{`` of a text to its last ``}``; code fences and blanks around it contain no brace, so
they need no stripping. ``tool`` and ``action`` must be equal (absent on both sides is equal), also ``ref`` and ``text`` if the
expected call has them, and each axis of ``coordinate`` must be within a tolerance. Equality is Python's ``==``.
"""

from collections.abc import Mapping
from typing import Any, TypeGuard

from assay.errors import quoted
from assay.expressions.json import NOT_JSON, loads

TOLERANCE = "coordinate_tolerance"
_DEFAULT_TOLERANCE = 25
_ALWAYS, _WHERE_EXPECTED, _COORDINATE = ("tool", "action"), ("ref", "text"), "coordinate"
_NO_CALL = "the output has no JSON object"
_NO_GOLD = "expected is not a JSON object"
_BAD_COORDINATE = "expected.coordinate is not a list of two numbers"
_AXES = 2


def tool_call(value: Any) -> dict[str, Any] | None:
    """Return the JSON object that a value is or that its text contains; None if there is none."""
    if isinstance(value, dict):
        return value
    text = "" if value is None else str(value)
    parsed = loads(text[text.find("{") : text.rfind("}") + 1]) if "{" in text else NOT_JSON
    return parsed if isinstance(parsed, dict) else None


def tool_calls_differ(output: str, expected: Any, params: Mapping[str, Any]) -> tuple[str, str | None]:
    """Compare a tool call with the expected one, an object or its text.

    Returns:
        The first field that differs, ``""`` if none does; and an error if the expected call cannot be used.
    """
    reference = tool_call(expected)
    if reference is None:
        return _NO_GOLD, f"ValueError: {_NO_GOLD}"
    call = tool_call(output)
    if call is None:
        return _NO_CALL, None
    for name in (*_ALWAYS, *(name for name in _WHERE_EXPECTED if name in reference)):
        if call.get(name) != reference.get(name):
            return _differs(name, reference.get(name)), None
    if _COORDINATE not in reference:
        return "", None
    tolerance = int(params.get(TOLERANCE, _DEFAULT_TOLERANCE))
    target, point = reference[_COORDINATE], call.get(_COORDINATE)
    if not _is_pair(target):
        return _BAD_COORDINATE, f"ValueError: {_BAD_COORDINATE}"
    return "" if _is_pair(point) and _near(point, target, tolerance) else _differs(_COORDINATE, target), None


def _is_pair(value: Any) -> TypeGuard[list[Any]]:
    return isinstance(value, list) and len(value) == _AXES and all(isinstance(axis, int | float) for axis in value)


def _near(point: list[Any], target: list[Any], tolerance: int) -> bool:
    try:
        return all(abs(a - b) <= tolerance for a, b in zip(point, target, strict=True))
    except OverflowError:  # an integer too large to be compared to a float is far away
        return False


def _differs(name: str, expected: Any) -> str:
    if expected is None:
        return f"{name} differs: expected none"
    return f"{name} differs: expected {quoted(expected) if isinstance(expected, str) else quoted(str(expected))[1:-1]}"
