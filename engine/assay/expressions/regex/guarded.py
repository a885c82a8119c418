"""Search texts with Python's ``re``, or the package ``regex``, in processes with limits on time and memory, as many as there are cores.

The first texts go to one process. If they take longer than it takes to start another one, others take part, each with a few texts
at a time, so that all are busy to the end. They are reused for the next texts, and end with this process.
"""

import atexit
import hashlib
import re
import select
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from assay.calls.piped_process import GoneError
from assay.calls.piped_process import cores as _cores
from assay.expressions.regex import match_process
from assay.expressions.regex.match_process import Kind, MatchProcess, Reply, Task
from assay.system.processes import forget_in_children
from assay.system.signals import LEFTOVERS

_BATCH_BYTES = 1 << 17
"""Maximum code points of a request with several texts."""
_GROWTH = 8
"""How many times as many texts as one request the next one has at most."""
_BATCH_SECONDS = 0.01
"""Seconds that a request should take: so little that all processes are busy to the end."""
_PATIENCE = 0.02
"""Seconds after which a search starts another process, which costs about as much …"""
_HASTE = 0.002
"""… or takes one that is idle."""
_POLL_MILLISECONDS = 100
"""Interval at which a waiting run checks whether it has to stop."""

Answer = bool | Exception
"""Whether a text contains the pattern, or the error."""


class Question(NamedTuple):
    """A text to search, and the pattern with its flags.

    Attributes:
        pattern: The pattern.
        text: The text.
        flags: Flags of ``re``.
        lists: The named lists of a pattern of the package ``regex``, as JSON; ``""`` for a pattern of ``re``.
    """

    pattern: str
    text: str
    flags: int = 0
    lists: str = ""

    @property
    def compiled(self) -> tuple[str, int, str]:
        """What a process compiles."""
        return self.pattern, self.flags, self.lists


def guarded_search(
    questions: Sequence[Question],
    *,
    seconds: float | None,
    stop: threading.Event | None = None,
    late: Callable[[Question], None] | None = None,
) -> list[Answer]:
    """Run ``re.search`` for each question.

    Args:
        questions: Texts and patterns, valid or not; those with the same pattern should be neighbours.
        seconds: Limit on the processor time of a match; None for no limit.
        stop: Set when the run has to stop.
        late: Called with a question whose match has timed out.

    Returns:
        For each question whether the text contains the pattern, or the error: the pattern is invalid, or a limit was exceeded.

    Raises:
        KeyboardInterrupt: The run has to stop.
    """
    return guarded_task(Task.FOUND, questions, seconds=seconds, stop=stop, late=late)


def guarded_task(
    task: Task,
    questions: Sequence[Question],
    *,
    seconds: float | None,
    stop: threading.Event | None = None,
    late: Callable[[Question], None] | None = None,
) -> list[Any]:
    """Do what ``guarded_search`` does, for any task.

    Returns:
        For each question its result, or the error. ``FOUND`` is a Boolean; of other tasks, what the process replies, or False if
        there is no match.
    """
    return _Search(questions, seconds, stop, late, task).run() if questions else []


# ── the processes of this process ───────────────────────────────────────────────────────────────────────────────────────

_ALIVE: set[MatchProcess] = set()
_ENDED: list[MatchProcess] = []
_IDLE: list[MatchProcess] = []
_TOO_EXPENSIVE: dict[bytes, Exception] = {}
"""Errors of patterns that took too long to compile, by hash; such a pattern may come with every row."""
_MAX_TOO_EXPENSIVE = 10_000
_LOCK = threading.Lock()


def _take(*, another: bool = False) -> MatchProcess | None:
    """Return an idle process, or a new one, for this thread alone.

    Args:
        another: Whether the search has one already; then there is none if there is a process for each core.

    Raises:
        OSError, TypeError, ValueError, SubprocessError: A process cannot be started.
    """
    with _LOCK:
        if another and len(_ALIVE) - len(_IDLE) - len(_ENDED) >= _cores():
            return None
        while _IDLE:
            if (process := _IDLE.pop()).usable:
                return process
            _close(process)
        while _ENDED:
            _close(_ENDED.pop())
    process = MatchProcess()
    _ALIVE.add(process)
    return process


def _close(process: MatchProcess) -> int:
    _ALIVE.discard(process)
    return process.close()


@atexit.register
def _close_all() -> None:
    with _LOCK:
        for processes in (_IDLE, _ENDED):
            while processes:
                _close(processes.pop())


def _forget() -> None:
    """In a forked child: the processes belong to the parent, and no thread holds the lock."""
    global _LOCK  # noqa: PLW0603
    _LOCK = threading.Lock()
    for processes in (_ALIVE, _IDLE, _ENDED):
        processes.clear()


forget_in_children(_forget)
LEFTOVERS.append(_close_all)


# ── a search ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass
class _Request:
    """A request under way.

    Attributes:
        process: The process that answers.
        left: Numbers of the questions without an answer, in order.
        size: How many questions it has.
        started: Monotonic time of its start, in seconds.
        is_compiled: Whether the process has compiled the pattern.
    """

    process: MatchProcess
    left: deque[int]
    started: float
    size: int = 0
    is_compiled: bool = False


class _Search:
    """The questions of one search, shared out to processes."""

    def __init__(
        self,
        questions: Sequence[Question],
        seconds: float | None,
        stop: threading.Event | None,
        late: Callable[[Question], None] | None,
        task: Task,
    ) -> None:
        self._task = task
        self._questions, self._seconds, self._stop, self._late = questions, seconds, stop, late
        self._answers: list[Any] = [False] * len(questions)
        self._waiting = deque(range(len(questions)))
        self._problems: dict[tuple[str, int, str], Exception] = {}
        self._free: list[MatchProcess] = []
        self._running: list[_Request] = []
        self._poller = select.poll()
        self._batch = 1
        self._alone: set[int] = set()  # one of these has ended a process
        self._again: set[tuple[str, int, str]] = set()  # patterns whose process has ended before it had compiled them
        self._latest = time.monotonic()  # when the latest process was taken

    def run(self) -> list[Any]:
        try:
            while self._waiting or self._running:
                self._share_out()
                if self._running:
                    self._wait()
        except BaseException:
            for request in self._running:
                request.process.end()
                # closed later: an interrupt during the destruction of an object would be lost, with a traceback
                _ENDED.append(request.process)
            raise
        finally:
            _IDLE.extend(self._free)
        return self._answers

    def _share_out(self) -> None:
        """Give questions to processes, as long as there are both.

        Raises:
            KeyboardInterrupt: The run has to stop.
        """
        if self._stop is not None and self._stop.is_set():
            raise KeyboardInterrupt
        while self._waiting:
            question = self._questions[self._waiting[0]]
            problem = self._problem(question)
            if problem is not None:
                self._answers[self._waiting.popleft()] = problem
                continue
            try:
                process = self._process()
            # out of descriptors or processes, or no sys.executable
            except (OSError, TypeError, ValueError, subprocess.SubprocessError) as error:
                self._give_up(error)
                return
            if process is None:
                return
            self._ask(process, question)

    def _problem(self, question: Question) -> Exception | None:
        """Return the error if the pattern cannot be used for any text, as far as known."""
        problem = self._problems.get(question.compiled)
        return _TOO_EXPENSIVE.get(_key(question)) if problem is None and _TOO_EXPENSIVE else problem

    def _process(self) -> MatchProcess | None:
        if self._free:
            return self._free.pop()
        if not self._running:
            return _take()
        if self._patience() > 0:
            return None
        self._latest = time.monotonic()
        return _take(another=True)

    def _patience(self) -> float:
        """Return the seconds until the search takes another process."""
        return self._latest + (_HASTE if _IDLE else _PATIENCE) - time.monotonic()

    def _give_up(self, error: Exception) -> None:
        """Answer the waiting questions if no process can be started; if one runs, they wait for it."""
        if self._running:
            return
        problem = RuntimeError(f"the process that the regular expression needs could not be started: {error}")
        while self._waiting:
            self._answers[self._waiting.popleft()] = problem

    def _ask(self, process: MatchProcess, first: Question) -> None:
        """Send questions with the pattern of the first one."""
        request = _Request(process, deque(), time.monotonic())
        self._running.append(request)
        size = 0
        while self._waiting and len(request.left) < self._batch:
            at = self._waiting[0]
            question = self._questions[at]
            size += len(question.text)
            is_apart = at in self._alone or size > _BATCH_BYTES
            if question.compiled != first.compiled or (is_apart and request.left):
                break
            request.left.append(self._waiting.popleft())
            if is_apart:
                break
        request.size = len(request.left)
        texts = [self._questions[at].text for at in request.left]
        process.ask(first.pattern, texts, first.flags, self._seconds, self._task, first.lists)
        process.watch(self._poller)

    def _wait(self) -> None:
        """Wait for replies, for the time to take another process, or for a while."""
        patience = self._patience() if self._waiting else 0.0
        timeout = min(patience * 1000 + 1, _POLL_MILLISECONDS) if patience > 0 else _POLL_MILLISECONDS
        ready = {descriptor for descriptor, _ in self._poller.poll(timeout)}
        for request in [*self._running]:
            if ready & {request.process.answers, request.process.questions}:
                self._read(request)

    def _read(self, request: _Request) -> None:
        try:
            for reply in request.process.exchange(self._poller):
                self._settle(request, reply)
        except GoneError:
            self._end(request)
            self._settle_gone(request, _close(request.process))
            self._waiting.extendleft(reversed(request.left))
            return
        if request.is_compiled and not request.left:
            each = (time.monotonic() - request.started) / max(request.size, 1)
            self._batch = max(1, min(_GROWTH * request.size, int(_BATCH_SECONDS / max(each, 1e-9))))
            self._end(request)
            if request.process.is_sent:
                self._free.append(request.process)
            else:  # it still expects texts for an invalid pattern
                _close(request.process)

    def _end(self, request: _Request) -> None:
        self._running.remove(request)
        request.process.unwatch(self._poller)

    def _settle(self, request: _Request, reply: Reply) -> None:
        """Take a reply: about the pattern, then about each text."""
        if not request.is_compiled:
            request.is_compiled = True
            if reply[0] is not Kind.YES:
                self._give_up_pattern(
                    request, self._too_expensive(request) if reply[0] is Kind.LATE else _raised(reply)
                )
            return
        at = request.left.popleft()
        if reply[0] is Kind.BACK:
            self._waiting.appendleft(at)
        elif reply[0] is Kind.LATE:
            self._answers[at] = self._timed_out(self._questions[at])
        else:
            self._answers[at] = _raised(reply) if reply[0] is Kind.RAISED else self._result(reply)

    def _result(self, reply: Reply) -> Any:
        kind, result = reply
        return result if kind is Kind.YES and self._task is not Task.FOUND else kind is Kind.YES

    def _settle_gone(self, request: _Request, signal_: int) -> None:
        """Answer the question whose text or pattern ended the process."""
        is_late = signal_ == signal.SIGVTALRM  # the time limit
        gone = RuntimeError(f"the regular expression ended the process that it ran in (signal {signal_})")
        if not request.is_compiled:
            compiled = self._questions[request.left[0]].compiled
            if is_late or compiled in self._again:
                self._give_up_pattern(request, self._too_expensive(request) if is_late else gone)
            self._again.add(compiled)  # somebody else may have ended it, such as a system without memory
        elif len(request.left) > 1:  # any of them: each is asked again, alone
            self._alone.update(request.left)
        elif request.left:
            at = request.left.popleft()
            self._answers[at] = self._timed_out(self._questions[at]) if is_late else gone

    def _give_up_pattern(self, request: _Request, problem: Exception) -> None:
        self._problems[self._questions[request.left[0]].compiled] = problem
        while request.left:
            self._answers[request.left.popleft()] = problem

    def _too_expensive(self, request: _Request) -> Exception:
        """Return the error of a pattern that takes too long to compile, and remember it."""
        seconds = match_process.COMPILE_SECONDS
        problem = _timeout(f"the pattern takes more than {seconds:g} s to compile")
        if len(_TOO_EXPENSIVE) >= _MAX_TOO_EXPENSIVE:
            _TOO_EXPENSIVE.clear()
        _TOO_EXPENSIVE[_key(self._questions[request.left[0]])] = problem
        return problem

    def _timed_out(self, question: Question) -> Exception:
        """Return the error of a match that took too long, and report it."""
        if self._late is not None:
            self._late(question)
        return _timeout(f"no answer within {self._seconds:g} s")


def _timeout(fact: str) -> Exception:
    return TimeoutError(f"{fact}; as that is a limit of time, another run may end otherwise")


def _raised(reply: Reply) -> Exception:
    """Return the exception that was raised in the other process; ``regex.error`` as ``re.error``."""
    name, message = reply[1].split(":", 1)
    kinds = {re.error.__name__: re.error, "error": re.error} | {kind.__name__: kind for kind in _KINDS}
    return kinds.get(name, RuntimeError)(message)


_KINDS = (MemoryError, OverflowError, RecursionError, SystemError, ValueError)


def _key(question: Question) -> bytes:
    key = f"{question.flags} {question.lists} {question.pattern}"
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
