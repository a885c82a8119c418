"""The README tells the truth: its Python runs, its commands work, its tables come from the code."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from cases import ROOT
from readme import README, generated

from assay.spec.verifier import load_verifier
from assay.system.documents import parse_text

TEXT = README.read_text("utf-8")
PYTHON = re.findall(r"^```python\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
COMMANDS = [
    line
    for block in re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL)
    for line in block.splitlines()
    if line.startswith("assay ")
]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "specs").symlink_to(ROOT / "specs")
    return tmp_path


@pytest.mark.parametrize("code", PYTHON, ids=range(len(PYTHON)))
def test_python_examples_run_as_written(code, folder):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_work_as_written(command, folder):
    (folder / "bin").mkdir()
    assay = folder / "bin" / "assay"
    assay.write_text(f'#!/bin/sh\nexec "{sys.executable}" -W error -m assay "$@"\n')
    assay.chmod(0o755)
    env = {**os.environ, "PATH": f"{assay.parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], cwd=folder, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr


def test_the_examples_are_there():
    assert len(PYTHON) >= 3
    assert {line.split()[1] for line in COMMANDS} == {
        "score",
        "check",
        "explain",
        "checks",
        "schema",
        "presets",
        "bench",
    }


def test_the_table_of_checks_comes_from_the_code():
    assert generated(TEXT) == TEXT, "run `make readme`"
    assert "| `task_expectations` |" in TEXT


def test_the_verifier_in_the_readme_is_one():
    written = re.search(r"```yaml\n(.*?)```", TEXT, re.DOTALL).group(1)
    verifier = load_verifier(parse_text(written, ".yaml", "README.md").data, strict=True)
    assert [check.id for check in verifier.checks] == ["policy", "not_contains", "regex"]


def test_the_two_commands_stand_at_the_top():
    top = TEXT[:700]
    assert "make demo" in top
    assert "make test" in top


def test_the_table_of_benchmarks_is_there():
    assert "<!-- bench:begin -->\n" in TEXT
    assert "| measured | contender |" in TEXT.partition("<!-- bench:begin -->\n")[2].partition("<!-- bench:end -->")[0]


def test_paths_named_in_the_readme_exist():
    for path in re.findall(r"`?((?:engine|specs|tests)/[\w./-]+)", TEXT):
        assert Path(ROOT, path.rstrip(".")).exists(), path
