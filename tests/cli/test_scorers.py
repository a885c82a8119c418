"""Functions, reward functions and other specs in a spec, as a user types it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from cases import ROOT
from typer.testing import CliRunner

import assay
from assay.cli.main import app
from assay.functions import registry
from assay.rewards import declared

ENV = {**os.environ, "COLUMNS": "160", "PYTHONPATH": str(ROOT / "engine")}

MODULE = """
from os import system

import assay
from assay.fns import register_fn


@register_fn("begins")
def begins(model_output, expected, params):
    return float(model_output.startswith(expected))


def brevity(completion):
    return 4 / (1 + len(completion)), f"{len(completion)} characters"


def breaks(completion):
    raise ValueError(f"cannot read {completion!r}")


def compares(completions, prompts):
    return [1.0 for _ in completions]
"""
OTHER = "checks:\n- {type: contains, value: b}\n- {type: 'my_rewards:brevity', threshold: 0.5}\n"
ROWS = [{"completion": "ab", "answer": "a"}, {"completion": "b" * 9, "answer": "a"}]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(declared, "_ALLOWED", set())
    monkeypatch.setattr(registry, "_REGISTRY", dict(registry._REGISTRY))
    monkeypatch.delitem(sys.modules, "my_rewards", raising=False)
    Path("my_rewards.py").write_text(MODULE)
    Path("parts").mkdir()
    Path("parts/other.yaml").write_text(OTHER)
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    yield
    sys.modules.pop("my_rewards", None)


def spec(*checks):
    Path("v.yaml").write_text("checks:\n" + "".join(f"- {check}\n" for check in checks))


def run(*words, code=0):
    done = CliRunner().invoke(app, words, env={"COLUMNS": "160"})
    assert done.exception is None or isinstance(done.exception, SystemExit), repr(done.exception)
    assert done.exit_code == code, done.output
    assert "Traceback" not in done.stderr
    return done.stderr


def start(*words, code=0):
    """Run a command in a process of its own, which knows nothing of earlier imports."""
    done = subprocess.run([sys.executable, "-m", "assay", *words], capture_output=True, text=True, env=ENV, check=False)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


def score(*words, code=0):
    return run("score", "rows.jsonl", "--spec", "v.yaml", "--out", "out.parquet", *words, code=code)


EVERYTHING = (
    "{type: begins, expected: {column: answer}}",
    "{type: 'my_rewards:brevity', weight: 2}",
    "{kind: format_only, weight: 0.5}",
    "{type: spec, path: parts/other.yaml}",
)


def test_functions_registered_by_an_imported_module_and_other_specs_are_scored():
    spec(*EVERYTHING)
    score("--import", "my_rewards")
    frame = pl.read_parquet("out.parquet")
    assert frame["check/v/begins"].to_list() == [1.0, 0.0]
    assert frame["check/v/other.brevity"].to_list() == [1.0, 0.0]
    assert "other.brevity: 9 characters" in frame["feedback"][1]
    code = assay.read_provenance("out.parquet")["verifiers"][0]["code"]
    assert [entry.get("name") or entry["qualname"] for entry in code] == ["begins", "brevity", "brevity"]


def test_explain_check_and_schema_know_them():
    spec(*EVERYTHING)
    assert "not tried on sample texts because of the reward functions brevity" in run(
        "check", "v.yaml", "--import", "my_rewards"
    )
    spec("{type: begins, expected: {column: answer}}", "{kind: format_only}")
    assert "2 checks, 200 sample texts scored the same" in run("check", "v.yaml", "--import", "my_rewards")
    spec(*EVERYTHING)
    run("explain", "v.yaml", "--import", "my_rewards")
    run("schema", "--import", "my_rewards")


@pytest.mark.long
def test_parts_are_scored_in_processes_of_their_own_and_a_changed_function_is_another_run():
    spec(*EVERYTHING)
    words = ("score", "rows.jsonl", "--spec", "v.yaml", "--import", "my_rewards", "--out", "out/")
    start(*words)
    parts = pl.read_parquet("out/*.parquet")
    score("--import", "my_rewards")
    assert parts.equals(pl.read_parquet("out.parquet").select(parts.columns))
    start(*words)
    Path("my_rewards.py").write_text(MODULE.replace("4 /", "5 /"))
    assert "verifier v: code" in start(*words, code=2)


def test_the_content_of_another_spec_is_part_of_the_run():
    spec("{type: spec, path: parts/other.yaml}")
    words = ("score", "rows.jsonl", "--spec", "v.yaml", "--import", "my_rewards", "--no-isolate", "--out", "out/")
    run(*words)
    Path("parts/other.yaml").write_text(OTHER.replace("0.5", "0.25"))
    assert "verifier v: sha256" in run(*words, code=2)


@pytest.mark.parametrize(
    ("check", "message"),
    [
        (
            "{type: 'my_rewards:brevty'}",
            "$.checks[0].type (line 2): my_rewards has no reward function `brevty`. Did you mean `brevity`?",
        ),
        ("{type: 'my_rewards:compares'}", "sees all rollouts of an example, which only a rubric gives it: --rubric"),
        ("{type: 'my_rewards:system'}", "only imports `system`"),
        ("{type: 'shutil:rmtree'}", "a spec imports nothing, and the module shutil was not imported for it"),
        ("{type: function, name: begin}", 'no verifier function is called "begin". Did you mean `begins`?'),
        ("{type: spec, path: v.yaml}", "the specs include each other: v.yaml → v.yaml"),
        ("{type: spec, path: parts/othr.yaml}", "othr.yaml: no such file"),
        ("{kind: format_onl}", "format_only"),
    ],
)
def test_what_cannot_be_used_is_refused_with_its_place_and_what_to_do(check, message):
    spec(check)
    stderr = score("--import", "my_rewards", code=2)
    assert message in stderr
    assert "$.checks[0]" in stderr
    assert not Path("out.parquet").exists()


def test_a_module_that_is_not_imported_is_named_with_the_option():
    spec("{type: 'my_rewards:brevity'}")
    assert "If it is yours, name it: --import my_rewards." in score(code=2)


def test_a_typo_of_a_functions_name_is_skipped_with_a_guess_and_the_run_fails():
    spec("{type: begin}", "{type: contains, value: a}")
    stderr = score("--import", "my_rewards", code=3)
    assert 'v/begin: skipped, unknown check type "begin". Did you mean `begins`?' in stderr
    score("--import", "my_rewards", "--lenient", "--overwrite")


def test_a_function_that_raises_on_every_row_fails_the_run():
    spec("{type: 'my_rewards:breaks'}", "{type: contains, value: a}")
    stderr = score("--import", "my_rewards", code=3)
    assert "ValueError: cannot read 'ab'" in stderr
    assert pl.read_parquet("out.parquet")["check/v/breaks"].to_list() == [0.0, 0.0]
