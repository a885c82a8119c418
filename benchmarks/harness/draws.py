"""What the benchmarks draw by seed: specs with the texts to run them on, and functions with golds and params.

``python -m harness.draws`` prints them.
"""

import json
import os
import random
import sys
from dataclasses import dataclass

from harness.pool import POOL
from harness.texts import KINDS

__all__ = ["DRAWS", "FUNCTIONS", "SEED", "FunctionDraw", "SpecDraw", "function_draws", "spec_draws"]

SEED = int(os.environ.get("ASSAY_BENCH_SEED") or 15)
"""What everything is drawn by."""

DRAWS = int(os.environ.get("ASSAY_BENCH_DRAWS") or 20)
"""Specs, and functions."""

FUNCTIONS = ("exact_match", "contains", "regex_match", "tool_calls_match", "task_expectations")


@dataclass(frozen=True)
class SpecDraw:
    """A spec and what to run it on.

    Attributes:
        number: Its number, from 1.
        kind: The kind of text.
        checks: The checks.
    """

    number: int
    kind: str
    checks: tuple[dict[str, object], ...]

    @property
    def name(self) -> str:
        return f"draw {self.number}: {len(self.checks)} checks, {self.kind}"

    @property
    def reads_tasks(self) -> bool:
        """Whether the file needs expectations. Without, it has none: a column that nothing reads is copied to the output."""
        return any(check["type"] == "task_expectations" for check in self.checks)

    def as_json(self) -> str:
        return json.dumps({"id": f"draw-{self.number}", "checks": self.checks}, ensure_ascii=False)


@dataclass(frozen=True)
class FunctionDraw:
    """A function that rows name, and its golds.

    Attributes:
        number: Its number, from 1.
        function: The function, or the check ``task_expectations``.
        params: What the rows pass to it.
        kind: The kind of text.
        gold: The size of a gold: a word, a phrase, a passage; of a pattern: what stands around a phrase.
        distinct: How many rows share a gold; 0 if all rows share a few.
        is_text: Whether the rows bring JSON text; else structs.
    """

    number: int
    function: str
    params: dict[str, object]
    kind: str
    gold: str
    distinct: int
    is_text: bool

    @property
    def name(self) -> str:
        params = "".join(f" {name}={value}" for name, value in self.params.items())
        shared = {0: "50 golds", 1: "a gold for each row"}.get(self.distinct, f"a gold for {self.distinct} rows")
        form = "JSON" if self.is_text else "struct"
        return f"draw {self.number}: {self.function}{params}, {self.kind}, {self.gold}, {shared}, {form}"


def spec_draws(seed: int = SEED) -> list[SpecDraw]:
    """Draw specs; each kind of text comes three times before one comes a fourth time. The first ones of more draws are the same."""
    rng, kinds = random.Random(seed), []
    while len(kinds) < DRAWS:
        every = [kind for kind in KINDS for _ in range(3)]
        kinds += random.Random(f"{seed} {len(kinds)}").sample(every, len(every))
    return [SpecDraw(at, kind, tuple(rng.sample(POOL, rng.randint(4, 16)))) for at, kind in enumerate(kinds[:DRAWS], 1)]


_GOLDS = {
    "regex_match": ("phrase between word boundaries", "phrase in tags", "phrase after a colon", "two words in a line"),
    "tool_calls_match": ("call",),
    "task_expectations": ("two phrases and one to avoid",),
}


def function_draws(seed: int = SEED) -> list[FunctionDraw]:
    """Draw functions: each of them four times."""
    rng = random.Random(seed)
    draws = []
    for at in range(DRAWS):
        function = FUNCTIONS[at % len(FUNCTIONS)]
        params: dict[str, object] = {}
        if function in {"exact_match", "contains", "regex_match"} and rng.random() < 0.5:
            params = {"ignore_case": True}
        elif function == "tool_calls_match" and rng.random() < 0.5:
            params = {"coordinate_tolerance": rng.choice((0, 10, 100))}
        gold = rng.choice(_GOLDS.get(function, ("word", "phrase", "passage")))
        kind, distinct = rng.choice(list(KINDS)), rng.choice((0, 1, 8, 8))
        draws.append(FunctionDraw(at + 1, function, params, kind, gold, distinct, rng.random() < 0.5))
    return draws


if __name__ == "__main__":
    for spec in spec_draws():
        sys.stdout.write(f"{spec.name}\n  {spec.as_json()}\n")
    for drawn in function_draws():
        sys.stdout.write(f"{drawn.name}\n")
