"""The checks of a spec as scorers of inspect_ai, its own where it has one: ``pip install 'assay-rollouts[bench]'``."""

import asyncio

from inspect_ai.model import ChatMessageAssistant, ChatMessageUser, ModelName, ModelOutput
from inspect_ai.scorer import CORRECT, INCORRECT, Score, Target, accuracy, includes, scorer
from inspect_ai.solver import TaskState

from contenders.spec import checks_of
from contenders.spec_functions import functions_of


def _scorer(name, function):
    @scorer(metrics=[accuracy()], name=name)
    def made():
        async def score(state, target):
            del target
            return Score(value=CORRECT if function(state.output.completion) else INCORRECT)

        return score

    return made()


def prepare(spec, frame):
    own = {
        check["id"]: Target(check["value"])
        for check in checks_of(spec)
        if check["type"] == "contains" and not check.get("caseSensitive", False)
    }
    scorers = {
        name: (includes() if name in own else _scorer(name, function), own.get(name, Target("")))
        for name, function in functions_of(spec).items()
    }
    states = []
    for at, text in enumerate(frame["completion"].to_list()):
        output = ModelOutput.from_content("none/none", text)
        messages = [ChatMessageUser(content="Say something."), ChatMessageAssistant(content=text)]
        states.append(TaskState(ModelName("none/none"), at, 1, "Say something.", messages, output=output))
    return scorers, states


def run(prepared, frame):
    del frame
    scorers, states = prepared
    rows = asyncio.run(_score(list(scorers.values()), states))
    verdicts = zip(scorers, (list(map(float, column)) for column in zip(*rows, strict=True)), strict=True)
    return {"reward": [sum(row) / len(scorers) for row in rows], **dict(verdicts)}


async def _score(scorers, states):
    return [[(await score(state, target)).value == CORRECT for score, target in scorers] for state in states]
