"""The steps number, numbers, choice and split: both faces agree, and the definition is what the documentation says."""

import math
import re

import polars as pl
import pytest
from cases import DATA, sized
from hostile import hostile_pieces

from assay.expressions.shared_columns import columns_read, layers, reading_column
from assay.steps.choices import ChoiceStep, Split
from assay.steps.numbers import Numbers, NumberStep, number_value, number_values


def step(cls, **params):
    return cls(cls.Params(**params))


WHAT_NUMBERS_ARE = {
    "5-3": ["5", "3"],
    "= -3": ["-3"],
    "x2": None,
    "18km": ["18"],
    "50%": ["50"],
    "3/4": ["3", "4"],
    "1,234,567.5e-3 and 1,23": ["1,234,567.5e-3", "1", "23"],
    "\u2212$.5": ["\u2212$.5"],
    "(3) f(x)4": ["3"],
    "": None,
}


def test_what_a_number_is():
    assert {text: step(Numbers).row(text) for text in WHAT_NUMBERS_ARE} == WHAT_NUMBERS_ARE
    last = {text: numbers and numbers[-1] for text, numbers in WHAT_NUMBERS_ARE.items()}
    assert {text: step(NumberStep).row(text) for text in WHAT_NUMBERS_ARE} == last


VALUES = [
    *("1_0", " 5 ", "nan", "inf", "٣", "", "1e400", "$-5", "--5", "$", "5.", "\u22125", "1,2"),
    *("9" * 400, ".e5", "+.5e+3", "0x10"),
]


def test_the_value_of_a_number_is_that_of_float():
    texts = [*VALUES, *hostile_pieces(sized(20_000, 800), seed=4)]
    texts += [number for text in texts for number in step(Numbers).row(text) or ()]
    values = pl.DataFrame({"text": texts}).select(number_values(pl.col("text"))).to_series().to_list()
    expected = [number_value(text) for text in texts]
    assert list(map(repr, values)) == list(map(repr, expected))
    assert all(value is None or math.isfinite(value) for value in expected)
    assert [number_value(text) for text in ("$1,200.50", "\u22123", "1e400", "x")] == [1200.5, -3.0, None, None]


OPENING, BRACES = r"""[\s*_`"'(\[{$]""", r"\\boxed\{|\\text\{|\\mathrm\{|\\mathbf\{"
DEFINITION = (
    rf"(?i:answer|choice|option)(?i:\s+is|\s+are)?\s*[:：]?(?:{OPENING}|{BRACES})*([L])(?:[^0-9A-Za-z_]|\Z)",
    rf"\\boxed\{{(?:{BRACES}|[(\s])*([L])[)}}\s.:,]",
    rf"""\A{OPENING}*([L])(?:[).:,\]}}*_`"']|\s*\Z)""",
    r"\(([L])\)",
    r"""(?:\A|\n)[ \t*_`"'(]*([L])[)*_`"'.]*\s*\Z""",
)


@pytest.mark.parametrize("letters", ["ABCD", "АБВé", "abkiſ1"])
def test_a_choice_is_what_the_patterns_find_that_may_give_back(letters):
    patterns = [re.compile(pattern.replace("[L]", f"[{letters}]")) for pattern in DEFINITION]
    one, used = step(ChoiceStep, letters=letters), set()
    for text in hostile_pieces(sized(20_000, 3_000), seed=5):
        places = [(at, matches[-1]) for at, pattern in enumerate(patterns) if (matches := pattern.findall(text))]
        used.update(at for at, _ in places[:1])
        assert one.row(text) == (places[0][1] if places else None), text
    assert len(used) >= (4 if letters == "ABCD" else 2)


def test_letters_are_letters():
    for letters in ("", "A ", "AA", "Aa", "A)", "*"):
        with pytest.raises(ValueError, match=r"letter|character"):
            step(ChoiceStep, letters=letters)


LONG = [
    r"\boxed{" * 20_000,
    "answer" + " " * 200_000 + "x",
    "A" + "\n" * 200_000 + "x",
    "1," * 100_000,
    "(" * 200_000,
    r"\boxed{A" * 20_000,
]


def test_a_long_text_is_read_in_linear_time():
    """With a quadratic search this takes minutes; the time of a run is the limit."""
    for one in (step(NumberStep), step(Numbers), step(ChoiceStep), step(Split)):
        assert pl.DataFrame({"text": LONG}).select(one.expr(pl.col("text"))).to_series().to_list() == [
            *map(one.row, LONG)
        ]


GSM8K = DATA / "gsm8k_rollouts.parquet"


@pytest.mark.skipif(not GSM8K.exists(), reason=f"the real rollouts are not there: {GSM8K}")
def test_gsm8k():
    """The last number after ``A:`` is compared with the gold; the labels are those of the paper's way, by text."""
    from assay.checks.text.numbers import Number

    rows = pl.read_parquet(GSM8K)
    answers = rows["completion"].map_elements(
        lambda text: text.rpartition("A:")[2].split("\n")[0].strip(), return_dtype=pl.String
    )
    found = answers.to_frame("text").select(step(NumberStep).expr(pl.col("text"))).to_series()
    labels = [
        answer.replace(",", "") == gold.replace(",", "") for answer, gold in zip(answers, rows["answer"], strict=True)
    ]
    check = Number(Number.Params(value=0))
    frame = pl.DataFrame({"text": found, "gold": rows["answer"]})
    with reading_column("text"), columns_read() as lanes:
        expr = check.score_expr(pl.col("gold"))
        for layer in layers(lanes, frame.schema):
            frame = frame.with_columns(layer)
        scores = frame.select(score=expr.fill_null(value=False))["score"]
    by_row = [
        text is not None and Number(Number.Params(value=gold)).row({"completion": text}) == 1
        for text, gold in zip(found, rows["answer"], strict=True)
    ]
    assert scores.to_list() == by_row == labels
    assert len(labels) == 5276
