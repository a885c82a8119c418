"""Coroutines by the many, and from code that is none: a bounded pool, and an event loop of its own."""

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, TypeVar

__all__ = ["in_own_loop", "maybe_await", "work_off"]

_T = TypeVar("_T")

_GLANCE = 0.1
"""Seconds between two looks at whether a caller that waits is cancelled."""


async def maybe_await(value: Any) -> Any:
    """What a function gave, or what comes of it where it is a coroutine."""
    return await value if isinstance(value, Awaitable) else value


async def work_off(items: Iterable[_T], one: Callable[[_T], Awaitable[None]], workers: int) -> None:
    """Do something with every item, so many at a time; what the first failing one raises ends the others."""
    left = iter(items)

    async def work() -> None:
        for item in left:
            await one(item)

    tasks = [asyncio.create_task(work()) for _ in range(workers)]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def in_own_loop(make: Callable[[], Coroutine[Any, Any, _T]], threads: int) -> _T:
    """Run a coroutine to its end in an event loop of its own: in this thread, or in a new one where this one has a loop.

    Args:
        make: Makes the coroutine.
        threads: Most threads for what is sent to threads (``asyncio.to_thread``).
    """
    started: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = []
    found: list[_T] = []

    async def main() -> None:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        loop.set_default_executor(ThreadPoolExecutor(max_workers=threads))
        if task is not None:
            started.append((loop, task))
        # NOTE: not returned: to restore the handler of SIGINT, asyncio.run makes the repr of the task and so of its result
        found.append(await make())

    def stop() -> None:
        for loop, task in started:
            with contextlib.suppress(RuntimeError):  # it has just ended
                loop.call_soon_threadsafe(task.cancel)

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        asyncio.run(main())
    else:
        _in_thread(lambda: asyncio.run(main()), stop)
    return found[0]


def _in_thread(run: Callable[[], None], stop: Callable[[], None]) -> None:
    """Wait for something that runs in a thread, and stop it where the wait is to end."""
    outcome: Future[None] = Future()
    caller = asyncio.current_task()

    def work() -> None:
        try:
            run()
            outcome.set_result(None)
        except BaseException as wrong:  # noqa: BLE001  (raised where the caller waits)
            outcome.set_exception(wrong)

    thread = threading.Thread(target=work, name="assay-rollouts")
    thread.start()
    try:
        # NOTE: Ctrl-C raises here in a notebook; under asyncio.run it cancels the task that waits here, which does not notice
        while not wait([outcome], _GLANCE).done:
            if caller is not None and caller.cancelling():
                stop()
    except KeyboardInterrupt:
        stop()
        raise
    finally:
        thread.join()
    outcome.result()
