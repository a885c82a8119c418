"""What a run allows users' Python, and what came of a call."""

import math
import threading
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from assay.calls.watchdog import Abandoned
from assay.errors import said_by
from assay.options import MAX_CONCURRENT, REGEX_TIMEOUT

__all__ = [
    "NO_REWARD",
    "Limits",
    "Settled",
    "failed",
    "is_reward",
    "is_score",
    "listed",
    "only",
    "own_failure",
    "scalar",
    "settled",
    "timed_out",
    "too_late",
]

NO_REWARD = "ValueError: the reward is not a finite number"
"""Error and reason of a row whose reward is NaN, infinite or no number."""


@dataclass(frozen=True)
class Limits:
    """What a run allows its Python functions, and its patterns.

    Attributes:
        timeout: Seconds for one call; None for as long as it takes.
        max_concurrent: Rollouts that asynchronous functions work on at once; at most 0 for all.
        workers: Processes that functions run in; 0 for this one.
        tick: Called with the number of rollouts done since the last call.
        stop: Set when the run is to stop.
        regex_timeout: Seconds for one match of a pattern that only backtracking can tell; None for as long as it takes.
    """

    timeout: float | None = None
    max_concurrent: int = MAX_CONCURRENT
    workers: int = 0
    tick: Callable[[int], None] | None = None
    stop: threading.Event | None = None
    regex_timeout: float | None = REGEX_TIMEOUT

    def __reduce__(self) -> tuple[object, ...]:
        # who is told, and what stops a run, stay in its process
        return Limits, (self.timeout, self.max_concurrent, self.workers, None, None, self.regex_timeout)


Settled = tuple[float, str | None]
"""What came of one call: the reward, and the error where there is none."""


def scalar(value: Any) -> Any:
    """The Python value of an array library's scalar or array without dimensions; anything else as it is."""
    is_array = getattr(value, "ndim", None) == 0 and callable(getattr(value, "item", None))
    return value.item() if is_array else value


def settled(given: Any) -> Settled:
    """What somebody's code gave as a reward. This is the rule for all of it: reward functions, verifiers and checks.

    A reward is a finite number: a Boolean, an integer, a float, a ``Decimal``, a ``Fraction``, a scalar of an array library
    or an array without dimensions, and whatever else has ``__float__`` or ``__index__``. Text and bytes that spell a number
    are none, and neither is an array with dimensions, though it may hold one number only.
    """
    try:
        if type(given) in _NUMBERS:
            reward = float(given)
        else:
            value = scalar(given)
            reward = math.nan if _is_text(value) or getattr(value, "ndim", None) else float(value)
    except BaseException as wrong:  # its methods may be anybody's
        if not own_failure(wrong):
            raise
        return failed(wrong)
    return (reward, None) if math.isfinite(reward) else (0.0, NO_REWARD)


_NUMBERS = frozenset((float, int, bool))


def _is_text(value: Any) -> bool:
    """Whether ``float`` would read a number out of a value: text, or bytes in whatever holds them."""
    if isinstance(value, str | bytes | bytearray):
        return True
    if hasattr(type(value), "__float__") or hasattr(type(value), "__index__"):
        return False
    try:
        memoryview(value)
    except TypeError:
        return False
    return True


def is_reward(value: object) -> bool:
    """Whether a value is a reward, as ``settled`` has it."""
    return settled(value)[1] is None


def is_score(value: object) -> bool:
    """Whether a value is a reward in [0, 1]."""
    reward, error = settled(value)
    return error is None and 0.0 <= reward <= 1.0


def listed(given: Any) -> list[Any]:
    """What a function that sees all rollouts of an example gave, as a list with a reward for each.

    Raises:
        TypeError: It is no list, or one in which nothing says which reward is whose.
    """
    if isinstance(given, str | bytes | bytearray | Mapping | AbstractSet):
        raise TypeError(f"the rewards of several rollouts are a list, not {type(given).__name__}")
    return list(given)


def only(given: Any) -> Any:
    """What a function that sees all rollouts of an example gave the only one there is.

    Raises:
        TypeError: It gave no list.
        ValueError: It gave more, or nothing.
    """
    rewards = listed(given)
    if len(rewards) != 1:
        raise ValueError(f"{len(rewards)} rewards for 1 rollouts")
    return rewards[0]


def failed(wrong: BaseException) -> Settled:
    """A call that raised."""
    return 0.0, said_by(wrong)


def own_failure(wrong: BaseException) -> bool:
    """Whether an exception is the failure of somebody's code, which costs its row only, and not the end of the run.

    An interrupt ends a run, and so does a call that is given up, or a task that is cancelled. Nothing else does, whatever its
    class: ``SystemExit`` and ``GeneratorExit`` are failures, and so is a cancellation that nobody asked of this task.
    """
    if isinstance(wrong, Exception):
        return True
    if isinstance(wrong, KeyboardInterrupt | Abandoned):
        return False
    import asyncio  # the command line needs none of it before a run

    if not isinstance(wrong, asyncio.CancelledError):
        return True
    try:
        task = asyncio.current_task()
    except RuntimeError:  # no loop runs here
        return True
    return task is None or not task.cancelling()


def timed_out(seconds: float) -> Settled:
    """A call that took too long."""
    return failed(too_late(seconds))


def too_late(seconds: float) -> TimeoutError:
    """What is said of anything that took longer than it was allowed."""
    return TimeoutError(f"no answer within {seconds:g} s")
