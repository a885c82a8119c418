"""``assay init --from``: the spec loads strictly, and the command that is shown works as it is."""

import json
import shlex
from pathlib import Path

import polars as pl
import pytest
from cases import crossed
from typer.testing import CliRunner

import assay
from assay.cli.main import app


def run(command):
    done = CliRunner().invoke(app, command, env={"COLUMNS": "160"})
    assert done.exception is None or isinstance(done.exception, SystemExit), repr(done.exception)
    return done


SOURCES = {
    "numbers behind a marker": ([{"completion": f"So it is\nA: {n}", "answer": f"{n:,}"} for n in range(900, 1100)], "after"),
    "golds with their steps": ([{"completion": f"#### {n}", "answer": f"Because. #### {n}"} for n in range(9)], "goldOn"),
    "numbers anywhere": ([{"completion": f"it is {n}", "answer": n} for n in range(9)], "number"),
    "letters": ([{"completion": "The answer is B", "target": "B"}], "choice"),
    "texts": ([{"completion": "It is Paris.", "answer": "Paris"}], "contains"),
    "another name": ([{"response": "<answer>Paris</answer>", "gold": "Paris"}], "tag"),
    "a name of nobody": ([{"my words": "a long answer", "answer": "long"}], "contains"),
    "lists of golds": ([{"completion": "Paris", "golds": ["Paris", "Lutetia"]}], "contains"),
    "one column": ([{"completion": "a"}], "min_length"),
    "no gold": ([{"completion": "a", "model": "m"}], "min_length"),
    "golds that are null": ([{"completion": "a", "answer": None}], "min_length"),
    "conversations": ([{"completion": [{"role": "assistant", "content": "4"}], "answer": "4"}], "number"),
}  # fmt: skip


@pytest.mark.parametrize(("name", "suffix"), crossed(SOURCES, ("jsonl", "parquet")))
def test_the_spec_loads_and_the_command_works(tmp_path, monkeypatch, name, suffix):
    monkeypatch.chdir(tmp_path)
    rows, word = SOURCES[name]
    rollouts = f"my rollouts.{suffix}"
    if suffix == "jsonl":
        Path(rollouts).write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        pl.DataFrame(rows, strict=False).write_parquet(rollouts)
    done = run(["init", "v.yaml", "--from", rollouts])
    assert done.exit_code == 0, done.output
    assert assay.load_verifier("v.yaml", strict=True).warnings == ()
    assert word in Path("v.yaml").read_text()
    tests = assay.run_tests("v.yaml")
    assert (len(tests.tests), tests.failed) == (2, False)
    commands = [line.split(maxsplit=1)[1] for line in done.stderr.splitlines() if line.startswith("  assay ")]
    assert [command.split()[0] for command in commands] == ["check", "test", "score"]
    for command in commands:
        done = run(shlex.split(command))
        assert done.exit_code == 0, done.output
    assert pl.read_parquet("rewards.parquet")["reward"].mean() == 1.0
    text = Path("v.yaml").read_text()
    assert run(["init", "v.yaml", "--from", rollouts]).exit_code == 2
    assert run(["init", "again.yaml", "--from", rollouts]).exit_code == 0
    assert Path("again.yaml").read_text() == text.replace('"v"', '"again"')


@pytest.mark.parametrize(
    ("text", "message"),
    [("", "is empty"), ('{"n": 1}\n', "No column can be the completion"), ("nonsense\n", "not JSON lines")],
)
def test_rollouts_that_say_nothing_are_refused_and_nothing_is_written(tmp_path, monkeypatch, text, message):
    monkeypatch.chdir(tmp_path)
    Path("in.jsonl").write_text(text)
    done = run(["init", "v.yaml", "--from", "in.jsonl"])
    assert done.exit_code in (2, 3)
    assert message in done.stderr
    assert not Path("v.yaml").exists()
