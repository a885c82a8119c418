"""ROUGE with stemming, as rouge_score 0.1.2; without, it is a metric of ``similarity``."""

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from assay.checks.similarity.overlap import Bag, common_grams, f1_of, latin_words
from assay.values.normal_forms import by_word

Options = Mapping[str, Any]

_WORD = re.compile(r"[a-z0-9]+")
_LONGEST_UNSTEMMED = 3


@cache
def _stemmer() -> Any:
    from nltk import PorterStemmer

    return PorterStemmer()


@by_word
def _stems(word: str) -> str:
    stem = str(_stemmer().stem(word)) if len(word) > _LONGEST_UNSTEMMED else word
    return stem if _WORD.fullmatch(stem) else ""


def stemmed(text: str, gold: str, options: Options) -> tuple[float, str]:
    """Return ROUGE of stems."""
    mine, other = (Bag([*filter(None, _stems(latin_words(value)))]) for value in (text, gold))
    kind = options["type"].removeprefix("rouge")
    if kind == "L":
        common, size = _longest_common(mine.words, other.words), 1
    else:
        size = int(kind)
        common = common_grams(mine, other, size)
    return f1_of(common, mine.total(size), other.total(size)), text


def _longest_common(mine: list[str], other: list[str]) -> int:
    from rapidfuzz import distance

    return distance.LCSseq.similarity(mine, other)
