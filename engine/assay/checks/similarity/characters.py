"""Similarity by characters, by rapidfuzz: one pair, or many on all cores with the same floats."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import polars as pl

from assay.checks.similarity.words import MAX_CELLS

DISTANCE = "levenshtein_distance"
"""The metric that only says whether a distance is small enough."""

PARTIAL_METRICS = ("partial", "partial_token_set", "weighted")
"""The metrics that try every place of the shorter text in the longer one."""

_PERCENT = {
    "token_sort": "token_sort_ratio",
    "token_set": "token_set_ratio",
    "partial": "partial_ratio",
    "partial_token_set": "partial_token_set_ratio",
    "weighted": "WRatio",
}
"""The metrics that are percentages in rapidfuzz, by their names there."""

_NORMALIZED = {"ratio": "Indel", "indel": "Indel", "levenshtein": "Levenshtein", "osa": "OSA", "lcs": "LCSseq"}
_LARGEST = 1 << 40
"""Longer than any text."""


def _scorer(metric: str) -> Callable[..., Any]:
    from rapidfuzz import distance, fuzz

    if metric in _PERCENT:
        return getattr(fuzz, _PERCENT[metric])  # type: ignore[no-any-return]
    if metric == "jaro_winkler":  # NOTE: its normalized_similarity differs in the last bit between one pair and many
        return distance.JaroWinkler.similarity
    if metric == DISTANCE:
        return distance.Levenshtein.distance
    return getattr(distance, _NORMALIZED[metric]).normalized_similarity  # type: ignore[no-any-return]


def problem_of(metric: str, value: str, gold: str, *, max_distance: int, max_chars: int) -> str | None:
    """Return why two texts are too long to be compared; None if they are not."""
    shorter, longer = sorted((len(value), len(gold)))
    if metric in PARTIAL_METRICS and shorter > max_chars:
        return f"the shorter of both texts has {shorter:,} characters, over maxChars ({max_chars:,})"
    if metric == DISTANCE:
        shorter = 0 if longer - shorter > max_distance else min(shorter, 2 * max_distance + 1)
    if shorter * longer > MAX_CELLS and value != gold:
        return (
            f"{len(value):,} characters and {len(gold):,} characters of the gold are too many to compare: "
            f"their product is over {MAX_CELLS:,}"
        )
    return None


def similarity(metric: str, value: str, gold: str) -> float:
    """Return the similarity of two texts, in [0, 1]; 1.0 if both are empty."""
    if not (value or gold):
        return 1.0
    score = _scorer(metric)(value, gold)
    return score / 100.0 if metric in _PERCENT else score  # type: ignore[no-any-return]


def within(value: str, gold: str, max_distance: int) -> float:
    """Return whether the Levenshtein distance of two texts is at most a number."""
    cutoff = min(max_distance, len(value) + len(gold))
    return float(_scorer(DISTANCE)(value, gold, score_cutoff=cutoff) <= max_distance)


def similarities(metric: str, values: Sequence[str], golds: Sequence[str], max_distance: int) -> pl.Series:
    """Return ``similarity`` or ``within`` of many pairs, of which none has two empty texts, as a Float64 column."""
    import numpy as np
    from rapidfuzz.process import cpdist

    many = partial(cpdist, values, golds, scorer=_scorer(metric), workers=pl.thread_pool_size())
    if metric == DISTANCE:
        cutoff = min(max_distance, _LARGEST)
        return pl.Series(many(dtype=np.int64, score_cutoff=cutoff) <= max_distance).cast(pl.Float64)
    scores = many(dtype=np.float64)
    # NOTE: by numpy, because Polars multiplies by a reciprocal
    return pl.Series(scores / 100.0 if metric in _PERCENT else scores)
