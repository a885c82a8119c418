"""Similarity to references of eight rows each: a plan's first call beside rapidfuzz and rouge_score in a loop that writes no reasons."""

import os

import polars as pl
import pytest

from harness.comparing import written
from harness.generate import ROWS
from harness.language import spec_file
from harness.process import Race, contender
from harness.references import references_file
from harness.table import at_least, line, per_row

TURNS = 2
ROWS_OF = {
    **dict.fromkeys(("ratio", "levenshtein", "token_set"), min(ROWS, 40_000)),
    "rouge_1": min(ROWS, 2_000),
    "rouge_l": min(ROWS, 200),  # there it takes tens of milliseconds a row
}


@pytest.mark.parametrize("metric", ROWS_OF)
def test_similarity(metric, table):
    rows = ROWS_OF[metric]
    spec = {"checks": [{"type": "similarity", "metric": metric, "value": {"column": "reference"}}]}
    path = spec_file(f"similarity {metric}", spec)
    commands = {
        name: contender(name, references_file(max(ROWS_OF.values())), rows, 0, spec=path)
        for name in ("columns", "similarity_loop")
    }
    race = Race(commands, turns=1)
    ours, looped = (pl.read_parquet(written(name))["reward"] for name in commands)
    assert ours.equals(looped), f"{metric}: {ours.ne_missing(looped).sum()} rows differ"
    assert ours.n_unique() > 50
    for _ in range(TURNS - 1):
        race.turn()
    plan, loop = (race.call(name) for name in commands)
    times = loop.seconds / plan.seconds
    by_words = metric.startswith("rouge")
    least = 4 if by_words else 0.9 * (os.process_cpu_count() if hasattr(os, "process_cpu_count") else os.cpu_count())
    what, package = f"similarity, {rows:,} rows", "rouge_score" if by_words else "rapidfuzz"
    table.append(line(what, f"assay, {metric}", per_row(plan.seconds, rows), per_row(plan.cpu, rows)))
    figures = per_row(loop.seconds, rows), per_row(loop.cpu, rows)
    goal = at_least(times, least, " × assay")
    table.append(line(what, f"{package} in a loop, {metric}", *figures, ratio=(times, "assay"), goal=goal))
