"""The check type tool_valid: calls of functions that exist, with arguments that their schemas accept."""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from pydantic import Field, field_validator

from assay.checks.base import Example
from assay.checks.tools.base import CallsCheck, CallsParams
from assay.checks.tools.docs import TOOLS, function_docs
from assay.checks.tools.golds import LONGEST_KNOWN
from assay.checks.tools.shown import listed_names, name_text, shown
from assay.errors import printable
from assay.expressions.json import loads
from assay.steps.tool_calls.calls import Call

__all__ = ["ToolValid", "ToolValidParams"]

_TYPES = {"dict": "object", "float": "number", "tuple": "array"}
"""Types of BFCL and what JSON Schema calls them."""
_ANY = "any"
_DATA = frozenset(("enum", "const", "default", "examples"))
"""Keywords with values, not schemas."""
_SHOWN = 200
"""Maximum characters of what a validator says."""
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
            _validator(schema)
        return tools


class ToolValid(CallsCheck):
    """Every call names a function of ``tools`` and has arguments that its JSON Schema accepts; without calls 1.0."""

    type = "tool_valid"
    graded = False
    gold = "tools"
    Params = ToolValidParams
    params: ToolValidParams
    examples = (
        Example('[{"name": "weather", "arguments": {"days": 2}}]', 1.0, {"tools": _TOOLS}),
        Example('[{"name": "weather", "arguments": {"days": "two"}}]', 0.0, {"tools": _TOOLS}),
        Example('[{"name": "time", "arguments": {}}]', 0.0, {"tools": _TOOLS}),
        Example("[]", 1.0, {"tools": _TOOLS}),
    )

    @classmethod
    def row_params(cls, given: Mapping[str, Any]) -> Mapping[str, str]:
        del given
        return {TOOLS: TOOLS}

    def prepared(self, gold: Any) -> dict[str, Any]:
        validators: dict[str, Any] = {}
        for name, schema in function_docs(gold).items():
            validators.setdefault(self.same_name(name), _validator(schema))
        return validators

    def judge_calls(self, calls: list[Call], gold: dict[str, Any]) -> tuple[float, str]:
        for at, call in enumerate(calls):
            place = f"call {at + 1}, {name_text(call['name'])}" if len(calls) > 1 else name_text(call["name"])
            name, arguments = self.same_name(call["name"]), call["arguments"]
            if not isinstance(name, str) or name not in gold:
                return 0.0, f"{place}: no such function; there is {listed_names([*gold]) or 'none'}"
            if not isinstance(arguments, dict):
                return 0.0, f"{place}: its arguments are no JSON object: {shown(arguments)}"
            error = next(gold[name].iter_errors(arguments), None)
            if error is not None:
                return 0.0, f"{place}: {_words(error)}"
        return 1.0, ""

    def claim(self) -> str:
        return "makes valid calls only"


def _words(error: Any) -> str:
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.instance_path).lstrip(".")
    words = f"{path}: {error.message}" if path else str(error.message)
    return printable(words if len(words) <= _SHOWN else words[: _SHOWN - 1] + "…")


def _validator(schema: Mapping[str, Any]) -> Any:
    """Return the validator of a schema.

    Raises:
        ValueError: The schema is none.
    """
    text = json.dumps(schema, default=str)
    return _known_validator(text) if len(text) <= LONGEST_KNOWN else _new_validator(schema)


@lru_cache(maxsize=1024)
def _known_validator(text: str) -> Any:
    return _new_validator(loads(text))


def _new_validator(schema: Mapping[str, Any]) -> Any:
    import jsonschema_rs  # slow to import

    return jsonschema_rs.validator_for(_as_json_schema(schema), offline=True)


def _as_json_schema(schema: Mapping[str, Any]) -> Any:
    """Return a schema with the types of JSON Schema: BFCL has Python's, Gemini writes them in capitals."""
    copied = json.loads(json.dumps(schema, default=str))
    stack = [(copied, False)]
    while stack:
        value, is_properties = stack.pop()
        if isinstance(value, list):
            stack += [(inner, False) for inner in value]
        elif isinstance(value, dict):
            if not is_properties:
                _translate_type(value)
            names = value.keys() if is_properties else value.keys() - _DATA
            stack += [(value[name], name == "properties" and not is_properties) for name in names]
    return copied


def _translate_type(schema: dict[str, Any]) -> None:
    kind = schema.get("type")
    if isinstance(kind, str):
        schema["type"] = _TYPES.get(kind.lower(), kind.lower())
        if schema["type"] == _ANY:
            del schema["type"]
