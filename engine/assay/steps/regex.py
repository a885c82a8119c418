"""Steps for what a pattern matches, and for what is left without it."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar, Literal

import polars as pl
from pydantic import Field, ValidationInfo, field_validator, model_validator

from assay.calls.limits import Limits
from assay.errors import quoted
from assay.expressions.lane import nulls
from assay.expressions.regex.flavors import FLAVOR, LISTS, PACKAGE, named_lists
from assay.expressions.regex.search import check_pattern
from assay.expressions.regex.spans import (
    ANY,
    Extraction,
    Operation,
    Removal,
    groups_of,
    results,
    results_column,
    route_of,
)
from assay.steps.base import Step, StepExample
from assay.values.params import Params

_RESULT = pl.Struct({"value": pl.String, "error": pl.String})


def _row(operation: Operation, text: str, limits: Limits | None) -> str | None:
    (result,) = results(operation, [text], limits)
    if isinstance(result, Exception):
        raise result
    return result


def _column(operation: Operation, series: pl.Series, limits: Limits | None) -> pl.Series:
    """Return a struct of result and error for each text, without either for null."""
    if series.null_count() == len(series):
        return pl.DataFrame({"value": nulls(series, pl.String), "error": nulls(series, pl.String)}).to_struct(
            series.name
        )
    known = series.is_not_null()
    columns = [
        column.alias(name)
        for column, name in zip(results_column(operation, series.drop_nulls(), limits), ("value", "error"), strict=True)
    ]
    frame = pl.DataFrame(columns)
    if series.null_count():
        at = known.cast(pl.UInt32).cum_sum() - 1
        frame = frame.select_seq(pl.all().gather(at.set(~known, None)))
    return frame.to_struct(series.name)


def _explained(operation: Operation, limits: Limits | None) -> str:
    seconds = (limits or Limits()).regex_timeout
    limit = "no time limit" if seconds is None else f"up to {seconds:g} s of processor time per match"
    route = route_of(operation.pattern, operation.lists)
    if route.ascii is not None and not operation.is_exact(route):
        return f"Python's re, in a separate process if it may take long, {limit}: a match that may be empty, or depends on its context"
    return route.why.replace("{limit}", limit)


def check_by(pattern: str, info: ValidationInfo) -> None:
    """Check a pattern of ``PatternParams`` by its flavor; one that cannot be used is a problem of its own.

    Raises:
        re.error: It does not compile; other exceptions of ``compile`` are raised, too.
    """
    if {"flavor", "lists"} <= info.data.keys():
        check_pattern(pattern, named_lists(info.data["flavor"], info.data["lists"]))


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
        """See the function of this name."""
        return named_lists(self.flavor, self.lists)

    @property
    def libraries(self) -> dict[str, tuple[str, ...]]:
        """As ``Check.libraries``."""
        return {PACKAGE: ()} if self.flavor == PACKAGE else {}


class RegexParams(PatternParams):
    """A pattern, and what to take of its matches."""

    pattern: str = Field(description="A Python regular expression; flags are written inline, as in `(?i)`.")
    group: int | str | None = Field(
        default=None,
        description="Number or name of the group; `any`: the first that is not empty. 1 if there are groups, else 0.",
    )
    at: Literal["first", "last"] = Field(default="first", description="Which of several matches.")

    @field_validator("pattern")
    @classmethod
    def _compiles(cls, pattern: str, info: ValidationInfo) -> str:
        check_by(pattern, info)
        return pattern

    @model_validator(mode="after")
    def _has_the_group(self) -> "RegexParams":
        number, names = groups_of(self.pattern, self.named_lists)
        if isinstance(self.group, int) and not 0 <= self.group <= number:
            raise ValueError(f"the pattern has {number} groups, not {self.group}")
        if isinstance(self.group, str) and self.group != ANY and self.group not in names:
            raise ValueError(
                f"the pattern has no group `{self.group}`; write a number, `any`, or the name of a (?P<name>…)"
            )
        return self


class Regex(Step):
    """A group of the first or last match of a pattern, by `re.finditer`.

    A group that took no part in the match is nothing found; of `any`, all groups that are empty. A match that takes more than 0.2 s of
    processor time (`--regex-timeout`) or 1 GiB fills `error`. With `flavor: regex`, the pattern is one of the package `regex`.
    """

    name = "regex"
    shorthand = "pattern"
    Params = RegexParams
    params: RegexParams
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

    @property
    def errors(self) -> bool:
        return True

    @property
    def libraries(self) -> Mapping[str, tuple[str, ...]]:
        return self.params.libraries

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
        return _row(self._operation, text, self.limits)

    def expr(self, texts: pl.Expr) -> pl.Expr:
        operation = self._operation
        return texts.map_batches(
            lambda series: _column(operation, series, self.limits), return_dtype=_RESULT, is_elementwise=True
        )

    def explain(self) -> str:
        return _explained(self._operation, self.limits)

    def describe(self) -> str:
        return f"the {self.params.at} match of {quoted(self.params.pattern)}"


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
        for pattern in patterns:
            check_by(pattern, info)
        return patterns


class Remove(Step):
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

    @property
    def errors(self) -> bool:
        return True

    @property
    def libraries(self) -> Mapping[str, tuple[str, ...]]:
        return self.params.libraries

    @cached_property
    def _removals(self) -> list[Removal]:
        return [Removal(pattern, self.params.named_lists) for pattern in self.params.patterns]

    def row(self, text: str) -> str | None:
        for removal in self._removals:
            text = _row(removal, text, self.limits) or ""
        return text

    def expr(self, texts: pl.Expr) -> pl.Expr:
        return texts.map_batches(self._column, return_dtype=_RESULT, is_elementwise=True)

    def _column(self, series: pl.Series) -> pl.Series:
        error = nulls(series, pl.String)
        for removal in self._removals:
            results = _column(removal, series, self.limits)
            series, latest = results.struct.field("value"), results.struct.field("error")
            error = error.zip_with(error.is_not_null(), latest)
        return pl.DataFrame({"value": series, "error": error}).to_struct(series.name)

    def explain(self) -> str:
        return "; ".join(dict.fromkeys(_explained(removal, self.limits) for removal in self._removals))

    def describe(self) -> str:
        return f"without {', '.join(map(quoted, self.params.patterns))}"
