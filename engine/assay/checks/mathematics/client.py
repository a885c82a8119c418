"""Compare mathematical texts in processes with limits on time and memory; verdicts are remembered."""

import sys
import threading
from collections import OrderedDict
from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from assay.checks.mathematics import program
from assay.errors import install
from assay.guard.pool import Answer as PoolAnswer
from assay.guard.pool import Died, Late, Pool, PoolError, Raised, Reply, Request

INSTALL = install("math")
LIBRARIES = {
    "math-verify": ("0.9.0",),
    "latex2sympy2_extended": ("1.11.0",),
    "sympy": ("1.14.0",),
    "antlr4-python3-runtime": ("4.9.3", "4.11.0", "4.13.2"),
}
"""The libraries that compare, each with the versions that have been tested."""
LATE, GONE = "late", "gone"
"""In place of a verdict: the time was up, the process ended."""
POOL = Pool(program.__file__, memory=1 << 30, paths=lambda: [path for path in sys.path if path], renewed=True)
_MEMO_PAIRS = 100_000
_MEMO_CHARACTERS = 20_000_000

Answer = tuple[str, str]
"""A verdict, and a message if it is an error."""


class Comparison(NamedTuple):
    """A gold and an answer to compare, and how.

    Attributes:
        gold: The gold.
        answer: The answer.
        strict: See ``math_verify.verify``.
        precision: Decimal places to which numbers are rounded.
        how: ``whole``, ``latex``, ``expr`` or ``any``: what of a text is read.
        relations: Whether an inequality may equal an interval.
        seconds: Limit on the processor time.
    """

    gold: str
    answer: str
    strict: bool
    precision: int
    how: str
    relations: bool
    seconds: float

    @property
    def context(self) -> None:
        """What the program prepares for it."""


class Grading(NamedTuple):
    """An answer to score as a grader does.

    Attributes:
        gold: The gold.
        answer: The answer.
        style: Which grader.
        options: Its options, as JSON.
        seconds: Limit on the processor time.
    """

    gold: str
    answer: str
    style: str
    options: str
    seconds: float

    @property
    def context(self) -> str:
        """What the program prepares for it."""
        return "graders"


Asked = Comparison | Grading


class Memo:
    """Answers that were given, up to a number of them and of characters; the least recently used go first."""

    def __init__(self) -> None:
        self._answers: OrderedDict[Asked, Answer] = OrderedDict()
        self._versions: list[str] | None = None
        self._characters = 0
        self._lock = threading.Lock()

    def find(self, question: Asked) -> Answer | None:
        """Return the answer that was given."""
        with self._lock:
            if question in self._answers:
                self._answers.move_to_end(question)
            return self._answers.get(question)

    def keep(self, question: Asked, answer: Answer, versions: list[str]) -> None:
        """Keep an answer, and forget those of other versions of the libraries."""
        with self._lock:
            if self._versions != versions:
                self._answers.clear()
                self._characters, self._versions = 0, versions
            if question not in self._answers:
                self._answers[question] = answer
                self._characters += len(question.gold) + len(question.answer)
            while len(self._answers) > _MEMO_PAIRS or self._characters > _MEMO_CHARACTERS:
                dropped, _ = self._answers.popitem(last=False)
                self._characters -= len(dropped.gold) + len(dropped.answer)


MEMO = Memo()


def compare_all(questions: Sequence[Asked], stop: threading.Event | None = None) -> list[Answer]:
    """Answer questions, each distinct one once."""
    answers = {question: MEMO.find(question) for question in questions}
    waiting = [question for question, answer in answers.items() if answer is None]
    for (seconds, context), group in groupby(waiting, lambda question: (question.seconds, question.context)):
        asked = [*group]
        try:
            for index, answer in POOL.answers((Request(context, question[:-1]) for question in asked), seconds, stop):
                answers[asked[index]] = verdict = _answer(answer, seconds)
                if verdict[0] != GONE:  # another process may live
                    MEMO.keep(asked[index], verdict, POOL.greeting)
        except PoolError as error:
            problem = f"the process that mathematics needs could not be started: {error}"
            if error.lasts:
                problem = f"math-verify cannot be used: {error}; try {INSTALL}"
            answers |= {question: (GONE, problem) for question in asked if answers[question] is None}
    return [answers[question] or (GONE, "") for question in questions]


def _answer(answer: PoolAnswer, seconds: float) -> Answer:
    match answer:
        case Reply((verdict, message)):
            return verdict, message
        case Raised(name):
            return program.RAISED, f"{name}: "
        case Late():
            return LATE, f"no answer within {seconds:g} s; as that is a limit of time, another run may end otherwise"
        case Died(code, begun=True):
            return GONE, f"math-verify ended the process that it ran in (signal {-code})"
    return GONE, "the processes that mathematics needs keep ending"
