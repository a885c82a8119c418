"""Ten checks on 500,000 real texts: file to file beside the time to read the column, and in memory beside what people use today.

Each contender is a process of its own. Its verdicts are compared with those of ``assay score`` before anything is timed.
"""

import pytest

from harness.comparing import MAY_DIFFER, absent, differences, verdicts
from harness.generate import ABSENT, GROUP, ROWS, real_rollouts
from harness.lines import FORMS, in_lines
from harness.process import Race, contender, launch
from harness.table import Line, at_least, at_most, line, per_row

TURNS = 5
ASSAY = "assay score"
FILES = {
    "the floor": "file_floor",
    ASSAY: "file_assay",
    "Polars by hand": "file_polars",
    "DuckDB SQL": "file_duckdb",
    "a plain loop": "file_loop",
    "a plain loop, with reasons": "file_loop_reasons",
}
LINES = {"the floor": "lines_floor", ASSAY: "file_assay", "a plain loop": "lines_loop"}
IN_MEMORY = {
    "Assay's plan": ("columns", min(ROWS, 200_000)),
    "a plain loop": ("plain_loop", min(ROWS, 20_000)),
    "a plain loop, with reasons": ("plain_loop_reasons", min(ROWS, 20_000)),
    "our definition, the loop over row()": ("row_loop", min(ROWS, 5_000)),
    "verifiers": ("spec_verifiers", min(ROWS, 5_000)),
    "inspect_ai": ("spec_inspect", min(ROWS, 10_000)),
    "promptfoo": ("spec_promptfoo", min(ROWS, 5_000)),
}
TIMES_ASSAY = {
    "Polars by hand": 1.3,
    "DuckDB SQL": 1.3,
    "our definition, the loop over row()": 10,
    "verifiers": 100,
    "inspect_ai": 5,
    "promptfoo": 100,
}
WARM = 2
"""Calls with the same texts, after the first."""


def _there(contenders, table, measured):
    table += [Line(measured, name, time=absent(name)) for name in contenders if absent(name)]
    return [name for name in contenders if not absent(name)]


def _compared(name, module, rows):
    """A contender's name, with what differs in its verdicts on the first rows; more than may differ is an error."""
    theirs, wanted = verdicts(module), verdicts("file_assay", rows)
    unlike = differences(theirs, wanted)
    assert unlike.sum() <= MAY_DIFFER.get(name, 0) * rows, f"{name}: {unlike.sum():,} of {rows:,} rows differ"
    notes = [f"{unlike.sum():,} of {rows:,} rows differ"] if unlike.any() else []
    last_bit = (theirs["reward"].ne_missing(wanted["reward"]) & ~unlike).mean()
    notes += [f"{last_bit:.0%} of the rewards off in the last bit"] if last_bit else []
    return f"{name} ({'; '.join(notes)})" if notes else name


@pytest.fixture(scope="module")
def rollouts():
    return real_rollouts(ROWS) or pytest.skip(ABSENT)


def test_file_to_file(rollouts, table):
    what = f"ten checks, file to file, {ROWS:,} rows"
    race = Race({name: contender(FILES[name], rollouts) for name in _there(FILES, table, what)})
    race.turn()
    named = {name: _compared(name, FILES[name], ROWS) for name in race.commands if name not in {"the floor", ASSAY}}
    for _ in range(TURNS - 1):
        race.turn()
    floor, ours = race.seconds("the floor"), race.seconds(ASSAY)
    for name in race.commands:
        took, cpu = race.seconds(name), race.cpu(name)
        goal = at_most(took / floor, 2.0) if name == ASSAY else None
        goal = at_least(took / ours, TIMES_ASSAY[name], " × assay") if name in TIMES_ASSAY else goal
        ratios = {"ratio": (took / floor, "the floor"), "cpu_ratio": (cpu / race.cpu("the floor"), "the floor")}
        table.append(line(what, named.get(name, name), per_row(took, ROWS), per_row(cpu, ROWS), **ratios, goal=goal))


@pytest.mark.parametrize("group", [5_000, GROUP, ROWS])
def test_row_groups(group, table):
    """The same texts in other row groups: one group leaves the scan to one core."""
    path = real_rollouts(ROWS, group=group) or pytest.skip(ABSENT)
    race = Race({name: contender(FILES[name], path) for name in ("the floor", ASSAY)}, turns=TURNS)
    took, cpu = race.seconds(ASSAY), race.cpu(ASSAY)
    ratios = {
        "ratio": (took / race.seconds("the floor"), "the floor"),
        "cpu_ratio": (cpu / race.cpu("the floor"), "the floor"),
    }
    shown = f"{ASSAY}, {'one group' if group == ROWS else f'groups of {group:,}'}"
    goal = at_most(took / race.seconds("the floor"), 2.0)
    what = f"ten checks, file to file, {ROWS:,} rows, by row groups"
    table.append(line(what, shown, per_row(took, ROWS), per_row(cpu, ROWS), **ratios, goal=goal))


@pytest.mark.parametrize("form", FORMS)
def test_json_lines(rollouts, form, table):
    """The same texts as most rollouts come: Assay looks through the lines for what a scan takes on trust, then reads them."""
    rows = min(ROWS, 200_000)
    path = in_lines(rollouts, form, rows)
    launch(contender("file_assay", rollouts))
    wanted = verdicts("file_assay", rows)
    race = Race({name: contender(module, path) for name, module in LINES.items()}, turns=TURNS)
    for name in (ASSAY, "a plain loop"):
        assert not differences(verdicts(LINES[name]), wanted).any(), name
    floor, ours = race.seconds("the floor"), race.seconds(ASSAY)
    for name in race.commands:
        took, figures = race.seconds(name), (per_row(race.seconds(name), rows), per_row(race.cpu(name), rows))
        is_loop = name == "a plain loop"
        ratio = (took / ours, "assay") if is_loop else (took / floor, "the floor")
        goal = at_least(took / ours, 3.0, " × assay") if is_loop else None
        table.append(line(f"ten checks, JSON lines of {form}, {rows:,} rows", name, *figures, ratio=ratio, goal=goal))


def test_in_memory(rollouts, table):
    launch(contender("file_assay", rollouts))
    what = "ten checks, texts in memory"
    named = _there(IN_MEMORY, table, what)
    race = Race({name: contender(IN_MEMORY[name][0], rollouts, IN_MEMORY[name][1], WARM) for name in named}, turns=2)
    named = {name: _compared(name, *IN_MEMORY[name]) for name in named}
    ours = race.call("Assay's plan")
    for name, shown in named.items():
        call, rows = race.call(name), IN_MEMORY[name][1]
        share = rows / IN_MEMORY["Assay's plan"][1]
        for state, took, least in (("cold", call.seconds, ours.seconds), ("warm", call.warm, ours.warm)):
            times = took / share / least
            goal = at_least(times, TIMES_ASSAY[name], " × assay") if state == "cold" and name in TIMES_ASSAY else None
            # the process that waits for promptfoo's uses none
            counted = state == "cold" and name != "promptfoo"
            cpu = per_row(call.cpu, rows) if counted else ""
            ratios = {
                "ratio": (times, "assay"),
                "cpu_ratio": (call.cpu / share / ours.cpu, "assay") if counted else None,
            }
            table.append(line(what, shown, per_row(took, rows), cpu, state=state, **ratios, goal=goal))
