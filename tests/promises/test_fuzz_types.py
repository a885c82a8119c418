"""Columns of every type in every place that takes a reference: a score that rows have, too, an error of Assay's, or an unscored row."""

import os
import random

from cases import sized
from fuzz_types import COLUMNS, LEAVES, NESTED, case, checks_of, fuzz

CASES = int(os.environ.get("ASSAY_FUZZ_TYPES", sized("1200", "80")))
"""How many; ASSAY_FUZZ_TYPES=20000 for a thorough look."""

SEED = os.environ.get("ASSAY_FUZZ_SEED", "0")


def test_columns_of_all_types_end_as_scores_or_in_words():
    kinds, wrong = fuzz(CASES, SEED)
    assert wrong == []
    assert {"scored", "unscored", "ColumnsError", "InputError"} <= {*kinds}


def test_all_types_and_places_are_drawn():
    titles = [title for _, _, _, title in drawn(3000)]
    words = " ".join(titles)
    assert [name for name in (*LEAVES, *NESTED) if name not in words] == []
    places = {title.split(" as ")[1].rsplit(" `", 1)[0] for title in titles}
    assert places == {*COLUMNS, *checks_of(random.Random(0), {"column": "x"})}


def drawn(number):
    for at in range(number):
        try:
            yield case("7", at)
        except (ValueError, NotImplementedError):  # pyarrow has no such array
            continue
