r"""Numbers in a text: the steps ``number`` and ``numbers``, and the value of what they find.

The pattern names every character that it accepts, so the linear engine finds the same matches as ``re``.
"""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Literal

import polars as pl
from pydantic import Field

from assay.expressions.shared_columns import rowwise
from assay.steps.base import Step, StepExample
from assay.steps.places import Place, PlacedText
from assay.values.params import Params

_BEFORE = "[^0-9A-Za-z_)]"
_SIGN = "[-+\u2212]?[$€£¥]?"
NUMBER_VALUE = (
    rf"{_SIGN}(?:[0-9]{{1,3}}(?:,[0-9]{{3}})+|[0-9]+)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?"
    rf"|{_SIGN}\.[0-9]+"
)
NUMBER = f"{_BEFORE}(?:{NUMBER_VALUE})"
"""A number and the character before it, in either engine; a text begins as if after a space."""

_ALONE = rf"\s*({NUMBER_VALUE})[ \u00a0\u202f]?[%€$£¥]?\.?\s*"
"""A number with what may stand beside it in a gold: ``50%``, ``5 €``, ``1,000.``."""
_LARGE_EXPONENT = r"[eE]\+?[0-9]{3}"
_LONGEST_FINITE = 200
"""Code points up to which a number without a large exponent is certainly finite."""
_ONLY_VALUE = str.maketrans({**dict.fromkeys(",$€£¥"), "\u2212": "-"})
_DECIMAL = r"\A[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?\z"
"""What Polars casts as ``float()`` does; this also reads digits of other scripts, underscores and blanks around."""


_compiled = cache(re.compile)  # at first use: most runs import this module for ``number_value``


def number_value(text: str) -> float | None:
    """Return the value of a number as a text writes it: ``"$1,200.50"`` is 1200.5; None if it has no finite value."""
    try:
        value = float(text)  # most have nothing beside the value
    except ValueError:
        try:
            value = float(text.translate(_ONLY_VALUE))
        except ValueError:
            return None
    return value if math.isfinite(value) else None


def gold_number(text: str) -> float | None:
    """Return the value of a text that is a number and nothing else: ``50%`` is 50.0; None if it is no finite number."""
    value = number_value(text)
    match = _compiled(_ALONE).fullmatch(text) if value is None else None
    return value if match is None else number_value(match[1])


def gold_numbers(texts: pl.Expr) -> pl.Expr:
    """Return ``gold_number`` as an elementwise Float64 expression over a String column."""
    return texts.map_batches(_gold_numbers, return_dtype=pl.Float64, is_elementwise=True)


def _gold_numbers(texts: pl.Series) -> pl.Series:
    values = _number_values(texts)
    at = (values.is_null() & texts.str.contains(r"[0-9]")).arg_true()
    others = [*map(gold_number, texts.gather(at).to_list())]
    return values.scatter(at, pl.Series(others, dtype=pl.Float64)) if others else values


def number_values(texts: pl.Expr) -> pl.Expr:
    """Return ``number_value`` as an elementwise Float64 expression over a String column."""
    return texts.map_batches(_number_values, return_dtype=pl.Float64, is_elementwise=True)


def _number_values(texts: pl.Series) -> pl.Series:
    decimal = texts.str.contains(_DECIMAL)
    values = texts.set(decimal.not_(), None).cast(pl.Float64)
    at = decimal.not_().arg_true()
    if len(at):
        written = texts.gather(at)
        bare = written.str.replace_all("[,$€£¥]", "").str.replace_all("\u2212", "-", literal=True)
        plain = bare.str.contains(_DECIMAL)
        values = values.scatter(at.filter(plain), bare.filter(plain).cast(pl.Float64))
        others = [number_value(text) for text in written.filter(~plain).to_list()]
        values = values.scatter(at.filter(~plain), pl.Series(others, dtype=pl.Float64))
    return values.set(values.is_finite().not_(), None)


def numbers_in(text: str) -> Iterator[tuple[Place, float]]:
    """Yield where the numbers of a text begin and end, and their values, from the left; none beyond the greatest float."""
    for match in _compiled(NUMBER).finditer(f" {text}"):
        if (value := number_value(match[0][1:])) is not None:
            start, end = match.span()
            yield (start, end - 1), value


def _is_finite(number: str) -> bool:
    return number_value(number) is not None


def _may_overflow(numbers: pl.Expr) -> pl.Expr:
    """Return whether numbers may be beyond the greatest float."""
    return numbers.str.contains(_LARGE_EXPONENT) | (numbers.str.len_bytes() > _LONGEST_FINITE)


def _finite(step: Step, texts: pl.Expr, found: pl.Expr, doubtful: pl.Expr) -> pl.Expr:
    """Return what a step finds in texts, given what the engine does; Python looks at rows with a number that may overflow."""

    def run(columns: Sequence[pl.Series]) -> pl.Series:
        frame = pl.DataFrame([column.alias(name) for name, column in zip(("text", "found"), columns, strict=True)])
        frame = frame.with_columns_seq(doubtful=doubtful)
        if not frame["doubtful"].any():
            return columns[1]
        by_row = rowwise(pl.when("doubtful").then("text"), step.row, step.dtype)
        return frame.select_seq(pl.when("doubtful").then(by_row).otherwise("found")).to_series()

    return pl.map_batches([texts, found], run, return_dtype=step.dtype, is_elementwise=True)


class NumberStepParams(Params):
    """Which number."""

    at: Literal["last", "first"] = Field(default="last", description="Which of the numbers.")


class NumberStep(Step):
    """The last or first number, with its sign, currency and thousands commas: ``-3``, ``$1,200.50``, ``1e5``.

    Digits right after a letter, a digit, ``_`` or ``)`` do not begin a number, nor does a minus there: ``5-3`` has 5 and 3. What
    is beyond the greatest float, as ``1e999``, is no number.
    """

    name = "number"
    shorthand = "at"
    Params = NumberStepParams
    params: NumberStepParams
    examples = (
        StepExample("It costs $1,200.50.", "$1,200.50"),
        StepExample("5-3 = 2 apples", "2"),
        StepExample("x = -3", "-3"),
        StepExample("5-3", "3"),
        StepExample("5-3", "5", {"at": "first"}),
        StepExample("x2", None),
        StepExample("5 < 1e999", "5"),
        StepExample("1e999", None),
    )

    def row(self, text: str) -> str | None:
        padded = f" {text}"
        if self.params.at == "first":
            numbers: Iterable[str] = (match[0] for match in _compiled(NUMBER).finditer(padded))
        else:
            numbers = reversed(_compiled(NUMBER).findall(padded))
        return next((number[1:] for number in numbers if _is_finite(number[1:])), None)

    def begins(self, text: str) -> int:
        starts = [start for (start, _), _ in numbers_in(text)]
        return starts[0 if self.params.at == "first" else -1]

    def expr(self, texts: pl.Expr) -> pl.Expr:
        padded = pl.lit(" ") + texts
        if self.params.at == "first":
            return _finite(
                self, texts, padded.str.extract(f"{_BEFORE}({NUMBER_VALUE})", 1), _may_overflow(pl.col("found"))
            )
        number = padded.str.extract_all(NUMBER).list.last().str.slice(1)
        return _finite(self, texts, number, _may_overflow(pl.col("found")))


class Numbers(Step):
    """All numbers, as the step ``number`` reads them, in order; nothing if there is none."""

    name = "numbers"
    gives_list = True
    examples = (
        StepExample("3/4 of 18km is 50%", ["3", "4", "18", "50"]),
        StepExample("1 and 1e999", ["1"]),
        StepExample("none", None),
    )

    def row(self, text: str) -> list[str] | None:
        return [number[1:] for number in _compiled(NUMBER).findall(f" {text}") if _is_finite(number[1:])] or None

    def placed(self, given: PlacedText) -> list[PlacedText] | None:
        return [given.cut(*place) for place, _ in numbers_in(given.text)] or None

    def expr(self, texts: pl.Expr) -> pl.Expr:
        numbers = (pl.lit(" ") + texts).str.extract_all(NUMBER)
        numbers = pl.when(numbers.list.len() > 0).then(numbers.list.eval(pl.element().str.slice(1)))
        return _finite(self, texts, numbers, pl.col("found").list.eval(_may_overflow(pl.element())).list.any())
