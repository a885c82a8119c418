"""``assay report``: what it prints and writes, and its exit codes."""

import json

import polars as pl
import pytest
from insight_cases import golden
from typer.testing import CliRunner

import assay
from assay.cli.main import app


def run(*arguments, code=0):
    done = CliRunner().invoke(app, ["report", *map(str, arguments)], env={"COLUMNS": "160"})
    assert done.exit_code == code, done.output
    return done


@pytest.fixture
def rewards(tmp_path):
    rows = [
        {
            "task_id": f"t{at % 9}",
            "reward": at % 5 / 4,
            "passed": at % 5 == 4,
            "check/v/a": float(at % 5 > 0),
            "check/v/b": 1.0,
        }
        for at in range(90)
    ]
    path = tmp_path / "rewards.parquet"
    pl.DataFrame(rows).write_parquet(path)
    return path


def test_without_a_file_it_is_markdown_or_json_on_stdout(rewards):
    assert run(rewards).stdout == run(rewards, "--format", "md").stdout == assay.report(rewards).markdown()
    found = run(rewards, "--json").stdout
    assert found == run(rewards, "--format", "json").stdout
    assert json.loads(found) == assay.report(rewards).as_json()
    assert list(json.loads(found)) == [
        *("insight", "summary", "findings", "histogram", "checks", "pairs", "by", "examples", "provenance", "notes")
    ]


@pytest.mark.parametrize("ending", ["html", "md", "json"])
def test_the_ending_says_what_is_written(rewards, tmp_path, ending):
    out = tmp_path / f"report.{ending}"
    done = run(rewards, "--out", out)
    assert not done.stdout
    assert "90 rows\nmean reward 0.500" in done.stderr
    assert "▲ `b` hardly teaches anything" in done.stderr
    assert f"wrote {out}" in done.stderr.replace("\n", "")
    first = out.read_bytes()
    assert "exists" in run(rewards, "--out", out, code=2).stderr
    run(rewards, "--out", out, "--overwrite")
    assert out.read_bytes() == first


def test_a_format_overrides_the_ending(rewards, tmp_path):
    run(rewards, "--out", tmp_path / "report.txt", "--format", "html")
    assert (tmp_path / "report.txt").read_text("utf-8").startswith("<!DOCTYPE html>")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--format", "pdf"], "--format pdf: unknown"),
        (["--out", "report.pdf"], "expected a name that ends in .html, .md or .json"),
        (["--by", "modle"], "--by modle"),
        (["--task", "nothing"], "--task nothing"),
        (["--length", "tokens"], "--length tokens"),
        (["--rollouts", "nothing.jsonl"], "nothing.jsonl"),
    ],
)
def test_options_that_cannot_be_used(rewards, arguments, message):
    assert message in run(rewards, *arguments, code=2).stderr


def test_its_exit_codes(rewards, tmp_path):
    case = golden("cli.exit_codes")
    frame = pl.read_parquet(rewards)
    frame.select("reward", "passed", "task_id").write_parquet(tmp_path / "plain.parquet")
    frame.drop("reward").write_parquet(tmp_path / "none.parquet")
    assay.score_file(
        [{"completion": "a"}],
        {"id": "v", "checks": [{"id": "a", "type": "contains", "value": "a"}]},
        tmp_path / "bare.parquet",
        details=False,
    )
    ended = {
        "report: --format html, no file named": [rewards, "--format", "html"],
        "report: result without check columns": [tmp_path / "bare.parquet"],
        "report: not written by Assay, has reward and passed": [tmp_path / "plain.parquet"],
        "report: no reward column": [tmp_path / "none.parquet"],
    }
    assert {*ended} == {name for name in case.expect if name.startswith("report:")}
    for name, arguments in ended.items():
        run(*arguments, code=case.expect[name])


def test_texts_can_be_left_out(tmp_path):
    pl.DataFrame({"reward": [0.5], "passed": [False], "completion": ["a secret"]}).write_parquet(tmp_path / "r.parquet")
    assert "a secret" in run(tmp_path / "r.parquet").stdout
    for kind in ("md", "json"):
        assert "a secret" not in run(tmp_path / "r.parquet", "--no-text", "--format", kind).stdout


def test_a_page_has_the_size_and_the_findings_that_are_asked_for(rewards, tmp_path):
    out = tmp_path / "report.html"
    run(rewards, "--out", out, "--max-size", "90kB", "--findings", "0", "--overwrite")
    small = out.read_text("utf-8")
    assert len(small.encode()) <= 90 * 1024
    assert small == assay.report(rewards, findings=0).html(max_size="90kB")
    assert small.count('"same_task"') < assay.report(rewards).html().count('"same_task"') == 90
    assert (
        "--max-size huge: expected a size"
        in run(rewards, "--out", out, "--max-size", "huge", "--overwrite", code=2).stderr
    )
