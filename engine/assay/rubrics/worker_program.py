"""What a worker process does for a rubric: it loads the functions, and makes the calls of pieces of work.

NOTE: nothing of Assay is imported before ``prepare``, so that a worker has threads of its own, and the client's import paths.
"""

import multiprocessing
import os
import pickle
import time
import traceback
from collections.abc import Callable
from multiprocessing import spawn
from typing import Any


def prepare(context: tuple[bytes, str, Any], cell: Any) -> Callable[[bytes], bytes]:
    """Load the functions: from the bytes of a pickle, or by importing the rubric; return what makes calls."""
    process: Any = multiprocessing.current_process()
    process._inheriting = True  # noqa: SLF001  (a program that starts a run while it is imported is told what to do)
    try:
        spawn.prepare(pickle.loads(context[0]))  # noqa: S301  (made by the client)
    except BaseException:  # noqa: BLE001  (the program of the client fails without its arguments)
        traceback.print_exc()
        os._exit(1)
    del process._inheriting  # noqa: SLF001

    import asyncio

    from assay.calls.async_runner import run_async, run_to_end
    from assay.calls.limits import is_user_error
    from assay.calls.places import place_of
    from assay.calls.runner import Interrupted, RunningCall, Work, run_here
    from assay.errors import describe_error
    from assay.rubrics.worker_processes import load_functions

    try:
        functions = load_functions(*context[1:])
    except BaseException as error:
        if not is_user_error(error):
            raise
        broken = pickle.dumps(("broken", describe_error(error), 0.0, {}))
        return lambda _: broken
    runner = asyncio.Runner()  # never closed: a loop that waits would keep this process alive

    class MarkedCall(RunningCall):
        """The current call, in memory shared with the parent."""

        timeout = float("inf")

        def enter(self, row: int, number: int) -> None:
            cell.mark(row * len(functions) + number, time.monotonic() + self.timeout)

        def leave(self) -> None:
            cell.mark(-1, float("inf"))

    def make_calls(message: bytes) -> bytes:
        places, names, absent, rows, side_by_side, read, recorded, limits = pickle.loads(message)  # noqa: S301
        started = time.monotonic()
        chosen = [functions[place] for place in places]
        calls = [function.caller(names, absent) for function in chosen]
        work = Work(calls, rows, any(function.is_async for function in chosen), side_by_side, read)
        for row, number in recorded:
            work.scores[number][row] = 0.0
        running = MarkedCall()
        running.timeout = float("inf") if limits.timeout is None else limits.timeout
        try:
            if work.is_async or not run_here(work, running):
                run_to_end(runner.get_loop(), run_async(work, limits, running))
        except (Interrupted, KeyboardInterrupt):  # raised by a function, as this process ignores signals
            return pickle.dumps(("interrupted", None, 0.0, {}))
        messages = {message for errors in work.errors for message in errors.values()}
        lines = {message: place_of(message) for message in messages if place_of(message)}
        return pickle.dumps(("done", (work.scores, work.errors), time.monotonic() - started, lines))

    return make_calls
