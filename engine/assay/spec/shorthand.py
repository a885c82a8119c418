"""What people write in place of a check, ``contains: refund`` or ``json_valid``, as the check that they mean."""

import json
import re
from collections.abc import Mapping
from typing import Any

from assay.checks.base import Check
from assay.checks.groups import Group
from assay.errors import closest
from assay.values.references import is_reference

_PLAIN = re.compile(r"[A-Za-z][\w-]*(?: [\w-]+)*")
_LONGEST = 120


def meant_check(data: Any, types: Mapping[str, type[Check]]) -> str:
    """Return a check as YAML in braces, given a shorthand for it; ``""`` if the shorthand names no check type."""
    fields = {data: None} if isinstance(data, str) else data if isinstance(data, Mapping) else {}
    names = {key: name for key in fields if (name := closest(str(key), types, cutoff=0.8))}
    key = next(iter(names), None)
    if key is None:
        return ""
    value, others = fields[key], {other: inner for other, inner in fields.items() if other != key}
    params = {} if value is None else {_main_param(types[names[key]]): value}
    if isinstance(value, Mapping) and not is_reference(value):
        params = dict(value)
    written = as_flow({"type": names[key], **params, **others})
    return written if len(written) <= _LONGEST else as_flow({"type": names[key]})[:-1] + ", …}"


def _main_param(check: type[Check]) -> str:
    if issubclass(check, Group):
        return "checks"
    fields = check.Params.model_fields
    name = check.gold if check.gold in fields else next(iter(fields), "value")
    return (fields[name].alias if name in fields else None) or name


def as_flow(value: Any) -> str:
    """Return a value as YAML on one line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{as_flow(str(key))}: {as_flow(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return f"[{', '.join(map(as_flow, value))}]"
    if not isinstance(value, str) or not value.isprintable():
        return json.dumps(value, ensure_ascii=False, default=str)
    is_plain = _PLAIN.fullmatch(value) and value.lower() not in ("true", "false", "null")
    return value if is_plain else "'" + value.replace("'", "''") + "'"
