"""Which call has the interpreter, and since when: what a watcher looks at."""

import time
from collections.abc import Awaitable, Generator
from dataclasses import dataclass
from typing import Any

from assay.errors import Abandoned

__all__ = ["Abandoned", "Cell", "Stepped"]


@dataclass
class Cell:
    """The call that has the interpreter: which one, and since when (monotonic seconds; 0.0 when there is none)."""

    call: tuple[int, int] = (0, 0)
    since: float = 0.0

    def enter(self, row: int, number: int) -> None:
        """A call begins, or goes on."""
        self.call, self.since = (row, number), time.monotonic()

    def leave(self) -> None:
        """It has ended, or waits."""
        self.since = 0.0


@dataclass
class Stepped:
    """An awaitable that says whenever it has the interpreter."""

    inner: Awaitable[Any]
    cell: Cell
    call: tuple[int, int]

    def __await__(self) -> Generator[Any, Any, Any]:
        steps: Any = self.inner.__await__()
        step: Any = steps.__next__
        given: tuple[BaseException, ...] = ()
        while True:
            self.cell.enter(*self.call)
            try:
                waits_for = step(*given)
            except StopIteration as done:
                return done.value
            finally:
                self.cell.leave()
            try:
                yield waits_for
                step, given = steps.__next__, ()
            except GeneratorExit:
                steps.close()
                raise
            except BaseException as wrong:  # noqa: BLE001  (for the coroutine to take, whatever it is)
                step, given = steps.throw, (wrong,)
