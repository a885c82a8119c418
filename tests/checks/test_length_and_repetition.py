"""Checks on how long an output is and how much it repeats: against the definitions of their papers, by rows and by columns."""

import random

import polars as pl
import pytest
from cases import sized

import assay
from assay.checks.text.repetition import Repetition, RepetitionParams
from assay.errors import AssayWarning
from assay.testing import assert_plan_conforms
from assay.thresholds import EVER, set_to

WORDS = ("so", "So", "it", "is", "the", "Straße", "STRASSE", "\u3000", "İ", "ΟΔΟΣ", "1,2", "—", "\n", "\x1c")


def score(spec, *rows, **top):
    result = assay.score([dict(row) for row in rows], {"checks": [{"id": "it", **spec}], **top})
    return result["check/verifier/it"].to_list()


def drawn_texts(count):
    rng = random.Random(17)
    return [" ".join(rng.choices(WORDS, k=rng.randrange(40))) for _ in range(count)]


# ── repetition ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def distinct_share(text, n):
    words = text.lower().split()
    total = len(words) - n + 1
    return 1.0 if total < 1 else len({tuple(words[at : at + n]) for at in range(total)}) / total


@pytest.mark.parametrize("n", [1, 3, 4, 5, 8, 13])
def test_repetition_is_the_share_of_distinct_ngrams(n):
    rng = random.Random(n)
    looping = [" ".join(rng.choices("abA", k=rng.randrange(60))) for _ in range(sized(500, 40))]
    texts = [*drawn_texts(sized(2_000, 40)), *looping, "so it is " * 60, "", " ", "x"]
    for size, few, slice_size in ((0, 0, 0), (4, 0, EVER), (EVER, 0, 1), (EVER, EVER, EVER)):
        with set_to(ngram_words=size, small_batch=few, slice=slice_size):
            scores = score({"type": "repetition", "n": n}, *({"completion": text} for text in texts))
        assert scores == [distinct_share(text, n) for text in texts]
    assert len(set(scores)) > 3


@pytest.mark.parametrize("size", [0, EVER])
def test_feedback_names_the_most_frequent_sequence(size):
    completion = "well " + "I am sure that it is " * 3 + "so it is"
    with set_to(ngram_words=size):
        rows = [
            assay.score([{"completion": completion}], {"checks": [{"type": "repetition", "n": n}]}) for n in (1, 2, 5)
        ]
    assert [row["feedback"][0] for row in rows] == [
        'repetition: 14 of 22 sequences of 1 word repeat an earlier one; "it" occurs 4 times',
        'repetition: 12 of 21 sequences of 2 words repeat an earlier one; "it is" occurs 4 times',
        'repetition: 8 of 18 sequences of 5 words repeat an earlier one; "i am sure that it" occurs 3 times',
    ]


def test_repetition_as_a_penalty_takes_off_what_open_r1_does():
    text = "so it is so it is so it is"
    result = assay.score([{"completion": text}], {"checks": [{"type": "repetition", "penalty": 0.5}]})
    assert result["reward"].to_list() == [1.0 - 0.5 * (1.0 - 3 / 7)]


def test_n_may_come_from_a_column():
    rows = [{"completion": "a b a b a b", "n": n} for n in (1, 2, 3, 9)]
    assert score({"type": "repetition", "n": {"column": "n"}}, *rows) == [2 / 6, 2 / 5, 2 / 4, 1.0]


def test_batches_have_the_reasons_of_single_texts():
    texts = ["so it is", "so it is so it is", "", "İİ İ\x1ci\u0307i\u0307 i\u0307 \u3000x", "it is\nso  it is so"]
    for n in (1, 2, 10**30):
        check = Repetition(RepetitionParams(n=n))
        answers = check._of_texts(pl.Series(texts * 100)).to_list()
        expected = [check.answered(check.judge, text, "") for text in texts]
        assert [(*answer.values(),) for answer in answers] == expected * 100


def test_long_texts_and_long_ngrams():
    looping, large = "again and again " * 20_000, " ".join(f"w{at % 70_000}" for at in range(200_000))
    for n in (3, 40):
        scores = score({"type": "repetition", "n": n}, {"completion": looping}, {"completion": large})
        assert scores[1] == 70_000 / (200_000 - n + 1)


# ── length_penalty ──────────────────────────────────────────────────────────────────────────────────────────────────────


def overlong(length, most, buffer):
    """DAPO's soft overlong punishment, equation 13, plus 1."""
    if length <= most - buffer:
        return 1.0
    return 0.0 if length > most else max(1.0 + ((most - buffer) - length) / buffer, 0.0)


@pytest.mark.parametrize(("most", "buffer"), [(20, 7), (16, 3.5), (10.5, 0.25), (9, 0), (1, 1), (30, 1e-9)])
def test_a_length_penalty_falls_in_a_straight_line(most, buffer):
    texts = [text[:at] for at, text in enumerate(drawn_texts(sized(400, 50)))]
    for unit in ("chars", "words"):
        lengths = [len(text) if unit == "chars" else len(text.split()) for text in texts]
        check = {"type": "length_penalty", "max": most, "buffer": buffer, "unit": unit}
        expected = [overlong(length, most, buffer) for length in lengths]
        assert score(check, *({"completion": text} for text in texts)) == expected
        assert [score(check, {"completion": text})[0] for text in texts[:3]] == expected[:3]


def test_the_length_may_be_a_column_of_tokens():
    check = {"type": "length_penalty", "max": 100, "buffer": 40, "unit": {"column": "tokens"}}
    tokens = [60, 61, 80, 100, 101, 0, None]
    rows = [{"completion": "text", "tokens": value} for value in tokens]
    assert score(check, *rows) == [1.0, 1.0 + (60 - 61) / 40, 0.5, 0.0, 0.0, 1.0, None]
    result = assay.score(rows, {"checks": [check]})
    assert result["error"].to_list()[-1] == "gold is missing: tokens"
    assert result["feedback"].to_list()[2] == "length_penalty: length: 80, expected at most 60; 0.0 above 100"
    assert score({**check, "missingGold": "fail"}, *rows)[-1] == 0.0


@pytest.mark.parametrize("factor", [0.5, 1.0, 1.25])
def test_the_overlong_buffers_of_trainers(factor):
    """OpenRLHF's length_penalty.py:41 and, up to the longest response, verl's reward_manager/dapo.py:109."""
    longest, buffer = 4096, 512
    tokens = [0, 3583, 3584, 3585, 3840, 4000, 4095, 4096, *random.Random(3).choices(range(3000, 4097), k=200)]
    check = {
        "type": "length_penalty",
        "max": longest,
        "buffer": buffer,
        "unit": {"column": "tokens"},
        "penalty": factor,
    }
    spec = {"checks": [{"type": "contains", "value": "yes"}, check], "range": None}
    rows = [{"completion": "yes" if at % 3 else "no", "tokens": count} for at, count in enumerate(tokens)]
    expected = []
    for row in rows:
        exceeding = min(row["tokens"] - (longest - buffer), buffer)
        expected.append(float(row["completion"] == "yes") + min(-exceeding / buffer * factor, 0))
    # a buffer of 512 tokens: all numbers are exact
    assert assay.score(rows, spec)["reward"].to_list() == expected
    assert [assay.score([row], spec)["reward"][0] for row in rows[:8]] == expected[:8]


def test_a_row_may_name_the_unit_and_bring_the_limits():
    rows = [
        {"completion": "one two three", "unit": unit, "limit": limit}
        for unit, limit in (("words", 4), ("chars", 14), ("1,000", 1001), ("tokens", 4), ("words", 1))
    ]
    check = {"type": "length_penalty", "max": {"column": "limit"}, "buffer": 2, "unit": {"column": "unit"}}
    assert score(check, *rows) == [0.5, 0.5, 0.5, None, None]
    assert score({**check, "max": 4}, *rows) == [0.5, 0.0, 0.0, None, 0.5]
    assert_plan_conforms([assay.load_verifier({"checks": [{**check, "max": 4}]})], rows)


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"max": 10, "buffer": 11}, "ValueError: params.buffer: it is above max (10): no output could score 1.0"),
        ({"max": 0, "buffer": 0}, "params.max"),
        ({"max": 10**400, "buffer": 1}, "OverflowError"),
        ({"max": 10}, "params.buffer is missing"),
        (
            {"max": 10, "buffer": 1, "unit": "tokens"},
            '"tokens" is not chars, words or a length, as from {column: path}',
        ),
    ],
)
def test_limits_that_cannot_be_used_break_the_check(params, words):
    with pytest.warns(AssayWarning):
        result = assay.score([{"completion": "a"}], {"checks": [{"type": "length_penalty", **params}]})
    assert words in result["error"][0]


def test_equal_limits_are_equal_specs():
    plain, decimal = ({"checks": [{"type": "length_penalty", "max": most, "buffer": 1}]} for most in (9, 9.0))
    assert assay.load_verifier(plain) == assay.load_verifier(decimal)


# ── both among other checks ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "spec",
    [
        {"type": "repetition", "on": [{"after": "it"}], "threshold": 0.8, "negate": True},
        {"type": "repetition", "n": 5, "penalty": 0.4},
        {"type": "length_penalty", "max": 30, "buffer": 12, "on": [{"line": "last"}], "notFound": "pass"},
        {"type": "mean", "checks": [{"type": "repetition"}, {"type": "length_penalty", "max": 9, "buffer": 9}]},
        {"type": "length_scaled", "max": 12, "unit": "words", "check": {"type": "repetition", "threshold": 0.9}},
    ],
)
def test_rows_and_columns_agree_in_a_pipeline(spec):
    rows = [{"completion": text} for text in drawn_texts(sized(600, 20))]
    verifier = assay.load_verifier({"checks": [spec], "combine": "sum", "range": None})
    assert_plan_conforms([verifier], rows)


def test_lengths_of_a_column_are_numbers_or_their_texts():
    unit, top = {"column": "tokens"}, {"combine": "sum", "range": None}
    scaled = {"type": "length_scaled", "max": 10, "unit": unit, "check": {"type": "contains", "value": "a"}}
    verifier = assay.load_verifier({"checks": [scaled], **top})
    for lengths in ([0, 5, 10, 12, None], ["0", "5", "10.0", " 12 ", "long"]):
        rows = [{"completion": "a", "tokens": length} for length in lengths]
        assert assay.score(rows, verifier)["reward"].to_list() == [1.0, 0.75, 0.5, 0.5, 0.5]
        assert_plan_conforms([verifier], rows)
