"""The check types, each imported when it is used. To add one, write one class in one file and add one line here."""

from collections.abc import Mapping
from typing import Any

from assay.checks.base import Check
from assay.values.params import ImportedWhenUsed

_CLASSES = {
    "task_expectations": "expectations:TaskExpectations",
    "contains": "text.phrases:Contains",
    "must_contain": "text.phrases:Contains",
    "not_contains": "text.phrases:NotContains",
    "must_not_contain": "text.phrases:NotContains",
    "contains_any": "text.phrases:ContainsAny",
    "contains_all": "text.phrases:ContainsAll",
    "starts_with": "text.phrases:StartsWith",
    "ends_with": "text.phrases:EndsWith",
    "regex": "text.pattern:Regex",
    "equals": "text.equality:Equals",
    "exact_match": "text.equality:Equals",
    "number": "text.numbers:Number",
    "numeric": "text.numbers:Number",
    "number_range": "text.numbers:NumberRange",
    "choice": "text.equality:Choice",
    "list_equals": "text.equality:ListEquals",
    "math": "mathematics.equality:Math",
    "similarity": "similarity.check:Similarity",
    "count": "text.counts:CountOf",
    "case": "text.counts:Case",
    "min_length": "text.length:MinLength",
    "max_length": "text.length:MaxLength",
    "length_penalty": "text.length_penalty:LengthPenalty",
    "repetition": "text.repetition:Repetition",
    "language": "instructions.check:Language",
    "ifeval": "instructions.check:IFEval",
    "json_valid": "json.keys:JsonValid",
    "json_keys": "json.keys:JsonKeys",
    "json_schema": "json.schema:JsonSchema",
    "json_match": "json.match:JsonMatch",
    "expected_output_schema": "json.keys:ExpectedOutputSchema",
    "tool_calls": "tools.tool_calls:ToolCalls",
    "tool_trajectory": "tools.names:ToolTrajectory",
    "tool_f1": "tools.names:ToolF1",
    "tool_valid": "tools.validity:ToolValid",
}


BUILTIN: Mapping[str, type[Check]] = ImportedWhenUsed("assay.checks", _CLASSES)
"""The check types of Assay by every name that specs may use; a class is imported when it is looked up."""

CHECKS: tuple[type[Check], ...]
"""All of them, in the order of the documentation; whoever asks for it imports them all."""


def __getattr__(name: str) -> Any:
    if name != "CHECKS":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()["CHECKS"] = tuple(dict.fromkeys(BUILTIN.values()))
    return globals()["CHECKS"]
