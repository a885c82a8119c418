"""A check with a gold for each row, and the loop by hand: what ``golds`` and ``gold_outputs`` have cases of."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from harness import generate
from harness.texts import texts

__all__ = ["ROWS", "Draw", "GoldCase", "drawn"]

ROWS = min(generate.ROWS, 25_000)
Draw = Callable[[int, int], Any]
"""What makes the columns of some rows by a seed, the completions first."""
_WORDS = [
    "refund",
    "policy",
    "order",
    "customer",
    "account",
    "invoice",
    "shipping",
    "delivery",
    "item",
    "price",
    "total",
    "answer",
    "model",
    "café",
    "naïve",
]


@dataclass(frozen=True)
class GoldCase:
    """A check, the rollouts that it scores, and the loop.

    Attributes:
        check: The check as a spec has it.
        draw: What draws the columns that the check reads.
        score: The score of a row, given its columns.
        reason: Why a row fails.
        rows: How many rows are scored.
    """

    check: dict[str, Any]
    draw: Draw
    score: Callable[..., float]
    reason: Callable[..., str]
    rows: int = ROWS


def drawn(kind: str, columns: dict[str, Callable[[str, int, random.Random], Any]]) -> Draw:
    """Return what draws texts of a kind, and each column from a text, its number and a generator."""

    def draw(count: int, seed: int) -> dict[str, list[Any]]:
        rng = random.Random(seed)
        completions = _texts_of(kind, count, seed)
        made = {name: [value(text, at, rng) for at, text in enumerate(completions)] for name, value in columns.items()}
        return {"completion": completions, **made}

    return draw


def _texts_of(kind: str, count: int, seed: int) -> list[str]:
    """Return texts: a few words, a list, a solution, or one of the kinds of ``texts``, of 1.3 kB."""
    rng = random.Random(seed)
    if kind == "short":
        return [
            f"{rng.choice(('', ' '))}{' '.join(rng.sample(_WORDS, 3)).title()} {rng.randrange(10**6)}\n"
            for _ in range(count)
        ]
    if kind == "list":
        return [", ".join([*rng.sample(_WORDS, rng.randrange(2, 6)), f"n{rng.randrange(10**6)}"]) for _ in range(count)]
    if kind == "solution":
        return [_solution(rng) for _ in range(count)]
    return list(texts(kind, count, seed))


def _solution(rng: random.Random) -> str:
    value = rng.randrange(100_000)
    said = (
        rf"So it is \boxed{{{value}}}.",
        f"#### {value}",
        f"The answer is ${value:,}.",
        f"The answer is {rng.choice('ABCD')}",
    )
    step = f"First we take {rng.randrange(99)} + {rng.randrange(99)} of each {rng.choice(_WORDS)}, and then we see. "
    return step * rng.randrange(1, 6) + rng.choice(said)
