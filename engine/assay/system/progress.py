"""Report progress on standard error: a bar on a terminal, log lines elsewhere."""

import contextlib
import logging
import time
from collections.abc import Callable, Iterator
from typing import Any

from assay.errors import counted, printable
from assay.system.stdout import open_console

Progress = Callable[[int, int | None], None]
"""Called, from any thread, with the rows done and the total, None if unknown."""

_SHOWN_EVERY = 0.1
"""Seconds between two reports while reward functions run."""


class Ticks:
    """Progress of a run: the rows written, or the rows that reward functions have scored, whichever is more."""

    def __init__(self, progress: Progress | None, total: int | None = None) -> None:
        self.total = total
        self._progress = progress
        self._scored = 0
        self._written = 0
        self._reported_at = 0.0

    def add(self, rows: int) -> None:
        """Count more rows that reward functions have scored."""
        self._scored += rows
        if self._progress is not None and time.perf_counter() - self._reported_at > _SHOWN_EVERY:
            self._report()

    def reach(self, rows: int) -> None:
        """Set the number of rows written."""
        self._written = rows
        if self._progress is not None:
            self._report()

    def _report(self) -> None:
        self._reported_at = time.perf_counter()
        if self._progress is not None:
            self._progress(max(self._scored, self._written), self.total)


class _ToConsole(logging.Handler):
    """Prints log records to a console."""

    def __init__(self, console: Any) -> None:
        super().__init__(logging.INFO)
        self._console = console

    def emit(self, record: logging.LogRecord) -> None:
        message = printable(record.getMessage())
        self._console.print(message, markup=False, highlight=False, soft_wrap=True)


@contextlib.contextmanager
def progress(doing: str, *, show: bool = True) -> Iterator[Progress | None]:
    """Show a progress bar."""
    console = open_console(stderr=True)
    if not show:
        yield None
        return
    if not console.is_terminal:  # there, the log lines of a run in parts are printed
        handler, logger = _ToConsole(console), logging.getLogger("assay.folder")
        before = logger.level
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
        try:
            yield None
        finally:
            logger.removeHandler(handler)
            logger.setLevel(before)
        return
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn(doing), BarColumn(), TextColumn("{task.fields[rows]}"), TimeRemainingColumn())
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task(doing, total=None, rows=counted(0, "row"))
        yield lambda done, total: bar.update(task, completed=done, total=total, rows=counted(done, "row"))
