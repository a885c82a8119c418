r"""Normal forms of texts, in Python alone: what normalizers and graders compare.

Sources: SQuAD's ``evaluate-v2.0.py``; Inspect 0.3.285; DROP's evaluation in lm-eval 0.4.13; lighteval 0.13.0; Hendrycks' MATH; appendix D
of Lewkowycz et al. (2022) as verl 0.9.1 and lm-eval 0.4.13 have it.
"""

import math
import re
import string
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial, wraps

from assay.values.word_lists import MINERVA_REMOVED, MINERVA_SUBSTITUTIONS

NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
NO_DIGITS = str.maketrans("", "", string.digits)
ENDS = string.whitespace + string.punctuation
"""What stands around a word or a number for Inspect."""

_PUNCTUATION = string.punctuation.encode()
_BESIDE_WORDS = _PUNCTUATION + bytes(code for code in (*range(32), 127) if not chr(code).isspace())
"""ASCII that is neither in words, as Python's patterns see them, nor whitespace."""
_ARTICLES = frozenset(("a", "an", "the"))
_ARTICLE = re.compile(r"(?:a(?<!\wa)n?|t(?<!\wt)he)\b")
"""Matches articles: faster than with ``\\b`` before them, as it begins with one of two letters."""
_INFINITE = frozenset(("inf", "infinity", "nan"))
_DIGIT = re.compile(r"\d")
_SPELLINGS = (
    ("\n", ""),
    (r"\!", ""),
    ("\\\\", "\\"),
    ("tfrac", "frac"),
    ("dfrac", "frac"),
    (r"\left", ""),
    (r"\right", ""),
    (r"^{\circ}", ""),
    (r"^\circ", ""),
    (r"\$", ""),
)
_BARE_SPELLINGS = tuple(each for each in _SPELLINGS if "\\" not in each[0])
_LONGEST_NAME = 2
_ROOT = re.compile(r"\\sqrt(?!\\sqrt)([^{])")
_WHOLE = "(0|-?[1-9][0-9]*)"
_RATIO = re.compile(rf"\A{_WHOLE}/{_WHOLE}\Z")
_FRACTION = r"\frac"
_UNREADABLE = "\0"
"""What a form begins with that equals no other than that of the same text."""


def without_punctuation(text: str) -> str:
    """Return a text without ASCII punctuation."""
    try:  # bytes beyond ASCII are never those of a character of ASCII: up to twenty times as fast as `str.translate`
        return text.encode().translate(None, _PUNCTUATION).decode()
    except UnicodeEncodeError:  # a lone surrogate
        return text.translate(NO_PUNCTUATION)


def without_articles(text: str) -> str:
    """Return a text without English articles, with single spaces."""
    if text.isascii() and len(text.encode().translate(None, _BESIDE_WORDS)) == len(text):
        return " ".join([word for word in text.split() if word not in _ARTICLES])
    return " ".join(_ARTICLE.sub(" ", text).split())


def squad(text: str) -> str:
    """Lower, without ASCII punctuation and articles, with single spaces."""
    return without_articles(without_punctuation(text.lower()))


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def is_number(text: str) -> bool:
    """Return whether ``float`` takes a text."""
    return _number(text) is not None


_WORDS = 65_536
"""Words whose form is kept …"""
_LONGEST = 40
"""… up to this length."""


def by_word(form: Callable[[str], str]) -> Callable[[Sequence[str]], Iterator[str]]:
    """Make a function of a word one of words, which remembers the forms of short ones."""
    kept = lru_cache(_WORDS)(form)

    @wraps(form)
    def formed(words: Sequence[str]) -> Iterator[str]:
        if max(map(len, words), default=0) <= _LONGEST:
            return map(kept, words)
        return (kept(word) if len(word) <= _LONGEST else form(word) for word in words)

    return formed


@by_word
def inspect_words(word: str) -> str:
    """Return a word as Inspect compares it."""
    word = word.casefold()
    if word.isalpha():
        return "" if word in _ARTICLES else word
    if not _DIGIT.search(word):  # a finite number has a digit
        return without_articles(without_punctuation(word))
    for bare in (word, word.strip(ENDS), without_punctuation(word)):
        number = _number(bare)
        if number is not None and math.isfinite(number):
            return str(number)
    return without_articles(bare)


@by_word
def _drop_words(word: str) -> str:
    word = word.lower()
    return _as_number(word if word.isalpha() or is_number(word) else without_punctuation(word))


@by_word
def _lighteval_words(word: str) -> str:
    return _as_number(without_punctuation(word.lower()))


def _as_number(word: str) -> str:
    """Return the number that a word writes, or else the word, if it is no article."""
    if word.isalpha() and word not in _INFINITE:
        return "" if word in _ARTICLES else word
    number = _number(word)
    return without_articles(word) if number is None else str(number)


def words_of(text: str) -> list[str]:
    """Return what stands between spaces and hyphens."""
    return text.replace("-", " ").split(" ")


def inspect(text: str) -> str:
    """Word by word: casefold, numbers as floats, without ASCII punctuation, without articles."""
    return " ".join(filter(None, inspect_words(words_of(text))))


def drop(text: str) -> str:
    """Word by word: lower, numbers as floats, without ASCII punctuation, without articles."""
    return " ".join(filter(None, _drop_words(words_of(text))))


def lighteval(text: str) -> str:
    """Word by word: lower, without ASCII punctuation, then numbers as floats, without articles."""
    return " ".join(filter(None, _lighteval_words(words_of(text))))


def latex(text: str) -> str:
    """LaTeX of an answer in one spelling: fractions, roots and decimals, without units, spaces, degrees and dollars."""
    text = _respelled(text)
    has_commands = "\\" in text
    if has_commands:
        before, *unit = text.split(r"\text{ ")
        text = (before if len(unit) == 1 else text).replace(r"\%", "")
    text = text.replace(" .", " 0.").replace("{.", "{0.")
    text = f"0{text}" if text.startswith(".") else text
    name, *equal = text.split("=")
    text = equal[0] if len(equal) == 1 and len(name) <= _LONGEST_NAME else text
    text = _ROOT.sub(r"\\sqrt{\1}", text) if has_commands else text
    text = text.replace(" ", "")
    text = _braced_fractions(text) if has_commands else text
    text = r"\frac{1}{2}" if text == "0.5" else text
    return _RATIO.sub(r"\\frac{\1}{\2}", text) if "/" in text else text


def _respelled(text: str) -> str:
    for old, new in _SPELLINGS if "\\" in text else _BARE_SPELLINGS:
        text = text.replace(old, new)
    return text


def _braced_fractions(text: str) -> str:
    r"""Write ``\frac12`` as ``\frac{1}{2}``; leave a text with a fraction that ends early."""
    written, *fractions = text.split(_FRACTION)
    for fraction in fractions:
        if fraction.startswith("{"):
            written += _FRACTION + fraction
        elif len(fraction) < 2:  # noqa: PLR2004  (both parts of a fraction)
            return text
        else:
            below = "{" if fraction[1] == "{" else f"{{{fraction[1]}}}"
            written += f"{_FRACTION}{{{fraction[0]}}}{below}{fraction[2:]}"
    return written


def hendrycks(text: str) -> str:
    r"""``latex``, or the text as it is, marked, where Hendrycks' code raises: several units, or nothing behind a ``\sqrt`` or ``\frac``."""
    return latex(text) if _is_readable(text) else _UNREADABLE + text


def _is_readable(text: str) -> bool:
    if "\\" not in text:
        return True
    text = _respelled(text)
    before, *unit = text.split(r"\text{ ")
    if len(unit) > 1:
        return False
    text = before.replace(r"\%", "")
    name, *equal = text.split("=")
    text = equal[0] if len(equal) == 1 and len(name) <= _LONGEST_NAME else text
    roots = text.split(r"\sqrt")[1:]
    if not all(roots):
        return False
    for fraction in _ROOT.sub(r"\\sqrt{\1}", text).replace(" ", "").split(_FRACTION)[1:]:
        if not fraction:
            return False
        if len(fraction) == 1 and fraction != "{":
            return True
    return True


OPEN_BOX = "\\boxed "
"""A box without braces."""
_BRACE = re.compile("[{}]")


def braced(text: str, start: int) -> str | None:
    """Return a text from a place to the brace that closes the first one behind it; None if none does."""
    depth = 0
    for brace in _BRACE.finditer(text, start):
        depth += 1 if brace[0] == "{" else -1
        if not depth and brace[0] == "}":
            return text[start : brace.end()]
    return None


def hendrycks_box(text: str) -> str | None:
    r"""Return what stands in the last box as Hendrycks' code reads it; None if there is none, or it is not ``\boxed{…}``."""
    if OPEN_BOX in text:
        return text.rpartition(OPEN_BOX)[2].partition("$")[0]
    start = next((at for name in (r"\boxed", r"\fbox") if (at := text.rfind(name)) >= 0), -1)
    box = braced(text, start) if start >= 0 else None
    return box[len(r"\boxed{") : -1] if box is not None and box.startswith(r"\boxed{") else None


_IN_DOLLARS = re.compile(r"(.*?)(\$)(.*?)(\$)(.*)")
_IN_COMMAND = tuple(re.compile(rf"\\{name}\{{(.*?)\}}") for name in ("text", "textbf", "overline"))
_IN_BOX = re.compile(r"\\boxed\{(.*)\}")
_SHORT_FRACTION = re.compile(r"frac([^{])(.)")
_SHORT_ROOT = re.compile(r"sqrt([^{])")
_INDEXED_ROOT = re.compile(r"sqrt(\[[^\]]*\])(\w)")
_SHORT_SQUARE_ROOT = re.compile(r"sqrt(?!\[)([^{])")
_THOUSANDS = re.compile(r"-?\d{1,3}(?:,\d{3})+")
_COMMAND = re.compile(r"(\\[a-zA-Z]+)")
_LM_EVAL_REMOVED = tuple(unit for word in MINERVA_REMOVED for unit in ((word, "ft") if word == "inches" else (word,)))
_WHOLE_UNITS = tuple(re.compile(rf"(?<!\\)\b{unit}\b") for unit in _LM_EVAL_REMOVED if unit.isalpha())


def minerva(text: str, style: str) -> str:
    """The form of a quantitative answer by Minerva: without units, text and boxes, with braces in fractions and roots.

    Args:
        text: The answer.
        style: ``verl`` or ``lmEval``.
    """
    text = text.rpartition("=")[2]
    if style == "lmEval":
        for unit in _WHOLE_UNITS:
            text = unit.sub("", text)
    for old, new in MINERVA_SUBSTITUTIONS:
        text = text.replace(old, new)
    for old in _LM_EVAL_REMOVED if style == "lmEval" else MINERVA_REMOVED:
        text = _outside_commands(text, old) if style == "lmEval" and old.isalpha() else text.replace(old, "")
    text = _IN_DOLLARS.sub(r"$\3$", text)
    for command in _IN_COMMAND:
        text = command.sub(r"\1", text)
    text = _SHORT_FRACTION.sub(r"frac{\1}{\2}", _IN_BOX.sub(r"\1", text))
    if style == "lmEval":
        text = _SHORT_SQUARE_ROOT.sub(r"sqrt{\1}", _INDEXED_ROOT.sub(r"sqrt\1{\2}", text)).replace("$", "")
        return text.replace(",", "") if _THOUSANDS.fullmatch(text) else text
    text = _SHORT_ROOT.sub(r"sqrt{\1}", text).replace("$", "")
    bare = text.replace(",", "")
    return (bare if bare.isdigit() else text).strip()


def _outside_commands(text: str, old: str) -> str:
    if old not in text:
        return text
    pieces = _COMMAND.split(text)
    return "".join(piece if at % 2 else piece.replace(old, "") for at, piece in enumerate(pieces))


MINERVA = {style: partial(minerva, style=style) for style in ("verl", "lmEval")}
"""The forms of Minerva by style."""
