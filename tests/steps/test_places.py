"""Where the characters of what a step finds come from."""

import pytest

from assay.steps.chain import Chain
from assay.steps.places import PlacedText
from assay.steps.reader import read_steps
from assay.steps.registry import STEP_TYPES
from assay.testing import hostile_texts

BLOCKS = {"map", "nfc", "nfkc", "normalize", "json"}
REWRITES = {"lower", "upper", "casefold", "whitespace", "replace"}


def placed(steps, text):
    """The parts of a text that steps find."""
    result = Chain(read_steps(steps)).placed(PlacedText.of(text))
    return [] if result is None else result if isinstance(result, list) else [result]


def outlines(step):
    """The text of each example, and its step as a spec writes it."""
    for example in step.examples:
        chains = step.name == "firstOf" and {"firstOf": example.params["chains"]}
        yield example.text, chains or step(step.Params.model_validate(example.params or {})).outline()


@pytest.mark.parametrize("step", STEP_TYPES, ids=lambda step: step.name)
def test_places_go_with_what_the_row_finds(step):
    for text, outline in outlines(step):
        (one,) = read_steps([outline])
        by_package = getattr(one.params, "flavor", "re") == "regex"
        texts = [text] if by_package else [text, *hostile_texts(40), *(text + other for other in hostile_texts(10))]
        for given in texts:
            result = one.row(given)
            parts = placed([outline], given)
            assert [part.text for part in parts] == (
                [] if result is None else result if isinstance(result, list) else [result]
            )
            for part in parts:
                assert len(part.text) == len(part.starts) == len(part.ends)
                assert all(0 <= start <= end <= len(given) for start, end in zip(part.starts, part.ends, strict=True))
                if step.name not in BLOCKS | REWRITES:
                    assert "".join(given[start] for start in part.starts) == part.text


@pytest.mark.parametrize(
    ("steps", "text", "hulls", "is_block"),
    [
        ([{"after": "A:"}, "strip"], "A:  é😀 ", [(4, 6)], False),
        (["lower"], "İX", [(0, 2)], False),
        (["lower", {"regex": "x"}], "İX", [(1, 2)], False),
        (["upper", {"after": "SS"}], "ßa", [(1, 2)], False),
        (["casefold", {"regex": "^s"}], "ßa", [(0, 1)], False),
        (["whitespace", {"regex": " .*"}], " a \n b ", [(2, 6)], False),
        ([{"replace": {"old": "two", "new": "2"}}, {"regex": "2"}], "a two b", [(2, 5)], False),
        ([{"replace": {"old": "a", "new": ""}}], "xay", [(0, 3)], False),
        ([{"remove": ["b+", "c"]}, {"regex": "ad"}], "abbcd", [(0, 5)], False),
        ([{"split": " and "}], "x and and y", [(0, 1), (6, 11)], False),
        ([{"split": "a"}], " x aa y ", [(1, 2), (6, 7)], False),
        (["numbers"], "1 and 2.5", [(0, 1), (6, 9)], False),
        ([{"map": {"yes": "1"}}], "yes", [(0, 3)], True),
        (["nfkc", {"regex": "i2"}], "ﬁ²", [(0, 2)], True),
        (["nfc", {"regex": "b"}], "ab", [(1, 2)], False),
        ([{"normalize": "squad"}], "The cat", [(0, 7)], True),
        ([{"normalize": "whitespace"}], " a  b", [(1, 5)], False),
        ([{"line": 2}], "a\n\n  b \nc", [(5, 6)], False),
        ([{"line": -2}], "a\nb\nc", [(2, 3)], False),
        ([{"json": {"path": "a"}}], '{"a": "b", "a": "c"}', [(17, 18)], False),
        ([{"json": {"path": "a"}}], r'{"a": "\u00e9"}', [(7, 13)], True),
        ([{"json": {"path": "a"}}], '{"a": [1,2]}', [(6, 11)], True),
        ([{"json": {"path": "a"}}], '{"a": [1, 2]}', [(6, 12)], False),
        ([{"json": {"path": "[-1]"}}], "[1, 2.50]", [(4, 8)], True),
        ([{"json": "last"}], 'see [1] and {"a": 1}.', [(12, 20)], False),
        ([{"firstOf": [["boxed"], [{"after": "A:"}]]}], r"A: 1 \boxed{2", [(3, 13)], False),
        ([{"after": "A:", "notFound": "keep"}], "b", [(0, 1)], False),
        ([{"regex": "(a)?(b)", "group": "any"}], "xb", [(1, 2)], False),
    ],
)
def test_each_character_keeps_its_place(steps, text, hulls, is_block):
    parts = placed(steps, text)
    assert [part.hull() for part in parts] == hulls
    assert all(bool(part.block) is is_block for part in parts)


@pytest.mark.parametrize("steps", [["afterThink", {"after": "A:"}], [{"line": "last"}, "number"], ["boxed", "strip"]])
def test_a_chain_of_cuts_is_a_part_of_the_text(steps):
    for text in [*hostile_texts(60), r"<think>x</think> A: é 5 \boxed{ 7 }"]:
        for part in placed(steps, text):
            start, end = part.hull()
            assert text[start:end] == part.text


def test_a_part_of_a_block_has_no_place_of_its_own():
    block = PlacedText.of("ab²").cut(1, 3).as_block("b2")
    assert block.span(0, 2) == (1, 3)
    assert block.span(1, 2) is None
    assert block.cut(0, 1).span(0, 1) is None
    assert block.span(0, 0) is None
