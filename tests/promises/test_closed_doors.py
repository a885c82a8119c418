"""Files and folders that the user may not read: each command names the path, ends with exit code 2, and leaves no file behind."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import assay

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="what is dropped is a capability of Linux")

DROPPED = """
import ctypes, os, sys
for capability in (1, 2):  # root's, to read and write what is closed
    ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""
COMMANDS = """
import json, sys
from typer.testing import CliRunner
from assay.cli.main import app
for command in json.loads(sys.argv[1]):
    done = CliRunner().invoke(app, command)
    print(json.dumps([repr(done.exception), done.stderr]))
"""
ENV = os.environ | {"PYTHONPATH": str(Path(assay.__file__).parents[1]), "COLUMNS": "200"}
SPEC = {"checks": [{"type": "equals", "value": {"column": "answer"}}]}
READERS = ("report", "show", "verify", "groups", "tripwire")
RESULTS = ("locked.parquet", "closed/result.parquet", "closed", "partly")


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    folder = tmp_path_factory.mktemp("desk")
    rows = [{"task_id": name, "completion": name} for name in "ab"]
    (folder / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "v.json").write_text(json.dumps(SPEC))
    tasks = {"task_id": ["a", "b"], "answer": ["a", "b"]}
    assay.score_file(folder / "in.jsonl", SPEC, f"{folder}/partly/", tasks=tasks)
    assay.score_file(folder / "in.jsonl", SPEC, folder / "result.parquet", tasks=tasks)
    (folder / "closed").mkdir()
    for name in ("locked.parquet", "closed/result.parquet"):
        shutil.copy(folder / "result.parquet", folder / name)
    for task in "ab":
        (folder / "tasks" / task).mkdir(parents=True)
        (folder / "tasks" / task / "task.json").write_text(json.dumps({"answer": task}))
    (folder / "tasks" / "dataset.toml").touch()
    (folder / "harbor" / "a").mkdir(parents=True)
    for name in ("task.toml", "instruction.md"):
        (folder / "harbor" / "a" / name).touch()
    closed = ("locked.parquet", "closed", "tasks/b", "harbor/a/instruction.md", "partly/part-000000.parquet")
    shut = [folder / name for name in closed]
    for path in shut:
        path.chmod(0)
    yield folder
    for path in shut:
        path.chmod(0o700)


def test_each_command_names_what_it_may_not_read(desk):
    before = sorted(path.name for path in desk.iterdir())
    score = ["score", "in.jsonl", "--spec", "v.json", "--out", "out.parquet", "--tasks"]
    cases = {
        **{(command, result): [command, result] for command in READERS for result in RESULTS},
        **{("diff", result): ["diff", result, "result.parquet"] for result in RESULTS},
        ("tasks", "closed/result.parquet"): [*score, "closed/result.parquet"],
        ("tasks", "closed"): [*score, "closed"],
        ("tasks", "tasks/b/task.json"): [*score, "tasks"],
        ("tasks", "harbor/a/instruction.md"): [*score, "harbor"],
        ("sealed", "tasks/b/task.json"): [*score, "tasks", "--seal"],
        ("reused", "closed/result.parquet"): [*score, "result.parquet", "--reuse", "closed/result.parquet"],
    }
    command = [sys.executable, "-c", DROPPED, "-c", COMMANDS, json.dumps([*cases.values()])]
    done = subprocess.run(command, cwd=desk, env=ENV, capture_output=True, text=True, check=True)
    for (case, path), line in zip(cases, done.stdout.splitlines(), strict=True):
        shown = "partly/part-000000.parquet" if path == "partly" else path
        assert (case, *json.loads(line)) == (case, "SystemExit(2)", f"error: {shown}: Permission denied.\n")
    assert sorted(path.name for path in desk.iterdir()) == before
