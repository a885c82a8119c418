r"""Classes as ranges of code points: the same as Python's own matcher accepts, of all code points."""

import itertools
import re
from re import _parser as sre_parser

import pytest

from assay.expressions.regex.trees.charsets import accepted, folded, unfolded
from assay.expressions.text import SCALARS


def ranges_of(pattern):
    ((op, value),) = (parsed := sre_parser.parse(pattern))
    return accepted(op, value, parsed.state.flags)


def place(code):
    """How many scalar values are below a code point: there are no surrogates among them."""
    return code - max(0, min(code, 0xE000) - 0xD800)


@pytest.mark.parametrize("flags", ["", "(?a)"])
@pytest.mark.parametrize("category", [r"\d", r"\D", r"\s", r"\S", r"\w", r"\W", r"[^\W\d]", r"[\s\d]", r"(?i:k)"])
def test_a_class_accepts_what_python_accepts_of_all_code_points(category, flags):
    if category.startswith("("):
        category, flags = category[-2], flags + "(?i)"
    points = SCALARS()
    wanted = "".join(re.findall(f"{flags}{category}+", points))
    ranges = ranges_of(flags + category)
    is_same = "".join(points[place(first) : place(last + 1)] for first, last in ranges) == wanted
    assert is_same  # pytest would compare a million code points for its message
    assert all(first <= last for first, last in ranges)
    assert all(left[1] + 1 < right[0] for left, right in itertools.pairwise(ranges))


def test_folded_characters_are_equal_where_ignorecase_matches_them():
    left = {*unfolded()}
    cased = "".join(code for code in SCALARS(0x20000) if (code.lower(), code.upper()) != (code, code))
    forms = {}
    for code in SCALARS(0x20000):
        forms.setdefault(folded(code), set()).add(code)
    for code in {*cased} - left:
        found = {*re.findall(re.escape(code), cased, re.IGNORECASE)}
        assert found - left == forms[folded(code)] - left, code
        assert len(folded(code).encode()) == len(code.encode()), code


def test_what_is_unfolded_matches_others_or_changes_its_size():
    assert {*unfolded()} >= {"İ", "ı", "ſ", "\u212a", "\u00b5", "Ⱥ", "\u0345"}
    assert not {*unfolded()} & {*"éÉжЖσςΣμΜßкK"}
