"""Worked cases of tests of specs, and the command that runs them."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from assay.cli.main import app

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "verifiers_goldens.json"
GOLDENS = json.loads(DATA.read_text())["a"] if DATA.exists() else []
needs_goldens = pytest.mark.skipif(not GOLDENS, reason=f"{DATA} is not there")


def run(*arguments):
    """Run the command; return its exit code and what it printed on each stream."""
    ran = CliRunner().invoke(app, ["test", *arguments])
    return ran.exit_code, ran.stdout, ran.stderr
