"""Reward functions as checks: members of a rubric, their metrics, and functions that specs name."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any

import polars as pl

from assay.calls.limits import Graded, Limits
from assay.checks.base import Columns, Outcome, Row, RowAwareCheck, Traits
from assay.expressions.shared_columns import text
from assay.rewards.panel import STRICT, RewardBatch
from assay.rewards.reward_function import RewardFunction, shortfall, verdict
from assay.values.arguments import COLUMN, COLUMN_OF, MEMO, RAW

NOT_APPLICABLE = "no reward function applies to the row"
"""Why a row is unscored for which all functions return None."""

_Result = tuple[float | None, str | None, Graded | None]
"""The reward, the error and the remark of one function for one row."""


class Reward(RowAwareCheck):
    """The reward of one function."""

    type = "function"
    graded = True

    def __init__(self, rewards: RewardBatch, at: int, weight: float) -> None:
        super().__init__()
        self.rewards = rewards
        self.at = at
        self.weight = weight
        required = (name for name in self.function.required if name in STRICT or name.startswith(COLUMN))
        self.traits = Traits(  # type: ignore[misc]
            bounded=False,
            reads=tuple(name.removeprefix(COLUMN) for name in required),
            may_read=rewards.columns,
            passed_through=("answer", "task", "example_id", "id", *rewards.others),
            nullable=self.function.skips,
            sees_all=self.function.group,
            reads_all=rewards.takes_all,
            code=self.function.func,
        )
        self._decides = rewards.skips and at == 0
        """Whether this is the check that finds rows to which no function applies."""

    @property
    def function(self) -> RewardFunction:
        """Return the function."""
        return self.rewards.functions[self.at]

    def _field(self, name: str) -> pl.Expr:
        return self.rewards.lane().col.struct.field(f"{self.at}/{name}")

    def column_problems(self, schema: pl.Schema) -> list[tuple[str, str]]:
        if not self.function.group or any(name in schema for name in (*COLUMN_OF["example_id"], "prompt")):
            return []
        fact = f"`{self.function.name}` sees all rollouts of an example, and the rollouts have no `example_id`."
        hint = "Rename the column that says which rollouts belong together: --map example_id=COLUMN."
        return [(fact, f"{hint} A function that scores each rollout by itself is @assay.reward(batched=True).")]

    def close(self) -> None:
        self.rewards.close()

    def prefetch(self, rows: Sequence[Row]) -> None:
        if any(id(self.rewards) not in row[MEMO] for row in rows):
            for row, results in zip(rows, _score_rows(rows, self.rewards), strict=True):
                row[MEMO][id(self.rewards)] = results

    def _results(self, row: Row) -> list[_Result]:
        return row[MEMO][id(self.rewards)] if MEMO in row else _score_rows([row], self.rewards)[0]

    def outcome(self, row: Row) -> Outcome:
        score, error, remark = self._results(row)[self.at]
        return verdict(score, error, "" if remark is None else remark.reason, self.weight)

    def unscored(self, row: Row) -> str | None:
        if not self._decides:
            return None
        return NOT_APPLICABLE if all(score is None for score, _, _ in self._results(row)) else None

    def columns(self) -> Columns:
        error = self._field("error")
        reason = pl.coalesce(error, self._field("reason"), pl.lit(shortfall(self.weight)))
        columns = Columns(self._field("score"), reason, error, short=self._falls_short)
        if not self._decides:
            return columns
        fields = self.rewards.lane().col.struct
        scores = [fields.field(f"{at}/score").is_null() for at in range(len(self.rewards.functions))]
        return replace(columns, unscored=pl.when(pl.all_horizontal(scores)).then(pl.lit(NOT_APPLICABLE)))

    def _falls_short(self, score: pl.Expr, error: pl.Expr) -> pl.Expr:
        short = score < 1.0 if self.weight > 0 else (score > 0.0) & (self.weight < 0)
        return short | error.is_not_null()

    def explain(self) -> str:
        how = "in batches" if self.function.batched else "row by row"
        how = "all rollouts of an example together" if self.function.group else how
        return f"Python, {how}{', asynchronous' if self.function.is_async else ''}"


class Metric(Reward):
    """A declared metric of the function at a position, as a member of weight 0; null where the function does not return it."""

    def __init__(self, rewards: RewardBatch, at: int, metric: str) -> None:
        super().__init__(rewards, at, 0.0)
        self.metric = metric
        self.traits = replace(self.traits, reads=(), nullable=True)  # type: ignore[misc]
        self._decides = False

    def column_problems(self, schema: pl.Schema) -> list[tuple[str, str]]:
        del schema
        return []

    def outcome(self, row: Row) -> Outcome:
        remark = self._results(row)[self.at][2]
        value = None if remark is None else remark.metrics.get(self.metric)
        return verdict(value, None, "", self.weight)

    def columns(self) -> Columns:
        nothing = pl.lit(None, dtype=pl.String)
        reason = pl.coalesce(nothing, self._field("reason"), pl.lit(shortfall(self.weight)))
        return Columns(self._field(f"metric/{self.metric}"), reason, nothing, short=self._falls_short)

    def explain(self) -> str:
        return f"a metric of {self.function.name}"


def _score_rows(rows: Sequence[Row], rewards: RewardBatch) -> list[list[_Result]]:
    names = rewards.read_from(dict.fromkeys(name for row in rows for name in row))
    columns = {name: [deepcopy(row.get(RAW if name == "completion" else name)) for row in rows] for name in names}
    parts = [*zip(*rewards.score(columns, len(rows)), strict=True)]
    return [
        [(scores[row], errors.get(row), remarks.get(row)) for scores, errors, remarks in parts]
        for row in range(len(rows))
    ]


class RewardCheck(Reward):
    """The reward of one function, ``module:name``, called with what the check reads as ``completion`` and with columns by their names."""

    def __init__(self, path: str, function: RewardFunction, limits: Limits | None = None) -> None:
        # the run counts its rollouts itself
        super().__init__(RewardBatch([function], None if limits is None else replace(limits, tick=None)), 0, 1.0)
        self.type = path  # type: ignore[misc]
        self.limits = limits

    def within(self, limits: Limits) -> "RewardCheck":
        return RewardCheck(self.type, self.function, limits)

    def prefetch(self, rows: Any) -> None:
        """Score each row by itself: conditions and steps decide what it reads."""

    def _results(self, row: Row) -> list[_Result]:
        return super()._results({name: value for name, value in row.items() if name != MEMO})

    def unscored(self, row: Row) -> str | None:
        del row
        return None

    def columns(self) -> Columns:
        columns = replace(super().columns(), unscored=None)
        if not self.traits.nullable:
            return columns
        return replace(columns, skipped=text().is_not_null() & columns.score.is_null() & self._field("error").is_null())

    def claim(self) -> str:
        return f"gets 1 from {self.type}"
