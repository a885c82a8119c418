"""Reward functions in worker processes: for functions that need a core each, and for those that may never return.

A worker that hangs is killed, whatever it hangs in; the call that hung scores 0.0, and the remaining rows go to another worker.
A worker gets the functions once: by pickle or, if they cannot be pickled, by importing the rubric under its name.
"""

import importlib
import multiprocessing
import pickle
import weakref
from collections import deque
from collections.abc import Iterator, Sequence
from multiprocessing import spawn
from pathlib import Path
from typing import Any

from assay.calls.limits import Limits, failed, is_user_error, timed_out
from assay.calls.places import remember
from assay.calls.runner import Work
from assay.errors import UsageError, describe_error
from assay.guard.pool import Died, Late, Pool, PoolError, Raised, Reply, Request
from assay.rewards.reward_function import RewardFunction

_PROGRAM = str(Path(__file__).with_name("worker_program.py"))
_SLICE_SECONDS = 0.05
"""Target time for one piece; at most this much work is repeated when a worker is killed."""
_MAX_DEATHS = 3
"""Workers that may die before they have made a call."""

Piece = tuple[int, int]
"""First row, and the row after the last."""


class Workers:
    """Worker processes that call reward functions."""

    def __init__(self, functions: Sequence[RewardFunction], count: int, origin: str = "") -> None:
        self._names = {function.name: at for at, function in enumerate(functions)}
        self._load = _loader_for(functions, origin)
        self._count = count
        self._arguments = functions, count, origin
        self.pool = Pool(_PROGRAM, most=lambda: count, isolated=False, clock="wall")
        weakref.finalize(self, self.pool.close)

    def __reduce__(self) -> tuple[object, ...]:
        return Workers, self._arguments  # another process has workers of its own

    def __call__(self, work: Work, limits: Limits) -> None:
        """Make the calls and store their outcomes in ``work``."""
        if multiprocessing.current_process().daemon:
            raise UsageError(
                "The worker processes cannot be started: this process is a daemon, and daemons cannot start processes.",
                "Score without workers, or use concurrent.futures.ProcessPoolExecutor, whose processes are not daemons.",
            )
        context = _preparation(), *self._load
        smallest = self._smallest_piece(work, limits)
        size, start, deaths = max(smallest, 8), 0, 0
        unfinished, given = deque[Piece](), list[Piece]()

        def requests() -> Iterator[Request]:
            nonlocal start
            while unfinished or start < len(work.rows):
                if not unfinished:
                    unfinished.append((start, min(start + size, len(work.rows))))
                    start = unfinished[-1][1]
                given.append(unfinished.popleft())
                yield Request(context, self._message(given[-1], work, limits))

        while unfinished or start < len(work.rows):
            given.clear()
            for index, answer in self._answers(requests(), limits):
                piece = given[index]
                if isinstance(answer, Reply):
                    seconds = _take(work, piece, answer.value)
                    size = max(min(int(size * min(_SLICE_SECONDS / max(seconds, 1e-6), 2.0)), 2000), smallest)
                    continue
                unfinished.append(piece)
                outcome = _outcome(answer, limits)
                if isinstance(answer, Late | Died) and answer.part >= 0:
                    row, place = divmod(answer.part, len(self._names))
                    work.record(piece[0] + row, place, outcome)
                    continue
                deaths += 1
                if deaths > _MAX_DEATHS or not getattr(answer, "begun", False):
                    hint = 'In a script, put the code that starts the run under `if __name__ == "__main__":`.'
                    raise UsageError(f"The worker processes keep dying: {outcome[1]}", hint)

    def close(self) -> None:
        """Stop the workers."""
        self.pool.close()

    def _answers(self, requests: Iterator[Request], limits: Limits) -> Iterator[tuple[int, Any]]:
        try:
            yield from self.pool.answers(requests, limits.timeout, limits.stop)
        except PoolError as error:
            raise UsageError(f"The worker processes cannot be started: {error}") from None

    def _smallest_piece(self, work: Work, limits: Limits) -> int:
        """Return the least rows of a piece: for asynchronous functions, the number of concurrent rollouts of one worker."""
        if not work.is_async:
            return 1
        return limits.max_concurrent if limits.max_concurrent > 0 else -(-len(work.rows) // self._count)

    def _message(self, piece: Piece, work: Work, limits: Limits) -> bytes:
        recorded = [
            (row - piece[0], number)
            for number, scores in enumerate(work.scores)
            for row in range(*piece)
            if scores[row] is not None
        ]
        names, arguments, absent = work.recipe
        places = [self._names[name] for name in names]
        limits = Limits(limits.timeout, limits.max_concurrent)  # the other limits are enforced in this process
        rows = work.rows[slice(*piece)]
        return pickle.dumps((places, tuple(arguments), absent, rows, work.side_by_side, work.read, recorded, limits))


def _take(work: Work, piece: Piece, reply: bytes) -> float:
    """Store the outcomes of a piece, and return the seconds that it took."""
    status, outcome, seconds, lines = pickle.loads(reply)  # noqa: S301  (our own process)
    if status == "interrupted":
        raise KeyboardInterrupt
    if status == "broken":
        raise UsageError(
            f"The reward functions cannot be loaded in a worker process: {outcome}",
            "Define them at the top of a module that can be imported.",
        )
    remember(lines)
    for number, (scores, errors) in enumerate(zip(*outcome, strict=True)):
        for row, score in enumerate(scores):
            if work.scores[number][piece[0] + row] is None:
                work.record(piece[0] + row, number, (score, errors.get(row)))
    if work.tick is not None:
        work.tick(piece[1] - piece[0])
    return float(seconds)


def _outcome(answer: Raised | Late | Died, limits: Limits) -> tuple[float, str | None]:
    if isinstance(answer, Late):
        return timed_out(limits.timeout or 0.0)
    fact = f"{answer.name}: {answer.message}" if isinstance(answer, Raised) else f"exit code {answer.code}"
    return failed(RuntimeError(f"its process died, {fact}"))


def _preparation() -> bytes:
    """Return what a process needs to be like this one: the paths of imports and the main module, unless its file does not exist."""
    data = spawn.get_preparation_data("assay-worker")
    data["authkey"] = bytes(data["authkey"])
    if not Path(data.get("init_main_from_path", ".")).exists():
        del data["init_main_from_path"]
    return pickle.dumps(data)


def _loader_for(functions: Sequence[RewardFunction], origin: str) -> tuple[str, Any]:
    """Return how a worker loads the functions: from the bytes of a pickle, or by importing the rubric."""
    try:
        return "pickle", pickle.dumps(list(functions))
    except BaseException as error:
        if not is_user_error(error):
            raise
        if origin:
            return "import", origin
        raise UsageError(
            f"The reward functions cannot be sent to another process: {describe_error(error)}",
            "Define them at the top of a module, not inside a function; or run without --workers.",
        ) from None


def load_functions(how: str, payload: Any) -> list[RewardFunction]:
    """Load the functions in a worker."""
    if how == "pickle":
        functions: list[RewardFunction] = pickle.loads(payload)  # noqa: S301  (made by the parent)
        return functions
    module, _, attribute = payload.partition(":")
    rubric: Any = importlib.import_module(module)
    for name in attribute.split("."):
        rubric = getattr(rubric, name)
    imported: list[RewardFunction] = getattr(rubric, "rubric", rubric).functions()  # ``rubric`` may be an environment
    return imported
