"""Steps for a part of a text behind a mark, and for a line."""

from functools import partial
from typing import Literal

import polars as pl
from pydantic import Field, field_validator

from assay.errors import quoted
from assay.expressions.lane import rowwise
from assay.expressions.parts import by_columns, by_slices, filled, holds, is_plain, split_at, stripped
from assay.steps.base import Step, StepExample
from assay.values.params import Params


class AfterParams(Params):
    """The mark, and how far to read."""

    mark: str = Field(min_length=1, description="The text that stands before the part.")
    to: Literal["line", "end"] = Field(default="line", description="Up to the end of the line, or of the text.")
    at: Literal["last", "first"] = Field(default="last", description="Which of several marks.")


class After(Step):
    r"""The text behind a mark, up to the end of the line (`\n`), stripped.

    It may be empty: only where the mark is missing is nothing found.
    """

    name = "after"
    shorthand = "mark"
    Params = AfterParams
    params: AfterParams
    examples = (
        StepExample("A: 3\nA: 4 \nBye", "4", {"mark": "A:"}),
        StepExample("A: 3\nA: 4\nBye", "3", {"mark": "A:", "at": "first"}),
        StepExample("#### 4\nBye", "4\nBye", {"mark": "####", "to": "end"}),
        StepExample("A:\n4", "", {"mark": "A:"}),
        StepExample("the answer is 4", None, {"mark": "A:"}),
    )

    def row(self, text: str) -> str | None:
        before_and_behind = text.rpartition if self.params.at == "last" else text.partition
        _, mark, rest = before_and_behind(self.params.mark)
        if not mark:
            return None
        return (rest if self.params.to == "end" else rest.partition("\n")[0]).strip()

    def expr(self, texts: pl.Expr) -> pl.Expr:
        if not is_plain(self.params.mark):
            return rowwise(texts, self.row, pl.String)
        return by_columns(texts, self.row, partial(by_slices, column=self._column))

    def _column(self, texts: pl.Series) -> pl.Series:
        marked = holds(texts, self.params.mark)
        _, rest = split_at(texts.filter(marked), self.params.mark, last=self.params.at == "last")
        if self.params.to == "line" and len(rest):
            rest = first_lines(rest)
        return filled(texts, marked, stripped(rest))

    def describe(self) -> str:
        which = "" if self.params.at == "last" else "the first "
        to = "" if self.params.to == "line" else ", to the end"
        return f"the text after {which}{quoted(self.params.mark)}{to}"


def first_lines(texts: pl.Series) -> pl.Series:
    """Return the first line of each text."""
    longer = holds(texts, "\n")
    lines, _ = split_at(texts.filter(longer), "\n", last=False)
    return lines if longer.all() else texts.scatter(longer.arg_true(), lines)


def last_lines(texts: pl.Series) -> pl.Series:
    """Return the last line of each text."""
    longer = holds(texts, "\n")
    _, lines = split_at(texts.filter(longer), "\n", last=True)
    return lines if longer.all() else texts.scatter(longer.arg_true(), lines)


class LineParams(Params):
    """Which line."""

    which: Literal["first", "last"] | int = Field(
        description="`first`, `last`, or the number of the line: 1 is the first, -1 the last."
    )

    @field_validator("which")
    @classmethod
    def _is_a_line(cls, which: str | int) -> str | int:
        if which == 0:
            raise ValueError("lines are numbered from 1; -1 is the last")
        return which


class Line(Step):
    r"""One of the lines (`\n`) that are not blank, stripped."""

    name = "line"
    shorthand = "which"
    Params = LineParams
    params: LineParams
    examples = (
        StepExample("\n 1 \n2\n\n3\n", "1", {"which": "first"}),
        StepExample("\n 1 \n2\n\n3\n", "3", {"which": "last"}),
        StepExample("\n 1 \n2\n\n3\n", "2", {"which": 2}),
        StepExample("1\n2\n3", "2", {"which": -2}),
        StepExample("1", None, {"which": 2}),
        StepExample(" \n", None, {"which": "last"}),
    )

    def row(self, text: str) -> str | None:
        lines = [line.strip() for line in text.split("\n")]
        lines = [line for line in lines if line]
        number = _NUMBERS.get(self.params.which, self.params.which)
        at = int(number) - (int(number) > 0)
        return lines[at] if -len(lines) <= at < len(lines) else None

    def expr(self, texts: pl.Expr) -> pl.Expr:
        if self.params.which not in _ENDS:
            return rowwise(texts, self.row, pl.String)
        return by_columns(texts, self.row, partial(by_slices, column=self._column))

    def _column(self, texts: pl.Series) -> pl.Series:
        ends = stripped(texts)  # without the blank lines before the first and behind the last
        lines = first_lines(ends) if self.params.which in ("first", 1) else last_lines(ends)
        return stripped(lines).set(lines == "", None)

    def describe(self) -> str:
        which = self.params.which
        return f"line {which}" if isinstance(which, int) else f"the {which} line"


_NUMBERS: dict[str | int, int] = {"first": 1, "last": -1}
_ENDS = ("first", "last", 1, -1)
