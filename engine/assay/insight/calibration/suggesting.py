"""Thresholds and weights whose verdicts agree with labels better, tried on labels that they were not chosen by."""

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, NamedTuple

FOLDS = 10
"""Parts of the labels; what is chosen by nine of them is tried on the tenth."""

_DIGITS = 12
"""Digits in which two scores are equal: sums of weights are rounded."""


class Judged(NamedTuple):
    """A row with a label: its reward, whether it has what is required, whether it is right, how many rows it stands for, its fold."""

    reward: float
    is_eligible: bool
    is_right: bool
    weight: float
    fold: int


class Choice(NamedTuple):
    """A threshold, and the f1 of its verdicts."""

    threshold: float
    f1: float


def f1_of(verdicts: Iterable[tuple[bool, bool, float]]) -> float | None:
    """Return the f1 of verdicts, given for each whether it passes, whether the row is right, and its weight; None if all are False."""
    hits = both = 0.0
    for passes, is_right, weight in verdicts:
        hits += weight * (passes and is_right)
        both += weight * (passes + is_right)
    return 2 * hits / both if both else None


def telling(thresholds: Collection[float], rows: Sequence[Judged], present: float) -> list[float]:
    """Return the thresholds above 0 and the present one; of those between two rewards with labels, the nearest to the present."""
    rewards = sorted({row.reward for row in rows})
    nearest: dict[int, float] = {}
    for threshold in thresholds:
        if threshold > 0:
            gap = bisect_left(rewards, threshold)
            nearest[gap] = min(nearest.get(gap, threshold), threshold, key=_order(present))
    return sorted({*nearest.values(), present})


def _order(present: float) -> Callable[[float], tuple[float, float]]:
    return lambda threshold: (abs(threshold - present), -threshold)


def best(
    rows: Sequence[Judged], thresholds: Sequence[float], present: float, min_precision: float | None
) -> Choice | None:
    """Return the threshold of greatest f1 with a precision of at least ``min_precision``; of several the nearest, then the higher."""
    ordered = sorted((row for row in rows if row.is_eligible), key=lambda row: -row.reward)
    right = sum(row.weight for row in rows if row.is_right)
    hits = passing = 0.0
    at, choices = 0, list[Choice]()
    for threshold in sorted(thresholds, reverse=True):
        while at < len(ordered) and ordered[at].reward >= threshold:
            passing += ordered[at].weight
            hits += ordered[at].weight * ordered[at].is_right
            at += 1
        is_precise = min_precision is None or (passing > 0 and hits / passing >= min_precision)
        if is_precise and passing + right > 0:
            choices.append(Choice(threshold, 2 * hits / (passing + right)))
    order = _order(present)
    return max(
        choices,
        key=lambda choice: (round(choice.f1, _DIGITS), *(-part for part in order(choice.threshold))),
        default=None,
    )


class Variant(NamedTuple):
    """A way to make rewards, with its thresholds: that of the result, or one with another weight."""

    check: str
    weight: float | None
    rows: Sequence[Judged]
    thresholds: Sequence[float]


def best_variant(
    variants: Sequence[Variant], present: float, min_precision: float | None, fold: int | None = None
) -> tuple[Variant, Choice] | None:
    """Return the first of the best variants with its threshold, chosen without the rows of a fold."""
    found = [
        (variant, choice)
        for variant in variants
        if (
            choice := best(
                [row for row in variant.rows if row.fold != fold], variant.thresholds, present, min_precision
            )
        )
    ]
    return max(found, key=lambda pair: round(pair[1].f1, _DIGITS), default=None)


def held_out(variants: Sequence[Variant], present: float, min_precision: float | None) -> float | None:
    """Return the f1 of verdicts on each fold that were chosen on the others; where none could be, nothing passes."""
    verdicts: list[tuple[bool, bool, float]] = []
    for fold in range(FOLDS):
        chosen = best_variant(variants, present, min_precision, fold)
        rows: Any = chosen[0].rows if chosen else variants[0].rows
        limit = chosen[1].threshold if chosen else float("inf")
        verdicts += [
            (row.is_eligible and row.reward >= limit, row.is_right, row.weight) for row in rows if row.fold == fold
        ]
    return f1_of(verdicts)
