"""TRL trains a random tiny model for some steps with rewards of Assay: GRPO, RLOO, and GDPO with a function for each check.

AsyncGRPO generates with vLLM, which needs a GPU: its rollout worker runs here, with the child that it spawns, and the completions come from a stand-in.
"""

import http.server
import itertools
import json
import math
import re
import sys
import threading

import polars as pl
import pytest
import real_packages

import assay

trl = pytest.importorskip("trl", reason="pip install trl==1.16.0")
datasets = pytest.importorskip("datasets")

pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # torch and transformers have many
    pytest.mark.xdist_group("trl"),
]

SPEC = {
    "id": "words",
    "checks": [
        {"id": "has", "type": "contains", "value": {"column": "solution"}, "weight": 2},
        {"id": "brief", "type": "max_length", "value": 6},
    ],
}
WORDS = ["a", "b", "c", "d", "e", "f"]
STEPS, GENERATIONS = 2, 4


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A tokenizer of a few words, and a folder with a random model of two small layers."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    vocabulary = {word: at for at, word in enumerate(["<pad>", "<eos>", "<unk>", *WORDS])}
    special = {"pad_token": "<pad>", "eos_token": "<eos>", "unk_token": "<unk>"}
    words = Tokenizer(models.WordLevel(vocabulary, "<unk>"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, **special)

    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = LlamaConfig(vocab_size=len(vocabulary), max_position_embeddings=64, **sizes)
    config.pad_token_id, config.eos_token_id, config.bos_token_id = 0, 1, None
    folder = tmp_path_factory.mktemp("model")
    LlamaForCausalLM(config).save_pretrained(folder)
    return tokenizer, str(folder)


def train(tiny, folder, functions, trainer="GRPO", **options):
    """Train for some steps; return the trainer, and its table of completions."""
    tokenizer, model = tiny
    dataset = datasets.Dataset.from_dict(
        {"prompt": ["a b", "c d", "e f", "a c"], "solution": [["a"], ["d", "c"], ["f"], ["b"]]}
    )
    config = getattr(trl, f"{trainer}Config")(
        output_dir=str(folder),
        per_device_train_batch_size=2 * GENERATIONS,
        num_generations=GENERATIONS,
        max_completion_length=6,
        max_steps=STEPS,
        logging_steps=1,
        log_completions=True,
        report_to=[],
        save_strategy="no",
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
        seed=1,
        **options,
    )
    made = getattr(trl, f"{trainer}Trainer")(
        model=model, reward_funcs=functions, args=config, train_dataset=dataset, processing_class=tokenizer
    )
    made.train()
    return made, [entry for entry in made.state.log_history if "step_time" in entry]


def completions_of(folder):
    """The trainer's table of completions, of all steps."""
    files = sorted((folder / "completions").glob("*.parquet"))
    assert len(files) == STEPS
    return pl.concat(map(pl.read_parquet, files))


def expected_of(prompts, completions):
    """The rewards of completions that ``assay.score`` gives."""
    golds = {"a b": ["a"], "c d": ["d", "c"], "e f": ["f"], "a c": ["b"]}
    rows = zip(prompts, completions, strict=True)
    return assay.score([{"completion": text, "solution": golds[prompt]} for prompt, text in rows], SPEC, keep=())


@pytest.mark.parametrize("trainer", ["GRPO", "RLOO"])
def test_a_trainer_trains_with_the_rewards_of_score(tiny, tmp_path, trainer):
    reward, seen = assay.adapters.trl(SPEC), []

    def words(prompts, completions, **columns):
        seen.append((prompts, completions))
        return reward(prompts=prompts, completions=completions, **columns)

    _, history = train(tiny, tmp_path, words, trainer)
    expected = [expected_of(*batch) for batch in seen]
    assert len(history) == len(expected) == STEPS
    for entry, scores in zip(history, expected, strict=True):
        assert scores["reward"].n_unique() > 1
        assert entry["rewards/words/mean"] == pytest.approx(scores["reward"].mean())
        assert entry["rewards/words/std"] > 0
        assert entry["words/has"] == pytest.approx(scores["check/words/has"].mean())
        assert entry["words/unscored"] == 0.0
        assert entry["grad_norm"] > 0
    if trainer == "GRPO":  # RLOO shows its table, but does not write it
        table, scores = completions_of(tmp_path), pl.concat(expected)
        assert table["words"].to_list() == pytest.approx(scores["reward"].to_list())  # theirs are float32
        assert table["words_feedback"].to_list() == scores["feedback"].to_list()


def test_gdpo_trains_with_a_function_for_each_check(tiny, tmp_path, monkeypatch):
    passes, score_rows = [], assay.Plan.score_rows
    monkeypatch.setattr(assay.Plan, "score_rows", lambda plan, rows: passes.append(1) or score_rows(plan, rows))
    functions = assay.adapters.trl(SPEC, per_check=True)
    weights = [function.weight for function in functions]
    options = {"multi_objective_aggregation": "normalize_then_sum", "reward_weights": weights}
    _, history = train(tiny, tmp_path, functions, **options)
    table = completions_of(tmp_path)
    expected = expected_of([prompt.strip() for prompt in table["prompt"]], table["completion"])
    for check in ("has", "brief"):
        assert table[f"words/{check}"].to_list() == expected[f"check/words/{check}"].to_list()
    assert len(passes) == STEPS
    assert weights == [2.0, 1.0]
    assert [entry["grad_norm"] > 0 for entry in history] == [True] * STEPS
    assert all("rewards/words/has/mean" in entry for entry in history)


def test_unscored_completions_are_left_out_of_their_group(tiny, tmp_path):
    spec = {"id": "half", "checks": [{"type": "contains", "value": {"column": "gold"}}]}
    reward = assay.adapters.trl(spec)

    def half(prompts, completions, **columns):  # the first of each group has no gold
        golds = [None if at % GENERATIONS == 0 else "a" for at in range(len(prompts))]
        return reward(prompts=prompts, completions=completions, gold=golds, **columns)

    train(tiny, tmp_path, half)
    table = completions_of(tmp_path)
    unscored = table.filter(pl.int_range(pl.len()) % GENERATIONS == 0)
    assert unscored["half"].fill_nan(None).null_count() == unscored.height
    assert unscored["advantage"].to_list() == [0.0] * unscored.height
    assert set(unscored["half_error"]) == {"gold is missing: gold"}
    assert table["half"].fill_nan(None).null_count() == unscored.height


@pytest.fixture
def completions_server():
    """The address of a stand-in for a server of vLLM, which answers with the words in turn."""
    turn = itertools.cycle(range(len(WORDS)))

    class Completions(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            ids = [3 + next(turn), 1]  # a word, and the end
            choice = {"token_ids": ids, "logprobs": {"token_logprobs": [-1.0] * len(ids)}}
            body = json.dumps({"choices": [choice]}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Completions) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_the_spawned_child_of_async_grpo_scores(tiny, completions_server, monkeypatch):
    pytest.importorskip("aiohttp", reason="pip install aiohttp")
    from accelerate.state import PartialState
    from trl.chat_template_utils import qwen3_chat_template
    from trl.experimental.async_grpo import async_rollout_worker as module

    PartialState()  # as a trainer does
    monkeypatch.setattr(
        module, "is_vllm_available", lambda *_, **__: True
    )  # it generates on a GPU; the server stands in
    tokenizer, model = tiny
    monkeypatch.setattr(tokenizer, "chat_template", qwen3_chat_template)
    reward = assay.adapters.trl(SPEC)
    assert reward(completions=["a"], solution=[["a"]]) == [1.0]  # Polars has run in the parent
    prompts = [[{"role": "user", "content": text}] for text in ("a b", "c d")]
    dataset = datasets.Dataset.from_dict({"prompt": prompts, "solution": [["a"], None]})
    worker = module.AsyncRolloutWorker(
        model_name=model,
        dataset=dataset,
        reward_funcs=[reward],
        processing_class=tokenizer,
        eos_token_ids=[1],
        num_generations=GENERATIONS,
        vllm_server_url=completions_server,
        child_ready_timeout=120,
    )
    worker.start()
    try:
        samples = [worker.rollout_buffer.get(timeout=60) for _ in range(4 * GENERATIONS)]
        worker.check_health(60)
    finally:
        worker.stop()
    expected = assay.score([{"completion": sample.completion, "solution": ["a"]} for sample in samples], SPEC)["reward"]
    for sample, score in zip(samples, expected, strict=True):
        if sample.prompt == prompts[0]:
            assert sample.metrics["rewards/words"] == score
        else:
            assert math.isnan(sample.metrics["rewards/words"])
            assert sample.advantage == 0.0
    assert expected.n_unique() == 2
    assert {sample.prompt[0]["content"] for sample in samples} == {"a b", "c d"}


def test_the_recipe_trains_a_model_that_learns_the_mark(tmp_path):
    printed = real_packages.run_page("../recipes/gsm8k-in-trl.md", tmp_path, programs={"python": sys.executable})
    first, last = map(
        float, re.fullmatch(r"reward (\S+) at first, (\S+) at last", printed[-1].splitlines()[0]).groups()
    )
    assert last > first + 0.1
