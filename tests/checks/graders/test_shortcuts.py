"""Shortcuts of graders give what their definitions give, and texts that a library refuses are no errors."""

import re
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.checks.graders.tools import numerals, openai, promptfoo
from assay.values.word_lists import MMLU_WORDS


def texts(*pieces):
    """Return texts that are mostly of these pieces."""
    return st.lists(st.sampled_from(pieces) | st.characters(), max_size=8).map("".join)


@given(texts(*"ab\n \x1c\x1f\x85\ufeff\xa0\u3000\u200b"))
def test_words_are_split_at_the_white_space_of_javascript(text):
    assert promptfoo._words(text) == promptfoo._WORD.findall(text)


@given(texts("Answer:", "ANSWER :", "Ri\u017fposta:", "答案：", "答", "উত্তরঃ", ":", " ", "\t", *"AbCdＢｂأ"))
def test_a_letter_of_mmlu_is_what_a_search_for_each_word_finds(text):
    every = [(True, word) for _, word in openai._WORDS]
    with mock.patch.multiple(openai, _WORDS=every, _MARKED=re.compile("")):
        expected = openai.mmlu(text, "B", {})
    assert openai.mmlu(text, "B", {}) == expected


@pytest.mark.parametrize(
    "letters", ["\u0623\u0628\u062c\u062f", "\u0985\u09ac\u09a1\u09a2", "\uff21\uff22\uff23\uff24"]
)
def test_letters_of_other_scripts_are_those_of_mmlu(letters):
    assert [openai.mmlu(f"Answer: {letter}", latin, {})[0] for letter, latin in zip(letters, "ABCD", strict=True)] == [
        1.0
    ] * 4
    assert [openai.mmlu(f"Answer: {letter}", "E", {})[0] for letter in letters] == [0.0] * 4


def test_a_word_for_answer_beyond_ascii_matches_no_text_within():
    ascii_text = "".join(map(chr, range(128)))
    beyond = {character for word in MMLU_WORDS for character in word if not character.isascii()}
    assert re.search(f"(?i)[{''.join(beyond)}]", ascii_text) is None


@given(st.text(st.characters(max_codepoint=127)) | st.sampled_from(("inf", "-nan", "Infinity", "1e999", "1_0")))
def test_an_ascii_text_without_digits_is_no_number(text):
    values = [read(text) for read in (numerals._float, numerals._in_any_script)]
    finite = next((value for value in values if value is not None and abs(value) < float("inf")), None)
    assert numerals.number(text, trim=False) == finite


@pytest.mark.parametrize(("text", "score"), [('{"a\0": 1} {"b": 2}', 1.0), ("{a\0}", 0.0)])
def test_an_object_that_yaml_cannot_hold_is_none(text, score):
    assert promptfoo.contains_json(text, {"value": None})[0] == score
