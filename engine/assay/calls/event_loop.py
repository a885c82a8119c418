"""One event loop for the async functions of all runs."""

import asyncio
import contextlib
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any

__all__ = ["LOOP", "run_to_end"]


def run_to_end(loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine to its end, even if another task, started by user code, stops the loop or raises what would stop it."""
    task = loop.create_task(coroutine)
    while True:
        try:
            return loop.run_until_complete(task)
        except (SystemExit, KeyboardInterrupt):
            if task.done():  # raised by the coroutine itself
                raise
        except RuntimeError:
            if task.done() or loop.is_closed():
                raise
            # user code stopped the loop, which other calls share: run it again


class EventLoop:
    """An event loop in a separate thread, shared by all runs so that clients of services keep their connections."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._served: Served | None = None

    def start(self, coroutine: Coroutine[Any, Any, Any]) -> "tuple[Future[Any], Served]":
        """Run a coroutine; call this from any thread except the loop's own.

        Returns:
            The future of its result, and the loop that runs it.
        """
        with self._lock:
            if self._served is None or not self._served.thread.is_alive():
                self._served = Served()
            return asyncio.run_coroutine_threadsafe(coroutine, self._served.loop), self._served

    def make_way(self) -> None:
        """Use a new loop from now on if the caller runs in this one: it would wait for itself."""
        served = self._served
        if served is not None and served.thread is threading.current_thread():
            self.leave(served)

    def leave(self, served: "Served") -> None:
        """Abandon a loop that hangs: new coroutines run in another one, and this one ends with its last task."""
        with self._lock:
            if self._served is served:
                self._served = None
        with contextlib.suppress(RuntimeError):  # the loop has ended
            served.loop.call_soon_threadsafe(served.end.set)


class Served:
    """An event loop and its thread."""

    def __init__(self) -> None:
        self.loop: asyncio.AbstractEventLoop
        self.end: asyncio.Event
        self._ready = threading.Event()
        self.thread = threading.Thread(target=self._run, name="assay-rewards", daemon=True)
        self.thread.start()
        self._ready.wait()

    def _run(self) -> None:
        with asyncio.Runner() as runner:
            run_to_end(runner.get_loop(), self._live())

    async def _live(self) -> None:
        self.loop, self.end = asyncio.get_running_loop(), asyncio.Event()
        self._ready.set()
        await self.end.wait()
        while others := asyncio.all_tasks() - {asyncio.current_task()}:  # calls of runs that do not hang
            await asyncio.wait(others)


LOOP = EventLoop()
