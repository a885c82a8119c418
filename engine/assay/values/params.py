"""Params of checks and steps: plain data, read strictly."""

import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, ClassVar, TypeVar, get_args, get_origin

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from assay.errors import quoted

EXPECTED = {
    "string": "a string",
    "bool": "true or false",
    "list": "a list",
    "int": "a number",
    "float": "a number",
    "dict": "an object",
}
"""What a value should be, by what pydantic calls the kind."""
_T = TypeVar("_T")
_HUMP = re.compile(r"(?<=[a-z0-9])([A-Z])")


def snake_case(name: str) -> str:
    """Return a camelCase name in snake_case; digits stay with the word before them."""
    return _HUMP.sub(lambda match: "_" + match[1].lower(), name)


def both_cases(name: str) -> tuple[str, str]:
    """Return the two spellings of a name that specs may use, given the one in camelCase; they may be the same."""
    return name, snake_case(name)


class UnfitValueError(ValueError):
    """A text that a param cannot be."""

    def __init__(self, value: str, fault: str) -> None:
        super().__init__(f"{quoted(value)} is {fault}")
        self.fault = fault


class Params(BaseModel):
    """Base class of a check's params: no unknown fields, camelCase and snake_case names, no conversion of values."""

    # NOTE: a run has few of them, so that they are built when they are used
    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        alias_generator=to_camel,
        populate_by_name=True,
        defer_build=True,
    )

    spellings: ClassVar[Mapping[str, str]] = {}
    """Other names of a field: ``{"text": "value"}``."""

    later: ClassVar[frozenset[str]] = frozenset()
    """Fields that the type did not always have: not written while they have their default, so that a spec keeps its hash."""


def canonical(params: BaseModel) -> dict[str, Any]:
    """Return params as plain JSON data, under their public names, with all defaults except those of ``later`` fields."""
    fields = type(params).model_fields
    left_out = {name for name in getattr(params, "later", ()) if getattr(params, name) == fields[name].default}
    return params.model_dump(mode="json", by_alias=True, exclude=left_out)


def spellings(params: type[Params]) -> dict[str, str]:
    """Map every name that specs may use for a param to its field."""
    fields = params.model_fields
    names = {name: name for name in fields} | {field.alias or name: name for name, field in fields.items()}
    return names | dict(params.spellings)


def takes_objects(params: type[Params], name: str) -> bool:
    """Return whether the value of a param may be an object, or have objects in it."""
    return name in params.model_fields and _may_hold_objects(params.model_fields[name].annotation)


def _may_hold_objects(kind: Any) -> bool:
    if kind is Any or get_origin(kind) in (dict, Mapping):
        return True
    if isinstance(kind, type) and issubclass(kind, dict | BaseModel):
        return True
    return any(map(_may_hold_objects, get_args(kind)))


class ImportedWhenUsed(Mapping[str, _T]):
    """The classes of a package by name, each imported when it is looked up.

    Args:
        package: The package.
        places: Module and class of each name: ``parts:Tag``.
    """

    def __init__(self, package: str, places: Mapping[str, str]) -> None:
        self._package, self._places = package, places

    def __getitem__(self, name: str) -> _T:
        module, _, attribute = self._places[name].partition(":")
        imported: _T = getattr(import_module(f"{self._package}.{module}"), attribute)
        return imported

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, name: object) -> bool:
        return name in self._places  # without an import
