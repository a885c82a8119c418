"""Run user code within the limits of a run: abandon calls that take too long in their thread, and stop when the run is stopped."""

import contextlib
import ctypes
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future, wait
from typing import TYPE_CHECKING, Any

from assay.calls.limits import Limits, timed_out
from assay.calls.runner import Interrupted, RunningCall, Work, run_here
from assay.errors import Abandoned

if TYPE_CHECKING:
    from assay.calls.async_runner import LoopThread

_POLL = 0.2
"""Seconds between two checks whether the run has to stop."""


def each(
    function: Callable[[Any], Any], values: Sequence[Any], limits: Limits | None, late: Callable[[str], Any]
) -> list[Any]:
    """Call a function that never raises on each value, within limits; ``late`` makes the result of a call that timed out of its error."""
    if limits is None:
        return [function(value) for value in values]
    work = Work([lambda row: function(row[0])], [(value,) for value in values], read=lambda result: ((result,), None))
    work.stop = limits.stop
    run(work, limits)
    (results,), (errors,) = work.scores, work.errors
    return [late(errors[row]) if row in errors else result[0] for row, result in enumerate(results)]


def run(work: Work, limits: Limits) -> None:
    """Make the calls in this process."""
    try:
        if limits.timeout is not None:
            while not _run_until_late(work, limits, limits.timeout):
                pass
        elif work.is_async or not run_here(work):
            from assay.calls.async_runner import run_async  # asyncio is slow to import

            future, _ = LOOP.start(run_async(work, limits))
            while limits.stop is not None and not wait([future], timeout=_POLL).done:
                if limits.stop.is_set():
                    future.cancel()
                    raise KeyboardInterrupt
            future.result()
    except Interrupted:
        raise KeyboardInterrupt from None


def _started(work: Work, limits: Limits, running: RunningCall) -> tuple[Future[bool], Any]:
    async def make_in_loop() -> bool:
        from assay.calls.async_runner import run_async

        with contextlib.suppress(Abandoned):
            await run_async(work, limits, running)
        return True

    if work.is_async:
        return LOOP.start(make_in_loop())
    outcome = Future[bool]()

    def make_in_thread() -> None:
        try:
            outcome.set_result(run_here(work, running))
        except Abandoned:
            return
        except BaseException as error:  # noqa: BLE001  (raised again in the caller)
            outcome.set_exception(error)

    thread = threading.Thread(target=make_in_thread, name="assay-rewards", daemon=True)
    thread.start()
    return outcome, thread


def _run_until_late(work: Work, limits: Limits, seconds: float) -> bool:
    running, in_loop = RunningCall(), work.is_async
    outcome, thread = _started(work, limits, running)
    longest = seconds if limits.stop is None else min(seconds, _POLL)
    while not wait([outcome], max(min(running.left(seconds), longest), 0.001)).done:
        with running.lock:
            is_late = bool(running.since) and time.monotonic() - running.since >= seconds
            is_stopped = limits.stop is not None and limits.stop.is_set()
            running.is_abandoned = is_late or is_stopped
            if is_late:
                work.record(*running.call, timed_out(seconds))
        if not running.is_abandoned:
            continue
        if in_loop:
            outcome.cancel()
            LOOP.leave(thread)
        # if it executes Python code, it ends at the next line
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(Abandoned))
        if is_late:
            return False
        raise KeyboardInterrupt
    # calls that were cancelled because another run's call hung are made again
    return (outcome.cancelled() or outcome.result()) and not any(None in scores for scores in work.scores)


class EventLoop:
    """An event loop in a separate thread, shared by all runs so that clients of services keep their connections."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._served: LoopThread | None = None

    def start(self, coroutine: Coroutine[Any, Any, Any]) -> "tuple[Future[Any], LoopThread]":
        """Run a coroutine, from any thread except the loop's own; return the future of its result and the loop that runs it."""
        from assay.calls.async_runner import LoopThread  # asyncio takes 40 ms, and few runs have async functions

        with self._lock:
            if self._served is None or not self._served.is_alive():
                self._served = LoopThread()
            return self._served.submit(coroutine), self._served

    def make_way(self) -> None:
        """Use a new loop from now on if the caller runs in this one: it would wait for itself."""
        served = self._served
        if served is not None and served is threading.current_thread():
            self.leave(served)

    def leave(self, served: "LoopThread") -> None:
        """Abandon a loop that hangs: new coroutines run in another one, and this one ends with its last task."""
        with self._lock:
            if self._served is served:
                self._served = None
        with contextlib.suppress(RuntimeError):  # the loop has ended
            served.loop.call_soon_threadsafe(served.end.set)


LOOP = EventLoop()
"""The loop of the async functions of all runs."""
