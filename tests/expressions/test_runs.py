"""Counted in bytes, words are those that Python counts: on hostile texts, whatever the pieces and behind nulls."""

import random
import re

import polars as pl
import pytest

from assay.expressions.counts import COUNTS
from assay.expressions.text import WHITESPACE
from assay.thresholds import set_to

_CHARACTERS = f"{WHITESPACE}{WHITESPACE}abXZ019_-.,éßΣ中😀\u200b\x00\x08\x0e\x1b\x7f@[`{{/:^"
_ROWS = {"words": lambda text: len(text.split()), "word_tokens": lambda text: len(re.findall(r"\w+", text))}


def _texts(count, seed=1):
    rng = random.Random(seed)
    alphabets = (_CHARACTERS, "ab \n\t_-1")
    drawn = ["".join(rng.choices(rng.choice(alphabets), k=rng.randrange(20))) for _ in range(count)]
    return [*drawn, None, "", "", None, " ", "a", "a"]


@pytest.mark.parametrize("of", _ROWS)
@pytest.mark.parametrize("rows", [1, 7, 4_096])
def test_runs_are_those_of_python(of, rows):
    texts = _texts(3_000)
    column = pl.Series("text", texts)
    with set_to(slice=rows if rows > 1 else 499, slice_text=0):
        for part in (column[:rows], column[2 : rows + 2], pl.concat([column[5:], column[:5]], rechunk=False)):
            counted = part.to_frame().select(COUNTS[of].expr(pl.col("text"))).to_series()
            assert counted.to_list() == [None if text is None else _ROWS[of](text) for text in part]


def test_texts_that_a_condition_hides_do_not_count():
    frame = pl.DataFrame({"text": ["a b", "c d e", "f"], "counts": [True, False, True]})
    hidden = pl.when("counts").then(COUNTS["words"].expr(pl.col("text")))
    assert frame.select(hidden).to_series().to_list() == [2, None, 1]
