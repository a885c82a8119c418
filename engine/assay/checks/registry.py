"""The check types. To add one, write one class in one file and add one line here."""

from assay.checks.base import Check
from assay.checks.expectations.check import TaskExpectations
from assay.checks.instructions.check import IFEval
from assay.checks.instructions.language import Language
from assay.checks.json.keys import ExpectedOutputSchema, JsonKeys, JsonValid
from assay.checks.json.match import JsonMatch
from assay.checks.json.schema import JsonSchema
from assay.checks.mathematics.equality import Math
from assay.checks.similarity.check import Similarity
from assay.checks.text.counts import Case, CountOf
from assay.checks.text.equality import Choice, Equals, ListEquals
from assay.checks.text.length import MaxLength, MinLength
from assay.checks.text.length_penalty import LengthPenalty
from assay.checks.text.numbers import Number, NumberRange
from assay.checks.text.pattern import Regex
from assay.checks.text.phrases import Contains, ContainsAll, ContainsAny, EndsWith, NotContains, StartsWith
from assay.checks.text.repetition import Repetition
from assay.checks.tools.names import ToolF1, ToolTrajectory
from assay.checks.tools.tool_calls import ToolCalls
from assay.checks.tools.validity import ToolValid

__all__ = ["CHECKS"]

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
    Math,
    Similarity,
    CountOf,
    Case,
    MinLength,
    MaxLength,
    LengthPenalty,
    Repetition,
    Language,
    IFEval,
    JsonValid,
    JsonKeys,
    JsonSchema,
    JsonMatch,
    ExpectedOutputSchema,
    ToolCalls,
    ToolTrajectory,
    ToolF1,
    ToolValid,
)
