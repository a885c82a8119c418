"""lm-evaluation-harness itself, offline: a task whose responses are scored by a filter."""

import json
import math
import sys
from pathlib import Path

import pytest
import real_packages
from sums import SPEC

from assay.adapters import lm_eval as filter_of

real_packages.needs("lm_eval", "pip install 'assay-rollouts[lm-eval]'")

from lm_eval import simple_evaluate  # noqa: E402
from lm_eval.api.model import LM  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")


class Adder(LM):
    """Adds, and every second time subtracts."""

    def __init__(self):
        super().__init__()
        self.calls = 0

    def generate_until(self, requests, **kwargs):
        texts = []
        for request in requests:
            self.calls += 1
            first, last = map(int, request.args[0].split("+"))
            texts.append(str(first + last if self.calls % 2 else first - last))
        return texts

    loglikelihood = loglikelihood_rolling = generate_until


@pytest.mark.parametrize("repeats", [1, 2])
def test_a_task_is_scored_by_a_filter(tmp_path, repeats):
    documents = [{"question": f"{at} + {at + 1}", "answer": str(2 * at + 1)} for at in range(1, 7)]
    documents.append({"question": "1 + 1", "answer": None})
    path = tmp_path / "documents.jsonl"
    path.write_text("".join(json.dumps(document) + "\n" for document in documents))
    rewards = filter_of(SPEC)
    task = {
        "task": "addition",
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": str(path)}},
        "test_split": "test",
        "output_type": "generate_until",
        "repeats": repeats,
        "doc_to_text": "{{question}}",
        "doc_to_target": "{{answer}}",
        "generation_kwargs": {"do_sample": True, "temperature": 1.0, "until": []},
        "filter_list": [{"name": "rewards", "filter": [{"function": "custom", "filter_fn": rewards}]}],
        "process_results": rewards.process_results,
        "metric_list": [
            {"metric": name, "aggregation": "nanmean", "higher_is_better": True}
            for name in ("reward", "right", "passed")
        ],
    }
    results = simple_evaluate(Adder(), tasks=[task], log_samples=True, bootstrap_iters=0, cache_requests=False)
    metrics = results["results"]["addition"]
    assert metrics["reward,rewards"] == pytest.approx((1.0 + 0.25) / 2)
    assert metrics["right,rewards"] == metrics["passed,rewards"] == pytest.approx(0.5)
    samples = results["samples"]["addition"]
    assert [len(sample["filtered_resps"][0]) for sample in samples] == [repeats] * 7
    assert math.isnan(samples[6]["reward"])
    assert samples[6]["filtered_resps"][0][0]["feedback"] == "gold is missing: answer"
    failing = [each for sample in samples[:6] for each in sample["filtered_resps"][0] if not each["passed"]]
    assert all(each["feedback"].startswith("right: does not contain") for each in failing)


def test_the_page_runs_as_it_stands(tmp_path):
    assert len(real_packages.glue_of("lm-eval.md")) <= real_packages.MOST_GLUE
    real_packages.run_page("lm-eval.md", tmp_path)


def test_the_recipe_runs_as_it_stands(tmp_path):
    programs = {"python": sys.executable, "inspect": Path(sys.executable).with_name("inspect")}
    real_packages.run_page("../recipes/from-inspect.md", tmp_path, programs=programs)
