"""Steps for thoughts and tags."""

from collections.abc import Callable
from functools import partial
from typing import Literal

import polars as pl
from pydantic import Field, field_validator

from assay.expressions.lane import rowwise
from assay.expressions.parts import by_columns, by_slices, filled, holds, split_at, stripped
from assay.expressions.tags import Tag as TagText
from assay.steps.base import Step, StepExample
from assay.values.params import Params

_OPEN, _CLOSE = "<think>", "</think>"


class AfterThinkParams(Params):
    """What a text without thoughts gives."""

    strict: bool = Field(default=False, description="Whether a text without `</think>` has no answer.")


class AfterThink(Step):
    """The text after the last `</think>`, stripped.

    A text without `</think>` stays as it is, unless `<think>` occurs: then the thoughts were cut off, and there is no answer.
    """

    name = "afterThink"
    aliases = ("strip_think",)
    Params = AfterThinkParams
    params: AfterThinkParams
    examples = (
        StepExample("<think>2 + 2</think>\n4\n", "4"),
        StepExample("a</think>b</think>c", "c"),
        StepExample("<think>4</think>", ""),
        StepExample(" 4", " 4"),
        StepExample("<think>2 +", None),
        StepExample("4", None, {"strict": True}),
    )

    def row(self, text: str) -> str | None:
        _, close, rest = text.rpartition(_CLOSE)
        if close:
            return rest.strip()
        return None if self.params.strict or _OPEN in text else text

    def expr(self, texts: pl.Expr) -> pl.Expr:
        return by_columns(texts, self.row, partial(by_slices, column=self._column))

    def _column(self, texts: pl.Series) -> pl.Series:
        closed = holds(texts, _CLOSE)
        _, rest = split_at(texts.filter(closed), _CLOSE, last=True)
        after = filled(texts, closed, stripped(rest))
        if self.params.strict or closed.all():
            return after
        whole = ~closed & ~holds(texts, _OPEN)
        return texts.zip_with(whole, after)

    def describe(self) -> str:
        return "the text after the thoughts"


class Think(Step):
    """The text from the first `<think>` to the last `</think>`, stripped; nothing if one of them is missing."""

    name = "think"
    examples = (
        StepExample("<think> 2 + 2 </think>4", "2 + 2"),
        StepExample("<think>a</think>b<think>c</think>", "a</think>b<think>c"),
        StepExample("<think></think>4", ""),
        StepExample("2 + 2</think>4", None),
        StepExample("</think><think>2", None),
        StepExample("<think>2 +", None),
    )

    def row(self, text: str) -> str | None:
        _, opened, rest = text.partition(_OPEN)
        thoughts, closed, _ = rest.rpartition(_CLOSE)
        return thoughts.strip() if opened and closed else None

    def expr(self, texts: pl.Expr) -> pl.Expr:
        return by_columns(texts, self.row, partial(by_slices, column=_think_column))

    def describe(self) -> str:
        return "the thoughts"


def _think_column(texts: pl.Series) -> pl.Series:
    opened = holds(texts, _OPEN)
    _, rest = split_at(texts.filter(opened), _OPEN, last=False)
    closed = holds(rest, _CLOSE)
    thoughts, _ = split_at(rest.filter(closed), _CLOSE, last=True)
    return filled(texts, opened, filled(rest, closed, stripped(thoughts)))


class TagParams(Params):
    """Which tag."""

    name: str = Field(min_length=1, description="The tag's name, without brackets.")
    at: Literal["last", "first"] = Field(default="last", description="Which of several.")

    @field_validator("name")
    @classmethod
    def _is_linear(cls, name: str) -> str:
        if not TagText(name).is_linear:
            raise ValueError("a tag has no groups, alternatives and repeats in its name; use `regex`")
        return name


class Tag(Step):
    """The text between a tag and the next closing one, stripped: `<answer> 4 </answer>`."""

    name = "tag"
    shorthand = "name"
    Params = TagParams
    params: TagParams
    examples = (
        StepExample("<answer> 4 </answer>", "4", {"name": "answer"}),
        StepExample("<a>1</a> <a>2</a> <a>3", "2", {"name": "a"}),
        StepExample("<a>1</a> <a>2</a>", "1", {"name": "a", "at": "first"}),
        StepExample("<a><a>1</a></a>", "<a>1", {"name": "a"}),
        StepExample("<a>1", None, {"name": "a"}),
        StepExample("</a><a>1", None, {"name": "a", "at": "first"}),
    )

    def row(self, text: str) -> str | None:
        return TagText(self.params.name).find(text, strip=True, last=self.params.at == "last")

    def expr(self, texts: pl.Expr) -> pl.Expr:
        tag = TagText(self.params.name)
        if tag.marks is None:
            return rowwise(texts, self._finder(tag), pl.String)
        return by_columns(texts, self._finder(tag), partial(by_slices, column=self._column))

    def _column(self, texts: pl.Series) -> pl.Series:
        tag = TagText(self.params.name)
        start, end = tag.marks or ("", "")
        opened = holds(texts, start)
        _, rest = split_at(texts.filter(opened), start, last=False)
        closed = holds(rest, end)
        content, _ = split_at(rest.filter(closed), end, last=False)
        results = filled(rest, closed, stripped(content))
        if self.params.at == "last":
            several = holds(rest, start)
            others = texts.filter(opened).filter(several).to_list()
            found = pl.Series(list(map(self._finder(tag), others)), dtype=pl.String)
            results = results.scatter(several.arg_true(), found) if others else results
        return filled(texts, opened, results)

    def _finder(self, tag: TagText) -> Callable[[str], str | None]:
        last = self.params.at == "last"
        return lambda text: tag.find(text, strip=True, last=last)

    def describe(self) -> str:
        return f"the {self.params.at} <{self.params.name}>"
