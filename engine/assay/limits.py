"""What a run allows users' Python, and what came of a call."""

import math
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from assay.errors import RAISED, UsageError, said_by

__all__ = [
    "MAX_CONCURRENT",
    "MAX_RATIO",
    "NO_REWARD",
    "REGEX_TIMEOUT",
    "Limits",
    "Most",
    "Settled",
    "failed",
    "only",
    "own_failure",
    "settled",
    "timed_out",
    "too_late",
]

NO_REWARD = "ValueError: the reward is not a finite number"
"""Error and reason of a row whose reward is NaN, infinite or no number."""

MAX_CONCURRENT = 64
"""Rollouts that asynchronous functions work on at once, unless a run says otherwise."""

REGEX_TIMEOUT = 0.2
"""Seconds for one match of a pattern that only backtracking can tell, unless a run says otherwise."""

MAX_RATIO = 200.0
"""Bytes that one byte of a compressed file may become, unless a run says otherwise."""


class Most:
    """How many rows may be so: a number, or a share of all rows.

    Args:
        option: What the command line calls it.
        given: ``100``, ``"5%"``, or None for any number.

    Raises:
        UsageError: It is neither.
    """

    _FORM = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(%?)\s*")

    def __init__(self, option: str, given: int | str | None) -> None:
        match = None if given is None else self._FORM.fullmatch(str(given))
        if given is not None and (match is None or (not match.group(2) and "." in match.group(1))):
            raise UsageError(
                f"{option} {given}: expected a number of rows or a share.",
                f"Write {option} 100 or {option} 5%.",
            )
        self.given = given
        self._share = float(match.group(1)) / 100 if match and match.group(2) else None
        self._rows = int(match.group(1)) if match and not match.group(2) else None

    def exceeded(self, count: int, rows: int, *, final: bool = True) -> bool:
        """Whether ``count`` of so many rows are too many; a share is only known when all rows are, at the end."""
        if self._rows is not None:
            return count > self._rows
        return final and self._share is not None and count > self._share * rows


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


def settled(given: Any) -> Settled:
    """What a function gave as a reward: whatever ``float`` takes, when it is finite."""
    try:
        reward = float(given)
    except RAISED as wrong:
        return failed(wrong)
    return (reward, None) if math.isfinite(reward) else (0.0, NO_REWARD)


def only(given: Any) -> Any:
    """What a function that sees all rollouts of an example gave the only one there is.

    Raises:
        ValueError: It gave more, or nothing.
    """
    rewards = list(given)
    if len(rewards) != 1:
        raise ValueError(f"{len(rewards)} rewards for 1 rollouts")
    return rewards[0]


def failed(wrong: BaseException) -> Settled:
    """A call that raised."""
    return 0.0, said_by(wrong)


def own_failure(wrong: BaseException) -> bool:
    """Whether somebody's code failed; where it waited for something that was cancelled, nobody may have cancelled this task."""
    import asyncio  # the command line needs none of it before a run

    task = asyncio.current_task()
    return not isinstance(wrong, asyncio.CancelledError) or task is None or not task.cancelling()


def timed_out(seconds: float) -> Settled:
    """A call that took too long."""
    return failed(too_late(seconds))


def too_late(seconds: float) -> TimeoutError:
    """What is said of anything that took longer than it was allowed."""
    return TimeoutError(f"no answer within {seconds:g} s")
