"""Rubrics that add up."""

from collections.abc import Sequence
from typing import Any

from assay.rubrics.members import Entry
from assay.rubrics.rubric import Rubric
from assay.spec.verifier import VerifierSpec
from assay.types import RewardFunc, RolloutScore, RolloutScores

__all__ = ["RubricGroup"]


class _NoRubricError(AssertionError, ValueError):
    """A group without a rubric; in the releases of ``verifiers`` it is the one here and the other there."""

    def __init__(self) -> None:
        super().__init__("RubricGroup must have at least one rubric")


class RubricGroup(Rubric):
    """Rubrics whose rewards add up; what functions of one name give is added up, too.

    Args:
        rubrics: At least one.
        kwargs: As of ``Rubric``.

    Raises:
        AssertionError: There is no rubric; it is a ValueError, too.
    """

    def __init__(self, rubrics: Sequence[Rubric], **kwargs: Any) -> None:
        if not rubrics:
            raise _NoRubricError
        self.rubrics = list(rubrics)
        super().__init__(**kwargs)

    def get_reward_func_names(self) -> list[str]:
        """Names of the members of all rubrics."""
        return [name for rubric in self.rubrics for name in rubric.get_reward_func_names()]

    def get_reward_funcs(self) -> list[Any]:
        """The members of all rubrics."""
        return [func for rubric in self.rubrics for func in rubric.get_reward_funcs()]

    def get_reward_weights(self) -> list[float]:
        """The weights of all rubrics."""
        return [weight for rubric in self.rubrics for weight in rubric.get_reward_weights()]

    def add_reward_func(self, func: RewardFunc | VerifierSpec, weight: float = 1.0) -> None:
        """Add a member to the first rubric.

        Raises:
            AssertionError: There is none; it is a ValueError, too.
        """
        if not self.rubrics:
            raise _NoRubricError
        self.logger.warning("The reward function joins the first rubric of the group.")
        self.rubrics[0].add_reward_func(func, weight)

    def entries(self, path: tuple[int, ...] = ()) -> list[Entry]:
        """The members of all rubrics with what goes with them."""
        self._check_plain()
        return [entry for at, rubric in enumerate(self.rubrics) for entry in rubric.entries((*path, at))]

    @property
    def _side_by_side(self) -> bool:
        return all(rubric._side_by_side for rubric in self.rubrics)  # noqa: SLF001  (of one family)

    async def score_rollout(self, *args: Any, **kwargs: Any) -> RolloutScore:
        """Score one rollout by every rubric, one after another."""
        total = RolloutScore(reward=0.0)
        for rubric in self.rubrics:
            score = await rubric.score_rollout(*args, **kwargs)
            total.reward += score.reward
            for name, value in score.metrics.items():
                total.metrics[name] = total.metrics[name] + value if name in total.metrics else value
        return total

    async def score_rollouts(self, *args: Any, **kwargs: Any) -> RolloutScores:
        """Score rollouts by every rubric, one after another."""
        scores = [await rubric.score_rollouts(*args, **kwargs) for rubric in self.rubrics]
        total = scores[0]
        for one in scores[1:]:
            total.reward = _added(total.reward, one.reward)
            for name, values in one.metrics.items():
                total.metrics[name] = _added(total.metrics[name], values) if name in total.metrics else values
        return total


def _added(one: Sequence[float], other: Sequence[float]) -> list[float]:
    return [a + b for a, b in zip(one, other, strict=True)]
