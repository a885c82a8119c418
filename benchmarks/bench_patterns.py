"""Patterns that people use, beside a loop with the compiled pattern: equal verdicts first, then the time of texts that nobody has seen.

The texts are in a column and in a list. The time is that of the pattern's expressions; the CPU time includes that of the processes of
patterns. The first texts, with which a pattern is made ready, do not count.
"""

import contextlib
import os
import re
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import polars as pl
import pytest

from assay.calls.limits import Limits
from assay.expressions.regex.search import search_expr
from assay.expressions.shared_columns import columns_read, layers
from assay.names import TEXT
from harness.patterns import PATTERNS, SIZES, pattern_texts
from harness.table import at_most, line, per_row

ROWS = {"short": 1_000, "answer": 1_000, "reasoning": 300}
TURNS = 4
_RATIOS = {size: {} for size in SIZES}


@dataclass(frozen=True)
class Cost:
    """Wall time and CPU time in seconds."""

    wall: float
    cpu: float


@pytest.fixture(scope="module", params=SIZES)
def size(request):
    return request.param


@pytest.fixture(scope="module")
def pools(size):
    return [pattern_texts(SIZES[size], ROWS[size], seed) for seed in range(TURNS)]


def cpu_of_children():
    """The CPU time in seconds of the processes that this one has started and that still run."""
    seconds = 0.0
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            _, _, fields = (folder / "stat").read_text("utf-8").rpartition(")")
            if int(fields.split()[1]) == os.getpid():
                seconds += int((folder / "schedstat").read_text("utf-8").split()[0]) / 1e9
    return seconds


def timed(function):
    others = cpu_of_children()
    cpu, wall = time.process_time(), time.perf_counter()
    result = function()
    taken, own = time.perf_counter() - wall, time.process_time() - cpu
    return Cost(taken, own + cpu_of_children() - others), result


def found(pattern, frame):
    with columns_read() as lanes:
        expr = search_expr(pattern, limits=Limits())
    for layer in layers(lanes, frame.schema):
        frame = frame.with_columns(layer)
    return frame.select(expr).to_series()


def least(costs):
    both = [*costs]
    return Cost(min(cost.wall for cost in both), min(cost.cpu for cost in both))


@pytest.mark.parametrize("used", PATTERNS, ids=lambda used: used.name)
def test_pattern(used, size, pools, table):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pattern = re.compile(used.pattern)
    ours, loop = [], []
    for texts in pools:
        frame = pl.DataFrame({TEXT: texts})
        theirs, verdicts = timed(lambda: [pattern.search(text) is not None for text in texts])  # noqa: B023
        mine, answers = timed(lambda: found(used.pattern, frame))  # noqa: B023
        assert answers.to_list() == verdicts, used.name
        ours.append(mine)
        loop.append(theirs)
    cost, theirs = least(ours[1:]), least(loop[1:])
    ratios = cost.wall / theirs.wall, cost.cpu / theirs.cpu
    _RATIOS[size][used.name] = ratios
    what, rows = f"{used.name}, {ROWS[size]:,} texts of {SIZES[size]:,} bytes", ROWS[size]
    table.append(
        line(
            what,
            "assay",
            per_row(cost.wall, rows),
            per_row(cost.cpu, rows),
            ratio=(ratios[0], "the loop"),
            cpu_ratio=(ratios[1], "the loop"),
        )
    )
    table.append(line(what, "a loop over re", per_row(theirs.wall, rows), per_row(theirs.cpu, rows)))


def test_all_patterns(table):
    for size, ratios in _RATIOS.items():
        if not ratios:
            continue
        what = f"{len(ratios)} patterns, {ROWS[size]:,} texts of {SIZES[size]:,} bytes"
        for at, kind in enumerate(("time", "CPU time")):
            values = {name: ratio[at] for name, ratio in ratios.items()}
            slowest = max(values, key=values.get)
            slower = sum(value > 1 for value in values.values())
            table.append(line(what, f"{kind}, the median pattern", "", ratio=(median(values.values()), "the loop")))
            table.append(
                line(
                    what,
                    f"{kind}, the slowest: {slowest}; {slower} slower than the loop",
                    "",
                    ratio=(values[slowest], "the loop"),
                    goal=at_most(values[slowest], 1, " × the loop"),
                )
            )
