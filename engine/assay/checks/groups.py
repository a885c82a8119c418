"""Groups: checks over the scores of other checks."""
# ruff: noqa: ARG002  (all groups have one signature)

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from operator import add, mul
from typing import Annotated, Any, ClassVar, Literal

import polars as pl
from pydantic import Field

from assay.checks.base import Check, Row, Traits
from assay.expressions.shared_columns import SharedColumn, exactly, row_of, rowwise, text
from assay.steps.numbers import number_value
from assay.values.params import Params
from assay.values.references import Reference


class Group(Check, ABC):
    """Base class of groups: the score of a row, given the scores of those of its checks that ran; a check passes at 1.0."""

    graded = True
    runs_as = "columns: from the scores of its checks"
    nearest: ClassVar[bool] = False
    """Whether feedback names the best of its checks only."""
    inverse: ClassVar[bool] = False
    """Whether the checks that pass are at fault."""
    rule: ClassVar[str] = ""
    """What it asks of its checks, for reasons."""

    @abstractmethod
    def score(self, row: Row, scores: Sequence[float], weights: Sequence[float]) -> float:
        """Return the score of a row, given the scores of the checks that ran, at least one, and their weights."""

    @abstractmethod
    def score_expr(self, scores: Sequence[pl.Expr], weights: Sequence[float]) -> pl.Expr:
        """Return ``score`` as an expression over Float64 columns, null where a check did not run."""

    def expr(self) -> pl.Expr:
        """Return what ``score_expr`` reads beside the scores."""
        return pl.lit(None)

    def claim_of(self, claims: Sequence[str]) -> str:
        """Return what holds when the group passes."""
        return f"{self.rule} [{'; '.join(claims)}]"

    def complaint(self) -> str:
        return f"does not meet {self.rule} of its checks"


class CountingGroup(Group):
    """Base class of groups that pass by how many of the checks that ran pass; a subclass defines ``holds``."""

    @abstractmethod
    def holds(self, passing: Any, ran: Any) -> Any:
        """Return whether the group passes, given how many checks pass and ran: both ``int``, or both columns."""

    def score(self, row: Row, scores: Sequence[float], weights: Sequence[float]) -> float:
        return float(self.holds(sum(score >= 1.0 for score in scores), len(scores)))

    def score_expr(self, scores: Sequence[pl.Expr], weights: Sequence[float]) -> pl.Expr:
        passing = pl.sum_horizontal((score >= 1.0).fill_null(value=False).cast(pl.Int64) for score in scores)
        ran = pl.sum_horizontal(score.is_not_null().cast(pl.Int64) for score in scores)
        holds: pl.Expr = self.holds(passing, ran)
        return holds.cast(pl.Float64)


class AllOf(CountingGroup):
    """1.0 if every check passes."""

    type = "all_of"
    rule = "all"

    def holds(self, passing: Any, ran: Any) -> Any:
        return passing == ran


class AnyOf(CountingGroup):
    """1.0 if a check passes."""

    type = "any_of"
    rule = "any"
    nearest = True

    def holds(self, passing: Any, ran: Any) -> Any:
        return passing >= 1


class NoneOf(CountingGroup):
    """1.0 if no check passes."""

    type = "none_of"
    rule = "none"
    inverse = True

    def holds(self, passing: Any, ran: Any) -> Any:
        return passing == 0


class AtLeastParams(Params):
    """How many checks have to pass."""

    k: int = Field(ge=1, description="How many checks have to pass.")


class AtLeast(CountingGroup):
    """1.0 if at least `k` checks pass."""

    type = "at_least"
    Params = AtLeastParams
    params: AtLeastParams

    @property
    def rule(self) -> str:  # type: ignore[override]
        return f"at least {self.params.k}"

    def holds(self, passing: Any, ran: Any) -> Any:
        return passing >= self.params.k


def weighted_mean(scores: Sequence[float], weights: Sequence[float]) -> float:
    """Return the weighted mean of the checks that ran, summed from left to right; the plain mean if all weights are 0."""
    if not any(weights):
        weights = [1.0] * len(scores)
    total = reduce(add, (weight * score for weight, score in zip(weights, scores, strict=True)), 0.0)
    return total / reduce(add, weights, 0.0)


def weighted_mean_expr(scores: Sequence[pl.Expr], weights: Sequence[float]) -> pl.Expr:
    """``weighted_mean`` over Float64 columns that are null where a check did not run."""

    def mean(weights: Sequence[float]) -> tuple[pl.Expr, pl.Expr]:
        pairs = [*zip(weights, scores, strict=True)]
        total = reduce(add, (pl.when(s.is_null()).then(0.0).otherwise(s * w) for w, s in pairs))
        return total, reduce(add, (pl.when(s.is_null()).then(0.0).otherwise(pl.lit(w)) for w, s in pairs))

    total, weight = mean(weights)
    if all(weights):
        return quotient(total, weight)
    plain_total, count = mean([1.0] * len(scores))
    return pl.when(weight == 0.0).then(quotient(plain_total, count)).otherwise(quotient(total, weight))


def quotient(total: pl.Expr, divisor: pl.Expr) -> pl.Expr:
    """Divide by a positive number, exactly."""
    # NOTE: Polars divides by a literal, or a column made of one, by multiplying with its reciprocal, which changes the last bit
    return pl.when(total.is_finite()).then(total / (total * 0.0 + divisor)).otherwise(total)


class Mean(Group):
    """The weighted mean of the scores."""

    type = "mean"
    rule = "the mean"

    def score(self, row: Row, scores: Sequence[float], weights: Sequence[float]) -> float:
        return weighted_mean(scores, weights)

    def score_expr(self, scores: Sequence[pl.Expr], weights: Sequence[float]) -> pl.Expr:
        return weighted_mean_expr(scores, weights)


class Minimum(Group):
    """The lowest score."""

    type = "min"
    rule = "the lowest"

    def score(self, row: Row, scores: Sequence[float], weights: Sequence[float]) -> float:
        return min(scores)

    def score_expr(self, scores: Sequence[pl.Expr], weights: Sequence[float]) -> pl.Expr:
        return pl.min_horizontal(scores)


class Maximum(Group):
    """The highest score."""

    type = "max"
    rule = "the highest"
    nearest = True

    def score(self, row: Row, scores: Sequence[float], weights: Sequence[float]) -> float:
        return max(scores)

    def score_expr(self, scores: Sequence[pl.Expr], weights: Sequence[float]) -> pl.Expr:
        return pl.max_horizontal(scores)


class Product(Group):
    """The product of the scores."""

    type = "product"
    rule = "the product"

    def score(self, row: Row, scores: Sequence[float], weights: Sequence[float]) -> float:
        return reduce(mul, scores, 1.0)

    def score_expr(self, scores: Sequence[pl.Expr], weights: Sequence[float]) -> pl.Expr:
        return reduce(mul, (score.fill_null(1.0) for score in scores))


_Pair = Annotated[list[float], Field(min_length=2, max_length=2)]


class LengthScaledParams(Params):
    """The lengths and the scores between which a cosine leads."""

    max: int | float = Field(gt=0, description="Length from which on the score is the second of a pair.")
    unit: Literal["chars", "words"] = Field(default="chars", description="`chars`, `words` or `{column: path}`.")
    correct: _Pair = Field(default=[0.5, 1.0], description="Lowest and highest score if the check passes.")
    wrong: _Pair = Field(default=[-1.0, -0.5], description="Lowest and highest score if it fails.")


class LengthScaled(Group):
    """A score by whether the check passes and how long the output is: short correct outputs score high, short wrong ones low.

    With p = min(n / max, 1), the score is ``lo + 0.5 * (hi - lo) * (1 + cos(p * pi))``, where lo and hi are ``correct``, or ``wrong``
    in reverse. A row without a length counts as one of the greatest length. The cosine reward of "Demystifying Long Chain-of-Thought
    Reasoning in LLMs" (arXiv:2502.03373), with the bounds of `get_cosine_scaled_reward` in TRL's accuracy_rewards.py and in open-r1.
    """

    type = "length_scaled"
    traits = Traits(bounded=False)
    rule = "a good length"
    Params = LengthScaledParams
    params: LengthScaledParams

    def __init__(self, params: Any = None, length: Reference | None = None) -> None:
        super().__init__(params)
        self.length = length
        if length is not None:
            self.traits = replace(  # type: ignore[misc]
                self.traits,
                may_read=length.columns,
                passed_through=length.columns,
                references=(("unit", length),),
            )

    def score(self, row: Row, scores: Sequence[float], weights: Sequence[float]) -> float:
        return self._scaled(self._length(row), correct=scores[0] >= 1.0)

    def _length(self, row: Row) -> float:
        if self.length is None:
            completion: str = row["completion"]
            return float(len(completion if self.params.unit == "chars" else completion.split()))
        value = self.length.row(row)
        value = len(value) if isinstance(value, list) else value
        value = number_value(value) if isinstance(value, str) else value
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            return float(self.params.max)
        return float(value)

    def _scaled(self, length: float, *, correct: bool) -> float:
        lo, hi = self.params.correct if correct else self.params.wrong[::-1]
        p = min(max(length / self.params.max, 0.0), 1.0)
        return lo + 0.5 * (hi - lo) * (1.0 + math.cos(p * math.pi))

    def expr(self) -> pl.Expr:
        """Return a struct of both scores of each row: if the check passes, and if it fails."""
        unit = self.length or self.params.unit
        names = () if self.length is None else self.length.columns
        pairs = pl.Struct({"correct": pl.Float64, "wrong": pl.Float64})

        def scaled(row: Row) -> dict[str, float] | None:
            if row["completion"] is None:
                return None
            length = self._length(row)
            return {name: self._scaled(length, correct=name == "correct") for name in ("correct", "wrong")}

        def build(schema: pl.Schema) -> pl.Expr:
            columns = [exactly(name) for name in names if name in schema]
            return rowwise(row_of([text().alias("completion"), *columns]), scaled, pairs)

        return SharedColumn(f"length-scaled:{unit!r}:{self.params.model_dump()!r}", build).col

    def score_expr(self, scores: Sequence[pl.Expr], weights: Sequence[float]) -> pl.Expr:
        both = self.expr().struct
        return pl.when(scores[0] >= 1.0).then(both.field("correct")).otherwise(both.field("wrong"))


class IncludedParams(Params):
    """Which spec."""

    path: str = Field(description="A verifier file, relative to this one: in the same folder or below it.")


class Included(Group):
    """The score of another spec's verifier: its `combine`, `range`, weights, gates and penalties."""

    type = "spec"
    runs_as = "columns: from the scores of its checks, as its verifier"
    rule = "the spec"
    Params = IncludedParams

    def __init__(
        self,
        params: IncludedParams | None = None,
        combine: Literal["mean", "sum", "min", "max", "product"] = "mean",
        limits: tuple[float, float] | None = (0.0, 1.0),
        *,
        is_native: bool = True,
    ) -> None:
        super().__init__(params or IncludedParams(path=""))
        self.combine = combine
        self.range = limits
        self.is_native = is_native

    def score(self, row: Row, scores: Sequence[float], weights: Sequence[float]) -> float:
        raise TypeError("a spec combines its checks as its verifier does")

    def score_expr(self, scores: Sequence[pl.Expr], weights: Sequence[float]) -> pl.Expr:
        raise TypeError("a spec combines its checks as its verifier does")

    def complaint(self) -> str:
        return "does not meet the spec"


GROUPS: tuple[type[Group], ...] = (AllOf, AnyOf, NoneOf, AtLeast, Mean, Minimum, Maximum, Product, LengthScaled)
"""All kinds of groups."""
