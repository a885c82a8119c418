"""Checks for equality: equals, choice, list_equals."""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, Literal

import polars as pl
from pydantic import Field, field_validator

from assay.checks.base import ANSWER_STEPS, Columns, Example, GoldCompared, GoldKind, Row, Traits
from assay.errors import encodable, quoted
from assay.expressions.pairs import equal_expr, quoted_expr
from assay.expressions.shared_columns import rowwise, text
from assay.expressions.text import LOWER, equals_expr, lower, lower_expr, strip_expr, stripped_pattern
from assay.steps.base import Step
from assay.steps.choices import ChoiceStep, ChoiceStepParams, Split, SplitParams
from assay.values.normalizers import (
    BY_COLUMNS,
    NORMALIZERS,
    golds_with_words,
    normalized_expr,
    normalized_lane,
    normalizer,
    normalizer_schemas,
)
from assay.values.params import Params, UnfitValueError

Normalize = str | dict[str, Any] | None
_SQUAD = "squad"
_USUAL_LETTERS = ChoiceStepParams().letters


def _normalize_field() -> Any:
    return Field(
        default=None,
        description=f"Change both sides first: {', '.join(NORMALIZERS)}, or `{{lmEval: {{ignoreCase: true}}}}`.",
        json_schema_extra={"anyOf": [*normalizer_schemas(), {"type": "null"}]},
    )


def _checked_normalizer(spec: Normalize) -> Normalize:
    if spec is not None:
        normalizer(spec)
    return spec


class EqualsParams(Params):
    """A value and how to compare it."""

    spellings: ClassVar = {"text": "value"}
    later = frozenset({"normalize", "strip"})

    value: str = Field(description="The phrase.")
    case_sensitive: bool = Field(default=False, description="Compare as written; else `str.lower()` on both sides.")
    normalize: Normalize = _normalize_field()
    strip: bool = Field(default=True, description="Strip both sides, by `str.strip()`.")

    _normalizer = field_validator("normalize")(_checked_normalizer)


class Equals(GoldCompared):
    """The trimmed output equals the trimmed value; trimming is Python's ``str.strip()``. ``normalize`` changes both sides first."""

    type = "equals"
    traits = Traits(aliases=("exact_match",))
    words = ("equals {value}", "does not equal {value}")
    golds = GoldKind("value", counting=lambda params: golds_with_words if params.normalize == _SQUAD else None)
    Params = EqualsParams
    params: EqualsParams
    examples = (
        Example("  Paris\n", 1.0, {"value": "paris"}),
        Example("Paris.", 0.0, {"value": "paris"}),
        Example("Paris", 0.0, {"value": "paris", "caseSensitive": True}),
        Example("\x1cParis\x85", 1.0, {"value": "Paris"}),
        Example("The Norse-men!", 1.0, {"value": "norsemen", "normalize": "squad"}),
        Example(r"\dfrac12", 1.0, {"value": r"\frac{1}{2}", "normalize": "math"}),
        Example(" Paris", 0.0, {"value": "Paris", "strip": False}),
    )

    def compared(self, value: str) -> str:
        """Return what is compared of a text or the value."""
        if self.params.normalize is not None:
            value = normalizer(self.params.normalize)(value)
        value = value if self.params.case_sensitive else lower(value)
        return value.strip() if self.params.strip else value

    def score(self, value: str, gold: str) -> float:
        return float(self.compared(value) == self.compared(gold))

    @property
    def pattern(self) -> str | None:
        """The pattern that the linear engine searches for in place of the phrase; None to compare."""
        if self.params.normalize is not None or not self.params.strip:
            return None
        return stripped_pattern(self.compared(self.params.value), lowered=not self.params.case_sensitive)

    def score_expr(self, gold: Any) -> pl.Expr:
        subject, normalize, lowered = text(), self.params.normalize, not self.params.case_sensitive
        if normalize is not None:
            subject = normalized_lane(normalize).col
        if not isinstance(gold, pl.Expr):
            if self.pattern is not None:
                return subject.str.contains(self.pattern)
            if lowered:
                subject = LOWER.col if normalize is None else lower_expr(subject)
            return equals_expr(strip_expr(subject) if self.params.strip else subject, self.compared(gold))
        gold = gold if normalize is None else normalized_expr(gold, normalize)
        if self.params.strip:
            return equal_expr(subject, gold, lowered=lowered)
        return lower_expr(subject) == lower_expr(gold) if lowered else subject == gold

    def usable(self, golds: pl.Expr) -> pl.Expr | None:
        return golds

    def explain(self) -> str:
        if (normalize := self.params.normalize) is not None:
            if isinstance(normalize, str) and normalize in BY_COLUMNS:
                return "columns: the normalizer, then a comparison"
            return "Python, once for each distinct text: the normalizer; then columns"
        if self.pattern is not None:
            return "columns: one linear pattern for the phrase and space around it"
        if self.params.case_sensitive:
            return "columns: literal search"
        return "columns: literal search in the lower-cased text (Python lowers rows with Σ or newer scripts)"


class ChoiceParams(ChoiceStepParams):
    """The letter of the right choice."""

    base: int = Field(default=0, description="The number of the first letter, for values that are numbers.")
    value: str | int = Field(description="The letter, or its number.")

    @field_validator("value")
    @classmethod
    def _is_choice(cls, value: str | int, info: Any) -> str | int:
        if {"letters", "base"} <= info.data.keys():  # they are valid
            _letter(value, **info.data)
        return value


def _letter(value: str | int, letters: str, base: int) -> str:
    """Return the letter of a choice in upper case."""
    letter = str(value).strip().upper()
    if letter in map(str.upper, letters):
        return letter
    try:
        at = int(value) - base
    except ValueError:
        at = -1
    if not 0 <= at < len(letters):
        raise UnfitValueError(str(value), f"none of the choices {letters}, nor the number of one, from {base}")
    return letters[at].upper()


class Choice(GoldCompared):
    """The letter of a multiple-choice answer, as the step ``choice`` reads it, equals the value, in either case.

    A value that is a number, and is not among the letters, is the number of a letter, from ``base``.
    """

    type = "choice"
    runs_as = "columns: comparison of letters"
    golds = GoldKind(
        "value",
        same_params=("letters",),
        steps=lambda params: (
            *ANSWER_STEPS,
            "choice" if params.letters == _USUAL_LETTERS else {"choice": params.letters},
            {"line": "last"},
        ),
    )
    words = ("is the choice {check.letter}", "")
    Params = ChoiceParams
    params: ChoiceParams
    examples = (
        Example("B", 1.0, {"value": "b"}),
        Example("B", 1.0, {"value": 1}),
        Example("B", 1.0, {"value": 2, "base": 1}),
        Example("B", 0.0, {"value": "E", "letters": "ABCDE"}),
    )

    def subject(self) -> tuple[None, tuple[Step, ...]]:
        return None, (ChoiceStep(ChoiceStepParams(letters=self.params.letters)),)

    def letter_of(self, value: str | int) -> str:
        """Return the letter of a gold in upper case."""
        return _letter(value, self.params.letters, self.params.base)

    @property
    def letter(self) -> str:
        return self.letter_of(self.params.value)

    def score(self, value: str, gold: str | int) -> float:
        return float(value.upper() == self.letter_of(gold))

    def _letters(self, gold: Any) -> pl.Expr:
        is_column = isinstance(gold, pl.Expr)
        return rowwise(gold, self.letter_of, pl.String, distinct=True) if is_column else pl.lit(self.letter_of(gold))

    def score_expr(self, gold: Any) -> pl.Expr:
        return rowwise(text(), str.upper, pl.String, distinct=True) == self._letters(gold)

    def reason(self, row: Row) -> str:
        return f"the choice is {quoted(row['completion'])}, not {self.letter}"

    def compare(self, gold: Any) -> Columns:
        reason = quoted_expr(text(), "the choice is ") + pl.lit(", not ") + self._letters(gold)
        return Columns(self.score_expr(gold), reason)


_EQUAL: dict[str, Callable[[pl.Expr, pl.Expr], pl.Expr]] = {
    "list": lambda items, golds: items == golds,
    "set": lambda items, golds: items.list.set_symmetric_difference(golds).list.len() == 0,
    "multiset": lambda items, golds: items.list.sort() == golds.list.sort(),
}
"""Whether two lists of items are alike, in each sense in which lists are equal."""

_MISSES = "does not have the items "


class ListEqualsParams(SplitParams):
    """The items, and how to compare them."""

    value: list[str] | str = Field(description="The items; a text is split like the output.")
    normalize: Normalize = _normalize_field()
    as_: Literal["list", "set", "multiset", "subset", "f1"] = Field(
        default="list",
        alias="as",
        description="`list`: in order; `set`: without repetitions; `multiset`: in any order; `subset`: every item of the value, as "
        "often as there; `f1`: 2·common/(items of both).",
    )

    _normalizer = field_validator("normalize")(_checked_normalizer)


class ListEquals(GoldCompared):
    """The items of the output, split at ``sep`` and stripped, are the items of the value; ``as`` says in which sense."""

    type = "list_equals"
    runs_as = "columns: comparison of lists; Python counts what lists of rows have in common"
    graded = True
    golds = GoldKind("value", whole=True, same_params=("sep",), of_lists=True)
    words = ("has the items {check.shown} ({check.params.as_})", "")
    Params = ListEqualsParams
    params: ListEqualsParams
    examples = (
        Example("red, green", 1.0, {"value": ["red", "green"]}),
        Example("green, red", 0.0, {"value": "red, green"}),
        Example("green, red, red", 1.0, {"value": ["red", "green"], "as": "set"}),
        Example("green; red", 1.0, {"value": ["red", "green"], "as": "multiset", "sep": ";"}),
        Example("blue, red, green", 1.0, {"value": ["red", "green"], "as": "subset"}),
        Example("Red, blue", 0.5, {"value": ["red", "green"], "as": "f1", "normalize": "casefold"}),
        Example("", 1.0, {"value": "", "as": "f1"}),
    )

    @property
    def split(self) -> Split:
        return Split(SplitParams(sep=self.params.sep))

    def subject(self) -> tuple[None, tuple[Step, ...]]:
        return None, (self.split,)

    def items(self, value: str | list[str]) -> list[str]:
        """Return the items of a text or a list, as they are compared."""
        parts = value.split(self.params.sep) if isinstance(value, str) else value
        items = [item for part in parts if (item := part.strip())]
        return items if self.params.normalize is None else [*map(normalizer(self.params.normalize), items)]

    def score(self, value: str | list[str], gold: str | list[str]) -> float:
        return self._score(self.items(value), self.items(gold))

    def _score(self, items: list[str], golds: list[str]) -> float:
        how = self.params.as_
        if how == "list":
            return float(items == golds)
        if how == "set":
            return float({*items} == {*golds})
        if how == "multiset" and len(items) != len(golds):
            return 0.0
        left, common = dict[str, int](), 0  # in a third of the time of Counters
        for gold_item in golds:
            left[gold_item] = left.get(gold_item, 0) + 1
        for item in items:
            if left.get(item):
                left[item] -= 1
                common += 1
        if how == "f1":
            return 2 * common / (len(items) + len(golds)) if items or golds else 1.0
        return float(common == len(golds))

    def score_expr(self, gold: Any) -> pl.Expr:
        items = partial(pl.Expr.map_batches, function=self._items, return_dtype=pl.List(pl.String), is_elementwise=True)
        equal = _EQUAL.get(self.params.as_)
        if isinstance(gold, pl.Expr):
            # to count in columns took ten times as long
            return (equal or self._counted)(items(text()), items(gold)).cast(pl.Float64)
        written = "".join(gold)
        if encodable(written) != written:  # columns have no lone surrogates
            golds = self.items(gold)
            return rowwise(text(), lambda value: self._score(self.items(value), golds), pl.Float64)
        if equal is None:
            return items(text()).map_batches(
                partial(self._scores, self.items(gold)), return_dtype=pl.Float64, is_elementwise=True
            )
        literal = pl.Series([gold], dtype=pl.String if isinstance(gold, str) else pl.List(pl.String))
        return equal(items(text()), pl.lit(self._items(literal))).cast(pl.Float64)

    def _scores(self, golds: list[str], lists: pl.Series) -> pl.Series:
        """Return the scores of lists beside the same golds: the list is searched once for each distinct one."""
        found = pl.col("found").list
        counts = (pl.min_horizontal(found.count_matches(item), many) for item, many in Counter(golds).items())
        common, size = sum(counts, pl.lit(0)), found.len() + len(golds)
        if self.params.as_ == "f1":
            score = pl.when(size == 0).then(1.0).otherwise(2 * common / size)
        else:
            score = common == len(golds)
            score = (score & (size == 2 * len(golds)) if self.params.as_ == "multiset" else score).cast(pl.Float64)
        scores = lists.to_frame("found").select_seq(pl.when(pl.col("found").is_not_null()).then(score)).to_series()
        return scores.alias(lists.name)

    def _counted(self, items: pl.Expr, golds: pl.Expr) -> pl.Expr:
        def scores(columns: Sequence[pl.Series]) -> pl.Series:
            lists = (column.to_list() for column in columns)
            return pl.Series(columns[0].name, [*map(self._score, *lists)], dtype=pl.Float64)

        return pl.map_batches([items, golds], scores, return_dtype=pl.Float64, is_elementwise=True)

    def _items(self, values: pl.Series) -> pl.Series:
        """Return ``items`` of texts, or of lists of texts."""
        items = pl.col("values")
        if values.dtype == pl.String:
            items = self.split.expr(items)
        else:
            items = items.list.eval(strip_expr(pl.element()))
            items = items.list.eval(pl.element().filter(pl.element() != ""))
        if self.params.normalize is not None:
            items = items.list.eval(normalized_expr(pl.element(), self.params.normalize))
        return values.to_frame("values").select_seq(items).to_series().alias(values.name)

    def compare(self, gold: Any) -> Columns:
        if not isinstance(gold, pl.Expr):
            return Columns(self.score_expr(gold), self.complaint())
        shown = gold.map_batches(self._written, pl.String, is_elementwise=True)
        return Columns(self.score_expr(gold), quoted_expr(shown, _MISSES) + pl.lit(f" ({self.params.as_})"))

    def _written(self, golds: pl.Series) -> pl.Series:
        return golds if golds.dtype == pl.String else golds.list.join(f"{self.params.sep} ")

    def usable(self, golds: pl.Expr) -> pl.Expr | None:
        return golds

    def complaint(self) -> str:
        return f"{_MISSES}{self.shown} ({self.params.as_})"

    @property
    def shown(self) -> str:
        value = self.params.value
        return quoted(value if isinstance(value, str) else f"{self.params.sep} ".join(value))
