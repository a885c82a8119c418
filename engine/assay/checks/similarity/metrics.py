"""Metrics of similarity: by words, each from its definition; by characters, by rapidfuzz, one pair or many with the same floats.

Sources: SQuAD's ``evaluate-v2.0.py``; rouge_score 0.1.2 without stemming; promptfoo 0.123.1 for BLEU and GLEU.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial, reduce
from operator import add
from typing import Any

import polars as pl

from assay.checks.similarity.overlap import (
    NEVER,
    Bag,
    brevity,
    common_grams,
    f1_of,
    gleu_of,
    latin_words,
    precisions,
    set_f1,
    without_stops,
)

MAX_CELLS = 10_000_000_000
"""Maximum product of the lengths of two sequences whose edits are counted: at most some seconds."""

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


def _token_f1(words: Bag, gold: Bag) -> float:
    if not (words.words and gold.words):
        return float(words.words == gold.words)
    return f1_of(common_grams(words, gold, 1), len(words.words), len(gold.words))


def _set_f1(words: Bag, gold: Bag) -> float:
    return set_f1({*words.words}, {*gold.words})


def _rouge_n(words: Bag, gold: Bag, *, size: int) -> float:
    return f1_of(common_grams(words, gold, size), words.total(size), gold.total(size))


def _numbered(words: Bag, gold: Bag) -> tuple[list[int], list[int]]:
    if words.words != gold.words and len(words.words) * len(gold.words) > MAX_CELLS:
        raise ValueError(
            f"{len(words.words):,} words and {len(gold.words):,} words of the gold are too many to compare: "
            f"their product is over {MAX_CELLS:,}"
        )
    numbers = gold.numbers()
    return [numbers.get(word, len(numbers)) for word in words.words], [numbers[word] for word in gold.words]


def _rouge_l(words: Bag, gold: Bag) -> float:
    from rapidfuzz import distance

    return f1_of(distance.LCSseq.similarity(*_numbered(words, gold)), len(words.words), len(gold.words))


def _word_levenshtein(words: Bag, gold: Bag) -> float:
    from rapidfuzz import distance

    return distance.Levenshtein.normalized_similarity(*_numbered(words, gold))


def _bleu(words: Bag, golds: Sequence[Bag]) -> float:
    if not words.words:
        return 0.0
    logs = [math.log(share or NEVER) for share in precisions(words, golds)]
    penalty = brevity(len(words.words), [len(gold.words) for gold in golds])
    return penalty * math.exp(reduce(add, logs) / len(logs))  # sum() of Python 3.12 rounds otherwise


def _split(text: str) -> list[str]:
    return text.lower().split()


def _without_stops(text: str) -> list[str]:
    return without_stops(_split(text))


WORD_METRICS: dict[str, tuple[Callable[[str], list[str]], Callable[[Bag, Any], float]]] = {
    "word_levenshtein": (_split, _word_levenshtein),
    "token_f1": (str.split, _token_f1),
    "set_f1": (str.split, _set_f1),
    **{f"rouge_{size}": (latin_words, partial(_rouge_n, size=size)) for size in range(1, 6)},
    "rouge_l": (latin_words, _rouge_l),
    "bleu": (_split, _bleu),
    "gleu": (_without_stops, gleu_of),
}
"""How each metric splits a text, and how it scores the words of a text and of a gold; ``bleu`` takes the words of all golds."""


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
    from rapidfuzz import process

    many = partial(process.cpdist, values, golds, scorer=_scorer(metric), workers=pl.thread_pool_size())
    if metric == DISTANCE:
        cutoff = min(max_distance, _LARGEST)
        return pl.Series(many(dtype=np.int64, score_cutoff=cutoff) <= max_distance).cast(pl.Float64)
    scores = many(dtype=np.float64)
    # NOTE: by numpy, because Polars multiplies by a reciprocal
    return pl.Series(scores / 100.0 if metric in _PERCENT else scores)
