"""Verdicts that rows ask for: 200,000 texts whose rows name a function and bring a gold; the plan's first call beside a plain loop.

Nine workloads on real texts with a gold for eight rows, and twenty drawn by seed. Golds are parsed before the loop is timed, not
before the plan is.
"""

import json
from operator import attrgetter
from statistics import median

import polars as pl
import pytest

from harness.comparing import written
from harness.draws import DRAWS, FunctionDraw, function_draws
from harness.generate import ABSENT, CACHE, ROWS, functions_file, real_functions_file
from harness.process import Race, contender
from harness.table import at_least, at_most, line, per_row

TURNS = 2
ROWS_HERE = min(ROWS, 200_000)
LOOPED = min(ROWS, 20_000)
"""Rows for the loop: with a pattern each it takes a second for every 5,000."""
WARM = 1
_WORDS = "phrase between word boundaries"
REAL = {
    "exact_match": FunctionDraw(0, "exact_match", {}, "real", "phrase", 8, is_text=True),
    "exact_match, ignore_case": FunctionDraw(
        0, "exact_match", {"ignore_case": True}, "real", "phrase", 8, is_text=True
    ),
    "contains": FunctionDraw(0, "contains", {}, "real", "phrase", 8, is_text=True),
    "contains, ignore_case": FunctionDraw(0, "contains", {"ignore_case": True}, "real", "phrase", 8, is_text=True),
    "regex_match": FunctionDraw(0, "regex_match", {}, "real", _WORDS, 8, is_text=True),
    "regex_match, ignore_case": FunctionDraw(0, "regex_match", {"ignore_case": True}, "real", _WORDS, 8, is_text=True),
    "tool_calls_match": FunctionDraw(0, "tool_calls_match", {}, "real", "call", 8, is_text=True),
    "task_expectations, JSON text": FunctionDraw(0, "task_expectations", {}, "real", "phrases", 8, is_text=True),
    "task_expectations, structs": FunctionDraw(0, "task_expectations", {}, "real", "phrases", 8, is_text=False),
}

UNPARSED = {"exact_match", "exact_match, ignore_case", "contains"}
"""No goal beside a loop whose golds are parsed: to compare them takes less than to parse them, which the plan does, too."""


def _race(draw, path):
    """The plan and the loop, which agree on the rows of the loop."""
    spec, loop = "-", "fn_loop"
    if draw.function == "task_expectations":
        spec, loop = CACHE / "expectations.json", "expectation_loop"
        spec.write_text(json.dumps({"checks": [{"type": "task_expectations"}]}), "utf-8")
    rows = {"columns": ROWS_HERE, loop: LOOPED}
    commands = {name: contender(name, path, count, WARM, spec=spec) for name, count in rows.items()}
    race = Race(commands, turns=1)
    rewards = [pl.read_parquet(written(name), n_rows=LOOPED)["reward"] for name in commands]
    assert rewards[0].equals(rewards[1]), f"{draw.name}: {rewards[0].ne_missing(rewards[1]).sum()} rows differ"
    assert rewards[0].n_unique() > 1, draw.name
    for _ in range(TURNS - 1):
        race.turn()
    return race.call("columns"), race.call(loop)


def _times(ours, loop, state="cold"):
    """The time of a row in the loop as a multiple of that in the plan."""
    of = attrgetter("seconds" if state == "cold" else "warm")
    return of(loop) / LOOPED / (of(ours) / ROWS_HERE)


def _lines(what, ours, loop, goals=(None, None)):
    """Lines for the plan and the loop, cold and warm."""
    for name, call, rows, goal in (("assay", ours, ROWS_HERE, goals[0]), ("a plain loop", loop, LOOPED, goals[1])):
        cold, warm = (None if name == "assay" else (_times(ours, loop, state), "assay") for state in ("cold", "warm"))
        yield line(what, name, per_row(call.seconds, rows), per_row(call.cpu, rows), ratio=cold, goal=goal)
        yield line(what, name, per_row(call.warm, rows), state="warm", ratio=warm)


def _quick(call):
    return at_most(call.seconds / ROWS_HERE * 1e6, 5, " µs/row")


@pytest.mark.parametrize("name", REAL)
def test_function_on_real_texts(name, table):
    path = real_functions_file(REAL[name], ROWS_HERE) or pytest.skip(ABSENT)
    ours, loop = _race(REAL[name], path)
    faster = None if name in UNPARSED else at_least(_times(ours, loop), 4, " × assay")
    table += _lines(f"{name}, {ROWS_HERE // 8:,} golds", ours, loop, (_quick(ours), faster))


def test_drawn_functions(table):
    calls = []
    for draw in function_draws():
        ours, loop = _race(draw, functions_file(draw, ROWS_HERE))
        calls.append((draw, ours, _times(ours, loop)))
        table += _lines(draw.name, ours, loop)
    what = f"{DRAWS} drawn functions, {ROWS_HERE:,} rows, first call"
    wall, cpu = (median(of(ours) for _, ours, _ in calls) for of in (attrgetter("seconds"), attrgetter("cpu")))
    goal = at_most(wall / ROWS_HERE * 1e6, 5, " µs/row")
    table.append(line(what, "assay, median", per_row(wall, ROWS_HERE), per_row(cpu, ROWS_HERE), goal=goal))
    draw, ours, _ = max(calls, key=lambda call: call[1].seconds)
    figures = (per_row(ours.seconds, ROWS_HERE), per_row(ours.cpu, ROWS_HERE))
    table.append(line(what, f"assay, worst, {draw.name}", *figures, goal=_quick(ours)))
    times = median(times for _, _, times in calls)
    table.append(line(what, "a plain loop, median", "", ratio=(times, "assay"), goal=at_least(times, 4, " × assay")))
    draw, _, times = min(calls, key=lambda call: call[2])
    table.append(line(what, f"a plain loop, nearest to assay, {draw.name}", "", ratio=(times, "assay")))
