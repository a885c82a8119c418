"""What is left when the n-th write, flush, rename, read or opening of a file fails, for every n."""

import json
import os
import shutil
import subprocess
import sys

import polars as pl
import pytest
from cases import HELPERS
from waiting import PATIENCE

CC = shutil.which("cc") or shutil.which("gcc")
pytestmark = pytest.mark.skipif(
    CC is None or sys.platform != "linux", reason="the failing disk takes Linux and a C compiler"
)
LEAST = {"write": 2, "fsync": 2, "rename": 1, "read": 1, "open": 2}
"""Calls of each kind that a run cannot do without."""


@pytest.fixture(scope="module")
def disk(tmp_path_factory):
    library = tmp_path_factory.mktemp("disk") / "faulty.so"
    subprocess.run(
        [CC, "-shared", "-fPIC", "-O1", "-o", library, HELPERS / "faulty.c", "-ldl"], check=True, timeout=PATIENCE
    )
    return library


@pytest.mark.parametrize("out", [".parquet", ".jsonl", pytest.param("/", marks=pytest.mark.long)])
def test_a_disk_that_fails_at_any_call_costs_the_new_result_only(tmp_path, disk, out):
    rows = pl.DataFrame({"id": range(4), "completion": ["a refund", None, "x", ""]})
    source = tmp_path / ("in.jsonl" if out == ".jsonl" else "in.parquet")
    rows.write_ndjson(source) if out == ".jsonl" else rows.write_parquet(source, row_group_size=2)
    folder = tmp_path / "there"
    folder.mkdir()
    source = source.rename(folder / source.name)
    done = subprocess.run(
        [sys.executable, HELPERS / "faulty.py", out, source, folder],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
        env={**os.environ, "LD_PRELOAD": str(disk)},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    for kind, found in json.loads(done.stdout).items():
        assert found["failed"] >= LEAST[kind]
        assert all(str(folder) in said for said in found["said"]), found["said"]
