"""What a process must have before the engine runs in it: standard streams that are open, and threads of the engine's own.

NOTE: this module is imported with the package, so it needs the standard library only.
"""

import contextlib
import io
import os
import re
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from assay.errors import UsageError

__all__ = ["forget_in_children", "open_standard_streams", "prepare_process"]

_STANDARD = (0, 1, 2)
_TASKS = Path("/proc/self/task")
"""The threads of this process, where the system tells."""

_FORKED_WITHOUT_EXEC = 0x40
"""``PF_FORKNOEXEC`` of Linux, among the flags of a process."""

_PATIENCE = 10.0
"""Seconds within which the engine answers if it answers at all."""


class _Known:
    """What is known of the engine's threads.

    Attributes:
        ready: The process in which the engine is known to run.
        lost: Whether the engine has started, and its threads are in another process.
        forked_from: The process that this one was forked from, as far as is known; 0 for none.
        forks: The process that forks.
        has_threads: Whether the engine has threads there.
    """

    ready = 0
    lost = False
    forked_from = 0
    forks = 0
    has_threads = False


def prepare_process() -> None:
    """Make a process ready for the engine; to be called before anything asks the engine, or opens what stays open.

    Raises:
        UsageError: The process was forked after the engine had started its threads: it would wait for them for ever.
    """
    open_standard_streams()
    process = os.getpid()
    if _Known.ready == process:
        return
    if _Known.lost or (_is_forked() and not _engine_answers()):
        _Known.lost = True
        raise _no_threads(process)
    _Known.ready = process


def open_standard_streams() -> None:
    """Open the null device in place of standard streams that are closed.

    Whatever is opened next would take their numbers, and what any library prints would go there: into a result, or a socket.
    """
    for number in _STANDARD:
        try:
            os.fstat(number)
        except OSError:
            with contextlib.suppress(OSError):  # no null device
                opened = os.open(os.devnull, os.O_RDWR)  # takes the lowest number
                if opened in _STANDARD:
                    os.set_inheritable(opened, True)  # for processes that this one starts
                else:  # another thread was faster
                    os.close(opened)


def forget_in_children(forget: Callable[[], Any]) -> None:
    """Have something forgotten in processes that are forked from this one, for it is this one's to end or to remove."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=forget)


def _no_threads(process: int) -> "UsageError":
    from assay.errors import UsageError

    parent = f"process {_Known.forked_from}" if _Known.forked_from else "another"
    return UsageError(
        f"Process {process} was forked from {parent} in which Polars had run. A fork has none of its threads, and would wait for "
        "them for ever.",
        'Start processes by spawn or forkserver, for example multiprocessing.get_context("spawn").Pool(); or score nothing and '
        "run nothing of Polars before the fork. docs/processes.md says how with PyTorch, datasets and Ray.",
    )


# ── was it forked, and are the threads there? ───────────────────────────────────────────────────────────────────────────


def _is_forked() -> bool:
    if _Known.forked_from:
        return True
    if "polars" not in sys.modules:  # nobody can have run it
        return False
    try:
        flags = int(Path("/proc/self/stat").read_text("utf-8").rpartition(")")[2].split()[6])
    except (OSError, ValueError, IndexError):  # not on Linux: only forks after Assay was imported are known
        return False
    return bool(flags & _FORKED_WITHOUT_EXEC)


def _engine_answers() -> bool:
    """Whether the engine answers a small question that takes all of its threads, asked in a thread that can be left."""
    answered = threading.Event()

    def ask() -> None:
        import polars as pl

        try:
            file = io.BytesIO()
            pl.DataFrame({"": [0]}).write_parquet(file)
            file.seek(0)
            pl.scan_parquet(file).select(pl.col("") + 1).collect(engine="streaming")
        finally:
            answered.set()  # an error is an answer, too

    threading.Thread(target=ask, name="assay-engine", daemon=True).start()
    return answered.wait(_PATIENCE)


def _engine_has_threads() -> bool:
    """Whether the engine has threads in this process; where the system does not tell, whether Assay ran it."""
    if "polars" not in sys.modules:
        return False
    try:
        tasks = list(_TASKS.iterdir())
    except OSError:
        return _Known.ready == os.getpid()
    ours = re.compile(
        rf"{re.escape(os.environ.get('POLARS_THREAD_NAME', 'polars'))}-\d|tokio-rt-worker|async-executor-"
    )
    for task in tasks:
        with contextlib.suppress(OSError):  # it has ended
            if ours.match((task / "comm").read_text("utf-8", "replace")):
                return True
    return False


def _before_fork() -> None:
    _Known.has_threads, _Known.forks = _engine_has_threads(), os.getpid()


def _in_child() -> None:
    _Known.lost, _Known.forked_from = _Known.lost or _Known.has_threads, _Known.forks


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_child=_in_child)
