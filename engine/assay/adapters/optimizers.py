"""What optimisers of prompts call: evaluators for GEPA, whose reflection model reads the feedback of the checks, and a metric for DSPy.

GEPA and DSPy take numbers only, and an exception ends a run of GEPA: a rollout that cannot be scored, or whose program raised, has the
score ``unscored``, and the reason as feedback. Read from gepa 0.1.4 (``core/adapter.py``, ``adapters/default_adapter``,
``adapters/optimize_anything_adapter``) and dspy 3.4.1 (``teleprompt/gepa``, ``teleprompt/bootstrap.py``).
"""

import asyncio
import importlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from assay.adapters.verdicts import check_columns, verdict_of
from assay.calls.coroutines import in_own_loop, maybe_await
from assay.compiling.columns import needed_columns
from assay.errors import RAISED, ColumnsError, UsageError, describe_error, did_you_mean, listed, package
from assay.names import COMPLETION
from assay.scoring.batching import Batcher, Verifiers
from assay.values.plain import plain

Run = Callable[[Any, Any], Any]
"""A program: a candidate and an example to a completion; it may be async."""

_PROMPTS = ("input", "prompt", "question")
"""Names of the prompt in an example; the first that it has is read as ``prompt``."""

_THREADS = 16


def gepa(spec: Verifiers, *, unscored: float = 0.0, strict: bool = True) -> Callable[[Mapping[str, Any], str], Any]:
    """Return an evaluator, for ``evaluator=`` of ``gepa.optimize`` and of its ``DefaultAdapter``.

    The fields of an example are columns, ``answer`` among them; so are those of its ``additional_context``.

    Args:
        spec: Verifiers, a rubric, a plan, or the name of a grader.
        unscored: The score of a response that cannot be scored; the reason is its feedback.
        strict: As of ``assay.compile``.

    Returns:
        A function of an example and a response to an ``EvaluationResult`` with the scores of the checks as objectives.

    Raises:
        SpecError: A verifier cannot be used.
        UsageError: GEPA is not installed.
    """
    result_type = _of_gepa("adapters.default_adapter.default_adapter", "EvaluationResult")
    scorer = PairScorer(spec, unscored, strict=strict)

    def evaluator(data: Mapping[str, Any], response: str) -> Any:
        (outcome,) = scorer.outcomes([(data, response)])
        return result_type(outcome["score"], outcome["feedback"], outcome["checks"])

    return evaluator


def gepa_batch(
    spec: Verifiers, run: Run, *, unscored: float = 0.0, strict: bool = True
) -> Callable[..., list[tuple[float, dict[str, Any]]]]:
    """Return an evaluator of all pairs of a step, for ``batch_evaluator=`` of ``optimize_anything``.

    Args:
        spec: Verifiers, a rubric, a plan, or the name of a grader.
        run: The program: ``run(candidate, example)`` returns a completion. If it is async, the calls of a step run together.
        unscored: The score of a pair that cannot be scored, or whose program raised.
        strict: As of ``assay.compile``.

    Returns:
        A function of pairs to scores, each with what the reflection model reads: ``Input``, ``Output``, ``Feedback``, and the scores
        of the checks as ``scores``.

    Raises:
        SpecError: A verifier cannot be used.
    """
    scorer = PairScorer(spec, unscored, strict=strict)

    def batch_evaluator(pairs: Sequence[tuple[Any, Any]]) -> list[tuple[float, dict[str, Any]]]:
        scored = []
        for outcome in scorer.run(run, pairs):
            inputs = {} if outcome["inputs"] is None else {"Input": outcome["inputs"]}
            read = {"Output": outcome["shown"], "Feedback": outcome["feedback"], "scores": outcome["checks"]}
            scored.append((outcome["score"], inputs | read))
        return scored

    return batch_evaluator


def gepa_adapter(spec: Verifiers, run: Run, *, unscored: float = 0.0, strict: bool = True) -> "BatchAdapter":
    """Return an adapter, for ``adapter=`` of ``gepa.optimize``: it runs the program and scores each batch in one pass.

    Args:
        spec: Verifiers, a rubric, a plan, or the name of a grader.
        run: The program: ``run(candidate, example)`` returns a completion; the candidate is a mapping of components to texts. If it
            is async, the calls of a batch run together.
        unscored: The score of an example that cannot be scored, or whose program raised.
        strict: As of ``assay.compile``.

    Raises:
        SpecError: A verifier cannot be used.
        UsageError: GEPA is not installed.
    """
    return BatchAdapter(PairScorer(spec, unscored, strict=strict), run, _of_gepa("core.adapter", "EvaluationBatch"))


class BatchAdapter:
    """An adapter in the shape of ``GEPAAdapter``.

    Attributes:
        propose_new_texts: None: GEPA's own reflection is used.
    """

    propose_new_texts = None

    def __init__(self, scorer: "PairScorer", run: Run, batch_type: Any) -> None:
        self._scorer = scorer
        self._run = run
        self._batch_type = batch_type

    def evaluate(self, batch: Sequence[Any], candidate: Mapping[str, str], capture_traces: bool = False) -> Any:
        """Run a candidate on a batch and return an ``EvaluationBatch``, whose outputs are the completions."""
        outcomes = self._scorer.run(self._run, [(candidate, example) for example in batch])
        return self._batch_type(
            outputs=[outcome["completion"] for outcome in outcomes],
            scores=[outcome["score"] for outcome in outcomes],
            trajectories=outcomes if capture_traces else None,
            objective_scores=[outcome["checks"] for outcome in outcomes],
        )

    def make_reflective_dataset(
        self, candidate: Mapping[str, str], eval_batch: Any, components_to_update: Sequence[str]
    ) -> dict[str, list[dict[str, Any]]]:
        """Return for each component what its reflection reads: inputs, outputs and feedback of the batch."""
        del candidate
        records = [
            {"Inputs": outcome["inputs"], "Generated Outputs": outcome["shown"], "Feedback": outcome["feedback"]}
            for outcome in eval_batch.trajectories
        ]
        return {component: list(records) for component in components_to_update}


def dspy(
    spec: Verifiers, *, field: str | None = None, unscored: float = 0.0, strict: bool = True
) -> Callable[..., Any]:
    """Return a metric: score, feedback, and the scores of the checks as objectives. Calls of several threads are scored together.

    The fields of an example are columns, ``answer`` among them. DSPy takes numbers only, so a prediction that cannot be scored has the
    score ``unscored``, and the reason as feedback. Where an optimiser asks whether a trace is an example to learn from, the metric says
    whether it passed.

    Args:
        spec: Verifiers, a rubric, a plan, or the name of a grader.
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
    scorer = PairScorer(spec, unscored, strict=strict)

    def metric(gold: Any, pred: Any, trace: Any = None, pred_name: str | None = None, pred_trace: Any = None) -> Any:
        (outcome,) = scorer.outcomes([(dict(gold.items()), _completion(pred, field))])
        if trace is not None and pred_name is None and pred_trace is None:  # a few-shot optimiser collects examples
            return outcome["passed"]
        return Prediction(score=outcome["score"], feedback=outcome["feedback"], objective_scores=outcome["checks"])

    return metric


class PairScorer:
    """Scores of pairs of an example and a completion, as plain mappings."""

    def __init__(self, spec: Verifiers, unscored: float, *, strict: bool) -> None:
        self._batcher = Batcher(spec, strict=strict)
        self._unscored = unscored
        self._checks = check_columns(self._batcher.plan)
        self._golds = {*needed_columns(self._batcher.plan.verifiers), "answer"} - {COMPLETION, *_PROMPTS}

    def run(self, run: Run, pairs: Sequence[tuple[Any, Any]]) -> list[dict[str, Any]]:
        """Run a program on pairs of a candidate and an example, and score the completions in one pass."""

        def called(candidate: Any, example: Any) -> Any:
            try:
                return run(candidate, example)
            except RAISED as error:
                return error

        async def awaited(value: Any) -> Any:
            try:
                return await maybe_await(value)
            except RAISED as error:
                return error

        async def together() -> list[Any]:
            return await asyncio.gather(*map(awaited, completions))

        completions = [called(*pair) for pair in pairs]
        if any(map(asyncio.iscoroutine, completions)):
            completions = in_own_loop(together, _THREADS)
        return self.outcomes(
            [(example, completion) for (_, example), completion in zip(pairs, completions, strict=True)]
        )

    def outcomes(self, pairs: Sequence[tuple[Any, Any]]) -> list[dict[str, Any]]:
        """Score pairs of an example and a completion; in the place of a completion may be what the program raised."""
        rows = [
            _columns(example) | {COMPLETION: None if isinstance(completion, BaseException) else completion}
            for example, completion in pairs
        ]
        scored = self._batcher.outcomes_sync(rows)
        if (missing := next((outcome for outcome in scored if isinstance(outcome, ColumnsError)), None)) is not None:
            raise missing  # it says nothing about a completion
        return [self._outcome(*pair, result) for pair, result in zip(pairs, scored, strict=True)]

    def _outcome(self, example: Any, completion: Any, result: Any) -> dict[str, Any]:
        failure = next((each for each in (completion, result) if isinstance(each, BaseException)), None)
        raised = None if failure is None else describe_error(failure)
        verdict: dict[str, Any] = {"reward": None} if failure is not None else verdict_of(result, self._checks)
        unscored = verdict["reward"] is None
        names = (short for short, _ in self._checks.values())
        return {
            "score": self._unscored if unscored else float(verdict["reward"]),
            "feedback": raised or verdict["feedback"],
            "checks": dict.fromkeys(names, self._unscored) if unscored else verdict["checks"],
            "passed": not unscored and bool(verdict["passed"]),
            "completion": None if isinstance(completion, BaseException) else completion,
            "shown": raised or completion,
            "inputs": _inputs(example, self._golds),
        }


def _columns(example: Any) -> dict[str, Any]:
    if not isinstance(example, Mapping):
        return {} if example is None else {"prompt": example}
    context = example.get("additional_context")
    fields = {**context, **example} if isinstance(context, Mapping) else dict(example)
    prompt = next((fields[name] for name in _PROMPTS if name in fields), None)
    return {"prompt": prompt, **fields}


def _inputs(example: Any, golds: set[str]) -> Any:
    if not isinstance(example, Mapping):
        return example
    given = {name: value for name, value in example.items() if name not in golds}
    prompt = next((given[name] for name in _PROMPTS if name in given), None)
    return prompt if isinstance(prompt, str) else given


def _of_gepa(module: str, name: str) -> Any:
    with package("GEPA", "gepa"):
        return getattr(importlib.import_module(f"gepa.{module}"), name)


def _completion(pred: Any, field: str | None) -> str | None:
    names = list(pred.keys())
    name = field or (names[-1] if names else "")
    if name not in names:
        raise UsageError(
            f"The prediction has no field `{name}`.", did_you_mean(name, names) or f"It has {listed(names)}."
        )
    value = plain(pred[name])
    return value if value is None or isinstance(value, str) else json.dumps(value, default=str)
