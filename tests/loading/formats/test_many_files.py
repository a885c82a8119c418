"""Many small files: what a run costs grows with their number, and they say what one file with all rows says."""

import gzip
import os
import sys
import threading
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest
from cases import sized, some
from polars.testing import assert_frame_equal

import assay
from assay.loading.formats import jsonl as jsonlook
from assay.loading.formats import reading as frames
from assay.loading.formats.files import Cut, combined, open_each
from assay.loading.formats.reading import Reading
from assay.runs.manifest import Manifest
from assay.runs.shards import Shard, culprit, cut

SPEC = {"id": "v", "checks": [{"type": "contains", "value": "b"}, {"type": "min_length", "value": 4}]}
WRITERS = {
    "parquet": lambda frame, path: frame.write_parquet(path),
    "jsonl": lambda frame, path: frame.write_ndjson(path),
    "jsonl.gz": lambda frame, path: path.write_bytes(gzip.compress(frame.write_ndjson().encode())),
    "arrow": lambda frame, path: frame.write_ipc(path),
    "csv": lambda frame, path: frame.write_csv(path),
}
OPENED = Counter()
"""Files that Python opened, by folder, while ``counted``."""


def hear(event, given, opened=OPENED):  # at the end of the process, modules have no names any more
    if opened.total() and event == "open" and isinstance(given[0], str | os.PathLike):
        opened[str(Path(given[0]).parent)] += 1


sys.addaudithook(hear)  # for good: a hook cannot be taken away


def rows(at):
    return pl.DataFrame(
        {"id": [3 * at, 3 * at + 1, 3 * at + 2], "completion": [f"b {at}", None, "b" * (at % 7)], "n": [at, None, -at]}
    )


def written(folder, count, ending, frame=rows):
    folder.mkdir()
    paths = [folder / f"{at:05}.{ending}" for at in range(count)]
    for at, path in enumerate(paths):
        WRITERS[ending](frame(at), path)
    return paths


@contextmanager
def watched():
    """The most handles that are open at once, beyond those that are open before."""
    there, most, ended = len(list(Path("/proc/self/fd").iterdir())), [0], threading.Event()

    def watch():
        while not ended.wait(0.0005):
            most[0] = max(most[0], len(list(Path("/proc/self/fd").iterdir())) - there)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield most
    finally:
        ended.set()
        thread.join()


@pytest.mark.parametrize("ending", some(WRITERS))
def test_many_files_are_the_rows_of_one(tmp_path, ending):
    paths = written(tmp_path / "in", 40, ending)
    whole = tmp_path / f"whole.{ending}"
    WRITERS[ending](pl.concat([rows(at) for at in range(40)]), whole)
    assert_frame_equal(assay.scan(paths).collect(), assay.scan(whole).collect())
    expected = assay.score(whole, SPEC)
    assert_frame_equal(assay.score(paths, SPEC), expected)
    assert_frame_equal(assay.score(f"{tmp_path}/in/*.{ending}", SPEC), expected)
    assay.score_file(paths, SPEC, tmp_path / "out.parquet")
    assert_frame_equal(pl.read_parquet(tmp_path / "out.parquet"), expected)
    assay.score_file(paths, SPEC, f"{tmp_path}/out/")
    assert_frame_equal(pl.read_parquet(f"{tmp_path}/out/*.parquet"), expected)
    for part in (slice(0, 7), slice(50, 61), slice(119, 120), slice(120, 130)):
        assert_frame_equal(
            assay.scan(paths).slice(part.start, 11).collect(), assay.scan(whole).slice(part.start, 11).collect()
        )
    for query in (pl.len(), pl.col("n"), pl.col("completion").str.len_chars().sum(), pl.lit(1)):
        assert_frame_equal(assay.scan(paths).select(query).collect(), assay.scan(whole).select(query).collect())
    odd = pl.col("id").cast(pl.Int64) % 2 == 1
    assert_frame_equal(assay.scan(paths).filter(odd).collect(), assay.scan(whole).filter(odd).collect())


@pytest.mark.parametrize("ending", ["parquet", "jsonl", "jsonl.gz", "arrow"])
def test_what_a_run_opens_and_makes_grows_with_the_files(tmp_path, ending, monkeypatch):
    made = Counter()
    ahead = frames._read_ahead
    monkeypatch.setattr(frames, "_read_ahead", lambda given: made.update(["source"]) or ahead(given))
    start = threading.Thread.start
    monkeypatch.setattr(threading.Thread, "start", lambda thread: made.update(["thread"]) or start(thread))
    monkeypatch.setattr(
        Manifest, "identity", lambda own, identity=Manifest.identity: made.update(["manifest"]) or identity(own)
    )
    seen = []
    for count in sized((40, 120), (10, 20)):
        paths = written(tmp_path / f"in{count}", count, ending)
        made.clear()
        OPENED.clear()
        OPENED["counting"] = 1
        assay.scan(paths).collect()
        assay.score(paths, SPEC)
        assay.score_file(paths, SPEC, tmp_path / f"{count}.parquet")
        assay.score_file(paths, SPEC, f"{tmp_path}/{count}/")
        opened = OPENED[str(tmp_path / f"in{count}")]
        OPENED.clear()
        seen.append((opened / count, dict(made), len(list(tmp_path.glob(f"{count}/part-*")))))
    assert seen[0] == seen[1]
    assert seen[0][0] < 30  # four runs: what Python opens of each file


@pytest.mark.parametrize("ending", some(["parquet", "jsonl", "jsonl.gz", "arrow", "csv"]))
def test_few_files_are_open_at_a_time(tmp_path, ending):
    count = sized(300, 120)
    paths = written(tmp_path / "in", count, ending)
    with watched() as most:
        assert assay.score_file(paths, SPEC, tmp_path / "out.parquet").rows == 3 * count
        assert assay.score_file(paths, SPEC, f"{tmp_path}/out/").rows == 3 * count
        assert assay.scan(paths).collect().height == 3 * count
    assert most[0] < 100


def test_files_that_differ_in_their_columns_are_as_one_after_another(tmp_path):
    given = [
        pl.DataFrame({"id": [1, 2], "completion": ["a", "b"], "n": [1, None]}),
        pl.DataFrame({"completion": ["c", "d", "e"], "n": [1.5, 2, 3], "s": [{"x": 1}, {"x": 2}, None]}),
        pl.DataFrame({"z": ["f"] * 4}),
        pl.DataFrame({"n": [7, 8]}, schema={"n": pl.UInt8}),
        pl.DataFrame(schema={"completion": pl.String}),
        pl.DataFrame({"s": [{"y": "b", "x": 3.5}], "completion": [None]}, schema_overrides={"completion": pl.String}),
        pl.DataFrame({"completion": ["k"] * 3000, "n": range(3000)}),  # which the engine reads itself
        pl.DataFrame({"id": [3], "q": [[1]], "n": [None]}),
    ]
    paths = []
    for at, frame in enumerate(given):
        paths.append(tmp_path / f"{at}.{'arrow' if at % 3 == 2 else 'parquet'}")
        WRITERS[paths[-1].suffix[1:]](frame, paths[-1])
    expected = pl.concat(given, how="diagonal_relaxed")
    found = assay.scan(paths)
    assert_frame_equal(found.collect(), expected)
    assert found.collect_schema() == expected.schema
    for name in expected.columns:
        assert_frame_equal(found.select(name).collect(engine="streaming"), expected.select(name))
        assert_frame_equal(found.filter(pl.col(name).is_null()).collect(), expected.filter(pl.col(name).is_null()))
    assert found.select(pl.len()).collect().item() == expected.height
    assert_frame_equal(found.head(4).collect(), expected.head(4))


@pytest.mark.parametrize("few", [0, 40, 1 << 40])
@pytest.mark.parametrize("many", [0, 1 << 40])
def test_lines_mean_the_same_whoever_reads_them(tmp_path, monkeypatch, few, many):
    lines = [
        '{"completion": "b 1", "n": 1, "answer": 1}\n{"completion": null, "n": 1.5}\n',
        '{"completion": "b", "n": 2, "answer": 1.0, "metadata": {"a": [1, "x"]}}\n',
        '{"completion": "\\ud800", "n": null, "completion": "twice"}\n{"completion": "b", "n": NaN}\n',
        '{"completion": "b", "info": {"a": 1}}\nno JSON\n',
        '{"completion": "b", "info": {"a": "x"}, "answer": "1"}\n' * 40,
    ]
    paths = [tmp_path / f"{at}.jsonl" for at in range(len(lines))]
    for path, line in zip(paths, lines, strict=True):
        path.write_text(line)
    expected = assay.scan(paths, max_bad_rows=1).collect()
    monkeypatch.setattr(jsonlook, "FEW", few)
    monkeypatch.setattr(jsonlook, "MANY", many)
    assert_frame_equal(assay.scan(paths, max_bad_rows=1).collect(), expected)
    again = open_each(paths, Reading())
    assert [bad.line for file in again for bad in file.bad] == [2]


def test_small_files_are_one_part_and_large_ones_are_many(tmp_path):
    paths = written(tmp_path / "in", 12, "parquet")
    rows(0).select(pl.col("completion").repeat_by(50).list.join(" ")).sample(3000, with_replacement=True).write_parquet(
        paths[5], row_group_size=500
    )
    files = combined(open_each(paths, Reading()))
    small, large = sum(unit.size for unit in files.files[0].units), sum(unit.size for unit in files.files[5].units)
    size = 6 * small + small // 2
    shards = cut(files, size)
    assert large > size
    assert len(shards) > 3
    assert [shard.cut for shard in shards if 5 not in shard.cut.files] == [Cut(0, 0, 1, 4), Cut(6, 0, 1, 11)]
    assert [shard.cut.files for shard in shards if 5 in shard.cut.files] == [range(5, 6)] * (len(shards) - 2)
    assert sum(shard.rows for shard in shards) == 3033
    assert [shard.rows for shard in cut(files, 1)][:5] == [3] * 5
    assay.score_file(paths, SPEC, f"{tmp_path}/out/", part_bytes=size)
    assert_frame_equal(pl.read_parquet(f"{tmp_path}/out/*.parquet"), assay.score(paths, SPEC))
    made = [assay.read_provenance(path) for path in sorted(tmp_path.glob("out/part-*"))]
    assert [(one["input"], one.get("last_input")) for one in (made[0], made[1])] == [
        (str(paths[0]), str(paths[4])),
        (str(paths[5]), None),
    ]
    assert assay.score_file(paths, SPEC, f"{tmp_path}/out/", part_bytes=size).told == [
        f"{len(shards)} of {len(shards)} parts were complete already"
    ]


@pytest.mark.parametrize("ending", ["parquet", "jsonl", "arrow"])
def test_of_many_files_the_one_that_is_broken_is_named(tmp_path, ending):
    paths = written(tmp_path / "in", 20, ending)
    kept = {"parquet": 10, "arrow": 400, "jsonl": 0}[ending]
    paths[13].write_bytes(paths[13].read_bytes()[:kept])
    with pytest.raises(assay.InputError, match=rf"{paths[13].name}"):
        assay.score_file(paths, SPEC, tmp_path / "out.parquet")
    assert not (tmp_path / "out.parquet").exists()


@pytest.mark.parametrize("ending", ["parquet", "jsonl", "jsonl.gz"])
@pytest.mark.parametrize("out", ["out.parquet", "out/"])
@pytest.mark.parametrize("change", ["grown", "gone"])
def test_of_many_files_the_one_that_changes_is_named(tmp_path, ending, out, change, monkeypatch):
    paths = written(tmp_path / "in", 20, ending)
    begin = frames._read_one

    def meddle(file, *given):
        if file.path == paths[3] and change == "gone":
            paths[13].unlink(missing_ok=True)
        elif file.path == paths[3]:
            os.utime(paths[13], ns=(1, 1))
        return begin(file, *given)

    monkeypatch.setattr(frames, "_read_one", meddle)
    with pytest.raises(assay.InputError, match=rf"{paths[13].name}.*(while it was read|No such file)"):
        assay.score_file(paths, SPEC, f"{tmp_path}/{out}")
    assert not (tmp_path / "out.parquet").exists()
    assert not list(tmp_path.glob("out/part-*"))


def test_a_part_of_many_files_that_ends_its_process_names_the_file(tmp_path):
    paths = written(tmp_path / "in", 9, "parquet")
    files = combined(open_each(paths, Reading()))
    (shard,) = cut(files, 1 << 30)
    inputs = [SimpleNamespace(name=str(path)) for path in paths]
    job, tried = SimpleNamespace(files=files, inputs=inputs), []

    def dies(part: Shard) -> bool:
        tried.append(part.cut)
        return 6 in part.cut.files

    assert culprit(job, shard, dies) == f", at unit 0 of 1 (row group, or lines) of {paths[6]}"
    assert tried[0] == Cut(0, 0, 1, 3)


def test_files_whose_types_differ_in_their_metadata_alone_are_told_apart(tmp_path):
    for write in [pl.DataFrame.write_ipc, pl.DataFrame.write_parquet]:
        kinds = [pl.Enum(["a", "b"]), pl.Enum(["b", "a", "c"]), pl.Categorical()]
        for at, dtype in enumerate(kinds):
            write(pl.DataFrame({"completion": ["b"], "kind": pl.Series(["a"], dtype=dtype)}), tmp_path / f"{at}.arrow")
            path = (tmp_path / f"{at}.arrow").rename(
                tmp_path / f"{at}.{'arrow' if 'ipc' in write.__name__ else 'parquet'}"
            )
            assert assay.scan(path).collect_schema()["kind"] == dtype
            assert assay.scan(path).collect()["kind"].to_list() == ["a"]
