"""A tag's text, in linear time: as the pattern that it stands for finds it."""

import re
import warnings
from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.expressions.tags import TagText

NAMES = (
    "a",
    "a b",
    "a.",
    ".",
    "..",
    "[ab]",
    "[^a]",
    r"\.",
    r"\w",
    r"a\s",
    "a|b",
    "(a)b",
    "a+",
    "a*",
    ".*?",
    "a{2}",
    "^a",
    "(",
    "[",
    "[[a]",
)
PIECES = (
    "<a>",
    "</a>",
    "<b>",
    "</b>",
    "<a b>",
    "</a b>",
    "<..>",
    "</..>",
    "<ab>",
    "</ab>",
    "<",
    ">",
    "</",
    " ",
    "\n",
    "\x1c",
    "\u3000",
    "a",
    "b",
    ".",
    "<(>",
    "</(>",
    "<a ",
    "</a ",
)


def by_the_pattern(name, text, *, strip, last):
    """The definition."""
    try:
        pattern = re.compile(rf"<{name}>\s*(.*?)\s*</{name}>", re.DOTALL)
    except re.error:
        pattern = re.compile(rf"<{re.escape(name)}>\s*(.*?)\s*</{re.escape(name)}>", re.DOTALL)
    matches = pattern.finditer(text)
    match = next(iter(deque(matches, maxlen=1)), None) if last else next(matches, None)
    content = match.group(1) if match else None
    return content.strip() if content is not None and strip else content


@pytest.mark.filterwarnings("ignore::FutureWarning")
@given(
    st.sampled_from(NAMES), st.lists(st.sampled_from(PIECES), max_size=14).map("".join), st.booleans(), st.booleans()
)
def test_a_tag_finds_what_its_pattern_finds(name, text, strip, last):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tag = TagText(name)
    assert tag.find(text, strip=strip, last=last) == by_the_pattern(name, text, strip=strip, last=last)
    assert tag.is_in(text) == (by_the_pattern(name, text, strip=True, last=False) is not None)


@pytest.mark.parametrize("name", ["a", "a.", "[ab]x"])
def test_a_tag_that_is_never_closed_takes_linear_time(name):
    text = f"<{name}>".replace("[ab]", "a") * 100_000
    assert TagText(name).find(text, strip=True, last=True) is None
    assert TagText(name).find("<a>" + " " * 300_000, strip=True, last=False) is None
