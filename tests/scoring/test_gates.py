"""Minimums of a run: exact, told, and checked after the result is written."""

import json
import warnings
from fractions import Fraction
from pathlib import Path

import polars as pl
import pytest
from cases import each
from typer.testing import CliRunner

import assay
from assay.cli.main import app
from assay.scoring.summary import pass_rate_gate, reward_gate
from assay.system.quantities import read_share

SPEC = {"id": "v", "checks": [{"type": "contains", "value": "refund"}]}
ROWS = [{"completion": text, "task_id": "t"} for text in ("refund", "refund", "no", None)]


@each(
    ("given", "share"), [("80%", "0.8"), ("40.4%", "0.404"), (0.404, "0.404"), (1, "1"), ("0", "0"), (" 5 % ", "0.05")]
)
def test_a_share_is_what_is_written(given, share):
    assert read_share("--x", given) == Fraction(share)
    assert read_share("--x", read_share("--x", given)) == Fraction(share)


@each("given", ["80", "x", "-1%", "101%", "", "nan", 1.5])
def test_another_share_is_refused(given):
    with pytest.raises(assay.UsageError, match="x"):
        read_share("--x", given)


@each(("passed", "scored", "met"), [(404, 1000, True), (403, 1000, False), (0, 0, False), (404_000, 999_999, True)])
def test_a_pass_rate_is_compared_without_rounding(passed, scored, met):
    assert pass_rate_gate(Fraction("0.404"), passed, scored).met is met


def test_a_mean_that_misses_by_its_last_digits_only_is_enough():
    assert sum([0.7] * 3) / 3 < 0.7
    assert reward_gate(0.7, sum([0.7] * 3) / 3).met
    assert not reward_gate(0.7, 0.699999).met
    assert not reward_gate(-1.0, None).met


@pytest.mark.parametrize("out", ["out.parquet", "out.jsonl", "out/"])
def test_a_run_that_misses_a_minimum_writes_its_result_and_says_which(tmp_path, out):
    out, options = str(tmp_path / out), {"isolate": False}
    if out.endswith("out"):
        out += "/"
    source = tmp_path / "in.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    with pytest.raises(assay.FailedRunError) as failed:
        assay.score_file(source, SPEC, out, min_pass_rate=0.6, min_reward=0.6, **options)
    assert failed.value.fact == "pass rate: 2 of 4 rows passed (50%), 1 unscored; --min-pass-rate asks for 60%"
    assert failed.value.hint == "The result is written."
    assert Path(out).exists()
    found = assay.score_file(source, SPEC, min_pass_rate=0.7, min_reward=0.7, lenient=True)
    assert [gate["met"] for gate in found.as_json()["gates"]] == [False, False]
    assert found.unmet == [gate.words for gate in found.gates]
    assert "gates" not in assay.score_file(source, SPEC).as_json()


@pytest.mark.parametrize(
    ("options", "code", "told"),
    [
        (
            "--min-pass-rate 70% --min-pass-rate-of scored",
            3,
            "not reached: pass rate: 2 of 3 rows passed (66.6667%); --min-pass-rate asks for 70%",
        ),
        ("--min-reward 0.7 --lenient", 3, "not reached: mean reward: 0.666667; --min-reward asks for 0.7"),
        ("--min-reward 0.7 --json", 3, "not reached: mean reward: 0.666667; --min-reward asks for 0.7"),
        (
            "--min-pass-rate 60%",
            3,
            "not reached: pass rate: 2 of 4 rows passed (50%), 1 unscored; --min-pass-rate asks for 60%",
        ),
        ("--min-pass-rate 60% --min-pass-rate-of some", 2, "--min-pass-rate-of some: expected all or scored."),
        (
            "--min-pass-rate 60% --min-pass-rate-of scored --min-reward 0.6",
            0,
            "3 of 4 rows scored · mean reward 0.667 · pass rate 66.7 %",
        ),
        ("--min-pass-rate 70", 2, "Write --min-pass-rate 70%."),
        ("--min-reward nan", 2, "--min-reward nan: expected a number."),
        ("--max-errors 0", 3, "--max-errors allows 0"),
    ],
)
def test_the_command_ends_with_the_code_and_says_why(tmp_path, monkeypatch, options, code, told):
    monkeypatch.chdir(tmp_path)
    Path("in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    Path("v.json").write_text(json.dumps(SPEC))
    command = f"score in.jsonl --spec v.json --out out.parquet {options}"
    done = CliRunner().invoke(app, command.split(), env={"COLUMNS": "160"})
    assert (done.exit_code, told in done.stderr) == (code, True), done.output
    assert Path("out.parquet").exists() is (code != 2 and "--max-errors" not in options)


ENDED = [
    {"completion": text, "finish_reason": end}
    for text, end in ((r"\boxed{4}", "length"), ("4", "length"), ("4", "stop"), (r"\boxed{5}", None), (None, "length"))
]
BOXED = {"id": "v", "checks": [{"id": "box", "type": "equals", "value": "4", "on": ["boxed"]}]}


@each(
    ("options", "code", "told"),
    [
        (
            "--max-truncated 1 --max-not-found 1",
            0,
            "outcomes: pass 1 · fail 1 · not_found 1 · truncated 1 · error 0 · unscored 1",
        ),
        ("--max-truncated 0", 3, "exceeded: outcome truncated: 1 of 4 scored rows (25%); --max-truncated allows 0"),
        ("--max-not-found 24%", 3, "exceeded: outcome not_found: 1 of 4 scored rows (25%); --max-not-found allows 24%"),
        ("--max-not-found 25%", 0, "outcomes: "),
        ("--max-truncated 0 --lenient --json", 3, "exceeded: outcome truncated"),
        ("--max-truncated x", 2, "--max-truncated x: expected a number of rows or a percentage."),
    ],
)
def test_too_many_rows_of_an_outcome_end_with_3_and_add_no_columns(tmp_path, monkeypatch, options, code, told):
    monkeypatch.chdir(tmp_path)
    Path("in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ENDED))
    Path("v.json").write_text(json.dumps(BOXED))
    for out in ("out.parquet", "out/"):
        command = f"score in.jsonl --spec v.json --out {out} --overwrite --no-isolate {options}"
        done = CliRunner().invoke(app, command.split(), env={"COLUMNS": "160"})
        assert (done.exit_code, told in done.stderr) == (code, True), done.output
    if code != 2:
        names = ["finish_reason", "reward", "passed", "feedback", "error", "score/v", "check/v/box"]
        assert list(pl.read_parquet_schema("out.parquet")) == names


def test_a_folder_counts_outcomes_of_parts_that_were_written_without(tmp_path):
    source = tmp_path / "in.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in ENDED))
    options = {"isolate": False, "part_bytes": 100}
    plain = assay.score_file(source, BOXED, f"{tmp_path}/out/", **options)
    assert not plain.outcomes
    counted = assay.score_file(source, BOXED, f"{tmp_path}/out/", max_truncated=1, **options)
    assert list(counted.as_json()["outcomes"].values()) == [1, 1, 1, 1, 0, 1]
    assert not assay.score_file(source, BOXED, f"{tmp_path}/out/", **options).outcomes
    with pytest.raises(assay.FailedRunError, match="outcome truncated: 1 of 4 scored rows"):
        assay.score_file(source, BOXED, f"{tmp_path}/out/", max_truncated=0, **options)
    with pytest.raises(assay.UsageError, match="column cut_off"):
        assay.score_file(source, BOXED, f"{tmp_path}/out/", outcome=True, **options)


TASKS = [{"task_id": "z", "metadata": {}}]
LOST = "no rollout finds its task: task_id t is not in the task table (4 rows)"


def test_a_run_without_a_task_for_any_row_is_told_and_fails_unless_errors_are_allowed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, rows in (("in", ROWS), ("tasks", TASKS)):
        Path(f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    Path("v.json").write_text(json.dumps(SPEC))
    command = "score in.jsonl --spec v.json --tasks tasks.jsonl --no-isolate"
    for options, code in (("", 3), ("--out out/", 3), ("--max-errors 100%", 0), ("--max-errors 3", 3)):
        done = CliRunner().invoke(app, f"{command} {options}".split(), env={"COLUMNS": "160"})
        assert done.exit_code == code, done.output
        assert (f"problem: {LOST}\n" in done.stderr) is (code == 3 and "--max" not in options)
        assert ("0 of 4 rows scored · mean reward –" in done.stderr) is (options != "--max-errors 3")
    with pytest.warns(assay.AssayWarning, match="no rollout finds its task"):
        assay.score(pl.DataFrame(ROWS), SPEC, tasks="tasks.jsonl")


def test_reasons_beyond_those_shown_are_counted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [{"completion": "refund", "task_id": f"q-{n // 2}"} for n in range(60)]
    Path("in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    Path("tasks.jsonl").write_text('{"task_id": "q-0", "metadata": {}}\n')
    Path("v.json").write_text(json.dumps(SPEC))
    command = "score in.jsonl --spec v.json --tasks tasks.jsonl"
    done = CliRunner().invoke(app, command.split(), env={"COLUMNS": "160"})
    assert "2 of 60 rows scored · mean reward 1" in done.stderr
    assert "  unscored, 24 other reasons: 48\n" in done.stderr
    done = CliRunner().invoke(app, [*command.split(), "--json"])
    assert json.loads(done.stdout)["more_unscored_reasons"] == 9


@pytest.mark.parametrize(("unscored", "told"), [(0, False), (10, False), (11, True), (99, True), (100, False)])
def test_a_run_in_which_more_than_a_tenth_of_the_rows_has_no_reward_says_so(tmp_path, unscored, told):
    rows = [{"completion": None if at < unscored else "refund"} for at in range(100)]
    source = tmp_path / "in.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    expected = [
        f"unscored: {unscored} of 100 rows ({unscored}.0 %); most often: the completion is null ({unscored} rows)"
    ]
    for score in (lambda: assay.score(rows, SPEC), lambda: assay.score_file(source, SPEC)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            score()
        messages = [str(warning.message) for warning in caught if str(warning.message).startswith("unscored")]
        assert messages == (expected if told else [])
