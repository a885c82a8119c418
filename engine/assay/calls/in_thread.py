"""Run user code within the limits of a run: abandon calls that take too long in their thread, and stop when the run is stopped."""

import contextlib
import ctypes
import threading
import time
from collections.abc import Awaitable, Callable, Container, Generator, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from assay.calls.event_loop import LOOP
from assay.calls.limits import Limits, Settled, timed_out
from assay.calls.runner import Interrupted, Work, run_here
from assay.calls.watchdog import Abandoned, RunningCall

if TYPE_CHECKING:
    from assay.calls.loop_thread import LoopThread

_POLL = 0.2
"""Seconds between two checks whether the run has to stop."""


# ── one function on many values ─────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class _ValueFunction:
    """A function of one value as a ``Callee``."""

    function: Callable[[Any], Any]
    name: str = ""
    is_async: bool = False

    def caller(self, names: Sequence[str], absent: Container[str] = ()) -> Callable[[Sequence[Any]], Any]:
        del names, absent
        return lambda values: self.function(values[0])


def each(
    function: Callable[[Any], Any], values: Sequence[Any], limits: Limits | None, late: Callable[[str], Any]
) -> list[Any]:
    """Call a function on each value, within limits.

    Args:
        function: It must not raise.
        values: The values.
        limits: ``timeout`` and ``stop`` apply; None for no limits.
        late: Returns the result of a call that timed out, given the error.

    Raises:
        KeyboardInterrupt: The run has to stop.
    """
    if limits is None:
        return [function(value) for value in values]
    work = Work(
        [_ValueFunction(function)], ("value",), [(value,) for value in values], read=lambda result: ((result,), None)
    )
    work.stop = limits.stop
    run(work, limits)
    (results,), (errors,) = work.scores, work.errors
    return [late(errors[row]) if row in errors else result[0] for row, result in enumerate(results)]


# ── with a time limit: in a thread that can be abandoned ────────────────────────────────────────────────────────────────


def run(work: Work, limits: Limits) -> None:
    """Make the calls in this process.

    Args:
        work: The calls; receives their outcomes.
        limits: With a timeout, a call that holds the interpreter for longer scores 0.0, and its thread is abandoned. A call that
            never releases the interpreter (a backtracking regular expression) can be stopped only in a worker process.
    """
    try:
        if limits.timeout is None:
            if work.is_async or not run_here(work):
                from assay.calls.async_runner import run_async  # asyncio is slow to import

                _wait(LOOP.start(run_async(work, limits))[0], limits.stop)
            return
        while not _Attempt(work, limits).watch(limits.timeout):
            pass
    except Interrupted:
        raise KeyboardInterrupt from None


def _wait(future: "Future[None]", stop: threading.Event | None) -> None:
    """Wait until all calls are done or the run has to stop."""
    while stop is not None and not wait([future], timeout=_POLL).done:
        if stop.is_set():
            future.cancel()
            raise KeyboardInterrupt
    future.result()


class _Attempt:
    """The remaining calls, in a thread with a watchdog."""

    def __init__(self, work: Work, limits: Limits) -> None:
        self._work = work
        self._limits = limits
        self._running = RunningCall()
        self._lock = threading.Lock()
        self._abandoned = False
        self._unfinished = False
        self._done = threading.Event()
        self._error: BaseException | None = None
        self._thread: threading.Thread | None = None
        self._future: Future[Any] | None = None
        self._served: LoopThread | None = None

    def watch(self, timeout: float) -> bool:
        """Make the calls until one takes too long.

        Returns:
            Whether all calls are done.
        """
        self._start()
        while not self._done.wait(self._patience(timeout)):
            with self._lock:
                since = self._running.since
                if since and time.monotonic() - since >= timeout:
                    self._abandoned = True
                    self._work.settle(*self._running.call, timed_out(timeout))
            if self._abandoned:
                self._abandon()
                return False
            if self._limits.stop is not None and self._limits.stop.is_set():
                self._abandoned = True
                self._abandon()
                raise KeyboardInterrupt
        if self._error is not None:
            raise self._error
        # calls that were cancelled because another run's call hung are made again
        return not self._unfinished and not any(None in scores for scores in self._work.scores)

    def _patience(self, timeout: float) -> float:
        since = self._running.since
        patience = max(since + timeout - time.monotonic(), 0.001) if since else timeout
        return patience if self._limits.stop is None else min(patience, _POLL)

    def _start(self) -> None:
        if self._work.is_async:
            self._future, self._served = LOOP.start(self._all())
            self._thread = self._served.thread
            self._future.add_done_callback(self._end)
        else:
            self._thread = threading.Thread(target=self._run, name="assay-rewards", daemon=True)
            self._thread.start()

    async def _all(self) -> None:
        from assay.calls.async_runner import run_async

        try:
            await run_async(self._work, self._limits, self._running, self._settle)
        except* Abandoned:
            pass

    def _abandon(self) -> None:
        """Abandon the thread; if it executes Python code, it ends at the next line."""
        if self._future is not None and self._served is not None:
            self._future.cancel()
            LOOP.leave(self._served)
        thread = self._thread.ident if self._thread is not None else 0
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread or 0), ctypes.py_object(Abandoned))

    def _settle(self, row: int, number: int, result: Settled) -> None:
        with self._recording():
            self._work.settle(row, number, result)

    def _begin(self, row: int, number: int, awaitable: Awaitable[Any]) -> None:
        with self._recording():
            self._work.begin(row, number, awaitable)

    @contextlib.contextmanager
    def _recording(self) -> Generator[None, None, None]:
        """Record the outcome of a call, unless the watchdog has abandoned it."""
        with self._lock:
            if self._abandoned:
                raise Abandoned
            yield
            self._running.leave()

    def _run(self) -> None:
        try:
            self._unfinished = not run_here(self._work, self._running, self._settle, self._begin)
        except Abandoned:
            return
        except BaseException as error:  # noqa: BLE001  (raised again by watch)
            self._error = error
        self._done.set()

    def _end(self, future: "Future[Any]") -> None:
        self._error = None if future.cancelled() else future.exception()
        self._done.set()
