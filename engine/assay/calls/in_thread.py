"""Users' Python within the limits of a run: what takes too long is left behind in its thread, and a run can be stopped."""

import contextlib
import ctypes
import threading
import time
from collections.abc import Awaitable, Callable, Container, Generator, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from typing import Any

from assay.calls.event_loop import LOOP, Served
from assay.calls.limits import Limits, Settled, timed_out
from assay.calls.runner import Interrupted, Work, run_async, run_here
from assay.calls.watchdog import Abandoned, Cell

__all__ = ["each", "run"]

_LOOK = 0.2
"""Seconds between two looks at whether the run is to stop."""


# ── one function on many values ─────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class _OfValue:
    function: Callable[[Any], Any]
    name: str = ""
    is_async: bool = False

    def caller(self, names: Sequence[str], absent: Container[str] = ()) -> Callable[[Sequence[Any]], Any]:
        del names, absent
        return lambda values: self.function(values[0])


def each(
    function: Callable[[Any], Any], values: Sequence[Any], limits: Limits | None, late: Callable[[str], Any]
) -> list[Any]:
    """A function on each of many values, within limits.

    Args:
        function: It does not raise.
        values: The values.
        limits: ``timeout`` and ``stop`` hold; None for no limits.
        late: From what is wrong to what stands for a call that took too long.

    Raises:
        KeyboardInterrupt: The run is to stop.
    """
    if limits is None:
        return [function(value) for value in values]
    work = Work([_OfValue(function)], ("value",), [(value,) for value in values], read=lambda given: ((given,), None))
    work.stop = limits.stop
    run(work, limits)
    (found,), (errors,) = work.scores, work.errors
    return [late(errors[row]) if row in errors else one[0] for row, one in enumerate(found)]


# ── with a limit: in a thread that can be left ──────────────────────────────────────────────────────────────────────────


def run(work: Work, limits: Limits) -> None:
    """Make the calls in this process.

    Args:
        work: The calls; their outcomes are in it afterwards.
        limits: Where they set a timeout, a call that has the interpreter for longer scores 0.0, and its thread is left behind.
            What never gives the interpreter back (a regular expression that backtracks) only a worker process can bound.
    """
    try:
        if limits.timeout is None:
            if work.is_async or not run_here(work):
                _wait(LOOP.start(run_async(work, limits))[0], limits.stop)
            return
        while not _Attempt(work, limits).watch(limits.timeout):
            pass
    except Interrupted:
        raise KeyboardInterrupt from None


def _wait(future: "Future[None]", stop: threading.Event | None) -> None:
    """Wait until all calls are made, or the run is to stop."""
    while stop is not None and not wait([future], timeout=_LOOK).done:
        if stop.is_set():
            future.cancel()
            raise KeyboardInterrupt
    future.result()


class _Attempt:
    """The calls that are left, in a thread that is watched."""

    def __init__(self, work: Work, limits: Limits) -> None:
        self._work = work
        self._limits = limits
        self._cell = Cell()
        self._lock = threading.Lock()
        self._left = False
        self._goes_on = False
        self._done = threading.Event()
        self._wrong: BaseException | None = None
        self._thread: threading.Thread | None = None
        self._future: Future[Any] | None = None
        self._served: Served | None = None

    def watch(self, timeout: float) -> bool:
        """Make the calls until one takes too long.

        Returns:
            Whether all are made.
        """
        self._start()
        while not self._done.wait(self._patience(timeout)):
            with self._lock:
                since = self._cell.since
                if since and time.monotonic() - since >= timeout:
                    self._left = True
                    self._work.settle(*self._cell.call, timed_out(timeout))
            if self._left:
                self._leave()
                return False
            if self._limits.stop is not None and self._limits.stop.is_set():
                self._left = True
                self._leave()
                raise KeyboardInterrupt
        if self._wrong is not None:
            raise self._wrong
        # what was cancelled by another run's hanging call is made again
        return not self._goes_on and not any(None in scores for scores in self._work.scores)

    def _patience(self, timeout: float) -> float:
        since = self._cell.since
        patience = max(since + timeout - time.monotonic(), 0.001) if since else timeout
        return patience if self._limits.stop is None else min(patience, _LOOK)

    def _start(self) -> None:
        if self._work.is_async:
            self._future, self._served = LOOP.start(self._all())
            self._thread = self._served.thread
            self._future.add_done_callback(self._end)
        else:
            self._thread = threading.Thread(target=self._run, name="assay-rewards", daemon=True)
            self._thread.start()

    async def _all(self) -> None:
        try:
            await run_async(self._work, self._limits, self._cell, self._settle)
        except* Abandoned:
            pass

    def _leave(self) -> None:
        """Give the thread up; where it is in Python, it ends at the next line."""
        if self._future is not None and self._served is not None:
            self._future.cancel()
            LOOP.leave(self._served)
        thread = self._thread.ident if self._thread is not None else 0
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread or 0), ctypes.py_object(Abandoned))

    def _settle(self, row: int, number: int, one: Settled) -> None:
        with self._held():
            self._work.settle(row, number, one)

    def _begin(self, row: int, number: int, given: Awaitable[Any]) -> None:
        with self._held():
            self._work.begin(row, number, given)

    @contextlib.contextmanager
    def _held(self) -> Generator[None, None, None]:
        """While a call is written down that nobody has given up."""
        with self._lock:
            if self._left:
                raise Abandoned
            yield
            self._cell.leave()

    def _run(self) -> None:
        try:
            self._goes_on = not run_here(self._work, self._cell, self._settle, self._begin)
        except Abandoned:
            return
        except BaseException as wrong:  # noqa: BLE001  (raised where it is waited for)
            self._wrong = wrong
        self._done.set()

    def _end(self, future: "Future[Any]") -> None:
        self._wrong = None if future.cancelled() else future.exception()
        self._done.set()
