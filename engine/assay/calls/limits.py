"""Limits of a run for user code, and the results of its calls: rewards, reasons, metrics and errors."""

import math
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import field
from typing import Any

from assay.calls.places import failure
from assay.errors import LONGEST_MESSAGE, Abandoned, encodable
from assay.frozen import frozen
from assay.options import MAX_CONCURRENT, REGEX_TIMEOUT

_NOTED = 100
"""Rows of a check that time out before the user is told."""


class TimeoutCounts:
    """The rows of a run whose match timed out, by check; said once for each check, as such a run may take hours."""

    def __init__(self) -> None:
        self._rows: Counter[str] = Counter()
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[object, ...]:
        return TimeoutCounts, ()  # another process counts its own rows

    def add(self, check: str, rows: int, seconds: float) -> str | None:
        """Count rows whose match has timed out; return a note for the user if they complete the first hundred of a check."""
        with self._lock:
            before = self._rows[check]
            self._rows[check] += rows
        if not before < _NOTED <= before + rows:
            return None
        return (
            f"{check}: the matches of {before + rows:,} rows have timed out so far, after {seconds:g} s of processor time each "
            "(--regex-timeout). Lower that limit, stop such runs with --max-errors, or rewrite the pattern: `assay explain` says "
            "why it needs backtracking."
        )


NO_REWARD = "ValueError: the reward is not a finite number"
"""Error and reason of a row whose reward is NaN, infinite or not a number."""


@frozen
class Limits:
    """Limits of a run for Python functions and regular expressions.

    Attributes:
        timeout: Seconds for one call; None for no limit.
        max_concurrent: Rollouts that async functions process concurrently; 0 or less for all.
        workers: Number of processes for functions; 0 to run them in this process.
        tick: Called with the number of rollouts done since the last call.
        stop: Set when the run has to stop.
        regex_timeout: Seconds for one match that needs backtracking; None for no limit.
        timeouts: Counts the matches that time out; None not to count.
        check: Name of the check that the limits apply to, for notes.
    """

    timeout: float | None = None
    max_concurrent: int = MAX_CONCURRENT
    workers: int = 0
    tick: Callable[[int], None] | None = None
    stop: threading.Event | None = None
    regex_timeout: float | None = REGEX_TIMEOUT
    timeouts: TimeoutCounts | None = field(default=None, compare=False)
    check: str = ""

    def __reduce__(self) -> tuple[object, ...]:
        # tick and stop belong to the process of the run
        values = (self.timeout, self.max_concurrent, self.workers, None, None, self.regex_timeout)
        return Limits, (*values, self.timeouts, self.check)


CallResult = tuple[float, str | None]
"""The result of a call: the reward, and the error if the call failed."""


def scalar(value: Any) -> Any:
    """Convert an array library's scalar or zero-dimensional array to a Python value; return anything else unchanged."""
    is_array = getattr(value, "ndim", None) == 0 and callable(getattr(value, "item", None))
    return value.item() if is_array else value


def to_reward(value: Any) -> CallResult:
    """Convert what user code returned to a reward; the same rule applies to reward functions, verifiers and checks."""
    try:
        if type(value) in _NUMBERS:
            reward = float(value)
        else:
            number = scalar(value)
            reward = math.nan if _is_text(number) or getattr(number, "ndim", None) else float(number)
    except BaseException as error:  # the value's methods may raise anything
        if not is_user_error(error):
            raise
        return failed(error)
    return (reward, None) if math.isfinite(reward) else (0.0, NO_REWARD)


_NUMBERS = frozenset((float, int, bool))


def _is_text(value: Any) -> bool:
    if isinstance(value, str | bytes | bytearray):
        return True
    if hasattr(type(value), "__float__") or hasattr(type(value), "__index__"):
        return False
    try:
        memoryview(value)
    except TypeError:
        return False
    return True


@frozen
class Graded:
    """A reward with more than its number."""

    score: float
    reason: str = ""
    metrics: Mapping[str, float | None] = field(default_factory=dict)


def graded(value: Any) -> tuple[Any, str | None]:
    """Convert a number, ``(number, reason)`` or a mapping to a reward, a float or a ``Graded``, and the error, or None."""
    if type(value) is float or not isinstance(value, tuple | Mapping):
        return to_reward(value)
    try:
        metrics: dict[str, float | None] = {}
        if isinstance(value, Mapping):
            if "score" not in value:
                return 0.0, "ValueError: the mapping has no `score`"
            entries = {
                encodable(str(key)): to_reward(item) for key, item in value.items() if key not in ("score", "reason")
            }
            metrics = {name: number if error is None else None for name, (number, error) in entries.items()}
            number, reason = value["score"], value.get("reason")
        elif len(value) == 2 and isinstance(value[1], str | None):  # noqa: PLR2004  (a pair)
            number, reason = value
        else:
            return to_reward(value)
        score, error = to_reward(number)
        text = "" if reason is None else encodable(str(reason)[:LONGEST_MESSAGE])
    except BaseException as error:  # the value's methods may raise anything
        if not is_user_error(error):
            raise
        return failed(error)
    return (Graded(score, text, metrics) if error is None and (text or metrics) else score), error


def is_score(value: object) -> bool:
    """Return whether a value is a reward in [0, 1]."""
    reward, error = to_reward(value)
    return error is None and 0.0 <= reward <= 1.0


def listed(rewards: Any) -> list[Any]:
    """Convert the result of a function that sees all rollouts of an example to a list; a TypeError if it is none, or has no order."""
    if isinstance(rewards, str | bytes | bytearray | Mapping | AbstractSet):
        raise TypeError(f"the rewards of several rollouts are a list, not {type(rewards).__name__}")
    return list(rewards)


def only(result: Any) -> Any:
    """Return the reward of the only rollout of an example, from a function that sees all of them."""
    rewards = listed(result)
    if len(rewards) != 1:
        raise ValueError(f"{len(rewards)} rewards for 1 rollouts")
    return rewards[0]


def failed(error: BaseException) -> CallResult:
    """Return the result of a call that raised."""
    return 0.0, failure(error)


def is_user_error(error: BaseException) -> bool:
    """Return whether an exception is a failure of user code, which affects its row only and does not end the run."""
    if isinstance(error, Exception):
        return True
    if isinstance(error, KeyboardInterrupt | Abandoned):
        return False
    import asyncio  # slow to import, and not needed before a run

    if not isinstance(error, asyncio.CancelledError):
        return True
    try:
        task = asyncio.current_task()
    except RuntimeError:  # no event loop in this thread
        return True
    return task is None or not task.cancelling()


def timed_out(seconds: float) -> CallResult:
    """Return the result of a call that took too long."""
    return failed(TimeoutError(f"no answer within {seconds:g} s"))
