"""``assay score --rubric`` as people meet it."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from cases import HELPERS, ROOT
from typer.testing import CliRunner
from waiting import PATIENCE, until

import assay
from assay.cli.main import app

ENV = {name: value for name, value in os.environ.items() if name not in {"NO_COLOR", "FORCE_COLOR", "COLUMNS"}}
ENV |= {"PYTHONPATH": os.pathsep.join([str(ROOT / "engine"), str(HELPERS)])}
ROWS = [{"id": number, "completion": f"{number % 10}", "prompt": "p", "model": "m"} for number in range(60)]


@pytest.fixture(autouse=True)
def desk(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "mine", raising=False)  # what a test imports is forgotten
    Path("in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    Path("mine.py").write_text(
        "import assay\n"
        "def correct(completion, answer=''):\n    return 1.0 if completion == '1' else 0.0\n"
        "class Env:\n    rubric = assay.Rubric(funcs=[correct])\n"
        "env = Env()\n"
    )


def run(*words, code=0):
    """Run a command inside this process."""
    done = CliRunner().invoke(app, words)
    assert done.exception is None or isinstance(done.exception, SystemExit), repr(done.exception)
    assert done.exit_code == code, done.output
    return done


def score(*options, code=0):
    """Score in a process of its own."""
    command = [sys.executable, "-m", "assay", "score", *options]
    done = subprocess.run(command, capture_output=True, text=True, env=ENV, check=False, timeout=PATIENCE)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done


def test_a_rubric_scores_a_file():
    done = run("score", "in.jsonl", "--rubric", "desk_rewards:rubric", "--out", "out.parquet")
    found = pl.read_parquet("out.parquet")
    assert found.columns == ["id", "model", "reward", "passed", "feedback", "error"] + [
        f"score/{name}" for name in ("length", "judge", "unpicklable")
    ]
    assert found["reward"].to_list() == [0.5 * 1 + 0.25 - 0.5] * 60
    assert "mean reward 0.250" in done.stderr
    written = assay.read_provenance("out.parquet")["verifiers"]
    assert [(one["id"], one["kind"], one["weight"]) for one in written] == [
        ("length", "function", 0.5),
        ("judge", "function", 1.0),
        ("unpicklable", "function", -1.0),
    ]
    assert all(one["code"][0]["module"] == "desk_rewards" and one["code"][0]["sha256"] for one in written)


def test_a_module_of_the_current_folder_and_the_rubric_of_an_environment():
    run("score", "in.jsonl", "--rubric", "mine:env", "--out", "out.jsonl", "--pass-threshold", "0.5")
    found = pl.read_ndjson("out.jsonl")
    assert found["passed"].sum() == 6


def test_what_hangs_is_bounded_and_reported():
    done = score("in.jsonl", "--rubric", "desk_rewards:slow", "--function-timeout", "2", "--limit", "12", "--json")
    summary = json.loads(done.stdout)
    assert summary["errors"] == 1
    by_id = {one["id"]: one for one in summary["checks"]}
    assert by_id["sleeps"]["errors"] == 1
    [late] = by_id["sleeps"]["reasons"]
    assert late["examples"] == [{"reason": "TimeoutError: no answer within 2 s", "rows": 1}]
    assert "sleeps: 1" not in done.stdout


def test_penalties_and_metrics_are_counted_as_such():
    done = run("score", "in.jsonl", "--rubric", "desk_rewards:penalised", "--json", "--lenient")
    by_id = {one["id"]: one for one in json.loads(done.stdout)["checks"]}
    assert by_id["length"] == {
        "id": "length", "type": "function", "weight": 0.0, "mean": 1.0, "failures": 0, "errors": 0, "reasons": []
    }  # fmt: skip
    assert by_id["fails"]["errors"] == 60


@pytest.mark.parametrize(
    ("rubric", "said"),
    [
        ("desk_rewards", "expected module:attribute"),
        ("desk_rewards:rubrik", "Did you mean `rubric`?"),
        ("desk_rewerds:rubric", "No module named 'desk_rewerds'"),
        ("desk_rewards:not_a_rubric", "is type, not an assay.Rubric"),
    ],
)
def test_a_rubric_that_cannot_be_had_is_refused(rubric, said):
    assert said in run("score", "in.jsonl", "--rubric", rubric, code=2).stderr


def test_a_rubric_and_a_spec_are_one_too_many():
    Path("v.json").write_text('{"checks": [{"type": "json_valid"}]}')
    done = run("score", "in.jsonl", "--rubric", "desk_rewards:rubric", "--spec", "v.json", code=2)
    assert "--rubric and --spec" in done.stderr


def test_explain_says_how_each_member_runs():
    Path("v.json").write_text('{"id": "style", "checks": [{"type": "not_contains", "value": "As an AI"}]}')
    Path("mixed.py").write_text(
        "import assay, desk_rewards as desk\nfuncs = [desk.judge, desk.best_of_example, assay.load_verifier('v.json')]\n"
        "rubric = assay.Rubric(funcs=funcs, weights=[1, 1, 0.5])\nprint('imported')\n"
    )
    command = [sys.executable, "-m", "assay", "explain", "--rubric", "mixed:rubric", "--json"]
    done = subprocess.run(
        command, capture_output=True, text=True, env={**ENV, "ASSAY_KERNEL": "0"}, check=True, timeout=PATIENCE
    )
    told = {one["id"]: (one["weight"], one["checks"][0]["runs_as"].split(":")[0]) for one in json.loads(done.stdout)}
    assert told == {
        "judge": (1.0, "Python, row by row, asynchronous"),
        "best_of_example": (1.0, "Python, all rollouts of an example together"),
        "style": (0.5, "columns"),
    }


def test_what_functions_print_is_no_data():
    Path("chatty.py").write_text("import assay, desk_rewards\nrubric = assay.Rubric(funcs=[desk_rewards.prints])\n")
    done = score("in.jsonl", "--rubric", "chatty:rubric", "--out", "-", "--limit", "3")
    assert [json.loads(line)["reward"] for line in done.stdout.splitlines()] == [1.0] * 3
    assert "from a reward function" in done.stderr


def test_what_programs_of_functions_print_is_no_data():
    words = [
        "import assay, os, subprocess",
        "os.write(1, b'from an import')",
        "def calls(completion):",
        "    subprocess.run(['echo', 'from a program'], check=True)",
        "    return 1.0",
        "rubric = assay.Rubric(funcs=[calls])",
    ]
    Path("calling.py").write_text("\n".join(words))
    done = score("in.jsonl", "--rubric", "calling:rubric", "--out", "-", "--limit", "3", "--workers", "0")
    assert [json.loads(line)["reward"] for line in done.stdout.splitlines()] == [1.0] * 3
    assert done.stderr.count("from a program") == 3
    assert "from an import" in done.stderr


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("async", ["--workers", "2"]),
        pytest.param("sync", [], marks=pytest.mark.long),
        pytest.param("sync", ["--workers", "2"], marks=pytest.mark.long),
        pytest.param("async", [], marks=pytest.mark.long),
        pytest.param("sync", ["--function-timeout", "5"], marks=pytest.mark.long),
        pytest.param("async", ["--function-timeout", "5"], marks=pytest.mark.long),
    ],
)
def test_an_interrupt_ends_a_long_run_soon(kind, options):
    begun = "    pathlib.Path('begun').touch()\n"
    wait = {"sync": f"def f(completion):\n{begun}    time.sleep(0.05)\n    return 1.0\n"}
    wait["async"] = f"async def f(completion):\n{begun}    await asyncio.sleep({PATIENCE})\n    return 1.0\n"
    imports = "import assay, asyncio, pathlib, time\n"
    Path("long.py").write_text(f"{imports}{wait[kind]}rubric = assay.Rubric(funcs=[f])\n")
    pl.DataFrame({"completion": ["x"] * 20_000}).write_parquet("long.parquet")
    command = [sys.executable, "-m", "assay", "score", "long.parquet", "--rubric", "long:rubric", "-o", "out.parquet"]
    with subprocess.Popen([*command, *options], env=ENV, stderr=subprocess.PIPE, text=True) as process:
        until(lambda: Path("begun").exists() or process.poll() is not None)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert "interrupted; nothing was written" in told
    assert not Path("out.parquet").exists()
