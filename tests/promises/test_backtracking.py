"""A pattern that only ``re`` can run, on a text on which it would run for ever: every door has the limit, and the same words."""

import json
import threading

import polars as pl
import pytest
from cases import LONG
from typer.testing import CliRunner

import assay
import assay.fns
from assay.checks.text.pattern import Regex
from assay.cli.main import app
from assay.expressions.regex import guarded
from assay.scoring.reference import score_rows
from assay.testing import assert_check_conforms

PATTERN = r"^(?=(a+)+$)(a|b)\1?"
TEXTS = {"40": "a" * 40 + "!", "5k": "a" * 5_000 + "!", "1M": "a" * 1_000_000 + "!"}
SPEC = {"id": "v", "checks": [{"type": "regex", "pattern": PATTERN}]}
SECONDS = 0.05


def words(check, seconds=SECONDS):
    return f"{check}: TimeoutError: no answer within {seconds:g} s; as that is a limit of time, another run may end otherwise"


@pytest.fixture(params=TEXTS.values() if LONG else [TEXTS["40"], TEXTS["1M"]], ids=TEXTS if LONG else ["40", "1M"])
def text(request):
    return request.param


def rollouts(folder, text):
    path = folder / "rollouts.jsonl"
    path.write_text("".join(json.dumps({"completion": one}) + "\n" for one in (text, "ok", f"{text}?")))
    return path


def carried(text, **params):
    return {"completion": text, "fn_name": "regex_match", "expected": PATTERN, "params": params}


def test_in_memory(text):
    scored = assay.score([{"completion": text}, {"completion": "aa"}], SPEC, regex_timeout=SECONDS)
    assert scored["reward"].to_list() == [0.0, 1.0]
    assert scored["error"].to_list() == [words("regex"), None]
    assert scored["feedback"][0] == words("regex")


def test_row_by_row(text):
    (row,) = score_rows([{"completion": text}], [assay.load_verifier(SPEC)])
    assert (row["reward"], row["error"], row["feedback"]) == (0.0, words("regex", 0.2), words("regex", 0.2))
    check = assay.load_verifier(SPEC).checks[0].check
    with pytest.raises(TimeoutError, match=r"no answer within 0\.2 s; as that is a limit"):
        check.row({"completion": text})


@pytest.mark.parametrize("out", ["rewards.parquet", "parts/"])
def test_from_file_to_file(tmp_path, text, out):
    target = f"{tmp_path}/{out}"
    summary = assay.score_file(rollouts(tmp_path, text), SPEC, target, regex_timeout=SECONDS)
    assert (summary.rows, summary.errors, summary.checks[0].mean) == (3, 2, 0.0)
    assert pl.read_parquet(f"{target}part-*.parquet" if target.endswith("/") else target)["error"].to_list() == [
        words("regex"),
        None,
        words("regex"),
    ]
    assert summary.checks[0].reasons[words("regex").removeprefix("regex: ")] == 2


def test_in_a_process_of_its_own(tmp_path):
    summary = assay.score_file(
        rollouts(tmp_path, TEXTS["5k"]), SPEC, f"{tmp_path}/parts/", regex_timeout=SECONDS, isolate=True
    )
    assert (summary.errors, summary.checks[0].mean) == (2, 0.0)
    assert summary.checks[0].reasons[words("regex").removeprefix("regex: ")] == 2


def test_on_the_command_line(tmp_path):
    (tmp_path / "v.json").write_text(json.dumps(SPEC))
    source, spec = str(rollouts(tmp_path, TEXTS["5k"])), str(tmp_path / "v.json")
    done = CliRunner().invoke(app, ["score", source, "--spec", spec, "--regex-timeout", str(SECONDS)])
    assert done.exit_code == 0
    assert "2 rows have an error:" in done.output
    shown = " ".join(CliRunner().invoke(app, ["explain", spec], env={"COLUMNS": "200"}).output.split())
    assert (
        "Python's re in a separate process, up to 0.2 s of processor time per match: look-around; a back-reference"
        in shown
    )


@pytest.mark.parametrize("params", [{}, {"ignore_case": True}])
def test_with_a_pattern_on_the_row(text, params):
    scored = assay.score([carried(text, **params), carried("aa", **params)], regex_timeout=SECONDS)
    assert scored["reward"].to_list() == [0.0, 1.0]
    assert scored["error"].to_list() == [words("regex_match"), None]
    with pytest.raises(TimeoutError, match=r"no answer within 0\.2 s; as that is a limit"):
        assay.fns.regex_match(text, PATTERN, params)


def test_in_another_thread(text):
    errors = []
    thread = threading.Thread(
        target=lambda: errors.extend(assay.score([{"completion": text}], SPEC, regex_timeout=SECONDS)["error"])
    )
    thread.start()
    thread.join()
    assert errors == [words("regex")]


def test_when_two_faces_are_compared():
    rows = [{"completion": "aa"}, {"completion": "b"}]
    assert assert_check_conforms(Regex, params=[{"pattern": PATTERN}], rows=rows, cases=20)


def test_a_row_costs_one_limit_whatever_reads_its_verdict(monkeypatch):
    asked = []
    search = guarded.guarded_search
    monkeypatch.setattr(
        guarded,
        "guarded_search",
        lambda questions, **options: asked.extend(questions) or search(questions, **options),
    )
    checks = [*SPEC["checks"], {"id": "not", "type": "regex", "pattern": PATTERN, "negate": True, "required": True}]
    specs = [{"id": "v", "checks": checks}, {"id": "w", "checks": checks[:1]}]
    scored = assay.score([{"completion": TEXTS["40"]}], specs, regex_timeout=SECONDS)
    lines = [words("v/regex"), words("v/not"), words("w/regex")]
    assert scored["error"].to_list() == ["\n".join(lines)]
    assert len(asked) == 1
    asked.clear()
    assert (
        assay.score([carried(TEXTS["40"])] * 3, regex_timeout=SECONDS)["error"].to_list() == [words("regex_match")] * 3
    )
    assert len(asked) == 1
