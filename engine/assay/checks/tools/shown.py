"""Values and names in the reasons of checks of tool calls."""

import json
from typing import Any

from assay.errors import printable

_ENCODER = json.JSONEncoder(ensure_ascii=False, default=str)
_SHOWN = 60
"""Maximum characters of a value in a reason."""
_NAMES = 5
"""Maximum names in a reason."""


def shown(value: Any) -> str:
    """Return a JSON value for reasons: on one line, cut to 60 characters."""
    try:
        text = _ENCODER.encode(value)
    except RecursionError:
        return "a value that is nested deeply"
    return printable(text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…")


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
