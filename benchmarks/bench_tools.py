"""Tool calls: a plan's first call beside a plain loop over the frame's rows, which reads messages or tags and compares by
BFCL's rules, without reasons.
"""

import polars as pl
import pytest

from harness.comparing import written
from harness.generate import ROWS
from harness.language import spec_file
from harness.process import Race, contender
from harness.table import at_least, line, per_row
from harness.tool_calls import SPECS, tools_file

TURNS = 2
TOOL_ROWS = min(ROWS, 50_000)


@pytest.mark.parametrize("name", SPECS)
def test_tool_calls(name, table):
    path = spec_file(f"tools {name}", {**SPECS[name], "id": name})
    file = tools_file(TOOL_ROWS)
    commands = {one: contender(one, file, TOOL_ROWS, 0, spec=path) for one in ("columns", "tools_loop")}
    race = Race(commands, turns=TURNS)
    ours, looped = (pl.read_parquet(written(one))["reward"] for one in commands)
    assert ours.equals(looped), f"{name}: {ours.ne_missing(looped).sum()} rows differ"
    assert ours.n_unique() > 1
    plan, loop = (race.call(one) for one in commands)
    times = loop.seconds / plan.seconds
    what = f"tool calls, {TOOL_ROWS:,} rows, eight for each task"
    table.append(line(what, f"assay, {name}", per_row(plan.seconds, TOOL_ROWS), per_row(plan.cpu, TOOL_ROWS)))
    figures = per_row(loop.seconds, TOOL_ROWS), per_row(loop.cpu, TOOL_ROWS)
    table.append(
        line(what, f"a plain loop, {name}", *figures, ratio=(times, "assay"), goal=at_least(times, 1, " × assay"))
    )
