"""The JSON Schema (draft-07) of a verifier file."""

import itertools
import json
from collections.abc import Sequence
from typing import Any

from assay.checks.base import Check
from assay.checks.groups import GROUPS, Group, LengthScaled, Maximum, Mean, Minimum, Product
from assay.checks.registry import CHECKS
from assay.classes.registry import registered_configs
from assay.expressions.regex.flavors import pattern_schemas
from assay.names import IN_PROCESS, NATIVE, VERIFIER
from assay.spec.fields import CHECK_FIELDS, LABELS, CheckFields, ClassFields, SpecFields, VerifierFields
from assay.spec.pipeline import CONDITION_TESTS, SOURCE_NAMES
from assay.spec.scorers import SCORERS
from assay.spec.spec_tests import EXPECTED_FIELDS, OUTCOMES, TEST_FIELDS
from assay.steps.base import Step
from assay.steps.first_of import FirstOf
from assay.steps.reader import NOT_FOUND
from assay.steps.registry import STEPS
from assay.values.params import Params, both_cases, spellings, takes_objects

_NULL = {"type": "null"}
_NOT_FOUND = {"const": "keep", "description": "Hand on the step's input where it finds nothing."}


def ref(name: str) -> dict[str, str]:
    """Return a reference to a definition of the schema."""
    return {"$ref": f"#/definitions/{name}"}


def described(cls: type) -> str:
    """Return the first sentence of a class docstring, with Markdown code marks."""
    first = (cls.__doc__ or "").strip().split("\n\n")[0]
    return " ".join(first.split()).replace("``", "`")


def needs(params: type[Params]) -> list[dict[str, Any]]:
    """Return a rule for each required param: one of its spellings is there."""
    names = spellings(params)
    return [
        {"anyOf": [{"required": [name]} for name in names if names[name] == field]}
        for field, info in params.model_fields.items()
        if info.is_required()
    ]


def step_definitions() -> dict[str, Any]:
    """Return the definitions ``reference``, ``source``, ``step``, ``steps`` and ``subject``."""
    step = {
        "type": "object",
        "minProperties": 1,
        "properties": {name: {"description": described(kind)} for name, kind in STEPS.items()},
        "anyOf": [{"required": [name]} for name in STEPS],
        "allOf": [_step_branch(name, kind) for name, kind in STEPS.items()],
    }
    first = {"anyOf": [ref("source"), ref("step")]}
    listed = {"type": "array", "items": [first], "additionalItems": ref("step")}
    return {
        "reference": _REFERENCE,
        "source": {"anyOf": [{"enum": [*SOURCE_NAMES]}, ref("reference")]},
        "step": {"anyOf": [{"enum": [name for name, kind in STEPS.items() if not needs(kind.Params)]}, step]},
        "steps": {"anyOf": [ref("step"), {"type": "array", "items": ref("step")}]},
        "subject": {
            "description": "What the check reads: a source, by default the completion's text, then steps.",
            "anyOf": [*first["anyOf"], listed],
        },
    }


_OF_VALUE = {
    "column": {"type": "string", "description": "Path of a value in the row: `answer`, `metadata.gold`, `golds[0]`."},
    "template": {
        "type": "string",
        "description": "Text with paths in braces, `#### {answer}`; `{{` and `}}` are the characters.",
    },
}
_OF_LIST = {"type": "boolean", "default": False, "description": "Whether the value is JSON text of a list of values."}
_REFERENCE = {
    "type": "object",
    "description": "A value that each row brings.",
    "properties": {**_OF_VALUE, "list": _OF_LIST},
    "additionalProperties": False,
    "oneOf": [{"required": ["column"]}, {"required": ["template"], "properties": {"list": False}}],
}


def _step_branch(name: str, kind: type[Step]) -> dict[str, Any]:
    schema = kind.Params.model_json_schema(by_alias=True)
    fields, names = kind.Params.model_fields, spellings(kind.Params)
    by_field = {name: schema["properties"][field.alias or name] for name, field in fields.items()}
    if issubclass(kind, FirstOf):
        by_field["chains"] |= {"minItems": 1, "items": ref("steps")}
    options = {name: by_field[field] for name, field in names.items()} | dict.fromkeys(
        both_cases(NOT_FOUND), _NOT_FOUND
    )
    value = options.get(kind.shorthand)
    nested = {"type": "object", "properties": options, "additionalProperties": False}
    # NOTE: an object is always one of options, whatever the type of the value
    plain = [] if value is None else [{"allOf": [value, {"not": {"type": "object"}}]}]
    forms = [value, _NULL] if kind.takes_mapping else [*plain, _NULL, nested]
    rule: dict[str, Any] = {
        "properties": {**options, name: {"anyOf": forms, "description": described(kind)}},
        "additionalProperties": False,
    }
    if any(field.is_required() for field in fields.values()):
        rule["allOf"] = []
    for field in (field for field, info in fields.items() if info.is_required()):
        # it is in the object, beside the name, or the value of the name
        spelled = [spelling for spelling in names if names[spelling] == field]
        given: list[dict[str, Any]] = [{"required": [spelling]} for spelling in spelled]
        if not kind.takes_mapping:
            given += [{"properties": {name: {"type": "object", "required": [spelling]}}} for spelling in spelled]
        if field == kind.shorthand:
            other = _NULL if kind.takes_mapping else {"type": ["null", "object"]}
            given.append({"properties": {name: {"not": other}}})
        rule["allOf"].append({"anyOf": given})
    return {"if": {"required": [name]}, "then": rule}


_SCALARS = ["string", "number", "boolean", "null"]
_FALSE = {"enum": [False, None]}
_NOT_IN_GROUPS = {"gate": _FALSE, "required": _FALSE, "penalty": {"enum": [0, None]}}


def json_schema(checks: Sequence[type[Check]] = ()) -> dict[str, Any]:
    """Return the schema of a verifier file: a native verifier, or one that names a verifier class.

    Args:
        checks: Your own check types, in addition to the built-in ones.

    Returns:
        A draft-07 schema as plain data. Unknown check types are allowed, because a run skips them.
    """
    types = (*CHECKS, *GROUPS, *checks)
    schemas = {check.type: _params_schema(check) for check in types}
    schemas |= {name: _config_schema(name, config) for name, config in registered_configs().items()}
    wrapped = {"properties": {VERIFIER: ref("verifier")}, "additionalProperties": False}
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Assay verifier",
        "type": "object",
        "if": {"required": [VERIFIER]},
        "then": wrapped,
        "else": ref("verifier"),
        "definitions": {
            **{
                f"{owner}.{name}": schemas[owner]["$defs"][name]
                for owner in schemas
                for name in schemas[owner].get("$defs", ())
            },
            **step_definitions(),
            "verifier": _verifier(),
            "condition": _condition(),
            "noNegativeWeight": _NO_NEGATIVE_WEIGHT,
            "test": _TEST,
            "partOfGroup": {"allOf": [ref("check"), {"properties": _NOT_IN_GROUPS}]},
            "check": {
                "type": "object",
                "anyOf": [{"required": ["type"]}, {"required": ["kind"]}],
                "properties": _check((*SCORERS, *types)),
                "allOf": [*map(_branch, types), *map(_scorer_branch, SCORERS), *_other_branches((*types, *SCORERS))],
            },
        },
    }


def schema_text(checks: Sequence[type[Check]] = ()) -> str:
    """Return the schema as the text of a file."""
    return json.dumps(json_schema(checks), indent=2) + "\n"


def _both_spellings(fields: dict[str, Any]) -> dict[str, Any]:
    return {spelling: schema for name, schema in fields.items() for spelling in both_cases(name)}


def _fields_of(model: type[SpecFields], **others: Any) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name, schema in model.model_json_schema(by_alias=True)["properties"].items():
        given = {key: value for key, value in schema.items() if key != "title" and value not in (None, "")}
        if isinstance(kind := given.get("type"), str):
            given["type"] = [kind, "null"]
        if "enum" in given:
            given = {key: value for key, value in given.items() if key != "type"} | {"enum": [*given["enum"], None]}
        fields[name] = given
    return _both_spellings(fields | others)


def _verifier() -> dict[str, Any]:
    limits = {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}
    range_ = {"anyOf": [limits, _NULL], "default": [0, 1]}
    range_["description"] = VerifierFields.model_fields["range"].description or ""
    native = _fields_of(
        VerifierFields,
        **{"$schema": {"type": "string"}, "kind": {"enum": [NATIVE, None], "default": NATIVE}, "range": range_},
        checks={"type": "array", "minItems": 1, "items": ref("check")},
        tests=_TESTS,
    )
    kind = {"type": "string", "not": {"const": IN_PROCESS}, "description": "native, or a registered verifier class."}
    by_class = _fields_of(
        ClassFields,
        **{"$schema": {"type": "string"}, "kind": kind, "params": {"type": ["object", "null"]}, "tests": _TESTS},
    )
    for spelling in both_cases("passThreshold"):
        by_class[spelling] = {**by_class[spelling], "minimum": 0}
    bounded = {"minimum": 0, "maximum": 1}
    rules = [
        {"if": {"not": {"required": ["range"]}}, "then": {"properties": _both_spellings({"passThreshold": bounded})}},
        {
            "if": {"required": ["combine"], "properties": {"combine": {"const": "sum"}}},
            "else": {"properties": {"checks": {"items": ref("noNegativeWeight")}}},
        },
    ]
    return {
        "type": "object",
        "if": {"properties": {"kind": {"enum": [NATIVE, None]}}},
        "then": {"required": ["checks"], "additionalProperties": False, "properties": native, "allOf": rules},
        "else": {"additionalProperties": False, "properties": by_class, "allOf": _configs()},
    }


_TESTS = {"type": ["array", "null"], "items": ref("test"), "description": "Rollouts and what is expected of them."}
_BOUNDS = {
    "type": "object",
    "properties": {"min": {"type": "number"}, "max": {"type": "number"}},
    "minProperties": 1,
    "additionalProperties": False,
}
_EXPECTED_NUMBER = {"anyOf": [{"type": ["number", "null"]}, _BOUNDS]}
_EXPECTED_TEXT = {"type": ["string", "null"], "minLength": 1}
_EXPECTED_KINDS: dict[str, Any] = {
    "reward": _EXPECTED_NUMBER,
    "passed": {"type": ["boolean", "null"]},
    "checks": {"type": ["object", "null"], "additionalProperties": _EXPECTED_NUMBER},
    "reason": {"type": ["object", "null"], "additionalProperties": _EXPECTED_TEXT},
    "error": _EXPECTED_TEXT,
}
_EXPECTATION = {
    "type": "object",
    "properties": {name: {**_EXPECTED_KINDS[name], "description": text} for name, text in EXPECTED_FIELDS.items()},
    "minProperties": 1,
    "additionalProperties": False,
}
_TEST_KINDS: dict[str, Any] = {
    "name": {"type": ["string", "null"]},
    "given": {"type": "object"},
    "expect": {"anyOf": [{"enum": [*OUTCOMES]}, {"type": "number"}, _EXPECTATION]},
}
_TEST = {
    "type": "object",
    "properties": {name: {**_TEST_KINDS[name], "description": text} for name, text in TEST_FIELDS.items()},
    "required": ["given", "expect"],
    "additionalProperties": False,
}
_NO_NEGATIVE_WEIGHT = {
    "properties": {
        "weight": {"minimum": 0},
        "checks": {"items": ref("noNegativeWeight")},
        "check": ref("noNegativeWeight"),
        "when": {"properties": {"check": ref("noNegativeWeight")}},
    }
}
"""A check, and those in it, of a verifier that does not sum its scores."""


def _config_schema(name: str, config: Any) -> dict[str, Any]:
    return dict(config.model_json_schema(ref_template=f"#/definitions/{name}.{{model}}"))


def _condition() -> dict[str, Any]:
    negated = {"type": ["boolean", "null"], "default": False, "description": "Whether the opposite has to hold."}
    tests = {
        "equals": {"description": "The value equals this, as it is or as text."},
        "in": {"type": "array", "description": "The value equals one of these."},
        "exists": {"type": "boolean", "description": "Whether there is a value: the test if no other is named."},
        "matches": {"type": "string", "description": "`re.search` finds this pattern in the value's text."},
        **pattern_schemas(),
    }
    no_group = {"type": {"not": {"enum": _names(GROUPS)}}, "when": _NULL}
    single = {"allOf": [ref("check"), {"properties": no_group}]}
    two_tests = [{"required": [*pair]} for pair in itertools.combinations(CONDITION_TESTS, 2)]
    return {
        "type": "object",
        "description": "When the check runs; on other rows it leaves the weights.",
        "properties": {**_OF_VALUE, **tests, "check": {}, "not": negated},
        "additionalProperties": False,
        "if": {"required": ["check"], "properties": {"check": {"not": _NULL}}},
        "then": {"properties": {"check": single, "not": {}}, "additionalProperties": False},
        "else": {
            "oneOf": [{"required": [name]} for name in _OF_VALUE],
            "not": {"anyOf": two_tests},
            "dependencies": {name: ["matches"] for name in pattern_schemas()},
        },
    }


def _check(types: Sequence[type[Check]]) -> dict[str, Any]:
    subject = {"anyOf": [ref("subject"), _NULL]}
    return _fields_of(
        CheckFields,
        **{label: {"description": CheckFields.model_fields[label].description} for label in LABELS},
        type={"anyOf": [{"enum": _names(types)}, {"type": "string"}]},
        kind={"type": "string", "description": "A registered verifier class, instead of a type."},
        on=subject,
        extract={**subject, "description": "Another name of `on`."},
        goldOn={"anyOf": [ref("steps"), _NULL], "description": "Steps that each gold takes."},
        when={"anyOf": [ref("condition"), _NULL]},
        params={"type": ["object", "null"]},
        checks={"type": ["array", "null"]},
        check={"type": ["object", "null"]},
    )


def _params_schema(check: type[Check]) -> dict[str, Any]:
    return check.Params.model_json_schema(by_alias=True, ref_template=f"#/definitions/{check.type}.{{model}}")


def _param_schemas(check: type[Check]) -> dict[str, Any]:
    properties = _params_schema(check).get("properties", {})
    fields = {name: properties[field.alias or name] for name, field in check.Params.model_fields.items()}
    for name, schema in fields.items():
        if name == "unit" if issubclass(check, LengthScaled) else not issubclass(check, Group):
            forms: list[dict[str, Any]] = [] if name in check.golds.same_params else [ref("reference")]
            if name == check.golds.param:
                literal: dict[str, Any] = {} if takes_objects(check.Params, name) else {"type": _SCALARS}
                lists = [{"type": "array", "items": literal}] if check.golds.whole else []
                items = {"anyOf": [literal, *lists, ref("reference")]}
                forms = [ref("reference"), {"type": "array", "minItems": 1, "items": items}]
            # with its words outside, where editors look for them
            words: dict[str, Any] = {
                word: schema[word] for word in ("description", "default", "title") if word in schema
            }
            rest = {word: value for word, value in schema.items() if word not in words}
            fields[name] = {**words, "anyOf": [rest, *forms]}
    return {name: fields[field] for name, field in spellings(check.Params).items()}


def _beside(*others: str) -> dict[str, Any]:
    return dict.fromkeys((*_both_spellings(dict.fromkeys(CHECK_FIELDS)), *others), True)


def _if_type(types: dict[str, Any], then: dict[str, Any]) -> dict[str, Any]:
    return {"if": {"required": ["type"], "properties": {"type": types}}, "then": then}


def _names(types: Sequence[type[Check]]) -> list[str]:
    return [name for check in types for name in (check.type, *check.traits.aliases)]


def _branch(check: type[Check]) -> dict[str, Any]:
    properties, common = _param_schemas(check), _beside()
    child = "check" if issubclass(check, LengthScaled) else "checks"
    if issubclass(check, Group):
        common |= _both_spellings(dict.fromkeys(("on", "extract", "goldOn", "notFound", "missingGold"), _NULL))
        part = ref("partOfGroup")
        common |= {"check": _NULL, "checks": _NULL}
        common[child] = part if child == "check" else {"type": "array", "minItems": 1, "items": part}
    if check.traits.bounded and not issubclass(check, Mean | Minimum | Maximum | Product):
        common["threshold"] = {"exclusiveMinimum": 0, "maximum": 1}
    required = needs(check.Params)
    rule: dict[str, Any] = {"allOf": required} if required else {}
    nested = {"type": "object", "properties": properties, "additionalProperties": False, **rule}
    then = {
        "description": described(check),
        "if": {"required": ["params"], "properties": {"params": {"type": "object"}}},
        "then": {"properties": {**common, "params": nested}, "additionalProperties": False},
        "else": {"properties": {**common, **properties}, "additionalProperties": False, **rule},
    }
    return _if_type({"enum": _names([check])}, then | ({"required": [child]} if issubclass(check, Group) else {}))


_EXPECTED = {"expected": {"description": "The expected value, `{column: …}`, `{template: …}`, or a list of these."}}
"""The field of registered functions, whose names a schema does not know."""


def _scorer_branch(check: type[Check]) -> dict[str, Any]:
    own = {name: schema for name, schema in _params_schema(check).get("properties", {}).items() if name != "expected"}
    fields = _beside() | _both_spellings(own) | (_EXPECTED if "expected" in check.Params.model_fields else {})
    required = [name for name, field in check.Params.model_fields.items() if field.is_required()]
    then = {"description": described(check), "properties": fields, "additionalProperties": False, "required": required}
    return _if_type({"const": check.type}, then)


def _other_branches(types: Sequence[type[Check]]) -> list[dict[str, Any]]:
    by_class = {"properties": _beside("kind"), "additionalProperties": False, "allOf": _configs()}
    unknown = {"type": {"not": {"enum": _names(types)}}, "params": {"type": "object"}}
    return [
        {"if": {"required": ["kind"], "not": {"required": ["type"]}}, "then": by_class},
        {
            "if": {"required": ["type", "params"], "properties": unknown},
            "then": {"properties": _beside(*_EXPECTED), "additionalProperties": False},
        },
    ]


def _configs() -> list[dict[str, Any]]:
    return [
        {
            "if": {"properties": {"kind": {"const": name}}, "required": ["kind"]},
            "then": {"properties": {"params": {"anyOf": [_config_schema(name, config), _NULL]}}},
        }
        for name, config in registered_configs().items()
    ]
