"""A result summarised is the summary of the run that made it; by group, the numbers are those of ``assay groups``."""

import json
from itertools import product
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

import assay
from assay.cli.main import app
from assay.insight import summarizing
from assay.insight.summarizing import by_group
from assay.scoring.summary import CheckSummary, Summary

SPECS = Path(__file__).resolve().parents[2] / "specs"
REFUNDS = SPECS / "refund-quality"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A result, and the summary of its run."""
    out = tmp_path_factory.mktemp("run") / "out.parquet"
    options = {"tasks": REFUNDS / "tasks.jsonl"}
    return out, assay.score_file(REFUNDS / "rollouts.jsonl", REFUNDS / "refund-quality.json", out, **options)


def test_a_file_has_the_summary_of_its_run(run):
    out, summary = run
    times = {"seconds": 0, "rows_per_second": 0}
    found, expected = assay.summarize(out).as_json() | times, summary.as_json() | times
    for numbers in (found, expected):
        numbers["mean_reward"] = round(numbers["mean_reward"], 12)
        for check in numbers["checks"]:
            check["mean"] = round(check["mean"], 12)
    assert found == expected


def half(completion):
    """A penalty for refunds, and half of a point for the empty text."""
    return 1.0 if "refund" in completion else 0.0 if completion else 0.5


def test_penalties_and_metrics_fall_short_as_in_their_run(tmp_path):
    rows = [{"completion": text} for text in ("refund", "no", "", "")]
    members = {"gain": 1.0, "penalty": -0.5, "metric": 0.0}
    functions = [named(half, name) for name in members]
    rubric = assay.Rubric(funcs=functions, weights=[*members.values()])
    summary = assay.score_file(rows, rubric, tmp_path / "out.parquet")
    found = assay.summarize(tmp_path / "out.parquet")
    failures = [(check.id, check.failures) for check in found.checks]
    assert failures == [(check.id, check.failures) for check in summary.checks]
    assert failures == [("gain", 3), ("penalty", 3), ("metric", 0)]


def named(function, name):
    def member(completion):
        return function(completion)

    member.__name__ = name
    return member


def test_a_frame_can_be_summarised_too():
    rows = [{"completion": text} for text in ("refund", "no", None)]
    spec = {"id": "v", "checks": [{"type": "contains", "value": "refund"}, {"type": "regex", "pattern": "no"}]}
    found = assay.summarize(assay.score(rows, spec))
    assert (found.rows, found.scored, found.passed, found.errors, found.mean_reward) == (3, 2, 0, 1, 0.5)
    assert found.unscored == {"the completion is null": 1}
    checks = [(check.id, check.rows, check.failures, check.weight) for check in found.checks]
    assert checks == [("contains", 2, 1, None), ("regex", 2, 1, None)]
    assert found.checks[0].reasons == {'does not contain "refund"': 1}
    assert json.loads(json.dumps(found.as_json())) == found.as_json()
    empty = assay.summarize(pl.DataFrame(schema={"reward": pl.Float64}))
    assert (empty.rows, empty.mean_reward, empty.checks) == (0, None, [])


def test_a_summary_reads_well_and_escapes_what_comes_from_data(run):
    assert repr(run[1]) == "<Summary: 99 of 100 rows scored · mean reward 0.750 · pass rate 40.4 %>"
    hostile = "<script>alert(1)</script> \x1b[31m \u202e & \"'"
    checks = [CheckSummary(f"c{n}{hostile}", "contains", 1.0, rows=1, failures=1) for n in range(70)]
    checks[0].reasons[hostile] = 3
    summary = Summary(checks, [hostile] * 22, rows=2, scored=1)
    html = summary.document().html()
    assert "… 2 more notes" in html
    assert "\x1b" not in html
    assert "<script" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert html.count("<tr>") == 71
    assert "1 of 2 rows scored" in html


def test_means_and_intervals_by_group_are_those_of_groups(run):
    for by in ("model", "task_id", "step"):
        summary = assay.groups(run[0], by=by, k=1).summary
        for entry, (ours, theirs) in product(
            by_group(run[0], [by])[by], (("mean_reward", "mean"), ("pass_rate", "pass@1"))
        ):
            row = summary.filter((pl.col(by) == entry["value"]) & (pl.col("metric") == theirs)).to_dicts()[0]
            assert entry[ours] == pytest.approx(row["value"], abs=1e-12)
            assert (entry["groups"], entry["tasks"], entry["few"]) == (row["groups"], row["tasks"], row["few"])
            ends = None if row["low"] is None else pytest.approx([row["low"], row["high"]], abs=1e-9)
            assert entry[f"{ours}_ci95"] == ends


def test_groups_without_tasks_rewards_a_mean_or_few_values(monkeypatch):
    huge = pl.DataFrame({"task_id": ["a", "b"], "model": ["m", "m"], "reward": [1.7e308, 1.7e308]})
    assert assay.summarize(huge, by="model").by["model"][0]["mean_reward"] is None
    columns = {"reward": [1.0, 0.0, None, 1.0], "passed": [True, False, None, True], "model": ["a", "a", "b", None]}
    frame = pl.DataFrame(columns)
    found = by_group(frame, ["model"])["model"]
    numbers = [(one["value"], one["rows"], one["mean_reward"], one["pass_rate_ci95"]) for one in found]
    assert numbers == [("a", 2, 0.5, None), ("b", 1, None, None), (None, 1, 1.0, None)]
    tasks = frame.with_columns(task_id=pl.Series(["x", "y", "x", None]))
    low, high = by_group(tasks, ["model"])["model"][0]["pass_rate_ci95"]
    assert (low, high) == pytest.approx((0.094531205734230, 0.905468794265769), abs=1e-12)  # Wilson, 1 of 2
    monkeypatch.setattr(summarizing, "MOST_VALUES", 1)
    assert [one["value"] for one in by_group(frame, ["model"])["model"]] == ["a"]
    with pytest.raises(assay.UsageError, match='by="modl"'):
        by_group(frame, ["modl"])


@pytest.mark.parametrize("out", ["", "--out out.parquet", "--out out/ --no-isolate"])
def test_the_command_adds_the_groups_to_the_summary(tmp_path, monkeypatch, out):
    monkeypatch.chdir(tmp_path)
    command = f"score {REFUNDS}/rollouts.jsonl --tasks {REFUNDS}/tasks.jsonl --spec {REFUNDS}/refund-quality.json {out}"
    done = CliRunner().invoke(app, [*command.split(), "--by", "model,task_id", "--json"])
    assert done.exit_code == 0, done.output
    data = json.loads(done.stdout)
    assert [one["value"] for one in data["by"]["model"]] == ["atlas-7b", "birch-13b", "cedar-70b"]
    assert len(data["by"]["task_id"]) == 20
    assert data["out"] == (out.split()[1] if out else None)
    assert bool(data["root"]) is out.endswith(".parquet")
    done = CliRunner().invoke(app, [*command.split(), "--by", "model", "--overwrite"], env={"COLUMNS": "120"})
    assert "atlas-7b     33     19  0.494 [0.425, 0.563]   12.5 % [1.0, 24.0] %" in done.stderr


def test_groups_are_refused_where_they_cannot_be_had(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("in.jsonl").write_text('{"completion": "x"}\n')
    Path("v.json").write_text('{"checks": [{"type": "json_valid"}]}')
    for options, fact in (("--out out.jsonl --by model", "--by model: reads the rewards"), ("--by model", "model")):
        done = CliRunner().invoke(app, f"score in.jsonl --spec v.json {options}".split())
        assert done.exit_code == 2, done.output
        assert fact in done.stderr
    assert not Path("out.jsonl").exists()
    done = CliRunner().invoke(app, ["score", "in.jsonl", "--spec", "v.json", "--out", "out.parquet", "--by", "modle"])
    assert done.exit_code == 2
    assert "--by modle: out.parquet has no such column" in done.stderr
    assert "1 row" in done.stderr.splitlines()[0]
    assert "rewards: out.parquet" in done.stderr
