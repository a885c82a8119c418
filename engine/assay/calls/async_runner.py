"""Run async reward functions over rollouts concurrently, each call within limits."""

import asyncio
import contextlib
import inspect
import threading
import time
from collections.abc import Awaitable, Coroutine, Generator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from assay.calls.coroutines import work_off
from assay.calls.limits import CallResult, Limits, failed, timed_out
from assay.calls.runner import Interrupted, RunningCall, Work, failure_result, run_here
from assay.errors import Abandoned


async def run_async(work: Work, limits: Limits, running: RunningCall | None = None) -> None:
    """Make the calls, with as many rollouts at once as the limits allow; ``running`` receives the call that holds the interpreter."""

    async def call(row: int, number: int) -> None:
        if work.scores[number][row] is not None:
            return
        try:
            result = await _called(work, row, number, limits.timeout, running)
        except GeneratorExit as error:
            # NOTE: if a call awaits a future that ended with GeneratorExit, Python closes the call and raises it here
            result = failed(error)
        work.record(row, number, result, running)

    async def work_through(row: int) -> None:
        started = time.perf_counter()
        calls = [call(row, number) for number in range(len(work.calls))]
        if work.side_by_side:
            await asyncio.gather(*calls)
        else:
            for one in calls:
                await asyncio.create_task(one)  # a separate task: closing it closes nothing else
        work.done(row, time.perf_counter() - started)

    concurrent = len(work.rows) if limits.max_concurrent <= 0 else min(limits.max_concurrent, len(work.rows))
    await work_off(range(work.start, len(work.rows)), work_through, concurrent)


class _TimedOut(Exception):  # noqa: N818  (never raised by a user's function)
    """A call took too long."""


async def within(awaited: Awaitable[Any], seconds: float | None = None) -> Any:
    """Await in a separate task, so that nothing else is closed with it; raise ``_TimedOut`` after the seconds, and cancel or abandon it."""

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


async def _called(work: Work, row: int, number: int, seconds: float | None, running: RunningCall | None) -> CallResult:
    if running is not None:
        running.enter(row, number)
    try:
        result = work.call(row, number)
        if inspect.isawaitable(result):
            awaited = result if running is None else _WatchedAwaitable(result, running, (row, number))
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
        return failure_result(error)
    finally:
        if running is not None:
            running.leave()
    return work.read(result)


@dataclass
class _WatchedAwaitable:
    """An awaitable that records when it holds the interpreter."""

    inner: Awaitable[Any]
    running: RunningCall
    call: tuple[int, int]

    def __await__(self) -> Generator[Any, Any, Any]:
        steps: Any = self.inner.__await__()
        step: Any = steps.__next__
        arguments: tuple[BaseException, ...] = ()
        while True:
            self.running.enter(*self.call)
            try:
                awaited = step(*arguments)
            except StopIteration as end:
                return end.value
            finally:
                self.running.leave()
            try:
                yield awaited
                step, arguments = steps.__next__, ()
            except GeneratorExit:
                steps.close()
                raise
            except BaseException as error:  # noqa: BLE001  (passed to the coroutine)
                step, arguments = steps.throw, (error,)


def run_to_end(loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine to its end, even if another task, started by user code, stops the loop or raises what would stop it."""
    task = loop.create_task(coroutine)
    while True:
        try:
            return loop.run_until_complete(task)
        except (SystemExit, KeyboardInterrupt, Abandoned):
            # where the loop itself is abandoned, the call that hung has ended, and those of other runs go on
            if task.done():  # raised by the coroutine itself
                raise
        except RuntimeError:
            if task.done() or loop.is_closed():
                raise
            # user code stopped the loop, which other calls share: run it again


class LoopThread(threading.Thread):
    """An event loop and its thread."""

    def __init__(self) -> None:
        super().__init__(name="assay-rewards", daemon=True)
        self.loop: asyncio.AbstractEventLoop
        self.end: asyncio.Event
        self._ready = threading.Event()
        self.start()
        self._ready.wait()

    def submit(self, coroutine: Coroutine[Any, Any, Any]) -> Future[Any]:
        """Run a coroutine in this loop; call this from any other thread."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop)

    def run(self) -> None:
        """Live until ``end`` is set and the calls of runs that do not hang are made."""

        async def live() -> None:
            self.loop, self.end = asyncio.get_running_loop(), asyncio.Event()
            self._ready.set()
            await self.end.wait()
            while others := asyncio.all_tasks() - {asyncio.current_task()}:
                await asyncio.wait(others)

        with contextlib.suppress(Abandoned), asyncio.Runner() as runner:
            run_to_end(runner.get_loop(), live())
