"""Which tasks are for validation: whole units, which are tasks that share a prompt, by a digest of their name."""

import hashlib
import math
from collections.abc import Mapping

import polars as pl


def units_of(rows: pl.DataFrame, keys: pl.Series, joined: Mapping[int, int]) -> pl.Series:
    """Return the unit of each task: the least key of those that share a prompt with it, or with one that does.

    ``joined`` has the number of a prompt whose white space is joined, where that makes it another one.
    """
    pairs = rows.select("task", pl.col("prompt").replace(joined)).drop_nulls().unique()
    shared = pairs.select("task", first=pl.col("task").min().over("prompt")).filter(pl.col("first") != pl.col("task"))
    above: dict[int, int] = {}

    def top(task: int) -> int:
        while task in above:
            task = above[task]
        return task

    for pair in shared.iter_rows():
        one, other = map(top, pair)
        if one != other:
            above[max(one, other)] = min(one, other)
    joint = sorted({*above, *above.values()}, key=lambda task: str(keys[task]).encode())
    names: dict[int, str] = {}
    for task in joint:
        names.setdefault(top(task), keys[task])
    # NOTE: scatter changes the series that it is called on
    return keys.clone().scatter(joint, [names[top(task)] for task in joint]) if joint else keys


def is_validation(unit: str, share: float, seed: int) -> bool:
    """Return whether a unit is for validation."""
    text = f"assay split 1\0{seed}\0{unit}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "big") < math.floor(share * 2.0**64)
