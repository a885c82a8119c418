"""Reward functions in processes of their own: for those that need a processor each, and for those that may never return.

A process that hangs is killed, whatever it hangs in; the call that hung scores 0.0, and what is left goes to another. A process
gets the functions once, by pickle or, where they cannot be pickled, by importing the rubric under its name.
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
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from assay.calls.event_loop import run_to_end
from assay.calls.limits import Limits, Settled, failed, own_failure, timed_out
from assay.calls.runner import Interrupted, Work, run_async, run_here
from assay.calls.watchdog import RunningCall
from assay.errors import UsageError, said_by
from assay.rubrics.reward_function import RewardFunction
from assay.system.processes import forget_in_children
from assay.system.signals import LEFTOVERS

__all__ = ["Workers"]

_SLICE_SECONDS = 0.05
"""How long a process should work on one piece: what is lost, and done again, when it is killed."""
_LOOK = 0.2
"""Seconds between two looks at whether the run is to stop."""
_DEATHS = 3
"""Processes that may die before they have made a call."""
_SPAWN = multiprocessing.get_context("spawn")  # a fork would take the engine's locks along, and not its threads
_MAIN = threading.Lock()
"""Held while a process is started: its system looks at the main module meanwhile."""
_ALL: "weakref.WeakSet[Workers]" = weakref.WeakSet()

Piece = tuple[int, int]
"""Rows from, and up to."""


def _close_all() -> None:
    """End all processes."""
    for workers in list(_ALL):
        workers.close()


def _forget_all() -> None:
    """Leave the processes to the one that started them."""
    for workers in list(_ALL):
        workers.forget()


LEFTOVERS.append(_close_all)
forget_in_children(_forget_all)


class Workers:
    """Processes that make the calls of reward functions.

    Args:
        functions: All functions of the rubric.
        count: How many processes.
        origin: ``module:attribute`` of the rubric, for functions that cannot be pickled; or ``""``.

    Raises:
        UsageError: The functions cannot travel.
    """

    def __init__(self, functions: Sequence[RewardFunction], count: int, origin: str = "") -> None:
        self._names = {one.name: at for at, one in enumerate(functions)}
        self._load = _load(functions, origin)
        self._count = count
        self._workers: list[_Worker] = []
        self._deaths = 0
        self._end = weakref.finalize(self, _close, self._workers)
        _ALL.add(self)

    def close(self) -> None:
        """End the processes."""
        _close(self._workers)

    def forget(self) -> None:
        """Leave the processes to another; the next call starts new ones."""
        self._end.detach()
        self._workers = []
        self._end = weakref.finalize(self, _close, self._workers)

    def __call__(self, work: Work, limits: Limits) -> None:
        """Make the calls; their outcomes are in ``work`` afterwards.

        Raises:
            UsageError: The processes cannot be started.
        """
        self._deaths = 0
        least = self._least(work, limits)
        size = max(least, 8)
        start, left = 0, deque[Piece]()
        while len(self._workers) < self._count:
            self._workers.append(self._started(limits))
        while start < len(work.rows) or left or any(one.piece for one in self._workers):
            for one in self._workers:
                if one.piece is None and (left or start < len(work.rows)):
                    if not left:
                        left.append((start, min(start + size, len(work.rows))))
                        start = left[-1][1]
                    self._give(one, left.popleft(), work, limits)
            took = self._collect(work, limits, left)
            if took is not None:
                size = max(min(int(size * min(_SLICE_SECONDS / max(took, 1e-6), 2.0)), 2000), least)

    def _least(self, work: Work, limits: Limits) -> int:
        """Rows that a piece has at least: what asynchronous functions may work on at once, shared by the processes."""
        if not work.is_async:
            return 1
        return limits.max_concurrent if limits.max_concurrent > 0 else -(-len(work.rows) // self._count)

    def _started(self, limits: Limits) -> "_Worker":
        _look(limits)
        if multiprocessing.current_process().daemon:
            raise UsageError(
                "The processes for reward functions cannot be started: this process is a daemon, which may start none.",
                "Score without workers here, or in processes of concurrent.futures.ProcessPoolExecutor, which are no daemons.",
            )
        try:
            return _Worker(self._load)
        except OSError as wrong:
            _look(limits)  # the run is over: what was started last is killed already
            raise UsageError(f"The processes for reward functions cannot be started: {wrong}") from None

    def _give(self, one: "_Worker", piece: Piece, work: Work, limits: Limits) -> None:
        rows = work.rows[piece[0] : piece[1]]
        settled = [
            (row - piece[0], number)
            for number, scores in enumerate(work.scores)
            for row in range(*piece)
            if scores[row] is not None
        ]
        places = [self._names[function.name] for function in work.functions]
        limits = Limits(limits.timeout, limits.max_concurrent)  # the rest is for this process
        one.start(piece, (places, tuple(work.names), rows, work.side_by_side, work.absent, work.read, settled, limits))

    def _collect(self, work: Work, limits: Limits, left: deque[Piece]) -> float | None:
        """Wait until a process is done, dead or late.

        Returns:
            Seconds that a piece took, where one is done.
        """
        _look(limits)
        busy = [one for one in self._workers if one.piece is not None]
        ready = wait([one.pipe for one in busy], timeout=_patience(busy, limits.timeout))
        took = None
        for one in busy:
            if one.pipe in ready:
                took = self._received(one, work, left, limits)
            elif limits.timeout is not None and one.late(limits.timeout):
                self._lost(one, work, left, limits, timed_out(limits.timeout))
        return took

    def _received(self, one: "_Worker", work: Work, left: deque[Piece], limits: Limits) -> float | None:
        try:
            said, found, took = one.pipe.recv()
        except (EOFError, OSError):
            one.process.join()
            died = failed(RuntimeError(f"its process died, exit code {one.process.exitcode}"))
            self._lost(one, work, left, limits, died)
            return None
        if said == "interrupted":
            raise KeyboardInterrupt
        if said == "broken":
            raise UsageError(
                f"The reward functions cannot be had in another process: {found}",
                "Define them at the top of a module that can be imported.",
            )
        first = one.piece[0] if one.piece else 0
        for number, (scores, errors) in enumerate(zip(*found, strict=True)):
            for row, score in enumerate(scores):
                if work.scores[number][first + row] is None:
                    work.settle(first + row, number, (score, errors.get(row)))
        if work.tick is not None and one.piece:
            work.tick(one.piece[1] - one.piece[0])
        one.piece = None
        return float(took)

    def _lost(self, one: "_Worker", work: Work, left: deque[Piece], limits: Limits, why: Settled) -> None:
        """A process that hangs or has died: its call is settled, and its piece goes to another."""
        _look(limits)
        call, piece = one.call(), one.piece
        one.kill()
        self._workers[self._workers.index(one)] = self._started(limits)
        if piece is not None:
            left.append(piece)
        if call is not None and piece is not None:
            work.settle(piece[0] + call[0], call[1], why)
            return
        self._deaths += 1
        if self._deaths > _DEATHS:
            hint = 'A script that starts processes does its work under `if __name__ == "__main__":`.'
            raise UsageError(f"The processes for reward functions do not stay alive: {why[1]}", hint)


def _look(limits: Limits) -> None:
    """See whether the run is to stop.

    Raises:
        KeyboardInterrupt: It is.
    """
    if limits.stop is not None and limits.stop.is_set():
        raise KeyboardInterrupt


def _patience(busy: Sequence["_Worker"], timeout: float | None) -> float:
    """Seconds until one of them may be late, or somebody may want the run to stop."""
    if timeout is None:
        return _LOOK
    since = [one.cell[2] for one in busy if one.cell[2]]
    return min(max(min(since, default=time.monotonic()) + timeout - time.monotonic(), 0.001), _LOOK)


class _Worker:
    """One process, the pipe to it, and what it is at."""

    def __init__(self, load: tuple[str, Any]) -> None:
        self.pipe, theirs = _SPAWN.Pipe()
        self.cell = _SPAWN.RawArray("d", 3)
        self.process = _SPAWN.Process(target=_serve, args=(theirs, self.cell, load), daemon=True)
        with _without_absent_main():
            self.process.start()
        theirs.close()
        self.piece: Piece | None = None

    def start(self, piece: Piece, message: Any) -> None:
        self.piece = piece
        try:
            self.pipe.send(message)
        except OSError:  # it is dead, which the next look at the pipe will tell
            return

    def late(self, timeout: float) -> bool:
        since = float(self.cell[2])
        return bool(since) and time.monotonic() - since >= timeout

    def call(self) -> tuple[int, int] | None:
        """The call that it is at: the row of its piece, and the function."""
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
def _without_absent_main() -> Iterator[None]:
    """Hide the file of the main module where there is none, as of a program read from standard input (``<stdin>``).

    A process that is spawned runs that file first, and would die of it, though no function may be defined there.
    """
    with _MAIN:
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


# ── in the process ──────────────────────────────────────────────────────────────────────────────────────────────────────


class _Shared(RunningCall):
    """The call that has the interpreter, where the parent sees it."""

    def __init__(self, cell: Any) -> None:
        super().__init__()
        self._cell = cell

    def enter(self, row: int, number: int) -> None:
        self._cell[:] = (row, number, time.monotonic())

    def leave(self) -> None:
        self._cell[2] = 0.0


def _load(functions: Sequence[RewardFunction], origin: str) -> tuple[str, Any]:
    """How a process gets the functions: the bytes of a pickle, or where the rubric is."""
    try:
        return "pickle", pickle.dumps(list(functions))
    except BaseException as wrong:
        if not own_failure(wrong):
            raise
        if origin:
            return "import", origin
        raise UsageError(
            f"The reward functions cannot be sent to another process: {said_by(wrong)}",
            "Define them at the top of a module, not inside a function; or run without --workers.",
        ) from None


def _loaded(how: str, what: Any) -> list[RewardFunction]:
    if how == "pickle":
        functions: list[RewardFunction] = pickle.loads(what)  # noqa: S301  (made by the parent)
        return functions
    module, _, attribute = what.partition(":")
    rubric: Any = importlib.import_module(module)
    for name in attribute.split("."):
        rubric = getattr(rubric, name)
    found: list[RewardFunction] = getattr(rubric, "rubric", rubric).functions()  # an environment has one
    return found


def _serve(pipe: Connection, cell: Any, load: tuple[str, Any]) -> None:
    """Make calls until the pipe is closed, and end at once: threads and loops of functions may be in any state."""
    runner = asyncio.Runner()  # never closed, for a loop that waits would not let this process end
    with contextlib.suppress(OSError):  # the parent is gone, or a function has closed the pipe
        try:
            _make_calls(pipe, cell, load, runner)
        except KeyboardInterrupt:  # a function raised it, for signals are the parent's
            pipe.send(("interrupted", None, 0.0))
    os._exit(1)


def _make_calls(pipe: Connection, cell: Any, load: tuple[str, Any], runner: asyncio.Runner) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends this process
    if sys.stdout is not None:  # what functions print is no data
        sink = os.open(os.devnull, os.O_WRONLY) if sys.stderr is None else sys.stderr.fileno()
        os.dup2(sink, sys.stdout.fileno())
    try:
        functions = _loaded(*load)
    except BaseException as wrong:
        if not own_failure(wrong):
            raise
        pipe.send(("broken", said_by(wrong), 0.0))
        return
    shared = _Shared(cell)
    while True:
        try:
            places, names, rows, side_by_side, absent, read, settled, limits = pipe.recv()
        except (EOFError, OSError):
            return
        started = time.monotonic()
        work = Work([functions[at] for at in places], names, rows, side_by_side, absent, read)
        for row, number in settled:
            work.scores[number][row] = 0.0
        try:
            if work.is_async or not run_here(work, shared):
                run_to_end(runner.get_loop(), run_async(work, limits, shared))
        except Interrupted:
            raise KeyboardInterrupt from None
        pipe.send(("done", (work.scores, work.errors), time.monotonic() - started))
