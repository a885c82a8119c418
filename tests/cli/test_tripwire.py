"""``assay tripwire``: alerts, exit codes, JSON."""

import json

import polars as pl
import pytest
from insight_cases import golden
from typer.testing import CliRunner

from assay.cli.main import app

RUNNER = CliRunner()


@pytest.fixture
def result(tmp_path):
    path = tmp_path / "rewards.parquet"
    rows = {"step": [1] * 64 + [2] * 64, "reward": [0.0, 1.0] * 32 + [0.0] * 64}
    pl.DataFrame(rows).with_columns(passed=pl.col("reward") == 1.0).write_parquet(path)
    return path


def run(*args):
    return RUNNER.invoke(app, ["tripwire", *map(str, args)])


def test_exit_codes(result, tmp_path):
    codes = golden("cli.exit_codes").expect
    assert run(result).exit_code == codes["tripwire: an alert"]
    assert run(result, "--warn-only").exit_code == 0
    quiet = tmp_path / "quiet.parquet"
    pl.read_parquet(result).filter(pl.col("step") == 1).write_parquet(quiet)
    assert run(quiet).exit_code == codes["tripwire: nothing fired"]
    failed = run(result, "--by", "epoch")
    assert failed.exit_code == codes["tripwire: no step column"]
    assert "no column `epoch` with the step of each row" in failed.stderr


def test_facts_with_numbers(result, tmp_path):
    shown = run(result)
    assert "64 of 64 scored rows have reward 0.0 (100 %)" in shown.stderr
    assert shown.stdout == ""
    data = json.loads(run(result, "--json").stdout)
    assert data["insight"] == 1
    assert [(alert["wire"], alert["step"], alert["rows"]) for alert in data["alerts"]] == [("all_zero", 2, 64)]
    assert run(result, "--json").stdout == run(result, "--json").stdout
    limits = tmp_path / "limits.toml"
    limits.write_text("all_zero = false\n")
    assert run(result, "--limits", limits).exit_code == 0
    limits.write_text("all_zeros = false\n")
    assert run(result, "--limits", limits).exit_code == 2


def test_lengths_may_be_tokens(tmp_path):
    path = tmp_path / "rewards.parquet"
    rows = {"step": [1] * 64, "reward": [at % 8 / 8 for at in range(64)], "tokens": [at % 8 for at in range(64)]}
    pl.DataFrame(rows).write_parquet(path)
    assert run(path).exit_code == 0
    assert "length and reward have correlation +1" in run(path, "--length", "tokens").stderr
    assert run(path, "--length", "reward").exit_code == 2
