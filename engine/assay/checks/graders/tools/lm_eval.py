"""Graders of lm-eval 0.4.13: the metric ``exact_match`` behind filters, and metrics of tasks."""

import re
import sys
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from assay.checks.graders.tools.patterns import GSM8K_ANSWER, compiled
from assay.checks.similarity.overlap import f1_of
from assay.values.normal_forms import NO_DIGITS, NO_PUNCTUATION, drop, hendrycks, hendrycks_box, is_number

Options = Mapping[str, Any]

INVALID = "[invalid]"
"""What a filter gives where its pattern finds nothing, by default."""
GSM8K = {"strict-match": (GSM8K_ANSWER, 0), "flexible-extract": (r"(-?[$0-9.,]{2,})|(-?[0-9]+)", -1)}
"""Pattern of each filter of the task, and which of its matches counts."""
GSM8K_IGNORED = (",", r"\$", r"(?s).*#### ", r"\.$")
NQ_OPEN_IGNORED = (r"\b(?:The |the |An |A |The |a |an )",)


def array(texts: Sequence[str], change: Callable[[str], str]) -> list[str]:
    """Return texts changed as numpy changes an array of text: none gets longer than the longest was; last NULs are lost."""
    width = max(map(len, texts))
    return [change(text)[:width].rstrip("\0") for text in texts]


def comparable(texts: Sequence[str], options: Options) -> list[str]:
    """Return texts as ``exact_match`` compares them."""
    for pattern in options.get("regexes_to_ignore") or ():
        texts = [compiled(pattern).sub("", text).rstrip("\0") for text in texts]
    if options.get("ignore_case"):
        texts = array(texts, str.lower)
    if options.get("ignore_punctuation"):
        texts = array(texts, lambda text: text.translate(NO_PUNCTUATION))
    if options.get("ignore_numbers"):
        texts = array(texts, lambda text: text.translate(NO_DIGITS))
    return [text.rstrip("\0") for text in texts]


def equal(text: str, golds: Sequence[str], options: Options) -> tuple[float, str]:
    """``exact_match`` of a text with any of the golds."""
    (answer,) = comparable([text], options)
    return float(answer in comparable(golds, options)), text


def exact_match(text: str, golds: Sequence[str], options: Options) -> tuple[float, str]:
    """``exact_match`` behind filters."""
    answer: str | None = text
    for step in options["filter_list"] or ():
        if answer is None:
            raise TypeError(f"{step['function']} follows a map without a value for the text")
        answer = FILTERS[step["function"]](answer, step, options)
    return (0.0, text) if answer is None else equal(answer, golds, options)


def found(pattern: re.Pattern[str], text: str, at: int) -> str | None:
    """Return one of the matches, of a tuple its first part that is not empty, stripped; None if there is none."""
    matches = pattern.findall(text)
    if not matches:
        return None
    match = matches[at]
    part = next(filter(None, match), None) if isinstance(match, tuple) else match
    return None if part is None else part.strip()


def _regex(text: str, step: Options, _: Options) -> str:
    pattern = compiled(step.get("regex_pattern", GSM8K["strict-match"][0]))
    fallback: str = step.get("fallback", INVALID)
    matches = pattern.findall(text)
    if not matches:
        return fallback
    match = matches[step.get("group_select", 0)]
    return (next(filter(None, match), fallback) if isinstance(match, tuple) else match).strip()


def _map(text: str, step: Options, _: Options) -> str | None:
    value = step.get("mapping_dict", {}).get(text, step.get("default_value"))
    return value if isinstance(value, str) else None  # anything else equals no text


@cache
def _no_punctuation() -> dict[int, None]:
    return dict.fromkeys(code for code in range(sys.maxunicode) if unicodedata.category(chr(code)).startswith("P"))


def _multi_choice(text: str, step: Options, options: Options) -> str:
    choices, at = options["choices"], step.get("group_select", 0)
    if not isinstance(choices, list):
        raise ValueError("multi_choice_regex needs `choices`, the texts of the choices")

    def changed(value: str) -> str:
        for pattern in step.get("regexes_to_ignore") or ():
            value = compiled(pattern).sub("", value)
        value = value.lower() if step.get("ignore_case") else value
        return value.translate(_no_punctuation()) if step.get("ignore_punctuation") else value

    letters = [chr(ord("A") + number) for number in range(len(choices))]
    texts = {changed(choice.strip()): f"({letter})" for choice, letter in zip(choices, letters, strict=True)}
    escaped = [re.escape(changed(choice.strip())) for choice in choices]
    by_text = re.compile("|".join(sorted(escaped, key=len, reverse=True)))
    by_letter = re.compile(rf":[\s]*({'|'.join(letters)})")
    named = {letter: f"({letter})" for letter in letters}
    pattern = compiled(step.get("regex_pattern", GSM8K["strict-match"][0]))
    for search, subject, table in ((pattern, text, {}), (by_text, changed(text), texts), (by_letter, text, named)):
        if match := found(search, subject, at):
            return table.get(match, match)
    return str(step.get("fallback", INVALID))


FILTERS: dict[str, Callable[[str, Options, Options], str | None]] = {
    "regex": _regex,
    "multi_choice_regex": _multi_choice,
    "remove_whitespace": lambda text, _, __: text.strip(),
    "lowercase": lambda text, _, __: text.lower(),
    "uppercase": lambda text, _, __: text.upper(),
    "map": _map,
    "take_first": lambda text, _, __: text,
}
"""The filters that give one answer for one, by name."""
FILTER_OPTIONS: dict[str, tuple[str, ...]] = {
    "regex": ("regex_pattern", "group_select", "fallback"),
    "multi_choice_regex": (
        *("regex_pattern", "group_select", "fallback"),
        *("ignore_case", "ignore_punctuation", "regexes_to_ignore"),
    ),
    "map": ("mapping_dict", "default_value"),
}
"""What they take; the others take nothing."""


def triviaqa(text: str, golds: Sequence[str], _: Options) -> tuple[float, str]:
    """The metric of ``triviaqa``."""
    return equal(text.strip(), golds, {"ignore_case": True, "ignore_punctuation": True})


def nq_open(text: str, golds: Sequence[str], _: Options) -> tuple[float, str]:
    """The metric of ``nq_open``."""
    ignored = {"ignore_case": True, "ignore_punctuation": True, "regexes_to_ignore": NQ_OPEN_IGNORED}
    return equal(text.strip(), golds, ignored)


def hendrycks_math(text: str, gold: str, _: Options) -> tuple[float, str]:
    """The metric of ``hendrycks_math``; the gold is the answer, which the task reads from the box of a solution."""
    first, last = text.find("$"), text.rfind("$")
    answer = text[first + 1 : last] if first < last else text
    if (target := hendrycks_box(rf"\boxed{{{gold}}}")) is None:
        raise ValueError("the gold does not fit in a box")
    return float(_same_latex(answer, target)), answer


def _same_latex(answer: str, target: str) -> bool:
    """Return whether two answers have one form; where the task's code raises, whether they are the same."""
    forms = [*map(_slashed, (answer, target))]
    return answer == target if None in forms else forms[0] == forms[1]


def _slashed(text: str) -> str | None:
    """Return the form of an answer; None where the task's code raises, also at ``x/y``."""
    form = hendrycks(text)
    if form.startswith("\0"):
        return None
    parts = form.split("/")
    if len(parts) == 2 and not all(map(_is_int, parts)):  # noqa: PLR2004
        return None
    return form


def _is_int(text: str) -> bool:
    try:
        int(text)
    except ValueError:
        return False
    return True


def drop_metric(text: str, golds: Sequence[Sequence[str]], options: Options) -> tuple[float, str]:
    """The metrics of ``drop``: a gold is a list of spans."""
    answer = drop(text)
    scores = [
        _drop_em(answer, [*map(drop, spans)]) if options["metric"] == "em" else drop_f1(answer, [*map(drop, spans)])
        for spans in golds
        if spans and spans[0].strip()
    ]
    return max(scores, default=0.0), text


def _drop_em(answer: str, spans: Sequence[str]) -> float:
    return float([answer] == [*spans])


def drop_f1(answer: str, spans: Sequence[str], percent: float = 1.0) -> float:
    """Return the mean F1 of a text and spans in their best pairs, to two digits as numpy rounds; ``percent`` scales it before."""
    words = {*answer.split()}
    bags = [{*span.split()} for span in spans]
    best = max(_bag_f1(words, bag) * percent if _numbers_agree(words, bag) else 0.0 for bag in bags)
    return round(best / len(bags) * 100) / 100


def _bag_f1(answer: set[str], gold: set[str]) -> float:
    return f1_of(len(gold & answer), len(answer), len(gold)) if answer or gold else 1.0


def _numbers_agree(answer: set[str], gold: set[str]) -> bool:
    numbers = {word for word in gold if is_number(word)}
    return not numbers or not numbers.isdisjoint(answer)
