"""A metric for lighteval, which gives it all responses of a task: one pass for all of them.

Read from lighteval 0.13.0: ``metrics/__init__.py`` and ``metrics/utils/metric_utils.py``.
"""

from collections.abc import Sequence
from typing import Any

from assay.adapters.packages import package
from assay.adapters.verdicts import mean_of_scored
from assay.names import COMPLETION
from assay.scoring.batching import Verifiers, plan_of

__all__ = ["lighteval"]


def lighteval(spec: Verifiers, *, name: str | None = None, strict: bool = True) -> Any:
    """Return a metric, for ``metrics=`` of a ``LightevalTaskConfig``.

    The gold is the document's, ``answer`` to the checks, a list if it has several; the query is ``prompt``, and the fields of ``specific``
    are columns. The value of a document is the mean reward of its responses, NaN if none can be scored; the task's is the mean of the
    documents that have one.

    Args:
        spec: Verifiers, a rubric, or a plan.
        name: The metric's name; by default the verifier's id.
        strict: As of ``assay.compile``.

    Raises:
        SpecError: A verifier cannot be used.
        UsageError: lighteval is not installed.
    """
    with package("lighteval", "lighteval"):
        from lighteval.metrics.metrics_sample import SampleLevelComputation
        from lighteval.metrics.utils.metric_utils import SampleLevelMetric
        from lighteval.tasks.requests import SamplingMethod
    plan = plan_of(spec, strict=strict)

    class Rewards(SampleLevelComputation):  # type: ignore[misc]
        """Rewards of the responses of a task."""

        def compute(self, responses: Sequence[Any], docs: Sequence[Any], **_: Any) -> list[float]:
            """Return the mean reward of each document."""
            texts = [list(response.final_text) for response in responses]
            rows = [_row(doc, text) for doc, several in zip(docs, texts, strict=True) for text in several]
            rewards = iter(plan.score_rows(rows)["reward"].to_list())
            return [mean_of_scored([next(rewards) for _ in several]) for several in texts]

    return SampleLevelMetric(
        metric_name=name or plan.verifiers[0].id,
        higher_is_better=True,
        category=SamplingMethod.GENERATIVE,
        sample_level_fn=Rewards(),
        corpus_level_fn=mean_of_scored,
        batched_compute=True,
    )


def _row(doc: Any, text: str) -> dict[str, Any]:
    golds = doc.get_golds()
    answer = {"answer": golds[0] if len(golds) == 1 else golds} if golds else {}
    return {**(doc.specific or {}), **answer, "prompt": doc.query, COMPLETION: text}
