"""The normalizers: by their definitions, on hostile texts, and in both faces."""

import re
import string
import unicodedata

import polars as pl
import pytest
from cases import sized
from hostile import hostile_pieces

from assay.thresholds import set_to
from assay.values.normalizers import NORMALIZERS, normalized_expr, normalizer

LM_EVAL = {
    "lmEval": {
        "ignoreCase": True,
        "ignorePunctuation": True,
        "ignoreNumbers": True,
        "regexesToIgnore": [",", r"(?s).*#### "],
    }
}
SPECS = [*NORMALIZERS, LM_EVAL]


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_faces_agree_on_hostile_texts(spec):
    texts = [*hostile_pieces(sized(20_000, 800), seed=6), None]
    normalize = normalizer(spec)
    expected = [None if text is None else normalize(text) for text in texts]
    frame = pl.DataFrame({"text": texts})
    assert frame.select(normalized_expr(pl.col("text"), spec)).to_series().to_list() == expected
    assert frame[:1].select(normalized_expr(pl.col("text"), spec)).to_series().to_list() == expected[:1]
    assert expected[:-1] != texts[:-1]


@pytest.mark.parametrize(
    ("spec", "text", "result"),
    [
        ("squad", "The  Norse-men, and AN a.b!", "norsemen and ab"),
        ("squad", "a\u00a0the", ""),
        ("squad", "“The”", "“ ”"),
        ("inspect", "The Norse-men of 1,000", "norse men of 1000"),
        ("inspect", "$5. (3.50) 1e3 inf", "5.0 3.5 1000.0 inf"),
        ("inspect", "STRASSE Straße", "strasse strasse"),
        ("math", r"\tfrac12", r"\frac{1}{2}"),
        ("math", r"\dfrac1{72}", r"\frac{1}{72}"),
        ("math", r"x = .5\%", r"\frac{1}{2}"),
        ("math", r"\left( 3, \frac{1}{2} \right)", r"(3,\frac{1}{2})"),
        ("math", r"10\text{ cm}", "10"),
        ("math", r"\sqrt3 + \sqrt{2}", r"\sqrt{3}+\sqrt{2}"),
        ("math", r"90^\circ", "90"),
        ("math", "3/4", r"\frac{3}{4}"),
        ("math", "-3/4", r"\frac{-3}{4}"),
        ("math", "03/4", "03/4"),
        ("math", "k=1=2", "k=1=2"),
        ("math", "abc=2", "abc=2"),
        ("math", r"\frac", r"\frac"),
        ("math", r"\sqrt", r"\sqrt"),
        ("math", "", ""),
        ("casefold", "Straße", "strasse"),
        ("nfkc", "ﬁ", "fi"),
        ("whitespace", "\x1c a \n b", "a b"),
        ({"lmEval": {"regexes_to_ignore": ["B"], "ignore_case": True}}, "aBb", "ab"),
        ({"lmEval": {"ignorePunctuation": True}}, "A-b 1!", "Ab 1"),
        ({"lmEval": {"ignoreNumbers": True}}, "A1٣", "A٣"),
        (LM_EVAL, "So 1,2 #### Two!", "two"),
    ],
)
def test_what_they_make_of_a_text(spec, text, result):
    assert normalizer(spec)(text) == result


def test_they_are_what_their_definitions_say():
    for text in hostile_pieces(1_000, seed=8):
        words = re.sub(r"\b(a|an|the)\b", " ", "".join(c for c in text.lower() if c not in string.punctuation))
        assert normalizer("squad")(text) == " ".join(words.split())
        assert normalizer("nfc")(text) == unicodedata.normalize("NFC", text)
        assert normalizer("casefold")(text) == text.casefold()
        assert normalizer("whitespace")(text) == " ".join(text.split())


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("squda", 'unknown normalizer "squda". Did you mean `squad`?'),
        ("x", 'unknown normalizer "x". Known: squad, inspect, math,'),
        ("lmEval", "lmEval ignores nothing by itself"),
        ({"lmEvil": {}}, "write {lmEval: {ignoreCase: true}}, or a name"),
        ({"lmEval": {"ignoreCsae": True}}, "lmEval has no option `ignoreCsae`. Did you mean `ignoreCase`?"),
        ({"lmEval": {"ignoreCase": "yes"}}, 'lmEval.ignoreCase is true or false, not "yes"'),
        ({"lmEval": {"ignoreCase": True, "ignore_case": True}}, "lmEval.ignoreCase is given twice"),
        ({"lmEval": {"regexesToIgnore": "a"}}, "lmEval.regexesToIgnore is a list of patterns"),
        ({"lmEval": {"regexesToIgnore": ["("]}}, "lmEval.regexesToIgnore: '(': missing )"),
        ({"lmEval": {"regexesToIgnore": ["(a+)+$"]}}, "could take long"),
    ],
)
def test_a_mistake_is_named(spec, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        normalizer(spec)


def test_a_pattern_that_is_not_there_costs_linear_time():
    """With ``re`` alone this takes a minute; the time of a run is the limit."""
    text = "a" * 300_000
    assert normalizer({"lmEval": {"regexesToIgnore": ["(?s).*#### "]}})(text) == text


def test_distinct_texts_are_normalized_once(monkeypatch):
    calls = []
    monkeypatch.setitem(NORMALIZERS, "nfc", lambda text: calls.append(text) or text)
    with set_to(small_batch=0):
        pl.DataFrame({"text": ["a", "b", "a"] * 9}).select(normalized_expr(pl.col("text"), "nfc"))
    assert sorted(calls) == ["a", "b"]
