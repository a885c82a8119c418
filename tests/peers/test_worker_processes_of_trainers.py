"""Worker processes of PyTorch, datasets and Ray: rewards work in them, or are refused in words at once.

Each program runs in a process of its own, because whether Polars has run before a fork decides.
"""

import importlib.util
import json
import os
import subprocess
import sys

import pytest
from cases import sized

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="forks, as Linux has them"),
    pytest.mark.xdist_group("ray"),
]

COMMON = """
import json, os, sys
import assay

SPEC = {"id": "math", "checks": [{"type": "contains", "value": {"column": "answer"}}]}
HINT = "Start processes with spawn or forkserver"

class Rewards:
    '''What people score with in a worker: a plan, an adapter, a batcher, and assay.score.'''

    def __init__(self):
        self.trl, self.batcher = assay.adapters.trl(SPEC), assay.Batcher(SPEC)

    def __call__(self, text):
        row = {"completion": text, "answer": "4"}
        scored = [*self.batcher.plan.score_rows([row]).to_dicts(), self.batcher.score_sync(row), *assay.score([row], SPEC).to_dicts()]
        rewards = [*self.trl(completions=[text], answer=["4"]), *(result["reward"] for result in scored)]
        assert len(set(rewards)) == 1
        return rewards[0]

def answer(call):
    try:
        return call()
    except Exception as error:
        return f"{type(error).__name__}: refused" if HINT in str(error) else repr(error)
"""

LOADER = """
import torch.utils.data

class Texts(torch.utils.data.Dataset):
    def __init__(self):
        self.rewards, self.texts = Rewards(), ["4", "5", "4", "5"]

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, at):
        return self.rewards(self.texts[at])

def loaded(texts, method):
    loader = torch.utils.data.DataLoader(texts, num_workers=2, multiprocessing_context=method, timeout=90)
    return answer(lambda: [float(reward) for reward in loader])

if __name__ == "__main__":
    texts = Texts()
    print(json.dumps(loaded(texts, "fork")))
    assert texts[0] == 1.0  # from here on the parent has scored
    print(json.dumps([loaded(texts, method) for method in sys.argv[1:]]), flush=True)
    os._exit(0)  # torch complains of its own workers at exit
"""

MAP = """
import sys
import datasets, multiprocess

def mapped(rows, **options):
    columns = rows.with_format("arrow").map(
        assay.score_batch, fn_kwargs={"verifiers": SPEC}, batched=True, batch_size=2, num_proc=2, load_from_cache_file=False
    ).with_format(None)
    return [columns["reward"][:], columns["error"][:]]

if __name__ == "__main__":
    datasets.disable_progress_bars()
    # the errors of the first batch are all null, and so are all rewards of the last
    rows = datasets.Dataset.from_dict({"completion": ["4", "5", "4", "5", None, None], "answer": ["4"] * 6})
    print(json.dumps(answer(lambda: mapped(rows))))
    assay.score(rows, SPEC)
    print(json.dumps(answer(lambda: mapped(rows))))
    for method in sys.argv[1:]:
        multiprocess.set_start_method(method, force=True)
        print(json.dumps(answer(lambda: mapped(rows))))
"""

ACTORS = """
import ray

@ray.remote
class Actor:
    def __init__(self, rewards):
        self.rewards = rewards

    def score(self, text):
        return self.rewards(text)

    async def scored(self, text):
        return (await self.rewards.batcher.score({"completion": text, "answer": "4"}))["reward"]

    def forked(self):
        readable, writable = os.pipe()
        if not (child := os.fork()):
            os.write(writable, answer(lambda: self.rewards("4")).encode())
            os._exit(0)
        os.waitpid(child, 0)
        return os.read(readable, 200).decode()

if __name__ == "__main__":
    rewards = Rewards()
    assert rewards("4") == 1.0  # the driver has scored
    ray.init(num_cpus=2, include_dashboard=False, configure_logging=False, log_to_driver=False)
    texts = ["4", "5"] * 8
    for options in {}, {"max_concurrency": 8}:
        actors = [Actor.options(num_cpus=0.1, **options).remote(rewards) for _ in range(2)]
        for method in "score", "scored":
            calls = [getattr(actors[at % 2 - 1], method).remote(text) for at, text in enumerate(texts)]
            print(json.dumps(ray.get(calls, timeout=90)))
    print(json.dumps(ray.get(actors[0].forked.remote(), timeout=90)))
    ray.shutdown()
"""
REFUSED = "UsageError: refused"


def lines_of(tmp_path, package, program, *arguments):
    """What a program prints, a JSON value on each line."""
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"pip install {package}")
    path = tmp_path / "program.py"
    path.write_text(COMMON + program, "utf-8")
    quiet = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ADDRESS": "local", "HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-W", "ignore", str(path), *arguments]
    run = subprocess.run(
        command, cwd=tmp_path, env=os.environ | quiet, capture_output=True, text=True, timeout=240, check=False
    )
    assert run.returncode == 0, run.stderr
    return [json.loads(line) for line in run.stdout.splitlines()]


def test_workers_of_a_data_loader(tmp_path):
    forked, after = lines_of(tmp_path, "torch", LOADER, "fork", "spawn", "forkserver")
    scored = [1.0, 0.0, 1.0, 0.0]
    assert forked == scored
    assert after == [REFUSED, scored, scored]


def test_map_of_datasets_with_two_processes(tmp_path):
    methods = sized(["spawn"], [])  # tests/adapters/test_forks.py has spawned processes, too
    forked, after, *spawned = lines_of(tmp_path, "datasets", MAP, *methods)
    scored = [[1.0, 0.0, 1.0, 0.0, None, None], [None] * 4 + ["the completion is null"] * 2]
    assert forked == scored
    assert spawned == [scored] * len(methods)
    assert after == REFUSED


@pytest.mark.long
def test_actors_of_ray_with_one_call_at_a_time_and_many(tmp_path):
    *scored, forked = lines_of(tmp_path, "ray", ACTORS)
    assert scored == [[1.0, 0.0] * 8] * 4
    assert forked == REFUSED
