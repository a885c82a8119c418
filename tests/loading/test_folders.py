"""The files that a folder means, those in the folders below, and what the names of folders say."""

import json
from pathlib import Path

import polars as pl
import pytest

import assay

SPEC = {"id": "v", "checks": [{"type": "contains", "value": "a"}]}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def written(path, *rows):
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        pl.DataFrame(rows).write_parquet(path)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def scored(source, out="out.parquet", **options):
    summary = assay.score_file(source, SPEC, out, overwrite=True, **options)
    return pl.read_parquet(out), summary.notes


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_folders_are_read_with_those_below_by_name(folder, suffix):
    for name in ("b", "a/z", "a/b/c", "c/d", "_left/out", ".left/out", "a/_out", "a/.out"):
        written(f"in/{name}{suffix}", {"completion": "a", "name": name})
    written("in/a/notes.txt", {"completion": "not rollouts"})
    Path("in/c/again").symlink_to("../a")
    Path("in/c/loop").symlink_to("..")
    frame, notes = scored("in")
    assert frame["name"].to_list() == ["a/b/c", "a/z", "b", "c/d"]
    assert notes == []


def test_what_is_left_out_is_told(folder):
    written("in/a.jsonl", {"completion": "a"})
    for name in ("a", "sub/b", "sub/c", "sub/d"):
        written(f"in/{name}.json", {"completion": "about them"})
    written("in/sub/e.jsonl", {"completion": "a"})
    Path("in/earlier").mkdir()
    assay.score_file("in/a.jsonl", SPEC, "in/earlier/rewards.parquet")
    assay.score_file("in/a.jsonl", SPEC, "in/parts/")
    frame, notes = scored("in")
    assert frame.height == 2
    assert notes == [
        "left out: in/earlier/rewards.parquet is a result of assay score",
        "left out: in/parts/ is a result of assay score",
        "left out beside other files: in/a.json, in/sub/b.json, in/sub/c.json and 1 other; name them to score them",
    ]


def test_two_formats_in_folders_below_are_refused_with_a_pattern_that_reads_one(folder):
    written("in/a/x.jsonl", {"completion": "a"})
    written("in/b/x.parquet", {"completion": "a"})
    with pytest.raises(assay.InputError, match=r"FOLDER/\*\*/\*.jsonl"):
        scored("in")
    assert scored("in/**/*.jsonl")[0].height == 1


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_names_of_folders_become_columns(folder, suffix):
    written(f"in/model=x%20y/step=2/r{suffix}", {"completion": "a"})
    written(f"in/model=__HIVE_DEFAULT_PARTITION__/step=10/r{suffix}", {"completion": "b"})
    written(f"in/model=z/step=3/id=007/r{suffix}", {"completion": "a", "model": "own"})
    frame, notes = scored("in")
    assert frame.select("model", "step", "id", "reward").rows() == [
        (None, 10, None, 0.0),
        ("x y", 2, None, 1.0),
        ("own", 3, "007", 1.0),
    ]
    assert notes == ["columns from the names of folders: model, step, id"]
    assert assay.verify("out.parquet").intact
    assert [card.text for card in assay.show("out.parquet").cards] == ["b", "a", "a"]
    one_by_one = pl.concat(
        [scored(path)[0] for path in sorted(map(str, Path("in").rglob(f"*{suffix}")))], how="diagonal"
    )
    assert one_by_one.sort("step").select("model", "step").rows() == [("x y", 2), ("own", 3), (None, 10)]


def test_names_of_folders_are_columns_like_others(folder):
    """They are mapped, named by checks, joined with tasks, read in parts and by patterns."""
    for task, text in (("1", "one"), ("2", "none")):
        written(f"in/task={task}/r.jsonl", *({"completion": text, "at": at} for at in range(9)))
    tasks = [{"task_id": "1", "gold": "one"}, {"task_id": "2", "gold": "two"}]
    spec = {"checks": [{"type": "equals", "value": {"column": "gold"}}]}
    options = {"tasks": tasks, "mapping": {"task_id": "task"}}
    for source in ("in", "in/task=*/*.jsonl", ["in/task=1", "in/task=2/r.jsonl"]):
        assert assay.score(source, spec, **options)["reward"].to_list() == [1.0] * 9 + [0.0] * 9
    assay.score_file("in", spec, "out/", part_bytes=100, **options)
    assert assay.verify("out", tasks=tasks).intact
    of_folder = {"checks": [{"type": "equals", "value": {"column": "task"}}]}
    assert assay.score("in", of_folder)["error"].null_count() == 18


def test_a_column_of_another_type_stays(folder):
    written("in/step=x/r.parquet", {"completion": "a", "step": 1.5})
    assert scored("in")[0]["step"].to_list() == [1.5]
