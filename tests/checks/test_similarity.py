"""Similarity: verdicts of other tools, one pair and many pairs, several golds, bounds, and what feedback says."""

import json
import random
from typing import get_args

import polars as pl
import pytest
from cases import DATA, sized, some
from hostile import hostile_pieces

from assay import load_verifier, score
from assay.checks.similarity import metrics, overlap
from assay.checks.similarity.check import Metric, Similarity, SimilarityParams
from assay.checks.similarity.metrics import WORD_METRICS
from assay.checks.similarity.overlap import Bag
from assay.scoring.reference import score_rows
from assay.testing import assert_plan_conforms
from assay.thresholds import set_to

PARTIAL = ("partial", "partial_token_set", "weighted")
BY_CHARACTERS = [metric for metric in get_args(Metric) if metric not in WORD_METRICS]


def spec(**fields):
    return load_verifier({"checks": [{"type": "similarity", **fields}]})


def scores(rows, **fields):
    """Scores by columns, which are those of the row loop."""
    verifier = spec(**fields)
    with set_to(small_batch=0):
        found = score(rows, verifier)
    expected = score_rows(rows, [verifier])
    for name in ("reward", "feedback", "error"):
        assert found[name].to_list() == [row[name] for row in expected], name
    return found["reward"].to_list()


def only(completion, **fields):
    return score_rows([{"completion": completion}], [spec(**fields)])[0]


def cases(name):
    path = DATA / "checks" / name
    if not path.exists():
        pytest.skip(f"the verdicts are not there: {path}")
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


PERCENT = {
    "partial": "partial_ratio",
    "token_sort": "token_sort_ratio",
    "token_set": "token_set_ratio",
    "weighted": "WRatio",
}


def test_pairs_score_as_their_tools_score_them():
    for metric, expected in [
        *((metric, 400) for metric in ("indel", "levenshtein", "osa", "jaro_winkler", "token_sort", "token_set")),
        *((metric, 400) for metric in ("rouge_1", "rouge_2", "rouge_3", "rouge_l")),
        *((metric, 381) for metric in ("partial", "weighted")),  # the others took too long there
    ]:
        name = PERCENT.get(metric, metric)
        pairs = [pair for pair in cases("similarity_pairs.jsonl") if pair[name] is not None]
        more = {"maxChars": 10**6} if metric in PARTIAL else {}
        rows = [{"completion": pair["text"], "gold": pair["gold"]} for pair in pairs]
        theirs = [pair[name] / 100.0 if metric in PERCENT else pair[name] for pair in pairs]
        assert scores(rows, metric=metric, value={"column": "gold"}, **more) == theirs
        assert len(theirs) == expected
        assert len({*theirs}) > 30


def test_ratio_is_indel_and_rapidfuzz_percentage_but_for_rounding():
    pairs = cases("similarity_pairs.jsonl")
    rows = [{"completion": pair["text"], "gold": pair["gold"]} for pair in pairs]
    found = scores(rows, value={"column": "gold"})
    assert found == [pair["indel"] for pair in pairs]
    assert max(abs(ours - pair["ratio"] / 100) for ours, pair in zip(found, pairs, strict=True)) < 1e-15


def test_distances_are_those_of_rapidfuzz():
    for limit in [0, 5, 60]:
        pairs = cases("similarity_pairs.jsonl")
        rows = [{"completion": pair["text"], "gold": pair["gold"]} for pair in pairs]
        found = scores(rows, metric="levenshtein_distance", maxDistance=limit, value={"column": "gold"})
        assert found == [float(pair["levenshtein_distance"] <= limit) for pair in pairs]
        assert {*found} == {0.0, 1.0}


def test_gleu_is_nltk_on_the_same_words():
    pairs = [pair for pair in cases("similarity_pairs.jsonl") if pair["gleu_split"] is not None]
    _, gleu = WORD_METRICS["gleu"]
    found = [gleu(Bag(pair["text"].split()), Bag(pair["gold"].split())) for pair in pairs]
    assert found == [pair["gleu_split"] for pair in pairs]
    assert len(found) == 387


def test_squad():
    """F1 by SQuAD's official script, for lists of golds; the best one counts."""
    rows = [{name: row[name] for name in ("completion", "answers", "f1")} for row in cases("squad.jsonl")]
    assert scores(rows, metric="token_f1", value={"column": "answers"}) == [row["f1"] for row in rows]
    assert len(rows) == 1_500


PROMPTFOO = {
    "levenshtein": ("levenshtein_distance", 5),
    "rouge-n": ("rouge_1", 0.75),
    "bleu": ("bleu", 0.5),
    "gleu": ("gleu", 0.5),
}
"""Our metric, and the threshold where a case has none."""
DIFFERENT = {
    "levenshtein": (59, 59),  # one of two emoji, each of which it counts as two characters
    "rouge-n": (31, 57),  # it splits words as the Penn Treebank does, and keeps signs and scripts
    "bleu": (54, 60),  # the last bits: its exp and log are not those of Python
    "gleu": (60, 60),
}
"""How many of 60 scores and verdicts are ours, too."""


@pytest.mark.parametrize("kind", PROMPTFOO)
def test_promptfoo(kind):
    metric, default = PROMPTFOO[kind]
    rows = [row for row in cases("promptfoo_cases.jsonl") if row["type"] == kind]
    same_scores = same_verdicts = 0
    for row in rows:
        threshold = row.get("threshold", default)
        fields = {"maxDistance": threshold} if kind == "levenshtein" else {}
        (found,) = scores([{"completion": row["output"]}], metric=metric, value=row["value"], **fields)
        same_scores += found == row["score"]
        same_verdicts += (found >= (1 if fields else threshold)) == row["pass"]
        if kind == "bleu":
            assert found == pytest.approx(row["score"], rel=1e-13)
        if kind == "levenshtein" and found != row["score"]:
            assert (row["value"], row["output"], threshold) == ("a", "😀😀", 2) or ord(max(row["output"])) > 0xFFFF
    assert len(rows) == 60
    assert (same_scores, same_verdicts) == DIFFERENT[kind]


def hostile_pairs(count, seed):
    rng = random.Random(seed)
    texts = [*hostile_pieces(count, seed)]
    changes = (
        lambda text: rng.choice(texts),
        lambda text: text[rng.randrange(len(text) + 1) :],
        str.swapcase,
        lambda text: "".join(rng.sample(text, len(text))),
        lambda text: text * rng.choice((1, 3, 40)),
        lambda _: "",
    )
    return texts, [rng.choice(changes)(text) for text in texts]


def as_answers(found):
    return [(row["score"], row["reason"] or "", row["error"]) for row in found]


@pytest.mark.parametrize("metric", get_args(Metric))
def test_many_pairs_score_as_each_does(metric):
    texts, golds = hostile_pairs(sized(100_000, 400), seed=6)
    for params in ({}, {"case_sensitive": False, "normalize": "nfkc"}):
        more = {"max_chars": 60} if metric in PARTIAL else {}
        check = Similarity(SimilarityParams(metric=metric, value="", **params, **more))
        with set_to(small_batch=0):
            found = check._of_columns(pl.Series(texts), pl.Series(golds)).to_list()
        assert as_answers(found) == [check.answered(check.judge, *pair) for pair in zip(texts, golds, strict=True)]
        for gold in ("", texts[1], "a\ud800"):
            check = Similarity(SimilarityParams(metric=metric, value=gold, **params, **more))
            with set_to(small_batch=0):
                of_gold = check._of_texts(pl.Series(texts)).to_list()
            assert as_answers(of_gold) == [check.answered(check.judge, text, gold) for text in texts]
        assert len({row["score"] for row in found}) > (1 if metric == "levenshtein_distance" else 15)
        assert any(row["error"] for row in found) == (metric in PARTIAL)


def test_empty_texts_are_alike():
    for metric in get_args(Metric):
        """Those that divide by what both have in common find nothing in common."""
        counts = metric in ("bleu", "gleu", "set_f1") or metric.startswith("rouge")
        assert scores([{"completion": ""}] * 2, metric=metric, value="") == [float(not counts)] * 2
        (other,) = scores([{"completion": "abc xyz"}], metric=metric, value="")
        assert other < 1e-6


ROWS = [
    {
        "completion": text,
        "golds": golds,
        "gold": golds and golds[0],
        "level": at % 3,
        "listed": json.dumps(golds),
        "mixed": json.dumps([golds, 3, "the"] if at % 2 else 4),
    }
    for at, (text, golds) in enumerate(
        [
            ("the cat sat on the mat", ["the cat sat", "on the mat it sat"]),
            ("the cat sat on the mat", ["the", "the cat sat on a mat"]),
            ("the", ["The", "cat"]),
            ("!", ["The", "a", None]),
            ("3", ["3"]),
            ("a b", []),
            ("a b", None),
            ("a b", [None]),
            (None, ["a"]),
            ("", ["", "a"]),
        ]
        * 3
    )
]
GOLDS = (
    {"column": "golds"},
    {"column": "gold"},
    {"column": "level"},
    {"column": "listed", "list": True},
    {"column": "mixed", "list": True},
    {"template": "{gold} {level}"},
    [{"column": "gold"}, "the cat sat", {"column": "golds"}],
    ["the cat sat", "on the mat"],
    "the cat sat on a mat",
)


@pytest.mark.parametrize("value", some(GOLDS), ids=str)
@pytest.mark.parametrize("more", [{}, {"goldOn": [{"regex": r"\w+ \w+"}]}], ids=["", "with steps"])
def test_golds_from_rows_and_lists_score_as_in_the_row_loop(value, more):
    checks = [{"type": "similarity", "metric": name, "value": value, **more} for name in ("bleu", "token_f1", "ratio")]
    with set_to(small_batch=0):
        assert_plan_conforms([load_verifier({"checks": checks})], ROWS)


def test_bleu_compares_with_all_golds_together():
    text, golds = "the cat sat on the mat", ["mat the on sat cat the", "the cat sat on"]
    apart = max(only(text, metric="bleu", value=gold)["reward"] for gold in golds)
    together = only(text, metric="bleu", value=golds)["reward"]
    assert together > apart
    rows = [{"completion": text, "golds": golds, "a": golds[0], "b": golds[1], "none": None}]
    for value in ({"column": "golds"}, [{"column": "b"}, {"column": "a"}], golds[::-1]):
        assert scores(rows, metric="bleu", value=value) == [together]
    assert scores(rows, metric="bleu", value=[{"column": "a"}, {"column": "none"}, {"column": "b"}]) == [together]
    assert scores([{"completion": text, "golds": []}], metric="bleu", value={"column": "golds"}) == [None]


def test_squad_leaves_golds_without_words_out_in_columns_too():
    rows = [{"completion": "the", "answers": ["The", "cat"]}, {"completion": "the", "answers": ["The", "!"]}]
    assert scores(rows, metric="token_f1", value={"column": "answers"}) == [0.0, 1.0]
    assert scores(rows, metric="token_f1", value={"column": "answers"}, normalize="whitespace") == [0.0, 0.0]
    verifier = load_verifier({"checks": [{"type": "equals", "value": {"column": "answers"}, "normalize": "squad"}]})
    assert score(rows, verifier)["reward"].to_list() == [0.0, 1.0]
    assert [row["reward"] for row in score_rows(rows, [verifier])] == [0.0, 1.0]


def test_inspects_f1_has_two_digits():
    assert only("the 1,000 cats", metric="token_f1", value="1,000 of 3 cats", normalize="inspect")["reward"] == 0.67
    assert only("the 1,000 cats", metric="token_f1", value="1,000 of 3 cats")["reward"] == 2 / 3


FIVE_MEGABYTES = 5_000_000
LONG = {"words": "ab cd, ", "no spaces": "a", "no case": "日本語", "one word a letter": "a "}
LINEAR = ("levenshtein_distance", "token_f1", "rouge_1", "rouge_3", "bleu", "gleu")


def long_text(unit):
    size = sized(FIVE_MEGABYTES, 400_000) // len(unit.encode())
    return unit * size


@pytest.mark.parametrize("unit", LONG.values(), ids=LONG)
@pytest.mark.parametrize("metric", some(get_args(Metric)))
def test_a_long_output_takes_bounded_time(metric, unit):
    """Beside a short gold each scores; beside another long one, what would take minutes is an error that says so."""
    text = long_text(unit)
    other = f"{text[1:-1]}b"[::-1]
    assert only(text, metric=metric, value="the refund")["error"] is None
    result = only(text, metric=metric, value=other)
    if result["error"] is not None:
        assert metric not in LINEAR
        assert "too many to compare" in result["error"] or "over maxChars (500)" in result["error"]
        assert result["reward"] == 0.0
    elif metric in ("ratio", "levenshtein", "osa", "lcs", "token_sort"):
        assert unit not in LONG.values()


def test_equal_texts_are_never_too_long():
    text = long_text("ab ")
    for metric in ("ratio", "levenshtein", "osa", "lcs", "token_sort", "token_set", "word_levenshtein", "rouge_l"):
        assert only(text, metric=metric, value=text)["reward"] == 1.0, metric


def test_too_long_pairs_are_errors_of_their_rows():
    rows = [{"completion": text, "gold": gold} for text, gold in (("a" * 40, "b" * 40), ("a", "a"), ("ab" * 300, "a"))]
    rows += [{"completion": "ab", "gold": "ac"}] * 3
    limits = {"metric": "partial", "value": {"column": "gold"}, "maxChars": 30}
    assert scores(rows, **limits) == [0.0, 1.0, 1.0, *[2 * 100 / 3 / 100.0] * 3]
    assert score(rows, spec(**limits))["error"].to_list() == [
        "similarity: ValueError: the shorter of both texts has 40 characters, over maxChars (30)",
        *[None] * 5,
    ]


def test_golds_of_too_many_words_are_errors(monkeypatch):
    monkeypatch.setattr(overlap, "MAX_WORDS", 3)
    monkeypatch.setattr(metrics, "MAX_CELLS", 11)
    assert only("a b c d", metric="bleu", value="a b c d")["error"] == (
        "similarity: ValueError: the gold has 4 words, over 3: too long to count its n-grams"
    )
    assert only("a b c d", metric="rouge_l", value="b c d")["error"] == (
        "similarity: ValueError: 4 words and 3 words of the gold are too many to compare: their product is over 11"
    )
    assert only("a b c d e f g", metric="gleu", value="a b c")["error"] is None


def test_feedback_says_how_like_and_what_is_missing():
    for completion, fields, feedback in [
        ("abcd", {"value": "abce"}, 'similarity 0.75 to "abce"'),
        ("a" * 999 + "b", {"value": "a" * 1000}, f'similarity 0.99 to "{"a" * 59}…"'),
        (
            "sitting",
            {"value": "kitten", "metric": "levenshtein_distance", "maxDistance": 2},
            'more than 2 edits from "kitten"',
        ),
        ("the cat", {"value": "the big cat", "metric": "rouge_1"}, 'similarity 0.80 to "the big cat"; missing: big'),
        (
            "",
            {"value": "a b c d e f g", "metric": "gleu"},
            'similarity 0.00 to "a b c d e f g"; missing: a, b, c, d, e … and 2 more',
        ),
        ("b a", {"value": "a b", "metric": "rouge_l"}, 'similarity 0.50 to "a b"'),
        ("c", {"value": ["a b", "c d"], "metric": "bleu"}, 'similarity 0.37 to "c d"; missing: d'),
        ("c", {"value": ["abc", "abd"]}, 'similarity 0.50 to "abc"'),
        ("a", {"value": "a", "negate": True}, 'must not hold: is like "a" (ratio)'),
        (
            "a",
            {"value": "ab", "negate": True, "metric": "levenshtein_distance"},
            'must not hold: is within 5 edits of "ab"',
        ),
        ("ab", {"value": "ac", "threshold": 0.6}, 'similarity 0.50 to "ac"'),
        ("ab", {"value": "ac", "threshold": 0.5}, ""),
    ]:
        found = only(completion, **fields)["feedback"]
        assert found == (feedback and f"similarity: {feedback}")


def test_a_param_that_cannot_be_used_is_named():
    for fields, problem in [
        ({"maxDistance": 3}, "params.maxDistance: only for the metric levenshtein_distance"),
        (
            {"metric": "osa", "maxChars": 3},
            "params.maxChars: only for the metric partial or partial_token_set or weighted",
        ),
        ({"metric": "cosine"}, "cosine"),
        ({"normalize": "sqad"}, 'unknown normalizer "sqad"'),
        ({"metric": "levenshtein_distance", "maxDistance": -1}, "greater than or equal to 0"),
    ]:
        for value in ("a", {"column": "gold"}):
            (result,) = score_rows([{"completion": "a", "gold": "a"}], [spec(value=value, **fields)])
            assert problem in result["error"], result["error"]
