"""Params of checks and steps: plain data, read strictly."""

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

__all__ = ["Params", "canonical", "spellings"]


class Params(BaseModel):
    """Base class of a check's params: no unknown fields, camelCase and snake_case names, no conversion of values."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, alias_generator=to_camel, populate_by_name=True)

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
