"""F1 of what a text and a gold have in common."""


def f1_of(common: int, size: int, gold_size: int) -> float:
    """Return the harmonic mean of precision and recall; 0.0 if there is nothing in common."""
    if not common:
        return 0.0
    precision, recall = common / size, common / gold_size
    return 2 * precision * recall / (precision + recall)


def set_f1(words: set[str], gold: set[str]) -> float:
    """Return F1 of two sets of words in nltk's arithmetic, which has other last bits than ``f1_of``; 0.0 if there is nothing in common."""
    common = len(words & gold)
    if not common:
        return 0.0
    return 1.0 / (0.5 / (common / len(words)) + (1 - 0.5) / (common / len(gold)))
