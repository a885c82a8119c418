"""Steps from plain data: both spellings, every form, and all problems at once."""

import pytest

from assay.steps.base import Step
from assay.steps.chain import Chain
from assay.steps.reader import StepErrors, read_steps
from assay.steps.registry import STEPS

SAME = (
    (["afterThink", "after_think", "strip_think", {"afterThink": None}, {"afterThink": {}}], "afterThink"),
    (
        [{"tag": "a", "at": "first"}, {"tag": {"name": "a", "at": "first"}}, {"at": "first", "tag": "a"}],
        {"tag": "a", "at": "first"},
    ),
    ([{"tag": "a"}, {"tag": {"name": "a", "at": "last"}}], {"tag": "a"}),
    (
        [{"firstOf": ["boxed", ["think"]]}, {"first_of": {"chains": [["boxed"], "think"]}}],
        {"firstOf": [["boxed"], ["think"]]},
    ),
    ([{"boxed": {"notFound": "keep"}}, {"boxed": None, "not_found": "keep"}], {"boxed": {"notFound": "keep"}}),
    ([{"remove": ","}, {"remove": [","]}], {"remove": [","]}),
    ([{"map": {"a": "b"}}], {"map": {"a": "b"}}),
)


@pytest.mark.parametrize(("forms", "outline"), SAME, ids=str)
def test_forms_of_one_step_are_one_step(forms, outline):
    for form in forms:
        for data in (form, [form]):
            assert Chain(read_steps(data)).outline() == [outline]


PROBLEMS = (
    ("boxd", (), "unknown step `boxd`. Did you mean `boxed`?"),
    ([{"aftr": "A:"}], (0, "aftr"), "unknown step `aftr`. Did you mean `after`?"),
    ([{"at": "first", "tagg": "a"}], (0, "tagg"), "unknown step `tagg`. Did you mean `tag`?"),
    (["strip", 5], (1,), "expected the name of a step or an object, got a number (5)"),
    ([{"tag": "a", "after": "b"}], (0,), "`tag` and `after` are two steps; write them as two items of the list"),
    ({"after": "x", "too": "end"}, ("too",), "unknown option `too` of `after`. Did you mean `to`?"),
    ({"boxed": {"at": "first"}}, ("boxed", "at"), "unknown option `at` of `boxed`. Known: style, notFound."),
    ({"boxed": 1}, ("boxed",), "`boxed` takes no value, got a number (1); write `boxed` alone"),
    ("tag", (), "`tag` needs `name`: write {tag: …}"),
    ({"replace": {"old": "a"}}, ("replace",), "`replace` needs `new`: write {replace: {new: …}}"),
    ({"tag": "a", "at": "frist"}, ("at",), "expected `last` or `first`, got a string ('frist')"),
    (
        {"after": 5},
        ("after",),
        "expected a string, got a number (5). Write it in quotes: a bare value is read as a number or true/false.",
    ),
    ({"after": "\ud800"}, ("after",), r"a string ('\ud800') has a lone surrogate, which no text has"),
    ({"line": "middle"}, ("line",), "expected `first` or `last` or a whole number, got a string ('middle')"),
    ({"line": 0}, ("line",), "lines are numbered from 1; -1 is the last"),
    ({"tag": "a|b"}, ("tag",), "a tag has no groups, alternatives and repeats in its name; use `regex`"),
    ({"regex": "(a"}, ("regex",), "PatternError: missing ), unterminated subpattern at position 0"),
    (
        {"regex": {"pattern": "(a"}},
        ("regex", "pattern"),
        "PatternError: missing ), unterminated subpattern at position 0",
    ),
    ({"regex": "a", "group": 1}, ("regex",), "the pattern has 0 groups, not 1"),
    (
        {"remove": ["a", 3]},
        ("remove",),
        "expected a string, got a number (3). Write it in quotes: a bare value is read as a number or true/false.",
    ),
    (
        {"json": {"path": "a[]"}},
        ("json", "path"),
        '`a[]` is not the path of one value; write a.b, a[0], [0].a, a[-1] or a["b.c"]',
    ),
    (
        {"json": {"path": "a["}},
        ("json", "path"),
        '`a[` is not a valid path, from `[` on; write a.b, a[0], a[-1], a[] or a["b.c"]',
    ),
    ({"fence": "a b"}, ("fence",), "a language is a word without backticks"),
    ({"firstOf": []}, ("firstOf",), "expected a list of chains of steps, got an empty list"),
    ({"firstOf": [["boxed"], ["boxd"]]}, ("firstOf", 1, 0), "unknown step `boxd`. Did you mean `boxed`?"),
    ({"boxed": {"notFound": "pass"}}, ("boxed", "notFound"), "expected `keep`, got a string ('pass')"),
    ({"tag": "a", "name": "b"}, ("name",), "`name` is given twice: it is the value of `tag`"),
    (
        {"regex": "a", "notFound": "keep", "Group": 1},
        ("Group",),
        "unknown option `Group` of `regex`. Did you mean `group`?",
    ),
)


@pytest.mark.parametrize(("data", "path", "message"), PROBLEMS, ids=str)
def test_a_problem_says_where_and_what(data, path, message):
    with pytest.raises(StepErrors) as caught:
        read_steps(data)
    assert [(problem.path, problem.message) for problem in caught.value.problems] == [(path, message)]


def test_all_problems_are_told():
    with pytest.raises(StepErrors) as caught:
        read_steps([data for data, *_ in PROBLEMS if isinstance(data, dict)])
    assert len(caught.value.problems) == sum(isinstance(data, dict) for data, *_ in PROBLEMS)


class Words(Step):
    name = "words"
    gives_list = True

    def row(self, text):
        return text.split()


def test_nothing_follows_a_list():
    types = {**STEPS, "words": Words}
    assert Chain(read_steps(["strip", "words"], types=types)).row(" a b") == ["a", "b"]
    with pytest.raises(StepErrors, match="`words` gives a list; put it last"):
        read_steps(["words", "strip"], types=types)
    with pytest.raises(StepErrors, match="`words` gives a list; put it behind `firstOf`"):
        read_steps({"firstOf": [["boxed"], ["words"]]}, types=types)


def test_first_of_has_a_depth():
    data = "boxed"
    for _ in range(8):
        data = {"firstOf": [[data]]}
    assert Chain(read_steps(data)).row(r"\boxed{4}") == "4"
    with pytest.raises(StepErrors, match="`firstOf` is nested more than 8 deep"):
        read_steps({"firstOf": [[data]]})


def test_no_data_ends_in_a_traceback():
    for data in (None, 5, {}, [[]], [None], {5: "a"}, {"firstOf": [[{}]]}, [{"json": []}], {"map": {}}):
        with pytest.raises(StepErrors):
            read_steps(data)
