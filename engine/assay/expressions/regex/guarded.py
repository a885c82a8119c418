"""Search texts with Python's ``re``, or the package ``regex``, in processes with limits on time and memory.

A match of ``re`` cannot be interrupted from another thread, and may take years; a pattern may take minutes to compile. In the main
thread of a process, ``re`` looks for signals now and then, so a timer can end a match and the process continues with the next one.
The few loops of ``re`` that do not look end with their process, soon after the limit.
"""

import json
import re
import threading
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from assay.expressions.regex import match_program
from assay.expressions.regex.questions import Question
from assay.guard.pool import Answer as PoolAnswer
from assay.guard.pool import Died, Late, Pool, PoolError, Raised, Reply, Request

POOL = Pool(match_program.__file__, memory=1 << 30, interruptible=True, prepare_seconds=5.0)
_MAX_TOO_EXPENSIVE = 10_000
_TOO_EXPENSIVE: dict[int, Exception] = {}
"""Errors of patterns that took too long to compile, by hash; such a pattern may come with every row."""


def guarded_search(
    questions: Sequence[Question],
    *,
    seconds: float | None,
    task: str = "found",
    stop: threading.Event | None = None,
    late: Callable[[Question], None] | None = None,
) -> list[Any]:
    """Do a task of ``match_program`` for each question: ``re.search``, unless another one is named."""
    results: list[Any] = [
        _TOO_EXPENSIVE.get(hash(question.compiled)) if _TOO_EXPENSIVE else None for question in questions
    ]
    asked = [index for index, known in enumerate(results) if known is None]
    # NOTE: ``marshal`` writes no objects of subclasses
    requests = [
        Request(_context(questions[index], task, seconds), str.__str__(questions[index].text)) for index in asked
    ]
    open_ = set(asked)
    try:
        for number, answer in POOL.answers(requests, seconds, stop):
            index = asked[number]
            open_.discard(index)
            results[index] = _result(answer, questions[index], seconds)
            if late is not None and answer == Late():
                late(questions[index])
    except PoolError as error:
        problem = RuntimeError(f"the process that the regular expression needs could not be started: {error}")
        for index in open_:
            results[index] = problem
    return results


def _context(question: Question, task: str, seconds: float | None) -> tuple[str, int, str, str, float]:
    package = f"[{json.dumps(_folder_of_package())}, {question.lists}]" if question.lists else ""
    return str.__str__(question.pattern), int(question.flags), task, package, (seconds or 0.0) if package else 0.0


def _result(answer: PoolAnswer, question: Question, seconds: float | None) -> Any:
    match answer:
        case Reply(value):
            return value
        case Raised(name, message):  # ``regex.error`` is ``re.error``
            return _ERRORS.get(name, RuntimeError)(message)
        case Late(preparing=True):
            problem = _timeout(f"the pattern takes more than {POOL.prepare_seconds:g} s to compile")
            if len(_TOO_EXPENSIVE) >= _MAX_TOO_EXPENSIVE:
                _TOO_EXPENSIVE.clear()
            return _TOO_EXPENSIVE.setdefault(hash(question.compiled), problem)
        case Late():
            return _timeout(f"no answer within {seconds:g} s")
        case Died(code):
            return RuntimeError(f"the regular expression ended the process that it ran in (signal {-code})")


_ERRORS = {"error": re.error, re.error.__name__: re.error} | {
    kind.__name__: kind for kind in (MemoryError, OverflowError, RecursionError, SystemError, ValueError)
}


def _timeout(fact: str) -> Exception:
    return TimeoutError(f"{fact}; as that is a limit of time, another run may end otherwise")


@cache
def _folder_of_package() -> str:
    """Return the folder that has the package ``regex``. NOTE: a file ``regex.py`` beside the user's program is not it."""
    import importlib.metadata  # slow to import

    return str(importlib.metadata.distribution("regex").locate_file(""))
