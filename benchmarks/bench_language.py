"""The spec language: each step, each kind of reference with a gold for eight rows, loops and length, and twelve leaves within groups; a
plan's first call beside a plain loop whose JSON is parsed and that writes no reasons.
"""

import polars as pl
import pytest

from harness.comparing import written
from harness.generate import ROWS
from harness.language import NESTED, REFERENCES, SHAPES, STEPS, language_file, spec_file
from harness.process import Race, contender
from harness.table import at_least, at_most, line, per_row

TURNS = 2
GOLD_ROWS = min(ROWS, 200_000)
STEP_ROWS = min(ROWS, 100_000)


def _raced(name, spec, rows, table, what):
    """Race the plan and the loop, which agree on every row; add their lines."""
    path = spec_file(name, spec)
    commands = {
        one: contender(one, language_file(GOLD_ROWS), rows, 0, spec=path) for one in ("columns", "language_loop")
    }
    race = Race(commands, turns=1)
    ours, looped = (pl.read_parquet(written(one))["reward"] for one in commands)
    assert ours.equals(looped), f"{name}: {ours.ne_missing(looped).sum()} rows differ"
    assert ours.n_unique() > 1 or name in STEPS, name
    for _ in range(TURNS - 1):
        race.turn()
    plan, loop = (race.call(one) for one in commands)
    times = loop.seconds / plan.seconds
    quick = at_most(plan.seconds / rows * 1e6, 5, " µs/row")
    table.append(line(what, f"assay, {name}", per_row(plan.seconds, rows), per_row(plan.cpu, rows), goal=quick))
    figures = per_row(loop.seconds, rows), per_row(loop.cpu, rows)
    table.append(
        line(what, f"a plain loop, {name}", *figures, ratio=(times, "assay"), goal=at_least(times, 4, " × assay"))
    )


@pytest.mark.parametrize("name", STEPS)
def test_step(name, table):
    _raced(name, STEPS[name], STEP_ROWS, table, f"a step, {STEP_ROWS:,} rows")


@pytest.mark.parametrize("name", REFERENCES)
def test_reference(name, table):
    _raced(name, REFERENCES[name], GOLD_ROWS, table, f"{GOLD_ROWS // 8:,} golds of rows")


@pytest.mark.parametrize("name", SHAPES)
def test_shape(name, table):
    _raced(name, SHAPES[name], STEP_ROWS, table, f"loops and length, {STEP_ROWS:,} rows")


def test_nested(table):
    _raced("twelve leaves", NESTED, GOLD_ROWS, table, f"groups, {GOLD_ROWS // 8:,} golds of rows")
