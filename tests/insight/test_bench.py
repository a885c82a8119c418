"""What a verifier costs: numbers that belong together, verdicts that are compared, and a command that says so."""

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
from waiting import PATIENCE, interrupt_at, without_waiting

import assay
from assay.checks.text.phrases import Contains
from assay.cli.main import app
from assay.errors import InputError
from assay.insight.bench import Bench, CheckCost, bench
from assay.spec.check import runs_as

SPEC = {
    "checks": [
        {"type": "contains", "value": "é"},
        {"type": "regex", "pattern": r"(a)\1"},
        {"type": "min_length", "value": 2, "weight": 0},
        {"type": "vibes"},
    ]
}
CHAT = [{"role": "user", "content": "what?"}, {"role": "assistant", "content": "é"}]


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """A folder with a verifier and rollouts."""
    monkeypatch.chdir(tmp_path)
    Path("v.json").write_text(json.dumps(SPEC))
    pl.DataFrame({"id": range(50), "completion": ["aaé"] * 49 + [None]}).write_parquet("in.parquet")
    return tmp_path


def run(command, code=0):
    done = CliRunner().invoke(app, command.split(), env={"COLUMNS": "160"})
    assert done.exit_code == code, done.output
    return done


@pytest.mark.filterwarnings("ignore::assay.errors.AssayWarning")
@pytest.mark.parametrize(("completions", "size"), [(["aaé", "é", None], 6), ([CHAT, CHAT, None], 4)])
def test_rows_and_bytes_of_the_text_are_counted_and_every_check_that_runs_is_measured(completions, size):
    found = bench(pl.DataFrame({"completion": completions}), SPEC)
    assert (found.rows, found.bytes, found.loop_rows, found.alone_rows, found.difference) == (3, size, 3, 3, "")
    assert [one.ns_per_row for one in found.checks] == sorted((one.ns_per_row for one in found.checks), reverse=True)
    lanes = {spec.id: runs_as(spec) for spec in assay.load_verifier(SPEC).runnable}
    assert {one.id: one.runs_as for one in found.checks} == lanes
    assert min(found.seconds, found.floor_seconds, found.loop_seconds, found.base_ns_per_row) > 0


def test_ratios_follow_from_the_times():
    found = Bench(1000, 2_000_000, 0.5, 0.25, 10, 0.1, 100, 7.0, (CheckCost("a", "b", 1.0, "c"),))
    assert (found.rows_per_second, found.mb_per_second, found.times_floor) == (2000, 4, 2)
    assert found.times_faster_than_loop == 20
    assert found.as_json()["times_floor"] == 2
    assert found.as_json()["checks"] == ({"id": "a", "type": "b", "ns_per_row": 1.0, "runs_as": "c"},)


def test_rows_with_their_tasks():
    folder = ROOT / "specs" / "refund-quality"
    found = bench(
        [str(folder / "rollouts.jsonl")], folder / "refund-quality.json", tasks=folder / "tasks.jsonl", rows=20
    )
    assert found.rows == 20
    assert found.checks[0].id == "policy-expectations"


def test_a_rollout_less_frame_is_refused():
    with pytest.raises(InputError, match="no rollouts"):
        bench(pl.DataFrame({"completion": []}, schema={"completion": pl.String}), {"checks": [{"type": "json_valid"}]})


def test_what_nothing_costs_is_no_check_type():
    assert "nothing" not in {check["type"] for check in json.loads(run("checks --json").stdout)}


@pytest.mark.usefixtures("desk")
def test_data_goes_to_stdout_with_json_only():
    done = run("bench v.json in.parquet")
    assert done.stdout == ""
    assert "50 rows · " in done.stderr
    assert "× reading the column" in done.stderr
    assert "note: with 50 rows" in done.stderr
    assert "runs as" in done.stderr
    done = run("bench v.json in.parquet --rows 7 --json")
    found = json.loads(done.stdout)
    assert (found["rows"], found["bytes"], len(found["checks"])) == (7, 28, 3)
    assert "vibes" in done.stderr


REWARDS = """
import assay
def exact(completion, id, **_): return 1.0 if str(id) in completion else 0.0
def short(completion, **_): return 1.0 / len(completion)
def ranked(completions, **_): return [float(at) for at, _ in enumerate(completions)]
rubric = assay.Rubric([exact, short, ranked])
"""


@pytest.mark.parametrize(
    ("args", "names"),
    [
        ("rows.jsonl --rubric rewards.py:rubric", ["exact", "ranked", "short"]),
        ("rows.jsonl --rubric rewards.py:exact --workers 1", ["exact"]),
        ("rows.jsonl --spec v.json --spec w.json", ["v/contains", "v/min_length", "v/regex", "w/json_valid"]),
        ("rows.jsonl", [""]),
        ("rows.jsonl --verifier-name exact_match", [""]),
        ("rows.jsonl --spec w.json --verifier-name exact_match", ["row_verifier", "w/json_valid"]),
        ("- --spec w.json", ["json_valid"]),
        ("w.json -", ["json_valid"]),
    ],
)
def test_rubrics_functions_and_several_specs_are_measured(desk, args, names):
    Path("w.json").write_text('{"id": "w", "checks": [{"type": "json_valid"}]}')
    Path("v.json").write_text(json.dumps({"id": "v", "checks": SPEC["checks"][:3]}))
    rewards = f"rewards_of_{desk.name}"  # a module is imported once
    Path(f"{rewards}.py").write_text(REWARDS)
    verifier = {"fn_name": "contains", "expected": "7"}
    lines = [
        json.dumps({"id": at, "example_id": at // 4, "completion": f"{at}", "verifier": verifier}) for at in range(20)
    ]
    Path("rows.jsonl").write_text("\n".join(lines))
    done = CliRunner().invoke(
        app, ["bench", *args.replace("rewards", rewards).split(), "--json"], input="\n".join(lines)
    )
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert (found["rows"], found["difference"]) == (20, "")
    assert sorted(check["id"] for check in found["checks"]) == names


@pytest.mark.usefixtures("desk")
@pytest.mark.parametrize("as_json", ["", " --json"])
def test_verdicts_that_differ_are_told_with_exit_code_1(monkeypatch, as_json):
    monkeypatch.setattr(Contains, "row", lambda *_: 0.0)
    done = run(f"bench v.json in.parquet{as_json}", code=1)
    assert "disagree: row 0: reward is 1.0 by columns, 0.5 by rows" in done.stderr
    assert not as_json or json.loads(done.stdout)["difference"].startswith("row 0: reward")


@pytest.mark.usefixtures("desk")
@pytest.mark.parametrize(
    ("args", "said"),
    [
        ("v.json in.parqet", "Did you mean `in.parquet`"),
        ("nix.json in.parquet", "nix.json: no such file"),
        ("v.json in.parquet --rows 0", "--rows"),
        ("v.json in.parquet --tasks missing.jsonl", "missing.jsonl: no such file"),
        ("v.json in.parquet --map completion", "expected NAME=COLUMN"),
        ("v.json in.parquet --import gone_", "--import gone_"),
        ("v.json", "is a verifier's spec, not rollouts"),
        ("--spec v.json", "Missing argument"),
        ("in.parquet --rubric gone.py:rubric", "gone.py"),
        ("in.parquet --spec v.json --rubric rewards.py:exact", "use only one"),
        ("in.parquet --verifier-name containz", "containz"),
    ],
)
def test_a_mistake_is_told_in_words_with_exit_code_2(args, said):
    done = run(f"bench {args}", code=2)
    assert said in done.stderr
    assert done.stdout == ""


def test_ctrl_c_ends_it_with_130(tmp_path):
    gate = tmp_path / "gate"
    gate.mkdir()
    (tmp_path / "gated.json").write_text(json.dumps({"checks": [{"type": "gated", "expected": str(gate)}]}))
    pl.DataFrame({"completion": ["waits here"] * 100_000}).write_parquet(tmp_path / "in.parquet")
    command = [sys.executable, "-m", "assay", "bench", "gated.json", "in.parquet", "--import", "gated_rewards"]
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(assay.__file__).parents[1]), str(HELPERS)])}
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=tmp_path, env=env, **streams) as child:
        interrupt_at(gate, child, signal.SIGINT)
        printed, said = child.communicate(timeout=PATIENCE)
    assert (child.returncode, printed, without_waiting(said)) == (130, "", "interrupted; nothing was written\n")
