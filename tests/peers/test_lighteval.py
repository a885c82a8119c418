"""lighteval itself, offline: a task of local files that runs to its end with a spec as its metric."""

import json
import math

import pytest
import real_packages
from sums import SPEC

import assay
from assay.adapters import lighteval as metric_of

real_packages.needs("lighteval", "pip install 'assay-rollouts[lighteval]'")

from lighteval.metrics import apply_metric  # noqa: E402
from lighteval.models.model_output import ModelResponse  # noqa: E402
from lighteval.tasks.requests import Doc  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")


TASK = """
from assay.adapters import lighteval
from lighteval.tasks.lighteval_task import LightevalTaskConfig
from lighteval.tasks.requests import Doc

def prompt(line, task_name=None):
    return Doc(task_name=task_name, query=line["question"], choices=[line["answer"]], gold_index=0)

TASKS_TABLE = [LightevalTaskConfig(
    name="addition", prompt_function=prompt, hf_repo=FOLDER, hf_subset="default", metrics=lighteval(SPEC, name="reward", per_check=True),
    hf_avail_splits=["test"], evaluation_splits=["test"], generation_size=8, stop_sequence=[],
)]
"""


def test_a_task_runs_to_its_end(tmp_path, monkeypatch):
    from lighteval.logging.evaluation_tracker import EvaluationTracker
    from lighteval.models.dummy.dummy_model import DummyModel, DummyModelConfig
    from lighteval.pipeline import ParallelismManager, Pipeline, PipelineParameters

    class Four(DummyModel):
        def greedy_until(self, docs):
            return [ModelResponse(text=["It is 4."]) for _ in docs]

    # its own tasks, of which it imports all, ask the network for files
    for loader in ("_load_from_files", "_load_from_subdirs"):
        monkeypatch.setattr(f"lighteval.tasks.registry.Registry.{loader}", lambda *_: {})
    (tmp_path / "data").mkdir()
    rows = [{"question": f"{at} + {at}?", "answer": str(2 * at)} for at in range(5)]
    (tmp_path / "data" / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    names = f"FOLDER, SPEC = {str(tmp_path / 'data')!r}, {SPEC!r}\n"
    (tmp_path / "addition_task.py").write_text(names + TASK)
    parameters = PipelineParameters(
        launcher_type=ParallelismManager.NONE, custom_tasks_directory=str(tmp_path / "addition_task.py")
    )
    config = DummyModelConfig(model_name="four", cache_dir=str(tmp_path / "cache"))
    pipeline = Pipeline(
        tasks="addition|0",
        pipeline_parameters=parameters,
        evaluation_tracker=EvaluationTracker(output_dir=str(tmp_path / "out")),
        model=Four(config),
    )
    pipeline.evaluate()
    results = pipeline.get_results()["results"]
    assert results["addition:0"]["reward"] == pytest.approx((1.0 + 4 * 0.25) / 5)
    assert results["addition:0"]["reward/right"] == pytest.approx(1 / 5)
    assert results["addition:0"]["reward/short"] == 1.0


def test_documents_may_have_several_golds_and_responses_and_none():
    metric = metric_of(SPEC)
    docs = [
        Doc(query="2 + 2?", choices=["4", "four"], gold_index=[0, 1]),
        Doc(query="2 + 2?", choices=["4"], gold_index=0),
        Doc(query="2 + 2?", choices=[], gold_index=[]),
        Doc(query="2 + 2?", choices=[], gold_index=[], specific={"answer": "4"}),
    ]
    responses = [ModelResponse(text=texts) for texts in (["four"], ["4", "5"], ["4"], ["4"])]
    values = [value["math"] for value in apply_metric(responses, docs, [metric])]
    assert values[:2] == [1.0, 0.625]
    assert math.isnan(values[2])
    assert values[3] == 1.0
    assert metric.get_corpus_aggregations()["math"](values) == pytest.approx((1.0 + 0.625 + 1.0) / 3)


def test_the_metrics_of_checks_share_one_pass(monkeypatch):
    sizes, score_rows = [], assay.Plan.score_rows
    monkeypatch.setattr(assay.Plan, "score_rows", lambda plan, rows: sizes.append(len(rows)) or score_rows(plan, rows))
    metrics = metric_of(SPEC, per_check=True)
    docs = [Doc(query="2 + 2?", choices=["4"], gold_index=0), Doc(query="?", choices=[], gold_index=[])]
    for text, right in ("4", 1.0), ("5", 0.0):
        responses = [ModelResponse(text=[text]), ModelResponse(text=["4", "5"])]
        first, second = apply_metric(responses, docs, metrics)
        assert (first["math/right"], first["math/short"]) == (right, 1.0)
        assert all(math.isnan(value) for value in second.values())
    assert sizes == [3, 3]


def test_the_page_runs_as_it_stands(tmp_path):
    assert len(real_packages.glue_of("lighteval.md")) <= real_packages.MOST_GLUE
    real_packages.run_page("lighteval.md", tmp_path)
