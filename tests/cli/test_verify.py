"""``assay verify``, ``assay score --reuse`` and ``--seal``: what they print, exit codes."""

import contextlib
import json
import os
import shutil
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq
import pytest
from insight_cases import golden
from typer.testing import CliRunner

import assay
from assay.cli.main import app

SPEC = {
    "id": "v",
    "checks": [{"id": "a", "type": "contains", "value": "a"}, {"id": "b", "type": "contains", "value": "b"}],
}
TEXTS = ["ab", "a", "b", ""] * 6


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A folder with rollouts, specs and results: one as it was written, one with another cell."""
    folder = tmp_path_factory.mktemp("written")
    with contextlib.chdir(folder):
        write_all()
    return folder


@pytest.fixture(autouse=True)
def desk(written, tmp_path, monkeypatch):
    """A copy of the folder, to work in."""
    shutil.copytree(written, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)


def write_all():
    rows = pl.DataFrame({"completion": TEXTS, "step": range(24)})
    for name in ("rows", "gone", "touched", "others"):
        rows.with_columns(step=pl.col("step") + len(name) * (name == "others")).write_parquet(f"{name}.parquet")
    Path("v.json").write_text(json.dumps(SPEC))
    Path("new.json").write_text(
        json.dumps({**SPEC, "checks": [SPEC["checks"][1], {"id": "c", "type": "min_length", "value": 1}]})
    )
    for source, out in (("rows", "rewards"), ("gone", "of_gone"), ("touched", "of_touched"), ("rows", "altered")):
        assay.score_file(f"{source}.parquet", SPEC, f"{out}.parquet")
    assay.score_file("rows.parquet", SPEC, "bare.parquet", details=False)
    Path("gone.parquet").unlink()
    os.utime("touched.parquet", (1, 1))
    footer = pq.read_metadata("altered.parquet").metadata[b"assay"]
    cells = pl.when(pl.int_range(pl.len()) == 3).then(0.75).otherwise("reward").alias("reward")
    table = pl.read_parquet("altered.parquet").with_columns(cells).to_arrow(compat_level=pl.CompatLevel.oldest())
    pq.write_table(table.replace_schema_metadata({b"assay": footer}), "altered.parquet")
    older = json.loads(footer) | {"assay_version": "0.0.1"}
    table = pl.read_parquet("rewards.parquet").to_arrow(compat_level=pl.CompatLevel.oldest())
    pq.write_table(table.replace_schema_metadata({b"assay": json.dumps(older)}), "older.parquet")


def run(*args):
    return CliRunner().invoke(app, [*args])


REUSE = ("--spec", "new.json", "--out", "out.parquet", "--reuse")
CASES = {
    "verify: same": ["verify", "rewards.parquet"],
    "verify: a cell was altered": ["verify", "altered.parquet"],
    "verify: root differs from --root": ["verify", "rewards.parquet", "--root", "0" * 64],
    "verify: input is gone": ["verify", "of_gone.parquet"],
    "verify: input was written to": ["verify", "of_touched.parquet"],
    "verify: made by another version": ["verify", "older.parquet"],
    "score --reuse: other rollouts": ["score", "others.parquet", *REUSE, "rewards.parquet"],
    "score --reuse: not sealed, same name, size and time": ["score", "rows.parquet", *REUSE, "rewards.parquet"],
    "score --reuse: earlier result has no details": ["score", "rows.parquet", *REUSE, "bare.parquet"],
}


@pytest.mark.parametrize("name", CASES)
def test_exit_codes(name):
    result = run(*CASES[name])
    assert result.exit_code == golden("cli.exit_codes").expect[name], result.stderr


def test_all_exit_codes_of_the_commands_are_tested():
    ours = ("verify: ", "score --reuse: ")
    assert {name for name in golden("cli.exit_codes").expect if name.startswith(ours)} == {*CASES}


def test_what_verify_prints():
    result = run("verify", "rewards.parquet", "--sample", "6")
    root = assay.read_provenance("rewards.parquet")["content"]["root"]
    assert result.stderr.splitlines() == [
        f"24 rows · root {root}",
        "columns: as they were written",
        "rows.parquet: the same by size and time",
        "verifiers: as the footer says",
        (
            "scored again: 6 of 24 rows, no cell differs; if up to 39.3 % of the rows were altered, "
            "such a sample misses them with a chance of 5 %"
        ),
        "intact",
    ]
    result = run("verify", "altered.parquet", "--sample", "all", "--root", root)
    assert (result.exit_code, result.stdout) == (3, "")
    for line in (
        "not as written: reward",
        "root: another than was demanded",
        "scored again: 24 of 24 rows, 1 cell differs",
        "not what its footer says",
    ):
        assert line in result.stderr
    assert ["3", "reward", "0.75", "0.0"] in [line.split() for line in result.stderr.splitlines()]


def test_verify_as_data_and_in_files():
    result = run("verify", "altered.parquet", "--json", "--seed", "3", "--sample", "50%")
    data = json.loads(result.stdout)
    assert {"root", "sealed", "columns_differ", "inputs", "verifiers", "sampled", "cells_differ", "misses_up_to"} <= {
        *data
    }
    assert (data["insight"], data["columns_differ"], data["sampled"], data["sealed"]) == (1, ["reward"], 12, False)
    assert run("verify", "altered.parquet", "--json", "--seed", "3", "--sample", "50%").stdout == result.stdout
    for name in ("found.md", "found.html", "found.json"):
        assert run("verify", "rewards.parquet", "--out", name).exit_code == 0
        assert Path(name).stat().st_size > 100
    assert run("verify", "rewards.parquet", "--out", "found.md").exit_code == 2


@pytest.mark.parametrize(
    "args",
    [
        ["missing.parquet"],
        ["rows.parquet"],
        ["v.json"],
        ["rewards.parquet", "--sample", "none"],
        ["rewards.parquet", "--root", "x"],
        ["rewards.parquet", "--rollouts", "others.parquet", "--rollouts", "others.parquet"],
        ["rewards.parquet", "--import", "no_such_module"],
        ["rewards.parquet", "--tasks", "no.jsonl"],
    ],
)
def test_what_cannot_be_verified(args):
    result = run("verify", *args)
    assert (result.exit_code, result.stderr[:7]) == (2, "error: ")


def test_an_earlier_result_from_the_command_line():
    assert run("score", "rows.parquet", "--spec", "v.json", "--out", "sealed.parquet", "--seal").exit_code == 0
    Path("rows.parquet").rename("moved.parquet")
    args = [
        "score",
        "moved.parquet",
        "--spec",
        "new.json",
        "--out",
        "out.parquet",
        "--seal",
        "--reuse",
        "sealed.parquet",
    ]
    result = run(*args, "--json")
    notes = json.loads(result.stdout)["notes"]
    assert notes == ["1 of 2 checks reused from sealed.parquet", "c: runs again: it is new or changed"]
    assert run("score", "moved.parquet", "--spec", "new.json", "--out", "full.parquet").exit_code == 0
    roots = [assay.read_provenance(name)["content"]["root"] for name in ("out.parquet", "full.parquet")]
    assert roots[0] == roots[1]
    assert run("verify", "out.parquet", "--root", roots[0]).exit_code == 0


def test_control_characters_of_a_footer_are_escaped():
    older = json.loads(pq.read_metadata("rewards.parquet").metadata[b"assay"])
    older["verifiers"][0]["id"] = older["inputs"][0]["name"] = older["polars_version"] = "\x1b[31m\u202e"
    table = pl.read_parquet("rewards.parquet").to_arrow(compat_level=pl.CompatLevel.oldest())
    pq.write_table(table.replace_schema_metadata({b"assay": json.dumps(older)}), "odd.parquet")
    for args in (["verify", "odd.parquet"], ["score", "rows.parquet", *REUSE, "odd.parquet"]):
        result = run(*args)
        assert result.exit_code in (2, 3)
        assert "\x1b" not in result.stderr
        assert "\u202e" not in result.stderr
