"""How what a check read relates to what it expected: the same in another form, or the gold with something around it."""

import re
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

from assay.steps.numbers import NUMBER, number_value, numbers_in
from assay.system.cache import cached_within

RELATIONS = ("form", "wrapped", "number", "rounded", "begins", "ends", "contains", "part")
"""In the order in which they count."""

NUM = re.compile(NUMBER)
"""A number as the checks read it, with the character before it."""

_AROUND = "$*_`\"'“”‘’()[]{}<>.,;:!?…"
_COMMANDS = r"\\boxed\{|\\text\{|\\mathrm\{|\\mathbf\{"
_FRONT = re.compile(rf"(?:(?!\$?\.[0-9])[\s{re.escape(_AROUND)}]|{_COMMANDS})*+")
_BACK = re.compile(rf"[\s{re.escape(_AROUND)}]")
_DECIMALS = re.compile(r"\.([0-9]+)")
_LEADS_ON = re.compile(r"(?:[0-9][.,]|\.|(?:\A|[^0-9A-Za-z_)])[-\u2212])\Z")
_GOES_ON = re.compile(r"[.,][0-9]")
_WORD = re.compile(r"[^\W_]*+")
_DIGITS = frozenset("0123456789")
_LONGEST, _LONGEST_CONTAINING, _SHORTEST_PART = 2_000, 200, 3
_GOLD_BYTES = 8_000_000
"""Maximum size of the golds whose forms are kept."""


def folded(text: str) -> str:
    """Return a text without what is form only: NFKC, case folded, single blanks."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def unwrapped(text: str) -> str:
    r"""Return a text without blanks, punctuation and ``\boxed{`` around it."""
    front = _FRONT.match(text)
    start, end = front.end() if front else 0, len(text)
    while end > start and _BACK.match(text, end - 1):
        end -= 1
    return text[start:end]


class _Forms(NamedTuple):
    """A text as it is compared: folded, folded without what is around it, and its value if that is a number."""

    folded: str
    inner: str
    value: float | None
    decimals: int


def _forms(text: str) -> _Forms:
    whole, inner = folded(text), unwrapped(text)
    value = number_value(inner) if NUM.fullmatch(f" {inner}") else None
    decimals = _DECIMALS.search(inner) if value is not None else None
    return _Forms(whole, whole if inner == text else folded(inner), value, len(decimals[1]) if decimals else 0)


_gold_forms = cached_within(_GOLD_BYTES, lambda _, gold: 200 + 8 * len(gold))(_forms)


def bounded(text: str, gold: str) -> Iterator[tuple[int, int]]:
    """Yield where a gold occurs by itself, not within a longer word or number: starts and ends, none overlapping."""
    starts_digit, ends_digit = gold[:1] in _DIGITS, gold[-1:] in _DIGITS
    at = text.find(gold) if gold else -1
    while at >= 0:
        end = go_on = at + len(gold)
        if text[max(at - 1, 0) : at].isalnum():
            go_on = _end_of_word(text, at)  # nothing begins by itself within a word
        elif (
            text[end : end + 1].isalnum()
            or (starts_digit and _LEADS_ON.search(text[max(at - 2, 0) : at]))
            or (ends_digit and _GOES_ON.match(text, end))
        ):
            go_on = at + 1
        else:
            yield at, end
        at = text.find(gold, go_on)


def _end_of_word(text: str, at: int) -> int:
    match = _WORD.match(text, at)
    return max(match.end() if match else at, at + 1)


def occurrences(text: str, gold: str) -> Iterator[tuple[int, int]]:
    """Yield where a gold occurs by itself; of a gold that is a number, every number of its value."""
    value = _gold_forms(gold).value
    return bounded(text, gold) if value is None else _numbers(text, value)


def _numbers(text: str, value: float) -> Iterator[tuple[int, int]]:
    written = {*NUM.findall(f" {text}")}
    if all(
        number_value(number[1:]) != value for number in written
    ):  # as in most texts: places would take twice as long
        return iter(())
    return (place for place, other in numbers_in(text) if other == value)


def near(read: str, *golds: str) -> str | None:
    """Return the first of ``RELATIONS`` in which what was read stands to one of the golds; None if there is none."""
    forms = _forms(read)
    relations = {_relation(read, forms, _gold_forms(gold)) for gold in golds}
    return next((relation for relation in RELATIONS if relation in relations), None)


def _relation(read: str, one: _Forms, gold: _Forms) -> str | None:
    if not (one.folded and gold.folded):
        return None
    if one.folded == gold.folded:
        return "form"
    if one.inner and one.inner == gold.inner:
        return "wrapped"
    if one.value is not None and gold.value is not None:
        return _relation_of_numbers(one, gold)
    if around := _around(read, one.folded, gold):
        return around
    is_part = len(one.inner) >= _SHORTEST_PART and one.value is None
    return "part" if is_part and any(True for _ in bounded(gold.folded, one.inner)) else None


def _relation_of_numbers(one: _Forms, gold: _Forms) -> str | None:
    if one.value == gold.value:
        return "number"
    fewer = min(one.decimals, gold.decimals)
    is_rounded = one.decimals != gold.decimals and f"{one.value:.{fewer}f}" == f"{gold.value:.{fewer}f}"
    return "rounded" if is_rounded else None


def _around(read: str, folded_read: str, gold: _Forms) -> str | None:
    if len(read) > _LONGEST or not gold.inner:
        return None
    if gold.value is not None and len(read) > _LONGEST_CONTAINING:
        return _at_an_end(folded_read, gold.value)
    places = [*(bounded(folded_read, gold.inner) if gold.value is None else _numbers(folded_read, gold.value))]
    if any(not unwrapped(folded_read[:start]) for start, _ in places):
        return "begins"
    if any(not unwrapped(folded_read[end:]) for _, end in places):
        return "ends"
    return "contains" if places and len(read) <= _LONGEST_CONTAINING else None


def _at_an_end(text: str, value: float) -> str | None:
    """Return how a text begins or ends with a number: only its first and its last can have no other beside them."""
    (start, _), first = next(numbers_in(text), ((0, 0), None))
    if first == value and not unwrapped(text[:start]):
        return "begins"
    last = 1 + max(map(text.rfind, _DIGITS))
    if unwrapped(text[last:]):
        return None
    at = text.rfind(" ", 0, last) + 1  # a number has no blank but before it
    return "ends" if any(at + end == last and other == value for (_, end), other in numbers_in(text[at:])) else None
