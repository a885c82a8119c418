"""A scorer for Inspect: the samples that it scores at the same time are one batch.

Read from inspect_ai 0.3.285: ``scorer/_scorer.py`` and ``scorer/_metric.py``.
"""

import asyncio
from typing import Any

from assay.adapters.packages import package
from assay.adapters.verdicts import check_columns, checks_of, feedback_of
from assay.errors import RAISED, ColumnsError, said_by
from assay.loading.documents.inspect_log import sample_columns
from assay.scoring.batching import Batcher, Verifiers

__all__ = ["inspect"]


def inspect(spec: Verifiers, *, name: str | None = None, strict: bool = True) -> Any:
    """Return a scorer, for ``scorer=`` of a task and for ``inspect_ai.score(log, …)``.

    Checks read the target as ``answer``, several targets as a list of golds, and the fields of the sample's metadata as columns.
    The value is the reward, with mean and standard error as metrics; the explanation is the feedback; the metadata have ``passed`` and
    the score of each check. A sample that cannot be scored is ``Score.unscored()``, with the reason as explanation, and so is one
    whose scoring raised: metrics leave it out.

    Args:
        spec: Verifiers, a rubric, or a plan.
        name: The scorer's name in the log; by default the verifier's id.
        strict: As of ``assay.compile``.

    Raises:
        SpecError: A verifier cannot be used.
        UsageError: Inspect is not installed.
    """
    with package("inspect_ai", "inspect"):
        from inspect_ai.scorer import Score, mean, scorer, stderr
    batcher = Batcher(spec, strict=strict)
    checks = check_columns(batcher.plan)

    @scorer(metrics=[mean(), stderr()], name=name or batcher.plan.verifiers[0].id)  # type: ignore[untyped-decorator]
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
            metadata = {"passed": result["passed"], "checks": checks_of(result, checks)}
            return Score(value=result["reward"], answer=text, explanation=feedback_of(result), metadata=metadata)

        return score

    return assay_scorer()


async def _scored(batcher: Batcher, row: dict[str, Any]) -> dict[str, Any]:
    try:
        asyncio.get_running_loop()
    except RuntimeError:  # Inspect runs on trio
        from anyio.to_thread import run_sync

        return await run_sync(batcher.score_sync, row)
    return await batcher.score(row)
