"""Reasons and errors without what differs from row to row."""

import polars as pl
import pytest

from assay.aggregating.templates import template, template_expr

CASES = {
    'the number is 17, expected "18"': "the number is …, expected …",
    'does not equal "a \\" b"': "does not equal …",
    "gold is missing: answer": "gold is missing: answer",
    "-$1,200.50 of 3e5, x2, 5-3 and .5": "… of …, x2, …-… and …",
    "3": "…",
    'an "open quote': 'an "open quote',
    '"a\\nb\\u2028" in 2 "c"': "… in … …",
    "": "",
}


@pytest.mark.parametrize("text", CASES)
def test_quoted_texts_and_numbers_are_left_out(text):
    assert template(text) == CASES[text]


def test_a_column_has_the_templates_of_its_rows():
    frame = pl.DataFrame({"text": [*CASES, None]})
    assert frame.select(template_expr(pl.col("text"))).to_series().to_list() == [*CASES.values(), None]
