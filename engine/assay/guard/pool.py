"""A pool of processes with limits on time and memory, for users' code and for work that may never return.

A pool has one warm parent (``server``), which imports a program once and forks workers. Each ``ask`` has workers of its own: first
one; if that takes longer than it takes to have another one, others take part, each with a few requests at a time, so that all are
busy to the end. Workers stay for the next requests, and end with this process, however it ends; a fork has none.
"""

import atexit
import contextlib
import json
import marshal
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import count
from typing import Any, NamedTuple

from assay.guard import server
from assay.guard.server import BURY, COMMAND, FRAME, KILL, LOOK, NOTE, RAISED, REQUEST, START, VALUE
from assay.system.processes import forget_in_children
from assay.system.signals import CLEANUPS

_BATCH_CHARACTERS = 1 << 17
"""Maximum characters of a request with several texts."""
_GROWTH = 8
"""How many times as many items as one request the next one has at most."""
_BATCH_SECONDS = 0.01
"""Seconds that a request should take: so little that all workers are busy to the end."""
_PATIENCE = 0.02
"""Seconds after which another worker is started, which costs about as much …"""
_HASTE = 0.002
"""… or one that is idle takes part."""
_POLL_SECONDS = 0.1
"""Interval at which a waiting run checks whether it has to stop."""
_LOOKS = 4
"""How often in the time of a call it is checked whether it is late."""
_DEATHS = 3
"""How often workers may end in a row before they have begun an item."""
_LONGEST_TIME = 1e9
"""Seconds: longer than any run, and within the range of the system's timer."""
_PIECE = 1 << 18
_KEPT_VARIABLES = ("PYTHONHOME", "PYTHONPYCACHEPREFIX", "PYTHONDONTWRITEBYTECODE")


class Request(NamedTuple):
    """What a program prepares for an item, and the item, both made of what ``marshal`` writes; neighbours share a context."""

    context: Hashable
    item: Any


class Reply(NamedTuple):
    """What the program returned."""

    value: Any


class Raised(NamedTuple):
    """The exception that the program raised, by the name of its class."""

    name: str
    message: str


class Late(NamedTuple):
    """The time was up.

    Attributes:
        preparing: Whether while the context was prepared.
        part: The part of the item that ran, where a program tells.
    """

    preparing: bool = False
    part: int = -1


class Died(NamedTuple):
    """The worker ended; with ``begun``, at this very item. The code is an exit code, or a signal as a negative number."""

    code: int
    begun: bool = False
    part: int = -1


Answer = Reply | Raised | Late | Died


class PoolError(Exception):
    """There are no workers, and why; ``lasts`` if that does not change."""

    def __init__(self, message: str, *, lasts: bool = False) -> None:
        super().__init__(message)
        self.lasts = lasts


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Parent:
    """The warm parent of a pool, in a session of its own."""

    def __init__(self, command: Sequence[str], *, isolated: bool) -> None:
        if _ENDING:  # a thread of Polars may still be at work
            raise OSError("this process is ending")
        self.control, theirs = socket.socketpair()
        environment = dict(os.environ)
        if isolated:
            environment = {name: value for name, value in environment.items() if not name.startswith("PYTHON")}
            environment |= {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
            environment["PYTHONHASHSEED"] = "0"  # NOTE: sympy's results may depend on the order of sets
        try:
            with theirs:
                self.process = subprocess.Popen(  # noqa: S603  (this interpreter, with a program of ours)
                    [sys.executable, *command],
                    stdin=theirs.fileno(),
                    stdout=subprocess.DEVNULL if isolated else 2,  # what functions print is no data of a run
                    stderr=subprocess.DEVNULL if isolated else None,
                    env=environment,
                    start_new_session=True,
                )
        except BaseException:
            self.control.close()
            raise
        self.greeted = False

    def tell(self, command: bytes, number: int) -> None:
        with contextlib.suppress(OSError):  # its end is noticed when a worker is buried
            self.control.sendall(COMMAND.pack(command, number))

    def reply(self) -> Any:
        """Return the next reply; None if the parent has ended."""
        try:
            if head := self.control.recv(FRAME.size, socket.MSG_WAITALL):
                return marshal.loads(self.control.recv(FRAME.unpack(head)[0], socket.MSG_WAITALL))  # noqa: S302  (our own process)
        except OSError:
            pass
        except BaseException:  # an interrupt: the rest would be taken for the next reply
            self.end()
            raise
        return None

    def end(self, patience: float = 0.0) -> None:
        """End it and its workers."""
        with contextlib.suppress(OSError):
            self.control.shutdown(socket.SHUT_RDWR)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(2 * patience)  # it needs one to end a worker
        with contextlib.suppress(OSError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.control.close()


class _Worker:
    """A worker, for one thread at a time.

    Attributes:
        context: What it has prepared.
        items: Numbers and requests of its batch without an answer, in order.
        size: How many requests the batch had.
        started: Monotonic time of its start, in seconds.
    """

    def __init__(self, parent: _Parent, number: int) -> None:
        self.parent, self.number = parent, number
        self.socket, theirs = socket.socketpair()
        with theirs:
            socket.send_fds(parent.control, [COMMAND.pack(START, number)], [theirs.fileno()])
        self.socket.setblocking(False)  # the worker does not read while it works, and the run may have to stop
        self.context: Any = self  # none, not even None
        self.items: deque[tuple[int, Request]] = deque()
        self.size, self.started = 0, 0.0
        self.unsent = memoryview(b"")
        self._read = bytearray()

    @property
    def usable(self) -> bool:
        """Whether it has not ended."""
        try:
            self.socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return self.parent.process.poll() is None
        except OSError:
            pass
        return False

    def send(self, items: deque[tuple[int, Request]], seconds: float) -> None:
        """Begin a batch; ``exchange`` sends it."""
        context = items[0][1].context
        is_new, self.context = context != self.context, context
        message: Any = (is_new, context if is_new else None, seconds, [request.item for _, request in items])
        data = marshal.dumps(message)
        self.unsent = memoryview(REQUEST.pack(len(items), len(data)) + data)
        self.items, self.size, self.started = items, len(items), time.monotonic()
        with contextlib.suppress(OSError):
            self._send()

    def _send(self) -> None:
        while self.unsent:
            self.unsent = self.unsent[self.socket.send(self.unsent) :]

    def exchange(self) -> list[tuple[bool, Any, list[Any]]]:
        """Send what the socket takes, and return what has arrived: whether it was the last, what came of the context, and replies."""
        with contextlib.suppress(BlockingIOError):
            try:
                self._send()
            except (BrokenPipeError, ConnectionResetError):
                self.unsent = memoryview(b"")
            try:
                data = self.socket.recv(_PIECE)
            except ConnectionResetError:
                data = b""
            if not data:
                raise EOFError
            self._read += data
        frames, start = [], 0
        while len(self._read) >= (begin := start + FRAME.size):
            end = begin + FRAME.unpack_from(self._read, start)[0]
            if len(self._read) < end:
                break
            frames.append(marshal.loads(memoryview(self._read)[begin:end]))  # noqa: S302
            start = end
        del self._read[:start]
        return frames


@dataclass(eq=False)
class Pool:
    """Workers of one program.

    Attributes:
        program: A file of Python with ``prepare(context, cell)``, which returns what answers an item, and perhaps ``warm_up()``.
        memory: Limit on the memory of a worker, in bytes; 0 for none.
        most: The maximum number of workers, except that each ``ask`` has one.
        paths: Import paths of the program, after those of its interpreter.
        isolated: Whether it sees neither the user's settings of Python nor packages that are not on its paths, and writes nowhere.
        clock: What seconds are: ``processor`` time of an item, or what a ``wall`` clock shows, of what the program marks.
        interruptible: Whether a late item raises an exception in the program; otherwise it ends its worker.
        renewed: Whether workers make place for new ones now and then, and where memory was short.
        prepare_seconds: Limit on the processor time for preparing a context; 0 for none.
        patience: Seconds that a worker whose client is gone has for the ``leave()`` of the program.
    """

    program: str
    _: KW_ONLY
    memory: int = 0
    most: Callable[[], int] = cores
    paths: Callable[[], Sequence[str]] = tuple
    isolated: bool = True
    clock: str = "processor"
    interruptible: bool = False
    renewed: bool = False
    prepare_seconds: float = 0.0
    patience: float = 0.0

    def __post_init__(self) -> None:
        self.greeting: Any = None
        self._broken: PoolError | None = None
        self._numbers = count()
        self._forget()
        _POOLS.add(self)

    def _forget(self) -> None:
        """Have no processes; in a forked child they belong to the parent, and no thread holds the lock."""
        self._lock = threading.Lock()
        self._parent: _Parent | None = None
        self._idle: list[_Worker] = []
        self._alive: set[_Worker] = set()

    def ask(
        self,
        requests: Sequence[Request],
        seconds: float | None,
        stop: threading.Event | None = None,
        heard: Callable[[Any], None] | None = None,
    ) -> list[Answer]:
        """Answer requests; raises what ``answers`` raises."""
        answers = dict(self.answers(requests, seconds, stop, heard))
        return [answers[index] for index in range(len(requests))]

    def answers(
        self,
        requests: Iterable[Request],
        seconds: float | None,
        stop: threading.Event | None = None,
        heard: Callable[[Any], None] | None = None,
    ) -> Iterator[tuple[int, Answer]]:
        """Yield the answer to each request, and its number, as they come; requests are taken when a worker is free.

        What the program tells meanwhile goes to ``heard``.
        """
        return _Asking(self, requests, min(seconds or 0.0, _LONGEST_TIME), stop, heard).run()

    def close(self) -> None:
        """End all processes."""
        parent, self._parent = self._parent, None
        if parent is not None:
            for worker in [*self._alive] if self.patience else ():
                with contextlib.suppress(OSError):
                    worker.socket.shutdown(socket.SHUT_RDWR)
            parent.end(self.patience)
        while self._idle:
            worker = self._idle.pop()
            self._alive.discard(worker)
            worker.socket.close()

    @property
    def processes(self) -> list[int]:
        """The process of the warm parent, if there is one."""
        return [] if self._parent is None else [self._parent.process.pid]

    def take(self, stop: threading.Event | None, *, another: bool) -> _Worker | None:
        """Return an idle worker, or a new one; None if ``another`` would be one too many."""
        with self._locked(stop):
            if another and len(self._alive) - len(self._idle) >= self.most():
                return None
            while self._idle:
                if (worker := self._idle.pop()).usable:
                    return worker
                self._discard(worker)
            parent = self._started(stop)
            try:
                worker = _Worker(parent, next(self._numbers))
            except OSError as error:  # the parent has ended, or there are no more descriptors
                if parent.process.poll() is not None:
                    self.close()
                raise PoolError(str(error)) from None
            self._alive.add(worker)
            return worker

    def give_back(self, workers: Iterable[_Worker]) -> None:
        """Take workers back that have nothing to do."""
        self._idle.extend(workers)

    def discard(self, worker: _Worker) -> None:
        """End a worker, even at work."""
        with self._locked(None):
            self._discard(worker)

    def _discard(self, worker: _Worker) -> None:
        self._alive.discard(worker)
        worker.socket.close()
        worker.parent.tell(KILL, worker.number)

    def bury(self, worker: _Worker, stop: threading.Event | None) -> tuple[int, int, int, bool]:
        """Return of a worker that has ended at which item and part that was, its exit code, and whether it was late."""
        with self._locked(stop):
            self._alive.discard(worker)
            worker.socket.close()
            worker.parent.tell(BURY, worker.number)
            if (report := worker.parent.reply()) is None:  # the parent has ended, and with it its workers
                if self._parent is worker.parent:
                    self.close()
                return server.IDLE, -1, -int(signal.SIGKILL), False
        *how, refusal = report
        if refusal and not self._alive:
            raise PoolError(refusal)
        item, part, code, is_late = how
        return item, part, code, is_late

    def look(self) -> None:
        """Let the parent end workers that are late."""
        if self._parent is not None:
            self._parent.tell(LOOK, 0)

    @contextlib.contextmanager
    def _locked(self, stop: threading.Event | None) -> Iterator[None]:
        while not self._lock.acquire(timeout=_POLL_SECONDS):
            check_stop(stop)
        try:
            yield
        finally:
            self._lock.release()

    def _started(self, stop: threading.Event | None) -> _Parent:
        if self._broken is not None:
            raise self._broken
        if not hasattr(os, "fork"):  # Windows
            raise PoolError("this system cannot fork processes")
        if self._parent is not None and self._parent.process.poll() is not None:
            self.close()
        if self._parent is None:
            options = {
                name: getattr(self, name)
                for name in ("program", "memory", "clock", "interruptible", "renewed", "prepare_seconds", "patience")
            }
            flags = ["-P", *(("-S", "-s") if self.isolated else subprocess._args_from_interpreter_flags())]  # type: ignore[attr-defined]  # noqa: SLF001
            try:
                command = [*flags, server.__file__, json.dumps(options | {"paths": [*self.paths()]})]
                self._parent = _Parent(command, isolated=self.isolated)
            # out of descriptors or processes, or no sys.executable
            except (AttributeError, OSError, TypeError, ValueError, subprocess.SubprocessError) as error:
                raise PoolError(str(error)) from None
        parent = self._parent
        while not parent.greeted:
            if not select.select([parent.control], [], [], _POLL_SECONDS)[0]:
                check_stop(stop)
                continue
            if (greeting := parent.reply()) is None:  # somebody has ended it
                self.close()
                raise PoolError("its parent has ended")
            problem, self.greeting = greeting
            if problem:
                self.close()
                self._broken = PoolError(problem, lasts=True)
                raise self._broken
            parent.greeted = True
        return parent


class _Asking:
    """The requests of one ``ask``, shared out to workers."""

    def __init__(
        self,
        pool: Pool,
        requests: Iterable[Request],
        seconds: float,
        stop: threading.Event | None,
        heard: Callable[[Any], None] | None,
    ) -> None:
        self._pool, self._seconds, self._stop, self._heard = pool, seconds, stop, heard
        self._requests = enumerate(requests)
        self._waiting: deque[tuple[int, Request]] = deque()
        self._failures: dict[Hashable, Answer] = {}  # of contexts
        self._free: list[_Worker] = []
        self._busy: dict[int, _Worker] = {}
        self._poller = select.poll()
        self._batch = 1
        self._deaths = 0
        self._latest = time.monotonic()  # when the latest worker was taken
        self._is_wall = pool.clock == "wall" and seconds > 0
        self._interval = min(_POLL_SECONDS, seconds / _LOOKS) if self._is_wall else _POLL_SECONDS

    def run(self) -> Iterator[tuple[int, Answer]]:
        try:
            while self._next() or self._busy:
                check_stop(self._stop)
                yield from self._share_out()
                if self._busy:
                    yield from self._wait()
        finally:
            for worker in self._busy.values():
                self._pool.discard(worker)
            self._pool.give_back(self._free)

    def _next(self) -> tuple[int, Request] | None:
        if not self._waiting:
            self._waiting.extend(item for item in [next(self._requests, None)] if item is not None)
        return self._waiting[0] if self._waiting else None

    def _share_out(self) -> Iterator[tuple[int, Answer]]:
        """Give requests to workers, as long as there are both; yield the answers that are known."""
        while first := self._next():
            index, request = first
            if self._failures and (failure := self._failures.get(request.context)) is not None:
                self._waiting.popleft()
                yield index, failure
                continue
            try:
                worker = self._worker()
            except PoolError:
                if not self._busy:
                    raise
                return
            if worker is None:
                return
            worker.send(self._next_batch(request.context), self._seconds)
            self._busy[worker.socket.fileno()] = worker
            self._poller.register(worker.socket, select.POLLIN | (select.POLLOUT if worker.unsent else 0))

    def _worker(self) -> _Worker | None:
        if self._free:
            return self._free.pop()
        if not self._busy:
            return self._pool.take(self._stop, another=False)
        if self._patience() > 0:
            return None
        self._latest = time.monotonic()
        return self._pool.take(self._stop, another=True)

    def _patience(self) -> float:
        return self._latest + (_HASTE if self._pool._idle else _PATIENCE) - time.monotonic()  # noqa: SLF001

    def _next_batch(self, context: Hashable) -> deque[tuple[int, Request]]:
        batch: deque[tuple[int, Request]] = deque()
        characters = 0
        while len(batch) < self._batch and (first := self._next()) and first[1].context == context:
            item = first[1].item
            characters += len(item) if isinstance(item, str) else 0
            if batch and characters > _BATCH_CHARACTERS:
                break
            batch.append(self._waiting.popleft())
        return batch

    def _wait(self) -> Iterator[tuple[int, Answer]]:
        patience = self._patience() if self._waiting else 0.0
        seconds = min(patience + 0.001, self._interval) if patience > 0 else self._interval
        events = self._poller.poll(1000 * seconds)
        if self._is_wall:
            self._pool.look()
        for descriptor, _ in events:
            yield from self._read(descriptor, self._busy[descriptor])

    def _read(self, descriptor: int, worker: _Worker) -> Iterator[tuple[int, Answer]]:
        try:
            for done, problem, replies in worker.exchange():
                self._deaths = 0
                for reply in replies:
                    if reply[0] != NOTE:
                        yield worker.items.popleft()[0], _answer(reply)
                    elif self._heard is not None:
                        self._heard(reply[1])
                if problem is not None:
                    yield from self._fail(
                        worker, Late(preparing=True) if problem[0] == server.LATE else _answer(problem)
                    )
                if done:
                    self._finish(descriptor, worker)
                    return
        except EOFError:
            self._poller.unregister(descriptor)
            del self._busy[descriptor]
            yield from self._bury(worker)
            self._waiting.extendleft(reversed(worker.items))
            return
        if not worker.unsent:
            self._poller.modify(descriptor, select.POLLIN)

    def _finish(self, descriptor: int, worker: _Worker) -> None:
        self._poller.unregister(descriptor)
        del self._busy[descriptor]
        answered = worker.size - len(worker.items)
        each = (time.monotonic() - worker.started) / max(answered, 1)
        self._batch = max(1, min(_GROWTH * worker.size, int(_BATCH_SECONDS / max(each, 1e-9))))
        self._waiting.extendleft(reversed(worker.items))  # what it gave back
        self._free.append(worker)

    def _bury(self, worker: _Worker) -> Iterator[tuple[int, Answer]]:
        """Yield the answers to the requests that ended a worker, as far as that is known."""
        item, part, code, is_late = self._pool.bury(worker, self._stop)
        if item >= 0:
            answered = worker.size - len(worker.items)
            for index, _ in [worker.items[item - answered]] if item >= answered else ():
                del worker.items[item - answered]
                yield index, Late(part=part) if is_late else Died(code, begun=True, part=part)
            return
        self._deaths += 1
        if item == server.PREPARING and is_late:
            yield from self._fail(worker, Late(preparing=True))
        elif self._deaths > _DEATHS:  # otherwise somebody else may have ended it, such as a system without memory
            yield from self._fail(worker, Died(code))

    def _fail(self, worker: _Worker, failure: Answer) -> Iterator[tuple[int, Answer]]:
        self._failures[worker.items[0][1].context] = failure
        while worker.items:
            yield worker.items.popleft()[0], failure


def _answer(reply: tuple[Any, ...]) -> Answer:
    kind = reply[0]
    return Reply(reply[1]) if kind == VALUE else Raised(*reply[1:]) if kind == RAISED else Late()


def check_stop(stop: threading.Event | None) -> None:
    """Raise a KeyboardInterrupt if the run has to stop."""
    if stop is not None and stop.is_set():
        raise KeyboardInterrupt


_POOLS: "weakref.WeakSet[Pool]" = weakref.WeakSet()
_ENDING: list[bool] = []
"""Holds True when this process is ending."""


def _close_all() -> None:
    for pool in [*_POOLS]:
        pool.close()


@atexit.register
def _end_for_good() -> None:
    _ENDING.append(True)
    _close_all()


def _forget_all() -> None:
    """In a forked child: close the copies of sockets, for whose end the processes wait."""
    for pool in [*_POOLS]:
        if pool._parent is not None:  # noqa: SLF001
            pool._parent.control.close()  # noqa: SLF001
            pool._parent.process.returncode = 0  # noqa: SLF001  (or Python would warn that it runs)
        for worker in [*pool._alive]:  # noqa: SLF001
            worker.socket.close()
        pool._forget()  # noqa: SLF001


forget_in_children(_forget_all)
CLEANUPS.append(_close_all)
