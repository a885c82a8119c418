"""The list of check types, generated from their classes: ``assay checks`` and the reference in the README."""

import json
from collections.abc import Sequence
from typing import Any

from assay.checks import CHECKS
from assay.checks.base import Check
from assay.spec.reader import spellings

__all__ = ["as_json", "as_markdown"]


def _doc(check: type[Check]) -> str:
    """Return the class docstring as one paragraph, with Markdown code marks."""
    lines = [line.strip() for line in (check.__doc__ or "").strip().splitlines()]
    return " ".join(line for line in lines if line).replace("``", "`")


def _params(check: type[Check]) -> list[dict[str, Any]]:
    schema = check.Params.model_json_schema(by_alias=True)
    params = []
    for name, field in check.Params.model_fields.items():
        public_name = field.alias or name
        schema_of_param = schema["properties"][public_name]
        aliases = [
            spelling
            for spelling, field_name in spellings(check).items()
            if field_name == name and spelling not in (name, public_name)
        ]
        params.append(
            {
                "name": public_name,
                "also": aliases,
                "type": _type(schema_of_param),
                "required": field.is_required(),
                "default": None if field.is_required() else field.get_default(call_default_factory=True),
                "description": field.description or "",
            }
        )
    return params


def _type(schema: dict[str, Any]) -> str:
    """Describe a param's type in a few words."""
    kinds = [_type(choice) for choice in schema["anyOf"]] if "anyOf" in schema else [schema.get("type", "object")]
    return " or ".join(kind for kind in dict.fromkeys(kinds) if not (kind == "integer" and "number" in kinds))


def as_json(checks: Sequence[type[Check]] = CHECKS) -> list[dict[str, Any]]:
    """Return the check types as plain data: name, aliases, summary, columns and params."""
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
    """Return the check types as a Markdown table."""
    lines = ["| type (alias) | params | scores |", "|---|---|---|"]
    for check in as_json(checks):
        names = f"`{check['type']}`" + "".join(f" (`{alias}`)" for alias in check["aliases"])
        params = ", ".join(_param(param) for param in check["params"])
        lines.append(f"| {names} | {params} | {check['summary']} |")
    return "\n".join(lines) + "\n"


def _param(param: dict[str, Any]) -> str:
    default = "" if param["required"] else f" = {json.dumps(param['default'])}"
    aliases = "".join(f" or `{name}`" for name in param["also"])
    return f"`{param['name']}{default}`{aliases}"
