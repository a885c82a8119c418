"""Groups of rubrics whose rewards are added."""

from collections.abc import Sequence
from typing import Any

from assay.rubrics.members import Entry
from assay.rubrics.rubric import Rubric
from assay.spec.verifier import VerifierSpec
from assay.types import RewardFunc, RolloutScore, RolloutScores


class _NoRubricError(AssertionError, ValueError):
    def __init__(self) -> None:
        super().__init__("RubricGroup must have at least one rubric")


class RubricGroup(Rubric):
    """Rubrics whose rewards are added; metrics of functions with the same name are added, too.

    Args:
        rubrics: At least one.
        kwargs: As for ``Rubric``.

    Raises:
        AssertionError: ``rubrics`` is empty; the exception is also a ValueError.
    """

    def __init__(self, rubrics: Sequence[Rubric], **kwargs: Any) -> None:
        if not rubrics:
            raise _NoRubricError
        self.rubrics = list(rubrics)
        super().__init__(**kwargs)

    def get_reward_func_names(self) -> list[str]:
        """Return the names of the members of all rubrics."""
        return [name for rubric in self.rubrics for name in rubric.get_reward_func_names()]

    def get_reward_funcs(self) -> list[Any]:
        """Return the members of all rubrics."""
        return [func for rubric in self.rubrics for func in rubric.get_reward_funcs()]

    def get_reward_weights(self) -> list[float]:
        """Return the weights of all rubrics."""
        return [weight for rubric in self.rubrics for weight in rubric.get_reward_weights()]

    def add_reward_func(self, func: RewardFunc | VerifierSpec, weight: float = 1.0) -> None:
        """Add a member to the first rubric.

        Raises:
            AssertionError: The group has no rubric; the exception is also a ValueError.
        """
        if not self.rubrics:
            raise _NoRubricError
        self.logger.warning("Adding the reward function to the first rubric of the group.")
        self.rubrics[0].add_reward_func(func, weight)

    def entries(self, path: tuple[int, ...] = ()) -> list[Entry]:
        """Return the members of all rubrics with their weights and objects."""
        self._check_default_scoring()
        return [entry for place, rubric in enumerate(self.rubrics) for entry in rubric.entries((*path, place))]

    @property
    def _side_by_side(self) -> bool:
        return all(rubric._side_by_side for rubric in self.rubrics)  # noqa: SLF001  (of the same class)

    async def score_rollout(self, *args: Any, **kwargs: Any) -> RolloutScore:
        """Score one rollout with each rubric in turn."""
        total = RolloutScore(reward=0.0)
        for rubric in self.rubrics:
            score = await rubric.score_rollout(*args, **kwargs)
            total.reward += score.reward
            for name, value in score.metrics.items():
                total.metrics[name] = total.metrics[name] + value if name in total.metrics else value
        return total

    async def score_rollouts(self, *args: Any, **kwargs: Any) -> RolloutScores:
        """Score rollouts with each rubric in turn."""
        scores = [await rubric.score_rollouts(*args, **kwargs) for rubric in self.rubrics]
        total = scores[0]
        for scored in scores[1:]:
            total.reward = _sum_columns(total.reward, scored.reward)
            for name, values in scored.metrics.items():
                total.metrics[name] = _sum_columns(total.metrics[name], values) if name in total.metrics else values
        return total


def _sum_columns(left: Sequence[float], right: Sequence[float]) -> list[float]:
    return [a + b for a, b in zip(left, right, strict=True)]
