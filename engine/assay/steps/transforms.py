"""Steps that write a text in another form."""

import re
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import polars as pl
from pydantic import Field, field_validator

from assay.expressions.shared_columns import rowwise
from assay.expressions.text import by_columns, is_plain, lower_expr, recased_expr, stripped
from assay.steps.base import Step, StepExample
from assay.steps.places import PlacedText, places_of
from assay.values.normal_forms import ENDS
from assay.values.normalizers import NORMALIZERS, checked_normalizer, normalized_expr, normalizer, normalizer_schemas
from assay.values.params import Params


class Lower(Step):
    """The text in lower case, by `str.lower`."""

    name = "lower"
    examples = (StepExample("Yes İ ΟΔΟΣ", "yes i\u0307 οδος"),)

    def row(self, text: str) -> str:
        return text.lower()

    def placed(self, given: PlacedText) -> PlacedText:
        return given.recased(str.lower)

    def expr(self, texts: pl.Expr) -> pl.Expr:
        return lower_expr(texts)


class Upper(Step):
    """The text in upper case, by `str.upper`."""

    name = "upper"
    examples = (StepExample("yes ß", "YES SS"),)

    def row(self, text: str) -> str:
        return text.upper()

    def placed(self, given: PlacedText) -> PlacedText:
        return given.recased(str.upper)

    def expr(self, texts: pl.Expr) -> pl.Expr:
        return recased_expr(texts, str.upper)


class Strip(Step):
    """The text without white space around it, by `str.strip`."""

    name = "strip"
    examples = (StepExample(" a b\n\x1c", "a b"),)

    def row(self, text: str) -> str:
        return text.strip()

    def placed(self, given: PlacedText) -> PlacedText:
        return given.stripped()

    def expr(self, texts: pl.Expr) -> pl.Expr:
        return texts.map_batches(stripped, return_dtype=pl.String, is_elementwise=True)


class TrimParams(Params):
    """What to take off."""

    of: Literal["punctuation"] = Field(
        default="punctuation", description="`punctuation`: ASCII white space and punctuation, at both ends."
    )


class Trim(Step):
    """The text without ASCII white space and punctuation around it: `{trim: punctuation}`."""

    name = "trim"
    shorthand = "of"
    Params = TrimParams
    params: TrimParams
    examples = (
        StepExample(" (42).\n", "42", {"of": "punctuation"}),
        StepExample("“a b!”", "“a b!”", {"of": "punctuation"}),
    )

    def row(self, text: str) -> str:
        return text.strip(ENDS)

    def placed(self, given: PlacedText) -> PlacedText:
        start = len(given.text) - len(given.text.lstrip(ENDS))
        return given.cut(start, start + len(given.text.strip(ENDS)))

    def expr(self, texts: pl.Expr) -> pl.Expr:
        return texts.str.strip_chars(ENDS)


class TailParams(Params):
    """How much."""

    chars: int = Field(ge=1, description="How many code points.")


class Tail(Step):
    """The last characters of the text: `{tail: 300}`."""

    name = "tail"
    shorthand = "chars"
    Params = TailParams
    params: TailParams
    examples = (StepExample("abcé", "cé", {"chars": 2}), StepExample("ab", "ab", {"chars": 3}))

    def row(self, text: str) -> str:
        return text[-self.params.chars :]

    def placed(self, given: PlacedText) -> PlacedText:
        return given.cut(max(len(given.text) - self.params.chars, 0), len(given.text))

    def expr(self, texts: pl.Expr) -> pl.Expr:
        # a number of bytes cannot exceed what Polars counts in
        return texts.str.tail(min(self.params.chars, 1 << 40))


class ReplaceParams(Params):
    """What to replace."""

    old: str = Field(min_length=1, description="The text to replace, wherever it occurs; not a pattern.")
    new: str = Field(description="The text to put there.")


class Replace(Step):
    """The text with each occurrence of a phrase replaced, by `str.replace`."""

    name = "replace"
    Params = ReplaceParams
    params: ReplaceParams
    examples = (
        StepExample("1,234,567", "1234567", {"old": ",", "new": ""}),
        StepExample("aaa", "$0a", {"old": "aa", "new": "$0"}),
    )

    def row(self, text: str) -> str:
        return text.replace(self.params.old, self.params.new)

    def placed(self, given: PlacedText) -> PlacedText:
        return given.replaced(places_of(given.text, self.params.old), self.params.new)

    def expr(self, texts: pl.Expr) -> pl.Expr:
        if not is_plain(self.params.old):
            return rowwise(texts, self.row, pl.String)
        return by_columns(texts, self.row, self._column)

    def _column(self, texts: pl.Series) -> pl.Series:
        return texts.str.replace_all(self.params.old, self.params.new, literal=True)


class MapParams(Params):
    """A table."""

    values: dict[str, str] = Field(min_length=1, description="What to give for each text.")
    default: str | None = Field(
        default=None, description="What to give for any other text; by default nothing is found."
    )


class Map(Step):
    """What a table has for the text: `{map: {Yes: "1", No: "0"}, default: "0"}`."""

    name = "map"
    shorthand = "values"
    takes_mapping = True
    Params = MapParams
    params: MapParams
    examples = (
        StepExample("Yes", "1", {"values": {"Yes": "1"}}),
        StepExample("yes", None, {"values": {"Yes": "1"}}),
        StepExample("yes", "0", {"values": {"Yes": "1"}, "default": "0"}),
    )

    def row(self, text: str) -> str | None:
        return self.params.values.get(text, self.params.default)

    def expr(self, texts: pl.Expr) -> pl.Expr:
        table = self.params.values
        values = texts.replace_strict([*table], [*table.values()], default=self.params.default, return_dtype=pl.String)
        return pl.when(texts.is_not_null()).then(values)


_BLANKS = re.compile(r"\s+")


class NormalizeParams(Params):
    """The normal form."""

    by: str | dict[str, Any] = Field(
        description=f"{', '.join(NORMALIZERS)}, or `{{lmEval: {{ignoreCase: true}}}}`.",
        json_schema_extra={"anyOf": [*normalizer_schemas()]},
    )

    _normalizer = field_validator("by")(checked_normalizer)


class Normalize(Step):
    """The text in the form of a normalizer: `{normalize: squad}`."""

    name = "normalize"
    runs_as = "Python, equal texts once"
    shorthand = "by"
    takes_mapping = True
    Params = NormalizeParams
    params: NormalizeParams
    examples: ClassVar[tuple[StepExample, ...]] = (
        StepExample("The  Cat.", "cat", {"by": "squad"}),
        StepExample("Straße", "strasse", {"by": "casefold"}),
    )

    @property
    def _by(self) -> str | Mapping[str, Any]:
        return self.params.by

    def row(self, text: str) -> str:
        return normalizer(self._by)(text)

    def placed(self, given: PlacedText) -> PlacedText:
        if self._by == "casefold":
            return given.recased(str.casefold)
        if self._by == "whitespace":
            stripped = given.stripped()
            return stripped.replaced((match.span() for match in _BLANKS.finditer(stripped.text)), " ")
        normalized = self.row(given.text)
        is_same = self._by in ("nfc", "nfkc") and normalized == given.text
        return given if is_same else given.as_block(normalized)

    def expr(self, texts: pl.Expr) -> pl.Expr:
        return normalized_expr(texts, self._by)


class _Named(Normalize):
    """A normalizer that is a step by its own name."""

    shorthand = ""
    takes_mapping = False
    Params = Params  # type: ignore[assignment]

    @property
    def _by(self) -> str:
        return self.name


class Casefold(_Named):
    """The text with its case folded, by `str.casefold`."""

    name = "casefold"
    runs_as = Step.runs_as
    examples = (StepExample("Straße", "strasse"),)


_COMPOSED = "columns tell which texts are ASCII; Python composes the others"


class Nfc(_Named):
    """The text in Unicode's composed form, NFC."""

    name = "nfc"
    runs_as = _COMPOSED
    examples = (StepExample("e\u0301", "é"),)


class Nfkc(_Named):
    """The text in Unicode's compatible composed form, NFKC."""

    name = "nfkc"
    runs_as = _COMPOSED
    examples = (StepExample("ﬁ²", "fi2"),)


class Whitespace(_Named):
    """The text with single spaces for white space, and none around it: `" ".join(text.split())`."""

    name = "whitespace"
    runs_as = Step.runs_as
    examples = (StepExample(" a\n b ", "a b"),)
