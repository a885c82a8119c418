"""The check types. To add one, write one class in one file and add one line here."""

from assay.checks.base import Check, Example, Params, Row
from assay.checks.counts import Case, CountOf
from assay.checks.equality import Choice, Equals, ListEquals
from assay.checks.expectations import TaskExpectations
from assay.checks.json import ExpectedOutputSchema, JsonKeys, JsonValid
from assay.checks.length import MaxLength, MinLength
from assay.checks.numbers import Number, NumberRange
from assay.checks.pattern import Regex
from assay.checks.text import Contains, ContainsAll, ContainsAny, EndsWith, NotContains, StartsWith

__all__ = ["CHECKS", "Check", "Example", "Params", "Row"]

CHECKS: tuple[type[Check], ...] = (
    TaskExpectations,
    Contains,
    NotContains,
    ContainsAny,
    ContainsAll,
    StartsWith,
    EndsWith,
    Regex,
    Equals,
    Number,
    NumberRange,
    Choice,
    ListEquals,
    CountOf,
    Case,
    MinLength,
    MaxLength,
    JsonValid,
    JsonKeys,
    ExpectedOutputSchema,
)
