"""ROUGE with stemming, as rouge_score 0.1.2; without, it is a metric of ``similarity``."""

import re
from collections import Counter
from collections.abc import Mapping
from functools import cache
from typing import Any

from assay.checks.similarity.overlap import f1_of
from assay.values.normal_forms import by_word

Options = Mapping[str, Any]

_WORD = re.compile(r"[a-z0-9]+")
_LONGEST_UNSTEMMED = 3


@cache
def _stemmer() -> Any:
    from nltk.stem.porter import PorterStemmer

    return PorterStemmer()


@by_word
def _stem(word: str) -> str:
    return str(_stemmer().stem(word))


def _words(text: str) -> list[str]:
    words = (_stem(word) if len(word) > _LONGEST_UNSTEMMED else word for word in _WORD.findall(text.lower()))
    return [word for word in words if _WORD.fullmatch(word)]


def stemmed(text: str, gold: str, options: Options) -> tuple[float, str]:
    """Return ROUGE of stems."""
    mine, other, kind = _words(text), _words(gold), options["type"].removeprefix("rouge")
    if kind == "L":
        common, sizes = _longest_common(mine, other), (len(mine), len(other))
    else:
        grams = [Counter(zip(*(words[start:] for start in range(int(kind))), strict=False)) for words in (mine, other)]
        common, sizes = (grams[0] & grams[1]).total(), (grams[0].total(), grams[1].total())
    return f1_of(common, *sizes), text


def _longest_common(mine: list[str], other: list[str]) -> int:
    from rapidfuzz.distance import LCSseq

    return LCSseq.similarity(mine, other)
