"""Steps that write a text in another form."""

import polars as pl
from pydantic import Field

from assay.errors import quoted
from assay.expressions.lane import rowwise
from assay.expressions.parts import by_columns, is_plain
from assay.expressions.text import is_ascii, lower_expr, strip_expr
from assay.steps.base import Step, StepExample
from assay.values.params import Params

__all__ = ["Lower", "Map", "Replace", "Strip", "Upper"]


class Lower(Step):
    """The text in lower case, by `str.lower`."""

    name = "lower"
    examples = (StepExample("Yes İ ΟΔΟΣ", "yes i\u0307 οδος"),)

    def row(self, text: str) -> str:
        return text.lower()

    def expr(self, texts: pl.Expr) -> pl.Expr:
        return lower_expr(texts)

    def describe(self) -> str:
        return "in lower case"


class Upper(Step):
    """The text in upper case, by `str.upper`."""

    name = "upper"
    examples = (StepExample("yes ß", "YES SS"),)

    def row(self, text: str) -> str:
        return text.upper()

    def expr(self, texts: pl.Expr) -> pl.Expr:
        return by_columns(texts, self.row, _upper)

    def describe(self) -> str:
        return "in upper case"


def _upper(texts: pl.Series) -> pl.Series:
    import pyarrow.compute as pc  # slow to import

    upper = pl.Series(pc.ascii_upper(texts.to_arrow(compat_level=pl.CompatLevel.oldest())), dtype=pl.String)
    beyond = ~is_ascii(texts)
    if not beyond.any():
        return upper
    exact = [text.upper() for text in texts.filter(beyond).to_list()]
    return upper.scatter(beyond.arg_true(), pl.Series(exact, dtype=pl.String))


class Strip(Step):
    """The text without white space around it, by `str.strip`."""

    name = "strip"
    examples = (StepExample(" a b\n\x1c", "a b"),)

    def row(self, text: str) -> str:
        return text.strip()

    def expr(self, texts: pl.Expr) -> pl.Expr:
        return strip_expr(texts)

    def describe(self) -> str:
        return "stripped"


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

    def expr(self, texts: pl.Expr) -> pl.Expr:
        if not is_plain(self.params.old):
            return rowwise(texts, self.row, pl.String)
        return by_columns(texts, self.row, self._column)

    def _column(self, texts: pl.Series) -> pl.Series:
        return texts.str.replace_all(self.params.old, self.params.new, literal=True)

    def describe(self) -> str:
        return f"with {quoted(self.params.new)} for {quoted(self.params.old)}"


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

    def describe(self) -> str:
        return "looked up in a table"
