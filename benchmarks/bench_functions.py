"""Verdicts that rows ask for: texts whose rows name a function and bring a gold; the plan's first call beside a plain loop.

Nine workloads on 200,000 real texts with a gold for eight rows, and twenty drawn by seed on 100,000. Golds are parsed before the loop is timed, not
before the plan is.
"""

import json
from dataclasses import dataclass
from statistics import median

import polars as pl
import pytest

from harness.comparing import written
from harness.draws import DRAWS, FunctionDraw, function_draws
from harness.generate import ABSENT, CACHE, ROWS, functions_file, real_functions_file
from harness.process import Call, Race, contender
from harness.table import at_least, at_most, line, per_row

TURNS = 2
REAL_ROWS, DRAWN_ROWS = min(ROWS, 200_000), min(ROWS, 100_000)
LOOPED = min(ROWS, 20_000)
"""Rows for the loop: with a pattern each it takes a second for every 5,000."""
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


@dataclass(frozen=True)
class _Result:
    """The plan on so many rows, and the loop on its own."""

    plan: Call
    loop: Call
    rows: int

    @property
    def seconds(self):
        return self.plan.seconds / self.rows

    @property
    def times(self):
        """The time of a row in the loop as a multiple of that in the plan."""
        return self.loop.seconds / LOOPED / self.seconds

    def lines(self, what, goals=(None, None)):
        for name, call, rows, goal in (
            ("assay", self.plan, self.rows, goals[0]),
            ("a plain loop", self.loop, LOOPED, goals[1]),
        ):
            ratio = None if name == "assay" else (self.times, "assay")
            yield line(what, name, per_row(call.seconds, rows), per_row(call.cpu, rows), ratio=ratio, goal=goal)
            if call.warm is not None:
                yield line(what, name, per_row(call.warm, rows), state="warm")


def _raced(draw, path, rows, warm=0):
    """The plan and the loop, which agree on the rows of the loop."""
    spec, loop = "-", "fn_loop"
    if draw.function == "task_expectations":
        spec, loop = CACHE / "expectations.json", "expectation_loop"
        spec.write_text(json.dumps({"checks": [{"type": "task_expectations"}]}), "utf-8")
    counts = {"columns": rows, loop: LOOPED}
    race = Race({name: contender(name, path, count, warm, spec=spec) for name, count in counts.items()}, turns=1)
    ours, looped = (pl.read_parquet(written(name), n_rows=LOOPED)["reward"] for name in counts)
    assert ours.equals(looped), f"{draw.name}: {ours.ne_missing(looped).sum()} rows differ"
    assert ours.n_unique() > 1, draw.name
    for _ in range(TURNS - 1):
        race.turn()
    return _Result(race.call("columns"), race.call(loop), rows)


def _quick(result):
    return at_most(result.seconds * 1e6, 5, " µs/row")


@pytest.mark.parametrize("name", REAL)
def test_function_on_real_texts(name, table):
    path = real_functions_file(REAL[name], REAL_ROWS) or pytest.skip(ABSENT)
    result = _raced(REAL[name], path, REAL_ROWS, warm=1)
    faster = None if name in UNPARSED else at_least(result.times, 4, " × assay")
    table += result.lines(f"{name}, {REAL_ROWS // 8:,} golds", (_quick(result), faster))


def test_drawn_functions(table):
    results = {draw.name: _raced(draw, functions_file(draw, DRAWN_ROWS), DRAWN_ROWS) for draw in function_draws()}
    for name, result in results.items():
        table += result.lines(name)
    what = f"{DRAWS} drawn functions, {DRAWN_ROWS:,} rows, first call"
    wall = median(result.seconds for result in results.values())
    cpu = median(result.plan.cpu for result in results.values())
    goal = at_most(wall * 1e6, 5, " µs/row")
    table.append(line(what, "assay, median", per_row(wall, 1), per_row(cpu, DRAWN_ROWS), goal=goal))
    name, result = max(results.items(), key=lambda item: item[1].seconds)
    figures = (per_row(result.seconds, 1), per_row(result.plan.cpu, DRAWN_ROWS))
    table.append(line(what, f"assay, worst, {name}", *figures, goal=_quick(result)))
    times = median(result.times for result in results.values())
    table.append(line(what, "a plain loop, median", "", ratio=(times, "assay"), goal=at_least(times, 4, " × assay")))
    name, result = min(results.items(), key=lambda item: item[1].times)
    table.append(line(what, f"a plain loop, nearest to assay, {name}", "", ratio=(result.times, "assay")))
