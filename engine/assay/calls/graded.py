"""What a reward function returns: a number, a number with its reason, or a mapping of score, reason and metrics."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from assay.calls.limits import failed, own_failure, settled
from assay.errors import LONGEST_MESSAGE, encodable

_NO_SCORE = "ValueError: the mapping has no `score`"
_PAIR = 2


@dataclass(frozen=True)
class Graded:
    """A reward with more than its number.

    Attributes:
        score: The reward.
        reason: Why it is what it is; ``""`` if the function does not say.
        metrics: The other entries of a mapping, by name; None for those that are not finite numbers.
    """

    score: float
    reason: str = ""
    metrics: Mapping[str, float | None] = field(default_factory=dict)


def graded(value: Any) -> tuple[Any, str | None]:
    """Convert what a reward function returned to its reward and error.

    Args:
        value: Anything that ``settled`` takes; ``(number, reason)``; or a mapping with ``score``, optionally ``reason``, and metrics.

    Returns:
        The reward, a float or a ``Graded``; and the error, or None.
    """
    if type(value) is float or not isinstance(value, tuple | Mapping):
        return settled(value)
    try:
        if isinstance(value, Mapping):
            return _from_mapping(value)
        if len(value) != _PAIR or not isinstance(value[1], str | None):
            return settled(value)
        return _with(value[0], value[1], {})
    except BaseException as error:  # the value's methods may raise anything
        if not own_failure(error):
            raise
        return failed(error)


def _from_mapping(value: Mapping[Any, Any]) -> tuple[Any, str | None]:
    if "score" not in value:
        return 0.0, _NO_SCORE
    metrics = {encodable(str(name)): _number(item) for name, item in value.items() if name not in ("score", "reason")}
    return _with(value["score"], value.get("reason"), metrics)


def _with(number: Any, reason: Any, metrics: dict[str, float | None]) -> tuple[Any, str | None]:
    score, error = settled(number)
    if error is not None:
        return score, error
    text = "" if reason is None else encodable(str(reason)[:LONGEST_MESSAGE])
    return (Graded(score, text, metrics) if text or metrics else score), None


def _number(value: Any) -> float | None:
    number, error = settled(value)
    return number if error is None else None
