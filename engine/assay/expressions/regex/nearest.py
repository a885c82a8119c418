"""The text that a fuzzy pattern of the package ``regex`` would match with one error more, for the reason of a failure."""

import re
from collections.abc import Sequence

from assay.calls.limits import Limits
from assay.expressions.regex.guarded import Question, guarded_search

_BOUNDS = re.compile(r"(?<!\\)\{[^{}\\]*<[^{}\\]*\}")
"""How many errors a fuzzy pattern allows: ``{e<=1}``, ``{1<=e<=3}``, ``{2i+2d+1s<=4}``."""
_MAXIMUM = re.compile(r"(?<=<)(=?)(\d+)")


def nearest_texts(questions: Sequence[Question], limits: Limits | None = None) -> list[str | None]:
    """Return for each question, which has no match, the best match with one error more; None if there is none in time."""
    limits = limits or Limits()
    nearest: dict[Question, str] = {}
    waiting = {question: _looser(question.pattern) for question in questions}
    while waiting := {question: patterns for question, patterns in waiting.items() if patterns}:
        tried = [question._replace(pattern=patterns.pop(0)) for question, patterns in waiting.items()]
        replies = guarded_search(tried, seconds=limits.regex_timeout, task="first", stop=limits.stop)
        for question, reply in zip([*waiting], replies, strict=True):
            if reply and not isinstance(reply, Exception):
                start, end = reply[0]
                nearest[question] = question.text[start:end]
                del waiting[question]
    return [nearest.get(question) or None for question in questions]


def _looser(pattern: str) -> list[str]:
    """Return the pattern with one error more, in one of its fuzzy parts each, to be matched as well as possible."""
    return [
        f"(?b){pattern[: bounds.start()]}{_MAXIMUM.sub(_one_more, bounds[0])}{pattern[bounds.end() :]}"
        for bounds in _BOUNDS.finditer(pattern)
    ]


def _one_more(maximum: re.Match[str]) -> str:
    return f"{maximum[1]}{int(maximum[2]) + 1}"
