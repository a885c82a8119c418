"""Facts: yes/no questions about a text that checks ask, each with its definition in Python.

The native kernel answers all facts of a text at once; where it is not there, or not certain of a row, the definition does.
"""

from dataclasses import field
from typing import Literal

import polars as pl

from assay.expressions.json import is_json, loads, missing_keys
from assay.expressions.regex.search import search
from assay.expressions.shared_columns import SharedColumn
from assay.expressions.text import lower, word_places
from assay.frozen import frozen

Kind = Literal["phrase", "pattern", "at_least", "at_most", "json", "object", "key"]
Place = Literal["anywhere", "word", "start"]


@frozen
class Fact:
    """A question about a text.

    Attributes:
        kind: What is asked: whether there is a phrase or a match of a pattern, whether the text has at least or at most ``size``
            code points, is JSON, is a JSON object, or is one with a key.
        value: The phrase, as it is compared; the pattern; the key.
        size: A number of code points.
        folds: Whether the text is compared in lower case.
        place: Where the phrase has to stand; ``word`` for a place without a word character beside it.
        strips: Whether the text is stripped before its start is compared.
    """

    kind: Kind
    value: str = ""
    size: int = 0
    folds: bool = False
    place: Place = "anywhere"
    strips: bool = False

    def holds(self, text: str) -> bool:
        """Return the answer for a text: the definition."""
        if self.kind == "phrase":
            return self._has_phrase(text)
        if self.kind == "pattern":
            return search(self.value, text)
        if self.kind == "at_least":
            return len(text) >= self.size
        if self.kind == "at_most":
            return len(text) <= self.size
        if self.kind == "key":
            return missing_keys(text, [self.value]) == ""
        return isinstance(loads(text), dict) if self.kind == "object" else is_json(text)

    def _has_phrase(self, text: str) -> bool:
        subject = text.strip() if self.strips else text
        subject = lower(subject) if self.folds else subject
        if self.place == "word":
            return next(word_places(subject, self.value), None) is not None
        if self.place == "start":
            return subject.startswith(self.value)
        return self.value in subject

    @property
    def lane(self) -> "FactLane":
        """The lane with the answers: Boolean, null without a text."""
        return FactLane(f"fact:{self!r}", _unanswered, fact=self)


def _unanswered(_: pl.Schema) -> pl.Expr:
    raise RuntimeError("a fact has no column of its own: the plan lets the kernel answer all of them")


@frozen
class FactLane(SharedColumn):
    """The lane of a fact; the plan says how it is built."""

    fact: Fact = field(kw_only=True, compare=False)
