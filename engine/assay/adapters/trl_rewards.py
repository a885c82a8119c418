"""Reward functions for the trainers of TRL: GRPO, RLOO, AsyncGRPO, and GDPO with a function for each check; and what counts at a step.

Read from trl 1.16.0: ``GRPOTrainer._calculate_rewards`` and ``RLOOTrainer._calculate_rewards``.
"""

import math
import threading
from bisect import bisect_right
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import polars as pl

from assay.adapters.verdicts import check_columns, with_gold
from assay.checks.graders.table import GRADERS
from assay.compiling.batches import check_given
from assay.compiling.plan import Plan
from assay.errors import UsageError, did_you_mean
from assay.insight.training.filtering import filter_of, keep_groups
from assay.scoring.batching import Verifiers, is_grader, plan_of
from assay.system.processes import prepare_process

Stage = Mapping[str, float] | Verifiers
"""Weights of checks by their ids, the others unchanged; or verifiers."""

Stages = Mapping[int, Stage] | Callable[[int], Stage]
"""The stage at each step, from the step on at which it begins."""

Rewards = list[float | None]
_Log = Callable[[str, Any], Any]

_GROUP = "group"
"""The column with the number of a completion's group."""

_OF_SOLUTIONS = ("trl.", "open_r1.")
"""Graders whose functions take the gold from the column ``solution``."""
_MOST_PLANS = 64
"""Plans that are kept for the weights of other steps."""


def trl(
    spec: Verifiers,
    *,
    gold: str | None = None,
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
        spec: Verifiers, a rubric, a plan, or the name of a grader: ``trl.accuracy``.
        gold: The dataset's column of golds; checks read it as ``answer``. Other columns keep their names, ``prompt`` among them. By
            default ``answer``, and for a grader of TRL or open-r1 by name ``solution``, as their functions do.
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
    if gold is None:
        of_solution = is_grader(spec) and spec.startswith(_OF_SOLUTIONS) and GRADERS[spec].golds != "none"
        gold = "solution" if of_solution else "answer"
    plan = plan_of(spec, strict=strict)
    name = name or plan.verifiers[0].id
    stages = None if curriculum is None else Curriculum(plan, curriculum, strict)
    if isinstance(keep_groups, str):
        filter_of(keep_groups)  # an unknown name shows here, not with the first batch
        keep_groups = partial(_kept, like=keep_groups)
    scores = _Pass(plan, name, gold, stages, keep_groups)
    if not per_check:
        return RewardOfPass(scores, "reward", name)
    columns = check_columns(plan)
    return [RewardOfPass(scores, column, f"{name}/{short}", weight) for column, (short, weight) in columns.items()]


def _kept(frame: pl.DataFrame, like: str) -> pl.DataFrame:
    return keep_groups(frame, _GROUP, like=like).frame


def _ignore(name: str, value: Any) -> None:
    del name, value


class Curriculum:
    """The plan of each step; weights are of the checks of ``plan``, which counts before the first stage."""

    def __init__(self, plan: Plan, stages: Stages, strict: bool) -> None:
        self._plan = plan
        self._stages = stages
        self._strict = self._awaits_columns = strict
        self._plans: dict[Any, tuple[Stage, Plan]] = {}
        if isinstance(stages, Mapping):
            for step, stage in stages.items():
                if not isinstance(step, int):
                    raise UsageError(f"curriculum: {step!r} is no step.", "Expected whole numbers: {0: …, 500: …}.")
                self._compiled(step, stage)

    def __reduce__(self) -> tuple[object, ...]:
        return Curriculum, (self._plan, self._stages, self._strict)

    def plan(self, state: Any) -> Plan:
        """Return what counts, given the trainer's state."""
        if (step := getattr(state, "global_step", None)) is None:
            raise UsageError("curriculum: the trainer gives no trainer_state, and so no step.")
        if not isinstance(self._stages, Mapping):
            return self._compiled(step, self._stages(step))
        steps = sorted(self._stages)
        place = bisect_right(steps, step)
        return self._compiled(step, self._stages[steps[place - 1]]) if place else self._plan

    def look(self, given: Collection[str]) -> None:
        """Look in the first batch for the columns that later stages read."""
        if self._awaits_columns:
            for _, plan in self._plans.values():
                check_given(plan.verifiers, given)
            self._awaits_columns = False

    def _compiled(self, step: int, stage: Stage) -> Plan:
        weights = None
        if isinstance(stage, Mapping) and all(isinstance(value, int | float) for value in stage.values()):
            weights = stage
        # NOTE: the stage is kept beside its plan, so that no other has its id
        key = id(stage) if weights is None else tuple(sorted(weights.items()))
        if key not in self._plans:
            if len(self._plans) >= _MOST_PLANS:
                self._plans.clear()
            made = plan_of(stage, strict=self._strict) if weights is None else _weighted(self._plan, weights, step)
            self._plans[key] = stage, made
        return self._plans[key][1]


def _weighted(plan: Plan, weights: Mapping[str, float], step: int) -> Plan:
    columns = {short: column for column, (short, _) in check_columns(plan).items()}
    for check, weight in weights.items():
        if check not in columns:
            hint = did_you_mean(check, columns) or f"Checks: {', '.join(columns)}."
            raise UsageError(f"curriculum, step {step}: there is no check {check!r}.", hint)
        if not (math.isfinite(weight) and weight >= 0):
            raise UsageError(f"curriculum, step {step}: the weight of {check!r} is {weight}.", "Expected at least 0.")
    by_column = {columns[check]: float(weight) for check, weight in weights.items()}
    verifiers = []
    for verifier in plan.verifiers:
        if verifier.share is not None:  # a member of a rubric
            weight = by_column.get(f"score/{verifier.id}", verifier.share.weight)
            verifiers.append(replace(verifier, share=replace(verifier.share, weight=weight)))
            continue
        weighed = {spec: by_column.get(f"check/{verifier.id}/{spec.id}", spec.weight) for spec in verifier.checks}
        changed = replace(verifier, checks=tuple(replace(spec, weight=weight) for spec, weight in weighed.items()))
        if all(spec.role == "weight" and not spec.weight for spec in changed.runnable):
            raise UsageError(f"curriculum, step {step}: all weights of {verifier.id} are 0.", "One has to be above.")
        verifiers.append(changed)
    return replace(plan, verifiers=tuple(verifiers))


@dataclass
class _Pass:
    """The scores of a batch, which the functions of one trainer share.

    NOTE: a trainer gives the same list of completions to all of its functions; a function that comes a second time begins a new pass.
    """

    plan: Plan
    name: str
    gold: str
    curriculum: Curriculum | None = None
    keep: Callable[[pl.DataFrame], pl.DataFrame] | None = None  # returns the rows of the groups that train

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._of: tuple[Any, pl.DataFrame] | None = None
        self._served: set[str] = set()

    def __reduce__(self) -> tuple[object, ...]:
        return _Pass, (self.plan, self.name, self.gold, self.curriculum, self.keep)

    def column(
        self, name: str, completions: Any, columns: Mapping[str, Any], state: Any, extra: _Log, metric: _Log
    ) -> Rewards:
        prepare_process()  # before the lock, which a fork may have copied from a thread that scores
        with self._lock:
            if self._of is None or self._of[0] is not completions or name in self._served:
                rows, plan = with_gold(columns, self.gold) | {"completion": completions}, self.plan
                if self.curriculum is not None:
                    self.curriculum.look(rows)
                    plan = self.curriculum.plan(state)
                scores = plan.score_rows(rows)
                for column in ("feedback", "error"):
                    extra(f"{self.name}_{column}", scores[column].fill_null("").to_list())
                if scores.height:
                    means = {short: scores[column].mean() for column, (short, _) in check_columns(plan).items()}
                    for short, mean in (means | {"unscored": scores["reward"].null_count() / scores.height}).items():
                        if isinstance(mean, float):
                            metric(f"{self.name}/{short}", mean)
                if self.keep is not None:
                    scores = self._trained(scores, self.keep, columns.get("prompt"), metric)
                self._of, self._served = (completions, scores), set()
            self._served.add(name)
            rewards: Rewards = self._of[1][name].to_list()
            return rewards

    def _trained(
        self, scores: pl.DataFrame, keep: Callable[[pl.DataFrame], pl.DataFrame], prompts: Any, metric: _Log
    ) -> pl.DataFrame:
        """Return results that are null in the groups that are not kept."""
        if prompts is None:
            raise UsageError("keep_groups: the trainer gives no prompts, by which it would know the groups.")
        prompt = pl.Series("prompt", [None if each is None else str(each) for each in prompts], dtype=pl.String)
        groups = scores.with_columns(prompt, prompt.rle_id().alias(_GROUP))
        kept = keep(groups)[_GROUP].unique()
        is_kept = groups[_GROUP].is_in(kept.implode())
        if scores.height:
            metric(f"{self.name}/groups_kept", len(kept) / groups[_GROUP].n_unique())
        names = [name for name, dtype in scores.schema.items() if dtype.is_numeric()]
        return scores.with_columns(pl.when(is_kept).then(pl.col(names)))


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
        logs = log_extra or _ignore, log_metric or _ignore
        return self.scores.column(self.column, completions, given, trainer_state, *logs)
