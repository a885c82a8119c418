"""The lists of check types, groups, steps and normalizers, generated from their classes: ``assay checks`` and the reference in docs/."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from assay.checks.base import Check, Example
from assay.checks.groups import GROUPS
from assay.checks.registry import CHECKS
from assay.errors import UsageError, did_you_mean, quoted
from assay.spec.reader import as_flow
from assay.spec.scorers import SCORERS
from assay.steps.base import Step, StepExample
from assay.steps.registry import STEP_TYPES
from assay.values.normalizers import list_normalizers
from assay.values.params import spellings

_MOST_EXAMPLES = 3
_OF_SCORERS: dict[str, dict[str, Any]] = {
    "function": {"name": "exact_match", "expected": {"column": "answer"}},
    "row_verifier": {"verifierName": "exact_match"},
    "spec": {"path": "parts/format.yaml"},
}
_POLITE = [{"type": "contains", "value": "sorry"}, {"type": "contains", "value": "thank"}]
_OF_GROUPS: dict[str, dict[str, Any]] = {
    "at_least": {"k": 2},
    "length_scaled": {"max": 2000, "check": {"type": "equals", "value": {"column": "answer"}}},
}


def entries_named(name: str, entries: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the entries of ``listing`` with a name: a check type and a step may share one."""
    named = [entry for entry in entries if name in (entry["type"], *entry["aliases"])]
    if not named:
        known = {known for entry in entries for known in (entry["type"], *entry["aliases"])}
        hint = did_you_mean(name, sorted(known)) or "All of them: assay checks"
        raise UsageError(f"{quoted(name)}: no check type, group, step or normalizer has this name.", hint)
    return named


def examples_of(entry: Mapping[str, Any], checks: Sequence[type[Check]] = CHECKS) -> list[str]:
    """Return examples of an entry of ``listing`` as a spec writes them, each with what it gives."""
    name, kind = entry["type"], entry["kind"]
    if kind == "normalizer":
        return [f"- {{type: equals, value: {{column: answer}}, normalize: {name}}}"]
    if kind == "step":
        return [
            f"on: {as_flow([example['step']])}   # {quoted(example['text'])} → {json.dumps(example['result'], ensure_ascii=False)}"
            for example in entry["examples"][:_MOST_EXAMPLES]
        ]
    if kind == "scorer":
        return [f"- {as_flow({'type': name, **_OF_SCORERS[name]})}"] if name in _OF_SCORERS else []
    if kind == "group":
        params = _OF_GROUPS.get(name, {})
        return [f"- {as_flow({'type': name, **params, **({} if 'check' in params else {'checks': _POLITE})})}"]
    examples = next(check.examples for check in checks if check.type == name)
    return [
        f"- {as_flow({'type': name, **(example.params or {})})}   # {example.score:g} for {quoted(example.completion)}"
        + (f" with {as_flow(beside)}" if (beside := _beside(example)) else "")
        for example in examples[:_MOST_EXAMPLES]
    ]


def _beside(example: Example) -> dict[str, Any]:
    columns = {"metadata": example.metadata, "expected_output_schema": example.expected_output_schema}
    return {name: value for name, value in columns.items() if value is not None} | dict(example.columns or {})


def _doc(check: type[Check | Step]) -> str:
    return _paragraph(check.__doc__ or "")


def _paragraph(text: str) -> str:
    lines = [line.strip() for line in text.strip().splitlines()]
    return " ".join(line for line in lines if line).replace("``", "`")


def _params(check: type[Check | Step]) -> list[dict[str, Any]]:
    schema = check.Params.model_json_schema(by_alias=True)
    params = []
    for name, field in check.Params.model_fields.items():
        public_name = field.alias or name
        schema_of_param = schema["properties"][public_name]
        aliases = [
            spelling
            for spelling, field_name in spellings(check.Params).items()
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
    return sorted(params, key=lambda param: not param["required"])


def _type(schema: dict[str, Any]) -> str:
    kinds = [_type(choice) for choice in schema["anyOf"]] if "anyOf" in schema else [schema.get("type", "object")]
    return " or ".join(kind for kind in dict.fromkeys(kinds) if not (kind == "integer" and "number" in kinds))


def as_json(checks: Sequence[type[Check]] = CHECKS) -> list[dict[str, Any]]:
    """Return the check types as plain data: name, aliases, summary, columns and params."""
    return [
        {
            "type": check.type,
            "aliases": list(check.traits.aliases),
            "summary": _doc(check),
            "graded": check.graded,
            "reads": ["completion", *check.traits.reads],
            "params": _params(check),
        }
        for check in checks
    ]


def listing(checks: Sequence[type[Check]] = CHECKS) -> list[dict[str, Any]]:
    """Return all that a spec can name as plain data, each with its ``kind``: check types, groups, scorers, steps and normalizers.

    Scorers are checks of functions, of the row's verifier, and of another spec.
    """
    steps = [{"type": step.pop("step"), **step} for step in steps_as_json()]
    return [
        *({"kind": "check", **entry} for entry in as_json(checks)),
        *({"kind": "group", **entry} for entry in as_json(GROUPS)),
        *({"kind": "scorer", **entry} for entry in as_json(SCORERS)),
        *({"kind": "step", **entry} for entry in steps),
        *({"kind": "normalizer", **entry} for entry in _normalizers()),
    ]


def _normalizers() -> list[dict[str, Any]]:
    return [
        {
            "type": name,
            "aliases": [],
            "summary": _paragraph(summary),
            "params": [_option(option, meaning) for option, meaning in options.items()],
        }
        for name, (summary, options) in list_normalizers().items()
    ]


def _option(name: str, meaning: str) -> dict[str, Any]:
    is_list = name.startswith("regexes")
    kind, default = ("array", []) if is_list else ("boolean", False)
    return {"name": name, "also": [], "type": kind, "required": False, "default": default, "description": meaning}


def listing_as_markdown(checks: Sequence[type[Check]] = CHECKS) -> str:
    """Return ``listing`` as Markdown tables, those of docs/specs.md and docs/steps.md."""
    tables = {
        "Check types": as_markdown(checks),
        "Groups": groups_as_markdown(),
        "Scorers": as_markdown(SCORERS),
        "Steps": steps_as_markdown(),
        "Normalizers": normalizers_as_markdown(),
    }
    return "\n".join(f"## {title}\n\n{table}" for title, table in tables.items())


def groups_as_markdown() -> str:
    """Return the kinds of groups as a Markdown table."""
    return as_markdown(GROUPS)


def normalizers_as_markdown() -> str:
    """Return the normalizers as a Markdown table."""
    rows = [
        f"| `{entry['type']}` | {', '.join(map(_param, entry['params']))} | {entry['summary']} |"
        for entry in _normalizers()
    ]
    return "\n".join(["| normalizer | options | makes of a text |", "|---|---|---|", *rows]) + "\n"


def as_markdown(checks: Sequence[type[Check]] = CHECKS) -> str:
    """Return the check types as a Markdown table."""
    lines = ["| type (alias) | params | scores |", "|---|---|---|"]
    for check in as_json(checks):
        names = f"`{check['type']}`" + "".join(f" (`{alias}`)" for alias in check["aliases"])
        params = ", ".join(_param(param) for param in check["params"])
        lines.append(f"| {names} | {params} | {check['summary']} |")
    return "\n".join(lines) + "\n"


def steps_as_json(steps: Sequence[type[Step]] = STEP_TYPES) -> list[dict[str, Any]]:
    """Return the steps as plain data: name, aliases, the param that stands beside the name, summary, params and examples."""
    return [
        {
            "step": step.name,
            "aliases": list(step.aliases),
            "value": step.shorthand,
            "summary": _doc(step),
            "list": step.gives_list,
            "params": _params(step),
            "examples": [_example(step, example) for example in step.examples],
        }
        for step in steps
    ]


def _example(step: type[Step], example: StepExample) -> dict[str, Any]:
    params = dict(example.params or {})
    value = params.pop(step.shorthand, None)
    written = step.name if not (params or value is not None) else {step.name: params if value is None else value}
    beside = params if isinstance(written, dict) and value is not None else {}
    return {
        "step": {**written, **beside} if isinstance(written, dict) else written,
        "text": example.text,
        "result": example.result,
    }


def steps_as_markdown(steps: Sequence[type[Step]] = STEP_TYPES) -> str:
    """Return the steps as a Markdown table."""
    lines = ["| step (alias) | options | gives |", "|---|---|---|"]
    for step in steps_as_json(steps):
        names = f"`{step['step']}`" + "".join(f" (`{alias}`)" for alias in step["aliases"])
        params = [
            _param(param) + (" beside the name" if param["name"] == step["value"] else "") for param in step["params"]
        ]
        lines.append(f"| {names} | {', '.join(params)} | {step['summary']} |")
    return "\n".join(lines) + "\n"


def _param(param: dict[str, Any]) -> str:
    default = "" if param["required"] else f" = {json.dumps(param['default'])}"
    aliases = "".join(f" or `{name}`" for name in param["also"])
    return f"`{param['name']}{default}`{aliases}"
