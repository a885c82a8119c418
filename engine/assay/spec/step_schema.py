"""The JSON Schema of what a check reads and of values from the row: ``on:``, ``goldOn:``, ``{column: path}``, made from the step classes."""

from typing import Any

from assay.spec.pipeline import SOURCE_NAMES
from assay.steps.base import Step
from assay.steps.first_of import FirstOf
from assay.steps.reader import NOT_FOUND
from assay.steps.registry import STEPS
from assay.values.params import Params, both_cases, spellings

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
                "allOf": [_branch(name, kind) for name, kind in STEPS.items()],
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


def _branch(name: str, kind: type[Step]) -> dict[str, Any]:
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
