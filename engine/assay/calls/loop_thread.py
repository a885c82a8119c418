"""An event loop that runs in a thread of its own."""

import asyncio
import contextlib
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any

from assay.errors import Abandoned


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


class LoopThread:
    """An event loop and its thread."""

    def __init__(self) -> None:
        self.loop: asyncio.AbstractEventLoop
        self.end: asyncio.Event
        self._ready = threading.Event()
        self.thread = threading.Thread(target=self._run, name="assay-rewards", daemon=True)
        self.thread.start()
        self._ready.wait()

    def submit(self, coroutine: Coroutine[Any, Any, Any]) -> Future[Any]:
        """Run a coroutine in this loop; call this from any other thread."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop)

    def _run(self) -> None:
        with contextlib.suppress(Abandoned), asyncio.Runner() as runner:
            run_to_end(runner.get_loop(), self._live())

    async def _live(self) -> None:
        self.loop, self.end = asyncio.get_running_loop(), asyncio.Event()
        self._ready.set()
        await self.end.wait()
        while others := asyncio.all_tasks() - {asyncio.current_task()}:  # calls of runs that do not hang
            await asyncio.wait(others)
