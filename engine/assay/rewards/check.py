"""A reward function as a check of a spec."""

from dataclasses import replace
from typing import Any

import polars as pl

from assay.calls.limits import Limits
from assay.checks.base import Row
from assay.expressions.lane import text
from assay.rewards.panel import Reward, Rewards
from assay.rewards.reward_function import RewardFunction
from assay.values.arguments import MEMO


class RewardCheck(Reward):
    """The reward of one function, called with what the check reads as ``completion`` and with columns by their names.

    Where a function of TRL's shape returns None, the check does not apply to the row.

    Args:
        path: ``module:name``.
        function: The function.
        limits: Limits of the run.
    """

    def __init__(self, path: str, function: RewardFunction, limits: Limits | None = None) -> None:
        # the run counts its rollouts itself
        super().__init__(Rewards([function], None if limits is None else replace(limits, tick=None)), 0, 1.0)
        self.type = path  # type: ignore[misc]
        self.limits = limits

    def within(self, limits: Limits) -> "RewardCheck":
        return RewardCheck(self.type, self.function, limits)

    def together(self, rows: Any) -> None:
        """Score each row by itself: conditions and steps decide what it reads."""

    def _results(self, row: Row) -> list[Any]:
        return super()._results({name: value for name, value in row.items() if name != MEMO})

    def unscored(self, row: Row) -> str | None:
        del row
        return None

    def unscored_expr(self) -> pl.Expr | None:
        return None

    def skipped_expr(self) -> pl.Expr | None:
        if not self.nullable:
            return None
        return text().is_not_null() & self.expr().is_null() & self.error_expr().is_null()

    def claim(self) -> str:
        return f"gets 1 from {self.type}"
