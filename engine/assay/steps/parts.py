r"""Steps for a part of a text: thoughts, tags, boxes, code fences, what stands behind a mark, a line, and a value of JSON.

The columns of `think`, `tag`, `boxed`, `after` and the first or last `line` are about twice as fast as Python, those of `afterThink` take no
lock of Python's.
"""

import json
import re
from collections import deque
from collections.abc import Iterator
from functools import cached_property, partial
from typing import Any, Literal

import polars as pl
from pydantic import Field, field_validator

from assay.expressions.json import NOT_JSON, PLAIN_KEY, candidates, loads, mended, placed_within, values_within
from assay.expressions.json_places import placed_json
from assay.expressions.regex.compiled import on_any_stack
from assay.expressions.shared_columns import among, encoded, is_small, rowwise
from assay.expressions.tags import TagText
from assay.expressions.text import before, behind, by_columns, by_slices, first_of, is_plain, stripped
from assay.steps.base import Step, StepExample
from assay.steps.places import Place, PlacedText
from assay.values.normal_forms import OPEN_BOX, hendrycks_box
from assay.values.params import Params
from assay.values.paths import ABSENT, find, parse_within

_OPEN, _CLOSE = "<think>", "</think>"


def _behind(at: int, mark: str) -> int:
    return at + len(mark) if at >= 0 else 0


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

    def begins(self, text: str) -> int:
        return _behind(text.rfind(_CLOSE), _CLOSE)

    def expr(self, texts: pl.Expr) -> pl.Expr:
        return by_columns(texts, self.row, partial(by_slices, column=self._column))

    def _column(self, texts: pl.Series) -> pl.Series:
        after = stripped(behind(texts, _CLOSE, last=True))
        if self.params.strict or not after.null_count():
            return after
        is_whole = after.is_null() & ~texts.str.contains(_OPEN, literal=True)
        return texts.zip_with(is_whole, after)


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

    def begins(self, text: str) -> int:
        return _behind(text.find(_OPEN), _OPEN)

    def expr(self, texts: pl.Expr) -> pl.Expr:
        return by_columns(texts, self.row, self._column)

    def _column(self, texts: pl.Series) -> pl.Series:
        text, start, end = pl.col(texts.name), pl.col("start"), pl.col("end")
        opened = text.str.find(_OPEN, literal=True).cast(pl.Int64) + len(_OPEN)
        closed = text.str.find_many([_CLOSE]).list.last().cast(pl.Int64)
        places = texts.to_frame().with_columns_seq(start=opened, end=closed)
        codes = text.cast(pl.Binary).bin
        # a line break on each side is usual, and stripping would copy the thoughts once more
        first = pl.when(start <= end).then(start + (codes.slice(start, 1) == b"\n"))
        last = end - (codes.slice(end - 1, 1) == b"\n")
        thoughts = codes.slice(first, (last - first).clip(0))
        return stripped(places.select_seq(thoughts.cast(pl.String)).to_series().alias(texts.name))


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

    @cached_property
    def _tag(self) -> TagText:
        return TagText(self.params.name)

    def row(self, text: str) -> str | None:
        return self._tag.find(text, strip=True, last=self.params.at == "last")

    def begins(self, text: str) -> int:
        return (self._tag.content(text, last=self.params.at == "last") or (0,))[0]

    def expr(self, texts: pl.Expr) -> pl.Expr:
        if self._tag.marks is None or not all(map(is_plain, self._tag.marks)):
            return rowwise(texts, self.row, pl.String)
        return by_columns(texts, self.row, partial(by_slices, column=self._column))

    def _column(self, texts: pl.Series) -> pl.Series:
        start, end = self._tag.marks or ("", "")
        rest = behind(texts, start, last=False)
        results = stripped(before(rest, end))
        if self.params.at == "first":
            return results
        several = rest.str.contains(start, literal=True)
        return among(results, several, texts, self._rows)

    def _rows(self, texts: pl.Series) -> pl.Series:
        return pl.Series(map(self.row, texts.to_list()), dtype=pl.String)


_BOXES = ("\\boxed{", "\\fbox{")
_BRACE = re.compile(r"[{}]")


class BoxedParams(Params):
    """How a box is read."""

    style: Literal["last", "hendrycks"] = Field(
        default="last",
        description=r"`hendrycks`: as the code beside Hendrycks' MATH: what follows the last `\boxed ` up to a `$`, if there is one; "
        r"else the last `\boxed`, if it is `\boxed{…}`.",
    )


class Boxed(Step):
    r"""What stands in the last `\boxed{…}`, else in the last `\fbox{…}`, up to the matching brace.

    Every brace counts, `\{` too. A box that is not closed, because the text was cut off, is nothing found, whatever stands before it.
    """

    name = "boxed"
    Params = BoxedParams
    params: BoxedParams
    examples = (
        StepExample(r"It is \boxed{4}.", "4"),
        StepExample(r"\boxed{1} \boxed{\frac{1}{2}}", r"\frac{1}{2}"),
        StepExample(r"\fbox{4}", "4"),
        StepExample(r"\boxed{4} \fbox{5}", "4"),
        StepExample(r"\boxed{}", ""),
        StepExample(r"\boxed{4} \boxed{5", None),
        StepExample("It is 4.", None),
        StepExample(r"$\boxed 4$", "4", {"style": "hendrycks"}),
        StepExample(r"\boxed{4} \fbox{5}", "4", {"style": "hendrycks"}),
        StepExample(r"\fbox{5}", None, {"style": "hendrycks"}),
    )

    def row(self, text: str) -> str | None:
        if self.params.style == "hendrycks":
            return hendrycks_box(text)
        for box in _BOXES:
            _, found, rest = text.rpartition(box)
            if found:
                return _to_matching_brace(rest)
        return None

    def begins(self, text: str) -> int:
        if self.params.style == "hendrycks":
            box = OPEN_BOX if OPEN_BOX in text else _BOXES[0]
            return _behind(text.rfind(box), box)
        box = next((box for box in _BOXES if box in text), "")
        return _behind(text.rfind(box), box)

    def expr(self, texts: pl.Expr) -> pl.Expr:
        if self.params.style == "hendrycks":
            return rowwise(texts, self.row, pl.String)
        return by_columns(texts, self.row, _boxed_column)


def _to_matching_brace(text: str) -> str | None:
    depth = 1
    for brace in _BRACE.finditer(text):
        depth += 1 if brace.group() == "{" else -1
        if not depth:
            return text[: brace.start()]
    return None


def _boxed_column(texts: pl.Series) -> pl.Series:
    rest = behind(texts, _BOXES[0], last=True)
    others = rest.is_null() & texts.str.contains(_BOXES[1], literal=True)
    rest = among(rest, others, texts, partial(behind, mark=_BOXES[1], last=True))
    contents = before(rest, "}")
    return among(contents, contents.str.contains("{", literal=True), rest, _to_matching_braces)


def _to_matching_braces(texts: pl.Series) -> pl.Series:
    return pl.Series(map(_to_matching_brace, texts.to_list()), dtype=pl.String)


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
        fence = self._place(text)
        return None if fence is None else text[slice(*fence)]

    def _place(self, text: str) -> Place | None:
        fences = _fences(text, self.params.lang or "")
        return next(fences, None) if self.params.at == "first" else _last(fences)

    def begins(self, text: str) -> int:
        return (self._place(text) or (0,))[0]

    def expr(self, texts: pl.Expr) -> pl.Expr:
        fenced = texts.str.contains(_FENCE, literal=True)
        return rowwise(pl.when(fenced).then(texts), self.row, pl.String)


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

    def begins(self, text: str) -> int:
        mark = self.params.mark
        return _behind(text.rfind(mark) if self.params.at == "last" else text.find(mark), mark)

    def expr(self, texts: pl.Expr) -> pl.Expr:
        if not is_plain(self.params.mark):
            return rowwise(texts, self.row, pl.String)
        return by_columns(texts, self.row, partial(by_slices, column=self._column))

    def _column(self, texts: pl.Series) -> pl.Series:
        rest = behind(texts, self.params.mark, last=self.params.at == "last")
        return stripped(rest if self.params.to == "end" else first_of(before(rest, "\n"), rest))


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

    @cached_property
    def _number(self) -> int:
        return int({"first": 1, "last": -1}.get(str(self.params.which), self.params.which))

    def row(self, text: str) -> str | None:
        number = self._number
        if number == 1:
            return text.strip().partition("\n")[0].strip() or None
        if number == -1:
            return text.strip().rpartition("\n")[2].strip() or None
        lines = [stripped for line in text.split("\n") if (stripped := line.strip())]
        at = number - (number > 0)
        return lines[at] if -len(lines) <= at < len(lines) else None

    def expr(self, texts: pl.Expr) -> pl.Expr:
        if abs(self._number) > 1:
            return super().expr(texts)
        return by_columns(texts, self.row, self._column)

    def _column(self, texts: pl.Series) -> pl.Series:
        bare = stripped(texts)
        line = before(bare, "\n") if self._number == 1 else behind(bare, "\n", last=True)
        line = stripped(first_of(line, bare))
        return line.set(line == "", None)

    def explain(self) -> str:
        return super().explain() if abs(self._number) == 1 else "Python, row by row"

    def begins(self, text: str) -> int:
        at, starts = 0, []
        for line in text.split("\n"):
            starts += [at] if line.strip() else []
            at += len(line) + 1
        return starts[self._number - (self._number > 0)]


_NO_STRING = r"\A(?:[\[{]|-?(?:[0-9]+[.eE][0-9.eE+-]*|0[0-9]*|[0-9]{19,})\z)"
"""Matches what may be the text of a list, an object or a number for Polars which Python writes in another way."""


class JsonParams(Params):
    """Where the JSON is, and which value to take of it."""

    at: Literal["whole", "first", "last"] = Field(
        default="whole", description="`whole`: the text is JSON; else the first or the last object or list within it."
    )
    path: str | None = Field(default=None, description="A value within it: `a.b`, `[0].a`, `items[-1]`.")

    @field_validator("path")
    @classmethod
    def _is_a_path(cls, path: str | None) -> str | None:
        if path is not None:
            parse_within(path)
        return path


class Json(Step):
    r"""A value of JSON as text: a string as it is, null is nothing found, any other value as `json.dumps` writes it.

    The text is read as `json_valid` reads it. `first` and `last` try at most 100 brackets as the start of an object or a list. A lone
    surrogate becomes U+FFFD.
    """

    name = "json"
    runs_as = "columns for fields of an object that is the whole text; Python reads other texts that may have JSON, equal ones once"
    shorthand = "at"
    Params = JsonParams
    params: JsonParams
    examples = (
        StepExample('{"a": {"b": "x"}}', "x", {"path": "a.b"}),
        StepExample('{"a": [1, 2.50]}', "[1, 2.5]", {"path": "a"}),
        StepExample('[{"a": true}]', "true", {"path": "[0].a"}),
        StepExample('"é"', "é"),
        StepExample('see {"a": 1} and [2]', '{"a": 1}', {"at": "first"}),
        StepExample('see {"a": 1} and [2]', "[2]", {"at": "last"}),
        StepExample("[[1, {} [2]", "{}", {"at": "first"}),
        StepExample('{"a": null}', None, {"path": "a"}),
        StepExample("see [1]", None),
    )

    def row(self, text: str) -> str | None:
        value = self._value(text)
        if value is NOT_JSON or value is None:
            return None
        if self.params.path is not None:
            value = find(value, parse_within(self.params.path))
        if value is ABSENT or value is None:
            return None
        written = value if isinstance(value, str) else on_any_stack(lambda: json.dumps(value, ensure_ascii=False))
        return mended(written)

    def placed(self, given: PlacedText) -> PlacedText | None:
        result = self.row(given.text)
        if result is None:
            return None
        value = placed_json(given.text, self._start(given.text))
        value = value if self.params.path is None else find(value, parse_within(self.params.path))
        is_string = given.text[value.start] == '"'
        part = given.cut(value.start + is_string, value.end - is_string)
        return part if part.text == result else part.as_block(result)

    def _start(self, text: str) -> int:
        if self.params.at == "whole":
            return 0
        starts = (start for _, start in placed_within(text))
        return next(starts) if self.params.at == "first" else _last(starts)

    def _value(self, text: str) -> Any:
        if self.params.at == "whole":
            return loads(text)
        values: Iterator[Any] = values_within(text)
        return next(values, None) if self.params.at == "first" else _last(values)

    def expr(self, texts: pl.Expr) -> pl.Expr:
        if self.params.at == "whole":
            possible = texts.map_batches(candidates, return_dtype=pl.String, is_elementwise=True)
        else:
            possible = pl.when(texts.str.contains(r"[\[{]")).then(texts)
        path = self.params.path and parse_within(self.params.path)
        if path and all(isinstance(step, str) and PLAIN_KEY.fullmatch(step) for step in path.steps):
            find_fields = partial(self._fields, path=f"$.{'.'.join(map(str, path.steps))}")
            return possible.map_batches(find_fields, return_dtype=pl.String, is_elementwise=True)
        return rowwise(possible, self.row, pl.String, distinct=True)

    def _fields(self, texts: pl.Series, path: str) -> pl.Series:
        """Return ``row`` of texts by Polars where a text is an object with a string there, or what is written as one; else by Python."""
        if is_small(texts):
            found = [None if text is None else self.row(text) for text in texts.to_list()]
            return pl.Series(texts.name, found, dtype=pl.String)
        results = texts.str.json_path_match(path)
        others = texts.is_not_null() & results.str.contains(_NO_STRING).fill_null(value=True)
        return among(results, others, texts, self._by_python)

    def _by_python(self, texts: pl.Series) -> pl.Series:
        distinct, which = encoded(texts)
        return pl.Series([*map(self.row, distinct.to_list())], dtype=pl.String).gather(which)


def _last(items: Iterator[Any]) -> Any:
    """Return the last item; None if there is none."""
    return next(iter(deque(items, maxlen=1)), None)
