"""Check types, steps and bounds with 25,000 distinct golds, cold, on one core, without the kernel, beside the loop by hand."""

import json
import sys

import pytest

from harness.golds import CASES
from harness.process import Race
from harness.table import at_least, line

TURNS = 2


@pytest.mark.parametrize("name", CASES)
def test_golds(name, table):
    command = ["env", "ASSAY_KERNEL=0", "POLARS_MAX_THREADS=1", sys.executable, "-m", "contenders.golds", name]
    race = Race({name: command}, turns=TURNS)
    turns = zip(*(json.loads(run.printed) for run in race.runs[name]), strict=True)
    ours, loop, with_reasons = map(min, turns)
    what = f"{name}, {CASES[name].rows:,} golds"
    table.append(line(what, "assay", f"{ours:,.0f} ns/row"))
    goal = at_least(loop / ours, 1, " × assay")
    table.append(line(what, "a plain loop", f"{loop:,.0f} ns/row", ratio=(loop / ours, "assay"), goal=goal))
    shown = (with_reasons / ours, "assay")
    table.append(line(what, "a plain loop with reasons", f"{with_reasons:,.0f} ns/row", ratio=shown))
