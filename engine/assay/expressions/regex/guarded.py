"""Python's ``re`` in a process of its own, where it can take no more time and memory than it is given.

A match of ``re`` cannot be interrupted from another thread, and may take years; a pattern may take minutes to compile. In a
process with a limit it is the system that ends it. The processes hold nothing but ``re``, start in some 15 ms and are kept for
the next match. They end with this one.
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
"""Bytes of memory that a match, or a pattern while it is compiled, may take."""
COMPILE_SECONDS = 5.0
"""Seconds of processor time that a pattern may take to compile."""

_BATCH = 128
"""Texts that a process is asked about together: after one that ends it, the others are sent again."""
_PIECE = 1 << 16
"""Bytes that are sent together, about."""
_HEAD = struct.Struct("!ddIIQ")  # limits of the match and of compiling, flags, how many texts, bytes of the pattern
_SIZE = struct.Struct("!Q")
_ANSWER = struct.Struct("!BI")  # what came of it, and the bytes of the words that follow
_NO, _YES, _RAISED = range(3)
_LONGEST_WORDS = 300
_LONGEST_TIME = 1e9
"""Seconds, more than any run takes and as many as a timer of the system has room for."""
_LOOK_MILLISECONDS = 100
"""How often a run that waits for an answer looks whether it is to stop."""

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

def within(seconds, function, *given):
    # the system ends the process; without a limit it looks now and then whether anybody still waits
    signal.signal(signal.SIGPROF, signal.SIG_DFL if seconds else orphaned)
    signal.setitimer(signal.ITIMER_PROF, seconds or 5.0, 0.0 if seconds else 5.0)
    try:
        return function(*given)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)

def attempt(seconds, function, *given):
    try:
        return within(seconds, function, *given), b""
    except Exception as error:
        words = str(error) or (f"it needs more than {memory >> 30} GiB" if isinstance(error, MemoryError) else "")
        return None, f"{type(error).__name__}:{words}".encode("utf-8", "backslashreplace")[:longest]

def reply(found, words):
    sink.write(answer.pack(2 if words else bool(found), len(words)) + words)
    sink.flush()

last, compiled, refused = None, None, b""
while start := source.read(head.size):
    seconds, to_compile, flags, count, length = head.unpack(start)
    asked = source.read(length).decode("utf-8", "surrogatepass"), flags
    if asked != last:
        re.purge()
        last = asked
        compiled, refused = attempt(to_compile, re.compile, *asked)
    reply(compiled is not None, refused)
    for _ in range(count):
        text = source.read(size.unpack(source.read(size.size))[0])
        if not refused:
            reply(*attempt(seconds, lambda: compiled.search(text.decode("utf-8", "surrogatepass")) is not None))
        del text  # the next one has all the memory
"""


Answer = bool | Exception
"""Whether a pattern is found in a text, or why that is not known."""


class _GoneError(Exception):
    """The process has ended instead of answering."""


class _Server:
    """A process that answers for one batch at a time."""

    def __init__(self) -> None:
        layout = [each.format for each in (_HEAD, _SIZE, _ANSWER)]
        self.process = subprocess.Popen(  # noqa: S603  (this Python, with a program of ours)
            [sys.executable, "-I", "-S", "-c", _SERVER, str(MEMORY), *layout, str(_LONGEST_WORDS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
        )
        assert self.process.stdin is not None  # noqa: S101  (both are pipes)
        assert self.process.stdout is not None  # noqa: S101
        self._stdin, self._answers = self.process.stdin, self.process.stdout.fileno()
        self._questions = self._stdin.fileno()
        os.set_blocking(self._questions, False)  # it reads no more while it searches, and the run may have to stop
        self._unsent: Iterator[bytes] = iter(())
        self._piece = memoryview(b"")
        self.sent = True
        self._waiting = select.poll()
        self._waiting.register(self._answers, select.POLLIN)
        self._read = bytearray()
        self._owner = os.getpid()

    @property
    def usable(self) -> bool:
        """Whether it runs, and is this process's: a fork has its parent's."""
        return self._owner == os.getpid() and self.process.poll() is None

    def ask(self, pattern: str, texts: Sequence[str], flags: int, seconds: float | None) -> None:
        """Ask for a pattern in texts, which are sent while answers are waited for."""
        written = _encoded(pattern)
        head = _HEAD.pack(min(seconds or 0.0, _LONGEST_TIME), COMPILE_SECONDS, flags, len(texts), len(written))
        self._unsent = _pieces(head + written, map(_encoded, texts))
        self.sent = False
        self._waiting.register(self._questions, select.POLLOUT)

    def answer(self, stop: threading.Event | None) -> Answer:
        """The next answer.

        Raises:
            _GoneError: There is none.
            KeyboardInterrupt: The run is to stop.
        """
        kind, size = _ANSWER.unpack(self._take(_ANSWER.size, stop))
        words = self._take(size, stop).decode("utf-8", "replace")
        return _raised(*words.split(":", 1)) if kind == _RAISED else kind == _YES

    def _take(self, size: int, stop: threading.Event | None) -> bytes:
        while len(self._read) < size:
            ready = dict(self._waiting.poll(_LOOK_MILLISECONDS))
            if stop is not None and stop.is_set():
                raise KeyboardInterrupt
            if self._questions in ready:
                self._send()
            if self._answers in ready:
                more = os.read(self._answers, _PIECE)
                if not more:
                    raise _GoneError
                self._read += more
        taken = bytes(self._read[:size])
        del self._read[:size]
        return taken

    def _send(self) -> None:
        """Send what fits into the pipe."""
        try:
            self._piece = self._piece or memoryview(next(self._unsent))
            self._piece = self._piece[os.write(self._questions, self._piece) :]
        except BlockingIOError:
            return
        except (StopIteration, BrokenPipeError):  # that it has ended shows where its answers do
            self._waiting.unregister(self._questions)
            self.sent = True

    def close(self) -> int:
        """End the process, which may be in the middle of a match; a fork only lets go of what is its parent's.

        Returns:
            The signal that ended it.
        """
        _ALIVE.discard(self)
        signal_ = self.end()
        with contextlib.suppress(OSError):  # what it was never sent
            self._stdin.close()
        if self.process.stdout is not None:
            self.process.stdout.close()
        return signal_

    def end(self) -> int:
        """End the process, and leave its pipes to whoever waits at them.

        Returns:
            The signal that ended it.
        """
        if self._owner != os.getpid():
            return 0
        self.process.kill()
        return -self.process.wait()


def _pieces(head: bytes, texts: Iterable[bytes]) -> Iterator[bytes]:
    """What is sent, texts with their sizes, small ones together."""
    piece = bytearray(head)
    for text in texts:
        piece += _SIZE.pack(len(text))
        piece += text
        if len(piece) >= _PIECE:
            yield bytes(piece)
            piece.clear()
    yield bytes(piece)


def _raised(name: str, words: str) -> Exception:
    """What ``re`` raised in the other process."""
    kinds = {re.error.__name__: re.error} | {kind.__name__: kind for kind in _KINDS}
    return kinds.get(name, RuntimeError)(words)


_KINDS = (MemoryError, OverflowError, RecursionError, SystemError, ValueError)


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


_ALIVE: set[_Server] = set()
_ENDED: list[_Server] = []
_IDLE: list[_Server] = []
_TOO_DEAR: dict[bytes, Exception] = {}
"""Patterns that took too long to compile, by their hash: they come back with every row."""
_MOST_TOO_DEAR = 10_000
_LOCK = threading.Lock()


def _idle() -> _Server:
    """A process for this thread alone, a new one where none is idle."""
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
        for server in [*_ALIVE]:  # a thread of the engine may be in the middle of a match, after an interrupt
            server.end()


def guarded_search(
    pattern: str, texts: Sequence[str], *, flags: int = 0, seconds: float | None, stop: threading.Event | None = None
) -> list[Answer]:
    """``re.search`` of one pattern in each text.

    Args:
        pattern: A regular expression, valid or not.
        texts: The texts.
        flags: Its flags.
        seconds: Processor time for one match; None for as long as it takes.
        stop: Set when the run is to stop.

    Returns:
        For each text whether it is found, or why that is not known: the pattern is invalid, or it takes more time or memory
        than it may.

    Raises:
        KeyboardInterrupt: The run is to stop.
    """
    key = _key(pattern, flags) if _TOO_DEAR else b""
    answers: list[Answer] = [_TOO_DEAR[key]] * len(texts) if key in _TOO_DEAR else []
    while len(answers) < len(texts):
        if stop is not None and stop.is_set():
            raise KeyboardInterrupt
        batch = texts[len(answers) : len(answers) + _BATCH]
        refused = _answer(pattern, batch, flags, seconds, stop, answers)
        if refused is not None:
            answers += [refused] * (len(texts) - len(answers))
    return answers


def _answer(
    pattern: str,
    texts: Sequence[str],
    flags: int,
    seconds: float | None,
    stop: threading.Event | None,
    answers: list[Answer],
) -> Exception | None:
    """Add answers for texts, as many as there are until one ends the process.

    Returns:
        Why the pattern cannot be used for any text; None when it can.
    """
    try:
        server, compiled = _idle(), False
    except (
        OSError,
        TypeError,
        ValueError,
        subprocess.SubprocessError,
    ) as error:  # no descriptor, no process, no sys.executable
        return RuntimeError(f"the process that the regular expression needs could not be started: {error}")
    try:
        server.ask(pattern, texts, flags, seconds)
        refused = server.answer(stop)
        if not isinstance(refused, Exception):
            compiled = True
            for _ in texts:
                answers.append(server.answer(stop))  # noqa: PERF401  (those before one that ends the process count)
    except _GoneError:
        signal_ = server.close()
        if not compiled:
            return _too_dear(pattern, flags, signal_)
        answers.append(_why_gone(signal_, f"no answer within {seconds:g} s"))
    except BaseException:
        server.end()
        _ENDED.append(
            server
        )  # put away later: an interrupt that comes while an object is destroyed is lost, with a traceback
        raise
    else:
        if server.sent:
            with _LOCK:
                _IDLE.append(server)
        else:  # it still waits for texts that no pattern is there for
            server.close()
        return refused if isinstance(refused, Exception) else None
    return None


def _too_dear(pattern: str, flags: int, signal_: int) -> Exception:
    """What to say of a pattern that is not even compiled; where that takes too long it is not tried again."""
    why = _why_gone(signal_, f"the pattern takes more than {COMPILE_SECONDS:g} s to compile")
    if signal_ != signal.SIGPROF:  # somebody else has ended it
        return why
    if len(_TOO_DEAR) >= _MOST_TOO_DEAR:
        _TOO_DEAR.clear()
    _TOO_DEAR[_key(pattern, flags)] = why
    return why


def _why_gone(signal_: int, too_late: str) -> Exception:
    """What to say of a process that was ended: by the limit of time, or by something else."""
    if signal_ != signal.SIGPROF:
        return RuntimeError(f"the regular expression ended the process that it ran in (signal {signal_})")
    return TimeoutError(f"{too_late}; as that is a limit of time, another run may end otherwise")


def _key(pattern: str, flags: int) -> bytes:
    return hashlib.sha256(_encoded(f"{flags} {pattern}")).digest()
