"""Reward functions for the trainers of TRL: GRPO, RLOO, AsyncGRPO, and GDPO with a function for each check.

Read from trl 1.16.0: ``GRPOTrainer._calculate_rewards`` and ``RLOOTrainer._calculate_rewards``.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import polars as pl

from assay.adapters.curriculum import Curriculum, Stages
from assay.adapters.golds import with_gold
from assay.adapters.verdicts import check_columns
from assay.compiling.plan import Plan
from assay.errors import UsageError
from assay.insight.training.filtering import filter_of, keep_groups
from assay.scoring.batching import Verifiers, plan_of
from assay.system.processes import prepare_process

Rewards = list[float | None]

_GROUP = "group"
"""The column with the number of a completion's group."""


def trl(
    spec: Verifiers,
    *,
    gold: str = "answer",
    per_check: bool = False,
    curriculum: Stages | None = None,
    keep_groups: str | Callable[[pl.DataFrame], pl.DataFrame] | None = None,
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
        curriculum: What counts at a step of the trainer, ``trainer_state.global_step``: weights of checks by their ids, or another
            verifier; a function of the step, or a mapping from the steps at which each begins.
        keep_groups: Which groups of completions train: those that the filter of this name keeps, as of ``assay.keep_groups``. The
            others get None, and ``<name>/groups_kept`` is the share of groups with a reward to learn from. Or a function of the
            batch, which returns the rows of the groups to keep: a frame with ``group``, ``prompt``, ``reward`` and the other results.
        name: The name in TRL's tables; by default the verifier's id.
        strict: As of ``assay.compile``.

    Returns:
        A function, or with ``per_check`` a list of them. They pickle, as AsyncGRPO needs.

    Raises:
        SpecError: A verifier cannot be used.
        UsageError: The curriculum or the filter cannot be used.
    """
    if per_check and curriculum is not None:
        raise UsageError(
            "curriculum: functions of single checks are weighed by TRL.", "Give reward_weights= to its config instead."
        )
    plan = plan_of(spec, strict=strict)
    name = name or plan.verifiers[0].id
    stages = None if curriculum is None else Curriculum(plan, curriculum, strict=strict)
    scores = _Pass(plan, name, gold, stages, _keeper(keep_groups) if isinstance(keep_groups, str) else keep_groups)
    if not per_check:
        return RewardOfPass(scores, "reward", name)
    columns = check_columns(plan)
    return [RewardOfPass(scores, column, f"{name}/{short}", weight) for column, (short, weight) in columns.items()]


def _keeper(like: str) -> Callable[[pl.DataFrame], pl.DataFrame]:
    filter_of(like)  # an unknown name shows here, not with the first batch
    return partial(_kept, like=like)


def _kept(frame: pl.DataFrame, like: str) -> pl.DataFrame:
    return keep_groups(frame, _GROUP, like=like).frame


@dataclass
class _Pass:
    """The scores of a batch, which the functions of one trainer share.

    NOTE: a trainer gives the same list of completions to all of its functions; a function that comes a second time begins a new pass.

    Attributes:
        plan: The verifiers.
        name: The name in the trainer's tables.
        gold: The dataset's column of golds.
        curriculum: What counts at a step; None if it is always the same.
        keep: Returns the rows of the groups that train; None if all do.
    """

    plan: Plan
    name: str
    gold: str
    curriculum: Curriculum | None = None
    keep: Callable[[pl.DataFrame], pl.DataFrame] | None = None

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._of: tuple[Any, pl.DataFrame] | None = None
        self._served: set[str] = set()

    def __reduce__(self) -> tuple[object, ...]:
        return _Pass, (self.plan, self.name, self.gold, self.curriculum, self.keep)

    def column(self, name: str, completions: Any, columns: Mapping[str, Any], state: Any, logs: "_Logs") -> Rewards:
        prepare_process()  # before the lock, which a fork may have copied from a thread that scores
        with self._lock:
            if self._of is None or self._of[0] is not completions or name in self._served:
                rows, plan = with_gold(columns, self.gold) | {"completion": completions}, self.plan
                if self.curriculum is not None:
                    self.curriculum.look(rows)
                    plan = self.curriculum.plan(state)
                scores = plan.score_rows(rows)
                logs.write(self.name, scores, check_columns(plan))
                if self.keep is not None:
                    scores = self._trained(scores, columns.get("prompt"), logs)
                self._of, self._served = (completions, scores), set()
            self._served.add(name)
            rewards: Rewards = self._of[1][name].to_list()
            return rewards

    def _trained(self, scores: pl.DataFrame, prompts: Any, logs: "_Logs") -> pl.DataFrame:
        if prompts is None:
            raise UsageError("keep_groups: the trainer gives no prompts, by which it would know the groups.")
        assert self.keep is not None  # noqa: S101  (a caller's condition)
        prompt = pl.Series("prompt", [None if each is None else str(each) for each in prompts], dtype=pl.String)
        groups = scores.with_columns(prompt, prompt.rle_id().alias(_GROUP))
        kept = self.keep(groups)[_GROUP].unique()
        is_kept = groups[_GROUP].is_in(kept.implode())
        if scores.height:
            logs.metric(f"{self.name}/groups_kept", len(kept) / groups[_GROUP].n_unique())
        names = [name for name, dtype in scores.schema.items() if dtype.is_numeric()]
        return scores.with_columns(pl.when(is_kept).then(pl.col(names)))


class _Logs:
    def __init__(self, extra: Callable[..., Any] | None, metric: Callable[..., Any] | None) -> None:
        self._extra = extra
        self._metric = metric

    def metric(self, name: str, value: float) -> None:
        if self._metric is not None:
            self._metric(name, value)

    def write(self, name: str, scores: pl.DataFrame, checks: Mapping[str, tuple[str, float]]) -> None:
        if self._extra is not None:
            for column in ("feedback", "error"):
                self._extra(f"{name}_{column}", scores[column].fill_null("").to_list())
        if scores.height:
            means = {short: scores[column].mean() for column, (short, _) in checks.items()}
            for short, mean in (means | {"unscored": scores["reward"].null_count() / scores.height}).items():
                if isinstance(mean, float):
                    self.metric(f"{name}/{short}", mean)


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
        completions: Sequence[Any],
        prompts: Sequence[Any] | None = None,
        *,
        trainer_state: Any = None,
        log_extra: Callable[..., Any] | None = None,
        log_metric: Callable[..., Any] | None = None,
        **columns: Any,
    ) -> Rewards:
        """Return a reward for each completion, None if it is unscored.

        Args:
            completions: Texts, or lists of messages.
            prompts: The prompts, read as ``prompt``.
            trainer_state: What the trainer knows of its progress.
            log_extra: Takes columns of the trainer's table of completions.
            log_metric: Takes metrics.
            columns: Columns of the dataset, and what else the trainer passes.
        """
        given = columns if prompts is None else {**columns, "prompt": prompts}
        return self.scores.column(self.column, completions, given, trainer_state, _Logs(log_extra, log_metric))
