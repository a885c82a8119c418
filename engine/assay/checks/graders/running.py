"""Score texts by the functions of graders: in this process, or in processes with limits where they may take long."""

import json
import re
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from assay.calls.limits import is_user_error
from assay.checks.graders import package_program, rows_program
from assay.checks.graders.calling import call
from assay.checks.graders.table import Grader
from assay.checks.mathematics.client import LATE as MATH_LATE
from assay.checks.mathematics.client import Grading, compare_all
from assay.checks.mathematics.program import NO_GOLD, RAISED, SCORED
from assay.errors import describe_error, quoted
from assay.frozen import frozen
from assay.guard.pool import Answer, Died, Late, Pool, PoolError, Raised, Reply, Request
from assay.values.normal_forms import minerva

SECONDS = 5.0
"""Processor time for one text."""
MOST_CHARACTERS = 20_000
"""Of a text and its golds that are scored in this process."""

ROWS = Pool(rows_program.__file__, memory=1 << 31, paths=lambda: [path for path in sys.path if path], renewed=True)
PACKAGES = Pool(
    package_program.__file__, memory=1 << 31, paths=lambda: [path for path in sys.path if path], renewed=True
)


@frozen
class Question:
    """A text to score.

    Attributes:
        text: The text.
        golds: Its golds, as the grader takes them.
        options: All options.
    """

    text: str
    golds: Sequence[Any]
    options: Mapping[str, Any]


@frozen
class Verdict:
    """A score, and what was compared; None if the gold cannot be used.

    Attributes:
        score: The tool's number.
        extracted: What the function read of the text.
        gold: The gold that gave the score, as people read it.
        error: What went wrong.
    """

    score: float | None
    extracted: str = ""
    gold: str = ""
    error: str | None = None


def failed(error: str) -> Verdict:
    """Return the verdict on a text that could not be scored."""
    return Verdict(0.0, error=error)


def score(grader: Grader, question: Question) -> Verdict:
    """Score a text in this process."""
    return _verdict(question, *call(grader.score, grader.golds, question.text, question.golds, question.options))


def _verdict(question: Question, value: float, extracted: str, at: int) -> Verdict:
    golds = question.golds if at < 0 else question.golds[at : at + 1]
    return Verdict(float(value), extracted, shown(golds))


_MOST_SHOWN = 3


def shown(golds: Sequence[Any]) -> str:
    """Return golds as a reason shows them, in quotes."""
    texts = [gold if isinstance(gold, str) else json.dumps(gold, ensure_ascii=False) for gold in golds[:_MOST_SHOWN]]
    return " or ".join(map(quoted, texts)) + " or …" * (len(golds) > _MOST_SHOWN)


def score_all(grader: Grader, questions: Sequence[Question], stop: threading.Event | None) -> list[Verdict]:
    """Score texts."""
    if grader.kind == "M":
        return _by_math(grader, questions, stop)
    if grader.kind == "P":
        return _by_pool(PACKAGES, grader, questions, stop)
    verdicts: list[Verdict | None] = []
    for question in questions:
        if stop is not None and stop.is_set():
            raise KeyboardInterrupt
        verdicts.append(None if _may_take_long(grader, question) else _attempt(grader, question))
    waiting = [question for question, verdict in zip(questions, verdicts, strict=True) if verdict is None]
    others = iter(_by_pool(ROWS, grader, waiting, stop) if waiting else ())
    return [next(others) if verdict is None else verdict for verdict in verdicts]


def _may_take_long(grader: Grader, question: Question) -> bool:
    if grader.searches(question.options):
        return True
    size = len(question.text) + sum(len(gold) for gold in question.golds if isinstance(gold, str))
    return size > MOST_CHARACTERS


def _attempt(grader: Grader, question: Question) -> Verdict | None:
    """Score a text here; None if it is nested so deeply that another process has to."""
    try:
        return score(grader, question)
    except RecursionError:
        return None
    except BaseException as exception:  # what a function raises never ends a run
        if not is_user_error(exception):
            raise
        return failed(describe_error(exception))


def _by_pool(pool: Pool, grader: Grader, questions: Sequence[Question], stop: threading.Event | None) -> list[Verdict]:
    requests = [
        Request(
            grader.score,
            (
                grader.golds,
                question.text.encode("utf-8", "surrogatepass"),
                json.dumps([*question.golds]),
                json.dumps(dict(question.options)),
            ),
        )
        for question in questions
    ]
    try:
        answers = pool.ask(requests, SECONDS, stop)
    except PoolError as error:
        return [failed(f"RuntimeError: the process that {grader.name} needs could not be started: {error}")] * len(
            questions
        )
    return [_read(grader, question, answer) for question, answer in zip(questions, answers, strict=True)]


def _read(grader: Grader, question: Question, answer: Answer) -> Verdict:
    match answer:
        case Reply(("scored", float() | int() as value, str() as extracted, int() as at)):
            return _verdict(question, value, extracted, at)
        case Reply((str() as problem, *_)):
            return failed(problem)
        case Raised(name, message):
            return failed(f"{name}: {message}")
        case Late():
            return failed(_late(grader))
        case Died(code):
            return failed(f"RuntimeError: {grader.name} ended the process that it ran in (signal {-code})")
    return failed(f"RuntimeError: {grader.name} has given no answer")


def _late(grader: Grader) -> str:
    return f"TimeoutError: {grader.name}: no answer within {SECONDS:g} s of processor time"


def _by_math(grader: Grader, questions: Sequence[Question], stop: threading.Event | None) -> list[Verdict]:
    asked = [[_grading(grader, question, gold) for gold in question.golds] for question in questions]
    answers = iter(compare_all([one for golds in asked for one in golds], stop))
    verdicts = []
    for question, gradings in zip(questions, asked, strict=True):
        pairs = zip(gradings, question.golds, strict=True)
        results = [_of_math(grader, next(answers), grading.answer, gold) for grading, gold in pairs]
        usable = [result for result in results if result.score is not None]
        sound = [result for result in usable if result.error is None] or usable
        best = max(sound, key=lambda result: result.score or 0.0) if sound else results[0]
        verdicts.append(best)
    return verdicts


_FINAL_ANSWER = re.compile("Final Answer: The final answer is(.*?). I hope it is correct.")
_HOPE = "I hope it is correct."


def _grading(grader: Grader, question: Question, gold: str) -> Grading:
    text, options = question.text, json.dumps(dict(question.options))
    if question.options.get("metric") == "exact_match":  # sympy compares normal forms only
        found = _FINAL_ANSWER.search(text + _HOPE)
        text = minerva(found[1].strip() if found else "[invalidanswer]", "lmEval")
        gold = minerva(gold, "lmEval")
    return Grading(gold, text, grader.score, options, SECONDS)


def _of_math(grader: Grader, answer: tuple[str, str], extracted: str, gold: str) -> Verdict:
    verdict, message = answer
    if verdict == SCORED:
        return Verdict(float(message), extracted, shown([gold]))
    if verdict == NO_GOLD:
        return Verdict(None, extracted, shown([gold]))
    if verdict == MATH_LATE:
        return failed(_late(grader))
    return failed(f"RuntimeError: math-verify raised {message}" if verdict == RAISED else f"RuntimeError: {message}")
