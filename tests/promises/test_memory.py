"""Peaks of memory, in processes of their own: one large row group, and rows without end."""

import os
import subprocess
import sys

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import assay
from assay.loading.formats.reading import Reading
from assay.loading.rollouts import open_rollouts
from assay.system.memory import default_limit, room, share

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="peaks are read from /proc")

SCORE = """
import sys
import assay
spec = {"checks": [{"type": "contains", "value": "refund"}, {"type": "min_length", "value": 10}]}
print(assay.score_file(sys.argv[1], spec, sys.argv[2], overwrite=True).rows)
print(*(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""
MB = 1000


def peak(path):
    command = [sys.executable, "-c", SCORE, str(path), str(path.with_suffix(".out.parquet"))]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("POLARS_")}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    rows, found = done.stdout.split()
    assert int(rows) == pq.read_metadata(path).num_rows
    return int(found) / MB


def written(path, rows, group):
    with pq.ParquetWriter(
        path, pa.schema([("id", pa.int64()), ("completion", pa.string())]), compression="lz4"
    ) as writer:
        for first in range(0, rows, group):
            ids = pa.array(range(first, first + group))
            text = pc.binary_join_element_wise(ids.cast(pa.string()), "a refund is on its way, " * 62, " ")
            writer.write_table(pa.table({"id": ids, "completion": text}))
    return path


def test_one_large_row_group_is_not_held(tmp_path):
    small = peak(written(tmp_path / "small.parquet", 1000, 1000))
    path = written(tmp_path / "large.parquet", 200_000, 200_000)
    assert pq.read_metadata(path).row_group(0).total_byte_size > 295e6
    assert peak(path) < small + 350  # it takes 220; the engine's own reader: 600 more


def test_prompts_that_are_stored_once_are_not_written_out_all_at_once(tmp_path):
    rows, samples = 80_000, 1600
    ids = pl.DataFrame({"id": range(rows)})
    prompt = pl.format("{} {}", pl.col("id") // samples, pl.lit("Where is my refund? " * 800))
    frame = ids.with_columns(prompt=prompt, completion=pl.format("a refund is on its way, {}", "id"))
    small, path = tmp_path / "small.parquet", tmp_path / "prompts.parquet"
    pq.write_table(frame.head(1000).to_arrow(), small)
    pq.write_table(frame.to_arrow(), path)
    assert pq.read_metadata(path).row_group(0).total_byte_size < 10e6
    assert frame["prompt"].str.len_bytes().sum() > 1200e6
    assert peak(path) < peak(small) + 400  # it takes 130 to 220, on 1 to 64 threads; all at once: 2,100 more
    assert pl.read_parquet(path.with_suffix(".out.parquet"), columns=["prompt"]).equals(frame.select("prompt"))


@pytest.mark.long
def test_twice_the_rows_take_as_much(tmp_path):
    once = peak(written(tmp_path / "once.parquet", 160_000, 20_000))
    twice = peak(written(tmp_path / "twice.parquet", 320_000, 20_000))
    assert twice < once + 100  # of 240 more that are read


def test_the_room_for_rows_grows_with_the_limit_and_the_cores(monkeypatch):
    assert room(None) == room(default_limit())
    assert room(1 << 30) < room(1 << 31)
    assert share(1 << 30) * 16 <= room(1 << 30) or pl.thread_pool_size() < 2
    before = default_limit(), share(1 << 30)
    monkeypatch.setattr(pl, "thread_pool_size", lambda: 64)
    assert default_limit() > before[0]
    assert share(1 << 30) < before[1]


def test_memory_that_is_not_to_be_had_is_told(tmp_path, monkeypatch):
    def none(*_, **__):
        raise MemoryError

    path = written(tmp_path / "a.parquet", 100, 10)
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", none)
    with pytest.raises(assay.OutputError, match="not enough memory"):
        assay.score_file(path, {"checks": [{"type": "json_valid"}]}, verify_checksums=True)


@pytest.mark.parametrize("limit", [None, 1 << 30, 4 << 30])
@pytest.mark.parametrize("threads", [1, 2, 64])
def test_how_rows_are_gathered_for_a_result_is_the_same_everywhere(tmp_path, monkeypatch, threads, limit):
    texts = [f"{number:05}" * 2000 for number in range(50)]
    pl.DataFrame({"completion": texts}).write_parquet(tmp_path / "in.parquet")
    monkeypatch.setattr(pl, "thread_pool_size", lambda: threads)
    read = open_rollouts(tmp_path / "in.parquet", Reading(memory_limit=limit)).read
    [file] = read.files
    row_size, text_size = file.units[0].size // 50, file.sizes["completion"] // 50
    share_of_a_batch = 32 << 20
    assert read.together(65_536, ["completion"]) == share_of_a_batch // text_size
    assert (
        read.together(65_536, ["completion", "a column that the footer does not know"]) == share_of_a_batch // row_size
    )
    assert read.together(65_536, []) == 4 * share_of_a_batch // row_size
    assert read.together(100, ["completion"]) == 100
