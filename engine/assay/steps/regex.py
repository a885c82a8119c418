"""Steps for what a pattern matches, and for what is left without it."""

from collections.abc import Mapping
from functools import cached_property, partial
from typing import Any, Literal

import polars as pl
from pydantic import Field, ValidationInfo, field_validator, model_validator

from assay.calls.limits import Limits
from assay.expressions.regex.spans import (
    ANY,
    Extraction,
    ExtractionPlace,
    MatchPlaces,
    Operation,
    Removal,
    groups_of,
    results,
    results_column,
    route_of,
)
from assay.expressions.shared_columns import in_rows_of, nulls
from assay.steps.base import Step, StepExample
from assay.steps.patterns import PatternParams, check_by
from assay.steps.places import PlacedText

RESULT = pl.Struct({"value": pl.String, "error": pl.String})


def operate(operation: Operation, text: str, limits: Limits | None) -> Any:
    """Return the result of an operation on a text, or raise its error."""
    (result,) = results(operation, [text], limits)
    if isinstance(result, Exception):
        raise result
    return result


def operate_on(operation: Operation, limits: Limits | None, texts: pl.Series) -> pl.Series:
    """Return a struct of result and error for each text, without either for null."""
    values, errors = results_column(operation, texts.drop_nulls(), limits)
    answers = pl.DataFrame({"value": values, "error": errors}).to_struct(texts.name)
    return in_rows_of(texts, answers)


def explained(operation: Operation, limits: Limits | None, per: str = "match") -> str:
    """Return which engine finds the matches of a pattern, and why."""
    seconds = (limits or Limits()).regex_timeout
    limit = "no time limit" if seconds is None else f"up to {seconds:g} s of processor time per {per}"
    route = route_of(operation.pattern, operation.lists)
    if per == "match" and route.ascii is not None and not operation.is_exact(route):
        return f"Python's re, in a separate process if it may take long, {limit}: a match that may be empty, or depends on its context"
    return route.why.replace("{limit}", limit)


class RegexStepParams(PatternParams):
    """A pattern, and what to take of its matches."""

    pattern: str = Field(description="A Python regular expression; flags are written inline, as in `(?i)`.")
    group: int | str | None = Field(
        default=None,
        description="Number or name of the group; `any`: the first that is not empty. 1 if there are groups, else 0.",
    )
    at: Literal["first", "last"] = Field(default="first", description="Which of several matches.")

    _compiles = field_validator("pattern")(check_by)

    @model_validator(mode="after")
    def _has_the_group(self) -> "RegexStepParams":
        number, names = groups_of(self.pattern, self.named_lists)
        if isinstance(self.group, int) and not 0 <= self.group <= number:
            raise ValueError(f"the pattern has {number} groups, not {self.group}")
        if isinstance(self.group, str) and self.group != ANY and self.group not in names:
            raise ValueError(
                f"the pattern has no group `{self.group}`; write a number, `any`, or the name of a (?P<name>…)"
            )
        return self


class _PatternStep(Step):
    params: PatternParams

    @property
    def errors(self) -> bool:
        return True

    @property
    def libraries(self) -> Mapping[str, tuple[str, ...]]:
        return self.params.libraries


class RegexStep(_PatternStep):
    """A group of the first or last match of a pattern, by `re.finditer`.

    A group that took no part in the match is nothing found; of `any`, all groups that are empty. A match that takes more than 0.2 s of
    processor time (`--regex-timeout`) or 1 GiB fills `error`. With `flavor: regex`, the pattern is one of the package `regex`.
    """

    name = "regex"
    shorthand = "pattern"
    Params = RegexStepParams
    params: RegexStepParams
    examples = (
        StepExample("A: 3, A: 4", "3", {"pattern": r"A: (\d+)"}),
        StepExample("A: 3, A: 4", "4", {"pattern": r"A: (\d+)", "at": "last"}),
        StepExample("A: 3", "A: 3", {"pattern": r"A: \d+"}),
        StepExample("A: 3", "A: 3", {"pattern": r"A: (\d+)", "group": 0}),
        StepExample("b", "b", {"pattern": "(a)?(b)", "group": "any"}),
        StepExample("b", None, {"pattern": "(a)?(b)"}),
        StepExample("abab", "ab", {"pattern": r"(ab)\1"}),
        StepExample("none", None, {"pattern": r"\d+"}),
        StepExample("the refnd of 5 €", "refnd", {"pattern": "(?:refund){e<=1}", "flavor": "regex"}),
        StepExample(
            "Ann, Bob",
            "Bob",
            {"pattern": r"\L<names>", "at": "last", "flavor": "regex", "lists": {"names": ["Ann", "Bob"]}},
        ),
    )

    @cached_property
    def _operation(self) -> Extraction:
        number, names = groups_of(self.params.pattern, self.params.named_lists)
        group = self.params.group
        if group is None:
            group = min(number, 1)
        elif isinstance(group, str) and group != ANY:
            group = names[group]
        return Extraction(self.params.pattern, group, last=self.params.at == "last", lists=self.params.named_lists)

    def row(self, text: str) -> str | None:
        result: str | None = operate(self._operation, text, self.limits)
        return result

    def placed(self, given: PlacedText) -> PlacedText | None:
        place = operate(ExtractionPlace(**vars(self._operation)), given.text, self.limits)
        return None if place is None else given.cut(*place)

    def expr(self, texts: pl.Expr) -> pl.Expr:
        run = partial(operate_on, self._operation, self.limits)
        return texts.map_batches(run, return_dtype=RESULT, is_elementwise=True)

    def explain(self) -> str:
        return explained(self._operation, self.limits)


class RemoveParams(PatternParams):
    """Patterns."""

    patterns: list[str] = Field(min_length=1, description="Python regular expressions, removed one after the other.")

    @field_validator("patterns", mode="before")
    @classmethod
    def _several(cls, patterns: Any) -> Any:
        return [patterns] if isinstance(patterns, str) else patterns

    @field_validator("patterns")
    @classmethod
    def _compile(cls, patterns: list[str], info: ValidationInfo) -> list[str]:
        return [check_by(pattern, info) for pattern in patterns]


class Remove(_PatternStep):
    """The text without the matches of patterns: `re.sub(pattern, "", text)` for each in turn; with `flavor: regex`, `regex.sub`."""

    name = "remove"
    shorthand = "patterns"
    Params = RemoveParams
    params: RemoveParams
    examples = (
        StepExample("1,234 $", "1234 ", {"patterns": [",", r"\$"]}),
        StepExample("a b  c", "abc", {"patterns": [r"\s+"]}),
        StepExample("aabb", "", {"patterns": ["ab", "ab"]}),
        StepExample("abab", "", {"patterns": [r"(ab)\1"]}),
        StepExample("a👍🏽b", "", {"patterns": [r"\X"], "flavor": "regex"}),
    )

    @cached_property
    def _removals(self) -> list[Removal]:
        return [Removal(pattern, lists=self.params.named_lists) for pattern in self.params.patterns]

    def row(self, text: str) -> str | None:
        for removal in self._removals:
            text = operate(removal, text, self.limits) or ""
        return text

    def placed(self, given: PlacedText) -> PlacedText:
        for removal in self._removals:
            places = operate(MatchPlaces(removal.pattern, lists=removal.lists), given.text, self.limits)
            given = given.replaced(places, "")
        return given

    def expr(self, texts: pl.Expr) -> pl.Expr:
        return texts.map_batches(self._column, return_dtype=RESULT, is_elementwise=True)

    def _column(self, series: pl.Series) -> pl.Series:
        error = nulls(series, pl.String)
        for removal in self._removals:
            results = operate_on(removal, self.limits, series)
            series, latest = results.struct.field("value"), results.struct.field("error")
            error = error.zip_with(error.is_not_null(), latest)
        return pl.DataFrame({"value": series, "error": error}).to_struct(series.name)

    def explain(self) -> str:
        return "; ".join(dict.fromkeys(explained(removal, self.limits) for removal in self._removals))
