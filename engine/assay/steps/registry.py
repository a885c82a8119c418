"""The steps by name, each imported when it is used. To add one, write a class, and add a line here."""

from collections.abc import Mapping
from typing import Any

from assay.steps.base import Step
from assay.values.params import ImportedWhenUsed, both_cases

_MODULES = {
    "afterThink": "parts:AfterThink",
    "strip_think": "parts:AfterThink",
    "think": "parts:Think",
    "tag": "parts:Tag",
    "boxed": "parts:Boxed",
    "after": "parts:After",
    "number": "numbers:NumberStep",
    "numbers": "numbers:Numbers",
    "choice": "choices:ChoiceStep",
    "fence": "parts:Fence",
    "json": "parts:Json",
    "line": "parts:Line",
    "regex": "regex:RegexStep",
    "lower": "transforms:Lower",
    "upper": "transforms:Upper",
    "strip": "transforms:Strip",
    "trim": "transforms:Trim",
    "tail": "transforms:Tail",
    "remove": "regex:Remove",
    "replace": "transforms:Replace",
    "map": "transforms:Map",
    "normalize": "transforms:Normalize",
    "casefold": "transforms:Casefold",
    "nfc": "transforms:Nfc",
    "nfkc": "transforms:Nfkc",
    "whitespace": "transforms:Whitespace",
    "split": "choices:Split",
    "firstOf": "first_of:FirstOf",
}


STEPS: Mapping[str, type[Step]] = ImportedWhenUsed(
    "assay.steps", {spelling: place for name, place in _MODULES.items() for spelling in both_cases(name)}
)
"""The steps by every name that specs may use: names and aliases, in camelCase and snake_case."""

STEP_TYPES: tuple[type[Step], ...]
"""All of them, in the order of the documentation; whoever asks for it imports them all."""


def __getattr__(name: str) -> Any:
    if name != "STEP_TYPES":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()["STEP_TYPES"] = tuple(dict.fromkeys(STEPS.values()))
    return globals()["STEP_TYPES"]
