"""The most memory that a run holds: long row groups, many of them, and few long rows."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness.generate import ABSENT, CACHE, ROWS, real_rollouts
from harness.process import SPEC, Race, assay
from harness.table import at_most, line

_LIMIT = 900


def _rewritten(name, group, copies=1):
    """The real rollouts so many times over, in row groups of so many rows."""
    source = real_rollouts(ROWS)
    if source is None:
        pytest.skip(ABSENT)
    path = CACHE / f"memory-{name}-{ROWS}.parquet"
    if not path.exists():
        table = pq.read_table(source)
        draft = path.with_suffix(".tmp")
        pq.write_table(pa.concat_tables([table] * copies), draft, row_group_size=group)
        draft.replace(path)
    return path


def test_peak_of_memory(benchmark, table):
    files = {
        f"one row group of {ROWS:,} rows": _rewritten("one", ROWS),
        f"{2 * ROWS:,} rows in one row group": _rewritten("two", 2 * ROWS, 2),
        f"{2 * ROWS:,} rows in groups of 122,880": _rewritten("some", 122_880, 2),
        f"{2 * ROWS:,} rows in groups of 10,000": _rewritten("many", 10_000, 2),
        f"{8 * ROWS:,} rows in groups of 122,880": _rewritten("long", 122_880, 8),
    }
    race = Race(
        {
            name: assay("score", path, "--spec", SPEC, "--out", CACHE / "memory.parquet", "--overwrite", "--json")
            for name, path in files.items()
        }
    )
    benchmark.pedantic(race.turn, rounds=1)
    for name in files:
        peak = race.leanest[name] / 1e6
        table.append(
            line("peak of memory, texts of 1.6 kB", name, f"{peak:,.0f} MB", goal=at_most(peak, _LIMIT, " MB"))
        )
