"""The warm parent of a pool: it imports a program once, and forks workers, which takes milliseconds.

A worker talks with its client directly. The parent starts, ends and buries workers when the client tells it to, so it always answers;
it ends with its client, and its workers with it.

NOTE: it is started by its path, with the standard library only, and imports nothing of Assay.
"""

import contextlib
import gc
import importlib.util
import json
import marshal
import mmap
import os
import select
import signal
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, BinaryIO, NoReturn

COMMAND = struct.Struct("!cI")
"""What the client tells the parent, and the number of a worker."""
START, KILL, BURY, LOOK = b"S", b"K", b"B", b"L"
"""Start a worker, with its socket; end it; say how it ended; end those that are late."""
REQUEST = struct.Struct("!IQ")
"""Number of items of a request, and its bytes."""
FRAME = struct.Struct("!Q")
"""Bytes of a reply."""
VALUE, RAISED, LATE, NOTE = range(4)
"""What came of an item, and what the program says while it is at work on one."""
IDLE, PREPARING = -1, -2
"""In place of an item: nothing, or the context of the items."""

_CELL = struct.Struct("!qqd")
"""What a worker shares with the parent: its item, a part of the item, and until when it may take, in monotonic seconds."""
_SPAN = 0.001
"""Seconds in which items share a timer, whose limit is so much longer, and a write of their replies."""
_PATIENCE = 0.05
"""Seconds after which the rest of a request is given back."""
_HARD = 0.05
"""Seconds after which a call that looks for no signal ends with its process."""
_GRACE = 60.0
"""Seconds of real time that an item may take in addition to ten times its processor time: the worker may wait for the processor."""
_DYING = 2.0
"""Seconds that a worker that has closed its socket has to end."""
_LONGEST_MESSAGE = 300
_SINCE_FORK = 5_000
"""Items after which a worker makes place for a new one: the caches of its libraries grow."""


class _Late(BaseException):
    """The time of an item is up."""


class Cell:
    """Where a worker is at work, in memory shared with the parent.

    Attributes:
        tell: Sends the client a note, made of what ``marshal`` writes; from any thread, while an item is at work.
    """

    tell: Callable[[Any], None]

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, _CELL.size)
        self.item = IDLE
        self.write(IDLE)

    def write(self, item: int, part: int = -1, until: float = float("inf")) -> None:
        """Record the item that begins."""
        self.item = item
        _CELL.pack_into(self._memory, 0, item, part, until)

    def mark(self, part: int, until: float) -> None:
        """Record the part of the item that runs, for a program that counts seconds by itself."""
        _CELL.pack_into(self._memory, 0, self.item, part, until)

    def read(self) -> tuple[int, int, float]:
        """Return the item, its part, and until when it may take."""
        item, part, until = _CELL.unpack_from(self._memory)
        return item, part, until


class _WorkerProcess:
    """The work of a worker: requests in, replies out."""

    def __init__(self, program: Any, options: dict[str, Any], sock: socket.socket, cell: Cell) -> None:
        self._program, self._options, self._cell, self._socket = program, options, cell, sock
        self._source: BinaryIO = sock.makefile("rb")
        self._replies: list[Any] = []
        self._is_armed = self._is_limited = self._leaves = False
        self._items = 0
        self._sending, self._leaving = threading.Lock(), threading.Lock()
        cell.tell = self._tell

    def run(self) -> None:
        """Reply to requests until the client closes the socket."""
        self._limit()
        if hasattr(self._program, "leave"):
            threading.Thread(target=self._await_end_of_client, daemon=True).start()
        function, problem = None, None
        while head := self._source.read(REQUEST.size):
            count, size = REQUEST.unpack(head)
            try:
                is_new, context, seconds, items = marshal.loads(self._source.read(size))  # noqa: S302  (our client)
            except MemoryError as error:
                self._replies = [self._described(error)] * count
                self._send(done=True)
                return
            if is_new:
                self._cell.write(PREPARING)
                self._arm(self._options["prepare_seconds"])
                kind, *result = self._attempt(True, self._program.prepare, context, self._cell)
                self._disarm()
                function, problem = (result[0], None) if kind == VALUE else (None, (kind, *result))
            if function is None:
                self._send(done=True, problem=problem)
            else:
                self._answer(function, items, seconds)
            if self._leaves or (self._items > _SINCE_FORK and self._options["renewed"]):
                return

    def leave(self, code: int) -> NoReturn:
        """End this process, in order if the program has one."""
        with self._leaving:  # to the end
            if hasattr(self._program, "leave"):
                self._program.leave()
            os._exit(code)

    def _await_end_of_client(self) -> None:
        end = select.poll()
        end.register(self._socket, 0)  # which is always reported
        end.poll()
        self.leave(0)

    def _answer(self, function: Callable[[Any], Any], items: list[Any], seconds: float) -> None:
        is_processor = self._options["clock"] == "processor"
        limited = seconds if is_processor else 0.0
        allowance = 10 * seconds + _GRACE if limited else float("inf")
        due, rest = 0.0, time.monotonic() + _PATIENCE
        for index, item in enumerate(items):
            now = time.monotonic()
            if index and (self._leaves or now > rest):  # another process may be idle
                break
            if not self._is_armed or now > due:
                if self._replies:
                    self._send()
                if limited:
                    self._arm(limited + _SPAN)
                due = now + _SPAN
            self._cell.write(index, -1, now + allowance)
            reply = self._attempt(bool(limited), function, item)
            with self._sending:
                self._replies.append(reply)
            self._items += 1
        self._disarm()
        self._send(done=True)

    def _attempt(self, is_limited: bool, function: Callable[..., Any], *arguments: Any) -> tuple[Any, ...]:
        try:
            try:
                self._is_limited = is_limited
                result = function(*arguments)
            finally:
                self._is_limited = False
        except (_Late, TimeoutError):  # the package regex looks at the clock itself
            self._is_limited = False
            return (LATE,)
        except Exception as error:  # noqa: BLE001  (whatever it is, it is the result)
            self._leaves = self._leaves or (isinstance(error, MemoryError) and self._options["renewed"])
            return self._described(error)
        return VALUE, result

    def _described(self, error: Exception) -> tuple[int, str, str]:
        too_much = f"it needs more than {self._options['memory'] >> 30} GiB" if isinstance(error, MemoryError) else ""
        shown = (str(error) or too_much).encode("utf-8", "backslashreplace")[:_LONGEST_MESSAGE]
        return RAISED, type(error).__name__, shown.decode("utf-8", "replace")

    def _send(self, *notes: Any, done: bool = False, problem: Any = None) -> None:
        if done:  # before the client knows: whoever ends this process then ends no item
            self._cell.write(IDLE)
        with self._sending:
            data = marshal.dumps((done, problem, [*self._replies, *((NOTE, note) for note in notes)]))
            self._socket.sendall(FRAME.pack(len(data)) + data)
            self._replies.clear()

    def _tell(self, note: Any) -> None:
        try:
            self._send(note)
        except OSError:  # the client is gone
            self.leave(1)

    def _limit(self) -> None:
        import resource

        memory, interruptible = self._options["memory"], self._options["interruptible"]
        if memory:
            hard = resource.getrlimit(resource.RLIMIT_AS)[1]
            allowed = memory if hard == resource.RLIM_INFINITY else min(memory, hard)
            resource.setrlimit(resource.RLIMIT_AS, (allowed, allowed))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            # if memory is short, the system shall end this process first
            with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:  # noqa: PTH123  (one import less)
                file.write("1000")
        for number in (signal.SIGHUP, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGPROF, self._on_timer if interruptible else signal.SIG_DFL)
        signal.signal(signal.SIGVTALRM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGPROF, signal.SIGVTALRM})

    def _on_timer(self, *_: object) -> None:
        self._is_armed = False
        if self._is_limited:
            raise _Late

    def _arm(self, seconds: float) -> None:
        if self._options["interruptible"]:  # a loop of ``re`` that looks for no signal ends with the process
            signal.setitimer(signal.ITIMER_VIRTUAL, seconds + _HARD)
        signal.setitimer(signal.ITIMER_PROF, seconds)
        self._is_armed = True

    def _disarm(self) -> None:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        self._is_armed = False


class _ParentProcess:
    """Starts workers, and buries them."""

    def __init__(self, program: Any, options: dict[str, Any], control: socket.socket) -> None:
        self._program, self._options, self._control = program, options, control
        self._workers: dict[int, tuple[int, Cell]] = {}
        self._late: set[int] = set()
        self._refusals: dict[int, str] = {}
        self._lifeline, self._life = os.pipe()  # the system ends the workers when this process ends, whatever they do

    def run(self) -> None:
        """Obey the client until it has ended."""
        while True:
            command, descriptors, *_ = socket.recv_fds(self._control, COMMAND.size, 1)
            if len(command) < COMMAND.size:
                break
            kind, number = COMMAND.unpack(command)
            if kind == START:
                self._start(number, socket.socket(fileno=descriptors[0]))
            elif kind == KILL:
                self._bury(number, self._options["patience"])
            elif kind == BURY:
                _reply(self._control, self._bury(number, _DYING))
            else:
                self._end_late()
        for number in [*self._workers]:
            self._bury(number, self._options["patience"])

    def _start(self, number: int, sock: socket.socket) -> None:
        cell = Cell()
        try:
            pid = os.fork()
        except OSError as error:  # out of processes or memory
            self._refusals[number] = str(error)
            sock.close()
            return
        if not pid:
            worker, code = _WorkerProcess(self._program, self._options, sock, cell), 0
            try:
                self._control.close()
                os.close(self._life)
                _end_with(self._lifeline)
                worker.run()
            except OSError:  # the client is gone, or a function has closed the socket
                code = 1
            finally:
                worker.leave(code)
        sock.close()
        self._workers[number] = pid, cell

    def _end_late(self) -> None:
        now = time.monotonic()
        for number, (pid, cell) in self._workers.items():
            if now > cell.read()[2]:
                self._late.add(number)
                os.kill(pid, signal.SIGKILL)

    def _bury(self, number: int, patience: float) -> tuple[int, int, int, bool, str]:
        """Return where a worker was at work, how it ended, whether it was late, and why there is none, if so."""
        if number not in self._workers:
            return IDLE, 0, 0, False, self._refusals.pop(number, "")
        pid, cell = self._workers.pop(number)
        until = time.monotonic() + patience
        while not (ended := os.waitpid(pid, os.WNOHANG))[0] and time.monotonic() < until:
            time.sleep(0.001)
        if not ended[0]:
            os.kill(pid, signal.SIGKILL)
            ended = os.waitpid(pid, 0)
        code = os.waitstatus_to_exitcode(ended[1])
        is_late = number in self._late
        self._late.discard(number)
        if self._options["clock"] == "processor":
            is_late = is_late or -code in (signal.SIGPROF, signal.SIGVTALRM)
        item, part, _ = cell.read()
        return item, part, code, is_late, ""


def _end_with(pipe: int) -> None:
    """Let the system end this process when nobody holds the other end of a pipe: SIGIO, on Linux."""
    with contextlib.suppress(ImportError, AttributeError, OSError):
        import fcntl

        fcntl.fcntl(pipe, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(pipe, fcntl.F_SETFL, fcntl.fcntl(pipe, fcntl.F_GETFL) | os.O_ASYNC)


def _reply(control: socket.socket, value: Any) -> None:
    data = marshal.dumps(value)
    with contextlib.suppress(OSError):  # nobody reads any more
        control.sendall(FRAME.pack(len(data)) + data)


def _main() -> None:
    control = socket.socket(fileno=os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):  # who started this process ends it
        signal.signal(number, signal.SIG_IGN)
    options = json.loads(sys.argv[1])
    sys.path += options["paths"]
    try:
        spec = importlib.util.spec_from_file_location("assay_guarded_program", options["program"])
        assert spec is not None  # noqa: S101  (it is a file of Python)
        assert spec.loader is not None  # noqa: S101
        program = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(program)
        greeting = program.warm_up() if hasattr(program, "warm_up") else None
    except BaseException as error:  # noqa: BLE001  (a library that is not whole may raise anything)
        _reply(control, (f"{type(error).__name__}: {error}", None))
        return
    gc.freeze()
    _reply(control, ("", greeting))
    _ParentProcess(program, options, control).run()


if __name__ == "__main__":
    _main()
