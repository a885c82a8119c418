"""Params of checks and steps: plain data, read strictly."""

from collections.abc import Mapping
from typing import ClassVar

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

__all__ = ["Params"]


class Params(BaseModel):
    """Base class of a check's params: no unknown fields, camelCase and snake_case names, no conversion of values."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, alias_generator=to_camel, populate_by_name=True)

    spellings: ClassVar[Mapping[str, str]] = {}
    """Other names of a field: ``{"text": "value"}``."""
