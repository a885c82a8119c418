"""Hugging Face evaluate and datasets themselves, offline: a metric, and a dataset that is mapped."""

import pytest
import real_packages
from sums import SPEC

from assay.adapters import evaluate as metric_of

real_packages.needs("evaluate", "pip install 'assay[evaluate]'")

import evaluate  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")

EXPECTED = {"reward": pytest.approx(2 / 3), "passed": pytest.approx(1 / 3), "right": pytest.approx(2 / 3)}


@pytest.mark.parametrize("references", [["4", "4", "4"], [["4", "four"], ["4"], ["5", "4"]]], ids=["texts", "lists"])
def test_a_metric_has_means_at_once_and_in_batches(references):
    predictions, metric = ["4", "5", "4" * 11], metric_of(SPEC)
    expected = {**EXPECTED, "short": pytest.approx(2 / 3), "unscored": 0}
    assert metric.compute(predictions=predictions, references=references) == expected
    for at in range(3):
        metric.add_batch(predictions=predictions[at : at + 1], references=references[at : at + 1])
    assert metric.compute() == expected


def test_metrics_combine_and_count_what_is_unscored():
    both = evaluate.combine(
        [metric_of(SPEC), metric_of({"id": "long", "checks": [{"type": "min_length", "value": 2}]})]
    )
    result = both.compute(predictions=["4", None], references=["4", "4"])
    assert result["right"] == 1.0
    assert {value for name, value in result.items() if "unscored" in name} == {1}


def test_the_page_runs_as_it_stands(tmp_path):
    assert len(real_packages.glue_of("evaluate.md")) <= real_packages.MOST_GLUE
    real_packages.run_page("evaluate.md", tmp_path)
