"""Shards scored in a process of their own: what ends it, the engine's crash or the system's want of memory, costs one shard.

A shard whose process dies is tried once more; then its units are tried alone, to tell which of them it was.
"""

import contextlib
import os
import pickle
import queue
import signal
import struct
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import IO, Any, Self

from assay.calls.limits import own_failure
from assay.errors import AssayError, UsageError, said_by
from assay.functions.registry import Function, Reference
from assay.runs.folder import Failed
from assay.runs.shards import Job, Shard, culprit, score_shard, try_shard
from assay.scoring.summary import Summary
from assay.system.processes import forget_in_children
from assay.system.signals import LEFTOVERS

__all__ = ["isolated", "serve"]

_TRIES = 2
_COMMAND = "import sys; sys.path[:] = sys.argv[1:]; from assay.runs.child_process import serve; serve()"
"""Modules are looked for where this process does: a ``json.py`` in the current folder is not Python's."""

_PATIENCE = 5.0
"""Seconds that a process has to end when it is told to."""
_HURRY = 1.0
"""Those that it has where this one ends at once."""
_AT_HAND = "Define in a module what the checks call, and import it, or score with --no-isolate (isolate=False)."
_RUNNING: set[subprocess.Popen[bytes]] = set()


def isolated(
    job: Job, shards: Sequence[Shard], tell: Callable[[int], None]
) -> Iterator[tuple[Shard, Summary | Failed]]:
    """The engine that is one process beside this one.

    Raises:
        UsageError: The checks cannot be sent there.
    """
    with _Child(job) as child:
        for shard in shards:
            yield shard, _scored(child, job, shard, tell)


def _scored(child: "_Child", job: Job, shard: Shard, tell: Callable[[int], None]) -> Summary | Failed:
    for _ in range(_TRIES):
        try:
            found: Summary = child.ask(("score", shard), tell)
        except _DeadError as dead:
            died = str(dead)
            continue
        return found

    def dies(part: Shard) -> bool:
        try:
            child.ask(("try", part), lambda _: None)
        except _DeadError:
            return True
        return False

    return Failed(f"{died}{culprit(job, shard, dies)}")


class _DeadError(Exception):
    """The process ended; the words say how."""


class _Child:
    """A process that scores shards."""

    def __init__(self, job: Job) -> None:
        try:
            self._job = pickle.dumps(_by_reference(job))
        except BaseException as wrong:  # a user's object may raise anything
            if not own_failure(wrong):
                raise
            raise UsageError(
                f"The checks cannot be sent to a process of their own: {said_by(wrong)}",
                _AT_HAND,
            ) from None
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            _end(self._process)

    def ask(self, what: tuple[str, Shard], tell: Callable[[int], None]) -> Any:
        """Have something done.

        Raises:
            _DeadError: The process ended.
            Exception: Whatever the process raised.
        """
        process = self._started()
        assert process.stdin is not None  # noqa: S101  (they are pipes)
        assert process.stdout is not None  # noqa: S101
        try:
            _send(process.stdin, what)
            while True:
                kind, given = _receive(process.stdout)
                if kind == "rows":
                    tell(given)
                elif kind == "warning":
                    warnings.warn(given, stacklevel=2)
                elif kind == "raised":
                    raise given
                else:
                    return given
        except (EOFError, BrokenPipeError):
            self._process = None
            raise _DeadError(_how(_end(process))) from None

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            # in a group of its own: an interrupt at the keyboard is this process's to answer
            self._process = subprocess.Popen(  # noqa: S603  (this program, with words of our own)
                [sys.executable, "-P", "-c", _COMMAND, *sys.path],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                process_group=0,
            )
            _RUNNING.add(self._process)
            assert self._process.stdin is not None  # noqa: S101
            with contextlib.suppress(BrokenPipeError):  # told when it is asked
                _send(self._process.stdin, (sys.path, self._job))
        return self._process


def _by_reference(job: Job) -> Job:
    """A job whose functions are known by their modules where they cannot be pickled, as with a lambda for a twin."""
    here = [one for one in job.functions if _module_of(one) not in ("", "__main__") and not _pickles(one)]
    return replace(
        job,
        functions=tuple(one for one in job.functions if one not in here),
        references=tuple(Reference.of(one.name) for one in here),
        modules=(*job.modules, *dict.fromkeys(map(_module_of, here))),
    )


def _module_of(one: Function) -> str:
    return str(getattr(one.fn, "__module__", None) or "")


def _pickles(one: Function) -> bool:
    try:
        pickle.dumps(one)
    except BaseException as wrong:
        if not own_failure(wrong):
            raise
        return False
    return True


def _how(code: int) -> str:
    if code >= 0:
        return f"its process ended with exit code {code}"
    name = signal.Signals(-code).name
    return f"its process was ended by {name}{', perhaps for want of memory' if name == 'SIGKILL' else ''}"


def _end(process: subprocess.Popen[bytes]) -> int:
    """End a process; what it has not finished is no part."""
    for pipe in (process.stdin, process.stdout):
        with contextlib.suppress(OSError):
            if pipe is not None:
                pipe.close()
    try:
        code = process.wait(_PATIENCE)  # it ends by itself where nobody asks any more
    except subprocess.TimeoutExpired:
        process.kill()
        code = process.wait()
    _RUNNING.discard(process)
    return code


def _end_all() -> None:
    for process in list(_RUNNING):
        with contextlib.suppress(OSError):
            if process.stdin is not None:
                process.stdin.close()  # it goes, and leaves nothing
        try:
            process.wait(_HURRY)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        _RUNNING.discard(process)


LEFTOVERS.append(_end_all)
forget_in_children(_RUNNING.clear)


def _send(pipe: IO[bytes], message: Any) -> None:
    data = pickle.dumps(message)
    pipe.write(struct.pack(">Q", len(data)) + data)
    pipe.flush()


def _receive(pipe: IO[bytes]) -> Any:
    header = pipe.read(8)
    if len(header) < 8:  # noqa: PLR2004
        raise EOFError
    (size,) = struct.unpack(">Q", header)
    data = pipe.read(size)
    if len(data) < size:
        raise EOFError
    return pickle.loads(data)  # noqa: S301  (from our own process)


# ── in that process ─────────────────────────────────────────────────────────────────────────────────────────────────────


def serve() -> None:
    """Score the shards that are asked for on standard input, until nobody asks any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the one who asks answers it
    told, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)  # what functions print is no answer
    lock = threading.Lock()

    def answer(kind: str, given: Any) -> None:
        with lock:
            _send(answers, (kind, given))

    paths, job_data = _receive(told)
    sys.path[:] = paths
    try:
        job: Job = pickle.loads(job_data)  # noqa: S301  (from our own process)
        job.settle_in()
    except BaseException as wrong:  # a module may raise anything
        if not own_failure(wrong):
            raise
        answer("raised", UsageError(f"The process that scores parts could not begin: {said_by(wrong)}", _AT_HAND))
        return
    warnings.showwarning = lambda message, *_, **__: answer("warning", message)
    for kind, shard in _asked(told):
        try:
            if kind == "score":
                answer("done", score_shard(job, shard, lambda rows: answer("rows", rows)))
            else:
                try_shard(job, shard)
                answer("done", None)
        except AssayError as wrong:
            answer("raised", wrong)
        except Exception as wrong:  # noqa: BLE001  (whatever it is, the one who asked should know)
            answer("raised", AssayError(f"{shard.name}: {said_by(wrong)}"))


def _asked(told: IO[bytes]) -> Iterator[tuple[str, Shard]]:
    """What is asked for; where the one who asks is gone, this process goes, too, in the middle of whatever it does."""
    todo: queue.Queue[tuple[str, Shard]] = queue.Queue()

    def listen() -> None:
        try:
            while True:
                todo.put(_receive(told))
        except (EOFError, OSError):
            for leave in LEFTOVERS:
                leave()
            os._exit(0)

    threading.Thread(target=listen, daemon=True).start()
    while True:
        yield todo.get()
