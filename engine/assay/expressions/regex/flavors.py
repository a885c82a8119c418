"""Whose patterns they are: Python's ``re``, or the package ``regex``, which matches fuzzily and knows scripts and named lists."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from assay.calls.limits import Limits

if TYPE_CHECKING:
    from assay.expressions.regex.questions import Question

PACKAGE = "regex"
FLAVORS = ("re", PACKAGE)
_OWN_NAMES = ("flags", "ignore_unused", "cache_pattern", "pattern")
"""Names of the arguments of ``regex.compile``, which takes the lists as others."""
FLAVOR = (
    r"`regex` for patterns of that package: fuzzy `(?:refund){e<=1}`, `\p{Script=Cyrillic}`, `\X`; else those of `re`."
)
LISTS = r"With `flavor: regex`, the texts that `\L<name>` stands for, by name."


def named_lists(flavor: Any = "re", lists: Any = None) -> str:
    r"""Return the lists of a pattern as ``regex.questions.Question`` has them."""
    if flavor not in FLAVORS:
        raise ValueError(f"`flavor` is {' or '.join(FLAVORS)}, not {flavor!r}")
    if lists is not None and not _is_lists(lists):
        raise ValueError("`lists` has a list of texts for each name: {names: [Ann, Bob]}")
    if flavor != PACKAGE:
        if lists:
            raise ValueError("`lists` needs `flavor: regex`")
        return ""
    for name in lists or ():
        if not name.isidentifier() or name in _OWN_NAMES:
            raise ValueError(f"`{name}` cannot be the name of a list; it is a word as in \\L<names>")
    return json.dumps(lists or {}, sort_keys=True)


def _is_lists(lists: Any) -> bool:
    return isinstance(lists, Mapping) and all(
        isinstance(name, str) and isinstance(texts, list) and all(isinstance(text, str) for text in texts)
        for name, texts in lists.items()
    )


def pattern_schemas() -> dict[str, Any]:
    """Return the JSON Schemas of what stands beside a pattern."""
    texts = {"type": "array", "items": {"type": "string"}}
    return {
        "flavor": {"enum": [*FLAVORS], "default": "re", "description": FLAVOR},
        "lists": {"type": "object", "additionalProperties": texts, "description": LISTS},
    }


_BOUNDS = re.compile(r"(?<!\\)\{[^{}\\]*<[^{}\\]*\}")
"""How many errors a fuzzy pattern allows: ``{e<=1}``, ``{1<=e<=3}``, ``{2i+2d+1s<=4}``."""
_MAXIMUM = re.compile(r"(?<=<)(=?)(\d+)")


def nearest_texts(questions: "Sequence[Question]", limits: Limits | None = None) -> list[str | None]:
    """Return for each question, which has no match, the best match with one error more; None if there is none in time."""
    limits = limits or Limits()
    from assay.expressions.regex.guarded import guarded_search  # only patterns that do not match need it

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
