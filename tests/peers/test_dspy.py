"""DSPy itself, offline: an optimisation in which the feedback of checks makes a reflection model improve, and other users of a metric."""

import json

import pytest
import real_packages

from assay.adapters import dspy as metric_of

real_packages.needs("dspy", "pip install 'assay-rollouts[dspy]'")

import dspy  # noqa: E402
from dspy.lm15 import Message, Response, TextPart, Usage  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")

SPEC = {
    "id": "triage",
    "checks": [
        {"id": "one-word", "type": "max_length", "value": 6},
        {"id": "urgency", "type": "equals", "value": {"column": "answer"}},
    ],
}
EXAMPLES = [
    dspy.Example(request=request, answer=answer).with_inputs("request")
    for request, answer in [
        ("It is down.", "high"),
        ("How do I pay?", "low"),
        ("Thanks.", "low"),
        ("All down.", "high"),
    ]
]


class Function:
    """An engine that answers a prompt by a function, and keeps the prompts."""

    def __init__(self, answer):
        self.answer = answer
        self.prompts = []

    def complete(self, request):
        self.prompts.append(
            "\n".join([str(request.system or ""), *(message.text or "" for message in request.messages)])
        )
        parts = [TextPart(self.answer(self.prompts[-1]))]
        return Response(None, "function", Message.assistant(parts), "stop", Usage(0, 0, 0))


def follow(prompt):
    urgency = "high" if "down." in prompt.rpartition("request ## ]]")[2] else "low"
    return f"[[ ## urgency ## ]]\n{urgency if 'one word' in prompt else f'It is {urgency}.'}"


def reflect(prompt):
    wish = " in one word" if "one-word: has more than 6 characters" in prompt else ""
    return json.dumps({"new_instruction": f"Triage the request{wish}."})


def lm(engine):
    return dspy.LM("function", engine=engine, cache=False)


@pytest.mark.parametrize("threads", [1, 4])
def test_gepa_of_dspy_makes_the_instruction_better(threads):
    reflection = Function(reflect)
    metric = metric_of(SPEC, field="urgency")
    with dspy.context(lm=lm(Function(follow))):
        optimiser = dspy.GEPA(
            metric=metric,
            reflection_lm=lm(reflection),
            max_metric_calls=40,
            track_stats=True,
            num_threads=threads,
            gepa_kwargs={"frontier_type": "objective"},
        )
        better = optimiser.compile(dspy.Predict("request -> urgency"), trainset=EXAMPLES, valset=EXAMPLES)
        assert dspy.Evaluate(devset=EXAMPLES, metric=metric, num_threads=threads)(better).score == 100.0
    assert better.signature.instructions == "Triage the request in one word."
    assert better.detailed_results.val_aggregate_scores[0] == 0.0
    assert max(better.detailed_results.val_aggregate_scores) == 1.0
    assert "urgency: does not equal" in "".join(reflection.prompts)


def test_a_few_shot_optimiser_learns_from_what_passes():
    model = Function(lambda prompt: "[[ ## urgency ## ]]\nlow")
    with dspy.context(lm=lm(model)):
        optimiser = dspy.BootstrapFewShot(metric=metric_of(SPEC), max_bootstrapped_demos=4, max_labeled_demos=0)
        program = optimiser.compile(dspy.Predict("request -> urgency"), trainset=EXAMPLES)
    assert [demo.request for demo in program.demos] == ["How do I pay?", "Thanks."]


def test_predictions_that_cannot_be_scored_do_not_end_a_run():
    metric = metric_of(SPEC, unscored=0.0)
    examples = [EXAMPLES[1], dspy.Example(request="Who?", answer=None).with_inputs("request")]
    with dspy.context(lm=lm(Function(lambda prompt: "[[ ## urgency ## ]]\nlow"))):
        result = dspy.Evaluate(devset=examples, metric=metric)(dspy.Predict("request -> urgency"))
    assert result.score == 50.0
    assert result.results[1][2].feedback == "gold is missing: answer"


def test_the_page_runs_as_it_stands(tmp_path):
    assert len(real_packages.glue_of("dspy.md")) <= real_packages.MOST_GLUE
    real_packages.run_page("dspy.md", tmp_path)
