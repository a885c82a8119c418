"""Checks for how much of something the output has, and for its case: count, case."""

import math
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar, Literal

import polars as pl
from pydantic import Field, field_validator

from assay.calls.limits import Limits
from assay.checks.base import Check, Columns, Example, GoldKind, Row, Traits
from assay.checks.bounds import HOLDS, Bound, BoundedCheck
from assay.errors import did_you_mean, encodable, quoted
from assay.expressions.counts import COUNTS, Count, occurrences, occurrences_expr
from assay.expressions.regex.flavors import PACKAGE, named_lists, pattern_schemas
from assay.expressions.regex.search import check_pattern
from assay.expressions.regex.spans import Matches
from assay.expressions.shared_columns import SharedColumn, text
from assay.expressions.text import by_columns, case_patterns, lower, lower_expr
from assay.steps.regex import RESULT, explained, operate, operate_on
from assay.values.params import Params

_LONGEST = 2**62
"""More than any text has of anything, and within 64-bit integers."""
_OPTIONS = {"text": ("text", "caseSensitive", "case_sensitive"), "pattern": ("pattern", "flavor", "lists")}


class CountParams(Params):
    """What to count, and how many of it pass."""

    of: str | dict[str, Any] = Field(
        description=f"{', '.join(COUNTS)}; `{{text: phrase}}`, with `caseSensitive: true` as written; or `{{pattern: P}}`, with"
        " `flavor: regex` and `lists` as of the check `regex`.",
        json_schema_extra={
            "anyOf": [
                {"type": "string", "enum": [*COUNTS]},
                {
                    "type": "object",
                    "properties": {
                        "text": {"type": "string"},
                        "caseSensitive": {"type": "boolean", "default": False},
                        "case_sensitive": {"type": "boolean", "default": False},
                    },
                    "required": ["text"],
                    "additionalProperties": False,
                },
                {
                    "type": "object",
                    "properties": {"pattern": {"type": "string"}, **pattern_schemas()},
                    "required": ["pattern"],
                    "additionalProperties": False,
                },
            ]
        },
    )
    min: float | int | None = Field(default=None, allow_inf_nan=False, description="Least number that passes.")
    max: float | int | None = Field(default=None, allow_inf_nan=False, description="Greatest number that passes.")
    exactly: float | int | None = Field(
        default=None, allow_inf_nan=False, description="The only number that passes.", validate_default=True
    )

    @field_validator("of")
    @classmethod
    def _countable(cls, of: str | dict[str, Any]) -> str | dict[str, Any]:
        if isinstance(of, dict):
            _check_options(of)
        elif of not in COUNTS:
            raise ValueError(
                f'it cannot count "{of}". {did_you_mean(of, COUNTS) or "Known: " + ", ".join(COUNTS) + "."}'
            )
        return of

    @field_validator("exactly")
    @classmethod
    def _bounded(cls, exactly: float | None, info: Any) -> float | None:
        low, high = info.data.get("min"), info.data.get("max")
        if {"min", "max"} <= info.data.keys() and low is None and high is None and exactly is None:
            raise ValueError("give `min`, `max` or `exactly`")
        return exactly


def _check_options(of: dict[str, Any]) -> None:
    """Check a mapping that says what to count."""
    (kind, *_) = [name for name in _OPTIONS if name in of] or [""]
    if not kind:
        raise ValueError("write {text: phrase} or {pattern: P}")
    for name in of:
        if name not in _OPTIONS[kind]:
            raise ValueError(f"unknown field `{name}`. Known: {', '.join(_OPTIONS[kind])}.")
    if not isinstance(of[kind], str):
        raise ValueError(f"`{kind}` is a text in quotes, not {of[kind]!r}")
    if not all(isinstance(of.get(name, False), bool) for name in _OPTIONS["text"][1:]):
        raise ValueError("`caseSensitive` is true or false")
    if kind == "pattern":
        try:
            check_pattern(of[kind], _matches_of(of).lists)
        except (re.error, OverflowError) as error:
            raise ValueError(f"{of[kind]!r}: {error}") from None


def _matches_of(of: dict[str, Any]) -> Matches:
    return Matches(of["pattern"], lists=named_lists(of.get("flavor", "re"), of.get("lists")))


def _phrase_count(phrase: str, *, case_sensitive: bool) -> Count:
    noun = f"occurrences of {quoted(phrase)}"
    compared = phrase if case_sensitive else lower(phrase)
    count = occurrences(compared)

    def expr(texts: pl.Expr) -> pl.Expr:
        if encodable(compared) != compared:  # no text contains a lone surrogate
            return pl.when(texts.is_not_null()).then(0)
        return occurrences_expr(texts if case_sensitive else lower_expr(texts), compared)

    return Count(noun, count if case_sensitive else lambda text: count(lower(text)), expr)


def _match_count(operation: Matches, limits: Limits | None) -> Count:
    expr = partial(pl.Expr.map_batches, function=partial(operate_on, operation, limits), return_dtype=RESULT)
    return Count(
        f"matches of {quoted(operation.pattern)}",
        lambda text: int(operate(operation, text, limits) or 0),
        lambda texts: expr(texts, is_elementwise=True),
    )


class CountOf(BoundedCheck):
    r"""How many words, sentences, bullets or the like the output has: at least ``min``, at most ``max``, ``exactly`` so many.

    ``chars`` are code points, ``words`` stand between blanks, ``word_tokens`` are runs of ``\w``; ``lines`` and ``paragraphs``
    are not blank; ``items`` are those of a JSON list or object, and other output fails. A phrase is counted by ``str.count``.
    """

    type = "count"
    asks: ClassVar[Mapping[str, str]] = {"min": "at least", "max": "at most", "exactly": "exactly"}
    golds = GoldKind(same_params=("of",))
    words = ("number of {check.counted.noun}: {check.shown}", "")
    Params = CountParams
    params: CountParams
    examples = (
        Example("Red, green and blue.", 1.0, {"of": "words", "max": 4}),
        Example("It works. Does it? It does", 0.0, {"of": "sentences", "exactly": 2}),
        Example("- a\n* b\n", 1.0, {"of": "bullets", "min": 2}),
        Example("Spam, spam and eggs", 1.0, {"of": {"text": "spam"}, "exactly": 2}),
        Example("[1, 2, 3]", 0.0, {"of": "items", "max": 2}),
        Example("{}", 1.0, {"of": "items", "max": 2}),
        Example("👩‍👧 👍🏽", 1.0, {"of": {"pattern": r"\X", "flavor": "regex"}, "exactly": 3}),
    )

    def __init__(self, params: CountParams) -> None:
        super().__init__(params)
        of = self.params.of
        if isinstance(of, dict) and of.get("flavor") == PACKAGE:
            self.traits = Traits(libraries={PACKAGE: ()})  # type: ignore[misc]

    @property
    def counted(self) -> Count:
        of = self.params.of
        if isinstance(of, str):
            return COUNTS[of]
        if "pattern" in of:
            return _match_count(_matches_of(of), self.limits)
        return _phrase_count(of["text"], case_sensitive=of.get("caseSensitive", of.get("case_sensitive", False)))

    @property
    def _pattern(self) -> Matches | None:
        """The pattern whose matches count; None if something else does."""
        of = self.params.of
        return _matches_of(of) if isinstance(of, dict) and "pattern" in of else None

    def row(self, row: Row) -> float:
        number = self.counted.row(row["completion"])
        return float(number is not None and all(HOLDS[words](number, bound) for words, bound in self.bounds))

    def columns(self) -> Columns:
        counted = self._counted.col
        error = None if self._pattern is None else counted.struct.field("error")
        number = (counted if error is None else counted.struct.field("value")).cast(pl.Int64)
        holds = [_HOLDS_EXPR[words](number, bound) for words, bound in self.bounds]
        score = pl.when(text().is_not_null()).then(pl.all_horizontal(holds).fill_null(value=False))
        reason = self._reason(number, pl.lit(encodable(self.shown)))
        return Columns(score, pl.coalesce(reason, pl.lit(_UNCOUNTED) if error is None else error), error)

    @property
    def _counted(self) -> SharedColumn:
        return SharedColumn(f"count:{self.params.of!r}", lambda _: self.counted.expr(text()))

    def _reason(self, number: pl.Expr, shown: pl.Expr) -> pl.Expr:
        before = pl.lit(encodable(f"number of {self.counted.noun}: "))
        return pl.concat_str(before, number.cast(pl.String), pl.lit(", expected "), shown)

    def compare_bounds(self, bounds: Mapping[str, Bound]) -> Columns | None:
        if self._pattern is not None:  # it may fail on a row
            return None
        number = self._counted.col.cast(pl.Int64)
        score = pl.when(text().is_not_null()).then(self.holds(number, bounds))
        return Columns(score, pl.coalesce(self._reason(number, self.shown_bounds(bounds)), pl.lit(_UNCOUNTED)))

    def reason(self, row: Row) -> str:
        number = self.counted.row(row["completion"])
        return _UNCOUNTED if number is None else f"number of {self.counted.noun}: {number}, expected {self.shown}"

    def explain(self) -> str:
        if (matches := self._pattern) is not None:
            why = explained(matches, self.limits, per="text")
            return (
                why
                if matches.lists
                else f"columns where the linear engine finds the same matches, else Python's re ({why})"
            )
        return "columns: one linear pattern, or Python for the rows that it does not decide"


_UNCOUNTED = "the output is not a JSON list or object"


def _within_int64(bound: float) -> int:
    return max(min(int(bound), _LONGEST), -_LONGEST)


_HOLDS_EXPR: dict[str, Callable[[pl.Expr, float], pl.Expr]] = {
    "at least": lambda number, bound: number >= _within_int64(math.ceil(bound)),
    "at most": lambda number, bound: number <= _within_int64(math.floor(bound)),
    "exactly": lambda number, bound: (number == _within_int64(bound)) & (bound == int(bound)),
}


class CaseParams(Params):
    """The case."""

    is_: Literal["upper", "lower", "title"] = Field(
        alias="is", description="By `str.isupper`, `str.islower` or `str.istitle`."
    )


class Case(Check):
    """The letters of the output are all upper case, all lower case, or begin each word in upper case; there is at least one."""

    type = "case"
    words = ("is in {check.params.is_} case", "is not in {check.params.is_} case")
    Params = CaseParams
    params: CaseParams
    examples = (
        Example("ALL CAPITALS, 42!", 1.0, {"is": "upper"}),
        Example("Not all", 0.0, {"is": "lower"}),
        Example("In Title Case", 1.0, {"is": "title"}),
        Example("42", 0.0, {"is": "upper"}),
    )

    def row(self, row: Row) -> float:
        return float(_CASES[self.params.is_](row["completion"]))

    def expr(self) -> pl.Expr:
        return by_columns(text(), _CASES[self.params.is_], self._column, pl.Boolean)

    def _column(self, texts: pl.Series) -> pl.Series:
        fault, needed = case_patterns(self.params.is_)
        return texts.str.contains(needed) & ~texts.str.contains(fault)


_CASES: dict[str, Callable[[str], bool]] = {"upper": str.isupper, "lower": str.islower, "title": str.istitle}
