"""Checks for phrases: contains, not_contains, contains_any, contains_all, starts_with, ends_with."""

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from operator import add, or_
from typing import Annotated, Any, ClassVar, Literal

import polars as pl
from pydantic import Field, WithJsonSchema, field_validator

from assay.checks.base import Columns, Example, FactCheck, GoldCompared, GoldKind, Row, Traits, identity
from assay.errors import encodable, quoted
from assay.expressions.pairs import (
    contain_each_expr,
    contain_expr,
    edge_expr,
    listed_where,
    quoted_lists_expr,
)
from assay.expressions.shared_columns import SharedColumn, rowwise, text
from assay.expressions.text import (
    LOWER,
    WHITESPACE,
    as_class,
    contains_expr,
    is_ascii,
    lower,
    lower_expr,
    lowered_pattern,
    phrase_lane,
    strip_expr,
    word_places,
    written_pattern,
)
from assay.kernel.facts import Fact
from assay.values.params import Params

_CASES = "Compare as written; else `str.lower()` on both sides."
_WORD = r"The phrase counts only where no `\w` of Python's stands beside it."
_NO_WORD = r"[\x00-/:-@\[-^`{-\x7f]"
_SHOWN = 5
"""Phrases that a claim lists."""


_TEXTS = {"type": "array", "items": {"type": "string"}, "minItems": 1}
_TEXT_OR_TEXTS = {"anyOf": [_TEXTS, {"type": "string"}]}


class PhraseParams(Params):
    """A phrase and how to compare it."""

    spellings: ClassVar = {"text": "value"}
    later = frozenset({"word"})

    value: str = Field(description="The phrase.")
    case_sensitive: bool = Field(default=False, description=_CASES)
    word: bool = Field(default=False, description=_WORD)


class _Phrase:
    """A phrase to search for in the text, in both implementations."""

    def __init__(self, value: str, *, case_sensitive: bool, word: bool) -> None:
        self.value = value if case_sensitive else lower(value)
        self.case_sensitive = case_sensitive
        self.word = word

    def within(self, subject: str) -> bool:
        """Return whether a text, in lower case unless case matters, contains the phrase."""
        return next(word_places(subject, self.value), None) is not None if self.word else self.value in subject

    @property
    def lane(self) -> SharedColumn | None:
        """The lane that searches for the phrase in either case; None to search for the phrase itself."""
        return None if self.case_sensitive or self.word else phrase_lane(self.value)

    def expr(self) -> pl.Expr:
        subject = text() if self.case_sensitive else LOWER.col
        if self.word:
            return self._word_expr(subject)
        lane = self.lane
        return contains_expr(subject, self.value) if lane is None else lane.col

    def _word_expr(self, subject: pl.Expr) -> pl.Expr:
        r"""Search between characters of ASCII that are certainly not ``\w``; Python looks at the others that it is in."""
        candidates = contains_expr(subject, self.value)
        pattern = written_pattern(self.value)
        if not self.value or pattern is None:
            searched = rowwise(pl.when(candidates).then(subject), self.within, pl.Boolean)
            return candidates & searched.fill_null(value=False)
        certain = subject.str.contains(rf"(?:\A|{_NO_WORD}){pattern}(?:{_NO_WORD}|\z)")
        doubtful = pl.when(candidates & ~certain & ~is_ascii(subject)).then(subject)
        return certain | rowwise(doubtful, self.within, pl.Boolean).fill_null(value=False)

    def explain(self) -> str:
        if self.lane is not None:
            return "columns: linear search for the phrase in upper and lower case"
        if self.word:
            return "columns: one linear pattern; Python for rows with characters beyond ASCII around the phrase"
        if self.case_sensitive:
            return "columns: literal search"
        return "columns: literal search in the lower-cased text (Python lowers rows with Σ or newer scripts)"


def facts_about(phrases: Sequence[_Phrase]) -> tuple[Fact, ...]:
    """Return whether a text contains phrases, as facts; none if one of them is no word."""
    if any(phrase.word and not phrase.value for phrase in phrases):
        return ()
    return tuple(
        Fact("phrase", phrase.value, folds=not phrase.case_sensitive, place="word" if phrase.word else "anywhere")
        for phrase in phrases
    )


class Contains(FactCheck, GoldCompared):
    """The output contains the phrase; an empty phrase is contained in everything."""

    type = "contains"
    words = ("contains {check.kind}{value}", "does not contain {check.kind}{value}")
    traits = Traits(aliases=("must_contain",))
    golds = GoldKind("value")
    Params = PhraseParams
    params: PhraseParams
    examples: ClassVar[tuple[Example, ...]] = (
        Example("We will REFUND you.", 1.0, {"value": "refund"}),
        Example("We will REFUND you.", 0.0, {"value": "refund", "caseSensitive": True}),
        Example("", 1.0, {"value": ""}),
        Example("ΟΔΟΣ", 1.0, {"value": "οδος"}),
        Example("We refunded you.", 0.0, {"value": "refund", "word": True}),
    )

    def _phrase(self, value: str) -> _Phrase:
        return _Phrase(value, case_sensitive=self.params.case_sensitive, word=self.params.word)

    def facts(self) -> tuple[Fact, ...]:
        return facts_about([self._phrase(self.params.value)])

    def score(self, value: str, gold: str) -> float:
        return float(self._phrase(gold).within(value if self.params.case_sensitive else lower(value)))

    def score_expr(self, gold: Any) -> pl.Expr | None:
        if not isinstance(gold, pl.Expr):
            return self._phrase(gold).expr()
        return None if self.params.word else contain_expr(text(), gold, lowered=not self.params.case_sensitive)

    def usable(self, golds: pl.Expr) -> pl.Expr | None:
        return golds

    def explain(self) -> str:
        return self._phrase(self.params.value).explain()

    @property
    def kind(self) -> str:
        return "the word " if self.params.word else ""


class NotContains(Contains):
    """The output does not contain the phrase; an empty phrase is contained in everything."""

    type = "not_contains"
    words = ("does not contain {check.kind}{value}", "contains {check.kind}{value}")
    traits = Traits(aliases=("must_not_contain",))
    golds = GoldKind("value", worst=True)  # none of several
    examples = (
        Example("Take a gift card.", 0.0, {"value": "Gift Card"}),
        Example("Take a refund.", 1.0, {"text": "gift card"}),
    )

    def score(self, value: str, gold: str) -> float:
        return 1.0 - super().score(value, gold)

    def score_expr(self, gold: Any) -> pl.Expr | None:
        within = super().score_expr(gold)
        return None if within is None else within.not_()

    def from_facts(self, bits: Sequence[pl.Expr]) -> Columns:
        return Columns(bits[0].not_(), self.complaint())


class PhrasesParams(Params):
    """Phrases and how to compare them."""

    spellings: ClassVar = {"value": "values"}

    values: Annotated[list[str], WithJsonSchema(_TEXT_OR_TEXTS)] = Field(
        min_length=1, description="The phrases; a text is a list of one."
    )
    case_sensitive: bool = Field(default=False, description=_CASES)
    word: bool = Field(default=False, description=_WORD)

    @field_validator("values", mode="before")
    @classmethod
    def _several(cls, values: Any) -> Any:
        return [values] if isinstance(values, str) else values


class AllPhrasesParams(PhrasesParams):
    """Phrases, how to compare them, and how to score a part of them."""

    score: Literal["all", "share"] = Field(
        default="all",
        description="`all`: 1.0 if no phrase is missing; `share`: the share of the phrases that are there.",
    )


class ContainsAny(FactCheck, GoldCompared):
    """The output contains at least one of the phrases."""

    type = "contains_any"
    words = ("contains one of {check.shown}", "contains none of {check.shown}")
    golds = GoldKind("values", whole=True)
    Params = PhrasesParams
    params: PhrasesParams
    examples: ClassVar[tuple[Example, ...]] = (
        Example("I cannot help with that.", 1.0, {"values": ["I can't", "I cannot"]}),
        Example("Sure!", 0.0, {"values": ["I can't", "I cannot"]}),
        Example("ΟΔΟΣ", 0.0, {"value": ["οδος", "x"], "caseSensitive": True}),
    )

    def phrases(self, values: Sequence[str]) -> list[_Phrase]:
        flags = {"case_sensitive": self.params.case_sensitive, "word": self.params.word}
        return [_Phrase(value, **flags) for value in values]

    def facts(self) -> tuple[Fact, ...]:
        return facts_about(self.phrases(self.params.values))

    def from_facts(self, bits: Sequence[pl.Expr]) -> Columns:
        return Columns(reduce(or_, bits), self.complaint())

    def contained(self, value: str, gold: Sequence[str]) -> list[bool]:
        subject = value if self.params.case_sensitive else lower(value)
        return [phrase.within(subject) for phrase in self.phrases(gold)]

    def contained_expr(self, golds: pl.Expr) -> pl.Expr | None:
        """Return whether each text contains the phrases of its list: List(Boolean); None if Python searches."""
        if self.params.word:
            return None
        lowered = not self.params.case_sensitive
        # a column, because both the score and the reason read it
        return SharedColumn(
            f"contained:{identity(self)}", lambda _: contain_each_expr(text(), golds, lowered=lowered)
        ).col

    def score(self, value: str, gold: Sequence[str]) -> float:
        return float(any(self.contained(value, gold)))

    def score_expr(self, gold: Any) -> pl.Expr | None:
        if not isinstance(gold, pl.Expr):
            return reduce(or_, (phrase.expr() for phrase in self.phrases(gold)))
        contained = self.contained_expr(gold)
        return None if contained is None else contained.list.any()

    def compare(self, gold: Any) -> Columns | None:
        columns = super().compare(gold)
        if columns is None or not isinstance(gold, pl.Expr):
            return columns
        size = gold.list.len().cast(pl.Int64) - _SHOWN
        rest = rowwise(pl.when(size > 0).then(size), lambda size: f" and {size:,} more", pl.String)
        reason = pl.lit("contains none of ") + quoted_lists_expr(gold.list.head(_SHOWN)) + rest.fill_null("")
        return replace(columns, reason=reason)

    def explain(self) -> str:
        return "; ".join(dict.fromkeys(phrase.explain() for phrase in self.phrases(self.params.values)))

    @property
    def shown(self) -> str:
        first, rest = self.params.values[:_SHOWN], len(self.params.values) - _SHOWN
        return ", ".join(map(quoted, first)) + (f" and {rest:,} more" if rest > 0 else "")


class ContainsAll(ContainsAny):
    """The output contains every phrase; with ``score: share``, the share of the phrases that it contains."""

    type = "contains_all"
    words = ("contains all of {check.shown}", "")
    graded = True
    Params = AllPhrasesParams
    params: AllPhrasesParams
    examples = (
        Example("Oslo, Norway", 1.0, {"values": ["oslo", "norway"]}),
        Example("Oslo", 0.0, {"values": ["oslo", "norway"]}),
        Example("Oslo", 0.5, {"value": ["oslo", "norway"], "score": "share"}),
        Example("Oslo", 1 / 3, {"value": ["oslo", "norway", "bergen"], "score": "share"}),
    )

    def score(self, value: str, gold: Sequence[str]) -> float:
        contained = self.contained(value, gold)
        return sum(contained) / len(contained) if self.params.score == "share" else float(all(contained))

    def score_expr(self, gold: Any) -> pl.Expr | None:
        if not isinstance(gold, pl.Expr):
            return self._shares([phrase.expr() for phrase in self.phrases(gold)])
        contained = self.contained_expr(gold)
        if contained is None or self.params.score == "all":
            return None if contained is None else contained.list.all().cast(pl.Float64)
        return contained.list.sum().cast(pl.Float64) / contained.list.len().cast(pl.Float64)

    def from_facts(self, bits: Sequence[pl.Expr]) -> Columns:
        return Columns(self._shares(bits), self._missing(bits))

    def _shares(self, contained: Sequence[pl.Expr]) -> pl.Expr:
        count = reduce(add, (is_there.cast(pl.UInt32) for is_there in contained))
        return count.map_batches(self._scores, return_dtype=pl.Float64, is_elementwise=True)

    def _missing(self, contained: Sequence[pl.Expr]) -> pl.Expr:
        pairs = zip(self.params.values, contained, strict=True)
        each = [pl.when(is_there.not_()).then(pl.lit(encodable(quoted(value)))) for value, is_there in pairs]
        return pl.lit("does not contain ") + pl.concat_str(each, separator=", ", ignore_nulls=True)

    def _scores(self, counts: pl.Series) -> pl.Series:
        """Look the scores up: Polars would multiply by the reciprocal of the number of phrases."""
        size = len(self.params.values)
        shares = [count / size for count in range(size + 1)]
        scores = shares if self.params.score == "share" else [float(share == 1) for share in shares]
        return pl.Series(scores, dtype=pl.Float64).gather(counts).alias(counts.name)

    def reason(self, row: Row) -> str:
        values = self.params.values
        pairs = zip(values, self.contained(row["completion"], values), strict=True)
        return f"does not contain {', '.join(quoted(value) for value, found in pairs if not found)}"

    def compare(self, gold: Any) -> Columns | None:
        score = self.score_expr(gold)
        if score is None:
            return None
        if not isinstance(gold, pl.Expr):
            return Columns(score, self._missing([phrase.expr() for phrase in self.phrases(gold)]))
        contained = self.contained_expr(gold)
        assert contained is not None  # noqa: S101  (there is a score)
        missing = quoted_lists_expr(listed_where(gold, contained, holds=False))
        return Columns(score, pl.lit("does not contain ") + missing)


class EdgeParams(Params):
    """A phrase at an end of the text, and how to compare it."""

    spellings: ClassVar = {"text": "value"}

    value: str = Field(description="The phrase.")
    strip: bool = Field(default=True, description="Strip both sides first, by `str.strip()`.")
    case_sensitive: bool = Field(default=False, description=_CASES)


class StartsWith(FactCheck, GoldCompared):
    """The output begins with the phrase."""

    type = "starts_with"
    words = ("begins with {value}", "does not begin with {value}")
    golds = GoldKind("value")
    end: ClassVar[bool] = False
    """Whether the phrase stands at the end."""
    Params = EdgeParams
    params: EdgeParams
    examples: ClassVar[tuple[Example, ...]] = (
        Example("  Yes, of course", 1.0, {"value": "yes"}),
        Example("Oh yes", 0.0, {"value": "yes"}),
        Example(" Yes", 0.0, {"text": "Yes", "strip": False, "caseSensitive": True}),
    )

    def compared(self, value: str) -> str:
        value = value.strip() if self.params.strip else value
        return value if self.params.case_sensitive else lower(value)

    def score(self, value: str, gold: str) -> float:
        subject, phrase = self.compared(value), self.compared(gold)
        return float(subject.endswith(phrase) if self.end else subject.startswith(phrase))

    def facts(self) -> tuple[Fact, ...]:
        phrase, folds = self.compared(self.params.value), not self.params.case_sensitive
        if self.end or not phrase:  # columns compare an end without reading the text
            return ()
        return (Fact("phrase", phrase, folds=folds, place="start", strips=self.params.strip),)

    @property
    def pattern(self) -> str | None:
        """The pattern that the linear engine searches for; None to compare."""
        phrase = self.compared(self.params.value)
        if self.params.case_sensitive:
            pattern = written_pattern(phrase)
        else:
            pattern = lowered_pattern(phrase, last="" if self.end else "\u0130")
        space = f"{as_class(WHITESPACE)}*" if self.params.strip else ""
        return None if pattern is None else rf"{pattern}{space}\z" if self.end else rf"\A{space}{pattern}"

    def score_expr(self, gold: Any) -> pl.Expr:
        flags = {"stripped": self.params.strip, "lowered": not self.params.case_sensitive}
        if isinstance(gold, pl.Expr):
            return edge_expr(text(), gold, end=self.end, **flags)
        phrase = self.compared(gold)
        if encodable(phrase) != phrase:  # no text contains a lone surrogate
            return pl.when(text().is_not_null()).then(pl.lit(value=False))
        if self.pattern is not None:
            return text().str.contains(self.pattern)
        subject = strip_expr(text()) if self.params.strip else text()
        subject = subject if self.params.case_sensitive else lower_expr(subject)
        return subject.str.ends_with(pl.lit(phrase)) if self.end else subject.str.starts_with(pl.lit(phrase))

    def usable(self, golds: pl.Expr) -> pl.Expr | None:
        return golds

    def explain(self) -> str:
        return "columns: one linear pattern" if self.pattern is not None else "columns: comparison of the ends"


class EndsWith(StartsWith):
    """The output ends with the phrase."""

    type = "ends_with"
    words = ("ends with {value}", "does not end with {value}")
    end = True
    examples = (
        Example("Any other questions?\n", 1.0, {"value": "Questions?"}),
        Example("Questions? No.", 0.0, {"value": "questions?"}),
        Example("Bye\x1c", 1.0, {"text": "bye"}),
    )
