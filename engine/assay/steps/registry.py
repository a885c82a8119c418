"""The steps by name."""

import re
from collections.abc import Iterable

from assay.steps.base import Step
from assay.steps.blocks import Boxed, Fence
from assay.steps.choices import Choice, Split
from assay.steps.first_of import FirstOf
from assay.steps.json import Json
from assay.steps.marks import After, Line
from assay.steps.numbers import Number, Numbers
from assay.steps.regex import Regex, Remove
from assay.steps.tags import AfterThink, Tag, Think
from assay.steps.transforms import Lower, Map, Normalize, Replace, Strip, Upper

__all__ = ["STEPS", "STEP_TYPES", "by_name", "snake_case"]

STEP_TYPES: tuple[type[Step], ...] = (
    *(AfterThink, Think, Tag, Boxed, After, Number, Numbers, Choice, Fence, Json, Line, Regex),
    *(Lower, Upper, Strip, Remove, Replace, Map, Normalize, Split),
    FirstOf,
)
"""All steps, in the order of the documentation."""

_HUMP = re.compile(r"(?<=[a-z0-9])([A-Z])")


def snake_case(name: str) -> str:
    """Return the other spelling of a camelCase name."""
    return _HUMP.sub(lambda match: "_" + match.group(1).lower(), name)


def by_name(types: Iterable[type[Step]]) -> dict[str, type[Step]]:
    """Map every name that specs may use for a step to its class: names and aliases, in camelCase and snake_case."""
    return {
        spelling: step for step in types for name in (step.name, *step.aliases) for spelling in (name, snake_case(name))
    }


STEPS = by_name(STEP_TYPES)
"""The steps by every name that specs may use."""
