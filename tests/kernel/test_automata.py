"""Automata find what Python's `re` finds, and refuse what they cannot find."""

import random
import re
from functools import cache

import pytest
from cases import sized

from assay.expressions.regex.compiled import parsed
from assay.kernel.automata import LOST, NoAutomatonError, automaton_of, joint_classes
from assay.kernel.facts import Fact
from assay.kernel.programs import form
from assay.testing import hostile_texts

PATTERNS = (
    *(
        r"a$",
        r"(?m)a$",
        r"a$\n?",
        r"^$",
        r"\A\s*\Z",
        r"\Z",
        r"\B",
        r"\b",
        r"(?i)k",
        r"(?i)straße",
        r"(?a)\w+\d",
        r"\w{15,}",
    ),
    *(
        r"\s\d",
        r"[^\W\d_]{3}",
        r"(?s).\d.\n",
        r"(?i)[^a-y]\b",
        r"(?:a|ab)(?:b|c)*$",
        r"x{0,3}y?\n$",
        r".$",
        r"(?m)^.?$",
    ),
    *(
        r"\d$\s",
        r"(?:\n|a)$",
        r"",
        r"(?i)[ſ-ƀ]",
        r"\S\Z",
        r"[\s\S]\B.",
        r"é|中$",
        r"(?m)^\s*(?:[-*]|\d+\.)\s",
    ),
    *(
        r"\b\d+(?:\.\d+)?\b",
        r"(?i)\b(?:might|maybe|perhaps)\b",
        r"```(?:\w+)?\n",
        r"\*\*[^*\n]+\*\*",
        r"(?i:a)b",
        r"[^a]\Z",
    ),
    *(r"(?:a|b)*", r"a+b?c*", r"(?:^a)+b", r"(?:a$)+", r"b*\d{2,}", r"(?s)^<a>.*?</a>\s*<b>.*\Z", r"(?m)\w+$"),
)
PIECES = (
    *(
        "refund",
        "Maybe ",
        "\u212a",
        "İ",
        "ı",
        "ſ",
        "٣",
        "2.5",
        "- ",
        "\n",
        "\r",
        "\x1c",
        "\u2028",
        "_",
        "é",
        "É",
        "中",
        "😀",
        "a",
        "b",
    ),
    *(
        "Z",
        " ",
        "\t",
        ".",
        "*",
        "```",
        "json\n",
        "x" * 16,
        "\u0800",
        "\uffff",
        "\U0010ffff",
        "straße",
        "STRASSE",
        "k",
        "0",
        "ab",
    ),
)


def _texts(number, seed=0):
    rng = random.Random(seed)
    drawn = ["".join(rng.choice(PIECES) for _ in range(rng.randint(0, 12))) for _ in range(number)]
    return ["", *drawn, *hostile_texts(number, seed)]


@cache
def _automaton(pattern):
    tree = parsed(pattern, 0)
    return automaton_of(tree, tree.state.flags)


def _finds(automaton, text):
    state = automaton.start
    for character in text:
        state = automaton.rows[state][automaton.classes.of(ord(character))]
    return automaton.at_end[state]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_an_automaton_finds_what_python_finds(pattern):
    automaton = _automaton(pattern)
    texts = _texts(60)
    expected = [re.search(pattern, text) is not None for text in texts]
    assert [_finds(automaton, text) for text in texts] == expected


def test_each_match_contains_what_it_needs():
    for pattern in PATTERNS:
        for text in _texts(sized(60, 20), seed=1):
            needs = _automaton(pattern).needs
            if needs and re.search(pattern, text):
                data = text.encode()
                found = (
                    all(byte | mask == want for byte, want, mask in zip(data[at:], each.want, each.mask, strict=False))
                    for each in needs
                    for at in range(len(data) - len(each.want) + 1)
                )
                assert any(found), (pattern, text)


def test_bytes_between_stops_lead_back_into_the_group():
    skipping = [automaton for automaton in map(_automaton, PATTERNS) if automaton.stops]
    assert skipping
    for automaton in skipping:
        for state, number in enumerate(automaton.stops_of):
            if not number:
                continue
            ranges, leader = automaton.stops[number - 1]
            boring = [code for code in range(128) if not any(a <= code <= z for a, z in ranges)]
            group = {automaton.rows[state][automaton.classes.of(code)] for code in boring} | {state, leader}
            for code in boring:
                to = automaton.rows[leader][automaton.classes.of(code)]
                assert to in group
                assert {automaton.rows[other][automaton.classes.of(code)] for other in group} == {to}


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        (r"a(?=b)", "look-around"),
        (r"(?<!a)b", "look-around"),
        (r"(a)\1", "back-reference"),
        (r"(?:\d{40}|a.{9}){9}", "automaton too large"),
        (r"a.{12}b", "automaton too large"),
        (r"\w(?a:\w)", "scoped a/u flags"),
        (r"b(?:a*)*c", "a repeat of something that may be empty"),
        (r"\b[a-z]+_[a-z_]+\b", "columns look first for what each match contains"),
        (r"[.!?]\s*$", "columns begin at the end of the text"),
    ],
)
def test_what_has_no_automaton_is_refused_with_the_reason(pattern, why):
    with pytest.raises(NoAutomatonError, match=why):
        form(Fact("pattern", pattern))


@pytest.mark.parametrize(
    ("fact", "text", "holds"),
    [
        (Fact("phrase", "naïve", folds=True), "NAÏVE!", True),
        (Fact("phrase", "k", folds=True, place="word"), "\u212a", True),
        (Fact("phrase", "a", place="word"), "éa", False),
        (Fact("phrase", ".", place="word"), "a. b", False),
        (Fact("phrase", "yes", folds=True, place="start", strips=True), " \x1cYES, no", True),
        (Fact("phrase", "yes", place="start"), " yes", False),
    ],
)
def test_phrases_that_are_not_bytes_are_automata(fact, text, holds):
    assert fact.holds(text) == holds == _finds(form(fact), text)


def test_states_that_no_text_tells_apart_are_one():
    tree = parsed("(?:abc|abd|ab[cd])", 0)
    assert automaton_of(tree, tree.state.flags).states == 5


def test_joint_classes_lie_within_those_of_each():
    automata = [form(Fact("pattern", pattern)) for pattern in (r"\d\w", r"(?i)é", r"[a-m]\s")]
    joint, within = joint_classes([automaton.classes for automaton in automata])
    for code in (*range(400), 0x660, 0x4E2D, 0x1F600, 0x10FFFF):
        each = joint.of(code)
        assert [own[each] for own in within] == [automaton.classes.of(code) for automaton in automata]
    assert LOST == 0
