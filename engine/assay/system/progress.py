"""How far something is, told on standard error where that is a terminal."""

import contextlib
import logging
import time
from collections.abc import Callable, Iterator
from typing import Any

from assay.errors import counted, printable
from assay.system.stdout import open_console

__all__ = ["Progress", "Ticks", "progress"]

Progress = Callable[[int, int | None], None]
"""Called, from any thread, with the rows done and the rows in all, where known."""

_SHOWN_EVERY = 0.1
"""Seconds between two looks at how far reward functions are."""


class Ticks:
    """How far a run is: by the rows written, or by those that reward functions have seen."""

    def __init__(self, progress: Progress | None, total: int | None = None) -> None:
        self.total = total
        self._progress = progress
        self._seen = 0
        self._done = 0
        self._told = 0.0

    def add(self, rows: int) -> None:
        """Reward functions have seen more rows."""
        self._seen += rows
        if self._progress is not None and time.perf_counter() - self._told > _SHOWN_EVERY:
            self._tell()

    def reach(self, rows: int) -> None:
        """So many rows are written."""
        self._done = rows
        if self._progress is not None:
            self._tell()

    def _tell(self) -> None:
        self._told = time.perf_counter()
        if self._progress is not None:
            self._progress(max(self._seen, self._done), self.total)


@contextlib.contextmanager
def progress(doing: str, *, show: bool = True) -> Iterator[Progress | None]:
    """A progress bar.

    Args:
        doing: What is done, in one word.
        show: Whether to show it at all.

    Yields:
        What to call as rows are done; None where nobody looks.
    """
    console = open_console(stderr=True)
    if not (show and console.is_terminal):
        with _logged(console) if show else contextlib.nullcontext():
            yield None
        return
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn(doing), BarColumn(), TextColumn("{task.fields[rows]}"), TimeRemainingColumn())
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task(doing, total=None, rows=counted(0, "row"))
        yield lambda done, total: bar.update(task, completed=done, total=total, rows=counted(done, "row"))


class _ToConsole(logging.Handler):
    """What is logged, as lines of a console."""

    def __init__(self, console: Any) -> None:
        super().__init__(logging.INFO)
        self._console = console

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line."""
        said = printable(record.getMessage())
        self._console.print(said, markup=False, highlight=False, soft_wrap=True)


@contextlib.contextmanager
def _logged(console: Any) -> Iterator[None]:
    """Where nobody watches a bar, a run in parts writes a line now and then."""
    handler = _ToConsole(console)
    logger = logging.getLogger("assay.folder")
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
