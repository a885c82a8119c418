"""Texts as reasons show them, and pairs of texts compared, in columns."""

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from assay.errors import quoted
from assay.expressions.pairs import contain_expr, edge_expr, equal_expr, quoted_expr

PIECES = ('"', "'", "\\", "\\n", "\n", "\r\n", "\t", "\x00", "\x1b", "…", "é", "\u202e", "a", " ", "x" * 20)
TEXTS = st.lists(st.lists(st.sampled_from(PIECES), max_size=20).map("".join) | st.none(), min_size=1, max_size=6)


@given(TEXTS)
@example(["a" * 59 + "\n", "a" * 60 + "\n", "\n" * 60, "\n" * 61, "x" * 60 + '"', ""])
def test_quoted_texts_are_those_of_python(texts):
    shown = pl.DataFrame({"text": pl.Series(texts, dtype=pl.String)}).select(quoted_expr(pl.col("text"), "p: "))
    assert shown.to_series().to_list() == [None if text is None else f"p: {quoted(text)}" for text in texts]


PARTS = ("a", "A", "İ", "i̇", "Σ", "σ", "ς", "ẞ", "ß", "K", "k", " ", "\x85", "é", "É", "x" * 40)
PAIR = st.tuples(*[st.lists(st.sampled_from(PARTS), max_size=5).map("".join)] * 3)


@pytest.mark.parametrize("lowered", [False, True])
@given(st.lists(PAIR, min_size=2, max_size=8))
@example([("", "aΣ", "b" * 80), ("y" * 80, "σ", "Σ"), ("", "İ", "x" * 40), ("x" * 40, "i̇", "")])
def test_pairs_compare_as_in_python(lowered, drawn):
    pairs = [(before + gold.swapcase() + after, gold) for before, gold, after in drawn]
    pairs += [(before + gold + after, gold) for before, gold, after in drawn] + [(b, g) for b, g, _ in drawn]
    frame = pl.DataFrame(pairs, schema={"text": pl.String, "gold": pl.String}, orient="row")
    columns = pl.col("text"), pl.col("gold")
    case = str.lower if lowered else str
    cased = [(case(text), case(gold)) for text, gold in pairs]
    stripped = [(case(text.strip()), case(gold.strip())) for text, gold in pairs]
    assert frame.select(
        equal=equal_expr(*columns, lowered=lowered),
        within=contain_expr(*columns, lowered=lowered),
        begins=edge_expr(*columns, end=False, stripped=False, lowered=lowered),
        ends=edge_expr(*columns, end=True, stripped=True, lowered=lowered),
    ).to_dict(as_series=False) == {
        "equal": [text == gold for text, gold in stripped],
        "within": [gold in text for text, gold in cased],
        "begins": [text.startswith(gold) for text, gold in cased],
        "ends": [text.endswith(gold) for text, gold in stripped],
    }
