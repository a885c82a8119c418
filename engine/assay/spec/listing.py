"""The lists of check types, groups, steps and normalizers, generated from their classes: ``assay checks`` and the reference in docs/."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from assay.checks.base import Check
from assay.checks.groups import GROUPS
from assay.checks.registry import CHECKS
from assay.errors import UsageError, did_you_mean, quoted
from assay.spec.reader import as_flow
from assay.spec.scorers import SCORERS
from assay.steps.base import Step
from assay.steps.registry import STEP_TYPES
from assay.values.normalizers import list_normalizers
from assay.values.params import spellings

_MOST_EXAMPLES = 3
_OF_SCORERS: dict[str, dict[str, Any]] = {
    "grader": {"name": "inspect.match", "value": {"column": "answer"}, "options": {"location": "end"}},
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
    beside_text = []  # the columns of examples beside the text
    for example in next(check.examples for check in checks if check.type == name):
        columns = {"metadata": example.metadata, "expected_output_schema": example.expected_output_schema}
        given = {column: value for column, value in columns.items() if value is not None}
        beside_text.append((example, given | dict(example.columns or {})))
    return [
        f"- {as_flow({'type': name, **(example.params or {})})}   # {example.score:g} for {quoted(example.completion)}"
        + (f" with {as_flow(beside)}" if beside else "")
        for example, beside in beside_text[:_MOST_EXAMPLES]
    ]


def _paragraph(text: str | None) -> str:
    lines = [line.strip() for line in (text or "").strip().splitlines()]
    return " ".join(line for line in lines if line).replace("``", "`")


def _params(check: type[Check | Step]) -> list[dict[str, Any]]:
    schema = check.Params.model_json_schema(by_alias=True)
    names = spellings(check.Params)
    params = []
    for name, field in check.Params.model_fields.items():
        public_name = field.alias or name
        params.append(
            {
                "name": public_name,
                "also": [also for also in names if names[also] == name and also not in (name, public_name)],
                "type": _type(schema["properties"][public_name]),
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
            "summary": _paragraph(check.__doc__),
            "graded": check.graded,
            "reads": ["completion", *check.traits.reads],
            "params": _params(check),
        }
        for check in checks
    ]


def steps_as_json(steps: Sequence[type[Step]] = STEP_TYPES) -> list[dict[str, Any]]:
    """Return the steps as plain data: name, aliases, the param that stands beside the name, summary, params and examples."""
    return [
        {
            "type": step.name,
            "aliases": list(step.aliases),
            "value": step.shorthand,
            "summary": _paragraph(step.__doc__),
            "list": step.gives_list,
            "params": _params(step),
            "examples": [
                {"step": _written(step, dict(example.params or {})), "text": example.text, "result": example.result}
                for example in step.examples
            ],
        }
        for step in steps
    ]


def _written(step: type[Step], params: dict[str, Any]) -> Any:
    value = params.pop(step.shorthand, None)
    if value is None:
        return {step.name: params} if params else step.name
    return {step.name: value, **params}


def _normalizers_as_json() -> list[dict[str, Any]]:
    no, nothing = {"type": "boolean", "default": False}, {"type": "array", "default": []}
    return [
        {
            "type": name,
            "aliases": [],
            "summary": _paragraph(summary),
            "params": [
                {"name": option, "also": [], "required": False, "description": meaning}
                | (nothing if option.startswith("regexes") else no)
                for option, meaning in options.items()
            ],
        }
        for name, (summary, options) in list_normalizers().items()
    ]


def listing(checks: Sequence[type[Check]] = CHECKS) -> list[dict[str, Any]]:
    """Return all that a spec can name as plain data, each with its ``kind``: check types, groups, scorers, steps and normalizers.

    Scorers are checks of functions, of the row's verifier, and of another spec.
    """
    kinds = {"check": as_json(checks), "group": as_json(GROUPS), "scorer": as_json(SCORERS)}
    kinds |= {"step": steps_as_json(), "normalizer": _normalizers_as_json()}
    return [{"kind": kind, **entry} for kind, entries in kinds.items() for entry in entries]


_TABLES = {
    "check": ("Check types", "| type (alias) | params | scores |"),
    "group": ("Groups", "| type (alias) | params | scores |"),
    "scorer": ("Scorers", "| type (alias) | params | scores |"),
    "step": ("Steps", "| step (alias) | options | gives |"),
    "normalizer": ("Normalizers", "| normalizer | options | makes of a text |"),
}
"""Titles and headers of the tables, by kind."""


def as_markdown(kind: str, checks: Sequence[type[Check]] = CHECKS) -> str:
    """Return the entries of ``listing`` of one kind as a Markdown table."""
    lines = [_TABLES[kind][1], "|---|---|---|"]
    for entry in listing(checks):
        if entry["kind"] == kind:
            names = f"`{entry['type']}`" + "".join(f" (`{alias}`)" for alias in entry["aliases"])
            params = ", ".join(_param(param, beside=entry.get("value")) for param in entry["params"])
            lines.append(f"| {names} | {params} | {entry['summary']} |")
    return "\n".join(lines) + "\n"


def _param(param: dict[str, Any], beside: str | None) -> str:
    default = "" if param["required"] else f" = {json.dumps(param['default'])}"
    aliases = "".join(f" or `{name}`" for name in param["also"])
    return f"`{param['name']}{default}`{aliases}{' beside the name' if param['name'] == beside else ''}"


def listing_as_markdown(checks: Sequence[type[Check]] = CHECKS) -> str:
    """Return ``listing`` as Markdown tables."""
    return "\n".join(f"## {title}\n\n{as_markdown(kind, checks)}" for kind, (title, _) in _TABLES.items())
