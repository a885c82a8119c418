"""GEPA itself, offline: optimisations in which the feedback of checks makes a reflection model improve."""

import asyncio
import json
import sys

import pytest
import real_packages

from assay.adapters import gepa, gepa_adapter, gepa_batch

real_packages.needs("gepa", "pip install 'assay-rollouts[gepa]'")

from gepa import optimize  # noqa: E402
from gepa.optimize_anything import EngineConfig, GEPAConfig, ReflectionConfig, optimize_anything  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")

SPEC = {
    "id": "triage",
    "checks": [
        {"id": "bare-json", "type": "json_valid"},
        {"id": "keys", "type": "json_keys", "requiredKeys": ["urgency", "sentiment"]},
        {"id": "urgency", "type": "equals", "value": {"column": "answer"}, "on": [{"json": {"path": "urgency"}}]},
    ],
}
REQUESTS = [("It is down.", "high"), ("How do I pay?", "low"), ("All down!", "high"), ("Thanks.", "low")]
EXAMPLES = [{"input": text, "answer": answer, "additional_context": {}} for text, answer in REQUESTS]


def respond(instruction, request):
    """What a model that follows its instruction answers."""
    urgency = "high" if "down" in request else "low"
    fields = {name: urgency for name in ("urgency", "sentiment") if name in instruction}
    return json.dumps(fields) if "JSON" in instruction else f"It is {urgency}."


class Reflection:
    """A reflection model that does what the feedback asks for, and knows nothing else."""

    def __init__(self):
        self.prompts = []

    def __call__(self, prompt):
        self.prompts.append(prompt if isinstance(prompt, str) else json.dumps(prompt))
        asked = {"not valid JSON": "JSON", "missing keys": "urgency and sentiment", "not a JSON object": "JSON"}
        known = [wish for sign, wish in asked.items() if any(sign in each for each in self.prompts)]
        return f"```\nTriage the request: {', '.join(dict.fromkeys(known))}.\n```"


def improved(result, reflection):
    assert result.val_aggregate_scores[0] == 0.0
    assert max(result.val_aggregate_scores) == 1.0
    assert any("bare-json: the output is not valid JSON" in prompt for prompt in reflection.prompts)
    assert any("keys: missing keys: " in prompt for prompt in reflection.prompts)
    return True


def test_the_evaluator_of_the_default_adapter_makes_the_prompt_better():
    reflection = Reflection()
    result = optimize(
        {"system": "Triage the request."},
        EXAMPLES,
        EXAMPLES,
        task_lm=lambda messages: respond(messages[0]["content"], messages[1]["content"]),
        evaluator=gepa(SPEC),
        reflection_lm=reflection,
        max_metric_calls=120,
        frontier_type="objective",
    )
    assert improved(result, reflection)
    assert result.val_aggregate_subscores[0] == {"bare-json": 0.0, "keys": 0.0, "urgency": 0.0}


async def slowly(candidate, example):
    await asyncio.sleep(0)
    return respond(candidate["system"], example["input"])


@pytest.mark.parametrize(
    "run", [lambda candidate, example: respond(candidate["system"], example["input"]), slowly], ids=["sync", "async"]
)
def test_the_adapter_makes_the_prompt_better(run):
    reflection = Reflection()
    result = optimize(
        {"system": "Triage the request."},
        EXAMPLES,
        EXAMPLES,
        adapter=gepa_adapter(SPEC, run),
        reflection_lm=reflection,
        max_metric_calls=120,
        frontier_type="hybrid",
    )
    assert improved(result, reflection)
    assert not any('"answer"' in prompt or "high\n" in prompt for prompt in reflection.prompts)


def test_programs_that_raise_and_rollouts_without_a_score_do_not_end_the_run():
    def run(candidate, example):
        if "All" in example["input"]:
            raise TimeoutError("the model is busy")
        return None if "Thanks" in example["input"] else respond(candidate["system"], example["input"])

    reflection = Reflection()
    adapter = gepa_adapter(SPEC, run, unscored=0.0)
    result = optimize(
        {"system": "Triage the request."},
        EXAMPLES,
        EXAMPLES,
        adapter=adapter,
        reflection_lm=reflection,
        max_metric_calls=120,
    )
    assert max(result.val_aggregate_scores) == 0.5
    assert any("TimeoutError: the model is busy" in prompt for prompt in reflection.prompts)
    assert any("the completion is null" in prompt for prompt in reflection.prompts)


def test_optimize_anything_hands_over_whole_steps():
    reflection, sizes = Reflection(), []
    evaluate = gepa_batch(SPEC, lambda candidate, example: respond(candidate, example["input"]))

    def batch_evaluator(pairs):
        sizes.append(len(pairs))
        return evaluate(pairs)

    result = optimize_anything(
        "Triage the request.",
        batch_evaluator=batch_evaluator,
        dataset=EXAMPLES,
        config=GEPAConfig(
            engine=EngineConfig(max_metric_calls=120), reflection=ReflectionConfig(reflection_lm=reflection)
        ),
    )
    assert improved(result, reflection)
    assert max(sizes) == len(EXAMPLES)


def test_the_page_runs_as_it_stands(tmp_path):
    assert len(real_packages.glue_of("gepa.md")) <= real_packages.MOST_GLUE
    real_packages.run_page("gepa.md", tmp_path)


def test_the_recipe_runs_as_it_stands(tmp_path):
    real_packages.run_page("../recipes/gepa-feedback.md", tmp_path, programs={"python": sys.executable})
