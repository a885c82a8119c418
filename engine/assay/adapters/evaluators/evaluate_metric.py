"""A metric for Hugging Face ``evaluate``: one pass over all predictions.

Read from evaluate 0.4.6: ``module.py``.
"""

from typing import Any

from assay.adapters.packages import package
from assay.adapters.verdicts import check_columns
from assay.scoring.batching import Verifiers, plan_of

__all__ = ["evaluate"]


def evaluate(spec: Verifiers, *, name: str | None = None, strict: bool = True) -> Any:
    """Return a metric: ``metric.compute(predictions=texts, references=golds)``, also in batches, ``combine`` and evaluators.

    Args:
        spec: Verifiers, a rubric, or a plan.
        name: The metric's name; by default the verifier's id.
        strict: As of ``assay.compile``.

    Returns:
        An ``evaluate.Metric``. Its result has ``reward`` and ``passed``, the means over what can be scored; the mean of each check; and
        ``unscored``, the number of the others. A mean of nothing is None.

    Raises:
        SpecError: A verifier cannot be used.
        UsageError: ``evaluate`` is not installed.
    """
    with package("evaluate", "evaluate"):
        from datasets import Features, Sequence, Value
        from evaluate import Metric, MetricInfo
    plan = plan_of(spec, strict=strict)
    checks = check_columns(plan)
    golds = (Value("string"), Sequence(Value("string")))

    class AssayMetric(Metric):  # type: ignore[misc]
        """Means of rewards."""

        def _info(self) -> Any:
            return MetricInfo(
                description="Rewards of a spec of Assay.",
                citation="",
                features=[Features({"predictions": Value("string"), "references": gold}) for gold in golds],
                module_name=name or plan.verifiers[0].id,
            )

        def _compute(self, predictions: Any, references: Any) -> dict[str, Any]:
            scores = plan.score_rows({"completion": predictions, "answer": references})
            means = {"reward": "reward", "passed": "passed"} | {short: column for column, (short, _) in checks.items()}
            result = {short: scores[column].mean() for short, column in means.items()}
            return {**result, "unscored": scores["reward"].null_count()}

    return AssayMetric()
