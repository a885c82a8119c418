"""Graders of OpenAI's evals at 4bfc1f5, and of simple-evals at ee3b031."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from assay.checks.graders.tools.lm_eval import drop_f1
from assay.checks.similarity.overlap import token_f1
from assay.values.normal_forms import drop, squad
from assay.values.word_lists import MMLU_LETTER, MMLU_MARKS, MMLU_WORDS

Options = Mapping[str, Any]


def fuzzy_match(text: str, gold: str, options: Options) -> tuple[float, str]:
    """``FuzzyMatch``: one side contains the other; or F1 of their words."""
    answer, target = squad(text), squad(gold)
    if options["metric"] == "f1_score":
        return token_f1(answer.split(), target.split()), text
    return float(_contain(answer, target)), text


def _contain(answer: str, target: str) -> bool:
    return answer == target if not (answer and target) else answer in target or target in answer


def json_match(text: str, gold: str, _: Options) -> tuple[float, str]:
    """``JsonMatch``: equal item by item, in which a null never matches."""
    try:
        answer = json.loads(text)
    except ValueError:
        answer = None
    try:
        target = json.loads(gold)
    except ValueError as error:
        raise ValueError(f"the gold is no JSON: {error}") from None
    return float(_same(answer, target)), text


def _same(answer: Any, target: Any) -> bool:
    if answer is None or target is None:
        return False
    if isinstance(answer, dict):
        keys = {**answer, **target} if isinstance(target, dict) else {}
        return isinstance(target, dict) and all(_same(answer.get(key), target.get(key)) for key in keys)
    if isinstance(answer, list):
        is_list = isinstance(target, list) and len(answer) == len(target)
        return is_list and all(map(_same, answer, target))
    return bool(answer == target)


_WORDS = tuple((word.isascii(), re.compile(f"(?i){word}{MMLU_LETTER}")) for word in MMLU_WORDS)
_MARKED = re.compile(f"(?i)[{''.join(dict.fromkeys(word[-1] for word in MMLU_WORDS))}]{MMLU_LETTER}")
"""How each word ends, and the letter: without it none is searched for."""
_LATIN = {
    letter: latin
    for latin, letters in {  # of Arabic, of Bengali, wide: in numbers, as some look alike
        "A": "\u0623\u0985\uff21",
        "B": "\u0628\u09ac\uff22",
        "C": "\u062c\u09a1\uff23",
        "D": "\u062f\u09a2\uff24",
    }.items()
    for letter in letters
}


def mmlu(text: str, gold: str, _: Options) -> tuple[float, str]:
    """``mmlu``: the letter behind a word for "answer" in many languages."""
    for mark in MMLU_MARKS:
        text = text.replace(mark, "")
    words = _WORDS if _MARKED.search(text) else ()
    only_ascii = text.isascii()  # no word with another character folds to it
    searched = (word.search(text) for is_ascii, word in words if is_ascii or not only_ascii)
    found = next(filter(None, searched), None)
    letter = "" if found is None else found[1]
    for other, latin in _LATIN.items():
        letter = letter.replace(other, f" {latin}")
    return float(letter.strip() == gold) if found is not None else 0.0, letter.strip() or text


_DECIMAL = re.compile(r"\d+\.?\d*")


def mgsm(text: str, gold: str, options: Options) -> tuple[float, str]:
    """``mgsm``: the last number behind the last prefix."""
    _, prefix, rest = text.rpartition(options["prefix"])
    numbers = _DECIMAL.findall(rest.strip().replace(",", "")) if prefix else []
    answer = numbers[-1].rstrip(".") if numbers else ""
    if "." in answer:
        answer = answer.rstrip("0").rstrip(".")
    return float(gold.replace(",", "") == answer), answer or text


_ANSWER = re.compile(r"(?i)Answer\s*:\s*([^\n]+)")


def drop_eval(text: str, golds: Sequence[str], options: Options) -> tuple[float, str]:
    """``drop``: the answer of a line contains a gold, or the other way round; or DROP's metrics."""
    match = _ANSWER.search(text)
    answer = text if match is None else match[1]
    if options["metric"] == "score":
        return float(any(_contain(squad(answer), squad(gold)) for gold in golds)), answer
    pairs = [(drop(answer), drop(gold)) for gold in golds if gold.strip()]
    if not pairs:
        raise ValueError("every gold is blank")
    if options["metric"] == "em":
        return max(float(mine == gold) for mine, gold in pairs), answer
    return max(drop_f1(mine, [gold], 100.0) for mine, gold in pairs) / 100.0, answer
