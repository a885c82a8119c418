"""What a command imports: a module that nothing needs makes every small run slower."""

import json
import subprocess
import sys

import polars as pl
import pyarrow.parquet as pq
import pytest

from assay.cli.app import app
from assay.loading.formats import parquet

SLOW = {
    *(
        "pyarrow",
        "numpy",
        "pandas",
        "rich",
        "jsonschema_rs",
        "rapidfuzz",
        "assay.checks.graders.table",
        "assay.steps.regex",
    ),
    *("assay.expressions.regex.pattern_column", "assay.insight.results", "assay.rubrics.rubric", "assay.writing.seals"),
    *("assay.steps.tool_calls.python", "assay.guard.pool"),
    "assay.expressions.regex.trees.lookahead",
}

RUN = f"""
import os, sys
def end(code):
    print(code, *sorted({SLOW} & {{*sys.modules}}))
    sys.stdout.flush()
    leave(code)
leave, os._exit = os._exit, end
sys.argv[0] = "assay"
from assay.cli.main import main
main()
"""
CHECKS = [{"type": "contains", "value": "refund"}, {"type": "regex", "pattern": r"\d"}, {"type": "json_valid"}]


def _imported(*args, folder):
    done = subprocess.run([sys.executable, "-c", RUN, *args], capture_output=True, text=True, cwd=folder, check=False)
    return done.stdout.split()


@pytest.mark.parametrize("rows", [16, 150_000])
def test_a_run_from_parquet_to_parquet_needs_no_pyarrow(tmp_path, rows):
    long = "the footer has the first and the last text of each group " * 50
    texts = ["m" if at % 1_250 else f"{'az'[at // 1_250 % 2]} {long}" for at in range(rows)]
    frame = pl.DataFrame({"completion": texts})
    pq.write_table(frame.to_arrow(), tmp_path / "rollouts.parquet", row_group_size=2_500)
    (tmp_path / "spec.json").write_text(json.dumps({"checks": CHECKS}))
    run = ("score", "rollouts.parquet", "--spec", "spec.json", "--out", "rewards.parquet")
    assert _imported(*run, folder=tmp_path) == ["0", "rich"]  # for the table of the summary
    assert pl.read_parquet(tmp_path / "rewards.parquet").height == rows
    assert "pyarrow" in _imported(*run[:2], "--spec", "spec.json", "--verify-checksums", folder=tmp_path)


def test_a_run_of_lines_with_messages_needs_no_pandas(tmp_path):
    (tmp_path / "pandas.py").write_text("")  # would be imported from here
    row = {name: [{"role": "assistant", "content": "a refund"}] for name in ("prompt", "completion")}
    (tmp_path / "rollouts.jsonl").write_text(f"{json.dumps({'id': 1, 'tools': None} | row)}\n" * 3)
    (tmp_path / "spec.json").write_text(json.dumps({"checks": CHECKS}))
    run = ("score", "rollouts.jsonl", "--spec", "spec.json", "--out", "rewards.parquet")
    code, *imported = _imported(*run, folder=tmp_path)
    assert code == "0"
    assert "pandas" not in imported


def test_what_the_counts_of_a_run_say_needs_no_result(tmp_path):
    pl.DataFrame({"completion": ["a refund"] * 24}).write_parquet(tmp_path / "rollouts.parquet")
    (tmp_path / "spec.json").write_text(json.dumps({"checks": CHECKS}))
    run = ("score", "rollouts.parquet", "--spec", "spec.json", "--out", "rewards.parquet")
    assert _imported(*run, folder=tmp_path) == ["0", "rich"]


def test_a_command_imports_no_engine_for_its_help(tmp_path):
    assert _imported("score", "--help", folder=tmp_path)[-1:] == ["0"]


@pytest.mark.parametrize(
    ("arguments", "begun"),
    [
        (["a.parquet"], ["a.parquet"]),
        (["a.parquet", "--out", "out.parquet"], ["a.parquet"]),
        (["a.parquet", "b.parquet"], []),
        (["a.jsonl"], []),
        (["-"], []),
        (["a.parquet", "--out", "folder/"], []),
        (["a.parquet", "--limit", "5"], []),
        (["a.parquet", "--memory-limit", "1GB"], []),
    ],
)
def test_reading_begins_before_the_modules_are_imported_that_score(monkeypatch, arguments, begun):
    """But not where fewer rows are read, or by another process."""
    seen = []
    monkeypatch.setattr(parquet, "begin", lambda path: seen.append(str(path)))
    monkeypatch.setattr("assay.cli.app._import_all", lambda _: sys.exit(7))
    with pytest.raises(SystemExit, match="7"):
        app(["score", *arguments, "--spec", "verifier.yaml"])
    assert seen == begun
