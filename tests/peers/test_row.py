"""Packages that call a function a sample, with the glue of the page about them: those that are installed here."""

import importlib.util
import sys

import pytest
import real_packages
from pages import DOCS, blocks_of

BLOCKS = blocks_of((DOCS / "trainers" / "row.md").read_text("utf-8"))

PROGRAMS = {
    "mlflow": """
import mlflow
mlflow.set_tracking_uri("sqlite:///runs.db")
from for_mlflow import quiz
rows = [{"inputs": {"q": "?"}, "outputs": "It is 4.", "expectations": {"answer": gold}} for gold in ("4", "5")]
metrics = mlflow.genai.evaluate(data=rows, scorers=[quiz]).metrics
assert (metrics["reward/mean"], metrics["right/mean"], metrics["short/mean"]) == (0.625, 0.5, 1.0)
""",
    "langsmith": """
import datetime, uuid
from for_langsmith import quiz
from langsmith import Client, evaluate
from langsmith.schemas import Example
client, now = Client(api_key="x", api_url="http://127.0.0.1:1", auto_batch_tracing=False), datetime.datetime.now()
ids = {"dataset_id": uuid.uuid4(), "created_at": now}
rows = [Example(id=uuid.uuid4(), inputs={"q": "?"}, outputs={"answer": gold}, **ids) for gold in ("4", "5", None)]
results = evaluate(lambda inputs: {"output": "It is 4."}, data=rows, evaluators=[quiz], upload_results=False, client=client)
scores = [[(each.key, each.score) for each in row["evaluation_results"]["results"]] for row in results]
right, wrong, unscored = sorted(scores, key=lambda each: -(each[0][1] or 0.0))
assert right == [("reward", 1.0), ("right", 1.0), ("short", 1.0)], scores
assert wrong == [("reward", 0.25), ("right", 0.0), ("short", 1.0)], scores
assert unscored == [("reward", None)], scores
""",
    "langfuse": """
from for_langfuse import quiz
from langfuse import Langfuse
client = Langfuse(public_key="x", secret_key="y", base_url="http://127.0.0.1:1", tracing_enabled=False)
rows = [{"input": "?", "expected_output": gold} for gold in ("4", "5", None)]
run = client.run_experiment(name="x", data=rows, task=lambda *, item, **_: "It is 4.", evaluators=[quiz])
scores = [[(each.name, each.value) for each in row.evaluations] for row in run.item_results]
assert scores == [[("reward", 1.0), ("right", 1.0), ("short", 1.0)], [("reward", 0.25), ("right", 0.0), ("short", 1.0)], []]
""",
    "braintrust": """
from braintrust import Eval
from for_braintrust import quiz
rows = [{"input": "?", "expected": gold} for gold in ("4", "5", None)]
run = Eval("x", data=rows, task=lambda input: "It is 4.", scores=[quiz], no_send_logs=True)
scores = sorted(((row.expected or "", row.scores) for row in run.results), key=lambda each: each[0])
assert scores[0] == ("", {"reward": None}), scores
assert scores[2] == ("5", {"reward": 0.25, "right": 0.0, "short": 1.0}), scores
""",
    "pydantic_evals": """
from for_pydantic_evals import Quiz
from pydantic_evals import Case, Dataset
cases = [Case(name=str(gold), inputs="?", expected_output=gold) for gold in ("4", "5", None)]
report = Dataset(name="x", cases=cases, evaluators=[Quiz()]).evaluate_sync(lambda inputs: "It is 4.", progress=False)
scores = {case.name: {name: score.value for name, score in case.scores.items()} for case in report.cases}
assert scores == {"4": {"reward": 1.0, "right": 1.0, "short": 1.0}, "5": {"reward": 0.25, "right": 0.0, "short": 1.0}, "None": {}}
""",
    "opik": """
from for_opik import quiz
from opik.evaluation.scorers.scorer_wrapper_metric import wrap_scorer_functions
(metric,) = wrap_scorer_functions([quiz], project_name=None)
wrong, unscored = (metric.score(dataset_item={"answer": gold}, task_outputs={"output": "It is 4."}) for gold in ("5", None))
assert [(each.name, each.value) for each in wrong] == [("reward", 0.25), ("right", 0.0), ("short", 1.0)]
assert [(each.name, each.scoring_failed) for each in unscored] == [("reward", True)]
""",
    "deepeval": """
from deepeval import evaluate
from deepeval.evaluate.configs import DisplayConfig
from deepeval.test_case import LLMTestCase
from for_deepeval import Quiz
cases = [LLMTestCase(input="?", actual_output="It is 4.", expected_output=gold) for gold in ("4", "5")]
run = evaluate(cases, [Quiz()], display_config=DisplayConfig(show_indicator=False, print_results=False))
scores = sorted((test.success, test.metrics_data[0].score, test.metrics_data[0].reason) for test in run.test_results)
assert scores == [(False, 0.25, 'right: the number is "4", expected 5'), (True, 1.0, "")], scores
""",
    "openenv": """
import asyncio
from types import SimpleNamespace
from for_openenv import Quiz
from openenv.core.env_server.types import Observation
observation = Observation(metadata={"answer": "5"})
assert asyncio.run(Quiz()(SimpleNamespace(message="It is 4."), observation)) == 0.25
assert observation.metadata["checks"] == {"right": 0.0, "short": 1.0}
""",
    "tinker_cookbook": """
import asyncio
from types import SimpleNamespace
from for_tinker import Quiz
class Renderer:
    def get_stop_sequences(self):
        return []
    def parse_response(self, action):
        return {"role": "assistant", "content": "It is 4."}, SimpleNamespace(is_stop_sequence=True, is_clean=True)
step = asyncio.run(Quiz(Renderer(), "2 + 3?", "5").step([1]))
assert (step.reward, step.metrics) == (0.25, {"right": 0.0, "short": 1.0})
""",
    "areal": """
import asyncio
from areal.api.reward_api import AsyncRewardWrapper
from for_areal import reward
async def main():
    wrapper = AsyncRewardWrapper(reward)
    return await asyncio.gather(*(wrapper("?", "It is 4.", [1], [2], answer=gold) for gold in ("4", "5")))
assert asyncio.run(main()) == [1.0, 0.25]
""",
    "axolotl": """
from axolotl.core.trainers.grpo import GRPOStrategy
assert GRPOStrategy.get_reward_func("for_trl.reward")(prompts=["?"], completions=["It is 4."], answer=["5"]) == [0.25]
""",
    None: """
import asyncio
from types import SimpleNamespace
from for_slime import reward
assert asyncio.run(reward(None, SimpleNamespace(response="It is 4.", label="5")))["reward"] == 0.25
""",
}
"""A run for each package; slime is on no registry, and is called as it calls."""


@pytest.mark.parametrize("package", PROGRAMS, ids=[name or "slime" for name in PROGRAMS])
def test_a_package_takes_the_row_function(package, tmp_path, monkeypatch):
    if package is not None and importlib.util.find_spec(package) is None:
        pytest.skip(f"needs pip install {package.replace('_', '-')}")
    for name, value in {
        "LANGSMITH_TRACING": "false",
        "OPIK_TRACK_DISABLE": "true",
        "DEEPEVAL_TELEMETRY_OPT_OUT": "YES",
    }.items():
        monkeypatch.setenv(name, value)
    for block in BLOCKS:
        if block.file is not None:
            (tmp_path / block.file).write_text(block.text, "utf-8")
    (tmp_path / "run.py").write_text(PROGRAMS[package], "utf-8")
    real_packages.run([sys.executable, "-W", "ignore", "run.py"], tmp_path)


def test_the_page_shows_what_is_printed(tmp_path):
    assert real_packages.run_page("row.md", tmp_path) == [block.text for block in BLOCKS if block.kind == "output"]
