"""An eval for OpenAI's ``evals``: it asks for all samples, and scores them in one pass.

Read from evals 3.0.1.post1: ``eval.py``, ``record.py`` and ``registry.py``.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from assay.adapters.golds import with_gold
from assay.adapters.verdicts import check_columns, checks_of
from assay.errors import InputError, UsageError, package
from assay.names import COMPLETION
from assay.scoring.batching import Verifiers, plan_of

_INPUT, _IDEAL = "input", "ideal"
"""The fields of a sample: what the model is asked, and the gold."""


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
        spec: Verifiers, a rubric, or a plan. A path is relative to the folder ``data`` of the registry if it is no file, like that of samples.
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
        """Rewards of samples."""

        def __init__(self) -> None:
            super().__init__(completion_fns, Path(eval_registry_path), **settings)
            source = self._prefix_registry_path(spec) if isinstance(spec, str) else spec
            self.plan = plan_of(source, strict=strict)

        def eval_sample(self, sample: Mapping[str, Any], *_: Any) -> tuple[str, dict[str, Any]]:
            completions = self.completion_fn(prompt=sample[_INPUT]).get_completions()
            return default_recorder().current_sample_id(), {**sample, COMPLETION: next(iter(completions), None)}

        def run(self, recorder: Any) -> dict[str, Any]:
            samples = [_columns(sample, at, gold) for at, sample in enumerate(self.get_samples(), 1)]
            answered = self.eval_all_samples(recorder, samples)
            scores = self.plan.score_rows([row for _, row in answered])
            checks = check_columns(self.plan)
            for (sample_id, row), result in zip(answered, scores.iter_rows(named=True), strict=True):
                outcome = {name: result[name] for name in ("reward", "passed", "feedback", "error")}
                with recorder.as_default_recorder(sample_id):
                    recorder.record_metrics(sampled=row[COMPLETION], **outcome, checks=checks_of(result, checks))
            columns = {short: column for column, (short, _) in checks.items()}
            columns |= {"reward": "reward", "pass_rate": "passed"}
            means = {name: scores[column].mean() for name, column in columns.items()}
            return {**means, "unscored": scores["reward"].null_count()}

    return AssayEval()


def _columns(sample: Any, at: int, gold: str | None) -> dict[str, Any]:
    if not isinstance(sample, Mapping) or _INPUT not in sample:
        raise InputError(f"Sample {at}: expected an object with `{_INPUT}`, what the model is asked.")
    return with_gold(sample, gold or (_IDEAL if _IDEAL in sample else "answer")) | {"prompt": sample[_INPUT]}
