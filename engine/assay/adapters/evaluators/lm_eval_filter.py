"""A filter for lm-evaluation-harness, which sees the responses of a whole task: one pass for all of them.

Read from lm-eval 0.4.13: ``api/filter.py``, ``filters/custom.py`` and ``ConfigurableTask.process_results``.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from assay.adapters.golds import with_gold
from assay.adapters.verdicts import check_columns, checks_of, feedback_of, mean_of_scored
from assay.compiling.plan import Plan
from assay.names import COMPLETION
from assay.scoring.batching import Verifiers, plan_of


def lm_eval(spec: Verifiers, *, gold: str = "answer", strict: bool = True) -> "ResponseFilter":
    """Return a filter, for ``filter_fn`` of the filter ``custom``; its ``process_results`` is that of the task.

    The fields of a document are columns. A response becomes its results, which the log of samples shows. A response that cannot be scored
    has no reward, and a document without any the value NaN: aggregate with ``nanmean``, which leaves it out.

    Args:
        spec: Verifiers, a rubric, or a plan.
        gold: The field of a document with the gold; checks read it as ``answer``.
        strict: As of ``assay.compile``.

    Raises:
        SpecError: A verifier cannot be used.
    """
    return ResponseFilter(plan_of(spec, strict=strict), gold)


class ResponseFilter:
    """A function of the responses and documents of a task."""

    def __init__(self, plan: Plan, gold: str) -> None:
        self._plan = plan
        self._gold = gold

    def __call__(self, resps: Iterable[Any], docs: Iterable[Mapping[str, Any]]) -> list[list[dict[str, Any]]]:
        """Return the results of each response: ``reward``, ``passed``, ``feedback`` and ``checks``."""
        # filters before this one may return a generator, and ``take_first`` a response instead of a list
        several = [[responses] if isinstance(responses, str) else [*responses] for responses in resps]
        rows = [
            with_gold(doc, self._gold) | {COMPLETION: response}
            for responses, doc in zip(several, docs, strict=True)
            for response in responses
        ]
        checks = check_columns(self._plan)
        results = iter(
            {
                "reward": result["reward"],
                "passed": result["passed"],
                "feedback": feedback_of(result),
                "checks": checks_of(result, checks),
            }
            for result in self._plan.score_rows(rows).to_dicts()
        )
        return [[next(results) for _ in responses] for responses in several]

    def process_results(self, doc: Mapping[str, Any], results: Sequence[Any]) -> dict[str, float]:
        """Return the metrics of a document: ``reward``, ``passed`` and those of the checks, means over its responses.

        Args:
            doc: The document.
            results: What the filter returned for each of its requests.
        """
        del doc
        # ``take_first`` after this filter leaves an outcome instead of a list
        several = [[outcomes] if isinstance(outcomes, Mapping) else outcomes for outcomes in results]
        outcomes = [outcome for responses in several for outcome in responses]
        names = [short for short, _ in check_columns(self._plan).values()]
        return {
            **{name: mean_of_scored([outcome[name] for outcome in outcomes]) for name in ("reward", "passed")},
            **{name: mean_of_scored([outcome["checks"].get(name) for outcome in outcomes]) for name in names},
        }
