"""Which tasks are for validation: whole units, which are tasks that share a prompt, by a digest of their name."""

import hashlib
import math
from collections.abc import Sequence

import polars as pl


def units_of(rows: pl.DataFrame, keys: Sequence[str], of_prompts: Sequence[int]) -> list[str]:
    """Return the unit of each task: the least key of those that share a prompt with it, or with one that does."""
    pairs = rows.select("task", "prompt").drop_nulls().unique()
    above = [*range(len(keys) + max(of_prompts, default=-1) + 1)]

    def top(node: int) -> int:
        while above[node] != node:
            above[node] = node = above[above[node]]
        return node

    for task, prompt in pairs.iter_rows():
        one, other = top(task), top(len(keys) + of_prompts[prompt])
        above[max(one, other)] = min(one, other)
    names: dict[int, str] = {}
    for task in sorted(range(len(keys)), key=lambda task: keys[task].encode("utf-8", "surrogatepass")):
        names.setdefault(top(task), keys[task])
    return [names[top(task)] for task in range(len(keys))]


def is_validation(unit: str, share: float, seed: int) -> bool:
    """Return whether a unit is for validation."""
    text = f"assay split 1\0{seed}\0{unit}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "big") < math.floor(share * 2.0**64)
