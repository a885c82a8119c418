"""The JSON Schema (draft-07) of a verifier file, for editors, generated from the check classes."""

from collections.abc import Sequence
from typing import Any

from assay.checks import CHECKS
from assay.checks.base import Check
from assay.classes.registry import registered_configs
from assay.names import IN_PROCESS, NATIVE, VERIFIER
from assay.spec.reader import CHECK_FIELDS, spellings

__all__ = ["json_schema"]

_ID = {"type": ["string", "null"], "minLength": 1, "pattern": r"^[^/\x00-\x1f\x7f]+$"}


def json_schema(checks: Sequence[type[Check]] = ()) -> dict[str, Any]:
    """Return the schema of a verifier file: a native verifier, or one that names a verifier class.

    Args:
        checks: Your own check types, in addition to the built-in ones.

    Returns:
        A draft-07 schema as plain data. Unknown check types are allowed, because a run skips them.
    """
    types = (*CHECKS, *checks)
    wrapped = {"properties": {VERIFIER: {"$ref": "#/definitions/verifier"}}, "additionalProperties": False}
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Assay verifier",
        "type": "object",
        "if": {"required": [VERIFIER]},
        "then": wrapped,
        "else": {"$ref": "#/definitions/verifier"},
        "definitions": {
            **_definitions(types),
            "verifier": _verifier(),
            "check": {
                "type": "object",
                "required": ["type"],
                "properties": _check(types),
                "allOf": [_branch(check) for check in types],
            },
        },
    }


_WEIGHT = {"type": "number", "minimum": 0}


def _verifier() -> dict[str, Any]:
    """Describe a native verifier, or one that names a verifier class, with the params of the registered classes."""
    threshold = {**_WEIGHT, "default": 1.0, "description": "Lowest score with which an output passes."}
    common = {
        "$schema": {"type": "string"},
        "id": {**_ID, "description": "Unique in a run; by default the file's name without its ending."},
        "name": {"type": "string", "description": "Display name; by default the id."},
    }
    at_most_1 = {**threshold, "maximum": 1}
    native = {
        **common,
        "kind": {"const": NATIVE, "default": NATIVE},
        "passThreshold": at_most_1,
        "pass_threshold": at_most_1,
        "checks": {"type": "array", "minItems": 1, "items": {"$ref": "#/definitions/check"}},
    }
    kind = {"type": "string", "not": {"const": IN_PROCESS}, "description": "native, or a registered verifier class."}
    by_class = {
        **common,
        "kind": kind,
        "passThreshold": threshold,
        "pass_threshold": threshold,
        "params": {"type": ["object", "null"]},
    }
    configs = [
        {
            "if": {"properties": {"kind": {"const": name}}, "required": ["kind"]},
            "then": {"properties": {"params": {"anyOf": [_config_schema(name, config), {"type": "null"}]}}},
        }
        for name, config in registered_configs().items()
    ]
    return {
        "type": "object",
        "if": {"properties": {"kind": {"const": NATIVE}}},
        "then": {"required": ["checks"], "additionalProperties": False, "properties": native},
        "else": {"additionalProperties": False, "properties": by_class, "allOf": configs},
    }


def _config_schema(name: str, config: Any) -> dict[str, Any]:
    return dict(config.model_json_schema(ref_template=f"#/definitions/{name}.{{model}}"))


def _check(types: Sequence[type[Check]]) -> dict[str, Any]:
    """Describe the fields that every check has."""
    names = [name for check in types for name in (check.type, *check.aliases)]
    return {
        "id": {**_ID, "description": "Unique in the verifier; by default the type."},
        "type": {"anyOf": [{"enum": names}, {"type": "string"}]},
        "weight": {**_WEIGHT, "default": 1.0, "description": "Share of the score."},
        "required": {
            "type": "boolean",
            "default": False,
            "description": "The output cannot pass if this check scores below 1.",
        },
        "negate": {"type": "boolean", "default": False, "description": "Invert the score: 1 - score."},
        "params": {"type": ["object", "null"]},
    }


def _params_schema(check: type[Check]) -> dict[str, Any]:
    """Return the schema of a check's params; its definitions get names that are unique in the whole schema."""
    return check.Params.model_json_schema(by_alias=True, ref_template=f"#/definitions/{check.type}.{{model}}")


def _definitions(checks: Sequence[type[Check]]) -> dict[str, Any]:
    """Collect the definitions of the schemas of params and configs."""
    schemas = {check.type: _params_schema(check) for check in checks}
    schemas |= {name: _config_schema(name, config) for name, config in registered_configs().items()}
    return {
        f"{owner}.{name}": value for owner, schema in schemas.items() for name, value in schema.pop("$defs", {}).items()
    }


def _branch(check: type[Check]) -> dict[str, Any]:
    """Describe a check of one type: its params, in ``params`` or flat beside the other fields."""
    params = _params_schema(check)
    fields = params.get("properties", {})
    by_field = {name: fields[field.alias or name] for name, field in check.Params.model_fields.items()}
    properties = {name: by_field[field] for name, field in spellings(check).items()}
    names = spellings(check)
    required_params = [
        {"anyOf": [{"required": [name]} for name in names if names[name] == field]}
        for field, info in check.Params.model_fields.items()
        if info.is_required()
    ]
    rule: dict[str, Any] = {"allOf": required_params} if required_params else {}
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
