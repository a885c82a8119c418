"""Where the things are that texts have so many of."""

import pytest

from assay.expressions.counts import COUNTS
from assay.testing import hostile_texts


@pytest.mark.parametrize("name", [name for name in COUNTS if name != "items"])
def test_there_are_as_many_places_as_are_counted(name):
    for text in [*hostile_texts(300), "One. Two?\n\n- a\n1. b\n# c ", "é😀", ""]:
        places = [*COUNTS[name].places(text)]
        assert len(places) == COUNTS[name].row(text)
        assert places == sorted(places)
        assert all(0 <= start < end <= len(text) for start, end in places)
