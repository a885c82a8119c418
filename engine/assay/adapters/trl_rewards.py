"""Reward functions for the trainers of TRL: GRPO, RLOO, AsyncGRPO, and GDPO with a function for each check.

Read from trl 1.16.0: ``GRPOTrainer._calculate_rewards`` and ``RLOOTrainer._calculate_rewards``.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import polars as pl

from assay.adapters.golds import with_gold
from assay.adapters.verdicts import check_columns
from assay.compiling.plan import Plan
from assay.scoring.batching import Verifiers, plan_of
from assay.system.processes import prepare_process

__all__ = ["RewardOfPass", "trl"]

Rewards = list[float | None]


def trl(
    spec: Verifiers,
    *,
    gold: str = "answer",
    per_check: bool = False,
    name: str | None = None,
    strict: bool = True,
) -> "RewardOfPass | list[RewardOfPass]":
    """Return a reward function for ``reward_funcs=`` of a trainer.

    An unscored completion has the reward None, which TRL leaves out of its group. The columns ``<name>_feedback`` and
    ``<name>_error`` of TRL's table of completions say why; ``<name>/<check>`` are metrics, the mean of each check, and
    ``<name>/unscored`` the share of unscored completions.

    Args:
        spec: Verifiers, a rubric, or a plan.
        gold: The dataset's column of golds; checks read it as ``answer``. Other columns keep their names, ``prompt`` among them.
        per_check: Return a function for each check instead, for GDPO and for weights of TRL. They share one pass, and each has
            the check's ``weight``. Gates, required checks and penalties act on the whole reward only.
        name: The name in TRL's tables; by default the verifier's id.
        strict: As of ``assay.compile``.

    Returns:
        A function, or with ``per_check`` a list of them. They pickle, as AsyncGRPO needs.

    Raises:
        SpecError: A verifier cannot be used.
    """
    plan = plan_of(spec, strict=strict)
    name = name or plan.verifiers[0].id
    scores = _Pass(plan, name, gold)
    if not per_check:
        return RewardOfPass(scores, "reward", name)
    columns = check_columns(plan)
    return [RewardOfPass(scores, column, f"{name}/{short}", weight) for column, (short, weight) in columns.items()]


class _Pass:
    """The scores of a batch, which the functions of one trainer share.

    NOTE: a trainer gives the same list of completions to all of its functions; a function that comes a second time begins a new pass.
    """

    def __init__(self, plan: Plan, name: str, gold: str) -> None:
        self.plan = plan
        self.name = name
        self.gold = gold
        self._lock = threading.Lock()
        self._of: tuple[Any, pl.DataFrame] | None = None
        self._served: set[str] = set()

    def __reduce__(self) -> tuple[object, ...]:
        return _Pass, (self.plan, self.name, self.gold)

    def column(self, name: str, completions: Any, columns: Mapping[str, Any], logs: "_Logs") -> Rewards:
        """Return a result column for a batch; the first of a pass scores it."""
        prepare_process()  # before the lock, which a fork may have copied from a thread that scores
        with self._lock:
            if self._of is None or self._of[0] is not completions or name in self._served:
                rows = with_gold(columns, self.gold) | {"completion": completions}
                self._of = completions, self.plan.score_rows(rows)
                self._served = set()
                logs.write(self.name, self._of[1], check_columns(self.plan))
            self._served.add(name)
            rewards: Rewards = self._of[1][name].to_list()
            return rewards


class _Logs:
    """Where a trainer takes columns of its table, and metrics."""

    def __init__(self, extra: Callable[..., Any] | None, metric: Callable[..., Any] | None) -> None:
        self._extra = extra
        self._metric = metric

    def write(self, name: str, scores: pl.DataFrame, checks: Mapping[str, tuple[str, float]]) -> None:
        if self._extra is not None:
            for column in ("feedback", "error"):
                self._extra(f"{name}_{column}", scores[column].fill_null("").to_list())
        if self._metric is not None and scores.height:
            means = {short: scores[column].mean() for column, (short, _) in checks.items()}
            for short, mean in (means | {"unscored": scores["reward"].null_count() / scores.height}).items():
                if isinstance(mean, float):
                    self._metric(f"{name}/{short}", mean)


class RewardOfPass:
    """A function that a trainer calls with a batch, and that returns one result column.

    Attributes:
        weight: The weight of its check; 1 for the reward.
    """

    def __init__(self, scores: _Pass, column: str, name: str, weight: float = 1.0) -> None:
        self.scores = scores
        self.column = column
        self.__name__ = name
        self.weight = weight

    def __reduce__(self) -> tuple[object, ...]:
        return RewardOfPass, (self.scores, self.column, self.__name__, self.weight)

    def __call__(
        self,
        *,
        completions: Sequence[Any],
        prompts: Sequence[Any] | None = None,
        log_extra: Callable[..., Any] | None = None,
        log_metric: Callable[..., Any] | None = None,
        **columns: Any,
    ) -> Rewards:
        """Return a reward for each completion, None if it is unscored.

        Args:
            completions: Texts, or lists of messages.
            prompts: The prompts, read as ``prompt``.
            log_extra: Takes columns of the trainer's table of completions.
            log_metric: Takes metrics.
            columns: Columns of the dataset, and what else the trainer passes.
        """
        given = columns if prompts is None else {**columns, "prompt": prompts}
        return self.scores.column(self.column, completions, given, _Logs(log_extra, log_metric))
