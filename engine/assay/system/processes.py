"""Prepare a process for Polars: open standard streams, threads that a fork has not lost, and imports without pauses.

NOTE: this module is imported with the package, so it imports the standard library only.
"""

import contextlib
import gc
import io
import os
import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

_STANDARD = (0, 1, 2)
_TASKS = Path("/proc/self/task")
"""The threads of this process, on Linux."""

_FORKED_WITHOUT_EXEC = 0x40
"""``PF_FORKNOEXEC``, a process flag of Linux."""

_PATIENCE = 10.0
"""Seconds after which Polars counts as hung."""


class _State:
    """The state of Polars' threads."""

    ready = 0
    lost = False
    forked_from = 0
    forks = 0
    has_threads = False


def prepare_process() -> None:
    """Prepare the process for Polars; call this before using Polars or opening files that stay open."""
    open_standard_streams()
    process = os.getpid()
    if _State.ready == process:
        return
    if _State.lost or (_is_forked() and not _engine_answers()):
        _State.lost = True
        from assay.errors import UsageError

        parent = f"process {_State.forked_from}" if _State.forked_from else "another process"
        raise UsageError(
            f"Process {process} was forked from {parent} in which Polars had run. A fork does not have Polars' threads, and would "
            "wait for them forever.",
            'Start processes with spawn or forkserver, for example multiprocessing.get_context("spawn").Pool(); or do not use Assay '
            "or Polars before the fork. docs/processes.md shows how with PyTorch, datasets and Ray.",
        )
    _State.ready = process


def open_standard_streams() -> None:
    """Open the null device in place of closed standard streams."""
    for number in _STANDARD:
        try:
            os.fstat(number)
        except OSError:
            with contextlib.suppress(OSError):  # no null device
                descriptor = os.open(os.devnull, os.O_RDWR)  # takes the lowest free number
                if descriptor in _STANDARD:
                    os.set_inheritable(descriptor, True)  # for child processes
                else:  # another thread took the number first
                    os.close(descriptor)


def silence(descriptors: Iterable[int]) -> None:
    """Let what is written to descriptors go nowhere."""
    with contextlib.suppress(OSError):  # no null device, or no descriptor left
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for descriptor in descriptors:
            os.dup2(nowhere, descriptor)


@contextlib.contextmanager
def without_collector() -> Iterator[None]:
    """Import modules without garbage collections."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def forget_in_children(forget: Callable[[], Any]) -> None:
    """Call a function in every forked child, to drop resources that this process owns and cleans up."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=forget)


def _is_forked() -> bool:
    if _State.forked_from:
        return True
    if "polars" not in sys.modules:  # Polars cannot have run
        return False
    try:
        flags = int(Path("/proc/self/stat").read_text("utf-8").rpartition(")")[2].split()[6])
    except (OSError, ValueError, IndexError):  # not Linux: only forks after the import of Assay are known
        return False
    return bool(flags & _FORKED_WITHOUT_EXEC)


def _engine_answers() -> bool:
    answered = threading.Event()

    def query() -> None:
        import polars as pl

        try:
            file = io.BytesIO()
            pl.DataFrame({"": [0]}).write_parquet(file)
            file.seek(0)
            pl.scan_parquet(file).select(pl.col("") + 1).collect(engine="streaming")
        finally:
            answered.set()  # an error is an answer, too: Polars did not hang

    threading.Thread(target=query, name="assay-engine", daemon=True).start()
    return answered.wait(_PATIENCE)


def _engine_has_threads() -> bool:
    if "polars" not in sys.modules:
        return False
    try:
        tasks = list(_TASKS.iterdir())
    except OSError:
        return _State.ready == os.getpid()
    names = re.compile(
        rf"{re.escape(os.environ.get('POLARS_THREAD_NAME', 'polars'))}-\d|tokio-rt-worker|async-executor-"
    )
    for task in tasks:
        with contextlib.suppress(OSError):  # the thread has ended
            if names.match((task / "comm").read_text("utf-8", "replace")):
                return True
    return False


def _before_fork() -> None:
    _State.has_threads, _State.forks = _engine_has_threads(), os.getpid()


def _in_child() -> None:
    _State.lost, _State.forked_from = _State.lost or _State.has_threads, _State.forks


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_child=_in_child)


_ALLOCATOR = "_RJEM_MALLOC_CONF"
"""Variable that Polars' allocator reads when Polars is imported."""


def return_memory_soon() -> None:
    """Let Polars use freed memory again or return it to the system, unless the user decides; before Polars is imported."""
    # an arena for two cores: what one thread frees serves the other, which need not wait for the system to clear new pages; so do blocks
    # of 8 MiB and more, as row groups have them, which would be returned at once
    arenas = max(1, (os.cpu_count() or 1) // 2)
    os.environ.setdefault(_ALLOCATOR, f"narenas:{arenas},dirty_decay_ms:500,muzzy_decay_ms:0,oversize_threshold:0")


@contextlib.contextmanager
def sleeping_threads() -> Iterator[None]:
    """Let the threads of OpenBLAS sleep while they wait, unless the user decides, if numpy is imported here; pyarrow does.

    By default each of them spins for some 30 ms when numpy is loaded: a tenth of a short run.
    """
    name = "OPENBLAS_THREAD_TIMEOUT"
    if name in os.environ:
        yield
        return
    os.environ[name] = "4"  # 2 ** 4 cycles, the minimum
    try:
        yield
    finally:
        os.environ.pop(name, None)  # a user's code and child processes decide for themselves


def keeps_memory() -> bool:
    """Return whether Polars may keep much freed memory."""
    return _ALLOCATOR not in os.environ
