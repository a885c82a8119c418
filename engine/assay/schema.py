"""The JSON Schema (draft-07) of a verifier file, for editors, made from the check classes."""

from collections.abc import Sequence
from typing import Any

from assay.checks import CHECKS
from assay.checks.base import Check
from assay.specread import CHECK_FIELDS, NATIVE, spellings

__all__ = ["json_schema"]

_ID = {"type": ["string", "null"], "minLength": 1, "pattern": r"^[^/\x00-\x1f\x7f]+$"}


def json_schema(checks: Sequence[type[Check]] = ()) -> dict[str, Any]:
    """The schema of a native verifier.

    Args:
        checks: Check types of your own, beside the built-in ones.

    Returns:
        A draft-07 schema as plain data. Unknown check types are allowed, for a run skips them.
    """
    known = (*CHECKS, *checks)
    number = {"type": "number", "minimum": 0}
    verifier = {
        "$schema": {"type": "string"},
        "id": {**_ID, "description": "Unique in a run; by default the file's name without its ending."},
        "name": {"type": "string", "description": "For people; by default the id."},
        "kind": {"const": NATIVE, "default": NATIVE},
        "passThreshold": {
            **number,
            "maximum": 1,
            "default": 1.0,
            "description": "The score from which on an output passes.",
        },
        "checks": {"type": "array", "minItems": 1, "items": {"$ref": "#/definitions/check"}},
    }
    check = {
        "id": {**_ID, "description": "Unique in the verifier; by default the type."},
        "type": {"anyOf": [{"enum": [name for one in known for name in (one.type, *one.aliases)]}, {"type": "string"}]},
        "weight": {**number, "default": 1.0, "description": "Share of the score."},
        "required": {
            "type": "boolean",
            "default": False,
            "description": "The output cannot pass when this check scores below 1.",
        },
        "negate": {"type": "boolean", "default": False, "description": "Turn the score over: 1 - score."},
        "params": {"type": ["object", "null"]},
    }
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Assay verifier",
        "type": "object",
        "required": ["checks"],
        "additionalProperties": False,
        "properties": {**verifier, "pass_threshold": verifier["passThreshold"]},
        "definitions": {
            **_definitions(known),
            "check": {
                "type": "object",
                "required": ["type"],
                "properties": check,
                "allOf": [_branch(one) for one in known],
            },
        },
    }


def _params_schema(check: type[Check]) -> dict[str, Any]:
    """The schema of a check's params; what it defines gets a name of its own in the whole."""
    return check.Params.model_json_schema(by_alias=True, ref_template=f"#/definitions/{check.type}.{{model}}")


def _definitions(checks: Sequence[type[Check]]) -> dict[str, Any]:
    return {
        f"{one.type}.{name}": value for one in checks for name, value in _params_schema(one).get("$defs", {}).items()
    }


def _branch(check: type[Check]) -> dict[str, Any]:
    """What holds of a check of one type: its params, in ``params`` or flat beside the other fields."""
    params = _params_schema(check)
    fields = params.get("properties", {})
    by_field = {name: fields[field.alias or name] for name, field in check.Params.model_fields.items()}
    properties = {name: by_field[field] for name, field in spellings(check).items()}
    names = spellings(check)
    needed = [
        {"anyOf": [{"required": [name]} for name in names if names[name] == field]}
        for field, info in check.Params.model_fields.items()
        if info.is_required()
    ]
    rule: dict[str, Any] = {"allOf": needed} if needed else {}
    nested = {"type": "object", "properties": properties, "additionalProperties": False, **rule}
    flat = {**dict.fromkeys(CHECK_FIELDS, True), **properties}
    return {
        "if": {"properties": {"type": {"enum": [check.type, *check.aliases]}}},
        "then": {
            "description": (check.__doc__ or "").strip().split("\n")[0],
            "if": {"required": ["params"], "properties": {"params": {"type": "object"}}},
            "then": {
                "properties": {**dict.fromkeys(CHECK_FIELDS, True), "params": nested},
                "additionalProperties": False,
            },
            "else": {"properties": flat, "additionalProperties": False, **rule},
        },
    }
