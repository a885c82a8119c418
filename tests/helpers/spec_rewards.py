"""Functions that specs name in tests: registered ones, and reward functions."""

import assay
from assay.fns import register

HERE = __name__


def starts(model_output, expected, params):
    return 1.0 if model_output.startswith(str(expected)) else params.get("otherwise", 0.0)


def fussy(model_output, expected, params):
    if not model_output:
        raise ValueError("nothing to read\nat all")
    return (
        {"n": float("nan"), "l": 2.5}.get(model_output[0], len(model_output) % 3 / 2)
        if params is not None
        else expected
    )


def ends(model_output, expected, params):
    del params
    return None if expected is None else float(model_output.endswith(str(expected)))


def brevity(completion, level=2):
    """A reward with a reason; above 1 for short texts."""
    text = completion if isinstance(completion, str) else completion[-1]["content"]
    return (level or 1) * 4 / (1 + len(text)), f"{len(text)} characters"


def picky(completion, answer):
    if answer is None:
        raise ValueError("no\nanswer")
    return {"score": float(answer in completion), "reason": "the answer\nis not there", "length": len(completion)}


@assay.reward(batched=True)
def evens(completions, **columns):
    del columns
    return [None if len(text) % 2 else len(text) % 4 / 2 for text in completions]


async def slow(completion):
    return len(completion) % 2


def over_all(completions, prompts):
    del prompts
    return [0.0] * len(completions)


class Grader:
    """A callable object, which is no function by its type."""

    def __call__(self, completion):
        return float(bool(completion))


grader = Grader()
NUMBER = 3


def register_all():
    """Register the functions of rows."""
    register("starts", starts)
    register("fussy", fussy)
    register("ends", ends, expr=lambda output, expected, params: output.str.ends_with(expected))
