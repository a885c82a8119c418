"""Another spec as a check: a group of that spec's checks, whose score is that of its verifier."""
# ruff: noqa: ARG002  (all groups have one signature)

from collections.abc import Sequence
from typing import Literal

import polars as pl
from pydantic import Field

from assay.checks.base import Params, Row
from assay.checks.groups import Group

__all__ = ["Included", "IncludedParams"]


class IncludedParams(Params):
    """Which spec."""

    path: str = Field(description="A verifier file, relative to this one: in the same folder or below it.")


class Included(Group):
    """The score of another spec's verifier: its `combine`, `range`, weights, gates and penalties."""

    type = "spec"
    words = "the spec"
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

    def explain(self) -> str:
        return "columns: from the scores of its checks, as its verifier"
