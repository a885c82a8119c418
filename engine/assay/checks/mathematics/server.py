"""A program that compares mathematical texts by math-verify, which may never return and may take all memory.

It imports math-verify once, which takes seconds, and forks workers, which takes milliseconds: a worker that exceeds a limit ends, and
costs its own pair only. The program itself only passes requests and replies on, so that it always answers. It ends with its
standard input, and its workers with it.

NOTE: it is started by its path, with the standard library and math-verify, and imports nothing of Assay.
"""

import contextlib
import gc
import json
import mmap
import os
import select
import signal
import struct
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from enum import IntEnum
from typing import Any

HEAD = struct.Struct("!BIQ")
"""Head of a request or a reply: its kind, the number of the request, and the bytes of JSON that follow."""
INSTALL = "pip install 'assay[math]'"
LIBRARIES = {
    "math-verify": ("0.9.0",),
    "latex2sympy2_extended": ("1.11.0",),
    "sympy": ("1.14.0",),
    "antlr4-python3-runtime": ("4.9.3", "4.11.0", "4.13.2"),
}
"""The libraries that compare, each with the versions that have been tested."""
MEMORY = 1 << 30
"""Limit on the memory of a worker, in bytes."""
_PIECE = 1 << 16
_CELL = struct.Struct("!qd")
"""What a worker shares: which pair of its request it compares, -1 for none, and until when it may, in monotonic seconds."""
_GRACE = 60.0
"""Seconds of real time that a pair may take in addition to ten times its processor time: the worker may wait for the processor."""
_MOST = 5_000
"""Pairs after which a worker makes place for a new one: the caches of its libraries grow."""
_LONGEST_MESSAGE = 300
_WARM_UP = (("\\frac{1}{2}", "0.5"), ("x^2+1", "(x+1)^2"), ("(1,2)", "[1,2)"), ("\\sqrt{2}", "2^{1/2}"))
"""Pairs that fill the caches of the libraries before there are workers."""


class Kind(IntEnum):
    """Kinds of messages."""

    ASKED = 0
    """A request: a list of pairs, each with its params."""
    DONE = 1
    """The seconds that a request took, and a verdict with a message for each pair."""
    LEAVES = 2
    """The same, from a worker that ends now."""
    DIED = 3
    """The pair at which a worker ended, -1 if before the first, and the signal that ended it."""
    BROKEN = 4
    """Why nothing can be compared in this installation."""
    FAILED = 5
    """Why nothing can be compared now."""
    READY = 6
    """The versions of the libraries that compare, in the order of ``LIBRARIES``; the first message."""


class Verdict(IntEnum):
    """The verdict on a pair."""

    DIFFERENT = 0
    EQUAL = 1
    NO_ANSWER = 2
    """The answer cannot be read."""
    NO_GOLD = 3
    """The gold cannot be read."""
    RAISED = 4
    """math-verify raised an exception; the message is that."""
    LATE = 5
    """The time was up."""
    GONE = 6
    """The process ended."""


def frame(kind: Kind, number: int, content: Any) -> bytes:
    """Return the bytes of a message."""
    data = json.dumps(content).encode("ascii")
    return HEAD.pack(kind, number, len(data)) + data


def frames(read: bytearray) -> Iterator[tuple[Kind, int, bytes]]:
    """Yield the messages that bytes have, each as its kind, its number and all of its bytes, and delete them."""
    while len(read) >= HEAD.size:
        kind, number, size = HEAD.unpack_from(read)
        end = HEAD.size + size
        if len(read) < end:
            return
        message = bytes(read[:end])
        del read[:end]
        yield Kind(kind), number, message


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


# ── in a worker ─────────────────────────────────────────────────────────────────────────────────────────────────────────

Compare = Callable[[str, str, bool, int, str, bool], Verdict]


def _versions() -> list[str]:
    """Return the version of each library; ``""`` for one that is not installed as a package."""
    from importlib.metadata import PackageNotFoundError, version

    found = []
    for name in LIBRARIES:
        try:
            found.append(version(name))
        except PackageNotFoundError:
            found.append("")
    return found


def _comparison() -> Compare:
    """Return the function that compares a gold and an answer.

    Raises:
        ImportError: math-verify is not installed.
    """
    import logging

    from math_verify import ExprExtractionConfig, LatexExtractionConfig, parse, verify
    from sympy.core import random

    logging.disable(logging.CRITICAL)
    latex, plain = LatexExtractionConfig(boxed_match_priority=0), ExprExtractionConfig()
    readings = {"whole": [latex, plain], "any": [latex, plain], "latex": [latex], "expr": [plain]}

    def read(text: str, how: str) -> list[Any]:
        text = rf"\boxed{{{text}}}" if how == "whole" else text
        parsed: list[Any] = parse(text, readings[how], parsing_timeout=None, raise_on_error=True)
        return parsed

    def compare(gold: str, answer: str, strict: bool, precision: int, how: str, relations: bool) -> Verdict:
        random.seed(0)
        golds, answers = read(gold, how), read(answer, how)
        limits = {"timeout_seconds": None, "raise_on_error": True, "allow_set_relation_comp": relations}
        if verify(golds, answers, float_rounding=precision, strict=strict, **limits):
            return Verdict.EQUAL
        for parsed, verdict in ((answers, Verdict.NO_ANSWER), (golds, Verdict.NO_GOLD)):
            if all(isinstance(item, str) for item in parsed):
                return verdict
        return Verdict.DIFFERENT

    return compare


class _Worker:
    """The work of a worker: requests in, replies out."""

    def __init__(self, compare: Compare, requests: int, replies: int, cell: mmap.mmap) -> None:
        self._compare, self._requests, self._replies, self._cell = compare, requests, replies, cell
        self._pairs = 0
        self._leaves = False

    def run(self) -> None:
        """Reply to requests until the pipe is closed."""
        self._limit()
        read = bytearray()
        while data := os.read(self._requests, _PIECE):
            read += data
            for _, number, message in frames(read):
                started = time.monotonic()
                pairs = json.loads(message[HEAD.size :])
                results = [self._result(at, *pair) for at, pair in enumerate(pairs)]
                self._pairs += len(pairs)
                leaves = self._leaves or self._pairs >= _MOST
                kind = Kind.LEAVES if leaves else Kind.DONE
                _write(self._replies, frame(kind, number, [time.monotonic() - started, results]))
                if leaves:
                    return

    def _limit(self) -> None:
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        allowed = MEMORY if hard == resource.RLIM_INFINITY else min(MEMORY, hard)
        resource.setrlimit(resource.RLIMIT_AS, (allowed, allowed))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGPROF})
        # if memory is short, the system shall end this process first
        with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:  # noqa: PTH123  (one import less)
            file.write("1000")

    def _result(
        self, at: int, gold: str, answer: str, strict: bool, precision: int, seconds: float, how: str, relations: bool
    ) -> tuple[Verdict, str]:
        _CELL.pack_into(self._cell, 0, at, time.monotonic() + 10 * seconds + _GRACE)
        # the system ends this process when the time is up, whatever it does
        signal.setitimer(signal.ITIMER_PROF, seconds)
        try:
            return self._compare(gold, answer, strict, precision, how, relations), ""
        except BaseException as error:  # noqa: BLE001  (what a library raises is the result)
            self._leaves = self._leaves or isinstance(error, MemoryError)
            return Verdict.RAISED, f"{type(error).__name__}: {error}"[:_LONGEST_MESSAGE]
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0.0)


# ── in the program ──────────────────────────────────────────────────────────────────────────────────────────────────────


class _Fork:
    """A worker as the program sees it.

    Attributes:
        pid: Its process.
        request: The message that it works on; ``b""`` if it is idle.
    """

    def __init__(self, compare: Compare, others: list["_Fork"]) -> None:
        self.cell = mmap.mmap(-1, _CELL.size)
        theirs, self.requests = os.pipe()
        self.replies, their_replies = os.pipe()
        ours = [self.requests, self.replies]
        try:
            self.pid = os.fork()
        except OSError:
            for descriptor in (*ours, theirs, their_replies):
                os.close(descriptor)
            raise
        if not self.pid:
            try:
                for descriptor in [0, 1, *ours, *(end for other in others for end in (other.requests, other.replies))]:
                    os.close(descriptor)
                _Worker(compare, theirs, their_replies, self.cell).run()
            finally:
                os._exit(0)
        os.close(theirs)
        os.close(their_replies)
        self.request = b""
        self.read = bytearray()
        self.is_late = False

    @property
    def state(self) -> tuple[int, float]:
        """The pair that it compares, and until when it may."""
        at, until = _CELL.unpack_from(self.cell)
        return at, until

    def send(self, request: bytes) -> None:
        _CELL.pack_into(self.cell, 0, -1, time.monotonic() + _GRACE)
        self.request = request
        with contextlib.suppress(BrokenPipeError):  # it has died, which the end of its replies tells
            _write(self.requests, request)

    def close(self) -> int:
        """Wait for its end.

        Returns:
            The signal that ended it.
        """
        os.close(self.requests)
        os.close(self.replies)
        status = os.waitpid(self.pid, 0)[1]
        return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0


class _Server:
    """Passes requests to workers and their replies back.

    Args:
        compare: The comparison.
        most: Maximum number of workers.
    """

    def __init__(self, compare: Compare, most: int) -> None:
        self._compare, self._most = compare, most
        self._waiting: deque[bytes] = deque()
        self._workers: dict[int, _Fork] = {}
        self._poller = select.poll()
        self._poller.register(0, select.POLLIN)

    def run(self) -> None:
        """Serve until the standard input ends."""
        read = bytearray()
        while True:
            busy = any(worker.request for worker in self._workers.values())
            for descriptor, _ in self._poller.poll(1000 if busy else None):
                if descriptor:
                    self._receive(self._workers[descriptor])
                elif data := os.read(0, _PIECE):
                    read += data
                    self._waiting.extend(message for *_, message in frames(read))
                else:
                    return
            self._end_late()
            self._share_out()

    def _share_out(self) -> None:
        while self._waiting:
            worker = next((worker for worker in self._workers.values() if not worker.request), None)
            if worker is None and (worker := self._another()) is None:
                return
            worker.send(self._waiting.popleft())

    def _another(self) -> _Fork | None:
        if len(self._workers) >= self._most:
            return None
        try:
            worker = _Fork(self._compare, [*self._workers.values()])
        except OSError as error:  # out of processes, descriptors or memory
            if not self._workers:
                _write(1, frame(Kind.FAILED, 0, f"the process that mathematics needs could not be started: {error}"))
                raise SystemExit from None
            return None
        self._workers[worker.replies] = worker
        self._poller.register(worker.replies, select.POLLIN)
        return worker

    def _receive(self, worker: _Fork) -> None:
        data = os.read(worker.replies, _PIECE)
        worker.read += data
        leaves = not data
        for kind, _, message in frames(worker.read):
            worker.request = b""
            leaves = leaves or kind is Kind.LEAVES
            _write(1, message)
        if leaves:
            self._dismiss(worker)

    def _dismiss(self, worker: _Fork) -> None:
        self._poller.unregister(worker.replies)
        del self._workers[worker.replies]
        at, _ = worker.state
        ended_by = worker.close()
        if worker.request:
            number = HEAD.unpack_from(worker.request)[1]
            _write(1, frame(Kind.DIED, number, [at, signal.SIGPROF if worker.is_late else ended_by]))

    def _end_late(self) -> None:
        now = time.monotonic()
        for worker in self._workers.values():
            if worker.request and now > worker.state[1]:
                worker.is_late = True
                os.kill(worker.pid, signal.SIGKILL)


def _main(paths: str, most: str) -> None:
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):  # who started this process ends it
        signal.signal(number, signal.SIG_IGN)
    sys.path[:] = json.loads(paths)
    try:
        versions = _versions()
        compare = _comparison()
        for gold, answer in _WARM_UP:
            compare(gold, answer, True, 6, "whole", False)
    except BaseException as error:  # noqa: BLE001  (a library that is not whole may raise anything)
        _write(1, frame(Kind.BROKEN, 0, f"math-verify cannot be used: {type(error).__name__}: {error}; try {INSTALL}"))
        return
    gc.freeze()
    _write(1, frame(Kind.READY, 0, versions))
    with contextlib.suppress(BrokenPipeError):  # nobody reads any more
        _Server(compare, int(most)).run()
    os.killpg(0, signal.SIGKILL)  # it leads its session


if __name__ == "__main__":
    _main(*sys.argv[1:])
