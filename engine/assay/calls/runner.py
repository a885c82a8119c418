"""Run reward functions over rollouts: row by row, async functions concurrently, slow functions within limits.

Functions run rollout by rollout in the order of the rubric, because one may leave something in ``state`` for the next.
"""

import asyncio
import inspect
import os
import threading
import time
from collections.abc import Awaitable, Callable, Container, Coroutine, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, Protocol

from assay.calls.limits import Limits, Settled, failed, own_failure, settled, timed_out
from assay.calls.watchdog import RunningCall, WatchedAwaitable

__all__ = ["Callee", "Interrupted", "Work", "run_async", "run_here", "run_in_loop", "within"]


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
    read: Callable[[Any], tuple[Any, str | None]] = settled
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


def _failed(error: BaseException) -> Settled:
    """Return the result of a call that raised, unless the exception ends the run."""
    if not own_failure(error):
        raise error
    return failed(error)


# ── synchronous calls ──────────────────────────────────────────────────────────────────────────────────


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
    direct = running is None and work.read is settled
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
                settle(row, number, _failed(error))
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


async def run_async(
    work: Work,
    limits: Limits,
    running: RunningCall | None = None,
    settle: Callable[[int, int, Settled], None] | None = None,
) -> None:
    """Make the calls, with as many rollouts at once as the limits allow.

    Args:
        work: The calls.
        limits: ``max_concurrent`` and ``timeout`` apply.
        running: Receives the call that holds the interpreter.
        settle: Receives the result of a call; default: ``work.settle``.

    Raises:
        Interrupted: The run has to stop.
    """
    settle = settle or work.settle
    rows = iter(range(work.start, len(work.rows)))

    async def call(row: int, number: int) -> None:
        if work.scores[number][row] is not None:
            return
        try:
            result = await _called(work, row, number, limits.timeout, running)
        except GeneratorExit as error:
            # NOTE: if a call awaits a future that ended with GeneratorExit, Python closes the call and raises it here
            result = failed(error)
        settle(row, number, result)

    async def work_through() -> None:
        for row in rows:
            started = time.perf_counter()
            calls = [call(row, number) for number in range(len(work.calls))]
            await (asyncio.gather(*calls) if work.side_by_side else _in_turn(calls))
            work.done(row, time.perf_counter() - started)

    concurrent = len(work.rows) if limits.max_concurrent <= 0 else min(limits.max_concurrent, len(work.rows))
    stopped = False
    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(concurrent):
                group.create_task(work_through())
    except* Interrupted:
        stopped = True
    if stopped:
        raise Interrupted


async def _in_turn(calls: Sequence[Coroutine[Any, Any, None]]) -> None:
    for call in calls:
        await asyncio.create_task(call)  # a separate task: closing it closes nothing else


class _TimedOut(Exception):  # noqa: N818  (never raised by a user's function)
    """A call took too long."""


async def within(awaited: Awaitable[Any], seconds: float | None = None) -> Any:
    """Await within a time limit; cancel what takes longer, and abandon it if it ignores the cancellation.

    Exceptions of the awaitable are raised here; it runs in a separate task, so that nothing else is closed with it.

    Raises:
        _TimedOut: It takes longer.
    """

    async def wait() -> tuple[Any, BaseException | None]:
        try:
            return await awaited, None
        except asyncio.CancelledError as error:
            if task.cancelling():
                raise
            return None, error
        except BaseException as error:  # noqa: BLE001  (some exceptions would end the loop if raised in a task)
            return None, error

    task = asyncio.create_task(wait())
    try:
        await asyncio.wait([task], timeout=seconds)
    finally:
        if not task.done():
            task.cancel()
            # mark the exception as retrieved
            task.add_done_callback(lambda task: task.cancelled() or task.exception())
    if not task.done():
        raise _TimedOut
    result, error = task.result()
    if error is not None:
        raise error
    return result


async def run_in_loop(work: Work, limits: Limits) -> None:
    """Make the calls in the caller's thread and loop."""
    try:
        if work.is_async or not run_here(work):
            await run_async(work, limits)
    except Interrupted:
        raise KeyboardInterrupt from None


async def _called(work: Work, row: int, number: int, seconds: float | None, running: RunningCall | None) -> Settled:
    if running is not None:
        running.enter(row, number)
    try:
        result = work.call(row, number)
        if inspect.isawaitable(result):
            awaited = result if running is None else WatchedAwaitable(result, running, (row, number))
            result = await (awaited if seconds is None else within(awaited, seconds))
    except _TimedOut:
        return timed_out(seconds or 0.0)
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        return failed(error)  # raised by the function itself
    except KeyboardInterrupt:
        raise Interrupted from None
    except BaseException as error:  # noqa: BLE001  (a broken function never ends a run, whatever it raises)
        return _failed(error)
    finally:
        if running is not None:
            running.leave()
    return work.read(result)
