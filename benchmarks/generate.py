"""Rollouts to measure on: made by a seed, of the length and the mixture that real ones have."""

import json
import random

import polars as pl

_WORDS = [
    "the",
    "a",
    "of",
    "to",
    "and",
    "in",
    "is",
    "for",
    "that",
    "with",
    "you",
    "your",
    "refund",
    "policy",
    "order",
    "customer",
    "we",
    "can",
    "will",
    "please",
    "shipping",
    "answer",
    "because",
    "however",
    "therefore",
    "model",
    "system",
    "result",
    "number",
    "table",
    "café",
    "naïve",
    "résumé",
    "–",
    "“quoted”",
    "42",
    "3.14",
    "1,000",
    "https://example.org",
]


def rollouts(count: int, seed: int = 0, words: int = 250) -> pl.DataFrame:
    """Texts of about 1.5 kB, one in five a JSON object, a third with letters beyond ASCII, with expectations of 25 % distinct tasks."""
    rng = random.Random(seed)
    ascii_words = [word for word in _WORDS if word.isascii()]
    tasks = [[{"anyOf": rng.sample(_WORDS, 2)} for _ in range(2)] for _ in range(max(count // 4, 1))]
    rows = []
    for at in range(count):
        pool = _WORDS if at % 3 == 0 else ascii_words
        text = f"{at} " + " ".join(rng.choices(pool, k=rng.randrange(words // 2, words * 3 // 2)))
        if at % 5 == 0:
            text = json.dumps({"answer": text, "score": at, "tags": ["a", "b"]}, ensure_ascii=False)
        metadata = {"expectations": {"mustMention": tasks[at % len(tasks)]}}
        rows.append({"id": at, "completion": text, "metadata": metadata})
    return pl.DataFrame(rows)
