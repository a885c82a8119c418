"""Results appear whole or not at all, hold the same in every format, and say what made them."""

import csv
import errno
import gc
import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
from datetime import timedelta
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq
import pytest
from cases import HELPERS, some
from waiting import PATIENCE, until, waiting_at

import assay
from assay.thresholds import EVER, set_to

SPEC = {
    "id": "v",
    "checks": [{"type": "contains", "value": "refund", "weight": 3}, {"type": "min_length", "value": 6}],
}
COMPLETIONS = ["a refund", "refuse it", "no", None]
SUFFIXES = [".parquet", ".jsonl", ".csv"]
READERS = {".parquet": pl.read_parquet, ".jsonl": pl.read_ndjson, ".csv": pl.read_csv}
OLD = b"what was there before"
# limits hold across exec; without CAP_DAC_OVERRIDE root is refused as anybody else
RESTRICTED = """
import ctypes, os, resource, sys
if sys.argv[1] != "0":
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)
ctypes.CDLL(None).prctl(24, 1, 0, 0, 0)
os.execv(sys.executable, [sys.executable, "-m", "assay", *sys.argv[2:]])
"""
ENV = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(assay.__file__).parents[1]), str(HELPERS)])}


def rollouts(rows=150_000):
    """More rows than one batch holds."""
    return pl.DataFrame({"id": range(rows)}).with_columns(completion=pl.format("refund {}", pl.col("id").hash()))


def breaking_off(folder, seen):
    def late(texts):
        if (texts == last).any():
            seen.wait(PATIENCE)
            raise ValueError("the input broke off")
        return texts

    frame = rollouts()
    last = frame["completion"][-1]
    frame.write_parquet(folder / "in.parquet", row_group_size=10_000)
    return pl.scan_parquet(folder / "in.parquet").with_columns(
        pl.col("completion").map_batches(late, return_dtype=pl.String, is_elementwise=True)
    )


def half_corrupt(folder, seen):
    seen.set()
    path = folder / "in.parquet"
    rollouts().write_parquet(path, row_group_size=10_000)
    start = pq.read_metadata(path).row_group(12).column(1).data_page_offset
    content = bytearray(path.read_bytes())
    content[start : start + 3000] = b"\xff" * 3000
    path.write_bytes(content)
    return path


def test_every_format_holds_the_same_rewards(tmp_path):
    missing = 'contains: does not contain "refund"'
    for suffix, read in READERS.items():
        assay.score_file({"completion": COMPLETIONS}, SPEC, tmp_path / f"out{suffix}")
        assert read(tmp_path / f"out{suffix}").select("reward", "passed", "feedback", "error").to_dict(
            as_series=False
        ) == {
            "reward": [1.0, 0.25, 0.0, None],
            "passed": [True, False, False, None],
            "feedback": ["", missing, f"{missing}\nmin_length: has fewer than 6 characters", None],
            "error": [None, None, None, "the completion is null"],
        }


def test_columns_their_order_and_types_do_not_depend_on_the_rows(tmp_path):
    floats = dict.fromkeys(("score/v", "check/v/contains", "check/v/min_length"), pl.Float64)
    schema = {"step": pl.Int64, "reward": pl.Float64, "passed": pl.Boolean, "feedback": pl.String, "error": pl.String}
    for completions in (COMPLETIONS, [None, None], []):
        columns = {"step": [1] * len(completions), "completion": completions}
        frame = pl.DataFrame(columns, {"step": int, "completion": str})
        assay.score_file(frame, SPEC, tmp_path / "out.parquet", overwrite=True)
        found = pl.read_parquet(tmp_path / "out.parquet")
        assert (found.height, found["reward"].is_nan().any()) == (len(completions), False)
        assert list(found.schema.items()) == list((schema | floats).items())
    # zero rows are a header in CSV and nothing in JSON lines
    for name in ("out.csv", "out.jsonl"):
        assay.score_file(pl.DataFrame(schema={"completion": pl.String}), SPEC, tmp_path / name)
    assert (tmp_path / "out.jsonl").read_bytes() == b""
    header = b"reward,passed,feedback,error,score/v,check/v/contains,check/v/min_length\n"
    assert (tmp_path / "out.csv").read_bytes() == header


NOTHING = pl.Struct({"role": pl.String, "name": pl.Null, "calls": pl.List(pl.Null)})


@pytest.mark.parametrize(
    ("dtype", "rows"),
    [(pl.List(NOTHING), 7), (NOTHING, EVER), (pl.Array(NOTHING, 2), 7), (pl.List(pl.List(NOTHING)), 7)],
)
def test_fields_of_nothing_pass_through_however_many_rows_are_written_together(tmp_path, dtype, rows):
    said = {"role": "user", "name": None, "calls": [None]}
    value = {NOTHING: said, pl.List(pl.List(NOTHING)): [[said, said]]}.get(dtype, [said, said])
    frame = pl.DataFrame({"completion": ["a"] * 20, "prompt": pl.Series([value] * 20, dtype=dtype)})
    frame.write_parquet(tmp_path / "in.parquet")
    with set_to(batch=rows, piece=rows, small_group=0):
        assay.score_file(tmp_path / "in.parquet", SPEC, tmp_path / "out.parquet")
    assert pl.read_parquet(tmp_path / "out.parquet")["prompt"].to_list() == [value] * 20
    some = assay.score_batch(frame[3:10].to_arrow(), SPEC)
    some.validate(full=True)
    assert some["prompt"].to_pylist() == [value] * 7


@pytest.mark.parametrize("failing", [breaking_off, half_corrupt])
@pytest.mark.parametrize("suffix", some(SUFFIXES))
def test_a_failed_run_leaves_the_old_file_and_nothing_else(tmp_path, failing, suffix):
    seen = threading.Event()
    source = failing(tmp_path, seen)
    out = tmp_path / f"out{suffix}"
    out.write_bytes(OLD)
    before = sorted(tmp_path.iterdir())
    with pytest.raises((assay.InputError, ValueError)):
        assay.score_file(source, SPEC, out, overwrite=True, progress=lambda *_: seen.set())
    gc.collect()  # a writer that was left open would complain now
    assert seen.is_set()
    assert out.read_bytes() == OLD
    assert sorted(tmp_path.iterdir()) == before


def test_a_link_stays_a_link_to_the_new_result(tmp_path):
    (tmp_path / "real.parquet").write_bytes(OLD)
    (tmp_path / "out.parquet").symlink_to("real.parquet")
    assay.score_file({"completion": ["x"]}, SPEC, tmp_path / "out.parquet", overwrite=True)
    assert (tmp_path / "out.parquet").is_symlink()
    assert pl.read_parquet(tmp_path / "real.parquet").height == 1


@pytest.mark.parametrize("suffix", some(SUFFIXES))
@pytest.mark.parametrize(("room", "rows"), [(50_000, 60_000), (10, 2)], ids=["many rows", "few rows"])
def test_a_full_disk_costs_the_new_result_only(tmp_path, suffix, room, rows):
    rollouts(rows).write_parquet(tmp_path / "in.parquet")
    (tmp_path / "v.json").write_text(json.dumps(SPEC))
    out = tmp_path / f"out{suffix}"
    out.write_bytes(OLD)
    before = sorted(tmp_path.iterdir())
    done = restricted(room, "score", tmp_path / "in.parquet", "--spec", tmp_path / "v.json", "--out", out)
    assert "Traceback" not in done.stderr
    assert f"error: {out}: File too large" in done.stderr
    assert f"after {room:,} bytes" in done.stderr
    assert done.returncode == 1
    assert out.read_bytes() == OLD
    assert sorted(tmp_path.iterdir()) == before


def test_a_read_only_folder_is_named(tmp_path):
    rollouts(2).write_parquet(tmp_path / "in.parquet")
    (tmp_path / "v.json").write_text(json.dumps(SPEC))
    out = tmp_path / "locked" / "out.parquet"
    out.parent.mkdir(mode=0o755)
    out.write_bytes(OLD)
    out.parent.chmod(0o555)
    done = restricted(0, "score", tmp_path / "in.parquet", "--spec", tmp_path / "v.json", "--out", out)
    words = f"error: {out}: Permission denied.\n\nNothing was written; an existing file is unchanged.\n"
    assert (done.returncode, done.stderr, out.read_bytes()) == (1, words, OLD)


def restricted(room, *args):
    command = [sys.executable, "-c", RESTRICTED, str(room), *map(str, args), "--overwrite"]
    return subprocess.run(command, env=ENV, capture_output=True, text=True, check=False)


def test_a_killed_run_leaves_the_old_file_and_nothing_to_be_mistaken_for_a_result(tmp_path):
    gate = tmp_path / "gate"
    gate.mkdir()
    text = pl.when(pl.col("id") == 99_000).then(pl.lit("waits here")).otherwise("completion")
    rows = rollouts(100_000).with_columns(completion=text)
    rows.write_parquet(tmp_path / "in.parquet", row_group_size=10_000)
    (tmp_path / "v.json").write_text(json.dumps({"checks": [{"type": "gated", "expected": str(gate)}]}))
    out = tmp_path / "out" / "out.jsonl"
    out.parent.mkdir()
    out.write_bytes(OLD)
    command = ["score", tmp_path / "in.parquet", "--spec", tmp_path / "v.json", "--out", out, "--overwrite"]
    command = [sys.executable, "-m", "assay", *map(str, command), "--import", "gated_rewards"]
    with subprocess.Popen(command, env=ENV, stderr=subprocess.DEVNULL) as child:
        until(lambda: sum(path.stat().st_size for path in out.parent.iterdir()) > len(OLD) and waiting_at(gate))
        child.kill()
    assert child.returncode == -signal.SIGKILL
    assert out.read_bytes() == OLD
    assert list(out.parent.glob("[!.]*")) == [out]


HOSTILE = ["=1+1", "+1", "-1", "@x", "\tx", "\rx", "=x=", "a=b", "'=x", " =x", "", None]
DEFUSED = ["'=1+1", "'+1", "'-1", "'@x", "'\tx", "'\rx", "'=x=", "a=b", "'=x", " =x", "", None]


@pytest.mark.parametrize(
    "dtype", [pl.String, pl.Categorical, pl.Enum(HOSTILE[:-1])], ids=["text", "categories", "enum"]
)
def test_csv_cells_are_nothing_a_spreadsheet_runs_unless_raw(tmp_path, dtype):
    frame = pl.DataFrame({"completion": [""] * 12, "cell": pl.Series(HOSTILE, dtype=dtype)})
    header = pl.DataFrame({"=1+1": [-1], "n": [-1.5], "completion": ["a refund"]})
    for raw, expected, first in ((False, DEFUSED, "'=1+1"), (True, HOSTILE, "=1+1")):
        assay.score_file(frame, SPEC, tmp_path / "out.csv", raw_csv=raw, overwrite=True)
        with (tmp_path / "out.csv").open(newline="") as file:
            assert [row["cell"] or None for row in csv.DictReader(file)] == [one or None for one in expected]
        # headers are cells, too, and numbers stay numbers
        assay.score_file(header, SPEC, tmp_path / "out.csv", raw_csv=raw, details=False, overwrite=True)
        assert (tmp_path / "out.csv").read_text() == f'{first},n,reward,passed,feedback,error\n-1,-1.5,1.0,true,"",\n'


def test_nested_columns_are_json_text_in_csv(tmp_path):
    nested = {"s": {"a": "=x", "b": [1.5, None]}, "l": ["é", '"']}
    assay.score_file(pl.DataFrame([{"completion": "x"} | nested]), SPEC, tmp_path / "out.csv")
    [row] = csv.DictReader((tmp_path / "out.csv").read_text().splitlines())
    assert {name: json.loads(row[name]) for name in nested} == nested


def test_a_name_that_holds_nul_is_refused_where_parquet_has_none(tmp_path):
    for column in ({"a\0b": 1}, {"s": [{"a": {"b\0": 1}}]}):
        frame = pl.DataFrame([{"completion": "a refund", **column}])
        with pytest.raises(assay.InputError, match="cannot contain NUL"):
            assay.score_file(frame, SPEC, tmp_path / "out.parquet", overwrite=True)
        for out in ("out.csv", "out.jsonl"):
            assert assay.score_file(frame, SPEC, tmp_path / out, overwrite=True).rows == 1
        assert assay.score_file(frame, SPEC, tmp_path / "out.parquet", keep=[], overwrite=True).rows == 1


ODD = [
    pl.Series([{}], dtype=pl.Struct({})),
    pl.Series([{"a": {}}], dtype=pl.Struct({"a": pl.Struct({})})),
    pl.Series([b"\xff\x00"]),
    pl.Series([timedelta(seconds=-1)]),
    pl.Series([2**100], dtype=pl.Int128),
    pl.Series([2**100], dtype=pl.UInt128),
    pl.Series([[2**100]], dtype=pl.List(pl.UInt128)),
    pl.Series([None]),
    pl.Series([["a"]], dtype=pl.List(pl.Categorical)),
]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_column_of_any_type_passes_through(tmp_path, suffix):
    for values in ODD:
        frame = pl.DataFrame({"completion": ["a refund"], "x": values})
        assay.score_file(frame, SPEC, tmp_path / f"out{suffix}", overwrite=True)
        found = READERS[suffix](tmp_path / f"out{suffix}")
        assert (found.columns[0], found["reward"].to_list()) == ("x", [1.0]), values.dtype


def test_a_parquet_says_what_made_it(tmp_path):
    (tmp_path / "v.yaml").write_text("checks:\n- {type: contains, text: refund, weight: 3}\n- {type: json_valid}\n")
    pl.DataFrame({"completion": ["x"] * 3}).write_parquet(tmp_path / "a.parquet")
    (tmp_path / "b.jsonl").write_text('{"completion": "é"}\n{"completion": null}\n')
    sources = [tmp_path / "a.parquet", tmp_path / "b.jsonl"]
    assay.score_file(sources, tmp_path / "v.yaml", tmp_path / "out.parquet", limit=4, command="assay score é")
    found = assay.read_provenance(tmp_path / "out.parquet")
    [verifier] = found.pop("verifiers")
    assert found.pop("content")["rows"] == 4
    assert found.pop("settings")["limit"] == 4
    facts = {"assay_version": assay.__version__, "polars_version": pl.__version__, "command": "assay score é"}
    inputs = [
        {"name": str(path), "size": path.stat().st_size, "rows": rows, "modified": path.stat().st_mtime_ns}
        for path, rows in zip(sources, (3, 2), strict=True)
    ]
    assert found == {**facts, "rows": 4, "inputs": inputs, "tasks": []}
    contains = '{"id":"contains","negate":false,"params":{"caseSensitive":false,"value":"refund"},"required":false,'
    valid = '{"id":"json_valid","negate":false,"params":{},"required":false,"type":"json_valid","weight":1.0}'
    canonical = f'{{"checks":[{contains}"type":"contains","weight":3.0}},{valid}],"id":"v","kind":"native","name":"v",'
    assert verifier == {
        "id": "v",
        "source": str(tmp_path / "v.yaml"),
        "canonical": canonical + '"passThreshold":1.0}',
        "sha256": hashlib.sha256((canonical + '"passThreshold":1.0}').encode()).hexdigest(),
        "kind": "native",
        "code": [],
        "checks": [
            {"id": "contains", "type": "contains", "weight": 3.0},
            {"id": "json_valid", "type": "json_valid", "weight": 1.0},
        ],
    }


def test_a_file_that_does_not_say_what_made_it(tmp_path):
    pl.DataFrame({"reward": [1.0]}).write_parquet(tmp_path / "foreign.parquet")
    (tmp_path / "garbage.parquet").write_bytes(b"<html>")
    (tmp_path / "out.csv").write_text("reward\n1.0\n")
    refused = [
        ("foreign.parquet", assay.InputError, "not written by Assay; its footer has no provenance"),
        (".", assay.InputError, "not written by Assay; it has no _manifest"),
        ("missing.parquet", assay.InputError, "no such file"),
        ("garbage.parquet", assay.InputError, "not a readable parquet file"),
        ("out.csv", assay.UsageError, "only parquet files hold a provenance"),
    ]
    for name, error, message in refused:
        with pytest.raises(error, match=message) as caught:
            assay.read_provenance(tmp_path / name)
        assert str(tmp_path / name) in str(caught.value)


FOOTERS = ("{", "[]", '{"content": 5}', '{"inputs": "x"}', '{"tasks": [1]}', '{"verifiers": 5}', '{"verifiers": [1]}')
VERIFIERS = ('{"checks": null}', '{"checks": [1]}', '{"code": 5}', '{"weight": "x"}', '{"checks": [{"weight": true}]}')


def test_an_edited_footer_is_refused_in_words(tmp_path):
    path = tmp_path / "out.parquet"
    for footer in (*FOOTERS, *(f'{{"verifiers": [{verifier}]}}' for verifier in VERIFIERS)):
        pl.DataFrame({"reward": [1.0]}).write_parquet(path, metadata={"assay": footer})
        for read in (assay.read_provenance, assay.verify):
            with pytest.raises(assay.InputError, match="provenance cannot be read"):
                read(path)
        assert assay.summarize(path).notes[0].startswith("it has no provenance")


def test_a_result_is_flushed_and_read_back_before_it_is_named(tmp_path, monkeypatch):
    from assay.system import atomic_file as newfile

    done = []

    def kind(handle):
        done.append("folder" if Path(f"/proc/self/fd/{handle}").is_dir() else "file")

    monkeypatch.setattr(newfile.os, "fsync", kind)
    monkeypatch.setattr(newfile.pl, "read_parquet_metadata", lambda path: done.append("footer"))
    replace = Path.replace
    monkeypatch.setattr(Path, "replace", lambda self, target: (done.append("name"), replace(self, target))[1])
    assay.score_file([{"completion": "1"}], {"checks": [{"type": "json_valid"}]}, tmp_path / "out.parquet")
    assert done == ["file", "footer", "name", "folder"]


def test_a_file_system_that_cannot_flush_takes_results_all_the_same(tmp_path, monkeypatch):
    def refuse(_):
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    monkeypatch.setattr("assay.system.atomic_file.os.fsync", refuse)
    for out in ("out.parquet", "out.jsonl"):
        assay.score_file([{"completion": "1"}], {"checks": [{"type": "json_valid"}]}, tmp_path / out)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.jsonl", "out.parquet"]


def test_a_file_system_without_modes_takes_results_that_replace_others(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    rows, spec = [{"completion": "1"}], {"checks": [{"type": "json_valid"}]}
    assay.score_file(rows, spec, tmp_path / "out.parquet")
    monkeypatch.setattr("pathlib.Path.chmod", refuse)
    assay.score_file(rows * 2, spec, tmp_path / "out.parquet", overwrite=True)
    assert pl.read_parquet(tmp_path / "out.parquet").height == 2
