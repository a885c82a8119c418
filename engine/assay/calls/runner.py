"""Running reward functions over rollouts: row by row, asynchronous ones side by side, slow ones bounded.

Functions run rollout by rollout, each in the order of the rubric, for they may leave something in ``state`` for the next.
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
from assay.calls.watchdog import Cell, Stepped

__all__ = ["Callee", "Interrupted", "Work", "run_async", "run_here", "run_in_loop", "within"]


class Interrupted(Exception):  # noqa: N818  (a KeyboardInterrupt that no event loop dies of)
    """The run is to stop."""


class Callee(Protocol):
    """A function to be called on rollouts."""

    @property
    def name(self) -> str:
        """Its name, unique among those it runs with."""
        ...

    @property
    def is_async(self) -> bool:
        """Whether it is known to be asynchronous before it is called."""
        ...

    def caller(self, names: Sequence[str], absent: Container[str] = ()) -> Callable[[Sequence[Any]], Any]:
        """The function as a function of one sequence, the values of ``names``; of those ``absent`` it uses its defaults."""
        ...


@dataclass
class Work:
    """Calls to make, and what came of them.

    Attributes:
        functions: The functions, in order.
        names: Names of the arguments in each row.
        rows: The arguments of each rollout.
        scores: By function, then by row; None for a call that is still to be made.
        errors: By function, the errors by row.
        side_by_side: Whether asynchronous functions of one rollout run together.
        absent: Names that nobody knows a value of.
        read: What a call gave, as a score and an error.
        seconds: How long each rollout took, where somebody wants to know.
        tick: Called with the number of rollouts done since the last call.
        stop: Set when no more calls are to be made.
        begun: What is to be awaited of calls that are made, by row and function.
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
    """The process whose work it is."""
    is_async: bool = field(init=False)
    """Whether a function is asynchronous: known to be, or found to be by what it gave."""

    def __post_init__(self) -> None:
        self.scores = [[None] * len(self.rows) for _ in self.functions]
        self.errors = [{} for _ in self.functions]
        self.calls = [one.caller(self.names, self.absent) for one in self.functions]
        self.is_async = any(one.is_async for one in self.functions)

    def call(self, row: int, number: int) -> Any:
        """Make a call, or take up one that has begun."""
        begun = self.begun.pop((row, number), None)
        return self.calls[number](self.rows[row]) if begun is None else begun

    def settle(self, row: int, number: int, one: tuple[Any, str | None]) -> None:
        """Write down what came of a call."""
        self.scores[number][row] = one[0]
        if one[1] is not None:
            self.errors[number][row] = one[1]

    def done(self, row: int, seconds: float) -> None:
        """Tell those who want to know that a rollout is done.

        Raises:
            Interrupted: It was the last, for the run is to stop.
        """
        if os.getpid() != self.process:
            # NOTE: a function forked and came back in the child, too: the run is the parent's, with its files and pipes
            os._exit(1)
        if self.seconds is not None:
            self.seconds[row] = seconds
        if self.tick is not None:
            self.tick(1)
        if self.stop is not None and self.stop.is_set():
            raise Interrupted

    def begin(self, row: int, number: int, given: Awaitable[Any]) -> None:
        """Write down that a call, which nobody knew to be asynchronous, gave something to be awaited; all before it are done."""
        self.begun[row, number], self.start, self.is_async = given, row, True


def _failed(wrong: BaseException) -> Settled:
    """What came of a call that raised, unless the run is to end."""
    if not own_failure(wrong):
        raise wrong
    return failed(wrong)


# ── here and now ───────────────────────────────────────────────────────────────────────────────────────


def run_here(
    work: Work,
    cell: Cell | None = None,
    settle: Callable[[int, int, Settled], None] | None = None,
    begin: Callable[[int, int, Awaitable[Any]], None] | None = None,
) -> bool:
    """Make the calls of functions that are not asynchronous, one after another.

    Args:
        work: The calls.
        cell: Where to say which call is being made.
        settle: Takes what came of a call, by default ``work.settle``.
        begin: Takes what is to be awaited, by default ``work.begin``.

    Returns:
        Whether all are made; if not, one gave something to be awaited, and ``run_async`` goes on from there.
    """
    settle, begin = settle or work.settle, begin or work.begin
    calls = [(number, call, work.scores[number]) for number, call in enumerate(work.calls)]
    direct = cell is None and work.read is settled
    started = time.perf_counter()
    for row, values in enumerate(work.rows):
        for number, call, scores in calls:
            if scores[row] is not None:
                continue
            if cell is not None:
                cell.enter(row, number)
            try:
                given = call(values)
                if direct and type(given) is float and isfinite(given):  # what nearly every call gives
                    scores[row] = given
                    continue
                waits = inspect.isawaitable(given)
            except BaseException as wrong:  # noqa: BLE001  (one broken function never ends a run, whatever it raises)
                settle(row, number, _failed(wrong))
            else:
                if waits:
                    begin(row, number, given)
                    return False
                settle(row, number, work.read(given))
            if cell is not None:
                cell.leave()
        before, started = started, time.perf_counter()
        work.done(row, started - before)
    return True


async def run_async(
    work: Work,
    limits: Limits,
    cell: Cell | None = None,
    settle: Callable[[int, int, Settled], None] | None = None,
) -> None:
    """Make the calls, with as many rollouts at once as the limits allow.

    Args:
        work: The calls.
        limits: ``max_concurrent`` and ``timeout`` hold.
        cell: Where to say which call has the interpreter.
        settle: Takes what came of a call, by default ``work.settle``.

    Raises:
        Interrupted: The run is to stop.
    """
    settle = settle or work.settle
    rows = iter(range(work.start, len(work.rows)))

    async def call(row: int, number: int) -> None:
        if work.scores[number][row] is not None:
            return
        try:
            one = await _called(work, row, number, limits.timeout, cell)
        except GeneratorExit as wrong:
            # NOTE: where a call awaits a future that ended with one, Python closes the call, and raises it here
            one = failed(wrong)
        settle(row, number, one)

    async def one_by_one() -> None:
        for row in rows:
            started = time.perf_counter()
            calls = [call(row, number) for number in range(len(work.calls))]
            await (asyncio.gather(*calls) if work.side_by_side else _in_turn(calls))
            work.done(row, time.perf_counter() - started)

    at_once = len(work.rows) if limits.max_concurrent <= 0 else min(limits.max_concurrent, len(work.rows))
    stopped = False
    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(at_once):
                group.create_task(one_by_one())
    except* Interrupted:
        stopped = True
    if stopped:
        raise Interrupted


async def _in_turn(calls: Sequence[Coroutine[Any, Any, None]]) -> None:
    for one in calls:
        await asyncio.create_task(one)  # in a task of its own nothing else is closed with it, either


class _Late(Exception):  # noqa: N818  (not what a function raises)
    """A call took too long."""


async def within(awaited: Awaitable[Any], seconds: float | None = None) -> Any:
    """What an awaitable gives within a time; what takes longer is cancelled, and left behind where it does not mind.

    Whatever it raises, the caller has it: in a task of its own nothing is closed but the awaitable.

    Raises:
        _Late: It takes longer.
    """

    async def wait() -> tuple[Any, BaseException | None]:
        try:
            return await awaited, None
        except asyncio.CancelledError as wrong:
            if task.cancelling():
                raise
            return None, wrong
        except BaseException as wrong:  # noqa: BLE001  (some would end the loop if a task of it raised them)
            return None, wrong

    task = asyncio.create_task(wait())
    try:
        await asyncio.wait([task], timeout=seconds)
    finally:
        if not task.done():
            task.cancel()
            task.add_done_callback(lambda task: task.cancelled() or task.exception())  # nobody else will look
    if not task.done():
        raise _Late
    given, wrong = task.result()
    if wrong is not None:
        raise wrong
    return given


async def run_in_loop(work: Work, limits: Limits) -> None:
    """Make the calls in the caller's thread and loop."""
    try:
        if work.is_async or not run_here(work):
            await run_async(work, limits)
    except Interrupted:
        raise KeyboardInterrupt from None


async def _called(work: Work, row: int, number: int, seconds: float | None, cell: Cell | None) -> Settled:
    if cell is not None:
        cell.enter(row, number)
    try:
        given = work.call(row, number)
        if inspect.isawaitable(given):
            awaited = given if cell is None else Stepped(given, cell, (row, number))
            given = await (awaited if seconds is None else within(awaited, seconds))
    except _Late:
        return timed_out(seconds or 0.0)
    except asyncio.CancelledError as wrong:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        return failed(wrong)  # the function's own doing
    except KeyboardInterrupt:
        raise Interrupted from None
    except BaseException as wrong:  # noqa: BLE001  (one broken function never ends a run, whatever it raises)
        return _failed(wrong)
    finally:
        if cell is not None:
            cell.leave()
    return work.read(given)
