"""The steps by name."""

from collections.abc import Iterable

from assay.steps.base import Step
from assay.steps.choices import Choice, Split
from assay.steps.first_of import FirstOf
from assay.steps.numbers import Number, Numbers
from assay.steps.parts import After, AfterThink, Boxed, Fence, Json, Line, Tag, Think
from assay.steps.regex import Regex, Remove
from assay.steps.transforms import Casefold, Lower, Map, Nfc, Nfkc, Normalize, Replace, Strip, Upper, Whitespace
from assay.values.params import both_cases

STEP_TYPES: tuple[type[Step], ...] = (
    *(AfterThink, Think, Tag, Boxed, After, Number, Numbers, Choice, Fence, Json, Line, Regex),
    *(Lower, Upper, Strip, Remove, Replace, Map, Normalize, Casefold, Nfc, Nfkc, Whitespace, Split),
    FirstOf,
)
"""All steps, in the order of the documentation."""


def by_name(types: Iterable[type[Step]]) -> dict[str, type[Step]]:
    """Map every name that specs may use for a step to its class: names and aliases, in camelCase and snake_case."""
    return {spelling: step for step in types for name in (step.name, *step.aliases) for spelling in both_cases(name)}


STEPS = by_name(STEP_TYPES)
"""The steps by every name that specs may use."""
