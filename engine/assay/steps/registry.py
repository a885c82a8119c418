"""The steps by name, each imported when it is used. To add one, write a class, and add a line here."""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

from assay.steps.base import Step
from assay.values.params import both_cases

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


class _Steps(Mapping[str, type[Step]]):
    def __init__(self) -> None:
        self._places = {spelling: place for name, place in _MODULES.items() for spelling in both_cases(name)}

    def __getitem__(self, name: str) -> type[Step]:
        module, _, attribute = self._places[name].partition(":")
        step: type[Step] = getattr(import_module(f"assay.steps.{module}"), attribute)
        return step

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, name: object) -> bool:
        return name in self._places  # without an import


STEPS: Mapping[str, type[Step]] = _Steps()
"""The steps by every name that specs may use: names and aliases, in camelCase and snake_case."""

STEP_TYPES: tuple[type[Step], ...]
"""All of them, in the order of the documentation; whoever asks for it imports them all."""


def __getattr__(name: str) -> Any:
    if name != "STEP_TYPES":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()["STEP_TYPES"] = tuple(dict.fromkeys(STEPS.values()))
    return globals()["STEP_TYPES"]
