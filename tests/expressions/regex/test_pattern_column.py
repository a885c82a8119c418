r"""Patterns on the row against ``re.search``: literals, words between ``\b``, sequences, and what only ``re`` can answer."""

import itertools
import re

import polars as pl
import pytest
from cases import sized

from assay.expressions.regex import pattern_column as rowpatterns
from assay.expressions.regex.pattern_column import needed_literal, search_uncompiled
from assay.functions.registry import IGNORE_CASE, regex_match_expr

PHRASES = [
    "aa a",
    "a",
    "Kate",
    "is",
    "león",
    "é",
    "x_1",
    "-a",
    "a-",
    "b",
    "`a`",
    "ſ",
    "\u212a",
    "{a}",
    "a\\",
    "\\b",
    "😊 a",
]
SIDES = ["", " ", "a", "_", "é", "\u0301", "-", "İ"]
OTHERS = [
    "",
    "a+",
    r"\d\d",
    r"(?i)\bKATE\b",
    r"(?i)ka",
    "(?i)é",
    r"é*a",
    r"\bé+",
    "a|b",
    r"\bb\\b",
    r"^a",
    r"a\b\b",
    "ab?",
    "Ié",
    "(a",
    "(?i)(?i)a",
    "a**",
]


def _texts():
    texts = ["".join(parts) for parts in itertools.product(SIDES, PHRASES, SIDES)][:: sized(1, 2)]
    return [
        "",
        *texts,
        *(text.upper() for text in texts[::3]),
        "aa aa aa a_",
        "xa " * 40,
        "xa " * 40 + "a",
        "xa xa a",
        "éa a",
    ]


def _found(pattern, text, flags):
    try:
        return bool(pattern) and re.search(pattern, text, flags) is not None
    except re.error:
        return None


@pytest.mark.parametrize("ignores", [False, True])
def test_columns_find_what_re_finds(ignores):
    words = [
        f"{before}{re.escape(phrase)}{after}" for phrase in PHRASES for before in ("", r"\b") for after in ("", r"\b")
    ]
    pairs = [*itertools.product(_texts(), [*words, *OTHERS])]
    frame = pl.DataFrame(pairs, schema={"text": pl.String, "pattern": pl.String}, orient="row")
    twin = regex_match_expr(pl.col("text"), pl.col("pattern"), {IGNORE_CASE: ignores})
    found = frame.select(twin).to_series().to_list()
    flags = re.IGNORECASE if ignores else 0
    wanted = [_found(pattern, text, flags) for text, pattern in pairs]
    wrong = [
        pair for pair, one, other in zip(pairs, found, wanted, strict=True) if one is not None and one is not other
    ]
    assert wrong == []
    alone = [search_uncompiled(pattern, text, flags) if pattern else False for text, pattern in pairs]
    assert [pair for pair, one, other in zip(pairs, alone, wanted, strict=True) if one not in (None, other)] == []
    assert {pattern for (_, pattern), one in zip(pairs, alone, strict=True) if one} >= {*words[:3]}
    left = {pattern for (_, pattern), one in zip(pairs, found, strict=True) if one is None}
    assert not left & {word for word in words if r"\b" not in word}


@pytest.mark.parametrize("phrase", ["aa a", "a-", "león", r"C:\b"])
def test_words_between_boundaries_are_not_compiled(phrase, monkeypatch):
    def never(*given):
        raise AssertionError(given)

    monkeypatch.setattr(rowpatterns, "_search_all", never)
    texts = [before + phrase + after for before in SIDES for after in SIDES]
    pattern = rf"\b{re.escape(phrase)}\b"
    frame = pl.DataFrame({"text": texts, "pattern": pattern})
    found = frame.select(regex_match_expr(pl.col("text"), pl.col("pattern"), {})).to_series().to_list()
    assert found == [re.search(pattern, text) is not None for text in texts]


def test_one_row_with_a_long_word():
    word = "a(" * 5_000
    frame = pl.DataFrame({"text": [f"x {word}b"], "pattern": [rf"\b{re.escape(word)}b\b"]})
    assert frame.select(regex_match_expr(pl.col("text"), pl.col("pattern"), {})).item() is True


@pytest.mark.parametrize(
    ("pattern", "folds", "literal"),
    [
        (r"Ab\ c", False, "Ab c"),
        (r"Ab\ c", True, "ab c"),
        (r"ab\d+cdxe?f", False, "cdx"),
        (r"ab+c", False, "ab"),
        (r"^.*$", False, None),
        ("le\u00f3n", False, "le\u00f3n"),
        ("le\u00f3nel", True, "nel"),
        ("\u00e9", True, None),
        ("a|b", False, None),
        ("(ab)", False, None),
        ("a{2}", False, None),
        ("a**", False, None),
    ],
)
def test_needed_literal(pattern, folds, literal):
    assert needed_literal(pattern, folds=folds) == literal
