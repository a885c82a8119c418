"""How what a check read relates to what it expected: the same in another form, or the gold with something around it."""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

from assay.steps.numbers import NUMBER, number_value, numbers_in

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
_DIGITS = frozenset("0123456789")
_LONGEST, _LONGEST_CONTAINING, _SHORTEST_PART = 2_000, 200, 3


@lru_cache(maxsize=4_096)
def folded(text: str) -> str:
    """Return a text without what is form only: NFKC, case folded, single blanks."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


@lru_cache(maxsize=4_096)
def unwrapped(text: str) -> str:
    r"""Return a text without blanks, punctuation and ``\boxed{`` around it."""
    text = text[_front(text) :]
    end = len(text)
    while end and _BACK.match(text, end - 1):
        end -= 1
    return text[:end]


def _front(text: str) -> int:
    match = _FRONT.match(text)
    return match.end() if match else 0


@lru_cache(maxsize=4_096)
def number_of(text: str) -> float | None:
    """Return the value of a text that is a number, apart from what is around it; None if it is none."""
    inner = unwrapped(text)
    return number_value(inner) if NUM.fullmatch(f" {inner}") else None


def bounded(text: str, gold: str) -> Iterator[tuple[int, int]]:
    """Yield where a gold occurs by itself, not within a longer word or number: starts and ends, none overlapping."""
    starts_digit, ends_digit = gold[:1] in _DIGITS, gold[-1:] in _DIGITS
    at = text.find(gold) if gold else -1
    while at >= 0:
        end = at + len(gold)
        alone = not (text[max(at - 1, 0) : at].isalnum() or text[end : end + 1].isalnum())
        alone = alone and not (starts_digit and _LEADS_ON.search(text[max(at - 2, 0) : at]))
        alone = alone and not (ends_digit and _GOES_ON.match(text, end))
        if alone:
            yield at, end
        at = text.find(gold, end if alone else at + 1)


def occurrences(text: str, gold: str) -> Iterator[tuple[int, int]]:
    """Yield where a gold occurs by itself; of a gold that is a number, every number of its value."""
    value = number_of(gold)
    if value is None:
        return bounded(text, gold)
    return ((start, end) for start, end in numbers_in(text) if number_value(text[start:end]) == value)


def near(read: str, *golds: str) -> str | None:
    """Return the first of ``RELATIONS`` in which what was read stands to one of the golds; None if there is none."""
    relations = {_relation(read, gold) for gold in golds}
    return next((relation for relation in RELATIONS if relation in relations), None)


def _relation(read: str, gold: str) -> str | None:
    form, gold_form = folded(read), folded(gold)
    if not (form and gold_form):
        return None
    if form == gold_form:
        return "form"
    inner, gold_inner = folded(unwrapped(read)), folded(unwrapped(gold))
    if inner and inner == gold_inner:
        return "wrapped"
    value, gold_value = number_of(read), number_of(gold)
    if value is not None and gold_value is not None:
        decimals = [len("".join(_DECIMALS.findall(unwrapped(text)))) for text in (read, gold)]
        return _relation_of_numbers(value, gold_value, decimals)
    if around := _around(read, form, gold_inner):
        return around
    is_part = len(inner) >= _SHORTEST_PART and value is None and any(bounded(gold_form, inner))
    return "part" if is_part else None


def _relation_of_numbers(value: float, gold: float, decimals: list[int]) -> str | None:
    if value == gold:
        return "number"
    fewer = min(decimals)
    return "rounded" if decimals[0] != decimals[1] and f"{value:.{fewer}f}" == f"{gold:.{fewer}f}" else None


def _around(read: str, form: str, gold: str) -> str | None:
    if len(read) > _LONGEST or not gold:
        return None
    places = [*occurrences(form, gold)]
    if any(not unwrapped(form[:start]) for start, _ in places):
        return "begins"
    if any(not unwrapped(form[end:]) for _, end in places):
        return "ends"
    return "contains" if places and len(read) <= _LONGEST_CONTAINING else None
