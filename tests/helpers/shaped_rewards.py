"""Reward functions of every shape, in a module that worker processes can import."""

import assay


def closeness(completion, difficulty, scale=2.0):
    if len(completion) % 7 == 3:
        raise KeyError(completion[:1])
    return (len(completion) % 5) / (difficulty * scale), f"{len(completion)}\nletters\ud800"


@assay.reward(metrics=["words", "share", "never"])
def wordy(completion, **columns):
    words = len(completion.split())
    share = float("nan") if words == 2 else words / 7
    return {
        "score": min(words / 3, 1.0),
        "reason": f"{words} words of {columns['model']}",
        "words": words,
        "share": share,
    }


def trl(completions, model, level=None, **columns):
    """What does not apply to a rollout is None."""
    texts = completions if isinstance(completions[0], str) else [messages[-1]["content"] for messages in completions]
    if any(len(text) % 11 == 5 for text in texts):
        raise ValueError(f"one of {len(texts)}")
    return [
        None if len(text) % 3 == 0 else (len(text) / 10, name)
        for text, name in zip(texts, columns["name"], strict=True)
    ]


async def later(prompts, completions, **columns):
    return [None if prompt == "p0" else float(len(completions)) for prompt in prompts]


@assay.reward(batched=True)
def row_by_row(completions, **columns):
    return [{"score": -0.25, "reason": "always"} if "a" in text else 0 for text in completions]


def relative(completions, answers):
    return [float(text == max(completions)) for text in completions]


FUNCS = [closeness, wordy, trl, later, row_by_row, relative]
WEIGHTS = [1.0, 0.5, -2.0, 0.25, 3.0, 1.0]
rubric = assay.Rubric(FUNCS, WEIGHTS)
rows_only = assay.Rubric([closeness, wordy, trl, row_by_row], [1.0, 0.5, -2.0, 3.0])
trl_only = assay.Rubric([trl, assay.reward(batched=True)(lambda completions: [None] * len(completions))])
