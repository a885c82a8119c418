"""Run Python's ``re`` in a separate process with limits on time and memory.

A match of ``re`` cannot be interrupted from another thread, and may take years; a pattern may take minutes to compile. In a
separate process, the system enforces the limits. The processes import only ``re``, start in some 15 ms and are reused for the next
match. They end with this process.
"""

import atexit
import contextlib
import hashlib
import os
import re
import select
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence

__all__ = ["COMPILE_SECONDS", "MEMORY", "Answer", "guarded_search"]

MEMORY = 1 << 30
"""Memory limit in bytes for a match and for compiling a pattern."""
COMPILE_SECONDS = 5.0
"""Limit on the processor time for compiling a pattern, in seconds."""

_BATCH = 128
"""Texts per request; after a text that ends the process, the rest is sent again."""
_PIECE = 1 << 16
"""Approximate number of bytes per write."""
_HEAD = struct.Struct(
    "!ddIIQ"
)  # time limits for a match and for compiling, flags, number of texts, bytes of the pattern
_SIZE = struct.Struct("!Q")
_ANSWER = struct.Struct("!BI")  # kind of answer, and bytes of the message that follows
_NO, _YES, _RAISED = range(3)
_LONGEST_MESSAGE = 300
_LONGEST_TIME = 1e9
"""Seconds: longer than any run, and within the range of the system's timer."""
_POLL_MILLISECONDS = 100
"""Interval at which a waiting run checks whether it has to stop."""

_SERVER = r"""
import os, re, resource, signal, struct, sys, warnings
memory, head, size, answer, longest = int(sys.argv[1]), *map(struct.Struct, sys.argv[2:5]), int(sys.argv[5])
hard = resource.getrlimit(resource.RLIMIT_AS)[1]
allowed = memory if hard == resource.RLIM_INFINITY else min(memory, hard)
resource.setrlimit(resource.RLIMIT_AS, (allowed, allowed))
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGPROF})
warnings.simplefilter("ignore")
source, sink = sys.stdin.buffer, sys.stdout.buffer
parent = os.getppid()

def orphaned(*_):
    if os.getppid() != parent:
        os._exit(1)

def within(seconds, function, *arguments):
    # with a limit, the signal ends the process; without one, the process checks now and then that its parent is alive
    signal.signal(signal.SIGPROF, signal.SIG_DFL if seconds else orphaned)
    signal.setitimer(signal.ITIMER_PROF, seconds or 5.0, 0.0 if seconds else 5.0)
    try:
        return function(*arguments)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)

def attempt(seconds, function, *arguments):
    try:
        return within(seconds, function, *arguments), b""
    except Exception as error:
        message = str(error) or (f"it needs more than {memory >> 30} GiB" if isinstance(error, MemoryError) else "")
        return None, f"{type(error).__name__}:{message}".encode("utf-8", "backslashreplace")[:longest]

def reply(found, error):
    sink.write(answer.pack(2 if error else bool(found), len(error)) + error)
    sink.flush()

last, compiled, problem = None, None, b""
while start := source.read(head.size):
    seconds, to_compile, flags, count, length = head.unpack(start)
    request = source.read(length).decode("utf-8", "surrogatepass"), flags
    if request != last:
        re.purge()
        last = request
        compiled, problem = attempt(to_compile, re.compile, *request)
    reply(compiled is not None, problem)
    for _ in range(count):
        text = source.read(size.unpack(source.read(size.size))[0])
        if not problem:
            reply(*attempt(seconds, lambda: compiled.search(text.decode("utf-8", "surrogatepass")) is not None))
        del text  # free the memory for the next one
"""


Answer = bool | Exception
"""Whether a text contains the pattern, or the error."""


class _GoneError(Exception):
    """The process has ended without an answer."""


class _Server:
    """A process that handles one batch at a time."""

    def __init__(self) -> None:
        layout = [header.format for header in (_HEAD, _SIZE, _ANSWER)]
        self.process = subprocess.Popen(  # noqa: S603  (this interpreter, with the program above)
            [sys.executable, "-I", "-S", "-c", _SERVER, str(MEMORY), *layout, str(_LONGEST_MESSAGE)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
        )
        assert self.process.stdin is not None  # noqa: S101  (both are pipes)
        assert self.process.stdout is not None  # noqa: S101
        self._stdin, self._answers = self.process.stdin, self.process.stdout.fileno()
        self._questions = self._stdin.fileno()
        # the server does not read while it searches, and the run may have to stop
        os.set_blocking(self._questions, False)
        self._unsent: Iterator[bytes] = iter(())
        self._piece = memoryview(b"")
        self.sent = True
        self._waiting = select.poll()
        self._waiting.register(self._answers, select.POLLIN)
        self._read = bytearray()
        self._owner = os.getpid()

    @property
    def usable(self) -> bool:
        """Whether the server runs and belongs to this process; a fork inherits its parent's."""
        return self._owner == os.getpid() and self.process.poll() is None

    def ask(self, pattern: str, texts: Sequence[str], flags: int, seconds: float | None) -> None:
        """Start to send a pattern and texts; the rest is sent while waiting for answers."""
        encoded = _encoded(pattern)
        head = _HEAD.pack(min(seconds or 0.0, _LONGEST_TIME), COMPILE_SECONDS, flags, len(texts), len(encoded))
        self._unsent = _pieces(head + encoded, map(_encoded, texts))
        self.sent = False
        self._waiting.register(self._questions, select.POLLOUT)

    def answer(self, stop: threading.Event | None) -> Answer:
        """Return the next answer.

        Raises:
            _GoneError: The process has ended.
            KeyboardInterrupt: The run has to stop.
        """
        kind, size = _ANSWER.unpack(self._take(_ANSWER.size, stop))
        message = self._take(size, stop).decode("utf-8", "replace")
        return _raised(*message.split(":", 1)) if kind == _RAISED else kind == _YES

    def _take(self, size: int, stop: threading.Event | None) -> bytes:
        while len(self._read) < size:
            ready = dict(self._waiting.poll(_POLL_MILLISECONDS))
            if stop is not None and stop.is_set():
                raise KeyboardInterrupt
            if self._questions in ready:
                self._send()
            if self._answers in ready:
                data = os.read(self._answers, _PIECE)
                if not data:
                    raise _GoneError
                self._read += data
        message = bytes(self._read[:size])
        del self._read[:size]
        return message

    def _send(self) -> None:
        """Send as much as fits into the pipe."""
        try:
            self._piece = self._piece or memoryview(next(self._unsent))
            self._piece = self._piece[os.write(self._questions, self._piece) :]
        except BlockingIOError:
            return
        except (StopIteration, BrokenPipeError):  # the end of the process is noticed when reading answers
            self._waiting.unregister(self._questions)
            self.sent = True

    def close(self) -> int:
        """End the process, even during a match, and close the pipes; a fork only closes its copies of the pipes.

        Returns:
            The signal that ended it.
        """
        _ALIVE.discard(self)
        signal_ = self.end()
        with contextlib.suppress(OSError):  # unsent data
            self._stdin.close()
        if self.process.stdout is not None:
            self.process.stdout.close()
        return signal_

    def end(self) -> int:
        """End the process, but leave its pipes open for a thread that reads them.

        Returns:
            The signal that ended it.
        """
        if self._owner != os.getpid():
            return 0
        self.process.kill()
        return -self.process.wait()


def _pieces(head: bytes, texts: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the bytes to send: texts with their sizes, small ones together."""
    piece = bytearray(head)
    for text in texts:
        piece += _SIZE.pack(len(text))
        piece += text
        if len(piece) >= _PIECE:
            yield bytes(piece)
            piece.clear()
    yield bytes(piece)


def _raised(name: str, message: str) -> Exception:
    """Return the exception that ``re`` raised in the other process."""
    kinds = {re.error.__name__: re.error} | {kind.__name__: kind for kind in _KINDS}
    return kinds.get(name, RuntimeError)(message)


_KINDS = (MemoryError, OverflowError, RecursionError, SystemError, ValueError)


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


_ALIVE: set[_Server] = set()
_ENDED: list[_Server] = []
_IDLE: list[_Server] = []
_TOO_EXPENSIVE: dict[bytes, Exception] = {}
"""Errors of patterns that took too long to compile, by hash; such a pattern may come with every row."""
_MAX_TOO_EXPENSIVE = 10_000
_LOCK = threading.Lock()


def _idle() -> _Server:
    """Return an idle process, or a new one, for this thread alone."""
    with _LOCK:
        while _IDLE:
            if (server := _IDLE.pop()).usable:
                return server
            server.close()
        while _ENDED:
            _ENDED.pop().close()
    server = _Server()
    _ALIVE.add(server)
    return server


@atexit.register
def _close_all() -> None:
    with _LOCK:
        while _IDLE:
            _IDLE.pop().close()
        for server in [*_ALIVE]:  # after an interrupt, a thread of Polars may still wait for a match
            server.end()


def guarded_search(
    pattern: str, texts: Sequence[str], *, flags: int = 0, seconds: float | None, stop: threading.Event | None = None
) -> list[Answer]:
    """Run ``re.search`` with one pattern in each text.

    Args:
        pattern: A regular expression, valid or not.
        texts: The texts.
        flags: The pattern's flags.
        seconds: Limit on the processor time of a match; None for no limit.
        stop: Set when the run has to stop.

    Returns:
        For each text whether it contains the pattern, or the error: the pattern is invalid, or a limit was exceeded.

    Raises:
        KeyboardInterrupt: The run has to stop.
    """
    key = _key(pattern, flags) if _TOO_EXPENSIVE else b""
    answers: list[Answer] = [_TOO_EXPENSIVE[key]] * len(texts) if key in _TOO_EXPENSIVE else []
    while len(answers) < len(texts):
        if stop is not None and stop.is_set():
            raise KeyboardInterrupt
        batch = texts[len(answers) : len(answers) + _BATCH]
        problem = _answer(pattern, batch, flags, seconds, stop, answers)
        if problem is not None:
            answers += [problem] * (len(texts) - len(answers))
    return answers


def _answer(
    pattern: str,
    texts: Sequence[str],
    flags: int,
    seconds: float | None,
    stop: threading.Event | None,
    answers: list[Answer],
) -> Exception | None:
    """Add answers for texts, up to one that ends the process.

    Returns:
        The error if the pattern cannot be used for any text, else None.
    """
    try:
        server, compiled = _idle(), False
    # out of descriptors or processes, or no sys.executable
    except (OSError, TypeError, ValueError, subprocess.SubprocessError) as error:
        return RuntimeError(f"the process that the regular expression needs could not be started: {error}")
    try:
        server.ask(pattern, texts, flags, seconds)
        problem = server.answer(stop)
        if not isinstance(problem, Exception):
            compiled = True
            for _ in texts:
                answers.append(server.answer(stop))  # noqa: PERF401  (answers before one that ends the process count)
    except _GoneError:
        signal_ = server.close()
        if not compiled:
            return _too_expensive(pattern, flags, signal_)
        answers.append(_why_gone(signal_, f"no answer within {seconds:g} s"))
    except BaseException:
        server.end()
        # closed later: an interrupt during the destruction of an object would be lost, with a traceback
        _ENDED.append(server)
        raise
    else:
        if server.sent:
            with _LOCK:
                _IDLE.append(server)
        else:  # the server still expects texts for the invalid pattern
            server.close()
        return problem if isinstance(problem, Exception) else None
    return None


def _too_expensive(pattern: str, flags: int, signal_: int) -> Exception:
    """Return the error of a pattern that ended the process while it was compiled; remember one that took too long."""
    why = _why_gone(signal_, f"the pattern takes more than {COMPILE_SECONDS:g} s to compile")
    if signal_ != signal.SIGPROF:  # not the time limit
        return why
    if len(_TOO_EXPENSIVE) >= _MAX_TOO_EXPENSIVE:
        _TOO_EXPENSIVE.clear()
    _TOO_EXPENSIVE[_key(pattern, flags)] = why
    return why


def _why_gone(signal_: int, too_late: str) -> Exception:
    """Return the error for a process that was ended by the time limit, or by another signal."""
    if signal_ != signal.SIGPROF:
        return RuntimeError(f"the regular expression ended the process that it ran in (signal {signal_})")
    return TimeoutError(f"{too_late}; as that is a limit of time, another run may end otherwise")


def _key(pattern: str, flags: int) -> bytes:
    return hashlib.sha256(_encoded(f"{flags} {pattern}")).digest()
