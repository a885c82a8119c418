"""A process that runs Python's ``re``, or the package ``regex``, with limits on time and memory.

A match of ``re`` cannot be interrupted from another thread, and may take years; a pattern may take minutes to compile. In the main
thread of a process, ``re`` looks for signals now and then, so a timer can end a match and the process continues with the next one.
The few loops of ``re`` that do not look end with the process, soon after the limit. The processes import only ``re``, start in some
15 ms and end with the process that started them. The package is imported with its first pattern, and only here.
"""

import json
import select
import struct
from collections.abc import Iterator, Sequence
from enum import IntEnum
from functools import cache

from assay.calls.piped_process import PipedProcess

MEMORY = 1 << 30
"""Memory limit in bytes for a match and for compiling a pattern."""
COMPILE_SECONDS = 5.0
"""Limit on the processor time for compiling a pattern, in seconds."""

_PIECE = 1 << 16
"""Bytes of texts that are sent together with what comes before them."""
_HEAD = struct.Struct("!ddIIIQQQ")
"""Time limits for a match and for compiling, flags, task, number of texts, bytes of the pattern, of what the package
needs and of the texts; the code points of each text follow."""
_REPLY = struct.Struct("!BI")  # kind of reply, and bytes of the message that follows
_LONGEST_MESSAGE = 300
_SPAN = 0.001
"""Seconds in which texts share a timer, whose limit is so much longer, and a write of their replies."""
_PATIENCE = 0.05
"""Seconds after which the rest of a request is given back."""
_LONGEST_TIME = 1e9
"""Seconds: longer than any run, and within the range of the system's timer."""

_PROGRAM = r"""
import os, re, resource, signal, struct, sys, time, warnings
from collections import deque
memory, head, answer, longest = int(sys.argv[1]), *map(struct.Struct, sys.argv[2:4]), int(sys.argv[4])
span, patience = map(float, sys.argv[5:7])
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
armed = limited = False

class Late(BaseException):
    pass

def on_timer(*_):
    # with a limit, the signal ends the match; without one, the process checks now and then that its parent is alive
    global armed
    armed = False
    if limited:
        raise Late
    if os.getppid() != parent:
        os._exit(1)

signal.signal(signal.SIGPROF, on_timer)

def arm(seconds):
    global armed
    if seconds:  # a loop of re that looks for no signal ends with the process
        signal.setitimer(signal.ITIMER_VIRTUAL, seconds + 0.05)
    signal.setitimer(signal.ITIMER_PROF, seconds or 5.0, 0.0 if seconds else 5.0)
    armed = True

def disarm():
    signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
    signal.setitimer(signal.ITIMER_PROF, 0.0)

def described(error):
    message = str(error) or (f"it needs more than {memory >> 30} GiB" if isinstance(error, MemoryError) else "")
    return f"{type(error).__name__}:{message}".encode("utf-8", "backslashreplace")[:longest]

def attempt(seconds, function, *arguments):
    global limited
    try:
        try:
            limited = bool(seconds)
            result = function(*arguments)
        finally:
            limited = False
        return (1, result) if isinstance(result, bytes) else (bool(result), b"")
    except (Late, TimeoutError):  # the package looks at the clock itself
        limited = False
        return 3, b""
    except Exception as error:
        return 2, described(error)

replies, plain = [], [answer.pack(kind, 0) for kind in range(5)]

def flush():
    sink.write(b"".join(replies))
    sink.flush()
    replies.clear()

def reply(kind, message):
    replies.append(answer.pack(kind, len(message)) + message if message else plain[kind])

def compile(pattern, flags, package):
    global compiled
    if not package:
        compiled = re.compile(pattern, flags)
        return True
    import json
    folder, lists = json.loads(package)
    if folder not in sys.path:
        sys.path.append(folder)
    import regex
    regex.purge()
    compiled = regex.compile(pattern, flags | regex.VERSION0, ignore_unused=True, cache_pattern=False, **lists)
    return True

def found(text):
    return compiled.search(text, **within) is not None

def groups(_):
    return " ".join(f"{name}={number}" for name, number in {"": compiled.groups, **compiled.groupindex}.items()).encode()

def spans(matches):
    match = next(matches, None)
    return match and b" ".join(b"%d %d" % match.span(group) for group in range(compiled.groups + 1))

def first(text):
    return spans(compiled.finditer(text, **within))

def last(text):
    return spans(iter(deque(compiled.finditer(text, **within), maxlen=1)))

def removed(text):
    return compiled.sub("", text, **within).encode("utf-8", "surrogatepass")

def counted(text):
    return b"%d" % len(compiled.findall(text, **within))

tasks = found, first, last, removed, counted, groups
latest, compiled, outcome = None, None, (0, b"")
while start := source.read(head.size):
    seconds, to_compile, flags, task, count, length, more, total = head.unpack(start)
    request = source.read(length).decode("utf-8", "surrogatepass"), flags, source.read(more)
    within = {"timeout": seconds or None, "concurrent": True} if more else {}
    if request != latest:
        re.purge()
        latest = request
        arm(to_compile)
        outcome = attempt(to_compile, compile, *request)
        disarm()
    reply(*outcome)
    flush()
    sizes = struct.unpack(f"!{count}Q", source.read(8 * count))
    texts = source.read(total)
    try:
        texts = texts.decode("utf-8", "surrogatepass")
    except MemoryError as error:
        for _ in sizes:
            reply(2, described(error))
        sizes = ()
    armed, function, end, until = False, tasks[task], 0, time.monotonic() + patience
    for length in sizes if outcome[0] == 1 else ():
        text = texts[end : end + length]
        now = time.monotonic()
        if end and now > until:  # another process may be idle
            reply(4, b"")
            continue
        end += length
        if not armed or now > due:  # quick texts share a timer and a write
            flush()
            arm(seconds and seconds + span)
            due = time.monotonic() + span
        reply(*attempt(seconds, function, text))
    text = texts = None  # free the memory for the next ones
    disarm()
    flush()
"""


class Kind(IntEnum):
    """What a process replies about a pattern (``YES`` if it compiles) or a text."""

    NO = 0
    YES = 1
    RAISED = 2
    LATE = 3
    BACK = 4
    """The process has not looked at the text."""


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
    GROUPS = 5
    """The number of groups of the pattern, and the number of each name, whatever the text: ``=2 word=1``."""


Reply = tuple[Kind, str]
"""A kind; for ``RAISED`` the exception's name and message, separated by a colon, and for ``YES`` the result of a task."""


class MatchProcess(PipedProcess):
    """A process that handles one request at a time: a pattern and texts."""

    def __init__(self) -> None:
        layout = [header.format for header in (_HEAD, _REPLY)]
        super().__init__(
            ["-I", "-S", "-c", _PROGRAM, str(MEMORY), *layout, str(_LONGEST_MESSAGE), str(_SPAN), str(_PATIENCE)]
        )

    def ask(
        self,
        pattern: str,
        texts: Sequence[str],
        flags: int,
        seconds: float | None,
        task: Task = Task.FOUND,
        lists: str = "",
    ) -> None:
        """Begin a request; ``exchange`` sends it.

        Args:
            pattern: A regular expression, valid or not.
            texts: The texts; if the pattern is invalid, there is no reply about them.
            flags: The pattern's flags.
            seconds: Limit on the processor time of a match; None for no limit.
            task: What to do with the texts.
            lists: The named lists of a pattern of the package ``regex``, as JSON; ``""`` for a pattern of ``re``.
        """
        encoded, together = _encoded(pattern), _encoded("".join(texts))
        package = f"[{json.dumps(_folder_of_package())}, {lists}]".encode() if lists else b""
        sizes = struct.pack(f"!{len(texts)}Q", *map(len, texts))
        limits = min(seconds or 0.0, _LONGEST_TIME), COMPILE_SECONDS
        head = _HEAD.pack(*limits, flags, task, len(texts), len(encoded), len(package), len(together))
        self.send(_pieces(head + encoded + package + sizes, together))

    def exchange(self, poller: select.poll) -> list[Reply]:
        """Send what fits into the pipe, and return the replies that have arrived.

        Raises:
            GoneError: The process has ended, and there are no more replies.
        """
        read = self.transfer(poller)
        replies: list[Reply] = []
        start = 0
        while len(read) >= start + _REPLY.size:
            kind, size = _REPLY.unpack_from(read, start)
            end = start + _REPLY.size + size
            if len(read) < end:
                break
            errors = "surrogatepass" if kind == Kind.YES else "replace"
            message = read[end - size : end].decode("utf-8", errors) if size else ""
            replies.append((_KINDS[kind], message))
            start = end
        del read[:start]
        return replies


_KINDS = tuple(Kind)


@cache
def _folder_of_package() -> str:
    """Return the folder that has the package ``regex``. NOTE: a file ``regex.py`` beside the user's program is not it."""
    import importlib.metadata  # slow to import

    return str(importlib.metadata.distribution("regex").locate_file(""))


def _pieces(head: bytes, texts: bytes) -> Iterator[bytes]:
    """Yield the bytes to send: a small request as one."""
    if len(texts) < _PIECE:
        yield head + texts
    else:
        yield head
        yield texts


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
