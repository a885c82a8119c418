"""Rows worth reading: the worst of each set of failing checks, the best of different tasks, and one for each line of errors."""

from collections.abc import Sequence
from typing import Any

import polars as pl

from assay.expressions.lane import exactly
from assay.insight.reports.columns import Columns
from assay.insight.results import ROW, Result, ScoreColumn

_BITS = 32


def worst_rows(columns: Columns, failing: Sequence[pl.Series], most: int) -> list[tuple[int, int]]:
    """Return rows and how many rows fail the same checks: for each set, commonest first, the row of the least reward."""
    keys = {f"k{at}": _packed(failing[at : at + _BITS]) for at in range(0, len(failing), _BITS)}
    frame = pl.DataFrame(
        {"row": pl.int_range(columns.rows, dtype=pl.UInt32, eager=True), "reward": columns.reward} | keys
    )
    frame = frame.filter(pl.col("reward").is_not_null())
    if not keys:  # without checks, rows that do not pass
        frame = frame if columns.passed is None else frame.filter(columns.passed.drop_nulls().not_())
        return [(row, 1) for row in frame.sort("reward", "row")["row"].head(most)]
    frame = frame.filter(pl.any_horizontal(pl.col(name) != 0 for name in keys))
    sets = frame.group_by(list(keys)).agg(pl.len().alias("rows"), pl.col("row").min().alias("first"))
    sets = sets.sort("rows", "first", descending=[True, False]).head(most)
    found = frame.join(sets, on=list(keys)).sort("reward", "row").unique(list(keys), keep="first", maintain_order=True)
    return [(row["row"], row["rows"]) for row in found.sort("rows", "first", descending=[True, False]).to_dicts()]


def _packed(failing: Sequence[pl.Series]) -> pl.Series:
    bits = failing[0].cast(pl.UInt32)
    for at, fails in enumerate(failing[1:], 1):
        bits |= fails.cast(pl.UInt32) * (1 << at)
    return bits


def best_rows(columns: Columns, most: int) -> list[int]:
    """Return the rows of the greatest rewards, of different tasks as far as there are tasks."""
    task = {} if columns.task is None else {"task": columns.task.codes}
    rows = pl.int_range(columns.rows, dtype=pl.UInt32, eager=True)
    frame = pl.DataFrame({"row": rows, "reward": columns.reward} | task).drop_nulls()
    if task:
        at_best = frame.filter(pl.col("reward") == pl.col("reward").max().over("task"))
        frame = at_best.group_by("task").agg(pl.col("reward").first(), pl.col("row").min())
    return frame.sort("reward", "row", descending=[True, False])["row"].head(most).to_list()


def details_of(
    result: Result, rows: Sequence[int], keys: Sequence[str], checks: Sequence[ScoreColumn]
) -> dict[int, dict[str, Any]]:
    """Return key columns, reward, passed, scores, feedback and error of some rows."""
    wanted = pl.Series(sorted(set(rows)), dtype=pl.UInt32).implode()
    texts = [name for name in ("feedback", "error") if name in result.schema]
    passed = ["passed"] if "passed" in result.schema else []
    scores = [exactly(check.column).cast(pl.Float64).alias(f"s{at}") for at, check in enumerate(checks)]
    named = [exactly(name).alias(f"k{at}") for at, name in enumerate(keys)]
    columns = [pl.col(ROW), pl.col("reward"), *map(pl.col, passed), *(pl.col(name).cast(pl.String) for name in texts)]
    table = result.collect(result.numbered.filter(pl.col(ROW).is_in(wanted)).select(*columns, *named, *scores))
    found = {}
    for row in table.iter_rows(named=True):
        found[row[ROW]] = {
            "row": row[ROW],
            "key": {name: row[f"k{at}"] for at, name in enumerate(keys)},
            "reward": row["reward"],
            "passed": row.get("passed"),
            "checks": {check.name: row[f"s{at}"] for at, check in enumerate(checks)},
            "feedback": row.get("feedback"),
            "error": row.get("error"),
        }
    return found
