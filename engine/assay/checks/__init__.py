"""The check types. To add one, write one class in one file and add one line here."""

from assay.checks.base import Check, Example, Params, Row
from assay.checks.expectations import TaskExpectations
from assay.checks.json import ExpectedOutputSchema, JsonKeys, JsonValid
from assay.checks.length import MaxLength, MinLength
from assay.checks.pattern import Regex
from assay.checks.text import Contains, Equals, NotContains

__all__ = ["CHECKS", "Check", "Example", "Params", "Row"]

CHECKS: tuple[type[Check], ...] = (
    TaskExpectations,
    Contains,
    NotContains,
    Regex,
    Equals,
    MinLength,
    MaxLength,
    JsonValid,
    JsonKeys,
    ExpectedOutputSchema,
)
