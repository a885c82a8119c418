"""A metric for DSPy: for ``dspy.GEPA``, for other optimisers, and for ``dspy.Evaluate``.

Read from dspy 3.4.1: ``teleprompt/gepa`` and ``teleprompt/bootstrap.py``.
"""

import json
from collections.abc import Callable
from typing import Any

from assay.adapters.gepa_evaluators import Scorer
from assay.errors import UsageError, did_you_mean, listed, package
from assay.scoring.batching import Verifiers
from assay.values.plain import plain


def dspy(
    spec: Verifiers, *, field: str | None = None, unscored: float = 0.0, strict: bool = True
) -> Callable[..., Any]:
    """Return a metric: score, feedback, and the scores of the checks as objectives. Calls of several threads are scored together.

    The fields of an example are columns, ``answer`` among them. DSPy takes numbers only, so a prediction that cannot be scored has the
    score ``unscored``, and the reason as feedback. Where an optimiser asks whether a trace is an example to learn from, the metric says
    whether it passed.

    Args:
        spec: Verifiers, a rubric, or a plan.
        field: The field of a prediction that is the completion; by default its last one. What is not text is read as JSON.
        unscored: The score of a prediction that cannot be scored.
        strict: As of ``assay.compile``.

    Returns:
        ``metric(gold, pred, trace, pred_name, pred_trace)``.

    Raises:
        SpecError: A verifier cannot be used.
        UsageError: DSPy is not installed; or, from the metric, a prediction has no such field.
    """
    with package("DSPy", "dspy"):
        from dspy import Prediction
    scorer = Scorer(spec, unscored, strict=strict)

    def metric(gold: Any, pred: Any, trace: Any = None, pred_name: str | None = None, pred_trace: Any = None) -> Any:
        (outcome,) = scorer.outcomes([(dict(gold.items()), _completion(pred, field))])
        if trace is not None and pred_name is None and pred_trace is None:  # a few-shot optimiser collects examples
            return outcome["passed"]
        return Prediction(score=outcome["score"], feedback=outcome["feedback"], objective_scores=outcome["checks"])

    return metric


def _completion(pred: Any, field: str | None) -> str | None:
    names = list(pred.keys())
    name = field or (names[-1] if names else "")
    if name not in names:
        raise UsageError(
            f"The prediction has no field `{name}`.", did_you_mean(name, names) or f"It has {listed(names)}."
        )
    value = plain(pred[name])
    return value if value is None or isinstance(value, str) else json.dumps(value, default=str)
