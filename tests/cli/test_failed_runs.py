"""A run whose rewards are not what its verifiers mean writes its result, says so before the mean, and ends with exit code 3."""

import json
import re
import sys
from pathlib import Path

import polars as pl
import pytest
from cases import crossed
from typer.testing import CliRunner

import assay
from assay.cli.main import app
from assay.functions import registry as fns

UNKNOWN = {"id": "v", "checks": [{"type": "json_valid"}, {"type": "vibes"}]}
BROKEN = {"id": "v", "checks": [{"type": "json_valid"}, {"type": "regex", "pattern": "("}]}
FINE = {"id": "v", "checks": [{"type": "json_valid"}]}
SCHEMA = {"id": "v", "checks": [{"type": "json_valid"}, {"type": "expected_output_schema"}]}

DID_NOT_RUN = 'did not run: v/vibes: skipped, unknown check type "vibes"'
ALL_ERRORS = "every row has an error"


@pytest.fixture(autouse=True)
def desk(tmp_path, monkeypatch):
    """The folder that commands run in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(fns, "_REGISTRY", dict(fns._REGISTRY))
    monkeypatch.delitem(sys.modules, "my_fns", raising=False)


def run(command, code, spec=None, rows=()):
    if spec is not None:
        Path("v.json").write_text(json.dumps(spec))
    if rows:
        Path("in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = CliRunner().invoke(app, command.split(), env={"COLUMNS": "160"})
    assert done.exception is None or isinstance(done.exception, SystemExit), repr(done.exception)
    assert done.exit_code == code, done.output
    return done


ROWS = [{"completion": "1"}, {"completion": "no"}]
WITH_SCHEMA = [{**row, "expected_output_schema": None} for row in ROWS]
FAILED = {
    "a type that nobody knows": (UNKNOWN, ROWS, [DID_NOT_RUN]),
    "a broken check": (BROKEN, ROWS, ["broke on every row: regex: PatternError: ", ALL_ERRORS]),
    "a check that breaks on every row": (
        SCHEMA,
        WITH_SCHEMA,
        ["broke on every row: expected_output_schema: 2 errors", ALL_ERRORS],
    ),
    "a check that breaks wherever it runs": (
        SCHEMA,
        [*WITH_SCHEMA, {"completion": None, "expected_output_schema": {"required": ["k"]}}],
        ["broke on every row: expected_output_schema: 2 errors", ALL_ERRORS],
    ),
    "only errors": (FINE, [{"completion": None}] * 2, [ALL_ERRORS]),
    "no assistant": (FINE, [{"completion": [{"role": "user", "content": "1"}]}] * 2, [ALL_ERRORS]),
}
SOUND = {
    "no problem": (FINE, ROWS),
    "a row with an error": (FINE, [*ROWS, {"completion": None}]),
    "a check that breaks on all rows except one": (
        SCHEMA,
        [*WITH_SCHEMA, {"completion": "1", "expected_output_schema": {"required": ["k"]}}],
    ),
}


@pytest.mark.parametrize(
    ("spec", "rows", "problems", "out"),
    crossed(FAILED.values(), ["out.jsonl", "out.parquet", "out/", "-", None]),
)
def test_a_failed_run_writes_its_result_and_says_so_before_the_mean(spec, rows, problems, out):
    command = f"score in.jsonl --spec v.json --no-isolate{f' --out {out}' if out else ''}"
    done = run(command, 3, spec, rows)
    before, after = re.split(rf"{len(rows)} rows(?: scored)? · mean reward", done.stderr)
    lines = [line.removeprefix("problem: ") for line in before.splitlines() if line.startswith("problem: ")]
    assert len(lines) == len(problems)
    # of a broken check the warning before the run says why
    assert all(
        line.startswith(problem.removesuffix(": PatternError: ")) for line, problem in zip(lines, problems, strict=True)
    )
    assert "--lenient" in after
    if out == "-":
        assert len(done.stdout.splitlines()) == len(rows)
    elif out is not None:
        written = (
            pl.read_ndjson(out) if out == "out.jsonl" else pl.read_parquet("out/*.parquet" if out == "out/" else out)
        )
        assert written.height == len(rows)
    assert run(f"{command} --lenient --overwrite", 0).stderr.count("problem: ") == len(problems)


def test_the_table_does_not_repeat_why_a_check_is_broken():
    done = run("score in.jsonl --spec v.json", 3, BROKEN, ROWS)
    before, after = done.stderr.split("most frequent reasons")
    assert before.count("PatternError") == 1  # the warning before the run
    assert "it cannot run" in after
    assert "PatternError" not in after


@pytest.mark.parametrize(("spec", "rows", "problems"), FAILED.values(), ids=FAILED)
def test_the_summary_as_json_has_the_problems_before_the_mean(spec, rows, problems):
    done = run("score in.jsonl --spec v.json --json", 3, spec, rows)
    summary = json.loads(done.stdout)
    assert [problem[: len(start)] for problem, start in zip(summary["problems"], problems, strict=True)] == problems
    assert [*summary].index("problems") < [*summary].index("mean_reward")
    assert done.stderr.count("problem: ") == len(problems)
    assert json.loads(run("score in.jsonl --spec v.json --json --lenient", 0).stdout)["problems"] == summary["problems"]


@pytest.mark.parametrize(("spec", "rows"), SOUND.values(), ids=SOUND)
def test_a_run_with_a_check_that_works_somewhere_is_no_failed_run(spec, rows):
    assert json.loads(run("score in.jsonl --spec v.json --json", 0, spec, rows).stdout)["problems"] == []
    assay.score(rows, spec, strict=True)


@pytest.mark.parametrize("spec", [UNKNOWN, BROKEN, FINE], ids=["unknown", "broken", "fine"])
def test_an_input_without_rows_is_no_failed_run(spec):
    pl.DataFrame(schema={"completion": pl.String}).write_parquet("empty.parquet")
    assert json.loads(run("score empty.parquet --spec v.json --json", 0, spec).stdout)["problems"] == []


def test_a_continued_run_fails_as_the_run_at_once():
    rows = [{"completion": str(at), "expected_output_schema": None} for at in range(40)]
    pl.DataFrame(rows, schema={"completion": pl.String, "expected_output_schema": pl.String}).write_parquet(
        "in.parquet", row_group_size=10
    )
    command = "score in.parquet --spec v.json --no-isolate --part-size 1 --json --out"
    once = json.loads(run(f"{command} once/", 3, SCHEMA).stdout)
    json.loads(run(f"{command} again/", 3).stdout)
    parts = sorted(Path("again").glob("part-*.parquet"))
    assert len(parts) > 1
    parts[0].unlink()
    again = json.loads(run(f"{command} again/", 3).stdout)
    assert (
        again["problems"] == once["problems"] == ["broke on every row: expected_output_schema: 40 errors", ALL_ERRORS]
    )
    assert json.loads(run(f"{command} again/", 3).stdout)["problems"] == once["problems"]


@pytest.mark.parametrize(("spec", "words", "lenient"), [(UNKNOWN, "vibes", ""), (BROKEN, "PatternError", " --lenient")])
def test_strict_refuses_before_scoring(spec, words, lenient):
    assert words in run(f"score in.jsonl --spec v.json --strict{lenient} --out out.parquet", 2, spec, ROWS).stderr
    assert not Path("out.parquet").exists()


def test_strict_cannot_know_what_breaks_on_the_rows():
    run("score in.jsonl --spec v.json --strict --out out.parquet", 3, SCHEMA, WITH_SCHEMA)
    assert pl.read_parquet("out.parquet").height == len(ROWS)


def test_a_function_that_breaks_on_every_row_that_names_it_is_a_problem():
    Path("my_fns.py").write_text(
        "from assay.fns import register_fn\n\n@register_fn('crash')\ndef crash(output, expected, params):\n    return 1 / 0\n"
    )
    names = ["crash", "contains", "contains"]
    rows = [{"completion": "a", "verifier": {"fn_name": name, "expected": "a"}} for name in names]
    done = run("score in.jsonl --import my_fns --json", 3, rows=rows)
    assert json.loads(done.stdout)["problems"] == ["broke on every row: crash: 1 error"]
    with pytest.warns(assay.AssayWarning, match="^broke on every row: crash: 1 error$"):
        assay.score(rows)


@pytest.mark.parametrize(
    ("spec", "rows", "problems", "score"), crossed(FAILED.values(), [assay.score, assay.score_file])
)
def test_python_warns_once_of_each_problem(spec, rows, problems, score):
    with pytest.warns(assay.AssayWarning) as caught:
        score(rows, spec)
    warned = [str(warning.message) for warning in caught]
    if spec in (UNKNOWN, BROKEN):  # before the run, as ever
        assert len(warned) == 1
        assert re.match("v/(vibes: skipped|regex: broken)", warned[0])
    else:
        assert [words for words in warned if not words.startswith("unscored: ")] == problems


@pytest.mark.parametrize(
    ("spec", "rows", "problems", "score"), crossed(FAILED.values(), [assay.score, assay.score_file])
)
def test_strict_raises_and_lenient_keeps_quiet(spec, rows, problems, score, recwarn):
    known = spec in (UNKNOWN, BROKEN)
    with pytest.raises(assay.SpecError if known else assay.FailedRunError) as refused:
        score(rows, spec, strict=True)
    assert known or all(problem in str(refused.value) for problem in problems)
    assert known or refused.value.exit_code == 3
    recwarn.clear()
    if not known:
        score(rows, spec, lenient=True)
        score(rows, spec, strict=True, lenient=True)
    assert [str(warning.message) for warning in recwarn] == []


def test_a_strict_run_to_a_file_keeps_the_result():
    with pytest.raises(assay.FailedRunError):
        assay.score_file(WITH_SCHEMA, SCHEMA, "out.parquet", strict=True)
    assert pl.read_parquet("out.parquet")["reward"].to_list() == [0.5, 0.0]


def test_a_plan_scores_batches_without_a_verdict_on_the_run(recwarn):
    plan = assay.compile(FINE)
    assert plan.score(pl.DataFrame({"completion": [None]}, schema={"completion": pl.String}))["reward"].to_list() == [
        None
    ]
    assert assay.score([{"completion": None}], plan)["reward"].to_list() == [None]
    assert len(recwarn) == 0


@pytest.mark.parametrize("details", [True, False])
def test_the_result_has_the_same_columns_whatever_is_watched(details):
    scored = assay.score(WITH_SCHEMA, SCHEMA, details=details, lenient=True)
    checks = ["score/v", "check/v/json_valid", "check/v/expected_output_schema"]
    assert scored.columns == ["reward", "passed", "feedback", "error", *(checks if details else [])]


def test_text_that_looks_like_a_reference_is_noted_and_runs():
    likely = {"id": "v", "checks": [{"type": "contains", "value": "${answer}"}]}
    done = run("score in.jsonl --spec v.json", 0, likely, [{"completion": "${answer}"}])
    assert "note: v/contains: `${answer}` is plain text here" in done.output
    assert "did not run" not in done.output
