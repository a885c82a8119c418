"""Reward functions in worker processes: for functions that need a core each, and for those that may never return.

A worker that hangs is killed, whatever it hangs in; the call that hung scores 0.0, and the remaining rows go to another worker.
A worker gets the functions once: by pickle or, if they cannot be pickled, by importing the rubric under its name.
"""

import asyncio
import contextlib
import importlib
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Iterator, Sequence
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from assay.calls.async_runner import run_async, run_to_end
from assay.calls.limits import Limits, Settled, failed, own_failure, timed_out
from assay.calls.places import place_of, remember
from assay.calls.runner import Interrupted, RunningCall, Work, run_here
from assay.errors import UsageError, said_by
from assay.rewards.reward_function import RewardFunction
from assay.system.processes import forget_in_children, signal_at_end_of
from assay.system.signals import LEFTOVERS

_SLICE_SECONDS = 0.05
"""Target time for one piece; at most this much work is repeated when a worker is killed."""
_POLL_SECONDS = 0.2
"""Seconds between two checks whether the run was stopped."""
_MAX_DEATHS = 3
"""Workers that may die before they have made a call."""
_SPAWN = multiprocessing.get_context(
    "spawn"
)  # a fork would copy the locks of Polars without the threads that hold them
_MAIN_LOCK = threading.Lock()
"""Held while a worker is started, as multiprocessing inspects the main module then."""
_ALL_WORKERS: "weakref.WeakSet[Workers]" = weakref.WeakSet()

Piece = tuple[int, int]
"""First row, and the row after the last."""


def _close_all() -> None:
    for workers in list(_ALL_WORKERS):
        workers.close()


def _forget_all() -> None:
    for workers in list(_ALL_WORKERS):
        workers.forget()


LEFTOVERS.append(_close_all)
forget_in_children(_forget_all)


class Workers:
    """Worker processes that call reward functions.

    Args:
        functions: All functions of the rubric.
        count: Number of workers.
        origin: ``module:attribute`` of the rubric, for functions that cannot be pickled; or ``""``.

    Raises:
        UsageError: The functions cannot be sent to another process.
    """

    def __init__(self, functions: Sequence[RewardFunction], count: int, origin: str = "") -> None:
        self._names = {function.name: at for at, function in enumerate(functions)}
        self._load = _loader_for(functions, origin)
        self._count = count
        self._workers: list[_Worker] = []
        self._deaths = 0
        self._end = weakref.finalize(self, _close, self._workers)
        _ALL_WORKERS.add(self)

    def close(self) -> None:
        """Stop the workers."""
        _close(self._workers)

    def forget(self) -> None:
        """Forget the workers, which belong to another process; the next call starts new ones."""
        self._end.detach()
        self._workers = []
        self._end = weakref.finalize(self, _close, self._workers)

    def __call__(self, work: Work, limits: Limits) -> None:
        """Make the calls and store their outcomes in ``work``."""
        self._deaths = 0
        smallest = self._smallest_piece(work, limits)
        size = max(smallest, 8)
        start, unfinished = 0, deque[Piece]()
        while len(self._workers) < self._count:
            self._workers.append(self._start(limits))
        while start < len(work.rows) or unfinished or any(worker.piece for worker in self._workers):
            for worker in self._workers:
                if worker.piece is None and (unfinished or start < len(work.rows)):
                    if not unfinished:
                        unfinished.append((start, min(start + size, len(work.rows))))
                        start = unfinished[-1][1]
                    self._send(worker, unfinished.popleft(), work, limits)
            seconds = self._collect(work, limits, unfinished)
            if seconds is not None:
                size = max(min(int(size * min(_SLICE_SECONDS / max(seconds, 1e-6), 2.0)), 2000), smallest)

    def _smallest_piece(self, work: Work, limits: Limits) -> int:
        """Return the least rows of a piece: for asynchronous functions, the number of concurrent rollouts of one worker."""
        if not work.is_async:
            return 1
        return limits.max_concurrent if limits.max_concurrent > 0 else -(-len(work.rows) // self._count)

    def _start(self, limits: Limits) -> "_Worker":
        _check_stop(limits)
        if multiprocessing.current_process().daemon:
            raise UsageError(
                "The worker processes cannot be started: this process is a daemon, and daemons cannot start processes.",
                "Score without workers, or use concurrent.futures.ProcessPoolExecutor, whose processes are not daemons.",
            )
        try:
            return _Worker(self._load)
        except OSError as error:
            _check_stop(limits)  # when the run is stopped, a worker that is just starting is killed
            raise UsageError(f"The worker processes cannot be started: {error}") from None

    def _send(self, worker: "_Worker", piece: Piece, work: Work, limits: Limits) -> None:
        rows = work.rows[piece[0] : piece[1]]
        settled_calls = [
            (row - piece[0], number)
            for number, scores in enumerate(work.scores)
            for row in range(*piece)
            if scores[row] is not None
        ]
        names, arguments, absent = work.recipe
        places = [self._names[name] for name in names]
        limits = Limits(limits.timeout, limits.max_concurrent)  # the other limits are enforced in this process
        worker.start(
            piece, (places, tuple(arguments), absent, rows, work.side_by_side, work.read, settled_calls, limits)
        )

    def _collect(self, work: Work, limits: Limits, unfinished: deque[Piece]) -> float | None:
        """Wait until a worker has finished its piece, has died or is late; return the seconds that a finished piece took."""
        _check_stop(limits)
        busy = [worker for worker in self._workers if worker.piece is not None]
        patience = _POLL_SECONDS  # until the next check for a stop, or until a worker may be late
        if limits.timeout is not None:
            starts = [worker.cell[2] for worker in busy if worker.cell[2]]
            left = min(starts, default=time.monotonic()) + limits.timeout - time.monotonic()
            patience = min(max(left, 0.001), _POLL_SECONDS)
        ready = wait([worker.pipe for worker in busy], timeout=patience)
        seconds = None
        for worker in busy:
            if worker.pipe in ready:
                seconds = self._receive(worker, work, unfinished, limits)
            elif limits.timeout is not None and worker.late(limits.timeout):
                self._replace(worker, work, unfinished, limits, timed_out(limits.timeout))
        return seconds

    def _receive(self, worker: "_Worker", work: Work, unfinished: deque[Piece], limits: Limits) -> float | None:
        try:
            status, outcome, seconds, *places = worker.pipe.recv()
        except (EOFError, OSError):
            worker.process.join()
            death = failed(RuntimeError(f"its process died, exit code {worker.process.exitcode}"))
            self._replace(worker, work, unfinished, limits, death)
            return None
        if status == "interrupted":
            raise KeyboardInterrupt
        if status == "broken":
            raise UsageError(
                f"The reward functions cannot be loaded in a worker process: {outcome}",
                "Define them at the top of a module that can be imported.",
            )
        remember(*places)
        first = worker.piece[0] if worker.piece else 0
        for number, (scores, errors) in enumerate(zip(*outcome, strict=True)):
            for row, score in enumerate(scores):
                if work.scores[number][first + row] is None:
                    work.settle(first + row, number, (score, errors.get(row)))
        if work.tick is not None and worker.piece:
            work.tick(worker.piece[1] - worker.piece[0])
        worker.piece = None
        return float(seconds)

    def _replace(
        self, worker: "_Worker", work: Work, unfinished: deque[Piece], limits: Limits, outcome: Settled
    ) -> None:
        """Replace a worker that hangs or has died: settle its call and give its piece to another."""
        _check_stop(limits)
        call, piece = worker.call(), worker.piece
        worker.kill()
        self._workers[self._workers.index(worker)] = self._start(limits)
        if piece is not None:
            unfinished.append(piece)
        if call is not None and piece is not None:
            work.settle(piece[0] + call[0], call[1], outcome)
            return
        self._deaths += 1
        if self._deaths > _MAX_DEATHS:
            hint = 'In a script, put the code that starts the run under `if __name__ == "__main__":`.'
            raise UsageError(f"The worker processes keep dying: {outcome[1]}", hint)


def _check_stop(limits: Limits) -> None:
    """Raise KeyboardInterrupt if the run was stopped."""
    if limits.stop is not None and limits.stop.is_set():
        raise KeyboardInterrupt


class _Worker:
    """A worker process, the pipe to it, and its current piece and call."""

    def __init__(self, load: tuple[str, Any]) -> None:
        self.pipe, child_end = _SPAWN.Pipe()
        self.cell = _SPAWN.RawArray("d", 3)
        self.process = _SPAWN.Process(target=_serve, args=(child_end, self.cell), daemon=True)
        with _without_absent_main(), _without_interrupts():
            self.process.start()
        child_end.close()
        self.piece: Piece | None = None
        with contextlib.suppress(OSError):  # the worker is dead, which ``_receive`` will notice
            self.pipe.send(load)  # not as an argument: a worker that is starting has words for a parent that is gone

    def start(self, piece: Piece, message: Any) -> None:
        self.piece = piece
        with contextlib.suppress(OSError):  # the worker is dead, which ``_receive`` will notice
            self.pipe.send(message)

    def late(self, timeout: float) -> bool:
        since = float(self.cell[2])
        return bool(since) and time.monotonic() - since >= timeout

    def call(self) -> tuple[int, int] | None:
        """Return the current call: the row within its piece, and the function."""
        row, number, since = self.cell
        return (int(row), int(number)) if since else None

    def kill(self) -> None:
        self.process.kill()
        self.process.join()
        self.process.close()
        self.pipe.close()


def _close(workers: list[_Worker]) -> None:
    while workers:
        workers.pop().kill()


@contextlib.contextmanager
def _without_interrupts() -> Iterator[None]:
    """Start processes that no interrupt from the keyboard reaches before they ignore it; one that starts would print a traceback."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    resource_tracker.ensure_running()  # its start lets signals through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def _without_absent_main() -> Iterator[None]:
    """Hide the file of the main module if it does not exist, as for a program read from standard input (``<stdin>``).

    A spawned process runs that file first and would fail, even if no function is defined there.
    """
    with _MAIN_LOCK:
        main = sys.modules.get("__main__")
        file = getattr(main, "__file__", None)
        if main is None or file is None or main.__spec__ is not None or Path(file).exists():
            yield
            return
        del main.__file__
        try:
            yield
        finally:
            main.__file__ = file


# ── in the worker ──────────────────────────────────────────────────────────────────────────────────────────────────────


class _SharedCell(RunningCall):
    """The current call, in memory shared with the parent."""

    def __init__(self, cell: Any) -> None:
        super().__init__()
        self._cell = cell

    def enter(self, row: int, number: int) -> None:
        self._cell[:] = (row, number, time.monotonic())

    def leave(self) -> None:
        self._cell[2] = 0.0


def _loader_for(functions: Sequence[RewardFunction], origin: str) -> tuple[str, Any]:
    """Return how a worker loads the functions: from the bytes of a pickle, or by importing the rubric."""
    try:
        return "pickle", pickle.dumps(list(functions))
    except BaseException as error:
        if not own_failure(error):
            raise
        if origin:
            return "import", origin
        raise UsageError(
            f"The reward functions cannot be sent to another process: {said_by(error)}",
            "Define them at the top of a module, not inside a function; or run without --workers.",
        ) from None


def _load_functions(how: str, payload: Any) -> list[RewardFunction]:
    if how == "pickle":
        functions: list[RewardFunction] = pickle.loads(payload)  # noqa: S301  (made by the parent)
        return functions
    module, _, attribute = payload.partition(":")
    rubric: Any = importlib.import_module(module)
    for name in attribute.split("."):
        rubric = getattr(rubric, name)
    imported: list[RewardFunction] = getattr(rubric, "rubric", rubric).functions()  # ``rubric`` may be an environment
    return imported


def _serve(pipe: Connection, cell: Any) -> None:
    """Make calls until the pipe is closed, then exit at once: threads and event loops of functions may be in any state."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent stops this process
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    _end_with_parent()
    runner = asyncio.Runner()  # never closed: a loop that waits would keep this process alive
    with contextlib.suppress(OSError, EOFError):  # the parent is gone, or a function has closed the pipe
        try:
            _make_calls(pipe, cell, runner)
        except KeyboardInterrupt:  # raised by a function, as this process ignores signals
            pipe.send(("interrupted", None, 0.0))
    os._exit(1)


def _end_with_parent() -> None:
    """End this process when the parent is gone, whatever a function does: it may never return."""
    parent = multiprocessing.parent_process()
    assert parent is not None  # noqa: S101  (this is a worker)

    def wait_for_end() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait_for_end, daemon=True).start()
    signal_at_end_of(parent.sentinel)


def _make_calls(pipe: Connection, cell: Any, runner: asyncio.Runner) -> None:
    if sys.stdout is not None:  # output printed by functions must not mix with the data of the run
        sink = os.open(os.devnull, os.O_WRONLY) if sys.stderr is None else sys.stderr.fileno()
        os.dup2(sink, sys.stdout.fileno())
    try:
        functions = _load_functions(*pipe.recv())
    except BaseException as error:
        if not own_failure(error):
            raise
        pipe.send(("broken", said_by(error), 0.0))
        return
    shared = _SharedCell(cell)
    while True:
        try:
            places, names, absent, rows, side_by_side, read, settled, limits = pipe.recv()
        except (EOFError, OSError):
            return
        started = time.monotonic()
        chosen = [functions[place] for place in places]
        calls = [function.caller(names, absent) for function in chosen]
        work = Work(calls, rows, any(function.is_async for function in chosen), side_by_side, read)
        for row, number in settled:
            work.scores[number][row] = 0.0
        try:
            if work.is_async or not run_here(work, shared):
                run_to_end(runner.get_loop(), run_async(work, limits, shared))
        except Interrupted:
            raise KeyboardInterrupt from None
        messages = {message for errors in work.errors for message in errors.values()}
        places = {message: place_of(message) for message in messages if place_of(message)}
        pipe.send(("done", (work.scores, work.errors), time.monotonic() - started, places))
