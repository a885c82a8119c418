"""The ten checks as scorers of inspect_ai, two of its own and eight written for it: ``pip install 'assay[bench]'``."""

import asyncio

from inspect_ai.model import ChatMessageAssistant, ChatMessageUser, ModelName, ModelOutput
from inspect_ai.scorer import CORRECT, INCORRECT, Score, Target, accuracy, includes, scorer
from inspect_ai.solver import TaskState

from contenders.ten_functions import FUNCTIONS


def _scorer(name):
    function = FUNCTIONS[name]

    @scorer(metrics=[accuracy()], name=name)
    def made():
        async def score(state, target):
            del target
            return Score(value=CORRECT if function(state.output.completion) else INCORRECT)

        return score

    return made()


def prepare(verifiers, frame):
    del verifiers
    own = {"contains": Target("the"), "however": Target("However")}
    scorers = [(includes() if name in own else _scorer(name), own.get(name, Target(""))) for name in FUNCTIONS]
    states = []
    for at, text in enumerate(frame["completion"].to_list()):
        said = ModelOutput.from_content("none/none", text)
        messages = [ChatMessageUser(content="Say something."), ChatMessageAssistant(content=text)]
        states.append(TaskState(ModelName("none/none"), at, 1, "Say something.", messages, output=said))
    return scorers, states


def run(prepared, frame):
    del frame
    return asyncio.run(_score(*prepared))


async def _score(scorers, states):
    found = [[(await score(state, target)).value == CORRECT for score, target in scorers] for state in states]
    by_check = dict(
        zip(FUNCTIONS, ([float(one) for one in values] for values in zip(*found, strict=True)), strict=True)
    )
    return {"reward": [sum(row) / len(scorers) for row in found], **by_check}
