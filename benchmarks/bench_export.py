"""What training sets cost: rollouts with texts of 1.6 kB in groups of eight, in a process for each recipe."""

import polars as pl

from harness.generate import CACHE, ROWS
from harness.process import Race, assay
from harness.table import at_most, line

WORDS = ["so ", "then ", "the sum ", "is half ", "we have ", "x = 4 ", "hence ", "therefore ", "again ", "of both "]
EACH = 260
"""Words of a text, which come to some 1.6 kB."""

SECONDS, BYTES = 20, 150
"""Most seconds for a million rows, and bytes that a row takes in memory: the goals of two cores."""


def rollouts(rows):
    row = pl.int_range(pl.len(), dtype=pl.UInt64)
    words = pl.lit(pl.Series(WORDS))
    parts = [words.gather(row.hash(at) % len(WORDS)) for at in range(EACH)]
    reward = (row.hash(EACH) % 100) / 100
    return pl.LazyFrame({"row": range(rows)}).select(
        task_id="task-" + (row // 8).cast(pl.String),
        prompt="What is the sum of " + (row // 8).cast(pl.String) + " and 4?",
        answer=(row // 8 % 1000).cast(pl.String),
        completion=pl.concat_str(*parts, row.cast(pl.String)),
        reward=reward,
        passed=reward >= 0.5,
    )


def result(rows):
    """The path of a result with that many rows; it is made once."""
    CACHE.mkdir(parents=True, exist_ok=True)
    path = CACHE / f"texts-{rows}.parquet"
    if not path.exists():
        rollouts(rows).sink_parquet(path, row_group_size=50_000)
    return path


def test_export(table):
    rows = 2 * ROWS
    made = {
        (recipe, size): assay("export", result(size), "--recipe", recipe, "--out", f"{CACHE / recipe}/", "--overwrite")
        for recipe in ("sft", "dpo")
        for size in (rows // 4, rows)
    }
    race = Race({f"{recipe}, {size:,} rows": command for (recipe, size), command in made.items()}, 2)
    for recipe in ("sft", "dpo"):
        what, name, small = "texts of 1.6 kB", f"{recipe}, {rows:,} rows", f"{recipe}, {rows // 4:,} rows"
        took, limit = race.seconds(name), SECONDS * rows / 1e6
        table.append(line(what, name, f"{took:.1f} s", f"{race.cpu(name):.1f} s", goal=at_most(took, limit, " s")))
        a_row = (race.peak(name) - race.peak(small)) / (rows * 3 / 4)
        table.append(line(what, f"{name}, memory", f"{a_row:,.0f} bytes a row", goal=at_most(a_row, BYTES, " bytes")))
