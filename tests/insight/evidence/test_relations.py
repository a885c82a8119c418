"""How what a check read relates to what it expected."""

import pytest
from worked_cases import to_try

from assay.insight.evidence.relations import RELATIONS, bounded, near, occurrences, unwrapped
from assay.testing import hostile_texts

CASES = to_try("view", "relations")


@pytest.mark.skipif(not CASES, reason="the goldens are not part of the project")
def test_the_goldens_hold():
    assert [(read, gold, near(read, gold)) for read, gold, _ in CASES] == [tuple(case) for case in CASES]


@pytest.mark.parametrize(
    ("text", "inner"),
    [
        (r" **\boxed{\text{7}}**. ", "7"),
        (".5", ".5"),
        ("($.5).", "$.5"),
        ("$18", "18"),
        ("…", ""),
        (r"\boxed{", ""),
        ("\x1cno\x85", "no"),
    ],
)
def test_what_is_around_a_text_goes(text, inner):
    assert unwrapped(text) == inner


@pytest.mark.parametrize(
    ("text", "gold", "starts"),
    [
        ("18, 180, 1.18, .18, 18.5, -18, 5-18, x18, 18", "18", [0, 33, 42]),
        ("cat concat cat", "cat", [0, 11]),
        ("(-3) \u22123 a-3 _-3", "3", [10, 14]),
        ("aXa a", "a", [4]),
        ("any", "", []),
    ],
)
def test_a_gold_is_bounded(text, gold, starts):
    assert [start for start, _ in bounded(text, gold)] == starts


def test_a_gold_that_is_a_number_occurs_by_its_value():
    text = "$<<2*9=18>>18.0 and 1,800 and 018"
    assert [text[start:end] for start, end in occurrences(text, "18")] == ["18", "18.0", "018"]


def test_the_first_relation_of_any_gold_counts():
    assert near("18 dollars", "dollars", "18") == "begins"
    assert near("Paris.", "London", "in Paris.", "paris") == "wrapped"
    assert near("2e0", "1999", "2") == "number"


@pytest.mark.parametrize("length", [200, 201, 2_000, 2_001])
def test_long_answers_are_not_searched(length):
    inside, first = "a 18 b".ljust(length, "b"), "18 b".ljust(length, "b")
    assert near(inside, "18") == ("contains" if length <= 200 else None)
    assert near(first, "18") == ("begins" if length <= 2_000 else None)


@pytest.mark.parametrize(
    ("answer", "relation"),
    [
        ("(18) {} 7", "begins"),
        ("7 18 {}", None),
        ("x 18 {}", None),
        ("7 {} **18.0**.", "ends"),
        ("7 {} 18 7", None),
        ("7 {} 5.18", None),
        ("7 {} a18", None),
        ("1e999 {} \\boxed{{18}}", "ends"),
        ("{}", None),
    ],
)
def test_of_the_numbers_of_a_long_answer_the_first_and_the_last_count(answer, relation):
    assert near(answer.format("18 words " * 50 if "{} " in answer else "words " * 50), "18") == relation


def test_hostile_texts_run_through():
    texts = [*hostile_texts(16)]
    assert {near(read, gold) for read in texts for gold in texts} <= {None, *RELATIONS}
