"""Throughput of each check type, step and function that is registered, on batches of texts that the process has not seen.

pytest-benchmark measures them: its options work as it documents them. `make bench` keeps a run, and `make bench compare` fails where the
least time is 1.5 times that of the run kept last.
"""

import time
from itertools import count

import pytest

from harness.registered import cases
from harness.table import line, per_row

ROWS = 2_000
COMPARED = 200
ROUNDS = 5
SECONDS = 1.0
"""Limit for a batch; what is slower gets one of the compared size."""


@pytest.mark.parametrize("case", [*cases()], ids=lambda case: case.name)
def test_throughput(case, benchmark, table):
    numbers = count()
    sample = case.batch(COMPARED, next(numbers))
    expected, score = case.by_rows(sample), case.prepare(sample)
    assert [repr(row) for row in score().select(expected[0].keys()).to_dicts()] == [*map(repr, expected)]
    started = time.perf_counter()
    score()
    rows = ROWS if (time.perf_counter() - started) * ROWS < SECONDS * COMPARED else COMPARED
    benchmark.extra_info["rows"] = rows
    benchmark.pedantic(
        lambda score: score(), setup=lambda: ((case.prepare(case.batch(rows, next(numbers))),), {}), rounds=ROUNDS
    )
    seconds = per_row(benchmark.stats["min"], rows)
    table.append(line(f"throughput, batches of {rows:,} rows", case.name, seconds))
