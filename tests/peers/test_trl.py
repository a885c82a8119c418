"""TRL trains a random tiny model for some steps with rewards of Assay: GRPO, RLOO, and GDPO with a function for each check."""

import polars as pl
import pytest

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
