r"""Steps for what stands in ``\boxed{…}`` and in code fences."""

import re
from collections.abc import Iterator
from typing import Literal

import polars as pl
from pydantic import Field, field_validator

from assay.expressions.lane import rowwise
from assay.expressions.parts import by_columns, filled, holds, split_at
from assay.steps.base import Step, StepExample
from assay.values.params import Params

_BOXES = ("\\boxed{", "\\fbox{")
_BRACE = re.compile(r"[{}]")


class Boxed(Step):
    r"""What stands in the last `\boxed{…}`, else in the last `\fbox{…}`, up to the matching brace.

    Every brace counts, `\{` too. A box that is not closed, because the text was cut off, is nothing found, whatever stands before it.
    """

    name = "boxed"
    examples = (
        StepExample(r"It is \boxed{4}.", "4"),
        StepExample(r"\boxed{1} \boxed{\frac{1}{2}}", r"\frac{1}{2}"),
        StepExample(r"\fbox{4}", "4"),
        StepExample(r"\boxed{4} \fbox{5}", "4"),
        StepExample(r"\boxed{}", ""),
        StepExample(r"\boxed{4} \boxed{5", None),
        StepExample("It is 4.", None),
    )

    def row(self, text: str) -> str | None:
        for box in _BOXES:
            _, found, rest = text.rpartition(box)
            if found:
                return _to_matching_brace(rest)
        return None

    def expr(self, texts: pl.Expr) -> pl.Expr:
        return by_columns(texts, self.row, _boxed_column)

    def describe(self) -> str:
        return "the last \\boxed"


def _to_matching_brace(text: str) -> str | None:
    depth = 1
    for brace in _BRACE.finditer(text):
        depth += 1 if brace.group() == "{" else -1
        if not depth:
            return text[: brace.start()]
    return None


def _boxed_column(texts: pl.Series) -> pl.Series:
    boxed = holds(texts, _BOXES[0])
    results = filled(texts, boxed, _to_matching_braces(split_at(texts.filter(boxed), _BOXES[0], last=True)[1]))
    if boxed.all():
        return results
    framed = ~boxed & holds(texts, _BOXES[1])
    if not framed.any():
        return results
    others = _to_matching_braces(split_at(texts.filter(framed), _BOXES[1], last=True)[1])
    return results.scatter(framed.arg_true(), others)


def _to_matching_braces(texts: pl.Series) -> pl.Series:
    closed = holds(texts, "}")
    rests = texts.filter(closed)
    contents, _ = split_at(rests, "}", last=False)
    nested = holds(contents, "{")
    if nested.any():
        by_python = [_to_matching_brace(rest) for rest in rests.filter(nested).to_list()]
        contents = contents.scatter(nested.arg_true(), pl.Series(by_python, dtype=pl.String))
    return filled(texts, closed, contents)


class FenceParams(Params):
    """Which code fence."""

    lang: str | None = Field(default=None, description="What the info string begins with: `json`, `python`.")
    at: Literal["last", "first"] = Field(default="last", description="Which of several.")

    @field_validator("lang")
    @classmethod
    def _is_a_word(cls, lang: str | None) -> str | None:
        if lang is not None and not re.fullmatch(r"[^\s`]+", lang):
            raise ValueError("a language is a word without backticks")
        return lang


class Fence(Step):
    r"""What stands in the last code fence, between the lines of backticks, unstripped.

    A fence begins with a line of three backticks and an info string without backticks, and ends at the next line that begins
    with three backticks. One that is not closed, because the text was cut off, is nothing found.
    """

    name = "fence"
    shorthand = "lang"
    Params = FenceParams
    params: FenceParams
    examples = (
        StepExample("```json\n{}\n```", "{}\n"),
        StepExample("```\n1\n```\nor\n```\n2\n```", "2\n"),
        StepExample("```\n1\n```\nor\n```\n2\n```", "1\n", {"at": "first"}),
        StepExample("```js\n1\n```\n```json\n2\n```\n```c\n3\n```", "2\n", {"lang": "json"}),
        StepExample("```json\n{}", None),
        StepExample("``` x ```", None),
        StepExample("a ```\n1\n```", None),
    )

    def row(self, text: str) -> str | None:
        content = None
        for start, end in _fences(text, self.params.lang or ""):
            content = start, end
            if self.params.at == "first":
                break
        return None if content is None else text[content[0] : content[1]]

    def expr(self, texts: pl.Expr) -> pl.Expr:
        fenced = texts.str.contains(_FENCE, literal=True)
        return rowwise(pl.when(fenced).then(texts), self.row, pl.String)

    def describe(self) -> str:
        lang = f"{self.params.lang} " if self.params.lang else ""
        return f"the {self.params.at} {lang}code fence"


_FENCE = "```"
_INDENT = " \t"


def _fences(text: str, lang: str) -> Iterator[tuple[int, int]]:
    r"""Yield where the contents of fences begin and end.

    In linear time, what ``(?ms)^[ \t]*```[ \t]*LANG[^\n`]*\n(.*?)^[ \t]*```` finds.
    """
    start = -1
    for line, marked in _fence_lines(text):
        if start >= 0:
            yield start, line
            start = -1
            continue
        end = text.find("\n", marked)
        info = text[marked:end].lstrip(_INDENT)
        if end >= 0 and "`" not in info and info.startswith(lang):
            start = end + 1


def _fence_lines(text: str) -> Iterator[tuple[int, int]]:
    """Yield where each line that begins with a fence begins, and where its info string does."""
    at = text.find(_FENCE)
    while at >= 0:
        line = text.rfind("\n", 0, at) + 1
        if not text[line:at].strip(_INDENT):
            yield line, at + len(_FENCE)
        end = text.find("\n", at)  # only the first fence of a line may begin it
        at = -1 if end < 0 else text.find(_FENCE, end)
