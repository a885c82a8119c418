"""How long ``assay view`` lets wait on a result of twenty rows for each row of the other benchmarks: its goals are for ten million."""

import json
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from urllib.parse import urlencode

import polars as pl
import pytest

from harness.generate import CACHE, ROWS
from harness.process import assay, launch
from harness.table import at_most, line

SCAN, ANSWER, SORT, MEMORY = 15, 1, 8, 2_000
"""Most seconds until all rows are known, of an answer, and of the first that sorts all rows; most MB."""

SPEC = {
    "id": "view",
    "passThreshold": 0.8,
    "checks": [
        {"id": "right", "type": "equals", "on": [{"after": "A: "}], "value": {"column": "answer"}, "weight": 4},
        {"id": "brief", "type": "max_length", "value": 90},
        {"id": "polite", "type": "contains", "value": "please"},
        {"id": "no-sorry", "type": "not_contains", "value": "sorry"},
        {"id": "steps", "type": "regex", "pattern": r"step \d"},
        {"id": "dotted", "type": "ends_with", "value": "."},
    ],
}
WORDS = ["please ", "sorry ", "step 1 ", "so ", "then ", "we have ", "x = 4 ", "hence "]
TASKS, MODELS, STEPS = 100_000, 6, 40

QUERIES = {
    "the first rows": ({}, ANSWER),
    "rows of a cell": ({"failed": "right", "model": "model-1"}, ANSWER),
    "rows of a bin": ({"bin": 8}, ANSWER),
    "a first sort of all": ({"sort": "-reward"}, SORT),
    "the next page of it": ({"sort": "-reward", "offset": 50}, ANSWER),
    "a filter and a sort that is kept": ({"sort": "-reward", "failed": "dotted"}, ANSWER),
    "a search of texts": ({"text": "please step 1 hence"}, 2 * ANSWER),
    "a condition": ({"where": "reward < 0.5 and step = 3"}, 2 * ANSWER),
}
"""Names of queries of rows, and the most seconds; what is looked for in the files is answered with what is known after .8 s."""


def rollouts(rows):
    row = pl.int_range(pl.len(), dtype=pl.UInt64)
    task = row % TASKS
    answer = (task * 7919 % 1000).cast(pl.String)
    draws = [pl.lit(pl.Series(WORDS)).gather(row.hash(at) % len(WORDS)) for at in range(12)]
    unit = pl.when(row.hash(50) % 3 > 0).then(pl.lit("")).otherwise(pl.lit(" dollars"))
    end = pl.when(row.hash(51) % 2 == 0).then(pl.lit(".")).otherwise(pl.lit(""))
    return pl.LazyFrame({"row": range(rows)}).select(
        task_id="task-" + task.cast(pl.String),
        model="model-" + (row // TASKS % MODELS).cast(pl.String),
        step=row * STEPS // rows,
        answer=answer,
        completion=pl.concat_str(*draws, pl.lit("A: "), answer, unit, end),
    )


@pytest.fixture(scope="module")
def result():
    rows = 20 * ROWS
    CACHE.mkdir(parents=True, exist_ok=True)
    source, spec, result = (CACHE / name for name in (f"viewed-{rows}.parquet", "view.json", f"view-{rows}.parquet"))
    if not source.exists():
        rollouts(rows).sink_parquet(source, row_group_size=100_000)
    spec.write_text(json.dumps(SPEC), "utf-8")
    launch(assay("score", source, "--spec", spec, "--out", result, "--keep", "+completion", "--overwrite"))
    return result, rows


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_view(table, result):
    path, rows = result
    what = f"a result of {rows:,} rows, {len(SPEC['checks'])} checks"
    begun = time.perf_counter()

    def add(name, seconds, limit):
        table.append(line(what, f"assay view, {name}", f"{seconds:.2f} s", goal=at_most(seconds, limit, " s")))

    command = assay("view", path)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:  # noqa: S603  (our own)
        try:
            address = server.stdout.readline().strip()

            def ask(name, **query):
                asked = time.perf_counter()
                with urllib.request.urlopen(f"{address}api/{name}?{urlencode(query)}") as answer:  # noqa: S310  (of the server above)
                    return json.loads(answer.read()), time.perf_counter() - asked

            first = ask("rows")[0]
            add("the first rows after its start", time.perf_counter() - begun, 2 * ANSWER)
            assert first["rows"]
            while ask("rows", limit=0)[0]["scanned"] < rows:
                time.sleep(0.1)
            add("all rows are known", time.perf_counter() - begun, SCAN)
            while not ask("overview")[0]["complete"]:
                time.sleep(0.5)
            add("the report is there", time.perf_counter() - begun, 4 * SCAN)
            for name, (query, limit) in QUERIES.items():
                add(name, ask("rows", **query)[1], limit)
            add("a row", ask("row", row=rows // 2)[1], ANSWER)
            status = Path(f"/proc/{server.pid}/status").read_text()
        finally:
            server.kill()
    peak = int(status.partition("VmHWM:")[2].split()[0]) * 1024 / 1e6
    table.append(line(what, "assay view, peak of memory", f"{peak:,.0f} MB", goal=at_most(peak, MEMORY, " MB")))
