"""The loaders of verl, OpenRLHF, LLaMA-Factory and Axolotl read each training set that is written for them, and train on the answers only."""

import importlib.machinery
import sys
import types

import polars as pl
import pytest
from tiny_tokenizer import tiny_tokenizer

import assay

pytest.importorskip("transformers", reason="pip install transformers")
pytest.importorskip("torch")

pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # torch, transformers and the trainers have many
    pytest.mark.xdist_group("training-set-loaders"),
]

SYSTEM = {"role": "system", "content": "Add."}
INSTALL = {
    "verl": "pip install verl==0.9.1",
    "openrlhf": "pip install --no-deps openrlhf==0.11.2",
    "llamafactory": "pip install --no-deps llamafactory==0.9.5, and what its loader imports: make peers-test",
    "axolotl": "pip install --no-deps axolotl==0.19.0, and what its loader imports: make peers-test",
}


@pytest.fixture
def tokenizer(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tiny_tokenizer(tmp_path / "model")


def made(target, recipe, **settings):
    """A training set in the folder ``set``: of each of eight tasks two answers pass, and two do not."""
    is_text = settings.get("format") == "text"
    rows = [
        {
            "task_id": f"sum-{task}",
            "prompt": f"What is {task} + 1?"
            if is_text
            else [SYSTEM, {"role": "user", "content": f"What is {task} + 1?"}],
            "answer": str(task + 1),
            "completion": f"{say} {task + at % 2}.",
            "reward": float(at % 2),
            "passed": at % 2 == 1,
        }
        for task in range(8)
        for at, say in enumerate(("It is", "That makes", "So", "Hence"))
    ]
    made = assay.export(pl.DataFrame(rows), recipe, "set/", target=target, validation=0.3, seed=3, **settings)
    assert made.validation.height
    return made


def rendered(messages):
    return "".join(f"<|im_start|>{message['role']}\n{message['content']}<|im_end|>\n" for message in messages)


ASKS = "<|im_start|>assistant\n"


def trained_on(tokenizer, tokens, mask):
    """The text of the tokens that a loss is computed of."""
    return tokenizer.decode([int(token) for token, is_used in zip(tokens, mask, strict=True) if is_used])


def test_verl_sft(tokenizer):
    pytest.importorskip("verl", reason=INSTALL["verl"])
    from omegaconf import OmegaConf
    from verl.utils.dataset.multiturn_sft_dataset import MultiTurnSFTDataset

    frame = made("verl", "sft").train
    loaded = MultiTurnSFTDataset("set/train.parquet", tokenizer, OmegaConf.create({"max_length": 512}))
    assert len(loaded) == frame.height
    for row, messages in zip(loaded, frame["messages"], strict=False):
        assert tokenizer.decode(row["input_ids"][row["attention_mask"] == 1]) == rendered(messages)
        answer = messages[-1]["content"]
        assert trained_on(tokenizer, row["input_ids"], row["loss_mask"]) == f"{answer}<|im_end|>\n"


def test_verl_prompts(tokenizer):
    pytest.importorskip("verl", reason=INSTALL["verl"])
    from omegaconf import OmegaConf
    from verl.utils.dataset.rl_dataset import RLHFDataset, collate_fn

    frame = made("verl", "prompts").train
    config = OmegaConf.create({"cache_dir": "cache", "filter_overlong_prompts_workers": 1, "max_prompt_length": 100})
    loaded = RLHFDataset("set/train.parquet", tokenizer, config)
    rows = [loaded[at] for at in range(len(loaded))]
    assert [row["raw_prompt"] for row in rows] == frame["prompt"].to_list()
    assert [row["reward_model"]["ground_truth"] for row in rows] == frame["reward_model"].struct[
        "ground_truth"
    ].to_list()
    assert [row["index"] for row in rows] == [*range(frame.height)]
    assert set(collate_fn(rows)["data_source"]) == {"assay"}


def strategy(**data):
    """What OpenRLHF's datasets ask of its strategy."""
    own = types.SimpleNamespace(apply_chat_template=True, **data)
    return types.SimpleNamespace(args=types.SimpleNamespace(data=own), is_rank_0=lambda: False)


def load(name="train"):
    from datasets import load_dataset

    return load_dataset("parquet", data_files=f"set/{name}.parquet", cache_dir="cache")["train"]


@pytest.mark.parametrize("form", ["messages", "text"])
def test_openrlhf_sft(form, tokenizer):
    pytest.importorskip("openrlhf.datasets", reason=INSTALL["openrlhf"])
    from openrlhf.datasets import SFTDataset

    frame = made("openrlhf", "sft", format=form).train
    own = strategy(input_key="input", output_key="output")
    loaded = SFTDataset(load(), tokenizer, 512, own, num_processors=1)
    assert len(loaded) == frame.height
    for at, (prompt, answer) in enumerate(frame.select("input", "output").iter_rows()):
        tokens, _, loss = (values[0] for values in loaded[at])
        asked = [{"role": "user", "content": prompt}] if form == "text" else prompt
        text = answer if form == "text" else answer[0]["content"]
        assert tokenizer.decode(tokens) == rendered(asked) + ASKS + f"{text}<|im_end|>"
        assert trained_on(tokenizer, tokens[1:], loss[:-1]) == f"{text}<|im_end|>"


def test_openrlhf_dpo(tokenizer):
    pytest.importorskip("openrlhf.datasets", reason=INSTALL["openrlhf"])
    from openrlhf.datasets import RewardDataset

    frame = made("openrlhf", "dpo").train
    own = strategy(prompt_key="prompt", chosen_key="chosen", rejected_key="rejected")
    loaded = RewardDataset(load(), tokenizer, 512, own, is_dpo=True, num_processors=1)
    assert len(loaded) == frame.height
    for at, (prompt, chosen, rejected) in enumerate(frame.select("prompt", "chosen", "rejected").iter_rows()):
        good, _, bad, _, length = loaded[at]
        for tokens, answer in ((good[0], chosen), (bad[0], rejected)):
            assert tokenizer.decode(tokens[:length]) == rendered(prompt) + ASKS
            assert tokenizer.decode(tokens[length:]) == f"{answer[0]['content']}<|im_end|>"


def test_openrlhf_prompts(tokenizer):
    pytest.importorskip("openrlhf.datasets", reason=INSTALL["openrlhf"])
    from openrlhf.datasets import PromptDataset

    frame = made("openrlhf", "prompts").train
    loaded = PromptDataset(load(), tokenizer, strategy(input_key="input", label_key="label"))
    expected = [
        (source, rendered(prompt) + ASKS, gold, None)
        for prompt, gold, source in frame.select("input", "label", "datasource").iter_rows()
    ]
    assert [loaded[at] for at in range(len(loaded))] == expected


@pytest.fixture
def llamafactory(monkeypatch):
    """LLaMA-Factory without torchaudio, whose builds go with few versions of torch: no audio is read."""
    monkeypatch.setenv("DISABLE_VERSION_CHECK", "1")
    audio = types.ModuleType("torchaudio")
    audio.__spec__ = importlib.machinery.ModuleSpec("torchaudio", None)
    sys.modules.setdefault("torchaudio", audio)
    return pytest.importorskip("llamafactory.data", reason=INSTALL["llamafactory"])


@pytest.mark.parametrize(("recipe", "stage"), [("sft", "sft"), ("dpo", "rm"), ("kto", "kto")])
def test_llamafactory(recipe, stage, tokenizer, llamafactory):
    from llamafactory.hparams import DataArguments, ModelArguments
    from transformers import TrainingArguments

    out = made("llamafactory", recipe)
    data = DataArguments(
        template="qwen", dataset_dir="set", dataset="train", eval_dataset="validation", overwrite_cache=True
    )
    model = ModelArguments(model_name_or_path="model", cache_dir="cache")
    training = TrainingArguments(output_dir="out", report_to=[], use_cpu=True)
    training.predict_with_generate = False
    template = llamafactory.get_template_and_fix_tokenizer(tokenizer, data)
    loaded = llamafactory.get_dataset(template, model, data, training, stage=stage, tokenizer=tokenizer)
    for split, frame in (("train_dataset", out.train), ("eval_dataset", out.validation)):
        assert len(loaded[split]) == frame.height
        for row, example in zip(loaded[split], frame.iter_rows(named=True), strict=True):
            turns = example["conversations"]
            if recipe == "dpo":
                answers = {"chosen_": example["chosen"], "rejected_": example["rejected"]}
            else:
                *turns, answer = turns
                answers = {"": answer}
            asked = [SYSTEM, *({"role": "user", "content": turn["value"]} for turn in turns[1:])]
            for name, answer in answers.items():
                text = f"{answer['value']}<|im_end|>\n"
                assert tokenizer.decode(row[f"{name}input_ids"]) == rendered(asked) + ASKS + text
                used = [label != -100 for label in row[f"{name}labels"]]
                assert trained_on(tokenizer, row[f"{name}input_ids"], used) == text
            assert recipe != "kto" or row["kto_tags"] == example["label"]


@pytest.fixture
def axolotl(monkeypatch):
    """Axolotl, which tells nobody that it runs; and a training set of it as its configuration names it."""
    monkeypatch.setenv("AXOLOTL_DO_NOT_TRACK", "1")
    shared = pytest.importorskip("axolotl.utils.data.shared", reason=INSTALL["axolotl"])
    from axolotl.utils.dict import DictDefault

    own = DictDefault({"path": "set/train.parquet", "ds_type": "parquet", "split": "train"})
    config = DictDefault({"datasets": [own], "chat_template": "tokenizer_default", "sequence_len": 512})
    return config, lambda: shared.load_dataset_with_config(own, use_auth_token=False)


def test_axolotl_sft(tokenizer, axolotl):
    from axolotl.prompt_strategies.chat_template import load as strategy_of

    config, load = axolotl
    frame = made("axolotl", "sft").train
    strategy = strategy_of(tokenizer, config, ds_cfg=config.datasets[0])
    rows = load()
    assert len(rows) == frame.height
    for row, messages in zip(rows, frame["messages"], strict=True):
        tokenized = strategy.tokenize_prompt(row)
        assert tokenizer.decode(tokenized["input_ids"]) == rendered(messages)
        used = [label != -100 for label in tokenized["labels"]]
        assert trained_on(tokenizer, tokenized["input_ids"], used) == f"{messages[-1]['content']}<|im_end|>"


def test_axolotl_dpo(tokenizer, axolotl):
    from axolotl.prompt_strategies.dpo import load as strategy_of

    config, load = axolotl
    frame = made("axolotl", "dpo").train
    transform, options = strategy_of("chat_template.default", config, dataset_idx=0)
    rows = load().map(transform, fn_kwargs={"tokenizer": tokenizer}, **options)
    expected = [
        (rendered(messages) + ASKS, *(f"{answer['content']}<|im_end|>" for answer in answers))
        for messages, *answers in frame.select("messages", "chosen", "rejected").iter_rows()
    ]
    assert [(row["prompt"], row["chosen"], row["rejected"]) for row in rows] == expected


def test_axolotl_kto(axolotl, tokenizer):
    from axolotl.prompt_strategies.kto import load as strategy_of

    config, load = axolotl
    frame = made("axolotl", "kto", format="text").train
    rows = load().map(strategy_of("chatml.prompt_pairs", config))
    expected = [
        (rendered([{"role": "user", "content": prompt}]) + ASKS, f"{completion}<|im_end|>", label)
        for prompt, completion, label in frame.select("prompt", "completion", "label").iter_rows()
    ]
    assert [(row["prompt"], row["completion"], row["label"]) for row in rows] == expected
