"""Instructions of IFEval: a plan's first call beside a plain loop, lm-evaluation-harness, where it is installed, and the loop
over ``row()``.
"""

import importlib.util

import polars as pl
import pytest

from harness.comparing import written
from harness.generate import ROWS
from harness.instructions import instructions_file
from harness.language import spec_file
from harness.process import Race, contender
from harness.table import at_least, line, per_row

TURNS = 2
HERE = min(ROWS, 20_000)
LOOPS = {
    "instructions_loop": "a plain loop",
    "row_loop": "our definition, the loop over row()",
    "lm_eval_ifeval": "lm-eval",
}
LEAST = {"row_loop": 1, "lm_eval_ifeval": 4}


@pytest.mark.parametrize("mode", ["strict", "loose"])
def test_instructions(mode, table):
    path = spec_file(f"ifeval-{mode}", {"checks": [{"type": "ifeval", "mode": mode}]})
    names = ["columns", *(name for name in LOOPS if name != "lm_eval_ifeval" or importlib.util.find_spec("lm_eval"))]
    race = Race({name: contender(name, instructions_file(HERE), HERE, 0, spec=path) for name in names}, turns=1)
    ours, *others = (pl.read_parquet(written(name))["reward"] for name in names)
    assert ours.n_unique() > 2
    for name, rewards in zip(names[1:], others, strict=True):
        assert ours.equals(rewards), f"{name}: {ours.ne_missing(rewards).sum()} rows differ"
    for _ in range(TURNS - 1):
        race.turn()
    mine, what = race.call("columns"), f"instructions, {mode}, {HERE:,} rows"
    table.append(line(what, "assay", per_row(mine.seconds, HERE), per_row(mine.cpu, HERE)))
    for name in names[1:]:
        call = race.call(name)
        ratios = {"ratio": (call.seconds / mine.seconds, "assay"), "cpu_ratio": (call.cpu / mine.cpu, "assay")}
        goal = at_least(call.cpu / mine.cpu, LEAST[name], " × assay") if name in LEAST else None
        table.append(line(what, LOOPS[name], per_row(call.seconds, HERE), per_row(call.cpu, HERE), **ratios, goal=goal))
