"""A metric for lighteval, which gives it all responses of a task: one pass for all of them.

Read from lighteval 0.13.0: ``metrics/__init__.py`` and ``metrics/utils/metric_utils.py``.
"""

from collections.abc import Sequence
from itertools import islice
from typing import Any

from assay.adapters.verdicts import check_columns, mean_of_scored
from assay.compiling.plan import Plan
from assay.errors import package
from assay.names import COMPLETION
from assay.scoring.batching import Verifiers, plan_of


def lighteval(spec: Verifiers, *, name: str | None = None, per_check: bool = False, strict: bool = True) -> Any:
    """Return a metric, for ``metrics=`` of a ``LightevalTaskConfig``.

    The gold is the document's, ``answer`` to the checks, a list if it has several; the query is ``prompt``, and the fields of ``specific``
    are columns. The value of a document is the mean reward of its responses, NaN if none can be scored; the task's is the mean of the
    documents that have one.

    Args:
        spec: Verifiers, a rubric, or a plan.
        name: The metric's name; by default the verifier's id.
        per_check: Return a list of metrics: the reward's, and one for each check, ``<name>/<check>``. They share one pass.
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
    scores = _Pass(plan)

    class Rewards(SampleLevelComputation):  # type: ignore[misc]
        """A result column of the responses of a task."""

        def __init__(self, column: str) -> None:
            self.column = column

        def compute(self, responses: Sequence[Any], docs: Sequence[Any], **_: Any) -> list[float]:
            return scores.means(self.column, responses, docs)

    def metric(column: str, name: str) -> Any:
        return SampleLevelMetric(
            metric_name=name,
            higher_is_better=True,
            category=SamplingMethod.GENERATIVE,
            sample_level_fn=Rewards(column),
            corpus_level_fn=mean_of_scored,
            batched_compute=True,
        )

    name = name or plan.verifiers[0].id
    reward = metric("reward", name)
    checks = check_columns(plan).items()
    return [reward, *(metric(column, f"{name}/{short}") for column, (short, _) in checks)] if per_check else reward


class _Pass:
    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._of: tuple[Any, list[int], Any] | None = None

    def means(self, column: str, responses: Sequence[Any], docs: Sequence[Any]) -> list[float]:
        if self._of is None or self._of[0] is not responses:
            texts = [list(response.final_text) for response in responses]
            rows = [_row(doc, text) for doc, several in zip(docs, texts, strict=True) for text in several]
            self._of = responses, [len(several) for several in texts], self._plan.score_rows(rows)
        _, sizes, scores = self._of
        values = iter(scores[column].to_list())
        return [mean_of_scored([*islice(values, size)]) for size in sizes]


def _row(doc: Any, text: str) -> dict[str, Any]:
    golds = doc.get_golds()
    answer = {"answer": golds[0] if len(golds) == 1 else golds} if golds else {}
    return {**(doc.specific or {}), **answer, "prompt": doc.query, COMPLETION: text}
