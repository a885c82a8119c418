"""Texts as reasons show them, in columns."""

import polars as pl
from hypothesis import example, given
from hypothesis import strategies as st

from assay.errors import quoted
from assay.expressions.pairs import quoted_expr

PIECES = ('"', "'", "\\", "\\n", "\n", "\r\n", "\t", "\x00", "\x1b", "…", "é", "\u202e", "a", " ", "x" * 20)
TEXTS = st.lists(st.lists(st.sampled_from(PIECES), max_size=20).map("".join) | st.none(), min_size=1, max_size=6)


@given(TEXTS)
@example(["a" * 59 + "\n", "a" * 60 + "\n", "\n" * 60, "\n" * 61, "x" * 60 + '"', ""])
def test_quoted_texts_are_those_of_python(texts):
    shown = pl.DataFrame({"text": pl.Series(texts, dtype=pl.String)}).select(quoted_expr(pl.col("text"), "p: "))
    assert shown.to_series().to_list() == [None if text is None else f"p: {quoted(text)}" for text in texts]
