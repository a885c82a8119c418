"""The check types as text, made from their classes: ``assay checks`` and the reference in the README."""

import json
from collections.abc import Sequence
from typing import Any

from assay.checks import CHECKS
from assay.checks.base import Check
from assay.spec.reader import spellings

__all__ = ["as_json", "as_markdown"]


def _doc(check: type[Check]) -> str:
    """The class docstring's paragraphs as one, with Markdown's code marks."""
    lines = [line.strip() for line in (check.__doc__ or "").strip().splitlines()]
    return " ".join(line for line in lines if line).replace("``", "`")


def _params(check: type[Check]) -> list[dict[str, Any]]:
    schema = check.Params.model_json_schema(by_alias=True)
    found = []
    for name, field in check.Params.model_fields.items():
        shown = field.alias or name
        described = schema["properties"][shown]
        also = [other for other, meant in spellings(check).items() if meant == name and other not in (name, shown)]
        found.append(
            {
                "name": shown,
                "also": also,
                "type": _type(described),
                "required": field.is_required(),
                "default": None if field.is_required() else field.get_default(call_default_factory=True),
                "description": field.description or "",
            }
        )
    return found


def _type(schema: dict[str, Any]) -> str:
    """A param's type in a few words."""
    kinds = [_type(one) for one in schema["anyOf"]] if "anyOf" in schema else [schema.get("type", "object")]
    return " or ".join(kind for kind in dict.fromkeys(kinds) if not (kind == "integer" and "number" in kinds))


def as_json(checks: Sequence[type[Check]] = CHECKS) -> list[dict[str, Any]]:
    """Plain data: name, aliases, what it does, params, columns it reads, examples."""
    return [
        {
            "type": check.type,
            "aliases": list(check.aliases),
            "summary": _doc(check),
            "graded": check.graded,
            "reads": ["completion", *check.reads],
            "params": _params(check),
        }
        for check in checks
    ]


def as_markdown(checks: Sequence[type[Check]] = CHECKS) -> str:
    """A table for the README."""
    lines = ["| type (alias) | params | scores |", "|---|---|---|"]
    for check in as_json(checks):
        names = f"`{check['type']}`" + "".join(f" (`{alias}`)" for alias in check["aliases"])
        params = ", ".join(_param(param) for param in check["params"])
        lines.append(f"| {names} | {params} | {check['summary']} |")
    return "\n".join(lines) + "\n"


def _param(param: dict[str, Any]) -> str:
    default = "" if param["required"] else f" = {json.dumps(param['default'])}"
    also = "".join(f" or `{name}`" for name in param["also"])
    return f"`{param['name']}{default}`{also}"
