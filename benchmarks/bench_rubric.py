"""A rubric of five Python functions on 20,000 rollouts: equal rewards and metrics first, then the first call of each way to score them."""

import polars as pl

from harness.comparing import absent, written
from harness.generate import ROWS, conversations_file
from harness.process import Race, contender
from harness.table import Line, line, per_row

HERE = min(ROWS, 20_000)
WHAT = f"five Python functions, {HERE:,} rows"
CONTENDERS = {
    "assay": "rubric_columns",
    "Rubric.score_rollouts": "rubric_rollouts",
    "the bare functions": "bare_functions",
    "verifiers": "peer_rubric",
}


def test_rubric(table):
    rollouts = conversations_file(HERE)
    there = {name: module for name, module in CONTENDERS.items() if not absent(name)}
    table += [Line(WHAT, name, time=absent(name)) for name in CONTENDERS if name not in there]
    race = Race({name: contender(module, rollouts, HERE, 2, spec="-") for name, module in there.items()}, turns=2)
    wanted = pl.read_parquet(written("rubric_columns"))
    assert wanted.width == 6
    assert wanted["reward"].n_unique() > 1
    for module in there.values():
        assert pl.read_parquet(written(module)).select(wanted.columns).equals(wanted), module
    ours = race.call("assay")
    for name in there:
        call = race.call(name)
        cold = {"ratio": (call.seconds / ours.seconds, "assay"), "cpu_ratio": (call.cpu / ours.cpu, "assay")}
        table.append(line(WHAT, name, per_row(call.seconds, HERE), per_row(call.cpu, HERE), **cold))
        table.append(line(WHAT, name, per_row(call.warm, HERE), state="warm", ratio=(call.warm / ours.warm, "assay")))
