"""Lower case and white space: the columns do what CPython does."""

import itertools
import unicodedata

import polars as pl
import pytest
from cases import sized

from assay.expressions.shared_columns import layers
from assay.expressions.text import (
    ASCII_LOWER,
    SCALARS,
    WHITESPACE,
    before,
    behind,
    case_patterns,
    composed_expr,
    lower,
    lower_expr,
    lower_rows,
    lowered_pattern,
    phrase_lane,
    recased_expr,
    single_spaced_expr,
    strip_expr,
    stripped,
    stripped_pattern,
)
from assay.names import TEXT
from assay.testing import hostile_texts
from assay.thresholds import EVER, set_to


def column(expr, texts, engine="in-memory"):
    return pl.LazyFrame({"t": texts}, schema={"t": pl.String}).select(expr).collect(engine=engine).to_series().to_list()


def by_lane(phrase, texts, sharers):
    frame, lane = pl.DataFrame({TEXT: texts}, schema={TEXT: pl.String}), phrase_lane(phrase)
    with set_to(sharers=sharers):
        for layer in layers([lane], frame.schema):
            frame = frame.with_columns(layer)
    assert (ASCII_LOWER.column in frame.columns) == (sharers == 0 and phrase.isascii())
    return frame[lane.column].to_list()


def code_points():
    """Every code point; in short runs every ninth above the planes that have letters with case."""
    return [*SCALARS(0x20000), *SCALARS()[0x20000 - 0x800 :: sized(1, 9)]]


@pytest.mark.parametrize("sparse", [0, EVER])
@pytest.mark.parametrize("form", [str.lower, str.upper, str.casefold])
def test_every_code_point_is_recased_as_python_does(form, sparse):
    points = code_points()
    assert len(SCALARS()) == 1_112_064
    with set_to(sparse=sparse):
        assert column(recased_expr(pl.col("t"), form), points) == [form(point) for point in points]


@pytest.mark.parametrize(("start", "end"), [("", ""), ("a\u0301", "\u0323"), ("\u1100", "\u11a8")])
@pytest.mark.parametrize("form", ["NFC", "NFKC"])
def test_every_code_point_is_composed_as_python_does(form, start, end):
    texts = [start + point + end for point in code_points()]
    assert column(composed_expr(pl.col("t"), form), texts) == [unicodedata.normalize(form, text) for text in texts]


@pytest.mark.parametrize("start", ["", "A", "a", "Aa "])
@pytest.mark.parametrize("holds", [str.isupper, str.islower, str.istitle])
def test_patterns_tell_the_case_of_every_code_point_as_python_does(holds, start):
    texts = [start + point for point in code_points()]
    fault, needed = case_patterns(holds.__name__.removeprefix("is"))
    found = pl.col("t").str.contains(needed) & pl.col("t").str.contains(fault).not_()
    assert column(found, texts) == [*map(holds, texts)]


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
@pytest.mark.parametrize(
    "text",
    [
        "ΑΣ",
        "ΑΣ ΒΣ.",
        "Σ",
        "ΑΣ\u0301",
        "ΑΣ\u00b7Α",
        "İ",
        "I\u0307",
        "K",
        "ẞ",
        "ÅΣ",
        "ǅ",
        "\u1c89",
        "\U00010d50",
        "A\x00Σ",
    ],
)
def test_letters_that_depend_on_their_neighbours(text, engine):
    variants = [text, text + "a", "a" + text, text + " ", f"1{text}2", text * 3, f"{'x y' * 40}{text}", None, ""]
    for one in ([value] for value in variants):
        assert column(lower_expr(pl.col("t")), one, engine) == [
            None if value is None else lower(value) for value in one
        ]
    assert column(lower_expr(pl.col("t")), variants, engine) == [None if v is None else v.lower() for v in variants]


def test_rows_that_are_not_asked_for_are_lowered_as_ascii():
    texts = pl.Series(["AÉΣ", "AÉΣ", "AÉΣ", "AB", "AB", None, None, ""])
    asked = pl.Series([True, False, None, True, False, True, False, True])
    assert lower_rows(texts, asked).to_list() == ["aéς", "aÉΣ", "aÉΣ", "ab", "ab", None, None, ""]
    assert texts[0] == "AÉΣ"


def test_hostile_texts_are_lowered_and_stripped_as_python_does():
    texts = list(hostile_texts(5000, seed=1))
    assert column(lower_expr(pl.col("t")), texts) == [text.lower() for text in texts]
    assert column(strip_expr(pl.col("t")), texts) == [text.strip() for text in texts]
    for size in (0, EVER):
        with set_to(copied_text=size):
            assert stripped(pl.Series([*texts, None])).to_list() == [*map(str.strip, texts), None]
    spaced = [text.replace("e", space) for text in texts for space in ("  ", " \x1c", "\u2003", "\n ")]
    assert column(single_spaced_expr(pl.col("t")), spaced) == [" ".join(text.split()) for text in spaced]


def test_white_space_is_what_this_python_strips():
    assert sorted(WHITESPACE) == [point for point in SCALARS() if point.isspace()]
    assert all(point.strip() == "" for point in WHITESPACE)


def test_control_characters_are_trimmed_only_where_python_trims_them():
    texts = [f"{point}a{point}b{point}" for point in "\x1c\x1f\x85\u200b\ufeff\u180e\u2028\u3000\x00"]
    assert column(strip_expr(pl.col("t")), texts) == [text.strip() for text in texts]
    spaced = [text.replace("e", space) for text in texts for space in ("  ", " \x1c", "\u2003", "\n ")]
    assert column(single_spaced_expr(pl.col("t")), spaced) == [" ".join(text.split()) for text in spaced]


@pytest.mark.parametrize("mark", ["a", "aa", "é\n"])
def test_texts_are_split_at_marks_as_python_does(mark):
    texts = ["", "a", "aa", "aaa", "baab é\n aaac é\né\n", "ébé\n", "é"]
    column = pl.Series([*texts, None])
    first = [text.partition(mark) if mark in text else (None, None, None) for text in texts]
    last = [text.rpartition(mark) if mark in text else (None, None, None) for text in texts]
    assert before(column, mark).to_list() == [*(head for head, _, _ in first), None]
    assert behind(column, mark, last=False).to_list() == [*(tail for _, _, tail in first), None]
    assert behind(column, mark, last=True).to_list() == [*(tail for _, _, tail in last), None]


def test_only_sigma_and_a_dotted_i_are_lowered_by_more_than_themselves():
    sides = [("a", ""), ("", "a"), ("a", "a"), ("a'", ""), ("a\u0301", " "), (" ", " ")]
    for point in SCALARS():
        if point.lower() != point:
            alike = all((f"{left}{point}{right}").lower() == f"{left}{point.lower()}{right}" for left, right in sides)
            assert (alike and len(point.lower()) == 1) == (point not in "Σ\u0130"), point


def test_only_two_code_points_beyond_ascii_have_ascii_in_their_lower_case():
    found = {point: point.lower() for point in SCALARS()[128:] if any(map(str.isascii, point.lower()))}
    assert found == {"\u0130": "i\u0307", "\u212a": "k"}


def test_stripping_and_lowering_may_be_done_in_either_order():
    assert not any(point.lower().isspace() != point.isspace() for point in SCALARS())


@pytest.mark.parametrize(
    "phrase",
    [
        "",
        "i",
        "k",
        "ik",
        "ki",
        "i i",
        "sik",
        "(a)",
        "a.b",
        "\x00",
        "\n",
        "-",
        "ss",
        "fi",
        "é",
        "ответ",
        "ßi",
        "å",
        "ı",
        "ǆ",
        "订单",
        "kß",
    ],
)
def test_a_phrase_is_found_in_lower_case_without_lowering(phrase):
    odd = [
        "i",
        "I",
        "\u0130",
        "\u0131",
        "k",
        "K",
        "\u212a",
        "s",
        "ſ",
        "ß",
        "ẞ",
        "ﬁ",
        "\u0307",
        " ",
        "\x1c",
        "a",
        "A",
        "(",
        ")",
    ]
    texts = ["".join(letters) for count in (0, 1, 2, 3) for letters in itertools.product(odd, repeat=count)]
    texts += [phrase, phrase.upper(), f"x{phrase.upper()}y", f" {phrase}\x85", f"{phrase}\u0307", f"{phrase}{phrase}"]
    pattern = lowered_pattern(phrase, last="\u0130")
    found = column(pl.col("t").str.contains(pattern), texts)
    assert found == [phrase in text.lower() for text in texts]
    for sharers in (0, 2):  # in lower-cased texts, and without
        assert by_lane(phrase, texts, sharers) == found
    whole = stripped_pattern(phrase.strip(), lowered=True)
    assert column(pl.col("t").str.contains(whole), texts) == [text.lower().strip() == phrase.strip() for text in texts]
    whole = stripped_pattern(phrase.strip(), lowered=False)
    assert column(pl.col("t").str.contains(whole), texts) == [text.strip() == phrase.strip() for text in texts]


def test_every_code_point_beside_a_phrase():
    points = code_points()
    for phrase in ("i", "k", "ω", "ß", "\U00010428", *sized(("a", "é", "å", "ǆ", "ꭰ"), ())):
        assert by_lane(phrase, points, 0) == [phrase in point.lower() for point in points]
        pattern = lowered_pattern(phrase, last="\u0130")
        assert column(pl.col("t").str.contains(pattern), points) == [phrase in point.lower() for point in points]


def test_long_phrases_and_those_beyond_ascii_are_no_patterns():
    assert lowered_pattern("ος") is None
    assert lowered_pattern("ασ") is None
    assert lowered_pattern("i\u0307") is None
    assert lowered_pattern("\ud800") is None
    assert lowered_pattern("a" * 201) is None
    assert stripped_pattern("é" * 201, lowered=False) is None
    assert stripped_pattern("\ud800", lowered=False) is None
