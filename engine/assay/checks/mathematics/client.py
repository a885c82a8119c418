"""Compare mathematical texts in processes with limits on time and memory, in as many at once as there are cores.

The processes start when the first pair needs them, are shared by all threads, stay for the next pairs, and end with this process.
Verdicts are remembered.
"""

import atexit
import json
import os
import select
import signal
import subprocess
import sys
import threading
from collections import OrderedDict, deque
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from assay.calls.piped_process import GoneError, PipedProcess, cores
from assay.checks.mathematics import server
from assay.checks.mathematics.server import HEAD, Kind, Verdict, frame, frames
from assay.system.processes import forget_in_children

_BATCH_SECONDS = 0.02
"""Target time for one request."""
_MOST = 64
"""Maximum pairs of a request."""
_POLL_SECONDS = 0.1
"""Interval at which a waiting run checks whether it has to stop."""
_DEATHS = 3
"""How often the processes may end in a row without an answer."""
_MEMO_PAIRS = 100_000
_MEMO_CHARACTERS = 20_000_000
_KEPT_VARIABLES = ("PYTHONHOME", "PYTHONPYCACHEPREFIX", "PYTHONDONTWRITEBYTECODE")


class Question(NamedTuple):
    """A gold and an answer to compare, and how.

    Attributes:
        gold: The gold.
        answer: The answer.
        strict: See ``math_verify.verify``.
        precision: Decimal places to which numbers are rounded.
        seconds: Limit on the processor time.
        how: ``whole``, ``latex``, ``expr`` or ``any``: what of a text is read.
        relations: Whether an inequality may equal an interval.
    """

    gold: str
    answer: str
    strict: bool
    precision: int
    seconds: float
    how: str = "whole"
    relations: bool = False


Answer = tuple[Verdict, str]
"""A verdict, and a message if it is an error."""


def compare_all(questions: Sequence[Question], stop: threading.Event | None = None) -> list[Answer]:
    """Answer questions, each distinct one once.

    Args:
        questions: The questions.
        stop: Set when the run has to stop.

    Raises:
        KeyboardInterrupt: The run has to stop.
    """
    pool = _POOL[0]
    distinct = dict.fromkeys(questions)
    known = {question: answer for question in distinct if (answer := pool.memo.find(question)) is not None}
    fresh = [question for question in distinct if question not in known]
    if fresh:
        answers = dict(zip(fresh, pool.ask(fresh, stop), strict=True))
        known |= answers
        for question, answer in answers.items():
            if answer[0] is not Verdict.GONE:  # another process may live
                pool.memo.keep(question, answer)
    return [known[question] for question in questions]


class _Memo:
    """Answers that were given, up to a number of them and of characters; the least recently used go first."""

    def __init__(self) -> None:
        self._versions: list[str] = []
        self._answers: OrderedDict[Question, Answer] = OrderedDict()
        self._characters = 0
        self._lock = threading.Lock()

    def find(self, question: Question) -> Answer | None:
        with self._lock:
            answer = self._answers.get(question)
            if answer is not None:
                self._answers.move_to_end(question)
            return answer

    def keep_those_of(self, versions: list[str]) -> None:
        """Forget the answers of other versions of the libraries; the program may have been started again with new ones."""
        with self._lock:
            if self._versions != versions:
                self._answers.clear()
                self._characters = 0
            self._versions = versions

    def keep(self, question: Question, answer: Answer) -> None:
        with self._lock:
            if question not in self._answers:
                self._answers[question] = answer
                self._characters += _size(question)
            while len(self._answers) > _MEMO_PAIRS or self._characters > _MEMO_CHARACTERS:
                self._characters -= _size(self._answers.popitem(last=False)[0])


def _size(question: Question) -> int:
    return len(question.gold) + len(question.answer)


# ── the processes of this process ───────────────────────────────────────────────────────────────────────────────────────


class _Process(PipedProcess):
    """The program that compares: one for all workers."""

    def __init__(self) -> None:
        paths = json.dumps([path for path in sys.path if path])
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        kept |= {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
        # NOTE: sympy's results may depend on the order of sets
        environment = kept | {"PYTHONHASHSEED": "0"}
        program = str(Path(server.__file__))
        super().__init__(["-P", "-S", "-s", program, paths, str(cores())], environment=environment, leads=True)

    def exchange(self, poller: select.poll) -> list[tuple[Kind, int, bytes]]:
        """Send what fits into the pipe, and return the replies that have arrived.

        Raises:
            GoneError: The process has ended, and there are no more replies.
        """
        return list(frames(self.transfer(poller)))


class _Job:
    """The questions of one thread.

    Attributes:
        questions: The questions.
        answers: Their answers.
        left: Number of questions without an answer.
        is_given_up: Whether nobody waits for the answers.
    """

    def __init__(self, questions: Sequence[Question]) -> None:
        self.questions = questions
        self.answers: list[Answer] = [(Verdict.GONE, "")] * len(questions)
        self.left = len(questions)
        self.is_given_up = False


_Item = tuple[_Job, int]
"""A question: its job, and its place there."""


class _Pool:
    """The program, and what it is asked. At any time one thread exchanges messages with it, for all threads that wait."""

    def __init__(self) -> None:
        self.memo = _Memo()
        self._turn = threading.Condition()
        self._exchanging = 0  # the thread that does
        self._process: _Process | None = None
        self._waiting: deque[_Item] = deque()
        self._running: dict[int, list[_Item]] = {}
        self._number = 0
        self._seconds = _BATCH_SECONDS / 4  # what a pair takes
        self._deaths = 0
        self._broken = ""

    def ask(self, questions: Sequence[Question], stop: threading.Event | None) -> list[Answer]:
        """Answer questions.

        Raises:
            KeyboardInterrupt: The run has to stop.
        """
        job = _Job(questions)
        with self._turn:
            self._waiting.extend((job, at) for at in range(len(questions)))
        try:
            while job.left:
                self._take_turn(job, stop)
        except BaseException:
            self._give_up(job)
            raise
        return job.answers

    def _take_turn(self, job: _Job, stop: threading.Event | None) -> None:
        me = threading.get_ident()
        with self._turn:
            while job.left and self._exchanging not in (0, me):
                _check_stop(stop)
                self._turn.wait(_POLL_SECONDS)
            if not job.left:
                return
            self._exchanging = me
        try:
            while job.left:
                _check_stop(stop)
                self._step()
        finally:
            with self._turn:
                self._exchanging = 0
                self._turn.notify_all()

    def _give_up(self, job: _Job) -> None:
        """Forget a job, and end the program if it works for it: the next question starts it again."""
        job.is_given_up = True
        works_for_it = any(job is other for batch in self._running.copy().values() for other, _ in batch)
        if self._process is not None and works_for_it:
            self._process.end()

    def close(self) -> None:
        """End the program if no thread waits for it."""
        process, self._process = self._process, None
        if process is not None and not self._exchanging:
            process.close()

    # ── by the thread that exchanges ────────────────────────────────────────────────────────────────────────────────

    def _step(self) -> None:
        """Send questions, and wait for replies for a while."""
        process = self._started()
        if process is None:
            return
        self._share_out(process)
        poller = select.poll()
        process.watch(poller)
        if not poller.poll(1000 * _POLL_SECONDS):
            return
        try:
            for kind, number, message in process.exchange(poller):
                content = json.loads(message[HEAD.size :])
                if kind is Kind.READY:
                    self.memo.keep_those_of(content)
                    continue
                if kind in (Kind.BROKEN, Kind.FAILED):
                    self._bury(process, content, lasts=kind is Kind.BROKEN)
                    return
                self._settle(kind, number, content)
        except GoneError:
            self._bury(process)

    def _started(self) -> _Process | None:
        """Return the program; None if there is none, and questions are answered with the reason."""
        if self._broken:
            self._answer_waiting(self._broken)
            return None
        if self._process is None:
            try:
                self._process = _Process()
            except (OSError, TypeError, ValueError, subprocess.SubprocessError) as error:
                self._answer_waiting(f"the process that mathematics needs could not be started: {error}")
        return self._process

    def _share_out(self, process: _Process) -> None:
        count = cores()
        while len(self._running) < 2 * count and (batch := self._batch(count)):
            self._number = (self._number + 1) % (1 << 32)
            self._running[self._number] = batch
            process.send([frame(Kind.ASKED, self._number, [list(job.questions[at]) for job, at in batch])])

    def _batch(self, count: int) -> list[_Item]:
        with self._turn:
            share = -(-len(self._waiting) // (2 * count))
            size = max(1, min(_MOST, share, int(_BATCH_SECONDS / self._seconds)))
            batch: list[_Item] = []
            while self._waiting and len(batch) < size:
                item = self._waiting.popleft()
                if not item[0].is_given_up:
                    batch.append(item)
            return batch

    def _settle(self, kind: Kind, number: int, content: object) -> None:
        self._deaths = 0
        batch = self._running.pop(number)
        match kind, content:
            case ((Kind.DONE | Kind.LEAVES), [float(seconds), list(results)]):
                self._seconds += (max(seconds, 1e-6) / len(batch) - self._seconds) / 4
                for item, (verdict, message) in zip(batch, results, strict=True):
                    self._answer(item, (Verdict(verdict), message))
            case Kind.DIED, [int(at), int(ended_by)]:
                self._seconds = _BATCH_SECONDS  # pairs alone, until they are quick again
                if at >= 0:
                    job, place = batch.pop(at)
                    self._answer((job, place), _ended(ended_by, job.questions[place]))
                else:
                    self._deaths += 1
                self._wait_again(batch)
        with self._turn:
            self._turn.notify_all()

    def _answer(self, item: _Item, answer: Answer) -> None:
        job, at = item
        job.answers[at] = answer
        job.left -= 1

    def _wait_again(self, items: Sequence[_Item]) -> None:
        with self._turn:
            self._waiting.extendleft(reversed(items))
        if self._deaths > _DEATHS:
            self._deaths = 0
            self._answer_waiting("the processes that mathematics needs keep ending")

    def _bury(self, process: _Process, problem: str = "", *, lasts: bool = False) -> None:
        """Put the questions of a program that has ended back, or answer them with the problem, which may last."""
        process.close()
        self._process = None
        items = [item for batch in self._running.values() for item in batch if not item[0].is_given_up]
        self._running.clear()
        self._deaths += bool(items) and not problem
        self._wait_again(items)
        if problem:
            self._broken = problem if lasts else ""
            self._answer_waiting(problem)

    def _answer_waiting(self, problem: str) -> None:
        with self._turn:
            while self._waiting:
                self._answer(self._waiting.popleft(), (Verdict.GONE, problem))
            self._turn.notify_all()


def _ended(ended_by: int, question: Question) -> Answer:
    """Return the answer to the question that ended a worker."""
    if ended_by == signal.SIGPROF:
        fact = f"no answer within {question.seconds:g} s; as that is a limit of time, another run may end otherwise"
        return Verdict.LATE, fact
    return Verdict.GONE, f"math-verify ended the process that it ran in (signal {ended_by})"


def _check_stop(stop: threading.Event | None) -> None:
    """Check whether the run was stopped.

    Raises:
        KeyboardInterrupt: It was.
    """
    if stop is not None and stop.is_set():
        raise KeyboardInterrupt


_POOL = [_Pool()]


def _forget() -> None:
    """In a forked child: the program belongs to the parent, and no thread holds a lock."""
    _POOL[0] = _Pool()


forget_in_children(_forget)


@atexit.register
def _close() -> None:
    _POOL[0].close()
