"""What small things cost: the start of the command line, a hundred rows, a batch of a trainer."""

from functools import partial

import polars as pl
import pytest

import assay
from harness.generate import ABSENT, CACHE, real_rollouts, rows_with_verifiers
from harness.process import SPEC, Race
from harness.process import assay as command
from harness.table import at_most, line

BATCH = 64


@pytest.fixture(scope="module")
def rollouts():
    path = real_rollouts(10_000)
    return path or pytest.skip(ABSENT)


def test_processes(benchmark, rollouts, table):
    few = CACHE / "hundred.parquet"
    pl.read_parquet(rollouts, n_rows=100).write_parquet(few)
    score = command("score", few, "--spec", SPEC, "--out", CACHE / "start.parquet", "--overwrite")
    limits = {"assay --help": 0.3, "assay score, 100 rows": 1.0}
    race = Race({"assay --help": command("--help"), "assay score, 100 rows": score})
    benchmark.pedantic(race.turn, rounds=5)
    for name, limit in limits.items():
        took = race.seconds(name)
        table.append(line("from start to end", name, f"{took:.2f} s", goal=at_most(took, limit, " s")))


WAYS = {"plan.score": 5, "assay.score with the plan": 5, "assay.score, compiled each time": None}
"""Milliseconds that each may take."""


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("which", ["ten checks", "verifiers on the row"])
def test_batch(benchmark, rollouts, table, which, way):
    if which == "ten checks":
        frame, verifier = pl.read_parquet(rollouts, n_rows=BATCH), assay.load_verifier(SPEC)
    else:
        frame, verifier = rows_with_verifiers("exact_match", {}, BATCH, BATCH), None
    plan = assay.compile(verifier, frame)
    ways = dict(
        zip(
            WAYS,
            (partial(plan.score, frame), partial(assay.score, frame, plan), partial(assay.score, frame, verifier)),
            strict=True,
        )
    )
    assert all(one().equals(plan.score(frame)) for one in ways.values())
    benchmark.pedantic(ways[way], rounds=50)
    took = benchmark.stats.stats.min * 1000
    goal = {} if WAYS[way] is None else {"goal": at_most(took, WAYS[way], " ms")}
    table.append(line(f"a batch of {BATCH} rows, {which}", way, f"{took:.1f} ms", **goal))
