"""What the commands about results cost: each a process of its own, on results of twenty rows for each row of the other benchmarks."""

import json

import polars as pl
import pytest

from harness.generate import CACHE, ROWS
from harness.process import Race, assay, launch
from harness.table import at_most, line

CHECKS, MODELS, SAMPLES = 12, 4, 8
LETTERS = "abcd"
MEMORY = 1_500
"""Most MB."""

COMMANDS = {
    "assay groups": (("groups", "before", "--k", "1,4,8"), 20),
    "assay diff": (("diff", "before", "after"), 10),
    "assay whatif": (("whatif", "before", "--set", "c0=3", "--drop", "c5", "--rank", "model"), 5),
    "assay report": (("report", "before", "--no-text", "--out", "report.html", "--overwrite"), 30),
}
"""Arguments, with the names of files of the cache, and the most seconds for ten million rows."""


@pytest.fixture(scope="module")
def scored():
    """Two results of the same rollouts, by specs of which three checks differ."""
    rows = 20 * ROWS
    CACHE.mkdir(parents=True, exist_ok=True)
    path = CACHE / f"letters-{rows}.parquet"
    if not path.exists():
        _rollouts(rows).sink_parquet(path, row_group_size=100_000)
    for name, changed in (("before", 0), ("after", 3)):
        checks = [
            {
                "id": f"c{at}",
                "type": "regex",
                "pattern": f"^.{{{at}}}[{LETTERS[: 3 - (at < changed)]}]",
                "weight": at % 4 + 1,
            }
            for at in range(CHECKS)
        ]
        spec = CACHE / f"letters-{name}.json"
        spec.write_text(json.dumps({"id": "letters", "passThreshold": 0.8, "checks": checks}), "utf-8")
        launch(assay("score", path, "--spec", spec, "--out", CACHE / f"{name}.parquet", "--overwrite", "--lengths"))
    return rows


def _rollouts(rows):
    drawn = pl.int_range(pl.len(), dtype=pl.UInt64)
    letters = [
        pl.lit(pl.Series(list(LETTERS))).gather((drawn.hash(at) // 2**40) % len(LETTERS)) for at in range(CHECKS)
    ]
    return pl.LazyFrame({"row": range(rows)}).select(
        task_id="task-" + (drawn // SAMPLES // MODELS).cast(pl.String),
        model="model-" + (drawn // SAMPLES % MODELS).cast(pl.String),
        completion=pl.concat_str(letters),
    )


def test_insight(table, scored):
    files = {name: CACHE / f"{name}.parquet" for name in ("before", "after")} | {"report.html": CACHE / "report.html"}
    race = Race({name: assay(*(files.get(part, part) for part in parts)) for name, (parts, _) in COMMANDS.items()}, 2)
    for name, (_, limit) in COMMANDS.items():
        took, what = race.seconds(name), f"a result of {scored:,} rows, {CHECKS} checks"
        table.append(line(what, name, f"{took:.1f} s", f"{race.cpu(name):.1f} s", goal=at_most(took, limit, " s")))
        peak = race.peak(name) / 1e6
        table.append(line(what, f"{name}, peak of memory", f"{peak:,.0f} MB", goal=at_most(peak, MEMORY, " MB")))
