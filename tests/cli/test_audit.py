"""``assay audit``: the table, exit codes, JSON."""

import json

import pytest
from insight_cases import golden
from typer.testing import CliRunner

from assay.cli.main import app

RUNNER = CliRunner()


@pytest.fixture
def files(tmp_path):
    spec, rollouts = tmp_path / "tone.json", tmp_path / "rollouts.jsonl"
    checks = [
        {"id": "kind", "type": "contains", "value": "please"},
        {"id": "calm", "type": "not_contains", "value": "because"},
    ]
    spec.write_text(json.dumps({"id": "tone", "checks": checks}))
    rows = [{"task_id": "a", "prompt": "Say please.", "completion": "please"}, {"task_id": "b", "completion": "no"}]
    rollouts.write_text("\n".join(map(json.dumps, rows)))
    return spec, rollouts


def run(*args):
    return RUNNER.invoke(app, ["audit", *map(str, args)])


def test_exit_codes(files, tmp_path):
    codes = golden("cli.exit_codes").expect
    assert run(*files).exit_code == codes["audit: probes pass, no limit given"]
    assert run(*files).exit_code == codes["audit: a row without prompt"]
    failed = run(*files, "--max-passing", "0")
    assert failed.exit_code == codes["audit: a hack passes on more tasks than --max-passing"]
    assert "exceeded: --max-passing 0: prompt_echo passes on 1 of 1 task" in failed.stderr
    assert run(*files, "--max-free", "0.4").exit_code == 3
    assert run(*files, "--max-free", "0.5").exit_code == 0
    assert run(*files, "--min-control", "51%").exit_code == 3
    assert run(*files, "--min-control", "50%").exit_code == 0
    (tmp_path / "none.jsonl").write_text('{"completion": "x"}')
    assert run(files[0], tmp_path / "none.jsonl").exit_code == codes["audit: no task at all"]


def test_table_and_json(files):
    shown = run(*files)
    assert shown.stdout == ""
    assert "every free probe passes calm" in shown.stderr
    assert (
        "phrases in disguise are not seen by calm: look_alike on 2 of 2 tasks, zero_width on 2 of 2 tasks"
        in shown.stderr
    )
    data = json.loads(run(*files, "--json", "--max-passing", "50%").stdout)
    assert data["limits"]["max_passing"] == "50%"
    assert data["free_reward"] == 0.5
    assert list(data) == ["insight", "real", "probes", "checks", "free_reward", "bypasses", "limits", "notes"]


def test_files(files, tmp_path):
    for ending, begins in ((".html", "<!doctype html"), (".md", "# assay audit"), (".json", '{"insight": 1')):
        out = tmp_path / f"audit{ending}"
        assert run(*files, "--out", out).exit_code == 0
        assert out.read_text("utf-8").lower().startswith(begins)
    assert run(*files, "--out", out).exit_code == 2
    assert run(*files, "--out", tmp_path / "audit.csv").exit_code == 2


def test_what_gains_by_being_made_worse_is_named(tmp_path):
    spec, rollouts = tmp_path / "short.json", tmp_path / "long.jsonl"
    spec.write_text(json.dumps({"checks": [{"id": "short", "type": "max_length", "value": 5}]}))
    rollouts.write_text(json.dumps({"task_id": "a", "completion": "too long"}))
    assert "half earns more than the best real completion on 1 of 1 task" in run(spec, rollouts).stderr
