"""Hugging Face evaluate and datasets themselves, offline: a metric, and a dataset that is mapped."""

import pytest
import real_packages
from sums import SPEC

from assay.adapters import evaluate as metric_of
from assay.errors import ColumnsError, UsageError

real_packages.needs("evaluate", "pip install 'assay-rollouts[evaluate]'")

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


LONG = {"id": "v", "checks": [{"id": "long", "type": "min_length", "value": 2}]}


@pytest.mark.parametrize(
    ("predictions", "reward", "unscored"),
    [(["4", "44"], 0.5, 0), (["44", None], 1.0, 1), ([None, None], None, 2), ([], None, 0)],
    ids=["texts", "one null", "nulls", "nothing"],
)
def test_a_spec_without_golds_needs_no_references(predictions, reward, unscored):
    expected = {"reward": reward, "passed": reward, "long": reward, "unscored": unscored}
    assert metric_of(LONG).compute(predictions=predictions) == expected
    assert metric_of(LONG).compute(predictions=predictions, references=[None for _ in predictions]) == expected
    if predictions:
        metric = metric_of(LONG)
        for prediction in predictions:
            metric.add(prediction=prediction)
        assert metric.compute() == expected


@pytest.mark.parametrize(
    ("references", "right"),
    [([4, None], 1.0), ([None, ["4", "5"]], 1.0), ([[None], [4, "x"]], 1.0), ([[], [5, 4]], 1.0), ([4, "x"], 0.5)],
    ids=["numbers", "null first", "null within", "empty first", "mixed"],
)
def test_golds_are_of_any_type(references, right):
    result = metric_of(SPEC).compute(predictions=["4", "4"], references=references)
    assert (result["right"], result["unscored"]) == (right, 0 if references == [4, "x"] else 1)


def test_predictions_may_be_messages_and_other_keywords_are_columns():
    spec = {"checks": [{"id": "right", "type": "contains", "value": {"column": "gold"}}]}
    predictions = [[{"role": "assistant", "content": "It is 4."}], "5"]
    assert metric_of(spec).compute(predictions=predictions, gold=["4", 4])["right"] == 0.5


def test_golds_that_are_absent_or_too_few_are_refused_and_the_metric_goes_on():
    metric = metric_of(SPEC)
    with pytest.raises(ColumnsError, match="has no `answer`"):
        metric.compute(predictions=["4"])
    with pytest.raises(UsageError, match="2 predictions and 1 references"):
        metric.compute(predictions=["4", "5"], references=["4"])
    assert metric.compute(predictions=["4"], references=["4"])["reward"] == 1.0


def test_the_page_runs_as_it_stands(tmp_path):
    assert len(real_packages.glue_of("evaluate.md")) <= real_packages.MOST_GLUE
    real_packages.run_page("evaluate.md", tmp_path)
