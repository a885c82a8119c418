"""The checks of a spec as a rubric of ``verifiers``: ``pip install 'assay-rollouts[bench]'``."""

import polars as pl

from contenders.peer_rubric import arguments, peer, run_rubric
from contenders.spec_functions import functions_of


def _rewarding(name, function):
    def reward(completion):
        return float(function(completion[-1]["content"]))

    reward.__name__ = name
    return reward


def prepare(spec, frame):
    functions = functions_of(spec)
    answers = frame["completion"].to_list()
    chats = pl.DataFrame(
        {
            "prompt": [[{"role": "user", "content": "Say something."}]] * len(answers),
            "completion": [[{"role": "assistant", "content": text}] for text in answers],
            "answer": "",
            "task": "a spec",
            "info": [{"level": 0}] * len(answers),
            "example_id": range(len(answers)),
        }
    )
    rubric = peer().Rubric(funcs=[_rewarding(name, function) for name, function in functions.items()])
    return rubric, arguments(chats), len(functions)


def run(prepared, frame):
    del frame
    rubric, given, count = prepared
    scored = run_rubric(rubric, given)
    # a sum there, a mean here
    return scored | {"reward": [reward / count for reward in scored["reward"]]}
