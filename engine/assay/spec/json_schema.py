"""The JSON Schema (draft-07) of a verifier file."""

from collections.abc import Sequence
from typing import Any

from assay.checks.base import Check
from assay.checks.groups import GROUPS, Group, LengthScaled, Maximum, Mean, Minimum, Product
from assay.checks.registry import CHECKS
from assay.classes.registry import registered_configs
from assay.expressions.regex.flavors import pattern_schemas
from assay.names import IN_PROCESS, NATIVE, VERIFIER
from assay.spec.fields import CHECK_FIELDS, LABELS, CheckFields, ClassFields, Fields, VerifierFields
from assay.spec.pipeline import CONDITION_TESTS, SOURCE_NAMES
from assay.spec.scorers import SCORERS
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


def needs(params: type[Params], *, beside: str = "") -> list[dict[str, Any]]:
    """Return a rule for each required param: one of its spellings is there."""
    names = spellings(params)
    return [
        {"anyOf": [{"required": [name]} for name in names if names[name] == field]}
        for field, info in params.model_fields.items()
        if info.is_required() and field != beside
    ]


def step_definitions() -> dict[str, Any]:
    """Return the definitions ``reference``, ``source``, ``step``, ``steps`` and ``subject``."""
    step = {
        "anyOf": [
            {"enum": [name for name, kind in STEPS.items() if not needs(kind.Params)]},
            {
                "type": "object",
                "minProperties": 1,
                "properties": {name: {"description": described(kind)} for name, kind in STEPS.items()},
                "anyOf": [{"required": [name]} for name in STEPS],
                "allOf": [_step_branch(name, kind) for name, kind in STEPS.items()],
            },
        ]
    }
    return {
        "reference": _reference(),
        "source": {"anyOf": [{"enum": [*SOURCE_NAMES]}, ref("reference")]},
        "step": step,
        "steps": {"anyOf": [ref("step"), {"type": "array", "items": ref("step")}]},
        "subject": {
            "description": "What the check reads: a source, by default the completion's text, then steps.",
            "anyOf": [
                ref("source"),
                ref("step"),
                {
                    "type": "array",
                    "items": [{"anyOf": [ref("source"), ref("step")]}],
                    "additionalItems": ref("step"),
                },
            ],
        },
    }


def _reference() -> dict[str, Any]:
    path = "Path of a value in the row: `answer`, `metadata.gold`, `golds[0]`."
    of_list = "Whether the value is JSON text of a list of values."
    template = "Text with paths in braces, `#### {answer}`; `{{` and `}}` are the characters."
    return {
        "type": "object",
        "description": "A value that each row brings.",
        "properties": {
            "column": {"type": "string", "description": path},
            "list": {"type": "boolean", "default": False, "description": of_list},
            "template": {"type": "string", "description": template},
        },
        "additionalProperties": False,
        "oneOf": [
            {"required": ["column"]},
            {"required": ["template"], "properties": {"list": False}},
        ],
    }


def _options(kind: type[Step]) -> dict[str, Any]:
    schema = kind.Params.model_json_schema(by_alias=True)
    fields = kind.Params.model_fields
    by_field = {name: schema["properties"][field.alias or name] for name, field in fields.items()}
    if issubclass(kind, FirstOf):
        by_field["chains"] |= {"minItems": 1, "items": ref("steps")}
    options = {name: by_field[field] for name, field in spellings(kind.Params).items()}
    return options | dict.fromkeys(both_cases(NOT_FOUND), _NOT_FOUND)


def _step_branch(name: str, kind: type[Step]) -> dict[str, Any]:
    options = _options(kind)
    nested = {"type": "object", "properties": options, "additionalProperties": False}
    value = options.get(kind.shorthand)
    if kind.takes_mapping:
        plain = [value]
    else:
        # NOTE: an object is always one of options, whatever the type of the value
        plain = [] if value is None else [{"allOf": [value, {"not": {"type": "object"}}]}]
    forms = [*plain, _NULL, *([] if kind.takes_mapping else [nested])]
    rule: dict[str, Any] = {
        "properties": {**options, name: {"anyOf": forms, "description": described(kind)}},
        "additionalProperties": False,
    }
    if required := _required(name, kind):
        rule["allOf"] = required
    return {"if": {"required": [name]}, "then": rule}


def _required(name: str, kind: type[Step]) -> list[dict[str, Any]]:
    rules = []
    for field, info in kind.Params.model_fields.items():
        if not info.is_required():
            continue
        names = [spelling for spelling, of in spellings(kind.Params).items() if of == field]
        forms: list[dict[str, Any]] = [{"required": [spelling]} for spelling in names]
        if not kind.takes_mapping:
            forms += [{"properties": {name: {"type": "object", "required": [spelling]}}} for spelling in names]
        if field == kind.shorthand:
            value = _NULL if kind.takes_mapping else {"type": ["null", "object"]}
            forms.append({"properties": {name: {"not": value}}})
        rules.append({"anyOf": forms})
    return rules


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
    wrapped = {"properties": {VERIFIER: ref("verifier")}, "additionalProperties": False}
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Assay verifier",
        "type": "object",
        "if": {"required": [VERIFIER]},
        "then": wrapped,
        "else": ref("verifier"),
        "definitions": {
            **_definitions(types),
            **step_definitions(),
            "verifier": _verifier(),
            "condition": _condition(),
            "noNegativeWeight": _no_negative_weight(),
            "partOfGroup": {"allOf": [ref("check"), {"properties": _NOT_IN_GROUPS}]},
            "check": {
                "type": "object",
                "anyOf": [{"required": ["type"]}, {"required": ["kind"]}],
                "properties": _check((*SCORERS, *types)),
                "allOf": [
                    *map(_branch, types),
                    *map(_scorer_branch, SCORERS),
                    _class_branch(),
                    _unknown_branch((*types, *SCORERS)),
                ],
            },
        },
    }


def _both_spellings(fields: dict[str, Any]) -> dict[str, Any]:
    return {spelling: schema for name, schema in fields.items() for spelling in both_cases(name)}


def _fields_of(model: type[Fields], **others: Any) -> dict[str, Any]:
    """Return the schemas of fields that a model describes, in both spellings, null being the default; others replace those of the model."""
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
    """Describe a native verifier, or one that names a verifier class, with the params of the registered classes."""
    limits = {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}
    range_ = {"anyOf": [limits, _NULL], "default": [0, 1]}
    range_["description"] = VerifierFields.model_fields["range"].description or ""
    native = _fields_of(
        VerifierFields,
        **{"$schema": {"type": "string"}, "kind": {"enum": [NATIVE, None], "default": NATIVE}, "range": range_},
        checks={"type": "array", "minItems": 1, "items": ref("check")},
    )
    kind = {"type": "string", "not": {"const": IN_PROCESS}, "description": "native, or a registered verifier class."}
    by_class = _fields_of(
        ClassFields, **{"$schema": {"type": "string"}, "kind": kind, "params": {"type": ["object", "null"]}}
    )
    for spelling in both_cases("passThreshold"):
        by_class[spelling] = {**by_class[spelling], "minimum": 0}
    bounded = {"minimum": 0, "maximum": 1}
    rules = [
        {
            "if": {"not": {"required": ["range"]}},
            "then": {"properties": _both_spellings({"passThreshold": bounded})},
        },
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


def _no_negative_weight() -> dict[str, Any]:
    """Describe a check, and those in it, of a verifier that does not sum its scores."""
    itself = ref("noNegativeWeight")
    return {
        "properties": {
            "weight": {"minimum": 0},
            "checks": {"items": itself},
            "check": itself,
            "when": {"properties": {"check": itself}},
        }
    }


def _config_schema(name: str, config: Any) -> dict[str, Any]:
    return dict(config.model_json_schema(ref_template=f"#/definitions/{name}.{{model}}"))


def _condition() -> dict[str, Any]:
    """Describe ``when``: a test of a value of the row, or a check that has to pass."""
    negated = {"type": ["boolean", "null"], "default": False, "description": "Whether the opposite has to hold."}
    tests = {
        "equals": {"description": "The value equals this, as it is or as text."},
        "in": {"type": "array", "description": "The value equals one of these."},
        "exists": {"type": "boolean", "description": "Whether there is a value: the test if no other is named."},
        "matches": {"type": "string", "description": "`re.search` finds this pattern in the value's text."},
        **pattern_schemas(),
    }
    single = {
        "allOf": [
            ref("check"),
            {
                "properties": {
                    "type": {
                        "not": {"enum": [name for group in GROUPS for name in (group.type, *group.traits.aliases)]}
                    },
                    "when": _NULL,
                }
            },
        ]
    }
    reference = step_definitions()["reference"]["properties"]
    of_value = {name: reference[name] for name in ("column", "template")}
    one_test = [{"required": pair} for pair in _pairs(CONDITION_TESTS)]
    return {
        "type": "object",
        "description": "When the check runs; on other rows it leaves the weights.",
        "properties": {**of_value, **tests, "check": {}, "not": negated},
        "additionalProperties": False,
        "if": {"required": ["check"], "properties": {"check": {"not": _NULL}}},
        "then": {"properties": {"check": single, "not": {}}, "additionalProperties": False},
        "else": {
            "oneOf": [{"required": [name]} for name in of_value],
            "not": {"anyOf": one_test},
            "dependencies": {name: ["matches"] for name in pattern_schemas()},
        },
    }


def _pairs(names: Sequence[str]) -> list[list[str]]:
    return [[name, other] for at, name in enumerate(names) for other in names[at + 1 :]]


def _check(types: Sequence[type[Check]]) -> dict[str, Any]:
    """Describe the fields that every check has; a name and a description may be params."""
    names = [name for check in types for name in (check.type, *check.traits.aliases)]
    subject = {"anyOf": [ref("subject"), _NULL]}
    return _fields_of(
        CheckFields,
        **{label: {"description": CheckFields.model_fields[label].description} for label in LABELS},
        type={"anyOf": [{"enum": names}, {"type": "string"}]},
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
    """Return the schema of a check's params; its definitions get names that are unique in the whole schema."""
    return check.Params.model_json_schema(by_alias=True, ref_template=f"#/definitions/{check.type}.{{model}}")


def _definitions(checks: Sequence[type[Check]]) -> dict[str, Any]:
    schemas = {check.type: _params_schema(check) for check in checks}
    schemas |= {name: _config_schema(name, config) for name, config in registered_configs().items()}
    return {
        f"{owner}.{name}": value for owner, schema in schemas.items() for name, value in schema.pop("$defs", {}).items()
    }


def _param_schemas(check: type[Check]) -> dict[str, Any]:
    properties = _params_schema(check).get("properties", {})
    fields = {name: properties[field.alias or name] for name, field in check.Params.model_fields.items()}
    if issubclass(check, LengthScaled):
        fields["unit"] = _with(fields["unit"], ref("reference"))
    elif not issubclass(check, Group):
        fields = {name: _with(schema, *_from_row(check, name)) for name, schema in fields.items()}
    return {name: fields[field] for name, field in spellings(check.Params).items()}


def _from_row(check: type[Check], name: str) -> list[dict[str, Any]]:
    """Return the forms of a param besides a literal: a reference; of the gold, also a list of literals and references."""
    if name != check.golds.param:
        return [] if name in check.golds.same_params else [ref("reference")]
    literal: dict[str, Any] = {} if takes_objects(check.Params, name) else {"type": _SCALARS}
    lists = [{"type": "array", "items": literal}] if check.golds.whole else []
    items = {"anyOf": [literal, *lists, ref("reference")]}
    return [ref("reference"), {"type": "array", "minItems": 1, "items": items}]


def _with(schema: dict[str, Any], *others: dict[str, Any]) -> dict[str, Any]:
    words: dict[str, Any] = {name: schema[name] for name in ("description", "default", "title") if name in schema}
    rest = {name: value for name, value in schema.items() if name not in words}
    return {**words, "anyOf": [rest, *others]}


def _group_fields(group: type[Group]) -> dict[str, Any]:
    only_single = _both_spellings(dict.fromkeys(("on", "extract", "goldOn", "notFound", "missingGold"), _NULL))
    children = {"type": "array", "minItems": 1, "items": ref("partOfGroup")}
    if issubclass(group, LengthScaled):
        return only_single | {"check": ref("partOfGroup"), "checks": _NULL}
    return only_single | {"checks": children, "check": _NULL}


def _branch(check: type[Check]) -> dict[str, Any]:
    """Describe a check of one type: its params, in ``params`` or flat beside the other fields."""
    properties = _param_schemas(check)
    common: dict[str, Any] = dict.fromkeys(_both_spellings(dict.fromkeys(CHECK_FIELDS)), True)
    if issubclass(check, Group):
        common |= _group_fields(check)
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
    if issubclass(check, Group):
        then["required"] = ["check" if issubclass(check, LengthScaled) else "checks"]
    return {
        "if": {"required": ["type"], "properties": {"type": {"enum": [check.type, *check.traits.aliases]}}},
        "then": then,
    }


_EXPECTED = {"expected": {"description": "The expected value, `{column: …}`, `{template: …}`, or a list of these."}}
"""The field of registered functions, whose names a schema does not know."""


def _scorer_branch(check: type[Check]) -> dict[str, Any]:
    own = {name: schema for name, schema in _params_schema(check).get("properties", {}).items() if name != "expected"}
    fields = dict.fromkeys(_both_spellings(dict.fromkeys(CHECK_FIELDS)), True) | _both_spellings(own)
    fields |= _EXPECTED if "expected" in check.Params.model_fields else {}
    required = [name for name, field in check.Params.model_fields.items() if field.is_required()]
    then = {"description": described(check), "properties": fields, "additionalProperties": False, "required": required}
    return {"if": {"required": ["type"], "properties": {"type": {"const": check.type}}}, "then": then}


def _class_branch() -> dict[str, Any]:
    fields = dict.fromkeys((*_both_spellings(dict.fromkeys(CHECK_FIELDS)), "kind"), True)
    then = {"properties": fields, "additionalProperties": False, "allOf": _configs()}
    return {"if": {"required": ["kind"], "not": {"required": ["type"]}}, "then": then}


def _configs() -> list[dict[str, Any]]:
    return [
        {
            "if": {"properties": {"kind": {"const": name}}, "required": ["kind"]},
            "then": {"properties": {"params": {"anyOf": [_config_schema(name, config), _NULL]}}},
        }
        for name, config in registered_configs().items()
    ]


def _unknown_branch(types: Sequence[type[Check]]) -> dict[str, Any]:
    """Describe a check of an unknown type: its params may be anything, beside the other fields or in ``params``."""
    names = [name for check in types for name in (check.type, *check.traits.aliases)]
    fields = dict.fromkeys((*_both_spellings(dict.fromkeys(CHECK_FIELDS)), *_EXPECTED), True)
    return {
        "if": {
            "required": ["type", "params"],
            "properties": {"type": {"not": {"enum": names}}, "params": {"type": "object"}},
        },
        "then": {"properties": fields, "additionalProperties": False},
    }
