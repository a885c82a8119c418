"""Reasons and errors without what differs from row to row, so that those of one kind count as one."""

from collections.abc import Iterable

import polars as pl

from assay.errors import encodable
from assay.steps.numbers import NUMBER_VALUE

_QUOTED = r'(?s)"(?:[^"\\]|\\.)*"'
# a number in a text comes after no letter, digit or bracket; a quoted text is one word by then
_NUMBER = rf"(^|[^0-9A-Za-z_)])(?:{NUMBER_VALUE})"


def template_expr(text: pl.Expr) -> pl.Expr:
    """``template`` as an expression over a String column."""
    return text.str.replace_all(_QUOTED, "…").str.replace_all(_NUMBER, "${1}…")


def templates(texts: Iterable[str]) -> list[str]:
    """Return reasons or errors with their quoted texts and numbers as ``…``: ``the number is …, expected …``."""
    frame = pl.DataFrame({"text": [*map(encodable, texts)]}, schema={"text": pl.String})
    return frame.select(template_expr(pl.col("text"))).to_series().to_list()


def template(text: str) -> str:
    """``templates`` of one text."""
    return templates([text])[0]
