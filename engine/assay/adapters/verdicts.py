"""What adapters share: golds under the name that a trainer's data gives them, and results as numbers, words and scores of checks."""

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from operator import add
from statistics import fmean
from typing import Any

from assay.checks.golds import GoldCheck
from assay.compiling.plan import Plan
from assay.errors import FailedRunError, UsageError, listed
from assay.expressions.completion import completion_text
from assay.names import COMPLETION, EXPECTED
from assay.steps.subject import Subject
from assay.values.arguments import MEMO, RAW
from assay.values.references import gold_text

_ANSWER = "answer"

Unscored = str | float
"""What a trainer that takes numbers only gets for an unscored rollout: a number, or ``raise``."""

Columns = Mapping[str, tuple[str, float]]
"""The result column of each check, with a short name and its weight."""


def with_gold(columns: Mapping[str, Any], gold: str) -> dict[str, Any]:
    """Return columns, or a row, with the golds under the name that checks and functions read."""
    if gold in (_ANSWER, EXPECTED):
        return dict(columns)
    if gold not in columns:
        raise UsageError(f"gold={gold!r}: there is no such column.", f"Columns: {listed([*columns])}.")
    return {name: value for name, value in columns.items() if name != EXPECTED} | {_ANSWER: columns[gold]}


def check_unscored(unscored: Unscored) -> None:
    """Check that an option is a number or ``raise``."""
    if not isinstance(unscored, int | float) and unscored != "raise":
        raise UsageError(f"unscored={unscored!r}: expected a number, or 'raise'.")


def number_of(result: Mapping[str, Any], unscored: Unscored) -> float:
    """Return the reward of a result as a number."""
    check_unscored(unscored)  # at the first rollout, not at the first unscored one
    if (reward := result["reward"]) is not None:
        return float(reward)
    if unscored != "raise":
        return float(unscored)
    raise FailedRunError(
        f"A rollout cannot be scored: {result['error']}", "With unscored=0.0 such a rollout gets that reward."
    )


def check_columns(plan: Plan) -> Columns:
    """Return the result column of each check of a plan."""
    several = len(plan.verifiers) > 1
    columns: dict[str, tuple[str, float]] = {}
    for verifier in plan.verifiers:
        checks = {f"check/{verifier.id}/{spec.id}": spec for spec in verifier.checks}
        present = {column: spec for column, spec in checks.items() if column in plan.results}
        for column, spec in present.items():
            columns[column] = (f"{verifier.id}/{spec.id}" if several else spec.id), float(spec.weight)
        if not present and (column := f"score/{verifier.id}") in plan.results:  # a function is its own verifier
            weights = [spec.weight for spec in verifier.checks] if verifier.share is None else [verifier.share.weight]
            columns[column] = verifier.id, reduce(add, weights, 0.0)
    return columns


def score_names(names: Iterable[str]) -> list[str]:
    """Return the names of the result columns that are scores: those of verifiers and of checks."""
    return [name for name in names if name.startswith(("check/", "score/"))]


def checks_of(result: Mapping[str, Any], columns: Columns) -> dict[str, float]:
    """Return the scores of the checks that ran, by their short names."""
    return {short: float(result[column]) for column, (short, _) in columns.items() if result[column] is not None}


def verdict_of(result: Mapping[str, Any], columns: Columns) -> dict[str, Any]:
    """Return the results of a row as evaluators take them: words about it, and the scores of its checks.

    The feedback is what a person, or a model that reflects, reads: of an unscored row, why it is.
    """
    is_scored = result["reward"] is not None
    return {
        "reward": result["reward"],
        "passed": result["passed"],
        "feedback": result["feedback" if is_scored else "error"] or "",
        "error": result["error"],
        "checks": checks_of(result, columns),
    }


def mean_of_scored(values: Sequence[float | None]) -> float:
    """Return the mean of the values that are neither None nor NaN; NaN if there is none."""
    numbers = [value for value in values if value is not None and not math.isnan(value)]
    return fmean(numbers) if numbers else math.nan


def answer_subject(plan: Plan) -> Subject:
    """Return what the first check reads that compares with a gold, else the first with steps: a row's answer, as majority votes compare it."""
    checks = [spec for verifier in plan.verifiers for spec in verifier.nodes if spec.group is None]
    of_gold = [spec for spec in checks if isinstance(spec.check, GoldCheck) and spec.check.brought.compares]
    return next((spec.subject for spec in of_gold[:1] or checks if spec.subject is not None), Subject())


def answer_of(row: Mapping[str, Any], subject: Subject) -> str:
    """Return the text that a row gives as its answer; ``""`` where there is nothing to read."""
    text = completion_text(row[COMPLETION])
    if text is not None:
        text = subject.row({**row, COMPLETION: text, RAW: row[COMPLETION], MEMO: {}}).value
    return "" if text is None else gold_text(text).strip()
