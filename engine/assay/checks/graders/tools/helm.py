"""Graders of HELM at 63754d0, and of lighteval 0.13.0."""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from assay.checks.graders.tools.patterns import GSM8K_ANSWER
from assay.checks.similarity.overlap import set_f1
from assay.values.normal_forms import NO_PUNCTUATION, lighteval, squad
from assay.values.word_lists import LIGHTEVAL_ANYWHERE, LIGHTEVAL_LETTERS, LIGHTEVAL_SUFFIX

Options = Mapping[str, Any]


def _exact(answer: str, target: str) -> float:
    return float(bool(answer) and answer.strip() == target.strip())


def prefix_exact_match(text: str, gold: str, _: Options) -> tuple[float, str]:
    """``prefix_exact_match``: a text, which is not empty, begins with the gold."""
    answer = text.strip()
    return float(bool(text) and answer.startswith(gold.strip())), answer


def quasi_prefix_exact_match(text: str, gold: str, _: Options) -> tuple[float, str]:
    """``quasi_prefix_exact_match``: the same of what SQuAD's evaluation compares."""
    answer = squad(text)
    return float(bool(text) and answer.startswith(squad(gold))), answer


def exact_match_indicator(text: str, gold: str, options: Options) -> tuple[float, str]:
    """``exact_match_indicator``: what stands behind the last indicator is the same."""
    answer, target = (value.split(options["indicator"])[-1].strip() for value in (text, gold))
    return _exact(answer, target), answer


_NUMBER = re.compile(r"-?[\d,]+(?:.\d+)?")


def final_number_exact_match(text: str, gold: str, _: Options) -> tuple[float, str]:
    """``final_number_exact_match``: the last numbers are written the same."""
    answer, target = (next(iter(_NUMBER.findall(value)[-1:]), "").replace(",", "") for value in (text, gold))
    return _exact(answer, target), answer


_GSM8K = re.compile(GSM8K_ANSWER)


def gsm8k(text: str) -> str:
    """Return the answer behind ``####`` without commas; ``[invalid]`` if there is none."""
    match = _GSM8K.search(text)
    return match[1].strip().replace(",", "") if match else "[invalid]"


def _triviaqa(text: str) -> str:
    return text.lower().translate(NO_PUNCTUATION)


def _bigbench(text: str) -> str:
    return text.replace(" . ", ".\n")


NORMALIZED: dict[str, Callable[[str], str]] = {
    "helm": lighteval,
    "triviaqa": _triviaqa,
    "bigbench": _bigbench,
    "gsm8k": gsm8k,
}
"""lighteval's normalizers by name."""


def exact_match(text: str, gold: str, options: Options) -> tuple[float, str]:
    """Lighteval's ``ExactMatches``."""
    if not text:
        return 0.0, text
    answer, target = (text.strip(), gold.strip()) if options["strip_strings"] else (text, gold)
    if (normalize := NORMALIZED.get(options["normalize"])) is not None:
        answer, target = normalize(answer), normalize(target)
    kind = options["type"]
    if kind == "full":
        return float(answer == target), answer
    return float(answer.startswith(target) if kind == "prefix" else answer.endswith(target)), answer


def f1(text: str, gold: str, options: Options) -> tuple[float, str]:
    """Lighteval's ``F1_score``."""
    answer, target = text, gold
    if (normalize := NORMALIZED.get(options["normalize"])) is not None:
        answer, target = normalize(text), normalize(gold)
    return set_f1({*answer.split()}, {*target.split()}), text


@lru_cache(64)
def _letter_patterns(count: int, *, anywhere: bool) -> tuple[re.Pattern[str], ...]:
    letters = "|".join(rf"(?:{letter}|\({letter}\))" for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[:count])
    letter = f"(?P<i>{letters})"
    start = rf"(?:\*\*)?{letter}{LIGHTEVAL_SUFFIX}"
    parts = {"X": letter, "W": rf"(?:^| )(?:\*\*)?{letter}{LIGHTEVAL_SUFFIX}", "S": start}
    written = (*LIGHTEVAL_LETTERS, *(LIGHTEVAL_ANYWHERE if anywhere else ()))
    return tuple(re.compile(re.sub("[XWS]", lambda match: parts[match[0]], pattern)) for pattern in written)


def letters(text: str, gold: str, options: Options) -> tuple[float, str]:
    """Lighteval's ``IndicesExtractionConfig``: the letter of a choice."""
    choices = options["choices"]
    count = choices if isinstance(choices, int) else len(choices)
    for pattern in _letter_patterns(count, anywhere=options["without_anchor"]):
        found = max(pattern.finditer(text), key=lambda match: (match.end(), -match.start()), default=None)
        if found is not None:
            answer = found["i"].strip("()")
            return float(answer == gold), answer
    return 0.0, text
