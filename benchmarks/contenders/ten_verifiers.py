"""The ten checks as a rubric of ``verifiers``: ``pip install 'assay[bench]'``."""

import polars as pl

from contenders import peer_rubric
from contenders.ten_functions import FUNCTIONS


def _rewarding(name, function):
    def reward(completion):
        return float(function(completion[-1]["content"]))

    reward.__name__ = name
    return reward


def _make(peer):
    return peer.Rubric(funcs=[_rewarding(name, function) for name, function in FUNCTIONS.items()])


def prepare(verifiers, frame):
    del verifiers
    said = frame["completion"].to_list()
    chats = pl.DataFrame(
        {
            "prompt": [[{"role": "user", "content": "Say something."}]] * len(said),
            "completion": [[{"role": "assistant", "content": text}] for text in said],
            "answer": "",
            "task": "ten",
            "info": [{"level": 0}] * len(said),
            "example_id": range(len(said)),
        }
    )
    return peer_rubric.prepare(_make, chats)


def run(prepared, frame):
    scored = peer_rubric.run(prepared, frame)
    # a sum there, a mean here
    return scored | {"reward": [reward / len(FUNCTIONS) for reward in scored["reward"]]}
