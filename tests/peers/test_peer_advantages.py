"""Advantages beside those of verl 0.9.1, on drawn rewards: ``pip install verl==0.9.1``."""

import random

import polars as pl
import pytest
from cases import sized

import assay

pytestmark = pytest.mark.xdist_group("verl")  # it takes half a minute to import

FUNCTIONS = {
    "verl-grpo": "grpo",
    "verl-rloo": "rloo",
    "verl-rloo-vectorized": "rloo_vectorized",
    "verl-opo": "opo",
    "verl-gpg": "gpg",
    "verl-reinforce-plus-plus-baseline": "reinforce_plus_plus_baseline",
}


@pytest.fixture(scope="module")
def verl():
    pytest.importorskip("torch", reason="pip install verl==0.9.1")
    return pytest.importorskip("verl.trainer.ppo.core_algos", reason="pip install verl==0.9.1")


def draw(seed):
    """Rewards of groups of one or several sizes, and the tokens of each response."""
    rng = random.Random(seed)
    values = rng.choice([(0.0, 1.0), (0.1, 0.2, 0.7), tuple(rng.random() for _ in range(50))])
    sizes = [rng.choice((1, 2, 3, 8, 9, 33, 130)) for _ in range(rng.randrange(1, 9))]
    task = [f"t{number}" for number, size in enumerate(sizes) for _ in range(size)]
    rewards, tokens = rng.choices(values, k=len(task)), rng.choices(range(1, 6), k=len(task))
    return pl.DataFrame({"task_id": task, "reward": rewards, "tokens": tokens})


@pytest.mark.parametrize("seed", range(sized(60, 10)))
def test_drawn_rewards_have_verls_advantages_to_the_last_bit(verl, seed):
    import numpy as np
    import torch

    frame = draw(seed)
    tokens = torch.tensor(frame["tokens"].to_list())
    mask = (torch.arange(int(tokens.max()))[None] < tokens[:, None]).float()
    rewards = torch.zeros_like(mask)
    rewards[torch.arange(frame.height), tokens - 1] = torch.tensor(frame["reward"].to_list())
    index = np.array(frame["task_id"].to_list(), dtype=object)
    for like, name in FUNCTIONS.items():
        compute = getattr(verl, f"compute_{name}_outcome_advantage")
        theirs, _ = compute(token_level_rewards=rewards.clone(), response_mask=mask, index=index)
        ours = assay.advantages(frame, "task_id", like=like, length="tokens").frame["advantage"]
        assert ours.to_list() == theirs[:, 0].tolist(), like
    theirs, _ = verl.compute_gpg_outcome_advantage(rewards.clone(), mask, index, f_norm=3.0)
    ours = assay.advantages(frame, "task_id", like="verl-gpg", options={"f_norm": 3.0}).frame["advantage"]
    assert ours.to_list() == theirs[:, 0].tolist()


@pytest.mark.parametrize("seed", range(sized(40, 8)))
@pytest.mark.parametrize("norm", [True, False])
@pytest.mark.parametrize("epsilon", [1e-6, 1e-3])
def test_options_have_verls_advantages_to_the_last_bit(verl, seed, norm, epsilon):
    import types

    import numpy as np
    import torch

    rng, frame = random.Random(seed), draw(seed)
    frame = frame.filter(pl.len().over("task_id") > 1)  # pass@k refuses groups of one row
    if frame.height < 2:
        return
    frame = frame.with_columns(other=pl.Series([rng.random() for _ in range(frame.height)]))
    tokens = torch.tensor(frame["tokens"].to_list())
    mask = (torch.arange(int(tokens.max()))[None] < tokens[:, None]).float()
    rewards = torch.zeros_like(mask)
    rewards[torch.arange(frame.height), tokens - 1] = torch.tensor(frame["reward"].to_list())
    index = np.array(frame["task_id"].to_list(), dtype=object)
    options = {"norm_adv_by_std_in_grpo": norm, "epsilon": epsilon}
    given = {"token_level_rewards": rewards, "response_mask": mask, "index": index}
    for like in ("grpo", "grpo_passk"):
        compute = getattr(verl, f"compute_{like}_outcome_advantage")
        # pass@k reads the option from a configuration
        config = types.SimpleNamespace(get=options.get) if like == "grpo_passk" else None
        theirs, _ = compute(**given, **(options | ({"config": config} if config else {})))
        found = assay.advantages(
            frame, "task_id", like=f"verl-{like.replace('_', '-')}", options=options, length="tokens"
        )
        assert found.frame["advantage"].to_list() == theirs[:, 0].tolist(), like
    keys, weights = ["reward", "other"], [1.0, 0.25]
    settings = {"gdpo_reward_keys": keys, "gdpo_reward_weights": weights}
    theirs, _ = verl.compute_gdpo_outcome_advantage(
        **given,
        **options,
        config=types.SimpleNamespace(get=settings.get),
        non_tensor_batch={key: frame[key].to_numpy() for key in keys},
        batch={"prompts": mask[:, :1], "attention_mask": torch.cat([mask[:, :1], mask], dim=1).long()},
    )
    found = assay.advantages(
        frame,
        "task_id",
        like="verl-gdpo",
        options=options | {"gdpo_reward_weights": weights},
        reward=keys,
        length="tokens",
    )
    assert found.frame["advantage"].to_list() == theirs[:, 0].tolist()
