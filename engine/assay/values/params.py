"""Params of checks and steps: plain data, read strictly."""

from collections.abc import Mapping
from typing import ClassVar

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

__all__ = ["Params", "spellings"]


class Params(BaseModel):
    """Base class of a check's params: no unknown fields, camelCase and snake_case names, no conversion of values."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, alias_generator=to_camel, populate_by_name=True)

    spellings: ClassVar[Mapping[str, str]] = {}
    """Other names of a field: ``{"text": "value"}``."""


def spellings(params: type[Params]) -> dict[str, str]:
    """Map every name that specs may use for a param to its field."""
    fields = params.model_fields
    names = {name: name for name in fields} | {field.alias or name: name for name, field in fields.items()}
    return names | dict(params.spellings)
