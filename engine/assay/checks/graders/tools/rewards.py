"""Rewards of trainers that read text alone: TRL 1.16.0, open-r1 at 1416fa0, verl 0.9.1."""

import re
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from assay.checks.graders.tools.patterns import GSM8K_ANSWER
from assay.values.normal_forms import braced, hendrycks, hendrycks_box, minerva, squad

Options = Mapping[str, Any]


def _length(value: Any) -> int:
    """Return how many tokens a row has: a number, or the tokens."""
    return len(value) if isinstance(value, list) else int(value)


def _repeated(items: Sequence[Hashable], size: int, penalty: float) -> float:
    total = len(items) - size + 1
    if total < 1:
        return 0.0
    distinct = {*zip(*(items[start:] for start in range(size)), strict=False)}
    share = 1 - len(distinct) / total
    return share * penalty if share else 0.0


def token_repetition(_: str, options: Options) -> tuple[float, str]:
    """TRL's penalty for repeated n-grams of tokens."""
    return _repeated(options["token_ids"], options["ngram_size"], options["max_penalty"]), ""


def word_repetition(text: str, options: Options) -> tuple[float, str]:
    """open-r1's penalty for repeated n-grams of words."""
    return _repeated(text.lower().split(), options["ngram_size"], options["max_penalty"]), text


def soft_overlong(_: str, options: Options) -> tuple[float, str]:
    """TRL's penalty for completions that are too long."""
    length, most, cache = _length(options["tokens"]), options["max_completion_len"], options["soft_punish_cache"]
    if length <= most - cache:
        return 0.0, ""
    return ((most - cache - length) / cache if length <= most else -1.0), ""


_TAGS = ("<think>\n", "\n</think>\n", "\n<answer>\n", "\n</answer>")
_STEP = re.compile(r"Step \d+:|^\d+\.|\n-|\n\*|First,|Second,|Next,|Finally,")
_STEPS = 3


def tag_count(text: str, _: Options) -> tuple[float, str]:
    """open-r1's quarter for each tag that occurs once."""
    return sum(0.25 for tag in _TAGS if text.count(tag) == 1), text


def reasoning_steps(text: str, _: Options) -> tuple[float, str]:
    """open-r1's share of three steps."""
    return min(1.0, sum(1 for _ in _STEP.finditer(text)) / _STEPS), text


_TAIL, _BOX_TAIL = 300, 100
_STRICT = re.compile(GSM8K_ANSWER)
_NUMBER = re.compile(r"-?[0-9.,]+")
_ANSWER = re.compile(r"(?i)Answer\s*:\s*([^\n]+)")
_NO_ANSWER = "[INVALID]"


def verl_gsm8k(text: str, gold: str, options: Options) -> tuple[float, str]:
    """Verl's ``gsm8k``."""
    tail = text[-_TAIL:]
    if options["method"] == "strict":
        found = _STRICT.findall(tail)
        answer = found[-1].replace(",", "") if found else None
    else:
        found = _NUMBER.findall(tail)
        answer = next((number for number in reversed(found) if number != "."), found[0] if found else None)
    if answer is None:
        return 0.0, tail
    return float(options["score"] if answer == gold else options["format_score"]), answer


def math_reward(text: str, gold: str, _: Options) -> tuple[float, str]:
    """Verl's ``math_reward``."""
    answer = hendrycks_box(text)
    if answer is None:
        return 0.0, text
    return float(hendrycks(answer) == hendrycks(gold)), answer


def math_dapo(text: str, gold: str, options: Options) -> tuple[float, str]:
    """Verl's ``math_dapo``: 1.0 or -1.0."""
    tail = text[-_TAIL:]
    if not options["strict_box_verify"]:
        found = _ANSWER.findall(tail)
        answer = minerva(found[-1] if found else _NO_ANSWER, "verl")
        if answer != _NO_ANSWER:
            return (1.0 if answer == minerva(gold, "verl") else -1.0), answer
    last = tail[-_BOX_TAIL:]
    start = last.rfind(r"\boxed{")
    box = braced(last, start) if start >= 0 else None
    if box is not None:
        content = box[len(r"\boxed{") : -1]
        return (1.0 if content == gold else -1.0), content
    same = not options["strict_box_verify"] and minerva(gold, "verl") == _NO_ANSWER
    return (1.0 if same else -1.0), tail


_TAGGED = re.compile(r"<answer>(.*?)</answer>", re.DOTALL)
_MANY_TAGS = 10


def search_r1(text: str, golds: Sequence[str], options: Options) -> tuple[float, str]:
    """Verl's ``search_r1_like_qa_em``."""
    found = last_tagged(text)
    if found is None:
        return 0.0, text
    answer, score = squad(found), options["score"]
    targets = [*map(squad, golds)]
    if options["match"] == "subem":
        return float(score if any(target in answer for target in targets) else options["format_score"]), found
    if answer not in targets:
        return float(options["format_score"]), found
    many = max(text.count(tag) for tag in ("<answer>", "</answer>")) > _MANY_TAGS
    return float(score / 4 if many else score), found


def last_tagged(text: str) -> str | None:
    """Return what stands in the last ``<answer>…</answer>`` that a search from the start finds, stripped."""
    if "</answer>" not in text:
        return None
    text = text[: text.rfind("</answer>") + len("</answer>")]  # else every further tag is searched to the end
    found = _TAGGED.findall(text)
    return found[-1].strip() if found else None
