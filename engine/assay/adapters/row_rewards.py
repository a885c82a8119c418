"""A function that scores one rollout, for every package that calls a function a sample and has no adapter of its own."""

from typing import Any

from assay.adapters.verdicts import Unscored, check_columns, number_of, verdict_of
from assay.names import COMPLETION
from assay.scoring.batching import Batcher, Verifiers
from assay.values.plain import plain


def row(spec: Verifiers, *, unscored: Unscored | None = None, strict: bool = True) -> "RowReward":
    """Return a function of a completion and its columns: ``score("It is 4.", answer="4")``.

    Calls that come at the same time, from threads or, with ``await score.acall(…)``, from coroutines, are scored in one batch. The
    function pickles, for packages that call it in other processes.

    Args:
        spec: Verifiers, a rubric, a plan, or the name of a grader.
        unscored: The reward of a rollout that cannot be scored: None, a number, or ``raise``.
        strict: As of ``assay.compile``.

    Raises:
        SpecError: A verifier cannot be used.
        UsageError: A reward function sees all rollouts of an example, which single rows do not show.

    Example:
        >>> import assay
        >>> score = assay.adapters.row({"checks": [{"id": "right", "type": "number", "value": {"column": "answer"}}]})
        >>> score("It is 5.", answer="4")
        {'reward': 0.0, 'passed': False, 'feedback': 'right: the number is "5", expected 4', 'error': None, 'checks': {'right': 0.0}}
    """
    return RowReward(Batcher(spec, strict=strict), unscored)


class RowReward:
    """A function of a rollout that a package calls for each sample."""

    def __init__(self, batcher: Batcher, unscored: Unscored | None) -> None:
        self._batcher = batcher
        self._unscored = unscored
        self._checks = check_columns(batcher.plan)

    def __call__(self, completion: Any, **columns: Any) -> dict[str, Any]:
        """Score a rollout.

        Args:
            completion: A text, or a list of messages.
            columns: What checks read: ``answer``, ``prompt`` and others.

        Returns:
            ``reward``, ``passed``, ``feedback``, ``error``, and ``checks``: the score of each check that ran. Of a rollout that cannot
            be scored, feedback and error say why.

        Raises:
            ColumnsError: The first rollouts have no column that a check reads.
            FailedRunError: The rollout cannot be scored, and ``unscored`` is ``raise``.
        """
        return self._shown(self._batcher.score_sync({**plain(columns), COMPLETION: plain(completion)}))

    async def acall(self, completion: Any, **columns: Any) -> dict[str, Any]:
        """Score a rollout, as a call does, without blocking the event loop."""
        return self._shown(await self._batcher.score({**plain(columns), COMPLETION: plain(completion)}))

    def _shown(self, result: dict[str, Any]) -> dict[str, Any]:
        reward = result["reward"] if self._unscored is None else number_of(result, self._unscored)
        return verdict_of(result, self._checks) | {"reward": reward}
