"""Params of checks and steps that take patterns: whose patterns they are."""

from functools import cached_property
from typing import ClassVar, Literal

from pydantic import Field, ValidationInfo, field_validator

from assay.expressions.regex.flavors import FLAVOR, LISTS, PACKAGE, named_lists
from assay.expressions.regex.search import check_pattern
from assay.values.params import Params


def check_by(pattern: str, info: ValidationInfo) -> str:
    """Return a pattern of ``PatternParams`` that its flavor accepts; one that cannot be used is a problem of its own, raised by ``re``."""
    if {"flavor", "lists"} <= info.data.keys():
        check_pattern(pattern, named_lists(info.data["flavor"], info.data["lists"]))
    return pattern


class PatternParams(Params):
    """Whose patterns they are; the fields stand before the patterns, which are checked by them."""

    flavor: Literal["re", "regex"] = Field(default="re", description=FLAVOR)
    lists: dict[str, list[str]] = Field(default={}, description=LISTS)

    later: ClassVar[frozenset[str]] = frozenset({"flavor", "lists"})

    @field_validator("lists")
    @classmethod
    def _usable(cls, lists: dict[str, list[str]], info: ValidationInfo) -> dict[str, list[str]]:
        named_lists(info.data.get("flavor", PACKAGE), lists)
        return lists

    @cached_property
    def named_lists(self) -> str:
        return named_lists(self.flavor, self.lists)

    @property
    def libraries(self) -> dict[str, tuple[str, ...]]:
        """As ``Traits.libraries``."""
        return {PACKAGE: ()} if self.flavor == PACKAGE else {}
