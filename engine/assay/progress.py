"""A progress bar on standard error, where that is a terminal."""

import contextlib
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

__all__ = ["progress"]


@contextlib.contextmanager
def progress(doing: str, total: int | None = None, *, show: bool = True) -> Iterator[Callable[[int, int | None], None]]:
    """Show how far something is.

    Args:
        doing: What is done, in one word.
        total: Rows in all, where known.
        show: Whether to show it at all.

    Yields:
        What to call, from any thread, with the rows that are done and those there are in all.
    """
    console = Console(stderr=True)
    if not (show and console.is_terminal):
        yield lambda *_: None
        return
    columns = (TextColumn(doing), BarColumn(), TextColumn("{task.completed:,.0f} rows"), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(doing, total=total)
        yield lambda done, of: bar.update(task, completed=done, total=of)
