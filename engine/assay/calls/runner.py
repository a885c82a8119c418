"""Run reward functions over rollouts, row by row; async functions are in ``async_runner``.

Functions run rollout by rollout in the order of the rubric, because one may leave something in ``state`` for the next.
"""

import inspect
import os
import threading
import time
from collections.abc import Awaitable, Callable, Container, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, Protocol

from assay.calls.graded import graded
from assay.calls.limits import Settled, failed, own_failure
from assay.calls.watchdog import RunningCall


class Interrupted(Exception):  # noqa: N818  (a KeyboardInterrupt that does not end an event loop)
    """The run has to stop."""


class Callee(Protocol):
    """A function that is called on rollouts."""

    @property
    def name(self) -> str:
        """The function's name, unique within a run."""
        ...

    @property
    def is_async(self) -> bool:
        """Whether the function is known to be async before it is called."""
        ...

    def caller(self, names: Sequence[str], absent: Container[str] = ()) -> Callable[[Sequence[Any]], Any]:
        """Return a callable that takes the values of ``names`` as one sequence; for ``absent`` names it uses defaults."""
        ...


@dataclass
class Work:
    """Calls and their outcomes.

    Attributes:
        functions: The functions, in order.
        names: Names of the arguments in each row.
        rows: The arguments of each rollout.
        scores: By function, then by row; None for a call that is still to be made.
        errors: By function, the errors by row.
        side_by_side: Whether async functions of one rollout run concurrently.
        absent: Names of arguments without a value.
        read: Converts the result of a call to a score and an error.
        seconds: Receives the duration of each rollout; None if not needed.
        tick: Called with the number of rollouts done since the last call.
        stop: Set when the run has to stop.
        begun: Awaitables returned by calls that were taken for synchronous, by row and function.
        start: The first row with calls to make.
    """

    functions: Sequence[Callee]
    names: Sequence[str]
    rows: Sequence[Sequence[Any]]
    side_by_side: bool = True
    absent: Container[str] = ()
    read: Callable[[Any], tuple[Any, str | None]] = graded
    seconds: list[float] | None = None
    tick: Callable[[int], None] | None = None
    stop: threading.Event | None = None
    scores: list[list[Any]] = field(init=False)
    errors: list[dict[int, str]] = field(init=False)
    calls: list[Callable[[Sequence[Any]], Any]] = field(init=False)
    begun: dict[tuple[int, int], Awaitable[Any]] = field(init=False, default_factory=dict)
    start: int = 0
    process: int = field(init=False, default_factory=os.getpid)
    """The process that makes the calls."""
    is_async: bool = field(init=False)
    """Whether a function is async, by its definition or because it has returned an awaitable."""

    def __post_init__(self) -> None:
        self.scores = [[None] * len(self.rows) for _ in self.functions]
        self.errors = [{} for _ in self.functions]
        self.calls = [function.caller(self.names, self.absent) for function in self.functions]
        self.is_async = any(function.is_async for function in self.functions)

    def call(self, row: int, number: int) -> Any:
        """Make a call, or return the awaitable of one that has begun."""
        begun = self.begun.pop((row, number), None)
        return self.calls[number](self.rows[row]) if begun is None else begun

    def settle(self, row: int, number: int, result: tuple[Any, str | None]) -> None:
        """Record the result of a call."""
        self.scores[number][row], error = result
        if error is not None:
            self.errors[number][row] = error

    def done(self, row: int, seconds: float) -> None:
        """Report that a rollout is done.

        Raises:
            Interrupted: The run has to stop.
        """
        if os.getpid() != self.process:
            # NOTE: a function has forked and returned in the child, too; files and pipes of the run belong to the parent
            os._exit(1)
        if self.seconds is not None:
            self.seconds[row] = seconds
        if self.tick is not None:
            self.tick(1)
        if self.stop is not None and self.stop.is_set():
            raise Interrupted

    def begin(self, row: int, number: int, awaitable: Awaitable[Any]) -> None:
        """Record that a call returned an awaitable unexpectedly; all calls before it are done."""
        self.begun[row, number], self.start, self.is_async = awaitable, row, True


def settled_failure(error: BaseException) -> Settled:
    """Return the result of a call that raised, unless the exception ends the run."""
    if not own_failure(error):
        raise error
    return failed(error)


def run_here(
    work: Work,
    running: RunningCall | None = None,
    settle: Callable[[int, int, Settled], None] | None = None,
    begin: Callable[[int, int, Awaitable[Any]], None] | None = None,
) -> bool:
    """Make the calls of synchronous functions, one after another.

    Args:
        work: The calls.
        running: Receives the call that runs.
        settle: Receives the result of a call; default: ``work.settle``.
        begin: Receives an awaitable that a call returned; default: ``work.begin``.

    Returns:
        Whether all calls are done; if not, one returned an awaitable, and ``run_async`` continues from there.
    """
    settle, begin = settle or work.settle, begin or work.begin
    calls = [(number, call, work.scores[number]) for number, call in enumerate(work.calls)]
    direct = running is None and work.read is graded
    started = time.perf_counter()
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
                settle(row, number, settled_failure(error))
            else:
                if is_awaitable:
                    begin(row, number, result)
                    return False
                settle(row, number, work.read(result))
            if running is not None:
                running.leave()
        before, started = started, time.perf_counter()
        work.done(row, started - before)
    return True
