"""Ten checks on 500,000 real texts: file to file beside the time to read the column, and in memory beside what people use today.

Each contender is a process of its own. Its verdicts are compared with those of ``assay score`` before anything is timed.
"""

import importlib.util

import polars as pl
import pytest

from harness.generate import ABSENT, CACHE, ROWS, real_rollouts
from harness.process import Race, contender, launch
from harness.table import Line, at_least, at_most, line, per_row

TURNS = 5
ASSAY = "assay score"
FILES = {
    "the floor": "file_floor",
    ASSAY: "file_assay",
    "Polars by hand": "file_polars",
    "DuckDB SQL": "file_duckdb",
}
IN_MEMORY = {
    "Assay's plan": ("columns", min(ROWS, 200_000)),
    "the loop over row()": ("row_loop", 5_000),
    "verifiers": ("ten_verifiers", 5_000),
    "inspect_ai": ("ten_inspect", 10_000),
    "promptfoo": ("ten_promptfoo", 5_000),
}
TIMES_ASSAY = {"the loop over row()": 10, "verifiers": 100, "inspect_ai": 5, "promptfoo": 100, "DuckDB SQL": 1}
MAY_DIFFER = {"promptfoo": 0.001}
"""The share of rows on which a peer may say something else than Python's rules do: JavaScript has other ones."""
NEEDS = {"DuckDB SQL": "duckdb", "verifiers": "verifiers", "inspect_ai": "inspect_ai"}


def _absent(name):
    """How to get a peer that is not here."""
    if name in NEEDS and importlib.util.find_spec(NEEDS[name]) is None:
        return "absent: make peers"
    if name == "promptfoo" and not (CACHE / "promptfoo" / "node_modules" / "promptfoo").exists():
        return "absent: make promptfoo"
    return ""


def _there(contenders, table, measured):
    for name in contenders:
        if _absent(name):
            table.append(Line(measured, name, _absent(name)))
    return [name for name in contenders if not _absent(name)]


def _compared(name, module, rows):
    """A contender's name, with what differs in its verdicts on the first rows; more than may differ is an error."""
    found, wanted = (pl.read_parquet(CACHE / f"{one}.parquet", n_rows=rows) for one in (module, "file_assay"))
    assert found.height == wanted.height == rows
    found, wanted = (one.rename(lambda name: name.removeprefix("check/ten/")) for one in (found, wanted))
    unlike = ((found["reward"] - wanted["reward"]).abs() > 1e-12) | found["reward"].is_null()
    for verdict in set(found.columns) & set(wanted.columns) - {"reward", "feedback"}:
        unlike |= found[verdict].ne_missing(wanted[verdict])
    assert unlike.sum() <= MAY_DIFFER.get(name, 0) * rows, f"{name}: {unlike.sum():,} of {rows:,} rows differ"
    notes = [f"{unlike.sum():,} of {rows:,} rows differ"] if unlike.any() else []
    last_bit = (found["reward"].ne_missing(wanted["reward"]) & ~unlike).mean()
    notes += [f"{last_bit:.0%} of the rewards off in the last bit"] if last_bit else []
    return f"{name} ({'; '.join(notes)})" if notes else name


@pytest.fixture(scope="module")
def rollouts():
    path = real_rollouts(ROWS)
    return path or pytest.skip(ABSENT)


@pytest.fixture(scope="module")
def size(rollouts):
    """MB of text."""
    return int(launch(contender("file_floor", rollouts)).said) / 1e6


def test_file_to_file(benchmark, rollouts, size, table):
    what = f"ten checks, file to file, {ROWS:,} rows"
    race = Race({name: contender(FILES[name], rollouts) for name in _there(FILES, table, what)})
    for command in race.commands.values():
        launch(command)
    named = {name: _compared(name, FILES[name], ROWS) for name in race.commands if name not in {"the floor", ASSAY}}
    benchmark.pedantic(race.turn, rounds=TURNS)
    floor, ours = race.seconds("the floor"), race.seconds(ASSAY)
    for name in race.commands:
        took = race.seconds(name)
        goal = at_most(took / floor, 2.0) if name == ASSAY else None
        goal = at_least(took / ours, TIMES_ASSAY[name], " × assay") if name in TIMES_ASSAY else goal
        ratio = (took / floor, "the floor")
        table.append(line(what, named.get(name, name), per_row(took, ROWS), speed=size / took, ratio=ratio, goal=goal))


def test_in_memory(benchmark, rollouts, size, table):
    launch(contender("file_assay", rollouts))
    what = "ten checks, texts in memory"
    named = {}
    for name in _there(IN_MEMORY, table, what):
        module, rows = IN_MEMORY[name]
        launch(contender(module, rollouts, rows, 0))
        named[name] = _compared(name, module, rows)
    best = dict.fromkeys(named, float("inf"))

    def turn():
        for name in best:
            best[name] = min(
                best[name], float(launch(contender(IN_MEMORY[name][0], rollouts, IN_MEMORY[name][1], 2)).said)
            )

    benchmark.pedantic(turn, rounds=2)
    ours = best["Assay's plan"] / IN_MEMORY["Assay's plan"][1]
    for name, took in best.items():
        rows = IN_MEMORY[name][1]
        times = took / rows / ours
        goal = at_least(times, TIMES_ASSAY[name], " × assay") if name in TIMES_ASSAY else None
        speed = size * rows / ROWS / took
        table.append(line(what, named[name], per_row(took, rows), speed=speed, ratio=(times, "assay"), goal=goal))
