"""What small things cost: the start of the command line, a hundred rows, a batch of a trainer."""

import polars as pl
import pytest

import assay
from generate import ABSENT, CACHE, real_rollouts, rows_with_verifiers
from process import SPEC, Race
from process import assay as command
from table import at_most, line

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


@pytest.mark.parametrize("compiled", [True, False], ids=["a compiled plan", "assay.score"])
@pytest.mark.parametrize("which", ["ten checks", "verifiers on the row"])
def test_batch(benchmark, rollouts, table, which, compiled):
    if which == "ten checks":
        frame, verifier = pl.read_parquet(rollouts, n_rows=BATCH), assay.load_verifier(SPEC)
    else:
        frame, verifier = rows_with_verifiers("exact_match", {}, BATCH, BATCH), None
    plan = assay.compile(verifier, frame)
    assert plan.score(frame).equals(assay.score(frame, verifier))
    benchmark.pedantic(
        plan.score if compiled else assay.score, args=(frame,) if compiled else (frame, verifier), rounds=50
    )
    took = benchmark.stats.stats.min * 1000
    name = "a compiled plan" if compiled else "assay.score"
    table.append(line(f"a batch of {BATCH} rows, {which}", name, f"{took:.1f} ms", goal=at_most(took, 5, " ms")))
