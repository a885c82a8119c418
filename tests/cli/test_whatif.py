"""``assay whatif``: what it prints, files it writes, exit codes."""

import json
from pathlib import Path

import polars as pl
import pytest
from insight_cases import golden
from typer.testing import CliRunner

import assay
from assay.cli.main import app

CHECKS = [{"id": "a", "type": "contains", "value": "a", "weight": 2}, {"id": "b", "type": "contains", "value": "b"}]
SPEC = {"id": "v", "passThreshold": 0.6, "checks": CHECKS}


@pytest.fixture(autouse=True)
def desk(tmp_path, monkeypatch):
    """A folder with a result, and one without check columns."""
    monkeypatch.chdir(tmp_path)
    texts = ["ab", "a", "b", ""] * 6
    rows = [
        {"task_id": f"t{at // 8}", "model": ("elm", "ash")[at % 3 % 2], "completion": text}
        for at, text in enumerate(texts)
    ]
    assay.score_file(pl.DataFrame(rows), SPEC, "rewards.parquet")
    assay.score_file(pl.DataFrame(rows), SPEC, "bare.parquet", details=False)


def run(*args):
    return CliRunner().invoke(app, ["whatif", *args])


CASES = {
    "whatif: --set of an unknown check": ["rewards.parquet", "--set", "c=1"],
    "whatif: all weights zero": ["rewards.parquet", "--set", "a=0", "--drop", "b"],
    "whatif: negative weight for a native check": ["rewards.parquet", "--set", "a=-1"],
    "whatif: result without check columns": ["bare.parquet", "--set", "a=1"],
}


@pytest.mark.parametrize("name", CASES)
def test_exit_codes(name):
    result = run(*CASES[name])
    assert result.exit_code == golden("cli.exit_codes").expect[name], result.stderr


def test_all_exit_codes_of_the_command_are_tested():
    assert {name for name in golden("cli.exit_codes").expect if name.startswith("whatif: ")} == {*CASES}


def test_json_files_and_limits():
    args = ["rewards.parquet", "--set", "a=1", "--set", "b.required=true", "--threshold", "0.5", "--rank", "model"]
    result = run(*args, "--json", "--max-flips", "12")
    assert result.exit_code == 0
    data = json.loads(result.stdout)
    assert (data["insight"], data["diff"]["flips"], data["after"]["required"]) == (1, 12, ["b"]) or data["diff"][
        "flips"
    ] <= 6
    assert {"before", "after", "diff", "sensitivity", "ranking"} <= {*data}
    assert {*data["ranking"]} == {"order", "tie_share", "least_mass", "pareto"}
    assert run(*args, "--out", "new.parquet").exit_code == 0
    assert run(*args, "--out", "new.parquet").exit_code == 2
    new = json.loads(json.dumps(SPEC))
    new["checks"][0]["weight"], new["checks"][1]["required"], new["passThreshold"] = 1, True, 0.5
    provenance = assay.read_provenance("new.parquet")
    assert provenance["verifiers"][0]["canonical"] == assay.load_verifier(new).canonical
    assert provenance["command"].startswith("assay")
    assert run("rewards.parquet", "--out", "rewards.parquet", "--overwrite").exit_code == 2
    for name in ("whatif.md", "whatif.html", "whatif.json"):
        assert run(*args, "--out", name).exit_code == 0
        assert Path(name).stat().st_size > 500


def test_what_it_prints():
    result = run("rewards.parquet", "--set", "b=4", "--max-flips", "11", "--rank", "model")
    assert result.exit_code == 3
    assert "24 rows · 24 scored on both sides · 12 flips, 6 regressions · 12 rewards changed" in result.stderr
    assert "exceeded: 12 of 24 rows; --max-flips allows 11" in result.stderr
    assert "What each weight does" in result.stderr
    assert "Ranking" in result.stderr


@pytest.mark.parametrize("value", ["a", "=1", "a=x", "a.required=maybe"])
def test_what_cannot_be_set(value):
    result = run("rewards.parquet", "--set", value)
    assert result.exit_code == 2
    assert "expected NAME=WEIGHT" in result.stderr
