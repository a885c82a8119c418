r"""The letter of a multiple-choice answer, and a text split into items: the steps ``choice`` and ``split``.

The patterns of ``choice`` exist twice: as Python reads them, and with Python's own sets of characters written out, so that the
linear engine finds the same matches.
"""

import re
from functools import lru_cache
from typing import NamedTuple

import polars as pl
from pydantic import Field, field_validator

from assay.expressions.shared_columns import nulls
from assay.expressions.text import WHITESPACE, as_class, strip_expr
from assay.steps.base import Step, StepExample
from assay.steps.places import PlacedText
from assay.values.params import Params

_IGNORE_CASE = r"\(\?i:([^()]*)\)"
_BRACES = r"\\boxed\{|\\text\{|\\mathrm\{|\\mathbf\{"
_OPENING = r"""[\s*_`"'(\[{$]"""
_PATTERNS = (
    rf"(?i:answer|choice|option)(?i:\s+is|\s+are)?\s*+[:：]?(?:{_OPENING}|{_BRACES})*+([LETTERS])(?:[^0-9A-Za-z_]|\Z)",
    rf"\\boxed\{{(?:{_BRACES}|[(\s])*+([LETTERS])[)}}\s.:,]",
    rf"""\A{_OPENING}*+([LETTERS])(?:[).:,\]}}*_`"']|\s*+\Z)""",
    r"\(([LETTERS])\)",
    r"""(?:\A|\n)[ \t*_`"'(]*+([LETTERS])[)*_`"'.]*+\s*+\Z""",
)
"""In order: ``answer: B``, a box, the beginning of the text, ``(B)``, and a last line that is only the letter.

Letters are alphanumeric, so no repeat before one ever has to give back what it took: ``*+`` is ``*`` in linear time.
"""
_BOX = 1
_OTHER_CASES = "\u0130\u0131\u017f\u212a"
"""Code points beyond ASCII that ``re`` takes for another case of an ASCII letter."""


class _Patterns(NamedTuple):
    """The five patterns for a set of letters."""

    python: tuple[re.Pattern[str], ...]
    linear: tuple[str, ...]


@lru_cache(maxsize=256)
def _patterns(letters: str) -> _Patterns:
    escaped = "".join(map(re.escape, letters))
    python = [pattern.replace("LETTERS", escaped) for pattern in _PATTERNS]
    # a box without a letter is passed with all boxes in it, which would fail at the same place
    python[_BOX] = python[_BOX].replace("*+(", "*+(?:(") + ")?"
    linear = [_linear(pattern).replace("[LETTERS]", as_class(letters)) for pattern in _PATTERNS]
    return _Patterns(tuple(map(re.compile, python)), tuple(linear))


def _linear(pattern: str) -> str:
    """Write a pattern for the linear engine, which never gives back: Python's blanks, its cases, and its end of the text."""
    space = as_class(WHITESPACE)
    pattern = re.sub(_IGNORE_CASE, lambda group: f"(?:{_cased(group[1])})", pattern)
    pattern = re.sub(r"\[([^\]]*?)\\s", lambda start: f"[{space[1:-1]}{start[1]}", pattern)
    return pattern.replace(r"\s", space).replace(r"\Z", r"\z").replace("*+", "*")


def _cased(words: str) -> str:
    r"""Write words, alternatives and ``\s+`` with both cases of each letter."""
    return re.sub(r"(\\s\+)|([a-z])", lambda found: found[1] or _cases(found[2]), words)


def _cases(letter: str) -> str:
    return as_class(
        "".join(code for code in (letter, letter.upper(), *_OTHER_CASES) if re.fullmatch(letter, code, re.IGNORECASE))
    )


def checked_letters(letters: str) -> str:
    """Return letters that can name choices."""
    if not letters.isalnum():
        raise ValueError("give the letters of the choices, such as ABCD: letters or digits")
    if len(set(letters.upper())) < len(letters):
        raise ValueError("a letter is given twice")
    return letters


class ChoiceStepParams(Params):
    """The letters of the choices."""

    letters: str = Field(default="ABCD", min_length=1, description="The letters of the choices, as texts write them.")

    @field_validator("letters")
    @classmethod
    def _usable(cls, letters: str) -> str:
        return checked_letters(letters)


class ChoiceStep(Step):
    r"""The letter of a multiple-choice answer.

    Tried in order: ``answer``, ``choice`` or ``option`` and the letter, ``\boxed{B}``, a text that begins with it, ``(B)``, a last
    line that is only the letter. Of the first form that occurs, the last place counts.
    """

    name = "choice"
    shorthand = "letters"
    Params = ChoiceStepParams
    params: ChoiceStepParams
    examples = (
        StepExample("A or B? The answer is **C**.", "C"),
        StepExample("Choice: A. No, choice: D.", "D"),
        StepExample(r"So \boxed{\text{B}}", "B"),
        StepExample("B) because (A) is not", "B"),
        StepExample("I take (C), not (D)", "D"),
        StepExample("It holds.\n\nE", "E", {"letters": "ABCDE"}),
        StepExample("Apples are best", None),
    )

    def row(self, text: str) -> str | None:
        at = self.begins(text)
        return None if at is None else text[at]

    def begins(self, text: str) -> int | None:
        for pattern in _patterns(self.params.letters).python:
            letters = [match.start(1) for match in pattern.finditer(text) if match[1]]
            if letters:
                return letters[-1]
        return None

    def expr(self, texts: pl.Expr) -> pl.Expr:
        return texts.map_batches(self._found, return_dtype=pl.String, is_elementwise=True)

    def _found(self, texts: pl.Series) -> pl.Series:
        """Search for each pattern in the texts that the earlier ones are not in."""
        result = nulls(texts, pl.String)
        at = texts.is_not_null().arg_true()
        letters = as_class(self.params.letters)
        answer, box, start, brackets, end = _patterns(self.params.letters).linear
        text = pl.col("text")
        searches = (
            # letters are alphanumeric: one beyond ASCII may be followed by another, which the search takes as what ends the word
            text.str.extract_all(answer).list.last().str.extract(rf"({letters})[^0-9A-Za-z_]?\z", 1),
            text.str.extract_all(box).list.last().str.slice(-2, 1),
            text.str.extract(start, 1),
            text.str.extract_all(brackets).list.last().str.slice(1, 1),
            text.str.extract(end, 1),
        )
        for search in searches:
            found = texts.gather(at).to_frame("text").select_seq(search).to_series()
            result = result.scatter(at.filter(found.is_not_null()), found.drop_nulls())
            at = at.filter(found.is_null())
            if not len(at):
                break
        return result


class SplitParams(Params):
    """The separator."""

    sep: str = Field(default=",", min_length=1, description="What stands between items.")


class Split(Step):
    """The items between separators, stripped, without empty ones."""

    name = "split"
    shorthand = "sep"
    gives_list = True
    Params = SplitParams
    params: SplitParams
    examples = (
        StepExample("red, green,, blue ", ["red", "green", "blue"]),
        StepExample("a; b", ["a", "b"], {"sep": ";"}),
        StepExample("", []),
    )

    def row(self, text: str) -> list[str]:
        return [item for part in text.split(self.params.sep) if (item := part.strip())]

    def placed(self, given: PlacedText) -> list[PlacedText]:
        items, at = [], 0
        for part in given.text.split(self.params.sep):
            if item := part.strip():
                start = given.text.index(item, at)
                items.append(given.cut(start, start + len(item)))
            at += len(part) + len(self.params.sep)
        return items

    def expr(self, texts: pl.Expr) -> pl.Expr:
        items = texts.str.split(self.params.sep).list.eval(strip_expr(pl.element()))
        return items.list.eval(pl.element().filter(pl.element() != ""))
