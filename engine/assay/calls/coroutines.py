"""Run many coroutines in a bounded pool, and coroutines from synchronous code."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any, TypeVar

_T = TypeVar("_T")

_GLANCE = 0.1
"""Seconds between two checks whether the waiting caller was cancelled."""


async def maybe_await(value: Any) -> Any:
    """Return a function's result, awaited if it is awaitable."""
    return await value if isinstance(value, Awaitable) else value


async def work_off(items: Iterable[_T], process: Callable[[_T], Awaitable[None]], workers: int) -> None:
    """Process every item, up to ``workers`` at a time; the first exception cancels the others."""
    remaining = iter(items)

    async def work() -> None:
        for item in remaining:
            await process(item)

    tasks = [asyncio.create_task(work()) for _ in range(workers)]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def in_own_loop(make: Callable[[], Coroutine[Any, Any, _T]], threads: int) -> _T:
    """Run a coroutine in a new event loop: in this thread, or in a new one if this one runs a loop; ``threads`` for ``asyncio.to_thread``."""
    started: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = []
    results: list[_T] = []

    async def main() -> None:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        loop.set_default_executor(ThreadPoolExecutor(max_workers=threads))
        if task is not None:
            started.append((loop, task))
        # NOTE: not returned, because asyncio.run, when it restores the SIGINT handler, computes the repr of the task and its result
        results.append(await make())

    def stop() -> None:
        for loop, task in started:
            with contextlib.suppress(RuntimeError):  # the loop has just ended
                loop.call_soon_threadsafe(task.cancel)

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        asyncio.run(main())
    else:
        caller = asyncio.current_task()
        with ThreadPoolExecutor(1, "assay-rollouts") as thread:
            outcome = thread.submit(lambda: asyncio.run(main()))
            try:
                # NOTE: Ctrl-C raises here in a notebook; under asyncio.run it only cancels the current task, so poll for that
                while not wait([outcome], _GLANCE).done:
                    if caller is not None and caller.cancelling():
                        stop()
            except KeyboardInterrupt:
                stop()
                raise
        outcome.result()
    return results[0]
