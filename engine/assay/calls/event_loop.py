"""One event loop for the asynchronous functions of all runs."""

import asyncio
import contextlib
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any

__all__ = ["LOOP", "run_to_end"]


def run_to_end(loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, Any]) -> Any:
    """What comes of a coroutine, though a task beside it, made by whoever's code, ends the loop, or raises what would."""
    task = loop.create_task(coroutine)
    while True:
        try:
            return loop.run_until_complete(task)
        except (SystemExit, KeyboardInterrupt):
            if task.done():  # it is its own
                raise
        except RuntimeError:
            if task.done() or loop.is_closed():
                raise
            # somebody's code stopped the loop, which was not made for it alone


class EventLoop:
    """An event loop in a thread of its own. Clients of services stay usable: their connections belong to one loop."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._served: Served | None = None

    def start(self, coroutine: Coroutine[Any, Any, Any]) -> "tuple[Future[Any], Served]":
        """Run a coroutine, from any thread but the loop's own.

        Returns:
            What comes of it, and where it runs.
        """
        with self._lock:
            if self._served is None or not self._served.thread.is_alive():
                self._served = Served()
            return asyncio.run_coroutine_threadsafe(coroutine, self._served.loop), self._served

    def make_way(self) -> None:
        """Whoever calls from the loop and will wait for what runs in a loop gets another one to wait for."""
        served = self._served
        if served is not None and served.thread is threading.current_thread():
            self.leave(served)

    def leave(self, served: "Served") -> None:
        """A loop hangs: the next coroutine gets another, and this one ends when all that runs in it has."""
        with self._lock:
            if self._served is served:
                self._served = None
        with contextlib.suppress(RuntimeError):  # it has ended
            served.loop.call_soon_threadsafe(served.end.set)


class Served:
    """One loop and its thread."""

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
        while others := asyncio.all_tasks() - {
            asyncio.current_task()
        }:  # of runs that have nothing to do with what hung
            await asyncio.wait(others)


LOOP = EventLoop()
