"""What a batch costs through each adapter whose package this Python has, beside a plain loop over the same two checks.

Run it with the Python of each folder that ``make peers-test`` makes; it prints the lines of ``docs/trainers/``. Each batch has texts
that were not seen before, and the median counts.

Usage: python benchmarks/adapter_costs.py
"""

import asyncio
import contextlib
import io
import os
import re
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

from assay import adapters

SPEC = {
    "id": "math",
    "checks": [
        {"id": "right", "type": "number", "value": {"column": "answer"}, "on": ["afterThink"], "weight": 3},
        {"id": "short", "type": "max_length", "value": 200},
    ],
}
SIZES = (64, 512)
TURNS = 15
THREADS = 32


def batch(start, size):
    """Return texts and their golds."""
    numbers = range(start, start + size)
    texts = [f"<think>I add {at} and {at}, carefully.</think>It is {2 * at + at % 2}." for at in numbers]
    return texts, [str(2 * at) for at in numbers]


def plain_loop():
    def scored(texts, golds):
        for text, gold in zip(texts, golds, strict=True):
            numbers = re.findall(r"-?\d+(?:\.\d+)?", text.rpartition("</think>")[2])
            right = bool(numbers) and float(numbers[-1]) == float(gold)
            yield 0.75 * right + 0.25 * (len(text) <= 200)

    return lambda texts, golds: [*scored(texts, golds)]


def trl():
    reward = adapters.trl(SPEC)
    return lambda texts, golds: reward(prompts=[""] * len(texts), completions=texts, answer=golds)


def verl():
    from assay.adapters.verl import compute_score

    async def together(texts, golds):
        await asyncio.gather(
            *(compute_score("sums", text, gold, {}, spec=SPEC) for text, gold in zip(texts, golds, strict=True))
        )

    return lambda texts, golds: asyncio.run(together(texts, golds))


def by_threads(function):
    """Return what calls a function of a text and its gold from threads."""
    threads = ThreadPoolExecutor(THREADS)
    return lambda texts, golds: [*threads.map(function, texts, golds)]


def openrlhf():
    reward = adapters.openrlhf(SPEC)
    return by_threads(lambda text, gold: reward([text], [""], [gold]))


def skyrl():
    environment = adapters.skyrl(SPEC)

    def step(text, gold):
        return environment({}, {"reward_spec": {"ground_truth": gold}}).step(text)

    return by_threads(step)


def nemo_gym():
    verify = adapters.nemo_gym(SPEC)

    async def together(texts, golds):
        bodies = (
            {"expected_answer": gold, "response": {"output": [{"type": "message", "content": text}]}}
            for text, gold in zip(texts, golds, strict=True)
        )
        await asyncio.gather(*(verify(None, body) for body in bodies))

    return lambda texts, golds: asyncio.run(together(texts, golds))


def gepa_batch():
    evaluate = adapters.gepa_batch(SPEC, lambda _, example: example["text"])
    return lambda texts, golds: evaluate(
        [("", {"text": text, "answer": gold}) for text, gold in zip(texts, golds, strict=True)]
    )


def gepa_adapter():
    adapter = adapters.gepa_adapter(SPEC, lambda _, example: example["input"])
    return lambda texts, golds: adapter.evaluate(
        [{"input": text, "answer": gold} for text, gold in zip(texts, golds, strict=True)], {}, capture_traces=True
    )


def dspy():
    from dspy import Example, Prediction

    metric = adapters.dspy(SPEC, field="text")
    return by_threads(lambda text, gold: metric(Example(answer=gold), Prediction(text=text)))


def inspect():
    from inspect_ai.model import ModelOutput
    from inspect_ai.scorer import Target
    from inspect_ai.solver import TaskState

    scorer = adapters.inspect(SPEC)

    def state(text):
        output = ModelOutput.from_content("mockllm/model", text)
        messages = [output.message]
        return TaskState("mockllm/model", 1, 1, "", messages, output=output)

    async def together(texts, golds):
        await asyncio.gather(*(scorer(state(text), Target(gold)) for text, gold in zip(texts, golds, strict=True)))

    return lambda texts, golds: asyncio.run(together(texts, golds))


def lm_eval():
    rewards = adapters.lm_eval(SPEC)
    return lambda texts, golds: rewards([[text] for text in texts], [{"answer": gold} for gold in golds])


def lighteval():
    from lighteval.metrics import apply_metric
    from lighteval.models.model_output import ModelResponse
    from lighteval.tasks.requests import Doc

    metric = adapters.lighteval(SPEC)
    return lambda texts, golds: apply_metric(
        [ModelResponse(text=[text]) for text in texts],
        [Doc(query="", choices=[gold], gold_index=0) for gold in golds],
        [metric],
    )


def evaluate():
    metric = adapters.evaluate(SPEC)
    return lambda texts, golds: metric.compute(predictions=texts, references=golds)


def evals():
    import json

    os.environ.setdefault("OPENAI_API_KEY", "none")
    from evals.record import DummyRecorder

    folder = Path(tempfile.mkdtemp())
    (folder / "data").mkdir()

    class Answer:
        def __init__(self, text):
            self.text = text

        def get_completions(self):
            return [self.text]

    def run(texts, golds):
        lines = (json.dumps({"input": text, "ideal": gold}) + "\n" for text, gold in zip(texts, golds, strict=True))
        (folder / "data" / "sums.jsonl").write_text("".join(lines), "utf-8")
        model = [lambda prompt, **_: Answer(prompt)]
        made = adapters.evals(SPEC, model, folder, samples_jsonl="sums.jsonl", name="sums.test")
        return made.run(DummyRecorder(None))

    return run


def verifiers():
    import verifiers.v1 as vf

    from assay.adapters.verifiers import reward

    function = reward(SPEC)

    class Sum(vf.TaskData):
        answer: str

    agent = vf.AgentInfo.model_construct(config=None)

    async def scored(text, gold):
        data = Sum(prompt="", answer=gold)
        nodes = [vf.MessageNode(message=vf.AssistantMessage(content=text), sampled=True)]
        trace = vf.Trace(task=vf.TraceTask(type="Sum", data=data), agent=agent, nodes=nodes)
        return await function(task=data, trace=trace)

    async def together(texts, golds):
        await asyncio.gather(*map(scored, texts, golds))

    return lambda texts, golds: asyncio.run(together(texts, golds))


def promptfoo():
    from assay.adapters.promptfoo import get_assert

    config = {"spec": SPEC}
    return lambda texts, golds: [
        get_assert(text, {"vars": {"answer": gold}, "config": config}) for text, gold in zip(texts, golds, strict=True)
    ]


ADAPTERS = (
    *(plain_loop, trl, verl, openrlhf, skyrl, nemo_gym, gepa_batch, gepa_adapter, dspy, inspect, lm_eval, lighteval),
    *(evaluate, evals, verifiers, promptfoo),
)


def milliseconds(call, size):
    """Return the median time of a call with a batch."""
    took = []
    for turn in range(-2, TURNS):
        texts, golds = batch(10_000 * (turn + 3) + size, size)
        began = time.perf_counter()
        with contextlib.redirect_stderr(io.StringIO()):
            call(texts, golds)
        took.append(time.perf_counter() - began)
    return 1e3 * median(took[2:])


def main():
    for made in ADAPTERS:
        try:
            call = made()
        except Exception as error:  # noqa: BLE001  (its package is not here)
            sys.stdout.write(f"{made.__name__:12} {type(error).__name__}: {str(error).splitlines()[0][:80]}\n")
            continue
        figures = ", ".join(f"{size} rows {milliseconds(call, size):.1f} ms" for size in SIZES)
        sys.stdout.write(f"{made.__name__:12} {figures}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
