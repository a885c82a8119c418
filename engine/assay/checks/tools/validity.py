"""The check type tool_valid: calls of functions that exist, with arguments that their schemas accept."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic import Field, field_validator

from assay.checks.base import Example, Traits
from assay.checks.json.schemas import Schema, compiled, json_value
from assay.checks.tools.base import CallsCheck, CallsParams
from assay.checks.tools.equality import listed_names, name_text, shown
from assay.checks.tools.golds import CACHE_BYTES, TOOLS, bytes_of, function_docs
from assay.steps.tool_calls.calls import Call
from assay.system.cache import cached_within
from assay.values.references import as_list

_TYPES = {"dict": "object", "float": "number", "tuple": "array"}
"""Types of BFCL and what JSON Schema calls them."""
_ANY = "any"
_DATA = frozenset(("enum", "const", "default", "examples"))
"""Keywords with values, not schemas."""
_TOOLS = [{"name": "weather", "parameters": {"properties": {"days": {"type": "integer"}}, "required": ["days"]}}]


class ToolValidParams(CallsParams):
    """The functions that may be called."""

    tools: Any = Field(
        default=None,
        description="The functions and their parameters, in the form of OpenAI, Anthropic, Gemini or BFCL; if not given, the "
        "column `tools`.",
    )

    @field_validator("tools")
    @classmethod
    def _readable(cls, tools: Any) -> Any:
        for schema in function_docs(tools).values() if tools is not None else ():
            _compiled(schema)
        return tools


class ToolValid(CallsCheck):
    """Every call names a function of ``tools`` and has arguments that its JSON Schema accepts; without calls 1.0."""

    type = "tool_valid"
    words = ("makes valid calls only", "")
    graded = False
    golds = replace(CallsCheck.golds, param="tools", from_rows=lambda _: {TOOLS: TOOLS})
    traits = Traits(libraries={"jsonschema-rs": ()})
    Params = ToolValidParams
    params: ToolValidParams
    examples = (
        Example('[{"name": "weather", "arguments": {"days": 2}}]', 1.0, {"tools": _TOOLS}),
        Example('[{"name": "weather", "arguments": {"days": "two"}}]', 0.0, {"tools": _TOOLS}),
        Example('[{"name": "time", "arguments": {}}]', 0.0, {"tools": _TOOLS}),
        Example("[]", 1.0, {"tools": _TOOLS}),
    )

    def prepared(self, gold: Any) -> dict[str, Schema]:
        schemas: dict[str, Schema] = {}
        for name, schema in function_docs(gold).items():
            schemas.setdefault(self.same_name(name), _compiled(schema))
        return schemas

    def judge_calls(self, calls: list[Call], gold: dict[str, Schema]) -> tuple[float, str]:
        for at, call in enumerate(calls):
            place = f"call {at + 1}, {name_text(call['name'])}" if len(calls) > 1 else name_text(call["name"])
            name, arguments = self.same_name(call["name"]), call["arguments"]
            if not isinstance(name, str) or name not in gold:
                return 0.0, f"{place}: no such function; there is {listed_names([*gold]) or 'none'}"
            if not isinstance(arguments, dict):
                return 0.0, f"{place}: its arguments are no JSON object: {shown(arguments)}"
            text = json.dumps(arguments, ensure_ascii=False)
            if reason := gold[name].reason(json_value(text), text):
                return 0.0, f"{place}: {reason}"
        return 1.0, ""


def _compiled(schema: Mapping[str, Any]) -> Schema:
    text = json.dumps(schema, default=str)
    found = compiled(_json_schema_text(text), False)
    if found.problem:
        raise ValueError(found.problem)
    return found


@cached_within(CACHE_BYTES, bytes_of)
def _json_schema_text(text: str) -> str:
    schema = json.loads(text)
    stack = [(schema, False)]
    while stack:
        value, is_properties = stack.pop()
        if isinstance(value, list):
            stack += [(inner, False) for inner in value]
        elif isinstance(value, dict):
            kind = None if is_properties else value.get("type")
            given = as_list(kind)
            kinds = [_TYPES.get(item.lower(), item.lower()) for item in given if isinstance(item, str)]
            if _ANY in kinds and len(kinds) == len(given):
                del value["type"]
            elif len(kinds) == len(given):
                value["type"] = kinds if isinstance(kind, list) else kinds[0]
            names = value.keys() if is_properties else value.keys() - _DATA
            stack += [(value[name], name == "properties" and not is_properties) for name in names]
    return json.dumps(schema)
