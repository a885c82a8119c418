"""What evaluators call: a scorer for Inspect, metrics for lighteval and ``evaluate``, a filter for lm-eval, an eval for ``evals``.

The package of an evaluator is imported when its function is called. Read from inspect_ai 0.3.285 (``scorer/_scorer.py``,
``scorer/_metric.py``), lighteval 0.13.0 (``metrics/__init__.py``, ``metrics/utils/metric_utils.py``), evaluate 0.4.6 (``module.py``),
lm-eval 0.4.13 (``api/filter.py``, ``filters/custom.py``, ``ConfigurableTask.process_results``) and evals 3.0.1.post1 (``eval.py``,
``record.py``, ``registry.py``).
"""

import asyncio
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from assay.adapters.verdicts import check_columns, checks_of, mean_of_scored, verdict_of, with_gold
from assay.compiling.plan import Plan
from assay.errors import RAISED, ColumnsError, InputError, UsageError, describe_error, package
from assay.loading.formats.inspect_log import sample_columns
from assay.names import COMPLETION
from assay.scoring.batching import Batcher, Verifiers, plan_of
from assay.values.plain import plain

_INPUT, _IDEAL = "input", "ideal"
"""The fields of a sample of ``evals``: what the model is asked, and the gold."""

_ABSENT = ""
"""What is stored for a gold that was not given to ``evaluate``; a gold of null is JSON."""


def inspect(spec: Verifiers, *, name: str | None = None, per_check: bool = False, strict: bool = True) -> Any:
    """Return a scorer, for ``scorer=`` of a task and for ``inspect_ai.score(log, …)``.

    Checks read the target as ``answer``, several targets as a list of golds, and the fields of the sample's metadata as columns.
    The value is the reward, with mean and standard error as metrics; the explanation is the feedback; the metadata have ``passed`` and
    the score of each check. A sample that cannot be scored is ``Score.unscored()``, with the reason as explanation, and so is one
    whose scoring raised: metrics leave it out.

    Args:
        spec: Verifiers, a rubric, a plan, or the name of a grader.
        name: The scorer's name in the log; by default the verifier's id.
        per_check: Make the value a mapping with ``reward`` and the score of each check, NaN if it did not run; each has its metrics.
        strict: As of ``assay.compile``.

    Raises:
        SpecError: A verifier cannot be used.
        UsageError: Inspect is not installed.
    """
    with package("inspect_ai", "inspect"):
        from inspect_ai.scorer import Score, mean, scorer, stderr
    batcher = Batcher(spec, strict=strict)
    checks = check_columns(batcher.plan)
    names = [*(short for short, _ in checks.values()), "reward"]

    def assay_scorer() -> Any:
        async def score(state: Any, target: Any) -> Any:
            row = sample_columns(state)
            if any(target):
                row["answer"] = target.text if len(target) == 1 else list(target)
            try:
                verdict = verdict_of(await _scored(batcher, row), checks)
            except ColumnsError:  # no sample has what a check reads
                raise
            except RAISED as error:
                return Score.unscored(reason="scoring_failed", explanation=describe_error(error))
            text, explanation = state.output.completion, verdict["feedback"]
            if verdict["reward"] is None:
                reason = "no_response" if row["completion"] is None else "scoring_failed"
                return Score.unscored(reason=reason, answer=text, explanation=explanation)
            value = {**dict.fromkeys(names, math.nan), **verdict["checks"], "reward": verdict["reward"]}
            metadata = {name: verdict[name] for name in ("passed", "checks")}
            value = value if per_check else value["reward"]
            return Score(value=value, answer=text, explanation=explanation, metadata=metadata)

        return score

    # NOTE: of no module, because Inspect puts the module's package before the name, which it leaves out of the log: its command
    # ``inspect score`` looks for a scorer by the name in the log, and would find none
    assay_scorer.__module__ = ""
    metrics = [mean(), stderr()]
    registered = scorer(dict.fromkeys(names, metrics) if per_check else metrics, name or batcher.plan.verifiers[0].id)
    return registered(assay_scorer)()


async def _scored(batcher: Batcher, row: dict[str, Any]) -> dict[str, Any]:
    try:
        asyncio.get_running_loop()
    except RuntimeError:  # Inspect runs on trio
        from anyio.to_thread import run_sync

        return await run_sync(batcher.score_sync, row)
    return await batcher.score(row)


def lighteval(spec: Verifiers, *, name: str | None = None, per_check: bool = False, strict: bool = True) -> Any:
    """Return a metric, for ``metrics=`` of a ``LightevalTaskConfig``.

    The gold is the document's, ``answer`` to the checks, a list if it has several; the query is ``prompt``, and the fields of ``specific``
    are columns. The value of a document is the mean reward of its responses, NaN if none can be scored; the task's is the mean of the
    documents that have one.

    Args:
        spec: Verifiers, a rubric, a plan, or the name of a grader.
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
    scored: tuple[Any, list[int], Any] = None, [], None

    class ResponseRewards(SampleLevelComputation):  # type: ignore[misc]
        """The mean of a result column for each document; all metrics are given the same list of responses, which is scored once."""

        def __init__(self, column: str) -> None:
            self.column = column

        def compute(self, responses: Sequence[Any], docs: Sequence[Any], **_: Any) -> list[float]:
            nonlocal scored
            if scored[0] is not responses:
                texts = [list(response.final_text) for response in responses]
                golds = [doc.get_golds() for doc in docs]
                answers = [{"answer": own[0] if len(own) == 1 else own} if own else {} for own in golds]
                rows = [
                    {**(doc.specific or {}), **answer, "prompt": doc.query, COMPLETION: text}
                    for doc, answer, several in zip(docs, answers, texts, strict=True)
                    for text in several
                ]
                scored = responses, [len(several) for several in texts], plan.score_rows(rows)
            values = iter(scored[2][self.column].to_list())
            return [mean_of_scored([*islice(values, size)]) for size in scored[1]]

    def metric(column: str, name: str) -> Any:
        return SampleLevelMetric(
            metric_name=name,
            higher_is_better=True,
            category=SamplingMethod.GENERATIVE,
            sample_level_fn=ResponseRewards(column),
            corpus_level_fn=mean_of_scored,
            batched_compute=True,
        )

    name = name or plan.verifiers[0].id
    reward = metric("reward", name)
    checks = check_columns(plan).items()
    return [reward, *(metric(column, f"{name}/{short}") for column, (short, _) in checks)] if per_check else reward


def lm_eval(spec: Verifiers, *, gold: str = "answer", strict: bool = True) -> "ResponseFilter":
    """Return a filter, for ``filter_fn`` of the filter ``custom``; its ``process_results`` is that of the task.

    The fields of a document are columns. A response becomes its results, which the log of samples shows. A response that cannot be scored
    has no reward, and a document without any the value NaN: aggregate with ``nanmean``, which leaves it out.

    Args:
        spec: Verifiers, a rubric, a plan, or the name of a grader.
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
        verdicts = (verdict_of(result, checks) for result in self._plan.score_rows(rows).to_dicts())
        shown = ({name: value for name, value in verdict.items() if name != "error"} for verdict in verdicts)
        return [[next(shown) for _ in responses] for responses in several]

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
        values = {name: [outcome[name] for outcome in outcomes] for name in ("reward", "passed")}
        for short, _ in check_columns(self._plan).values():
            values[short] = [outcome["checks"].get(short) for outcome in outcomes]
        return {name: mean_of_scored(scores) for name, scores in values.items()}


def evaluate(spec: Verifiers, *, name: str | None = None, strict: bool = True) -> Any:
    """Return a metric: ``metric.compute(predictions=texts, references=golds)``, also in batches, ``combine`` and evaluators.

    Predictions are texts or lists of messages; references, ``answer`` to the checks, are golds of any type, and may be left out where
    no check reads them. Other keywords of ``compute`` are columns.

    Args:
        spec: Verifiers, a rubric, a plan, or the name of a grader.
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
        It adds to the docstrings of methods, so each needs one.
        """

        def _info(self) -> Any:
            return MetricInfo(
                description="Rewards of a spec of Assay.",
                citation="",
                features=Features(dict.fromkeys(("predictions", "references"), Value("string"))),
                module_name=name or plan.verifiers[0].id,
            )

        def add(self, *, prediction: Any = None, reference: Any = None) -> None:
            """Add one prediction with its reference."""
            self.add_batch(predictions=[prediction], references=None if reference is None else [reference])

        def add_batch(self, *, predictions: Any = None, references: Any = None) -> None:
            """Add predictions with their references."""
            texts = _as_json(() if predictions is None else predictions)
            golds = [_ABSENT] * len(texts) if references is None else _as_json(references)
            if len(texts) != len(golds):
                raise UsageError(f"There are {len(texts)} predictions and {len(golds)} references.")
            super().add_batch(predictions=texts, references=golds)

        def _compute(self, predictions: Any, references: Any, **columns: Any) -> dict[str, Any]:
            golds = {"answer": _values(references)} if set(references) - {_ABSENT} else {}
            scores = plan.score_rows({**columns, **golds, COMPLETION: _values(predictions)})
            means = {**checks, "reward": "reward", "passed": "passed"}
            result = {short: scores[column].mean() for short, column in means.items()}
            return {**result, "unscored": scores["reward"].null_count()}

    return AssayMetric()


def _as_json(values: Iterable[Any]) -> list[str]:
    return [json.dumps(plain(value), default=str) for value in values]


def _values(texts: Iterable[str]) -> list[Any]:
    return [None if text == _ABSENT else json.loads(text) for text in texts]


def evals(
    spec: Verifiers,
    completion_fns: Sequence[Any],
    eval_registry_path: str | Path,
    *,
    gold: str | None = None,
    strict: bool = True,
    **settings: Any,
) -> Any:
    """Return an eval: ``class: assay.adapters:evals`` in a registry, or ``evals(…).run(recorder)``.

    The ``input`` of a sample is what the model is asked, and ``prompt`` to the checks; the other fields are columns. The first completion
    counts, as in the package's own evals. Each sample has an event ``metrics`` with ``sampled``, ``reward``, ``passed``, ``feedback``,
    ``error`` and ``checks``.

    Args:
        spec: Verifiers, a rubric, a plan, or the name of a grader. A path is relative to the folder ``data`` of the registry if it is no file, like that of samples.
        completion_fns: The function to ask.
        eval_registry_path: The folder of the registry.
        gold: The field of samples with the gold; checks read it as ``answer``. By default ``ideal``, where a sample has it.
        settings: Other arguments of ``evals.Eval``: ``samples_jsonl``, ``name``, ``seed``, ``registry``.
        strict: As of ``assay.compile``.

    Returns:
        An ``evals.Eval``. Its final report has the mean of each check; ``reward`` and ``pass_rate``, the means over what can be scored;
        and ``unscored``, the number of the others. A mean of nothing is None.

    Raises:
        SpecError: A verifier cannot be used.
        UsageError: ``evals`` is not installed, or there is not exactly one function to ask.
    """
    with package("evals", "evals"):
        from evals import Eval
        from evals.record import default_recorder
    if len(completion_fns) != 1:
        raise UsageError(f"An eval of Assay asks one completion function; {len(completion_fns)} are given.")

    class AssayEval(Eval):  # type: ignore[misc]
        """Rewards of samples: all are asked for, and scored in one pass."""

        def __init__(self) -> None:
            super().__init__(completion_fns, Path(eval_registry_path), **settings)
            source = self._prefix_registry_path(spec) if isinstance(spec, str) else spec
            self.plan = plan_of(source, strict=strict)

        def eval_sample(self, sample: Mapping[str, Any], *_: Any) -> tuple[str, dict[str, Any]]:
            completions = self.completion_fn(prompt=sample[_INPUT]).get_completions()
            return default_recorder().current_sample_id(), {**sample, COMPLETION: next(iter(completions), None)}

        def run(self, recorder: Any) -> dict[str, Any]:
            samples = []
            for number, sample in enumerate(self.get_samples(), 1):
                if not isinstance(sample, Mapping) or _INPUT not in sample:
                    raise InputError(f"Sample {number}: expected an object with `{_INPUT}`, what the model is asked.")
                columns = with_gold(sample, gold or (_IDEAL if _IDEAL in sample else "answer"))
                samples.append(columns | {"prompt": sample[_INPUT]})
            answered = self.eval_all_samples(recorder, samples)
            scores = self.plan.score_rows([row for _, row in answered])
            checks = check_columns(self.plan)
            for (sample_id, row), result in zip(answered, scores.iter_rows(named=True), strict=True):
                outcome = {name: result[name] for name in ("reward", "passed", "feedback", "error")}
                with recorder.as_default_recorder(sample_id):
                    recorder.record_metrics(sampled=row[COMPLETION], **outcome, checks=checks_of(result, checks))
            means = {short: column for column, (short, _) in checks.items()}
            means |= {"reward": "reward", "pass_rate": "passed"}
            report = {name: scores[column].mean() for name, column in means.items()}
            return {**report, "unscored": scores["reward"].null_count()}

    return AssayEval()
