"""`assay import`: what it writes, prints and ends with."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import assay
from assay.cli.main import app

TESTS = {"tests": [{"assert": [{"type": "equals", "value": text}]} for text in ("a", "b")]}
PLAIN = {"defaultTest": {"assert": [{"type": "equals", "value": "a"}]}}
PARTLY = {"defaultTest": {"assert": [*PLAIN["defaultTest"]["assert"], {"type": "javascript", "value": "x"}]}}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(config, *options):
    Path("config.json").write_text(json.dumps(config), "utf-8")
    return CliRunner().invoke(app, ["import", "config.json", *options])


def test_a_verifier_is_printed():
    result = run(PLAIN)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == (
        "# From config.json, by assay import.\nchecks:\n- type: grader\n  name: promptfoo.equals\n  value: a\n"
    )


def test_a_verifier_and_a_table_are_written_and_score(folder):
    result = run(TESTS, "--out", "spec.yaml")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "wrote spec.yaml and spec.tasks.jsonl, for 2 tests\n" in result.stderr
    assert "--spec spec.yaml --tasks spec.tasks.jsonl" in result.stderr
    rollouts = [{"task_id": "0", "completion": "a"}, {"task_id": "1", "completion": "a"}]
    rewards = assay.score(rollouts, folder / "spec.yaml", tasks=folder / "spec.tasks.jsonl")
    assert rewards["reward"].to_list() == [1.0, 0.0]


def test_a_table_needs_a_name():
    result = run(TESTS)
    assert result.exit_code == 2
    assert "Name a file for the verifier: --out verifier.yaml" in result.stderr


@pytest.mark.parametrize(("options", "code"), [((), 3), (("--lenient",), 0)])
def test_what_is_left_out_is_named_and_ends_with_3(options, code):
    result = run(PARTLY, *options)
    assert result.exit_code == code
    assert result.stdout.startswith("# From config.json")
    assert "warning: left out: $.defaultTest.assert[1] (line 1): `javascript`: it runs code" in result.stderr


def test_files_are_not_replaced_unless_asked(folder):
    (folder / "spec.tasks.jsonl").write_text("mine")
    result = run(TESTS, "--out", "spec.yaml")
    assert result.exit_code == 2
    assert (folder / "spec.tasks.jsonl").read_text() == "mine"
    assert not (folder / "spec.yaml").exists()
    assert run(TESTS, "--out", "spec.yaml", "--overwrite").exit_code == 0
    assert json.loads((folder / "spec.tasks.jsonl").read_text().splitlines()[0]) == {"task_id": "0", "assert_1": "a"}


@pytest.mark.parametrize("name", ["spec.json", "spec", "no/spec.yaml"])
def test_a_name_that_cannot_be_written_is_refused(name, folder):
    result = run(PLAIN, "--out", name)
    assert result.exit_code == 2
    assert [path.name for path in folder.iterdir()] == ["config.json"]


def test_a_file_that_is_something_else_is_refused():
    result = run({"checks": []})
    assert result.exit_code == 2
    assert "neither a promptfoo configuration nor an OpenAI grader" in result.stderr
