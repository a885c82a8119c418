"""verl's own reward loop, with actors of Ray, asks for the rewards of Assay by its configuration alone."""

import asyncio
import json
import sys
import types

import pytest
import real_packages

import assay

verl = pytest.importorskip("verl", reason="pip install verl==0.9.1")
ray = pytest.importorskip("ray")

pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # torch, ray and verl have many
    pytest.mark.xdist_group("verl"),
]

SPEC = {
    "id": "math",
    "checks": [
        {"id": "right", "type": "contains", "value": {"column": "answer"}, "weight": 3},
        {"id": "level", "type": "contains", "value": {"column": "extra_info.word"}},
    ],
}
WORDS = ["a", "b", "c", "d"]
SAMPLES = 24


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    """The folder of a tokenizer of a few words."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    vocabulary = {word: at for at, word in enumerate(["<pad>", "<eos>", "<unk>", *WORDS])}
    words = Tokenizer(models.WordLevel(vocabulary, "<unk>"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    special = {"pad_token": "<pad>", "eos_token": "<eos>", "unk_token": "<unk>"}
    folder = tmp_path_factory.mktemp("tokenizer")
    PreTrainedTokenizerFast(tokenizer_object=words, **special).save_pretrained(folder)
    return str(folder)


def config_of(tokenizer, **kwargs):
    from omegaconf import OmegaConf

    function = {"path": "pkg://assay.adapters.verl", "name": "compute_score", "reward_kwargs": {"spec": SPEC, **kwargs}}
    return OmegaConf.create(
        {
            "actor_rollout_ref": {"model": {"path": tokenizer, "tokenizer_path": tokenizer}},
            "reward": {
                "num_workers": 2,
                "custom_reward_function": function,
                "reward_model": {"enable": False, "enable_resource_pool": False},
                "reward_manager": {"source": "register", "name": "naive", "module": {"path": None, "name": None}},
                "sandbox_fusion": None,
            },
        }
    )


def batch(golds):
    """Samples as verl has them after generation: prompt and response ids, golds, and what the dataset says of each."""
    import numpy as np
    import torch
    from verl import DataProto

    responses = torch.tensor([[3 + at % 2, 4 + at % 3, 1, 0] for at in range(len(golds))])
    prompts = torch.full((len(golds), 2), 3)
    mask = torch.cat([torch.ones_like(prompts), (responses != 0).long()], dim=1)
    tensors = {
        "prompts": prompts,
        "responses": responses,
        "attention_mask": mask,
        "input_ids": torch.cat([prompts, responses], dim=1),
    }
    columns = {
        "data_source": np.array(["words"] * len(golds), dtype=object),
        "reward_model": np.array([{"style": "rule", "ground_truth": gold} for gold in golds], dtype=object),
        "extra_info": np.array(
            [{"index": at, "word": WORDS[at % 4], f"only_{at}": at} for at in range(len(golds))], dtype=object
        ),
    }
    return DataProto.from_dict(tensors=tensors, non_tensors=columns)


def expected(golds):
    texts = [f"{WORDS[at % 2]} {WORDS[1 + at % 3]}" for at in range(len(golds))]
    rows = [
        {"completion": text, "answer": gold, "extra_info": {"word": WORDS[at % 4]}}
        for at, (text, gold) in enumerate(zip(texts, golds, strict=True))
    ]
    return assay.score(rows, SPEC)


@pytest.fixture(scope="module")
def cluster():
    ray.init(address="local", num_cpus=2, include_dashboard=False, configure_logging=False, log_to_driver=False)
    yield
    ray.shutdown()


def test_the_reward_loop_of_verl_scores_a_batch_with_its_workers(cluster, tokenizer):
    from verl.experimental.reward_loop.reward_loop import RewardLoopManager

    golds = [WORDS[at % 3] for at in range(SAMPLES)]
    manager = RewardLoopManager(config_of(tokenizer))
    scored = manager.compute_rm_score(batch(golds))
    rewards = scored.batch["rm_scores"].sum(dim=1).tolist()
    result = expected(golds)
    assert rewards == result["reward"].to_list()
    assert len(set(rewards)) > 1
    assert list(scored.non_tensor_batch["feedback"]) == result["feedback"].to_list()
    assert list(scored.non_tensor_batch["check/math/right"]) == result["check/math/right"].to_list()


def test_one_worker_gathers_its_samples(tokenizer, monkeypatch):
    from verl.experimental.reward_loop.reward_loop import RewardLoopWorker

    sizes, score_rows = [], assay.Plan.score_rows
    monkeypatch.setattr(assay.Plan, "score_rows", lambda plan, rows: sizes.append(len(rows)) or score_rows(plan, rows))
    golds = [WORDS[at % 3] for at in range(200)]

    async def run():
        return await RewardLoopWorker(config_of(tokenizer)).compute_score_batch(batch(golds))

    outputs = asyncio.run(run())
    assert [output["reward_score"] for output in outputs] == expected(golds)["reward"].to_list()
    assert len({tuple(output["reward_extra_info"]) for output in outputs}) == 1
    assert len(sizes) < len(golds) / 4


def test_an_unscored_sample_stops_verl_or_gets_the_number(tokenizer):
    from verl.experimental.reward_loop.reward_loop import RewardLoopWorker

    async def run(**kwargs):
        return await RewardLoopWorker(config_of(tokenizer, **kwargs)).compute_score_batch(batch(["a", None]))

    with pytest.raises(assay.FailedRunError, match="gold is missing: answer"):
        asyncio.run(run())
    outputs = asyncio.run(run(unscored=0.0))
    assert [output["reward_score"] for output in outputs] == [1.0, 0.0]
    assert outputs[1]["reward_extra_info"]["unscored"] == 1.0
    assert outputs[1]["reward_extra_info"]["check/math/right"] == 0.0


@pytest.mark.parametrize("manager", ["naive", "dapo", "gdpo", "rate_limited", "remote", "importlib"])
def test_every_reward_manager_takes_a_function_that_answers_at_once(cluster, tokenizer, tmp_path, manager):
    from verl.trainer.ppo.reward import load_reward_manager
    from verl.utils import hf_tokenizer

    (tmp_path / "spec.json").write_text(json.dumps(SPEC), "utf-8")
    file = tmp_path / "reward.py"
    file.write_text(
        "from assay.adapters import verl\n"
        f"compute_score = verl.reward({str(tmp_path / 'spec.json')!r}, sync=True, unscored=0.0)\n",
        "utf-8",
    )
    config = config_of(tokenizer)
    config.reward.max_concurrent = 4
    config.trainer = {"experiment_name": "x"}
    config.algorithm = {"adv_estimator": "gdpo", "gdpo_reward_keys": ["check/math/right", "check/math/level"]}
    if manager == "importlib":
        module = {"path": "pkg://verl.experimental.reward_loop.reward_manager.naive", "name": None}
        config.reward.reward_manager = {"source": manager, "name": "NaiveRewardManager", "module": module}
    else:
        config.reward.reward_manager.name = manager
    golds = ["a", "b", None, "c"]
    rewards = expected(golds)["reward"].fill_null(0.0).to_list()
    functions = [
        {**config.reward.custom_reward_function, "name": "compute_score_sync"},
        {"path": str(file), "name": "compute_score", "reward_kwargs": {}},
    ]
    if manager != "remote":  # which awaits nothing
        by_name = {"path": "pkg://assay.adapters.verl", "name": str(tmp_path / "spec.json"), "reward_kwargs": {}}
        functions.append(by_name)
    for function in functions:
        config.reward.custom_reward_function = function
        config.reward.custom_reward_function.reward_kwargs.unscored = 0.0
        made = load_reward_manager(config, hf_tokenizer(tokenizer))

        async def run(made=made):
            made.loop = asyncio.get_running_loop()
            data = batch(golds)
            return await asyncio.gather(*(made.run_single(data[at : at + 1]) for at in range(len(golds))))

        outputs = asyncio.run(run())
        assert [float(output["reward_score"]) for output in outputs] == rewards
        assert [output["reward_extra_info"]["pred"] for output in outputs] == ["a b", "b c", "a d", "b b"]


def test_gdpo_and_majority_votes_take_the_scores_of_checks_that_did_not_run():
    import numpy as np
    import torch
    from verl.trainer.ppo.core_algos import compute_gdpo_outcome_advantage
    from verl.trainer.ppo.metric_utils import process_validation_metrics

    from assay.adapters.verl import compute_scores

    spec = {
        "id": "v",
        "checks": [
            *SPEC["checks"],
            {"id": "k", "type": "contains", "value": "b", "when": {"column": "kind"} | {"equals": "k"}},
        ],
    }
    infos = [{"word": "a", "kind": kind} for kind in ("k", "other", "k", "other")]
    scores = compute_scores(["words"] * 4, ["a b", "b b", "a", "b"], ["a"] * 4, infos, spec=spec)
    keys = ["check/v/right", "check/v/level", "check/v/k"]
    columns = {key: np.array([score[key] for score in scores]) for key in keys}
    mask = torch.ones(4, 1)
    advantages, _ = compute_gdpo_outcome_advantage(
        token_level_rewards=mask,
        response_mask=mask,
        index=np.array(["x"] * 4),
        non_tensor_batch=columns,
        batch={"prompts": mask, "attention_mask": torch.ones(4, 2).long()},
        config=types.SimpleNamespace(gdpo_reward_keys=keys, get={"gdpo_reward_keys": keys}.get),
    )
    assert torch.isfinite(advantages).all()
    values = {name: [score[name] for score in scores] for name in ("score", "acc", "pred")}
    metrics = process_validation_metrics(["words"] * 4, ["same"] * 4, values)
    assert {"maj@4/mean", "mean@4"} <= {*metrics["words"]["acc"]}


def test_the_offline_evaluation_takes_the_score_alone(tokenizer):
    from verl.trainer.ppo.reward import get_custom_reward_fn

    config = config_of(tokenizer)
    config.reward.custom_reward_function.name = "score"
    function = get_custom_reward_fn(config)
    assert function("words", "a b", "a", {"word": "c"}) == 0.75
    with pytest.raises(assay.FailedRunError):
        function("words", "a b", None)


def test_the_recipe_runs_as_it_stands(tmp_path):
    real_packages.run_page("../recipes/verl-metrics.md", tmp_path, programs={"python": sys.executable})
