"""promptfoo itself, offline: an assertion in its configuration, and a file of its results."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import real_packages

import assay

CACHE = Path(os.environ.get("ASSAY_BENCH_CACHE", f"{os.environ.get('TMPDIR', '/tmp')}/assay-bench"))  # noqa: S108
PROGRAM = CACHE / "promptfoo" / "node_modules" / ".bin" / "promptfoo"
RUNS = pytest.mark.skipif(
    not [*CACHE.glob("promptfoo/node_modules/@libsql/linux*"), *CACHE.glob("promptfoo/node_modules/@libsql/darwin*")],
    reason="needs promptfoo with its database: make peers-test installs both",
)

MODEL = """
module.exports = class {
  id() { return 'model'; }
  async callApi(prompt) {
    if (prompt.startsWith('silent')) return {error: 'busy'};
    return {output: prompt.startsWith('object') ? {sum: 4} : 'It is 4.'};
  }
};
"""


def quiet_in(folder):
    """The environment of a promptfoo that asks nobody and keeps what it knows in a folder."""
    quiet = {f"PROMPTFOO_DISABLE_{what}": "1" for what in ("TELEMETRY", "UPDATE", "REMOTE_GENERATION", "SHARING")}
    return quiet | {"PROMPTFOO_CONFIG_DIR": str(folder / "home"), "PROMPTFOO_PYTHON": sys.executable}


@pytest.fixture
def results(tmp_path):
    """What ``promptfoo eval -o`` writes about four tests whose assertion is a spec."""
    spec = {
        "id": "sums",
        "checks": [
            {"id": "right", "type": "number", "value": {"column": "answer"}, "weight": 3},
            {"id": "short", "type": "max_length", "value": 12},
        ],
    }
    tests = [("2 + 2?", "4"), ("2 + 3?", "5"), ("silent", "4"), ("object", "4")]
    assertion = {"type": "python", "value": "file://glue.py", "config": {"spec": "sums.json"}}
    config = {
        "prompts": ["{{question}}"],
        "providers": [{"id": "file://model.js", "label": "model"}],
        "tests": [
            {"vars": {"question": question, "answer": answer}, "assert": [assertion]} for question, answer in tests
        ],
    }
    (tmp_path / "sums.json").write_text(json.dumps(spec))
    (tmp_path / "model.js").write_text(MODEL)
    (tmp_path / "glue.py").write_text("\n".join(real_packages.glue_of("promptfoo.md")))
    (tmp_path / "promptfooconfig.json").write_text(json.dumps(config))
    subprocess.run(
        [PROGRAM, "eval", "-c", "promptfooconfig.json", "-o", "results.jsonl", "--no-cache", "--no-progress-bar"],
        cwd=tmp_path,
        env={**os.environ, **quiet_in(tmp_path)},
        capture_output=True,
        check=False,  # it ends with 100 if a test fails
        timeout=200,
    )
    return tmp_path / "results.jsonl"


@RUNS
def test_an_assertion_and_the_file_of_results_have_the_rewards_of_a_spec(results):
    records = sorted(map(json.loads, results.read_text().splitlines()), key=lambda record: record["testIdx"])
    assert [record["score"] for record in records] == [1.0, 0.25, 0.0, 1.0]
    assert [record["success"] for record in records] == [True, False, False, True]
    assert records[1]["namedScores"] == {"right": 0.0, "short": 1.0}
    assert records[1]["gradingResult"]["reason"] == 'right: the number is "4", expected 5'
    scored = assay.score(str(results), str(results.with_name("sums.json"))).sort("task_id")
    assert scored["reward"].to_list() == [1.0, 0.25, None, 1.0]
    assert scored["error"].to_list() == [None, None, "the model failed: busy", None]
    assert scored["prior_reward"].to_list() == [1.0, 0.25, 0.0, 1.0]
    assert scored["feedback"].to_list()[1] == records[1]["gradingResult"]["reason"]


def test_the_page_runs_as_it_stands(tmp_path):
    assert len(real_packages.glue_of("promptfoo.md")) <= real_packages.MOST_GLUE
    real_packages.run_page("promptfoo.md", tmp_path, without="promptfoo eval")


@RUNS
def test_the_recipe_runs_as_it_stands(tmp_path, monkeypatch):
    for name, value in quiet_in(tmp_path).items():
        monkeypatch.setenv(name, value)
    real_packages.run_page("../recipes/from-promptfoo.md", tmp_path, programs={"promptfoo": str(PROGRAM)})
