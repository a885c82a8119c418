"""Hints are followed: what a message tells people to add to their command makes the command work."""

import json
import re
import shlex
import sys
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from assay.cli.main import app
from assay.functions import registry as fns

SPEC = {"checks": [{"type": "contains", "value": "4"}]}
CHAT = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "4"}]
VERL = {"input": "q", "output": "4", "gts": "4", "score": 1.0, "step": 1}
LM = {
    "doc_id": 0,
    "doc": {"q": "x"},
    "target": "4",
    "arguments": {"gen_args_0": {"arg_0": "q", "arg_1": {"k": 1}}},
    "resps": [["4"]],
    "filtered_resps": ["4"],
    "filter": "none",
    "metrics": ["exact"],
}
VERL_EVAL = {"data_source": "d", "prompt": CHAT[:1], "responses": ["4"], "reward_model": {"ground_truth": "4"}}
BATCH = {
    "id": "b",
    "custom_id": "t",
    "response": {"status_code": 200, "request_id": "r", "body": {"choices": [{"index": 0, "message": CHAT[1]}]}},
    "error": None,
    "gold": "4",
}
EXACT, BY_SPEC = "--verifier-name exact_match", "--spec v.json"
CASES = {
    "another name": ({"response": "4"}, BY_SPEC),
    "another case": ({"Output": "4"}, BY_SPEC),
    "a typo": ({"completon": "4"}, BY_SPEC),
    "a name with a space": ({"my completion": "4"}, BY_SPEC),
    "conversations": ({"conversation": CHAT}, BY_SPEC),
    "messages beside a number": ({"output": 4, "messages": CHAT}, BY_SPEC),
    "a list of texts": ({"responses": ["4", "4"]}, BY_SPEC),
    "a list of conversations": ({"responses": [CHAT, CHAT]}, BY_SPEC),
    "a list with a dot in its name": ({"the.completions": ["4"]}, BY_SPEC),
    "a list mapped as a text": ({"responses": ["4", "4"]}, f"{BY_SPEC} --map completion=responses"),
    "a completion that is a list": ({"completion": ["4", "4"]}, BY_SPEC),
    "golds of a batch": (BATCH, EXACT),
    "golds under another name": ({"completion": "4", "ground_truth": "4"}, EXACT),
    "metadata": ({"completion": "4", "metadta": {"expectations": [{"text": "4"}]}}, "--spec expects.json"),
}
OPTION = re.compile(r"--map (?:'[^']*'|[^\s',;)]+[^\s'.,;)])")


@pytest.fixture(autouse=True)
def desk(tmp_path, monkeypatch):
    """The folder that commands run in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(fns, "_REGISTRY", dict(fns._REGISTRY))
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    Path("v.json").write_text(json.dumps(SPEC))
    Path("expects.json").write_text('{"checks": [{"type": "task_expectations"}]}')
    Path("breaks.json").write_text('{"checks": [{"type": "regex", "pattern": "("}]}')


def run(args):
    done = CliRunner().invoke(app, ["score", *args, "--json"], env={"COLUMNS": "160"})
    assert done.exception is None or isinstance(done.exception, SystemExit), repr(done.exception)
    return done


def hinted(done):
    """The first mapping that a message tells people to add, as words of a command."""
    hints = OPTION.findall(done.stderr.partition("\n\n")[2])
    return shlex.split(hints[0]) if hints else []


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
@pytest.mark.parametrize("name", CASES)
def test_what_a_message_tells_people_to_map_works(name, suffix):
    row, options = CASES[name]
    rollouts = f"in.{suffix}"
    if suffix == "jsonl":
        Path(rollouts).write_text(json.dumps(row) + "\n")
    else:
        pl.DataFrame([row], strict=False).write_parquet(rollouts)
    command = [rollouts, *shlex.split(options)]
    refused = run(command)
    assert refused.exit_code == 2, refused.output
    hint = hinted(refused)
    assert hint[:1] == ["--map"], refused.output
    kept = [word for word in command if not word.startswith("completion=") and word != "--map"]
    done = run([*kept, *hint])
    assert done.exit_code == 0, done.output
    summary = json.loads(done.stdout)
    assert summary["mean_reward"] == 1.0
    assert summary["scored"] == summary["rows"] >= 1


@pytest.mark.parametrize("row", [VERL, LM, VERL_EVAL], ids=["verl dump", "lm-eval", "verl evaluation"])
@pytest.mark.parametrize("options", [EXACT, f"{EXACT} --map expected=answer"])
def test_golds_that_a_preset_makes_need_no_hint_and_can_be_mapped(row, options):
    Path("in.jsonl").write_text(json.dumps(row) + "\n")
    done = run(["in.jsonl", *shlex.split(options)])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["mean_reward"] == 1.0


@pytest.mark.parametrize(
    ("rows", "options", "hint", "code"),
    [
        ([{"completion": "4", "expected": "4"}], "", "--verifier-name exact_match", 2),
        ([{"completion": "4", "verifier": {"expected": "4"}}], "", "--verifier-name contains", 2),
        ([{"completion": CHAT[:1]}], BY_SPEC, "--any-role", 3),
        ([{"completion": "4"}], "--spec breaks.json", "--lenient", 3),
        ([{"completion": None}], BY_SPEC, "--lenient", 3),
        ([{"completion": "4"}, "no object"], BY_SPEC, "--max-bad-rows 1", 3),
    ],
)
def test_the_options_that_messages_name_work(rows, options, hint, code):
    Path("in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    command = ["in.jsonl", *shlex.split(options)]
    failed = run(command)
    assert failed.exit_code == code, failed.output
    assert hint.split()[0] in failed.output
    assert run([*command, *hint.split()]).exit_code == 0


def test_a_column_of_the_records_is_mapped_before_one_of_the_preset():
    Path("in.jsonl").write_text(json.dumps({**VERL, "gts": "5", "answer": "4"}) + "\n")
    assert json.loads(run(["in.jsonl", *EXACT.split(), "--map", "expected=answer"]).stdout)["mean_reward"] == 1.0
    assert json.loads(run(["in.jsonl", *EXACT.split(), "--map", "expected=gts"]).stdout)["mean_reward"] == 0.0
