"""OpenRLHF's agent executor generates with a stand-in for vLLM, and fetches its rewards from a file that uses Assay."""

import asyncio
import json
import subprocess
import sys
import types

import pytest

agent = pytest.importorskip("openrlhf.utils.agent", reason="pip install --no-deps openrlhf==0.11.2")

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.xdist_group("openrlhf")]

SPEC = {"id": "math", "checks": [{"id": "right", "type": "equals", "value": {"column": "answer"}}]}
FILE = f"""
import assay

reward_func = assay.adapters.openrlhf({SPEC})
"""


SPECIAL = {0: "<s>", 1: "</s>"}


class Tokenizer:
    """One token for each character, and two special ones."""

    def __call__(self, text, **options):
        import torch

        return {"input_ids": torch.tensor([[0, *map(ord, text)]])}

    def decode(self, tokens, *, skip_special_tokens):
        assert not skip_special_tokens
        return "".join(SPECIAL.get(token) or chr(token) for token in tokens)


class Engine:
    """Answers every prompt with its answer."""

    def __init__(self, answers):
        self.answers = answers

    async def generate(self, tokens, params, **options):
        prompt = "".join(map(chr, tokens[1:]))
        tokens = [*map(ord, self.answers[prompt]), 1]
        output = types.SimpleNamespace(token_ids=tokens, finish_reason="stop", logprobs=None)
        return types.SimpleNamespace(outputs=[output])


def execute(executor, prompts, labels, answers):
    params = types.SimpleNamespace(max_tokens=8, logprobs=None)

    async def run():
        engine = Engine(answers)
        calls = [
            executor.execute(prompt, label, params, 128, Tokenizer(), engine)
            for prompt, label in zip(prompts, labels, strict=True)
        ]
        return await asyncio.gather(*calls)

    return asyncio.run(run())


def test_the_executor_gets_rewards_and_logs(tmp_path):
    path = tmp_path / "reward_func.py"
    path.write_text(FILE, "utf-8")
    prompts = [f"{at} + {at}?" for at in range(20)]
    answers = {prompt: str(2 * at if at % 2 else at) for at, prompt in enumerate(prompts)}
    labels = [2 * at for at in range(20)]
    labels[3] = None
    outputs = execute(agent.SingleTurnAgentExecutor(str(path)), prompts, labels, answers)
    expected = [float(at % 2 or at == 0) for at in range(20)]
    expected[3] = 0.0
    assert [output["reward"] for output in outputs] == [output["scores"] for output in outputs] == expected
    assert [output["extra_logs"]["unscored"] for output in outputs] == [float(at == 3) for at in range(20)]
    assert sum(output["extra_logs"]["exceptions"] for output in outputs) == 0


def test_the_executor_gets_the_same_over_http(tmp_path):
    """``--reward.remote_url http://…/get_reward``, answered by ``assay serve``, up to the tensors of an experience."""
    (tmp_path / "spec.json").write_text(json.dumps(SPEC), "utf-8")
    prompts = [f"{at} + {at}?" for at in range(20)]
    answers = {prompt: str(2 * at if at % 2 else at) for at, prompt in enumerate(prompts)}
    labels = [None if at == 3 else str(2 * at) for at in range(20)]
    command = [sys.executable, "-m", "assay", "serve", str(tmp_path / "spec.json"), "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        try:
            url = server.stderr.readline().split()[-1]
            outputs = execute(agent.SingleTurnAgentExecutor(f"{url}/get_reward"), prompts, labels, answers)
        finally:
            server.terminate()
    path = tmp_path / "reward_func.py"
    path.write_text(FILE, "utf-8")
    same = execute(agent.SingleTurnAgentExecutor(str(path)), prompts, labels, answers)
    assert [flat(output) for output in outputs] == [flat(output) for output in same]
    assert [output["reward"] for output in same] == [float(at != 3 and (at % 2 or at == 0)) for at in range(20)]


def flat(output):
    """What OpenRLHF makes tensors of; a server answers with lists, for one query of one number."""
    import torch

    values = {"reward": output["reward"], "scores": output["scores"], **output["extra_logs"]}
    return {name: torch.tensor([value]).flatten().tolist() for name, value in values.items()}
