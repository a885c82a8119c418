"""Report progress on standard error: a bar on a terminal, a line now and then elsewhere."""

import contextlib
import logging
import time
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from threading import Lock
from typing import Any

from assay.errors import printable
from assay.loading.formats.reading import listening
from assay.system.stdout import open_console
from assay.writing.numbers import count, seconds, size, speed

Progress = Callable[[int, int | None], None]
"""Called, from any thread, with the rows done and the total, None if unknown."""

_SHOWN_EVERY = 0.1
"""Seconds between two reports while reward functions run."""
_LATELY = _LINE_EVERY = 30.0
"""Seconds by which the speed is measured, and between two lines where there is no terminal."""


_LOOKING = "reading"
"""What files are, whose rows are counted before they are read."""


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


class Meter:
    """How far a run is, in words: rows or bytes, and by what was done of late, the speed and the time left."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, *, in_bytes: bool = False) -> None:
        self._clock, self._in_bytes = clock, in_bytes
        self._lock = Lock()
        self._points: deque[tuple[float, int]] = deque()

    def words(self, done: int, total: int | None) -> str:
        """Return ``3.2/10 M rows · 812,000 rows/s · 8 s left`` for so many rows of all, as far as that is known."""
        with self._lock:
            now = self._clock()
            if not self._points or now - self._points[-1][0] >= _SHOWN_EVERY:
                self._points.append((now, done))
            while now - self._points[0][0] > _LATELY and len(self._points) > 1:
                self._points.popleft()
            began, before = self._points[0]
        parts = [_of_bytes(done, total) if self._in_bytes else _of(done, total)]
        if now > began and done > before:
            rate = (done - before) / (now - began)
            parts.append(f"{size(rate)}/s" if self._in_bytes else speed(rate))
            parts += [] if total is None else [f"{seconds(round((total - done) / rate))} left"]
        return " · ".join(parts)


def _of(done: int, total: int | None) -> str:
    if total is None:
        return f"{count(done)} row{'' if done == 1 else 's'}"
    if total < 10_000_000:  # noqa: PLR2004  (as counts)
        return f"{done:,}/{total:,} row{'' if total == 1 else 's'}"
    return f"{done / 1e6:.1f}/{f'{total / 1e6:,.1f}'.removesuffix('.0')} M rows"


def _of_bytes(done: int, total: int | None) -> str:
    return size(done) if total is None else f"{size(done)} of {size(total)}"


class _ToConsole(logging.Handler):
    """Prints log records to a console."""

    def __init__(self, console: Any) -> None:
        super().__init__(logging.INFO)
        self._console = console

    def emit(self, record: logging.LogRecord) -> None:
        message = printable(record.getMessage())
        self._console.print(message, markup=False, highlight=False, soft_wrap=True)


@contextlib.contextmanager
def progress(doing: str, *, show: bool = True, piped: bool = False) -> Iterator[Progress | None]:
    """Show how far a run is: a bar on a terminal; elsewhere the lines of a run in parts, and if wanted a line every 30 seconds.

    While files are looked through, so that their rows are not known yet, it counts bytes.
    """
    console, meter, of_bytes = open_console(stderr=True), Meter(), Meter(in_bytes=True)
    if not show:
        yield None
    elif console.is_terminal:
        from rich.progress import BarColumn, TextColumn
        from rich.progress import Progress as Bar

        columns = (
            TextColumn("{task.description}"),
            BarColumn(max(8, min(40, console.width - 60))),
            TextColumn("{task.fields[words]}"),
        )
        with Bar(*columns, console=console, transient=True) as bar:
            task = bar.add_task(doing, total=None, words=_of(0, None))

            def show_on(what: str, meter: Meter, done: int, total: int | None) -> None:
                bar.update(task, description=what, completed=done, total=total, words=meter.words(done, total))

            with listening(partial(show_on, _LOOKING, of_bytes)):
                yield partial(show_on, doing, meter)
    else:
        handler, logger = _ToConsole(console), logging.getLogger("assay.folder")
        before = logger.level
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
        try:
            with listening(_lines(_LOOKING, console, of_bytes)) if piped else contextlib.nullcontext():
                yield _lines(doing, console, meter) if piped else None
        finally:
            logger.removeHandler(handler)
            logger.setLevel(before)


def _lines(doing: str, console: Any, meter: Meter, clock: Callable[[], float] = time.monotonic) -> Progress:
    """Return a callback that prints a line every 30 seconds."""
    last = clock()

    def report(done: int, total: int | None) -> None:
        nonlocal last
        words = meter.words(done, total)
        if clock() - last >= _LINE_EVERY:
            last = clock()
            console.print(f"{doing} {words}", markup=False, highlight=False, soft_wrap=True)

    return report
