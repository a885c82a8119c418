"""The check for mathematical equality: math."""

import importlib.util
from collections.abc import Sequence
from typing import Any, Literal

import polars as pl
from pydantic import Field

from assay.checks.base import Example, Traits
from assay.checks.mathematics import program
from assay.checks.mathematics.client import INSTALL, LATE, LIBRARIES, Answer, Comparison, compare_all
from assay.checks.pairs import PairCheck
from assay.errors import describe_error, encodable, quoted
from assay.values.params import Params
from assay.values.references import gold_text

MAX_CHARACTERS = 4_096
"""Code points of an answer that math-verify reads; an answer with more scores 0."""
MAX_TEXT = 1_000_000
"""Code points of a text in which math-verify looks for the answer."""
_REASONS = {
    program.DIFFERENT: "{answer} is not mathematically equal to {gold}",
    program.NO_ANSWER: "{answer} cannot be read as mathematics, expected {gold}",
    program.NO_GOLD: "{answer} is not {gold}, which cannot be read as mathematics",
}
"""Why an answer that could be compared is not equal."""


class MathParams(Params):
    """The expected answer, and how it is compared."""

    later = frozenset({"parse", "set_relations"})

    value: str | int | float = Field(description=r"The answer, in LaTeX or plain, without `\boxed`.")
    strict: bool = Field(default=True, description="Names of variables count, and sets are not tuples.")
    precision: int = Field(default=6, ge=0, le=100, description="Decimal places to which numbers are rounded.")
    timeout: float | int = Field(
        default=5, gt=0, le=86_400, description="Seconds of processor time for one comparison; then it is an error."
    )
    parse: Literal["whole", "latex", "expr", "any"] = Field(
        default="whole",
        description="`whole`: the text is the answer. Else math-verify looks for the answer in output and value: `latex` for LaTeX, "
        "`expr` for plain expressions, `any` for both.",
    )
    set_relations: bool = Field(default=False, description="`x < 2` equals the gold `(-\\infty, 2)`.")


def _require_package() -> None:
    if importlib.util.find_spec("math_verify") is None:
        raise ModuleNotFoundError(f"math-verify, which compares mathematics, is not installed: {INSTALL}")


class Math(PairCheck):
    r"""The answer is mathematically equal to the value, by math-verify 0.9: ``\frac{1}{2}`` equals ``0.5``.

    Both are read as ``\boxed{…}``, first as LaTeX, then as a plain expression; equal texts are equal. An empty answer and one of
    more than 4,096 characters score 0. With ``parse``, math-verify looks for the answer in the text. It runs in processes that can be killed. Needs ``pip install 'assay-rollouts[math]'``.
    """

    type = "math"
    graded = False
    traits = Traits(libraries=LIBRARIES, require=_require_package)
    Params = MathParams
    params: MathParams
    examples = (
        Example(r"\frac{1}{2}", 1.0, {"value": "0.5"}),
        Example("1/3", 0.0, {"value": "0.5"}),
        Example("(x+1)^2", 1.0, {"value": "x^2+2x+1"}),
        Example(" 42\n", 1.0, {"value": "42"}),
        Example(r"\{2, 1\}", 1.0, {"value": r"\{1, 2\}"}),
        Example("3.14", 1.0, {"value": r"\pi", "precision": 1}),
    )

    def judge(self, value: str, gold: Any) -> tuple[float, str]:
        (verdict,) = self._verdicts([value], [gold])
        if isinstance(verdict, Exception):
            raise verdict
        return verdict

    def judge_all(self, values: Sequence[str], golds: Sequence[Any]) -> list[tuple[float, str, str | None]]:
        verdicts = self._verdicts(values, golds)
        return [
            (0.0, describe_error(verdict), describe_error(verdict))
            if isinstance(verdict, Exception)
            else (verdict[0], encodable(verdict[1]) if verdict[0] < 1 else "", None)
            for verdict in verdicts
        ]

    def _verdicts(self, values: Sequence[str], golds: Sequence[Any]) -> list[tuple[float, str] | Exception]:
        pairs = [(value.strip(), gold_text(gold).strip()) for value, gold in zip(values, golds, strict=True)]
        longest = MAX_CHARACTERS if self.params.parse == "whole" else MAX_TEXT
        verdicts = [_plain_verdict(*pair, longest) for pair in pairs]
        seconds = float(self.params.timeout)
        how = self.params.strict, self.params.precision, self.params.parse, self.params.set_relations, seconds
        questions = [
            Comparison(gold, answer, *how)
            for (answer, gold), plain in zip(pairs, verdicts, strict=True)
            if plain is None
        ]
        answers = iter(compare_all(questions, None if self.limits is None else self.limits.stop) if questions else ())
        return [
            _read(next(answers), *pair) if plain is None else plain for pair, plain in zip(pairs, verdicts, strict=True)
        ]

    def usable(self, golds: pl.Expr) -> pl.Expr:
        return golds

    def claim(self) -> str:
        return f"is mathematically equal to {quoted(gold_text(self.params.value))}"

    def explain(self) -> str:
        return f"math-verify in other processes, once for each distinct text and gold, up to {self.params.timeout:g} s each"


def _plain_verdict(answer: str, gold: str, longest: int) -> tuple[float, str] | None:
    if answer == gold:
        return 1.0, ""
    if not answer:
        return 0.0, f"the answer is empty, expected {quoted(gold)}"
    if len(answer) > longest:
        return 0.0, f"the answer has more than {longest:,} characters, expected {quoted(gold)} alone"
    return None


def _read(result: Answer, answer: str, gold: str) -> tuple[float, str] | Exception:
    verdict, message = result
    if verdict == program.EQUAL:
        return 1.0, ""
    if verdict in _REASONS:
        return 0.0, _REASONS[verdict].format(answer=quoted(answer), gold=quoted(gold))
    if verdict == program.RAISED:
        return RuntimeError(f"math-verify raised {message}")
    return (TimeoutError if verdict == LATE else RuntimeError)(message)
