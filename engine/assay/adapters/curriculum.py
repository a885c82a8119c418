"""What counts at a step of a training: weights that change, or another verifier."""

import math
from bisect import bisect_right
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

from assay.adapters.verdicts import check_columns
from assay.compiling.first_batches import check_given
from assay.compiling.plan import Plan
from assay.errors import UsageError, did_you_mean
from assay.scoring.batching import Verifiers, plan_of

Stage = Mapping[str, float] | Verifiers
"""Weights of checks by their ids, the others unchanged; or verifiers."""

Stages = Mapping[int, Stage] | Callable[[int], Stage]
"""The stage at each step, from the step on at which it begins."""

_MOST_PLANS = 64
"""Plans that are kept for the weights of other steps."""


class Curriculum:
    """The plan of each step; weights are of the checks of ``plan``, which counts before the first stage."""

    def __init__(self, plan: Plan, stages: Stages, *, strict: bool) -> None:
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
        return _rebuilt, (self._plan, self._stages, self._strict)

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
        weights = stage if isinstance(stage, Mapping) and all(map(_is_number, stage.values())) else None
        # NOTE: the stage is kept beside its plan, so that no other has its id
        key = id(stage) if weights is None else tuple(sorted(weights.items()))
        if key not in self._plans:
            if len(self._plans) >= _MOST_PLANS:
                self._plans.clear()
            made = plan_of(stage, strict=self._strict) if weights is None else _weighted(self._plan, weights, step)
            self._plans[key] = stage, made
        return self._plans[key][1]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float)


def _rebuilt(plan: Plan, stages: Stages, strict: bool) -> Curriculum:
    return Curriculum(plan, stages, strict=strict)


def _weighted(plan: Plan, weights: Mapping[str, float], step: int) -> Plan:
    columns = {short: column for column, (short, _) in check_columns(plan).items()}
    for check, weight in weights.items():
        if check not in columns:
            hint = did_you_mean(check, columns) or f"Checks: {', '.join(columns)}."
            raise UsageError(f"curriculum, step {step}: there is no check {check!r}.", hint)
        if not (math.isfinite(weight) and weight >= 0):
            raise UsageError(f"curriculum, step {step}: the weight of {check!r} is {weight}.", "Expected at least 0.")
    by_column = {columns[check]: float(weight) for check, weight in weights.items()}
    verifiers = tuple(_with_weights(verifier, by_column) for verifier in plan.verifiers)
    for verifier in verifiers:
        if verifier.share is None and all(spec.role == "weight" and not spec.weight for spec in verifier.runnable):
            raise UsageError(f"curriculum, step {step}: all weights of {verifier.id} are 0.", "One has to be above.")
    return replace(plan, verifiers=verifiers)


def _with_weights(verifier: Any, weights: Mapping[str, float]) -> Any:
    if verifier.share is not None:  # a member of a rubric
        weight = weights.get(f"score/{verifier.id}", verifier.share.weight)
        return replace(verifier, share=replace(verifier.share, weight=weight))
    checks = [
        replace(spec, weight=weights.get(f"check/{verifier.id}/{spec.id}", spec.weight)) for spec in verifier.checks
    ]
    return replace(verifier, checks=tuple(checks))
