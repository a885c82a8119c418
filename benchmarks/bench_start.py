"""What small things cost: the start of the command line, a hundred rows, a batch of a trainer that the process has not seen before."""

import json
import sys

import polars as pl
import pytest

from contenders.batches import ways
from harness.draws import FunctionDraw
from harness.generate import ABSENT, CACHE, real_functions_file, real_rollouts
from harness.process import SPEC, Race
from harness.process import assay as command
from harness.table import at_most, line

BATCH, BATCHES = 64, 40
TURNS = 3
GOAL = 5
"""Milliseconds that a batch may take, where the plan is compiled."""


def test_processes(table):
    few = CACHE / "hundred.parquet"
    rollouts = real_rollouts(10_000) or pytest.skip(ABSENT)
    pl.read_parquet(rollouts, n_rows=100).write_parquet(few)
    score = command("score", few, "--spec", SPEC, "--out", CACHE / "start.parquet", "--overwrite")
    limits = {"assay --help": 0.3, "assay score, 100 rows": 0.5}
    race = Race({"assay --help": command("--help"), "assay score, 100 rows": score}, turns=5)
    for name, limit in limits.items():
        took = race.seconds(name)
        table.append(
            line("from start to end", name, f"{took:.2f} s", f"{race.cpu(name):.2f} s", goal=at_most(took, limit, " s"))
        )


@pytest.mark.parametrize("which", ["ten checks", "exact_match on the row", "regex_match on the row"])
def test_batch(table, which):
    path, spec, rows = CACHE / "batches.parquet", SPEC, BATCH * BATCHES
    if which == "ten checks":
        source = real_rollouts(10_000)
    else:
        fn, spec = which.split()[0], "-"
        gold = "phrase between word boundaries" if fn == "regex_match" else "phrase"
        source = real_functions_file(FunctionDraw(0, fn, {}, "real", gold, 1, is_text=True), rows)
    pl.read_parquet(source or pytest.skip(ABSENT), n_rows=rows).write_parquet(path)
    batch = pl.read_parquet(path, n_rows=BATCH)
    rewards = {way: [*score(batch)["reward"]] for way, score in ways(spec, batch).items()}
    assert all(those == rewards["plan.score"] for those in rewards.values())
    asked = [*map(str, (spec, path, BATCH))]
    race = Race({way: [sys.executable, "-m", "contenders.batches", way, *asked] for way in rewards}, TURNS)
    for way in rewards:
        printed = [json.loads(run.printed) for run in race.runs[way]]
        first, new, cpu, warm = (min(figures[name] for figures in printed) for name in ("first", "new", "cpu", "warm"))
        what = f"a batch of {BATCH} rows, {which}"
        goal = at_most(new, GOAL, " ms") if "plan" in way else None
        table.append(line(what, f"{way}, the first batch", f"{first:.1f} ms"))
        table.append(line(what, f"{way}, a new batch", f"{new:.1f} ms", f"{cpu:.1f} ms", goal=goal))
        table.append(line(what, f"{way}, the same batch", f"{warm:.1f} ms", state="warm"))
