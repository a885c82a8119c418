"""Results of a row as evaluators take them: words about it, and a score for each check under a short name."""

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from assay.checks.golds import GoldCheck
from assay.compiling.plan import Plan
from assay.expressions.completion import completion_text
from assay.names import COMPLETION
from assay.steps.subject import Subject
from assay.values.arguments import MEMO, RAW
from assay.values.references import gold_text


def check_columns(plan: Plan) -> dict[str, tuple[str, float]]:
    """Return the result column of each check, with a short name and its weight."""
    several = len(plan.verifiers) > 1
    columns: dict[str, tuple[str, float]] = {}
    for verifier in plan.verifiers:
        checks = {f"check/{verifier.id}/{spec.id}": spec for spec in verifier.checks}
        present = {column: spec for column, spec in checks.items() if column in plan.results}
        for column, spec in present.items():
            columns[column] = (f"{verifier.id}/{spec.id}" if several else spec.id), float(spec.weight)
        if not present and (column := f"score/{verifier.id}") in plan.results:  # a function is its own verifier
            of_member = None if verifier.share is None else verifier.share.weight
            columns[column] = (
                verifier.id,
                float(sum(spec.weight for spec in verifier.checks) if of_member is None else of_member),
            )
    return columns


def score_names(names: Iterable[str]) -> list[str]:
    """Return the names of the result columns that are scores: those of verifiers and of checks."""
    return [name for name in names if name.startswith(("check/", "score/"))]


def checks_of(result: Mapping[str, Any], columns: Mapping[str, tuple[str, float]]) -> dict[str, float]:
    """Return the scores of the checks that ran, by their short names."""
    return {short: float(result[column]) for column, (short, _) in columns.items() if result[column] is not None}


def feedback_of(result: Mapping[str, Any]) -> str:
    """Return what a person, or a model that reflects, reads about a row: its feedback, or why it is unscored."""
    return (result["feedback"] if result["reward"] is not None else result["error"]) or ""


def mean_of_scored(values: Sequence[float | None]) -> float:
    """Return the mean of the values that are neither None nor NaN; NaN if there is none."""
    numbers = [value for value in values if value is not None and not math.isnan(value)]
    return fmean(numbers) if numbers else math.nan


def answer_subject(plan: Plan) -> Subject:
    """Return where a row's answer is, to compare with those of other rows, as majority votes do."""
    checks = [spec for verifier in plan.verifiers for spec in verifier.nodes if spec.group is None]
    of_gold = [spec for spec in checks if isinstance(spec.check, GoldCheck) and spec.check.compares]
    return next((spec.subject for spec in of_gold[:1] or checks if spec.subject is not None), Subject())


def answer_of(row: Mapping[str, Any], subject: Subject) -> str:
    """Return the text that a row gives as its answer; ``""`` where there is nothing to read."""
    text = completion_text(row[COMPLETION])
    if text is not None:
        text = subject.row({**row, COMPLETION: text, RAW: row[COMPLETION], MEMO: {}}).value
    return "" if text is None else gold_text(text).strip()
