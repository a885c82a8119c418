"""The call that runs, and its start time, for the watchdog."""

import time
from collections.abc import Awaitable, Generator
from dataclasses import dataclass
from typing import Any

from assay.errors import Abandoned

__all__ = ["Abandoned", "RunningCall", "WatchedAwaitable"]


@dataclass
class RunningCall:
    """The call that holds the interpreter (row and function), and its start in monotonic seconds; 0.0 if there is none."""

    call: tuple[int, int] = (0, 0)
    since: float = 0.0

    def enter(self, row: int, number: int) -> None:
        """Record that a call starts or resumes."""
        self.call, self.since = (row, number), time.monotonic()

    def leave(self) -> None:
        """Record that the call has ended or waits."""
        self.since = 0.0


@dataclass
class WatchedAwaitable:
    """An awaitable that records when it holds the interpreter."""

    inner: Awaitable[Any]
    running: RunningCall
    call: tuple[int, int]

    def __await__(self) -> Generator[Any, Any, Any]:
        steps: Any = self.inner.__await__()
        step: Any = steps.__next__
        arguments: tuple[BaseException, ...] = ()
        while True:
            self.running.enter(*self.call)
            try:
                awaited = step(*arguments)
            except StopIteration as end:
                return end.value
            finally:
                self.running.leave()
            try:
                yield awaited
                step, arguments = steps.__next__, ()
            except GeneratorExit:
                steps.close()
                raise
            except BaseException as error:  # noqa: BLE001  (passed to the coroutine)
                step, arguments = steps.throw, (error,)
