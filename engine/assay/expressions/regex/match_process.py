"""A process that runs Python's ``re`` with limits on time and memory.

A match of ``re`` cannot be interrupted from another thread, and may take years; a pattern may take minutes to compile. In the main
thread of a process, ``re`` looks for signals now and then, so a timer can end a match and the process continues with the next one.
The few loops of ``re`` that do not look end with the process, soon after the limit. The processes import only ``re``, start in some
15 ms and end with the process that started them.
"""

import select
import struct
from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum

from assay.calls.piped_process import PipedProcess

__all__ = ["COMPILE_SECONDS", "MEMORY", "Kind", "MatchProcess", "Reply", "Task"]

MEMORY = 1 << 30
"""Memory limit in bytes for a match and for compiling a pattern."""
COMPILE_SECONDS = 5.0
"""Limit on the processor time for compiling a pattern, in seconds."""

_PIECE = 1 << 16
"""Approximate number of bytes per write."""
_HEAD = struct.Struct(
    "!ddIIIQ"
)  # time limits for a match and for compiling, flags, task, number of texts, bytes of the pattern
_SIZE = struct.Struct("!Q")
_REPLY = struct.Struct("!BI")  # kind of reply, and bytes of the message that follows
_LONGEST_MESSAGE = 300
_LONGEST_TIME = 1e9
"""Seconds: longer than any run, and within the range of the system's timer."""

_PROGRAM = r"""
import os, re, resource, signal, struct, sys, warnings
from collections import deque
memory, head, size, answer, longest = int(sys.argv[1]), *map(struct.Struct, sys.argv[2:5]), int(sys.argv[5])
hard = resource.getrlimit(resource.RLIMIT_AS)[1]
allowed = memory if hard == resource.RLIM_INFINITY else min(memory, hard)
resource.setrlimit(resource.RLIMIT_AS, (allowed, allowed))
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.signal(signal.SIGVTALRM, signal.SIG_DFL)
signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGPROF, signal.SIGVTALRM})
warnings.simplefilter("ignore")
source, sink = sys.stdin.buffer, sys.stdout.buffer
parent = os.getppid()
limited = False

class Late(BaseException):
    pass

def on_timer(*_):
    # with a limit, the signal ends the match; without one, the process checks now and then that its parent is alive
    if limited:
        raise Late
    if os.getppid() != parent:
        os._exit(1)

signal.signal(signal.SIGPROF, on_timer)

def within(seconds, function, *arguments):
    global limited
    limited = bool(seconds)
    try:
        if seconds:  # a loop of re that looks for no signal ends with the process
            signal.setitimer(signal.ITIMER_VIRTUAL, seconds + 0.05)
        signal.setitimer(signal.ITIMER_PROF, seconds or 5.0, 0.0 if seconds else 5.0)
        return function(*arguments)
    finally:
        limited = False
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        signal.setitimer(signal.ITIMER_PROF, 0.0)

def attempt(seconds, function, *arguments):
    try:
        result = within(seconds, function, *arguments)
        return (1, result) if isinstance(result, bytes) else ((1 if result else 0), b"")
    except Late:
        return 3, b""
    except Exception as error:
        message = str(error) or (f"it needs more than {memory >> 30} GiB" if isinstance(error, MemoryError) else "")
        return 2, f"{type(error).__name__}:{message}".encode("utf-8", "backslashreplace")[:longest]

def reply(kind, message):
    sink.write(answer.pack(kind, len(message)) + message)
    sink.flush()

def compile(pattern, flags):
    global compiled
    compiled = re.compile(pattern, flags)
    return True

def found(text):
    return compiled.search(text) is not None

def spans(matches):
    match = next(matches, None)
    return match and b" ".join(b"%d %d" % match.span(group) for group in range(compiled.groups + 1))

def first(text):
    return spans(compiled.finditer(text))

def last(text):
    return spans(iter(deque(compiled.finditer(text), maxlen=1)))

def removed(text):
    return compiled.sub("", text).encode("utf-8", "surrogatepass")

def counted(text):
    return b"%d" % len(compiled.findall(text))

tasks = found, first, last, removed, counted
latest, compiled, outcome = None, None, (0, b"")
while start := source.read(head.size):
    seconds, to_compile, flags, task, count, length = head.unpack(start)
    request = source.read(length).decode("utf-8", "surrogatepass"), flags
    if request != latest:
        re.purge()
        latest = request
        outcome = attempt(to_compile, compile, *request)
    reply(*outcome)
    for _ in range(count):
        text = source.read(size.unpack(source.read(size.size))[0])
        if outcome[0] == 1:
            reply(*attempt(seconds, lambda: tasks[task](text.decode("utf-8", "surrogatepass"))))
        del text  # free the memory for the next one
"""


class Kind(IntEnum):
    """What a process replies about a pattern (``YES`` if it compiles) or a text."""

    NO = 0
    YES = 1
    RAISED = 2
    LATE = 3


class Task(IntEnum):
    """What a process does with a text."""

    FOUND = 0
    """Whether the pattern is found."""
    FIRST = 1
    """The spans of the first match: of the whole match and of each group, as numbers; -1 for a group without part."""
    LAST = 2
    """The spans of the last match."""
    REMOVED = 3
    """The text without the matches."""
    COUNTED = 4
    """The number of matches."""


Reply = tuple[Kind, str]
"""A kind; for ``RAISED`` the exception's name and message, separated by a colon, and for ``YES`` the result of a task."""


class MatchProcess(PipedProcess):
    """A process that handles one request at a time: a pattern and texts."""

    def __init__(self) -> None:
        layout = [header.format for header in (_HEAD, _SIZE, _REPLY)]
        super().__init__(["-I", "-S", "-c", _PROGRAM, str(MEMORY), *layout, str(_LONGEST_MESSAGE)])

    def ask(
        self, pattern: str, texts: Sequence[str], flags: int, seconds: float | None, task: Task = Task.FOUND
    ) -> None:
        """Begin a request; ``exchange`` sends it.

        Args:
            pattern: A regular expression, valid or not.
            texts: The texts; if the pattern is invalid, there is no reply about them.
            flags: The pattern's flags.
            seconds: Limit on the processor time of a match; None for no limit.
            task: What to do with the texts.
        """
        encoded = _encoded(pattern)
        head = _HEAD.pack(min(seconds or 0.0, _LONGEST_TIME), COMPILE_SECONDS, flags, task, len(texts), len(encoded))
        self.send(_pieces(head + encoded, map(_encoded, texts)))

    def exchange(self, poller: select.poll) -> list[Reply]:
        """Send what fits into the pipe, and return the replies that have arrived.

        Raises:
            GoneError: The process has ended, and there are no more replies.
        """
        read = self.transfer(poller)
        replies: list[Reply] = []
        while len(read) >= _REPLY.size:
            kind, size = _REPLY.unpack_from(read)
            end = _REPLY.size + size
            if len(read) < end:
                break
            errors = "surrogatepass" if kind == Kind.YES else "replace"
            replies.append((Kind(kind), read[_REPLY.size : end].decode("utf-8", errors)))
            del read[:end]
        return replies


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


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
