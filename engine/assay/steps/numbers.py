r"""Numbers in a text: the steps ``number`` and ``numbers``, and the value of what they find.

The pattern names every character that it accepts, so the linear engine finds the same matches as ``re``.
"""

import math
import re
from typing import Literal

import polars as pl
from pydantic import Field

from assay.steps.base import Step, StepExample
from assay.values.params import Params

__all__ = ["NUMBER", "Number", "Numbers", "number_value", "number_values"]

_BEFORE = "[^0-9A-Za-z_)]"
_SIGN = "[-+\u2212]?[$€£¥]?"
_VALUE = (
    rf"{_SIGN}(?:[0-9]{{1,3}}(?:,[0-9]{{3}})+|[0-9]+)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?"
    rf"|{_SIGN}\.[0-9]+"
)
NUMBER = f"{_BEFORE}(?:{_VALUE})"
"""A number and the character before it, in either engine; a text begins as if after a space."""

_NUMBER = re.compile(NUMBER)
_ONLY_VALUE = str.maketrans({**dict.fromkeys(",$€£¥"), "\u2212": "-"})
_DECIMAL = r"\A[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?\z"
"""What Polars casts as ``float()`` does; this also reads digits of other scripts, underscores and blanks around."""


def number_value(text: str) -> float | None:
    """Return the value of a number as a text writes it: ``"$1,200.50"`` is 1200.5; None if it has no finite value."""
    try:
        value = float(text.translate(_ONLY_VALUE))
    except ValueError:
        return None
    return value if math.isfinite(value) else None


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


class NumberParams(Params):
    """Which number."""

    at: Literal["last", "first"] = Field(default="last", description="Which of the numbers.")


class Number(Step):
    """The last or first number, with its sign, currency and thousands commas: ``-3``, ``$1,200.50``, ``1e5``.

    Digits right after a letter, a digit, ``_`` or ``)`` do not begin a number, nor does a minus there: ``5-3`` has 5 and 3.
    """

    name = "number"
    shorthand = "at"
    Params = NumberParams
    params: NumberParams
    examples = (
        StepExample("It costs $1,200.50.", "$1,200.50"),
        StepExample("5-3 = 2 apples", "2"),
        StepExample("x = -3", "-3"),
        StepExample("5-3", "3"),
        StepExample("5-3", "5", {"at": "first"}),
        StepExample("x2", None),
    )

    def row(self, text: str) -> str | None:
        padded = f" {text}"
        if self.params.at == "first":
            match = _NUMBER.search(padded)
            return match[0][1:] if match else None
        matches = _NUMBER.findall(padded)
        return matches[-1][1:] if matches else None

    def expr(self, texts: pl.Expr) -> pl.Expr:
        padded = pl.lit(" ") + texts
        if self.params.at == "first":
            return padded.str.extract(f"{_BEFORE}({_VALUE})", 1)
        return padded.str.extract_all(NUMBER).list.last().str.slice(1)

    def describe(self) -> str:
        return f"the {self.params.at} number"


class Numbers(Step):
    """All numbers, as the step ``number`` reads them, in order; nothing if there is none."""

    name = "numbers"
    gives_list = True
    examples = (
        StepExample("3/4 of 18km is 50%", ["3", "4", "18", "50"]),
        StepExample("none", None),
    )

    def row(self, text: str) -> list[str] | None:
        return [match[1:] for match in _NUMBER.findall(f" {text}")] or None

    def expr(self, texts: pl.Expr) -> pl.Expr:
        numbers = (pl.lit(" ") + texts).str.extract_all(NUMBER)
        return pl.when(numbers.list.len() > 0).then(numbers.list.eval(pl.element().str.slice(1)))

    def describe(self) -> str:
        return "all numbers"
