"""Run reward functions over rollouts, row by row; async functions are in ``async_runner``.

Functions run rollout by rollout in the order of the rubric, because one may leave something in ``state`` for the next.
"""

import inspect
import os
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from math import isfinite
from time import perf_counter
from typing import Any

from assay.calls.limits import CallResult, failed, graded, is_user_error
from assay.errors import Abandoned


class Interrupted(Exception):  # noqa: N818  (a KeyboardInterrupt that does not end an event loop)
    """The run has to stop."""


@dataclass
class RunningCall:
    """The call that holds the interpreter, for the watchdog: row and function, and its start in monotonic seconds, 0.0 for none."""

    call: tuple[int, int] = (0, 0)
    since: float = 0.0
    is_abandoned: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    def enter(self, row: int, number: int) -> None:
        """Record that a call starts or resumes."""
        self.call, self.since = (row, number), time.monotonic()

    def left(self, seconds: float) -> float:
        """Return how many of the seconds the call that holds the interpreter has left; all if there is none."""
        since = self.since
        return since + seconds - time.monotonic() if since else seconds

    def leave(self) -> None:
        """Record that the call has ended or waits."""
        self.since = 0.0


@dataclass
class Work:
    """Calls and their outcomes."""

    calls: Sequence[Callable[[Sequence[Any]], Any]]
    rows: Sequence[Sequence[Any]]
    is_async: bool = False
    side_by_side: bool = True
    read: Callable[[Any], tuple[Any, str | None]] = graded
    recipe: Any = None
    seconds: list[float] | None = None
    tick: Callable[[int], None] | None = None
    stop: threading.Event | None = None
    scores: list[list[Any]] = field(init=False)
    errors: list[dict[int, str]] = field(init=False)
    begun: dict[tuple[int, int], Awaitable[Any]] = field(init=False, default_factory=dict)
    start: int = 0
    process: int = field(init=False, default_factory=os.getpid)

    def __post_init__(self) -> None:
        self.scores = [[None] * len(self.rows) for _ in self.calls]
        self.errors = [{} for _ in self.calls]

    def call(self, row: int, number: int) -> Any:
        """Make a call, or return the awaitable of one that has begun."""
        begun = self.begun.pop((row, number), None)
        return self.calls[number](self.rows[row]) if begun is None else begun

    def record(self, row: int, number: int, result: tuple[Any, str | None], running: RunningCall | None = None) -> None:
        """Record the result of a call, or raise ``Abandoned`` if the watchdog has abandoned it."""
        if running is not None:
            with running.lock:
                if running.is_abandoned:
                    raise Abandoned
                self.record(row, number, result)
                running.leave()
            return
        self.scores[number][row], error = result
        if error is not None:
            self.errors[number][row] = error

    def done(self, row: int, seconds: float) -> None:
        """Report that a rollout is done; raise ``Interrupted`` if the run has to stop."""
        if os.getpid() != self.process:
            # NOTE: a function has forked and returned in the child, too; files and pipes of the run belong to the parent
            os._exit(1)
        if self.seconds is not None:
            self.seconds[row] = seconds
        if self.tick is not None:
            self.tick(1)
        if self.stop is not None and self.stop.is_set():
            raise Interrupted


def failure_result(error: BaseException) -> CallResult:
    """Return the result of a call that raised, unless the exception ends the run."""
    if not is_user_error(error):
        raise error
    return failed(error)


def run_here(work: Work, running: RunningCall | None = None) -> bool:
    """Make the calls of synchronous functions, one after another, under a watchdog or not."""
    calls = [(number, call, work.scores[number]) for number, call in enumerate(work.calls)]
    direct = running is None and work.read is graded
    started = perf_counter()
    for row, values in enumerate(work.rows):
        for number, call, scores in calls:
            if scores[row] is not None:
                continue
            if running is not None:
                running.enter(row, number)
            try:
                result = call(values)
                if direct and type(result) is float and isfinite(result):  # the fast path for nearly every call
                    scores[row] = result
                    continue
                is_awaitable = inspect.isawaitable(result)
            except BaseException as error:  # noqa: BLE001  (a broken function never ends a run, whatever it raises)
                work.record(row, number, failure_result(error), running)
                continue
            if is_awaitable:
                if running is not None:
                    with running.lock:
                        if running.is_abandoned:
                            raise Abandoned
                        running.leave()
                work.begun[row, number], work.start, work.is_async = result, row, True
                return False
            work.record(row, number, work.read(result), running)
        before, started = started, perf_counter()
        work.done(row, started - before)
    return True
