"""The reward function of verl, by configuration alone.

    reward.custom_reward_function.path=pkg://assay.adapters.verl
    reward.custom_reward_function.name=compute_score
    +reward.custom_reward_function.reward_kwargs.spec=/path/to/spec.yaml

verl asks for one sample at a time; the samples that a worker asks for at the same time are scored in one batch. With the spec's path as
``name``, the spec is read when verl looks the function up; ``reward`` makes the function of a file of the user's, whose spec is read with
the file. Read from verl 0.9.1: ``trainer/ppo/reward.py`` and
``experimental/reward_loop``; and from 0.6.1, 0.7.1 and 0.8.0: ``workers/reward_manager``.
"""

import contextlib
import json
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

from assay.adapters.verdicts import Unscored, answer_of, answer_subject, check_unscored, number_of, score_names
from assay.compiling.columns import needed_columns, referred_columns
from assay.errors import RAISED, UsageError
from assay.scoring.batching import Batcher, Verifiers
from assay.values.plain import plain

__all__ = ["compute_score", "compute_score_sync", "compute_scores", "reward", "score"]


async def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: Any,
    extra_info: Any = None,
    *,
    spec: Any,
    unscored: Unscored = "raise",
    not_run: float = 0.0,
    strict: bool = True,
    **_: Any,
) -> dict[str, Any]:
    """Return the score of a sample, with what verl logs and dumps beside it.

    Args:
        data_source: The name of the dataset; a column that checks may read, as ``extra_info`` is.
        solution_str: The response, decoded without special tokens.
        ground_truth: The gold, read as ``answer`` and as ``ground_truth``: a value, a list of golds, or JSON text.
        extra_info: What else verl knows of the sample. Its fields are columns, if checks name them; a path leads there, too:
            ``extra_info.difficulty``.
        spec: The verifier: a path, or the mapping itself.
        unscored: The reward of a sample that cannot be scored; by default that is an error, which ends the run.
        not_run: The score of a check that did not run; it is a number, because a NaN makes all advantages of GDPO NaN.
        strict: As of ``assay.compile``.

    Returns:
        The same keys for every sample: ``score``; ``acc``, 1.0 if the sample passes, which DAPO's filter reads; ``pred``, the text
        that is compared with the gold, for maj@k; ``passed`` and ``unscored`` (1.0 or 0.0), ``feedback``, ``error``, and the score
        of each check.

    Raises:
        FailedRunError: The sample cannot be scored.
        SpecError: The verifier cannot be used.
    """
    made = _reward_of(spec, strict=strict)
    row = made.row(data_source, solution_str, ground_truth, extra_info)
    return made.shown(row, await made.batcher.score(row), unscored, not_run)


def compute_score_sync(
    data_source: str,
    solution_str: str,
    ground_truth: Any,
    extra_info: Any = None,
    *,
    spec: Any,
    unscored: Unscored = "raise",
    not_run: float = 0.0,
    strict: bool = True,
    **_: Any,
) -> dict[str, Any]:
    """Return what ``compute_score`` returns, at once: for reward managers that do not await, those of verl 0.6 to 0.8 and ``remote``.

    Raises:
        FailedRunError: The sample cannot be scored.
        SpecError: The verifier cannot be used.
    """
    made = _reward_of(spec, strict=strict)
    row = made.row(data_source, solution_str, ground_truth, extra_info)
    return made.shown(row, made.batcher.score_sync(row), unscored, not_run)


def compute_scores(
    data_sources: Sequence[str],
    solution_strs: Sequence[str],
    ground_truths: Sequence[Any],
    extra_infos: Sequence[Any],
    *,
    spec: Any,
    unscored: Unscored = "raise",
    not_run: float = 0.0,
    strict: bool = True,
    **_: Any,
) -> list[dict[str, Any]]:
    """Return what ``compute_score`` returns for each sample of a batch: for the reward manager ``batch`` of verl 0.6 to 0.8.

    Raises:
        FailedRunError: A sample cannot be scored.
        SpecError: The verifier cannot be used.
    """
    made = _reward_of(spec, strict=strict)
    rows = list(map(made.row, data_sources, solution_strs, ground_truths, extra_infos))
    results = made.batcher.plan.score_rows(rows).to_dicts()
    return [made.shown(row, result, unscored, not_run) for row, result in zip(rows, results, strict=True)]


def score(
    data_source: str,
    solution_str: str,
    ground_truth: Any,
    extra_info: Any = None,
    *,
    spec: Any,
    unscored: Unscored = "raise",
    strict: bool = True,
    **_: Any,
) -> float:
    """Return the score alone, at once: what ``verl.trainer.main_eval`` takes. Arguments as of ``compute_score``.

    Raises:
        FailedRunError: The sample cannot be scored.
        SpecError: The verifier cannot be used.
    """
    made = _reward_of(spec, strict=strict)
    return number_of(made.batcher.score_sync(made.row(data_source, solution_str, ground_truth, extra_info)), unscored)


def reward(
    spec: Verifiers, *, sync: bool = False, unscored: Unscored = "raise", not_run: float = 0.0, strict: bool = True
) -> Callable[..., Any]:
    """Return the ``compute_score`` of a file of the user's: the spec is read with the file, before the first sample.

    Args:
        spec: Verifiers, a rubric, a plan, or the name of a grader.
        sync: Whether the function answers at once, as ``compute_score_sync``.
        unscored: As of ``compute_score``.
        not_run: As of ``compute_score``.
        strict: As of ``assay.compile``.

    Raises:
        SpecError: The verifier cannot be used.
        UsageError: An option has a value that it does not take.
    """
    check_unscored(unscored)
    if not isinstance(not_run, int | float):
        raise UsageError(f"not_run={not_run!r}: expected a number.")
    function = compute_score_sync if sync else compute_score
    return partial(function, spec=_Reward(spec, strict=strict), unscored=unscored, not_run=not_run)


def __getattr__(name: str) -> Any:
    if not {*name} & {".", "@"}:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return partial(compute_score, spec=_configured(name, strict=True))


class _Reward:
    def __init__(self, spec: Verifiers, *, strict: bool) -> None:
        self.batcher = Batcher(spec, strict=strict)
        verifiers = self.batcher.plan.verifiers
        self._answer = answer_subject(self.batcher.plan)
        self._named = dict.fromkeys([*needed_columns(verifiers), *referred_columns(verifiers)])

    def row(self, data_source: str, solution_str: str, ground_truth: Any, extra_info: Any) -> dict[str, Any]:
        fields = extra_info if isinstance(extra_info, Mapping) else {}
        # NOTE: as text, because its fields differ from sample to sample, and a column of structs would be a new type for each batch;
        # what has none leaves the sample unscored
        with contextlib.suppress(*RAISED):
            extra_info = None if extra_info is None else json.dumps(plain(extra_info), default=str)
        return {name: plain(fields[name]) for name in self._named if name in fields} | {
            "completion": solution_str,
            "answer": ground_truth,
            "ground_truth": ground_truth,
            "data_source": data_source,
            "extra_info": extra_info,
        }

    def shown(
        self, row: Mapping[str, Any], result: Mapping[str, Any], unscored: Unscored, not_run: float
    ) -> dict[str, Any]:
        passed = float(bool(result["passed"]))
        scores = {name: not_run if result[name] is None else result[name] for name in score_names(result)}
        return {
            "score": number_of(result, unscored),
            "acc": passed,
            "pred": answer_of(row, self._answer),
            "passed": passed,
            "unscored": float(result["reward"] is None),
            "feedback": result["feedback"] or "",
            "error": result["error"] or "",
            **{name: float(value) for name, value in scores.items()},
        }


def _reward_of(spec: Any, *, strict: bool) -> _Reward:
    if isinstance(spec, _Reward):
        return spec
    return _configured(spec if isinstance(spec, str) else json.dumps(plain(spec)), strict=strict)


@lru_cache(32)
def _configured(key: str, *, strict: bool) -> _Reward:
    return _Reward(json.loads(key) if key.startswith(("{", "[")) else key, strict=strict)
