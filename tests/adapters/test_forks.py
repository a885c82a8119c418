"""Forked and spawned processes: rewards work there, or are refused in words at once."""

import json
import multiprocessing
import subprocess
import sys

import pytest

import assay

SPEC = {"id": "math", "checks": [{"type": "contains", "value": {"column": "answer"}}]}

PROGRAM = """
import asyncio, json, os, sys, time
import assay
from assay.adapters import verl

SPEC, kind, has_scored = json.loads(sys.argv[1])
ROW = {"completion": "4", "answer": "4"}
batcher, trl, openrlhf = assay.Batcher(SPEC), assay.adapters.trl(SPEC), assay.adapters.openrlhf(SPEC)
sample = {"data_source": "x", "solution_str": "4", "ground_truth": "4", "spec": SPEC}
CALLS = {
    "threads": lambda: batcher.score_sync(ROW)["reward"],
    "coroutines": lambda: asyncio.run(batcher.score(ROW))["reward"],
    "trl": lambda: trl(completions=["4"], answer=["4"])[0],
    "verl": lambda: asyncio.run(verl.compute_score(**sample))["score"],
    "openrlhf": lambda: openrlhf(["a 4"], ["a"], ["4"])["rewards"],
}
if has_scored:
    assert CALLS[kind]() == 1.0
child = os.fork()
if not child:
    began = time.monotonic()
    try:
        print(CALLS[kind](), flush=True)
    except assay.UsageError as error:
        print(error.fact.split(" was ")[1][:11], flush=True)
    os._exit(0 if time.monotonic() - began < 8 else 1)
_, status = os.waitpid(child, 0)
if has_scored:
    assert CALLS[kind]() == 1.0  # the parent goes on
sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="forks, as Linux has them")
@pytest.mark.parametrize("has_scored", [False, True])
@pytest.mark.parametrize("kind", ["threads", "coroutines", "trl", "verl", "openrlhf"])
def test_a_fork_scores_or_is_refused_at_once(kind, has_scored):
    arguments = [sys.executable, "-c", PROGRAM, json.dumps([SPEC, kind, has_scored])]
    run = subprocess.run(arguments, capture_output=True, text=True, timeout=60, check=True)
    refused = "0.0" if kind == "openrlhf" else "forked from"  # OpenRLHF would swallow it: it is logged, and counted
    assert run.stdout == (f"{refused}\n" if has_scored else "1.0\n")
    assert ("was forked from" in run.stderr) == (has_scored and kind == "openrlhf")


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_functions_of_trl_work_in_processes_of_their_own(method):
    functions = [assay.adapters.trl(SPEC), *assay.adapters.trl(SPEC, per_check=True)]
    assert [function(completions=["4"], answer=["4"]) for function in functions] == [[1.0], [1.0]]
    with multiprocessing.get_context(method).Pool(1) as pool:
        calls = [pool.apply_async(function, kwds={"completions": ["4"], "answer": ["4"]}) for function in functions]
        assert [call.get(60) for call in calls] == [[1.0], [1.0]]


def test_datasets_map_scores_arrow_batches():
    datasets = pytest.importorskip("datasets")
    table = datasets.Dataset.from_dict({"completion": ["4", "5"] * 4, "answer": ["4"] * 8}).with_format("arrow")
    scored = table.map(
        lambda batch: assay.score_batch(batch, SPEC), batched=True, batch_size=2, load_from_cache_file=False
    )
    assert scored.with_format(None)["reward"][:] == [1.0, 0.0] * 4
    assert scored.with_format(None)["error"][:] == [None] * 8
