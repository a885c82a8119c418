"""What a text and a gold have in common: words and n-grams counted, and the scores of these counts."""

import math
import string
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence

MAX_WORDS = 1_000_000
"""Maximum words of a gold whose n-grams are counted: some hundred megabytes."""
_ORDERS = range(1, 5)
"""The sizes of n-grams that BLEU and GLEU count."""
NEVER = 1e-7
"""What stands for BLEU's precision where no n-gram is in a gold."""
_LATIN = bytes(code if chr(code) in string.ascii_lowercase + string.digits else ord(" ") for code in range(256))
"""What becomes of each ASCII character of a text in lower case that is split into Latin words."""


def latin_words(text: str) -> list[str]:
    """Return the Latin letters and digits of a text in lower case, as words: those of rouge_score."""
    # as re.findall("[a-z0-9]+", …), in a quarter of the time
    return text.lower().encode("ascii", "replace").translate(_LATIN).decode("ascii").split()


def without_stops(words: list[str]) -> list[str]:
    """Return words without full stops at their ends, as GLEU compares them; none if they are nothing else."""
    words = [word.rstrip(".") for word in words]
    return words if any(words) else []


class Bag:
    """A text's words, its n-grams counted when they are asked for."""

    __slots__ = ("_counts", "_numbers", "words")

    def __init__(self, words: list[str]) -> None:
        self.words = words
        self._counts: dict[int, Counter[Hashable]] = {}
        self._numbers: dict[str, int] = {}

    def grams(self, size: int) -> Iterable[Hashable]:
        """Return the n-grams of a size."""
        return self.words if size == 1 else zip(*(self.words[start:] for start in range(size)), strict=False)

    def counts(self, size: int) -> Counter[Hashable]:
        """Return how often each n-gram of a size occurs."""
        if size not in self._counts:
            if len(self.words) > MAX_WORDS:
                raise ValueError(
                    f"the gold has {len(self.words):,} words, over {MAX_WORDS:,}: too long to count its n-grams"
                )
            self._counts[size] = Counter(self.grams(size))
        return self._counts[size]

    def numbers(self) -> dict[str, int]:
        """Return a number from 0 for each word."""
        if not self._numbers:
            self._numbers = {word: number for number, word in enumerate(dict.fromkeys(self.words))}
        return self._numbers

    def total(self, size: int) -> int:
        """Return how many n-grams of a size there are."""
        return max(len(self.words) - size + 1, 0)


def in_common(items: Iterable[Hashable], counts: Mapping[Hashable, int]) -> int:
    """Return how many items of one side have a partner in the other, whose items are counted."""
    # NOTE: only items of the other are counted, so that a long text takes time but no memory
    shared = Counter(filter(counts.__contains__, items))
    return sum(map(min, shared.values(), map(counts.__getitem__, shared)))


def common_grams(words: Bag, gold: Bag, size: int) -> int:
    """Return how many n-grams of a size both have."""
    return in_common(words.grams(size), gold.counts(size))


def _common_of_orders(words: Bag, gold: Bag) -> list[int]:
    """Return how many n-grams both have, by size; longer ones than the first of which there is none have none."""
    found: list[int] = []
    for size in _ORDERS:
        found.append(common_grams(words, gold, size) if all(found) else 0)
    return found


def gleu_of(words: Bag, gold: Bag) -> float:
    """Return GLEU: the share of n-grams in common, of the side that has more."""
    total = max(sum(bag.total(size) for size in _ORDERS) for bag in (words, gold))
    return sum(_common_of_orders(words, gold)) / total if total else 0.0


def precisions(words: Bag, golds: Sequence[Bag]) -> list[float]:
    """Return BLEU's precision of each size of n-grams that the words have: the best of the golds."""
    common = [_common_of_orders(words, gold) for gold in golds]
    best = map(max, zip(*common, strict=True))
    return [most / total for size, most in zip(_ORDERS, best, strict=True) if (total := words.total(size))]


def brevity(size: int, golds: Iterable[int]) -> float:
    """Return BLEU's penalty for a text that is shorter than the gold of the closest length."""
    closest = min(golds, key=lambda length: (abs(length - size), length))
    return math.exp(1 - closest / size) if size <= closest else 1.0


def f1_of(common: int, size: int, gold_size: int) -> float:
    """Return the harmonic mean of precision and recall; 0.0 if there is nothing in common."""
    if not common:
        return 0.0
    precision, recall = common / size, common / gold_size
    return 2 * precision * recall / (precision + recall)


def token_f1(words: Sequence[Hashable], gold: Sequence[Hashable]) -> float:
    """Return F1 of two lists of words; 0.0 if they have nothing in common."""
    return f1_of(in_common(words, Counter(gold)), len(words), len(gold))


def set_f1(words: set[str], gold: set[str]) -> float:
    """Return F1 of two sets of words in nltk's arithmetic, which has other last bits than ``f1_of``; 0.0 if there is nothing in common."""
    common = len(words & gold)
    if not common:
        return 0.0
    return 1.0 / (0.5 / (common / len(words)) + (1 - 0.5) / (common / len(gold)))
