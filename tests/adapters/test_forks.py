"""Forked and spawned processes: rewards work there, or are refused in words at once."""

import json
import multiprocessing
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from waiting import PATIENCE

import assay

SPEC = {"id": "math", "checks": [{"type": "contains", "value": {"column": "answer"}}]}

PROGRAM = """
import asyncio, json, os, sys
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
CALLS["trl in a thread"] = CALLS["trl"]
if has_scored:
    assert CALLS[kind]() == 1.0
if has_scored and kind == "trl in a thread":
    trl.scores._lock.acquire()  # as a thread does that scores at the time of the fork
child = os.fork()
if not child:
    assay.system.processes._PATIENCE = 1e6  # whatever waits for an engine without threads never ends
    try:
        print(CALLS[kind](), flush=True)
    except assay.UsageError as error:
        print(error.fact.split(" was ")[1][:11], flush=True)
    os._exit(0)
_, status = os.waitpid(child, 0)
if has_scored and kind == "trl in a thread":
    trl.scores._lock.release()
if has_scored:
    assert CALLS[kind]() == 1.0  # the parent goes on
sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="forks, as Linux has them")
@pytest.mark.parametrize(
    ("kind", "has_scored"),
    [
        *(("trl in a thread", True), ("coroutines", False), ("verl", True), ("openrlhf", True)),
        *(
            pytest.param(kind, has_scored, marks=pytest.mark.long)
            for kind, has_scored in [
                *(("trl in a thread", False), ("coroutines", True), ("verl", False), ("openrlhf", False)),
                *((kind, has_scored) for kind in ("threads", "trl") for has_scored in (False, True)),
            ]
        ),
    ],
)
def test_a_fork_scores_or_is_refused_at_once(kind, has_scored):
    arguments = [sys.executable, "-c", PROGRAM, json.dumps([SPEC, kind, has_scored])]
    run = subprocess.run(arguments, capture_output=True, text=True, timeout=PATIENCE, check=True)
    refused = "0.0" if kind == "openrlhf" else "forked from"  # OpenRLHF would swallow it: it is logged, and counted
    assert run.stdout == (f"{refused}\n" if has_scored else "1.0\n")
    assert ("was forked from" in run.stderr) == (has_scored and kind == "openrlhf")


@pytest.mark.parametrize("method", ["spawn", pytest.param("forkserver", marks=pytest.mark.long)])
def test_functions_plans_and_batchers_work_in_processes_of_their_own(method):
    functions = [assay.adapters.trl(SPEC), *assay.adapters.trl(SPEC, per_check=True)]
    assert [function(completions=["4"], answer=["4"]) for function in functions] == [[1.0], [1.0]]
    batcher, row = assay.Batcher(SPEC), {"completion": "4", "answer": "4"}
    assert batcher.score_sync(row)["reward"] == 1.0
    with multiprocessing.get_context(method).Pool(1) as pool:
        calls = [pool.apply_async(function, kwds={"completions": ["4"], "answer": ["4"]}) for function in functions]
        assert [call.get(PATIENCE) for call in calls] == [[1.0], [1.0]]
        assert pool.apply_async(batcher.score_sync, [row]).get(PATIENCE)["reward"] == 1.0
        assert pool.apply_async(batcher.plan.score_rows, [[row]]).get(PATIENCE)["reward"].to_list() == [1.0]


POOL = """
import json, multiprocessing, sys
import assay

SPEC = json.loads(sys.argv[1])
BATCHER, TRL = assay.Batcher(SPEC), assay.adapters.trl(SPEC)

def rewards(text):
    row = {"completion": text, "answer": "4"}
    found = [BATCHER.score_sync(row), *assay.score([row], SPEC).to_dicts(), *BATCHER.plan.score_rows([row]).to_dicts()]
    return [*(result["reward"] for result in found), *TRL(completions=[text], answer=["4"])]

with multiprocessing.get_context("fork").Pool(2) as pool:
    print(pool.map_async(rewards, ["4", "5"]).get(300))
print(rewards("4"))
with multiprocessing.get_context("fork").Pool(2) as pool:
    try:
        pool.map_async(rewards, ["4", "5"]).get(300)
    except assay.UsageError as error:
        print(error.hint.partition(",")[0])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="forks, as Linux has them")
def test_a_pool_of_forks_scores_until_the_parent_has():
    arguments = [sys.executable, "-W", "ignore", "-c", POOL, json.dumps(SPEC)]
    run = subprocess.run(arguments, capture_output=True, text=True, timeout=PATIENCE, check=True)
    scored, parent, refused = run.stdout.splitlines()
    assert (scored, parent) == (str([[1.0] * 4, [0.0] * 4]), str([1.0] * 4))
    assert refused == "Start processes with spawn or forkserver"


def test_a_pool_of_threads_scores_with_shared_plans_and_functions():
    batcher, trl, openrlhf = assay.Batcher(SPEC), assay.adapters.trl(SPEC), assay.adapters.openrlhf(SPEC)

    def rewards(at):
        gold, text = str(at), str(at - at % 2)
        row = {"completion": text, "answer": gold}
        return [
            batcher.score_sync(row)["reward"],
            batcher.plan.score_rows([row])["reward"][0],
            assay.score([row], SPEC)["reward"][0],
            *trl(completions=[text], answer=[gold]),
            openrlhf([f"? {text}"], ["?"], [gold])["rewards"],
        ]

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(rewards, range(24))) == [[float(at % 2 == 0)] * 5 for at in range(24)]


def test_datasets_map_scores_arrow_batches():
    datasets = pytest.importorskip("datasets")
    table = datasets.Dataset.from_dict({"completion": ["4", "5"] * 4, "answer": ["4"] * 8}).with_format("arrow")
    scored = table.map(
        lambda batch: assay.score_batch(batch, SPEC), batched=True, batch_size=2, load_from_cache_file=False
    )
    assert scored.with_format(None)["reward"][:] == [1.0, 0.0] * 4
    assert scored.with_format(None)["error"][:] == [None] * 8
