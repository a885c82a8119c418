"""The normalizers: by their definitions, on hostile texts, and in both faces."""

import math
import random
import re
import string
import unicodedata

import polars as pl
import pytest
from cases import sized
from hostile import hostile_pieces

from assay.checks.text.equality import Equals
from assay.thresholds import set_to
from assay.values.normalizers import BY_COLUMNS, NORMALIZERS, normalized_expr, normalizer

LM_EVAL = {
    "lmEval": {
        "ignoreCase": True,
        "ignorePunctuation": True,
        "ignoreNumbers": True,
        "regexesToIgnore": [",", r"(?s).*#### "],
    }
}
SPECS = [*NORMALIZERS, LM_EVAL, {"minerva": "verl"}, {"minerva": "lmEval"}]


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_faces_agree_on_hostile_texts(spec):
    texts = [*hostile_pieces(sized(20_000, 150), seed=6), None]
    normalize = normalizer(spec)
    expected = [None if text is None else normalize(text) for text in texts]
    frame = pl.DataFrame({"text": texts})
    assert frame.select(normalized_expr(pl.col("text"), spec)).to_series().to_list() == expected
    assert frame[:1].select(normalized_expr(pl.col("text"), spec)).to_series().to_list() == expected[:1]
    assert expected[:-1] != texts[:-1]


def test_what_they_make_of_a_text():
    for spec, text, result in [
        ("squad", "The  Norse-men, and AN a.b!", "norsemen and ab"),
        ("squad", "a\u00a0the", ""),
        ("squad", "“The”", "“ ”"),
        # each by the real function, inspect_ai 0.3.285
        ("inspect", "The Norse-men of 1,000", "norse men of 1000.0"),
        ("inspect", "$5. (3.50) 1e3 inf", "5.0 3.5 1000.0 inf"),
        ("inspect", "3,000 $1,000. (3.14)\n 3/4", "3000.0 1000.0 3.14 34.0"),
        ("inspect", "1_000 1__0 ٣٤ １２ 1e999", "1000.0 10.0 34.0 12.0 1e999"),
        ("inspect", "-5 +7. 12,\n .5 50% nan", "5.0 7.0 12.0 0.5 50.0 nan"),
        ("inspect", "\n12\t a.the (an) the\n5 3\n4", "12.0 athe 5 3 4"),
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
        ({"lmEval": {"regexesToIgnore": [",", r"\.$"]}}, "a" * 1000 + ".\0", "a" * 1000),
        (LM_EVAL, "So 1,2 #### Two!", "two"),
    ]:
        assert normalizer(spec)(text) == result


def is_finite(word):
    try:
        return math.isfinite(float(word))
    except ValueError:
        return False


def inspects_word(word):
    """A word by the words of the definition, each in turn."""
    word = word.casefold()
    if not is_finite(word):
        bare = word.strip(string.punctuation + string.whitespace)
        word = bare if is_finite(bare) else "".join(c for c in word if c not in string.punctuation)
    word = str(float(word)) if is_finite(word) else word
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", word).split())


def drops_word(word):
    word = word.lower()
    return word if is_a_number(word) else without_punctuation(word)


def lightevals_word(word):
    return without_punctuation(word.lower())


def without_punctuation(text):
    return "".join(c for c in text if c not in string.punctuation)


def is_a_number(word):
    try:
        float(word)
    except ValueError:
        return False
    return True


def by_definition(form):
    def formed(word):
        word = form(word)
        word = str(float(word)) if is_a_number(word) else word
        return " ".join(re.sub(r"\b(a|an|the)\b", " ", word).split())

    return formed


@pytest.mark.parametrize(
    ("name", "form"),
    [("inspect", inspects_word), ("drop", by_definition(drops_word)), ("lighteval", by_definition(lightevals_word))],
)
def test_forms_by_word_are_what_their_definitions_say(name, form):
    rng = random.Random(36)
    pieces = [
        *hostile_pieces(sized(20_000, 300), seed=36),
        *("$", ",", ".", "5", "1e3", "-", "_", "\n", "(", "%", "٣", "a"),
    ]
    pieces += ["inf", "nan", "-Infinity", "An", "1,000", "the", "3.", "\x0b", "\x1c", "²", "½", "−5", "1e999"]
    for _ in range(sized(100_000, 3_000)):
        text = "".join(rng.choice(pieces) + rng.choice(("", " ", "-")) for _ in range(rng.randrange(6)))
        words = filter(None, map(form, re.split(" |-", text)))
        assert normalizer(name)(text) == " ".join(words)


SPELLINGS = (
    *(("\n", ""), (r"\!", ""), (r"\\", "\\"), ("tfrac", "frac"), ("dfrac", "frac"), (r"\left", ""), (r"\right", "")),
    *((r"^{\circ}", ""), (r"^\circ", ""), (r"\$", "")),
)


def latex(text):
    for old, new in SPELLINGS:
        text = text.replace(old, new)
    text = text.split(r"\text{ ")[0] if text.count(r"\text{ ") == 1 else text
    text = text.replace(r"\%", "").replace(" .", " 0.").replace("{.", "{0.")
    text = f"0{text}" if text.startswith(".") else text
    text = re.sub(r"\A[^=]{0,2}=([^=]*)\Z", r"\1", text)
    text = re.sub(r"\\sqrt(?!\\sqrt)([^{])", r"\\sqrt{\1}", text).replace(" ", "")
    first, *parts = text.split(r"\frac")
    if not any(len(part) < 2 and part != "{" for part in parts):
        short = r"\A([^{])(?:(\{)|([^{]))"
        parts = [re.sub(short, lambda at: f"{{{at[1]}}}{at[2] or f'{{{at[3]}}}'}", part) for part in parts]
        text = r"\frac".join([first, *parts])
    return re.sub(
        r"\A(0|-?[1-9][0-9]*)/(0|-?[1-9][0-9]*)\Z", r"\\frac{\1}{\2}", r"\frac{1}{2}" if text == "0.5" else text
    )


def test_math_is_what_its_definition_says():
    rng = random.Random(9)
    pieces = [
        *(old for old, _ in SPELLINGS),
        *("frac", r"\frac", r"\sqrt", r"\text{ ", r"\%", *"\\{}.= /1x0"),
        "0.5",
        "-2",
        "tfr",
        "ac",
    ]
    for _ in range(sized(100_000, 5_000)):
        text = "".join(rng.choices(pieces, k=rng.randrange(9)))
        assert normalizer("math")(text) == latex(text)


def test_they_are_what_their_definitions_say():
    pieces = [
        *hostile_pieces(1_000, seed=8),
        "a\x01the b",
        "an\x7f a",
        "“the” a–an",
        "the_a A",
        "\ud800 the.",
        "ana than",
    ]
    for text in pieces:
        words = re.sub(r"\b(a|an|the)\b", " ", "".join(c for c in text.lower() if c not in string.punctuation))
        assert normalizer("squad")(text) == " ".join(words.split())
        assert normalizer("nfc")(text) == unicodedata.normalize("NFC", text)
        assert normalizer("casefold")(text) == text.casefold()
        assert normalizer("whitespace")(text) == " ".join(text.split())


def test_a_mistake_is_named():
    for spec, message in [
        ("squda", 'unknown normalizer "squda". Did you mean `squad`?'),
        ("x", 'unknown normalizer "x". Known: squad, inspect, drop, lighteval, math,'),
        ("lmEval", "lmEval ignores nothing by itself"),
        ({"lmEvil": {}}, "write {lmEval: {ignoreCase: true}}, or a name"),
        ({"lmEval": {"ignoreCsae": True}}, "lmEval has no option `ignoreCsae`. Did you mean `ignoreCase`?"),
        ({"lmEval": {"ignoreCase": "yes"}}, 'lmEval.ignoreCase is true or false, not "yes"'),
        ({"lmEval": {"ignoreCase": True, "ignore_case": True}}, "lmEval.ignoreCase is given twice"),
        ({"lmEval": {"regexesToIgnore": "a"}}, "lmEval.regexesToIgnore is a list of patterns"),
        ({"lmEval": {"regexesToIgnore": ["("]}}, "lmEval.regexesToIgnore: '(': missing )"),
        ({"lmEval": {"regexesToIgnore": ["(a+)+$"]}}, "could take long"),
    ]:
        with pytest.raises(ValueError, match=re.escape(message)):
            normalizer(spec)


def test_a_pattern_that_is_not_there_costs_linear_time():
    """With ``re`` alone this takes a minute; the time of a run is the limit."""
    text = "a" * 300_000
    assert normalizer({"lmEval": {"regexesToIgnore": ["(?s).*#### "]}})(text) == text


def test_distinct_texts_are_normalized_once(monkeypatch):
    calls = []
    monkeypatch.setitem(NORMALIZERS, "squad", lambda text: calls.append(text) or text)
    with set_to(small_batch=0):
        pl.DataFrame({"text": ["a", "b", "a"] * 9}).select(normalized_expr(pl.col("text"), "squad"))
    assert sorted(calls) == ["a", "b"]


@pytest.mark.parametrize("name", NORMALIZERS)
def test_explain_says_whether_python_runs_a_normalizer(name):
    check = Equals(Equals.Params.model_validate({"value": "a", "normalize": name}))
    assert check.explain().startswith("columns" if name in BY_COLUMNS else "Python")
