"""specs/guessing-game against a server on loopback: rollouts generated, scored, saved as parquet, read back equal."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
from loopback import Loopback, say
from real_packages import Later

from assay.types import GenerateOutputs

openai = Later("openai")
GAME = Path(__file__).parents[2] / "specs" / "guessing-game" / "environment.py"
_spec = importlib.util.spec_from_file_location("guessing_game", GAME)
game = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(game)


def halving(request):
    """A player who halves what is left, by the conversation alone, after a word out of turn."""
    low, high, guess = 1, 100, 50
    for message in request.body["messages"][1:]:
        if message["role"] == "assistant":
            guess = game.load_environment(1).guess_in(message["content"])
        elif message["content"] == "higher":
            low = guess + 1
        elif message["content"] == "lower":
            high = guess - 1
    if len(request.body["messages"]) == 1:
        return say("Let me think.")
    return say(f"<guess>{(low + high) // 2}</guess>")


@pytest.fixture(scope="module")
def server():
    with Loopback(halving) as running:
        yield running


def test_generated_scored_saved_and_read_back_equal(server, tmp_path):
    env = game.load_environment(examples=6, max_turns=7)
    client = openai.AsyncOpenAI(base_url=server.url, api_key="none")
    outputs = env.evaluate_sync(
        client, "halver", rollouts_per_example=2, max_concurrent=4, results_path=tmp_path / "run"
    )
    assert outputs.example_id == [0, 1, 2, 3, 4, 5] * 2
    for state, completion in zip(outputs.state, outputs.completion, strict=True):
        assert state["wrong"][0] is None
        assert completion[1]["content"].startswith("That is no guess")
        assert len(state["responses"]) == state["turn"] <= 7
        assert state["responses"][-1].choices[0].message.content == completion[-1]["content"]
        assert state["timing"]["generation_ms"] > 0
    last = [env.guess_in(completion[-1]["content"]) for completion in outputs.completion]
    assert outputs.metrics["found"] == [
        float(one == state["number"]) for one, state in zip(last, outputs.state, strict=True)
    ]
    assert set(outputs.metrics["found"]) == {0.0, 1.0}, "seven turns, one of them lost, find some numbers"
    parts = zip(*(outputs.metrics[name] for name in ("found", "quick", "format_reward_func")), strict=True)
    assert outputs.reward == pytest.approx([a + 0.5 * b + 0.1 * c for a, b, c in parts])
    assert outputs.metadata.env_id == "guessing-game"
    assert outputs.metadata.avg_reward == pytest.approx(sum(outputs.reward) / 12)
    assert GenerateOutputs.from_parquet(tmp_path / "run" / "results.parquet") == outputs


def test_the_program_plays_and_says_how_it_went(server, tmp_path):
    command = [sys.executable, "-W", "error", GAME, "--base-url", server.url, "--model", "halver", "--examples", "3"]
    done = subprocess.run([*command, "--out", tmp_path / "run"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("3 games of halver: reward 1.")
    assert (tmp_path / "run" / "results.parquet").exists()
    assert (tmp_path / "run" / "metadata.json").exists()
