"""json_schema and json_match: a plan's first call beside loops with the packages, which write no reasons; outputs that are all different,
and outputs that occur eight times.
"""

import polars as pl
import pytest

from harness.comparing import written
from harness.generate import ROWS
from harness.json_outputs import SPECS, json_file, json_spec
from harness.process import Race, contender
from harness.table import at_least, line, per_row

JSON_ROWS = min(ROWS, 80_000)
SLOW_ROWS = min(ROWS, 20_000)
TURNS = 2
SHOWN = {"json_loop": "a plain loop", "jsonschema_loop": "jsonschema in a loop"}


def _raced(name, repeats, loop, rows, goal, table):
    path = json_spec(name)
    commands = {one: contender(one, json_file(JSON_ROWS, repeats), rows, 0, spec=path) for one in ("columns", loop)}
    race = Race(commands, turns=1)
    ours, looped = (pl.read_parquet(written(one))["reward"] for one in commands)
    assert ours.equals(looped), f"{name}: {ours.ne_missing(looped).sum()} rows differ"
    assert ours.n_unique() > 1, name
    for _ in range(TURNS - 1):
        race.turn()
    plan, hand = (race.call(one) for one in commands)
    times = hand.seconds / plan.seconds
    what = f"JSON, {rows:,} rows, each text {'once' if repeats == 1 else f'{repeats} times'}"
    table.append(line(what, f"assay, {name}", per_row(plan.seconds, rows), per_row(plan.cpu, rows)))
    figures = per_row(hand.seconds, rows), per_row(hand.cpu, rows)
    table.append(
        line(what, f"{SHOWN[loop]}, {name}", *figures, ratio=(times, "assay"), goal=at_least(times, goal, " × assay"))
    )


@pytest.mark.parametrize("repeats", [1, 8])
@pytest.mark.parametrize("name", SPECS)
def test_json(name, repeats, table):
    _raced(name, repeats, "json_loop", JSON_ROWS, 1, table)


@pytest.mark.parametrize("name", ["json_schema", "json_schema, a column"])
def test_jsonschema(name, table):
    _raced(name, 1, "jsonschema_loop", SLOW_ROWS, 4, table)
