"""Answers out of boxes and behind hashes."""

import pytest
from cases import sized
from hypothesis import given, settings
from hypothesis import strategies as st

from assay import ThinkParser, extract_boxed_answer, extract_hash_answer

PIECES = st.lists(st.sampled_from(["\\boxed{", "{", "}", "####", "#", "a", " ", "\n", "\\frac{1}{2}"]), max_size=12)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("so \\boxed{4}.", "4"),
        ("\\boxed{3}, no: \\boxed{\\frac{1}{2}}", "\\frac{1}{2}"),
        ("\\boxed{}", ""),
        ("\\boxed{4", "\\boxed{4"),
        ("\\boxed{3} \\boxed{4", "\\boxed{3} \\boxed{4"),
        ("4", "4"),
        ("", ""),
    ],
)
def test_the_last_box(text, answer):
    assert extract_boxed_answer(text) == answer
    assert ThinkParser(extract_fn=extract_boxed_answer).parse(f"<think>\\boxed{{1}}</think>{text}") == answer.strip()


@pytest.mark.parametrize(
    ("text", "answer"), [("2 + 2\n#### 4\n", "4"), ("#### 1 #### 2", "1"), ("####", ""), ("### 4", "### 4"), ("", "")]
)
def test_behind_the_first_hashes(text, answer):
    assert extract_hash_answer(text) == answer


@pytest.mark.xdist_group("verifiers")
@settings(max_examples=sized(500, 100), deadline=None)
@given(PIECES)
def test_the_same_as_the_release(pieces):
    peer = pytest.importorskip(
        "verifiers", reason="the release to compare with is not here: pip install 'assay[bench]'"
    )
    text = "".join(pieces)
    assert extract_boxed_answer(text) == peer.extract_boxed_answer(text)
    assert extract_hash_answer(text) == peer.extract_hash_answer(text)
