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
