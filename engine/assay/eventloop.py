"""One event loop for the asynchronous functions of all runs."""

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any

__all__ = ["LOOP"]


class EventLoop:
    """An event loop in a thread of its own. Clients of services stay usable: their connections belong to one loop."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._end = asyncio.Event()
        self.thread: threading.Thread | None = None

    def start(self, coroutine: Coroutine[Any, Any, Any]) -> "Future[Any]":
        """Run a coroutine, from any thread but the loop's own."""
        with self._lock:
            if self._loop is None:
                ready = threading.Event()
                self.thread = threading.Thread(target=self._serve, args=(ready,), name="assay-rewards", daemon=True)
                self.thread.start()
                ready.wait()
            assert self._loop is not None  # noqa: S101  (the thread has made it)
            return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def leave(self) -> None:
        """The loop hangs: the next coroutine gets another, and this one ends when it can."""
        with self._lock:
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._end.set)
            self._loop = None

    def _serve(self, ready: threading.Event) -> None:
        async def live() -> None:
            end = self._end = asyncio.Event()
            self._loop = asyncio.get_running_loop()
            ready.set()
            await end.wait()

        asyncio.run(live())


LOOP = EventLoop()
