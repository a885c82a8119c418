r"""Classes as ranges of code points: the same as Python's own matcher accepts, of all code points."""

import itertools
import re
from re import _parser as sre_parser

import pytest

from assay.expressions.regex.charsets import accepted
from assay.expressions.text import SCALARS


def ranges_of(pattern):
    ((op, value),) = (parsed := sre_parser.parse(pattern))
    return accepted(op, value, parsed.state.flags)


@pytest.mark.parametrize("flags", ["", "(?a)"])
@pytest.mark.parametrize("category", [r"\d", r"\D", r"\s", r"\S", r"\w", r"\W", r"[^\W\d]", r"[\s\d]", r"(?i:k)"])
def test_a_class_accepts_what_python_accepts_of_all_code_points(category, flags):
    if category.startswith("("):
        category, flags = category[-2], flags + "(?i)"
    points = SCALARS()
    wanted = set(re.findall(flags + category, points))
    ranges = ranges_of(flags + category)
    assert {chr(code) for first, last in ranges for code in range(first, last + 1)}.intersection(points) == wanted
    assert all(first <= last for first, last in ranges)
    assert all(left[1] + 1 < right[0] for left, right in itertools.pairwise(ranges))
