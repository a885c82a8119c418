"""Graders of Inspect: inspect_ai 0.3.285, ``scorer/``."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from assay.checks.graders.tools.numerals import number
from assay.checks.graders.tools.patterns import compiled
from assay.checks.similarity.overlap import token_f1
from assay.values import normal_forms
from assay.values.normal_forms import ENDS
from assay.values.word_lists import INSPECT_ANSWER, INSPECT_CHOICES, INSPECT_UNWRAPPED

Options = Mapping[str, Any]

_ESCAPED = re.compile(r"\\([$,£€*_])")
_NO_MARKS = str.maketrans("", "", "$,£€*_")
_FULL_STOP = re.compile(r"\.(?=\s|$|\D)")
_DIGITS = 2
"""To which a score is rounded."""


def _plain_number(text: str) -> str:
    text = _ESCAPED.sub(r"\1", text) if "\\" in text else text
    return _FULL_STOP.sub("", text.translate(_NO_MARKS))


def _short(value: float) -> str:
    return format(value, ".5g")


def match(text: str, gold: str, options: Options) -> tuple[float, str]:
    """``match`` with any location; ``numeric`` compares numbers where the gold is one."""
    answer, target, location = text.strip(), gold.strip(), options["location"]
    if options["ignore_case"]:
        answer, target = answer.casefold(), target.casefold()
    if options["numeric"]:
        target = _plain_number(target)
        if (wanted := number(target)) is not None:
            return _match_number(_plain_number(answer), _short(wanted), location)
    answer, target = answer.strip(ENDS), target.strip(ENDS)
    if location in ("begin", "end"):
        return float(answer.startswith(target) if location == "begin" else answer.endswith(target)), text
    return float(answer == target if location == "exact" else target in answer), text


def _match_number(answer: str, target: str, location: str) -> tuple[float, str]:
    if location == "exact":
        value = number(answer, trim=False)
        shown = answer if value is None else _short(value)
        return float(shown == target), shown
    words = answer.split()
    values = map(number, reversed(words) if location == "end" else words)
    numbers = (_short(value) for value in values if value is not None)
    if location == "any":
        return float(target in numbers), answer
    found = next(numbers, "")
    return float(found == target), found


def exact(text: str, gold: str, _: Options) -> tuple[float, str]:
    """``exact``: equal words, of which there is at least one."""
    answer, target = normal_forms.inspect(text), normal_forms.inspect(gold)
    return float(bool(target) and answer == target), answer


def f1(text: str, golds: Sequence[str], options: Options) -> tuple[float, str]:
    """``f1``: the best of the golds that have words, rounded."""
    dropped = {"", *normal_forms.inspect_words(options["stop_words"] or ())}

    def kept(value: str) -> list[str]:
        words = normal_forms.inspect_words(normal_forms.words_of(value))
        return " ".join(word for word in words if word not in dropped).split()

    answer = kept(text)
    return round(max(token_f1(answer, kept(gold)) for gold in golds), _DIGITS), text


def pattern(text: str, golds: Sequence[str], options: Options) -> tuple[float, str]:
    """``pattern``: what a pattern finds is among the golds."""
    ignore_case = options["ignore_case"]
    found = compiled(options["pattern"], re.IGNORECASE if ignore_case else 0).search(text)
    if found is None:
        return 0.0, text
    parts = [part for part in found.groups() or (found[0],) if part is not None]
    targets = {gold.lower() if ignore_case else gold for gold in golds}
    hits = [part for part in parts if (part.lower() if ignore_case else part) in targets]
    if options["match_all"]:
        passes = bool(parts) and len(hits) == len(parts) and "".join(golds) != ""
    else:  # the first counts, and an empty one is no answer
        passes = bool(hits and hits[0])
    return float(passes), " ".join(parts) if parts else found[0]


def answer(text: str, golds: Sequence[str], options: Options) -> tuple[float, str]:
    """``answer``: what stands behind ``ANSWER:`` is among the golds."""
    named = INSPECT_ANSWER[options["pattern"]]
    return pattern(text, golds, {"pattern": named, "ignore_case": True, "match_all": False})


_UNWRAPPED = tuple((re.compile(pattern), new) for pattern, new in INSPECT_UNWRAPPED)
_CHOICES = tuple(map(re.compile, INSPECT_CHOICES))


def choice(text: str, golds: Sequence[str], options: Options) -> tuple[float, str]:
    """``choice`` on what ``multiple_choice`` reads of an answer."""
    count = options["choices"] if isinstance(options["choices"], int) else len(options["choices"])
    chosen = sorted(_index(mark) for mark in _chosen(text, count, several=options["multiple_correct"]))
    marks = [
        mark
        for gold in golds
        for token in gold.replace(",", " ").split()
        for mark in ([token] if token.isnumeric() else token)
    ]
    places = sorted(map(_index, marks))
    if any(place >= count for place in places):
        raise ValueError(f"the gold has choices beyond the {count} of the task")
    return float(chosen == places), ", ".join(map(_letter, chosen))


def _chosen(text: str, count: int, *, several: bool) -> set[str]:
    for pattern, new in _UNWRAPPED:
        text = pattern.sub(new, text)
    found = next((matches for pattern in _CHOICES if (matches := pattern.findall(text))), None)
    if found is None:
        return set()
    marks, allowed = found[-1].strip().rstrip(".").upper(), {*map(_letter, range(count))}
    if not several:
        tokens = [token for token in marks.split(",") if token]
        return {*tokens} if len(tokens) == 1 and tokens[0] in allowed else set()
    marks = marks.replace(" AND ", ",").replace(" ", "")
    for read in ({token for token in marks.split(",") if token}, {*marks}):
        if read <= allowed:
            return read
    return set()


_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _letter(index: int) -> str:
    """Return the mark of a choice: a letter, then numbers from 1."""
    return _LETTERS[index] if index < len(_LETTERS) else str(index - len(_LETTERS) + 1)


def _index(mark: str) -> int:
    if len(mark) == 1 and mark.upper() in _LETTERS:
        return _LETTERS.index(mark.upper())
    if mark.isnumeric():
        return len(_LETTERS) + int(mark) - 1
    raise ValueError(f"{mark!r} is no choice")
