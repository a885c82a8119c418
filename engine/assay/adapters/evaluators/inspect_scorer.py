"""A scorer for Inspect: the samples that it scores at the same time are one batch.

Read from inspect_ai 0.3.285: ``scorer/_scorer.py`` and ``scorer/_metric.py``.
"""

import asyncio
import math
from typing import Any

from assay.adapters.verdicts import check_columns, checks_of, feedback_of
from assay.errors import RAISED, ColumnsError, package, said_by
from assay.loading.formats.inspect_log import sample_columns
from assay.scoring.batching import Batcher, Verifiers


def inspect(spec: Verifiers, *, name: str | None = None, per_check: bool = False, strict: bool = True) -> Any:
    """Return a scorer, for ``scorer=`` of a task and for ``inspect_ai.score(log, …)``.

    Checks read the target as ``answer``, several targets as a list of golds, and the fields of the sample's metadata as columns.
    The value is the reward, with mean and standard error as metrics; the explanation is the feedback; the metadata have ``passed`` and
    the score of each check. A sample that cannot be scored is ``Score.unscored()``, with the reason as explanation, and so is one
    whose scoring raised: metrics leave it out.

    Args:
        spec: Verifiers, a rubric, or a plan.
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
                result = await _scored(batcher, row)
            except ColumnsError:  # no sample has what a check reads
                raise
            except RAISED as error:
                return Score.unscored(reason="scoring_failed", explanation=said_by(error))
            text = state.output.completion
            if result["reward"] is None:
                reason = "no_response" if row["completion"] is None else "scoring_failed"
                return Score.unscored(reason=reason, answer=text, explanation=feedback_of(result))
            scores = checks_of(result, checks)
            value = {**dict.fromkeys(names, math.nan), **scores, "reward": result["reward"]}
            metadata = {"passed": result["passed"], "checks": scores}
            value = value if per_check else value["reward"]
            return Score(value=value, answer=text, explanation=feedback_of(result), metadata=metadata)

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
