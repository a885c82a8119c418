"""TRL takes a step on each kind of training set, with a random tiny model."""

import sys

import polars as pl
import pytest
import real_packages
from tiny_tokenizer import tiny_tokenizer

import assay

trl = pytest.importorskip("trl", reason="pip install trl==1.16.0")
datasets = pytest.importorskip("datasets")

pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # torch and transformers have many
    pytest.mark.xdist_group("trl"),
]

RECIPES = {
    "sft": (trl.SFTTrainer, trl.SFTConfig, {"completion_only_loss": True}),
    "dpo": (trl.DPOTrainer, trl.DPOConfig, {}),
    "kto": (getattr(trl, "KTOTrainer", None), getattr(trl, "KTOConfig", None), {}),
    "prompts": (trl.GRPOTrainer, trl.GRPOConfig, {"num_generations": 2, "max_completion_length": 4}),
}


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A tokenizer of bytes, and a folder with a random model of one small layer."""
    from transformers import Qwen2Config, Qwen2ForCausalLM

    tokenizer = tiny_tokenizer()
    sizes = dict.fromkeys(("num_attention_heads", "num_key_value_heads"), 2) | {"num_hidden_layers": 1}
    sizes |= {"hidden_size": 16, "intermediate_size": 16, "vocab_size": len(tokenizer)}
    sizes |= {"pad_token_id": tokenizer.pad_token_id, "eos_token_id": tokenizer.eos_token_id}
    folder = tmp_path_factory.mktemp("model")
    Qwen2ForCausalLM(Qwen2Config(**sizes)).save_pretrained(folder)
    return tokenizer, str(folder)


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("form", ["messages", "text"])
def test_a_step(recipe, form, tiny, tmp_path):
    trainer, config, options = RECIPES[recipe]
    if trainer is None:
        pytest.skip("this release of TRL has it elsewhere")
    rows = [
        {
            "task_id": str(at // 4),
            "prompt": f"Question {at // 4}",
            "answer": "4",
            "completion": f"It is {at}.",
            "reward": at % 2 / 1,
        }
        for at in range(32)
    ]
    frame = pl.DataFrame(rows).with_columns(passed=pl.col("reward") == 1)
    assay.export(frame, recipe, f"{tmp_path}/set/", format=form)
    loaded = datasets.load_dataset(str(tmp_path / "set"), cache_dir=str(tmp_path / "cache"))["train"]
    tokenizer, model = tiny
    if recipe == "prompts":
        options = options | {"per_device_train_batch_size": 2}
        functions = {"reward_funcs": assay.adapters.trl({"checks": [{"type": "contains", "value": "4"}]})}
    else:
        functions = {}
    args = config(output_dir=str(tmp_path / "out"), max_steps=1, report_to=[], use_cpu=True, bf16=False, **options)
    trained = trainer(model, args=args, train_dataset=loaded, processing_class=tokenizer, **functions)
    trained.train()
    assert trained.state.global_step == 1


def test_the_recipe_runs_as_it_stands(tmp_path):
    printed = real_packages.run_page("../recipes/rewards-to-dpo.md", tmp_path, programs={"python": sys.executable})
    assert any("17 pairs, 4 steps" in text for text in printed)
