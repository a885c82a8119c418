"""Equal verdicts before anything is timed: who is here, who can say what a spec says, and whose verdicts differ."""

import importlib.util
from collections.abc import Callable
from pathlib import Path

import polars as pl

from harness.generate import CACHE
from harness.process import ProcessError

__all__ = ["MAY_DIFFER", "absent", "differences", "not_expressible", "verdicts", "written"]

MAY_DIFFER = {"promptfoo": 0.001}
"""The share of rows on which a peer may have another verdict on the ten checks: JavaScript has other rules than Python."""

_NEEDS = {"DuckDB SQL": "duckdb", "verifiers": "verifiers", "inspect_ai": "inspect_ai"}


def absent(name: str) -> str:
    """Return how to get a peer that is not here, or ``""``."""
    if name in _NEEDS and importlib.util.find_spec(_NEEDS[name]) is None:
        return "absent: make peers"
    if name == "promptfoo" and not (CACHE / "promptfoo" / "node_modules" / "promptfoo").exists():
        return "absent: make promptfoo"
    return ""


def written(module: str) -> Path:
    """Return the file of a contender's verdicts."""
    return CACHE / f"{module}.parquet"


def verdicts(module: str, rows: int | None = None) -> pl.DataFrame:
    """Return the rewards and the score of each check that a contender wrote, for the first rows."""
    frame = pl.read_parquet(written(module), n_rows=rows)
    kept = [name for name, dtype in frame.schema.items() if dtype == pl.Float64]
    return frame.select(pl.col(name).alias(name.rpartition("/")[2]) for name in kept if not name.startswith("score/"))


def differences(theirs: pl.DataFrame, wanted: pl.DataFrame) -> pl.Series:
    """Return the rows with another verdict; a reward may be off by the order of an addition."""
    assert theirs.height == wanted.height > 0
    unlike = ((theirs["reward"] - wanted["reward"]).abs() > 1e-12) | theirs["reward"].is_null()
    for name in sorted(set(theirs.columns) & set(wanted.columns) - {"reward"}):
        unlike |= theirs[name].ne_missing(wanted[name])
    return unlike


def not_expressible(run: Callable[[], object]) -> str:
    """Run a contender; return why it cannot say what the spec says, or ``""``."""
    try:
        run()
    except ProcessError as error:
        _, marker, reason = str(error).rpartition("NotExpressibleError: ")
        if not marker:
            raise
        return reason.strip()
    return ""
