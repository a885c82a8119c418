"""Phrases, letters of choices and lists as texts write them, and what is nearly these."""

from collections import Counter
from collections.abc import Iterator, Sequence

from assay.insight.forging.made import MARKS, SPACES, Made, Wrap

_DRESS = '*"`. \t\r\n'


def phrase_of(text: str) -> str:
    """Return a phrase as it is read: nothing of its dress around it, in lower case, with single spaces."""
    return " ".join(text.strip(_DRESS).lower().split())


def phrase_cases(gold: str, wrap: Wrap, *, is_cased: bool) -> Iterator[Made]:
    """Yield a phrase as texts write it, and what is nearly it; ``is_cased`` where the case of letters matters."""
    phrase = phrase_of(gold)
    forms = {"plain": gold}
    if not is_cased:
        forms |= {"upper": gold.upper(), "lower": gold.lower(), "swapped_case": gold.swapcase()}
    forms |= {form: f"{start}{gold}{end}" for form, (start, end) in MARKS.items()}
    start, end = SPACES["padded"]
    forms |= {"full_stop": f"{gold}.", "padded": f"{start}{gold}{end}"}
    yield from (Made(form, "form", wrap(text)) for form, text in forms.items() if phrase_of(text) == phrase)
    yield from (Made(form, "near", wrap(text)) for form, text in _near(gold) if phrase_of(text) != phrase)


def _near(gold: str) -> Iterator[tuple[str, str]]:
    if places := [at for at, char in enumerate(gold) if char.isascii() and char.isalnum()]:
        at = places[len(places) // 2]
        before, char, after = gold[:at], gold[at], gold[at + 1 :]
        following = {"z": "a", "Z": "A", "9": "0"}.get(char, chr(ord(char) + 1))
        yield from (("letter", before + following + after), ("doubled", before + char * 2 + after))
        yield "dropped", before + after
    for at in range(len(gold) - 1):
        if gold[at] != gold[at + 1]:
            yield "transposed", gold[:at] + gold[at + 1] + gold[at] + gold[at + 2 :]
            break
    yield "negated", f"not {gold}"


_CHOICES = {
    "plain": "{}",
    "paren": "({})",
    "dot": "{}.",
    "close": "{})",
    "bold": "**{}**",
    "boxed": r"\boxed{{{}}}",
    "answer_is": "The answer is {}.",
    "answer": "Answer: {}",
    "bold_answer": "**Answer: ({})**",
    "option": "Option {}",
}


def choice_cases(letter: str, letters: str, wrap: Wrap) -> Iterator[Made]:
    """Yield the letter of a choice as texts write it, and the next letter written so."""
    following = letters[(letters.upper().index(letter) + 1) % len(letters)].upper()
    yield from (Made(form, "form", wrap(text.format(letter))) for form, text in _CHOICES.items())
    if following != letter:
        yield from (Made(form, "near", wrap(text.format(following))) for form, text in _CHOICES.items())


def list_cases(items: Sequence[str], sep: str, how: str, wrap: Wrap) -> Iterator[Made]:
    """Yield a list as texts write it, and what is nearly it; ``how`` is the param ``as``."""
    if not items or any(sep in item or item != item.strip() or not item for item in items):
        return

    def is_equal(text: str) -> bool:
        found = [item.strip() for item in text.split(sep)]
        if how == "list":
            return found == [*items]
        if how == "set":
            return {*found} == {*items}
        return Counter(found) >= Counter(items) if how == "subset" else Counter(found) == Counter(items)

    def joined(parts: Sequence[str]) -> str:
        return f"{sep} ".join(parts)

    plain = joined(items)
    texts = {"plain": plain, "tight": sep.join(items), "padded": f" \n{plain}\n "}
    changed = {
        "missing_item": joined(items[1:]),
        "extra_item": joined([*items, "extra"]),
        "changed_item": joined([f"{items[0]}x", *items[1:]]),
        "reversed": joined(items[::-1]),
        "repeated": joined([*items, items[0]]),
    }
    forms = texts | {form: changed[form] for form in ("reversed", "repeated")}
    yield from (Made(form, "form", wrap(text)) for form, text in forms.items() if is_equal(text))
    yield from (Made(form, "near", wrap(text)) for form, text in changed.items() if not is_equal(text))
