"""The most memory that a run holds: long row groups, many of them, and files of any length."""

import pytest

from harness.generate import ABSENT, CACHE, GROUP, ROWS, real_rollouts
from harness.process import SPEC, Race, assay
from harness.table import at_most, line

FILES = {
    f"{ROWS:,} rows in groups of {GROUP:,}": ((ROWS, GROUP), 700),
    f"{4 * ROWS:,} rows in groups of {GROUP:,}": ((4 * ROWS, GROUP), 700),
    f"{2 * ROWS:,} rows in groups of 5,000": ((2 * ROWS, 5_000), 700),
    f"{ROWS:,} rows in one group": ((ROWS, ROWS), 900),
    f"{2 * ROWS:,} rows in one group": ((2 * ROWS, 2 * ROWS), 900),
}
"""Rows, rows in a group, and the most MB."""


def test_peak_of_memory(table):
    race = Race({})
    for name, ((rows, group), _) in FILES.items():
        path = real_rollouts(rows, group=group) or pytest.skip(ABSENT)
        race.commands[name] = assay("score", path, "--spec", SPEC, "--out", CACHE / "memory.parquet", "--overwrite")
        race.runs[name] = []
    race.turn()
    for name, (_, limit) in FILES.items():
        peak = race.peak(name) / 1e6
        what = "peak of memory, ten checks, texts of 1.6 kB"
        table.append(line(what, name, f"{peak:,.0f} MB", goal=at_most(peak, limit, " MB")))
