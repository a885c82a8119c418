"""Score shards in a separate process, so that a crash of the engine or a lack of memory costs one shard only.

A shard whose process dies is tried once more; then its units are tried alone, to find the one that ends the process.
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
from typing import IO, Any, NoReturn, Self

from assay.calls.limits import own_failure
from assay.errors import AssayError, UsageError, said_by
from assay.functions.registry import Function, FunctionReference
from assay.runs.shards import Job, Shard, culprit, score_shard, try_shard
from assay.scoring.summary import Summary
from assay.system.processes import forget_in_children, signal_at_end_of, silence
from assay.system.signals import CLEANUPS

_TRIES = 2
_COMMAND = "import sys; sys.path[:] = sys.argv[1:]; from assay.runs.child_process import serve; serve()"
"""Uses this process's import paths, so that a ``json.py`` in the current folder does not shadow Python's."""

_PATIENCE = 5.0
"""Seconds that a process has to end when asked to."""
_HURRY = 1.0
"""Seconds that it has if the run has failed, or this process is exiting."""
_USE_MODULE = "Define what the checks call in a module and import it, or score with --no-isolate."
_RUNNING: dict[subprocess.Popen[bytes], int] = {}
"""The processes, and the end of a pipe that nobody else holds: when it is closed, the system ends the process."""


def in_child_process(
    job: Job, shards: Sequence[Shard], tell: Callable[[int], None]
) -> Iterator[tuple[Shard, Summary | str]]:
    """Score shards in one separate process; an ``Engine``."""
    with _Child(job) as child:
        for shard in shards:
            yield shard, _scored(child, job, shard, tell)


def _scored(child: "_Child", job: Job, shard: Shard, tell: Callable[[int], None]) -> Summary | str:
    for _ in range(_TRIES):
        try:
            summary: Summary = child.ask(("score", shard), tell)
        except _DeadError as error:
            reason = str(error)
            continue
        return summary

    def dies(part: Shard) -> bool:
        try:
            child.ask(("try", part), lambda _: None)
        except _DeadError:
            return True
        return False

    return f"{reason}{culprit(job, shard, dies)}"


class _DeadError(Exception):
    """The process ended; the message says how."""


class _Child:
    """A process that scores shards."""

    def __init__(self, job: Job) -> None:
        try:
            self._job = pickle.dumps(_by_reference(job))
        except BaseException as error:  # a user's object may raise anything
            if not own_failure(error):
                raise
            raise UsageError(
                f"The checks cannot be sent to a separate process: {said_by(error)}", _USE_MODULE
            ) from None
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._process is not None:
            _end(self._process, _PATIENCE if kind is None else _HURRY)

    def ask(self, request: tuple[str, Shard], tell: Callable[[int], None]) -> Any:
        process = self._started()
        assert process.stdin is not None  # noqa: S101  (they are pipes)
        assert process.stdout is not None  # noqa: S101
        try:
            _send(process.stdin, request)
            while True:
                kind, value = _receive(process.stdout)
                if kind == "rows":
                    tell(value)
                elif kind == "warning":
                    warnings.warn(value, stacklevel=2)
                elif kind == "raised":
                    raise value
                else:
                    return value
        except (EOFError, BrokenPipeError):
            self._process = None
            raise _DeadError(_reason(_end(process))) from None

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            theirs, ours = os.pipe()
            try:
                # in its own process group: only this process handles an interrupt from the keyboard
                self._process = subprocess.Popen(  # noqa: S603  (this program, with fixed arguments)
                    [sys.executable, "-P", "-c", _COMMAND, *sys.path],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    pass_fds=(theirs,),
                    process_group=0,
                )
            except BaseException:
                os.close(ours)
                raise
            finally:
                os.close(theirs)
            _RUNNING[self._process] = ours
            assert self._process.stdin is not None  # noqa: S101
            with contextlib.suppress(BrokenPipeError):  # the next request reports it
                _send(self._process.stdin, (theirs, sys.path, self._job))
        return self._process


def _by_reference(job: Job) -> Job:
    by_module = [fn for fn in job.functions if _module_of(fn) not in ("", "__main__") and not _pickles(fn)]
    return replace(
        job,
        functions=tuple(fn for fn in job.functions if fn not in by_module),
        references=tuple(FunctionReference.of(fn.name) for fn in by_module),
        modules=(*job.modules, *dict.fromkeys(map(_module_of, by_module))),
    )


def _module_of(fn: Function) -> str:
    return str(getattr(fn.fn, "__module__", None) or "")


def _pickles(fn: Function) -> bool:
    try:
        pickle.dumps(fn)
    except BaseException as error:
        if not own_failure(error):
            raise
        return False
    return True


def _reason(code: int) -> str:
    if code >= 0:
        return f"its process ended with exit code {code}"
    name = signal.Signals(-code).name
    return f"its process was ended by {name}{', perhaps for lack of memory' if name == 'SIGKILL' else ''}"


def _end(process: subprocess.Popen[bytes], patience: float = _PATIENCE) -> int:
    for pipe in (process.stdin, process.stdout):
        with contextlib.suppress(OSError):
            if pipe is not None:
                pipe.close()
    try:
        code = process.wait(patience)  # it ends by itself when its pipe is closed
    except subprocess.TimeoutExpired:
        process.kill()
        code = process.wait()
    _let_go(process)
    return code


def _let_go(process: subprocess.Popen[bytes]) -> None:
    if (pipe := _RUNNING.pop(process, None)) is not None:
        os.close(pipe)


def _end_all() -> None:
    for process in list(_RUNNING):
        with contextlib.suppress(OSError):
            if process.stdin is not None:
                process.stdin.close()  # it exits and removes its temporary files
        try:
            process.wait(_HURRY)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        _let_go(process)


def _forget() -> None:
    for process in list(_RUNNING):
        _let_go(process)


CLEANUPS.append(_end_all)
forget_in_children(_forget)


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


def serve() -> None:
    """Score shards on request, from standard input, until it is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process handles it
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)  # functions that print must not write to the pipe
    lock = threading.Lock()

    def answer(kind: str, value: Any) -> None:
        with lock:
            try:
                _send(answers, (kind, value))
            except OSError:
                _leave()

    heard = _listening(requests)
    lifeline, paths, job_data = heard.get()
    signal_at_end_of(lifeline)
    sys.path[:] = paths
    try:
        job: Job = pickle.loads(job_data)  # noqa: S301  (from our own process)
        job.set_up()
    except BaseException as error:  # a module may raise anything
        if not own_failure(error):
            raise
        answer("raised", UsageError(f"The process that scores parts could not start: {said_by(error)}", _USE_MODULE))
        threading.Event().wait()  # the parent process ends this one
    warnings.showwarning = lambda message, *_, **__: answer("warning", message)
    while True:
        kind, shard = heard.get()
        try:
            if kind == "score":
                answer("done", score_shard(job, shard, lambda rows: answer("rows", rows)))
            else:
                try_shard(job, shard)
                answer("done", None)
        except AssayError as error:
            answer("raised", error)
        except Exception as error:  # noqa: BLE001  (the parent process reports it)
            answer("raised", AssayError(f"{shard.name}: {said_by(error)}"))


def _listening(requests: IO[bytes]) -> queue.Queue[Any]:
    heard: queue.Queue[Any] = queue.Queue()

    def listen() -> None:
        try:
            while True:
                heard.put(_receive(requests))
        except (EOFError, OSError):
            _leave()

    threading.Thread(target=listen, daemon=True).start()
    return heard


_LEAVING = threading.Lock()
"""Held by the thread that exits, to the end: what fails in others meanwhile fails without a word."""


def _leave() -> NoReturn:
    with _LEAVING:
        silence((1, 2))
        for remove in CLEANUPS:
            with contextlib.suppress(Exception):
                remove()
        os._exit(0)
