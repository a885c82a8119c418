"""A metric for Hugging Face ``evaluate``: one pass over all predictions.

Read from evaluate 0.4.6: ``module.py``.
"""

import json
from collections.abc import Iterable
from typing import Any

from assay.adapters.verdicts import check_columns
from assay.errors import UsageError, package
from assay.names import COMPLETION
from assay.scoring.batching import Verifiers, plan_of
from assay.values.plain import plain

_ABSENT = ""
"""What is stored for a gold that was not given; a gold of null is JSON."""


def evaluate(spec: Verifiers, *, name: str | None = None, strict: bool = True) -> Any:
    """Return a metric: ``metric.compute(predictions=texts, references=golds)``, also in batches, ``combine`` and evaluators.

    Predictions are texts or lists of messages; references, ``answer`` to the checks, are golds of any type, and may be left out where
    no check reads them. Other keywords of ``compute`` are columns.

    Args:
        spec: Verifiers, a rubric, or a plan.
        name: The metric's name; by default the verifier's id.
        strict: As of ``assay.compile``.

    Returns:
        An ``evaluate.Metric``. Its result has ``reward`` and ``passed``, the means over what can be scored; the mean of each check; and
        ``unscored``, the number of the others. A mean of nothing is None.

    Raises:
        SpecError: A verifier cannot be used.
        UsageError: ``evaluate`` is not installed; or, from the metric, there are more predictions than references, or fewer.
    """
    with package("evaluate", "evaluate"):
        from datasets import Features, Value
        from evaluate import Metric, MetricInfo
    plan = plan_of(spec, strict=strict)
    checks = {short: column for column, (short, _) in check_columns(plan).items()}

    class AssayMetric(Metric):  # type: ignore[misc]
        """Means of rewards.

        NOTE: ``evaluate`` stores what it is given in columns of one type, which it takes from the first row: as JSON, all rows have one.
        """

        def _info(self) -> Any:
            return MetricInfo(
                description="Rewards of a spec of Assay.",
                citation="",
                features=Features(dict.fromkeys(("predictions", "references"), Value("string"))),
                module_name=name or plan.verifiers[0].id,
            )

        def add(self, *, prediction: Any = None, reference: Any = None) -> None:
            self.add_batch(predictions=[prediction], references=None if reference is None else [reference])

        def add_batch(self, *, predictions: Any = None, references: Any = None) -> None:
            texts = _as_json(() if predictions is None else predictions)
            golds = [_ABSENT] * len(texts) if references is None else _as_json(references)
            if len(texts) != len(golds):
                raise UsageError(f"There are {len(texts)} predictions and {len(golds)} references.")
            super().add_batch(predictions=texts, references=golds)

        def _compute(self, predictions: Any, references: Any, **columns: Any) -> dict[str, Any]:
            golds = {"answer": _values(references)} if set(references) - {_ABSENT} else {}
            rows = {**columns, **golds, COMPLETION: _values(predictions)}
            scores = plan.score_rows(rows)
            means = {**checks, "reward": "reward", "passed": "passed"}
            result = {short: scores[column].mean() for short, column in means.items()}
            return {**result, "unscored": scores["reward"].null_count()}

    return AssayMetric()


def _as_json(values: Iterable[Any]) -> list[str]:
    return [json.dumps(plain(value), default=str) for value in values]


def _values(texts: Iterable[str]) -> list[Any]:
    return [None if text == _ABSENT else json.loads(text) for text in texts]
