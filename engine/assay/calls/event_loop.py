"""One event loop for the async functions of all runs."""

import contextlib
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from assay.calls.loop_thread import LoopThread


class EventLoop:
    """An event loop in a separate thread, shared by all runs so that clients of services keep their connections."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._served: LoopThread | None = None

    def start(self, coroutine: Coroutine[Any, Any, Any]) -> "tuple[Future[Any], LoopThread]":
        """Run a coroutine; call this from any thread except the loop's own.

        Returns:
            The future of its result, and the loop that runs it.
        """
        from assay.calls.loop_thread import LoopThread  # asyncio takes 40 ms, and few runs have async functions

        with self._lock:
            if self._served is None or not self._served.thread.is_alive():
                self._served = LoopThread()
            return self._served.submit(coroutine), self._served

    def make_way(self) -> None:
        """Use a new loop from now on if the caller runs in this one: it would wait for itself."""
        served = self._served
        if served is not None and served.thread is threading.current_thread():
            self.leave(served)

    def leave(self, served: "LoopThread") -> None:
        """Abandon a loop that hangs: new coroutines run in another one, and this one ends with its last task."""
        with self._lock:
            if self._served is served:
                self._served = None
        with contextlib.suppress(RuntimeError):  # the loop has ended
            served.loop.call_soon_threadsafe(served.end.set)


LOOP = EventLoop()
