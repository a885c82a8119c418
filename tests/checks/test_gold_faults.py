"""Golds that are there but cannot be used: which value, why, which step would read it; and that golds come first."""

import json
import random

import pytest
from cases import sized
from pydantic import model_validator

from assay import Check, load_verifier
from assay.scoring.reference import score_rows
from assay.testing import assert_plan_conforms
from assay.thresholds import set_to
from assay.values.params import Params

pytestmark = pytest.mark.filterwarnings("ignore::assay.errors.AssayWarning")

ANSWER = {"column": "answer"}
NUMBER = {"type": "number", "value": ANSWER}


def outcome(check, completion="It is 72", **columns):
    """The result of one row, the same by row and by columns."""
    verifier = load_verifier({"checks": [{"id": "c", **check}]})
    row = {"completion": completion, **columns}
    assert_plan_conforms([verifier], [row])
    (result,) = score_rows([row], [verifier])
    return result["reward"], result["error"]


def fault(check, **columns):
    """Why a row has no gold, without the words that all such messages begin with."""
    reward, error = outcome(check, **columns)
    assert reward is None
    return error.removeprefix("gold cannot be used: ")


NO_NUMBERS = [
    ("Natalia sold 48/2 = 24 clips.\n#### 72", '"…#### 72", not a number; goldOn: [{after: "####"}] reads one'),
    ("#### 72", '"#### 72", not a number; goldOn: [{after: "####"}] reads one'),
    (r"so \boxed{72}", r'"so \boxed{72}", not a number; goldOn: [boxed] reads one'),
    ("<answer>7</answer>", '"<answer>7</answer>", not a number; goldOn: [{tag: answer}] reads one'),
    ("12 apples", '"12 apples", not a number; goldOn: [number] reads one'),
    ("3/4", '"3/4", not a number; goldOn: [number] reads one'),
    ("six", '"six", not a number'),
    ("", '"", not a number'),
    (" \n", r'" \n", not a number'),
    ("1e999", '"1e999", not a number'),
    (True, '"True", not a number'),
    (["six", "seven"], '"six", not a number'),
    ("long " * 50 + "end", f'"…{("long " * 50 + "end")[-59:]}", not a number'),
]


def test_a_gold_that_is_no_number_is_named_with_the_step_that_reads_it():
    for gold, message in NO_NUMBERS:
        assert fault(NUMBER, answer=gold) == f"answer is {message}"


def test_a_gold_carries_what_the_step_number_reads_if_it_is_all_there_is():
    golds = {"50%": 50, "$1,000": 1000, "5 €": 5, "-$3": -3, " 72. ": 72, ".5%": 0.5, 3.0: 3}
    for gold, value in golds.items():
        for text, reward in ((f"It is {value}", 1.0), ("It is 99", 0.0)):
            assert outcome(NUMBER, completion=text, answer=gold) == (reward, None)
            assert outcome({"type": "number", "value": gold}, completion=text) == (reward, None)


CASES = [
    ({"type": "choice"}, "The answer is (C)", "none of the choices ABCD, nor the number of one, from 0; goldOn: [choice] reads one"),
    ({"type": "choice", "letters": "ABCDE"}, "Answer: E.", "goldOn: [{choice: ABCDE}] reads one"),
    ({"type": "choice"}, 7, 'answer is "7", none of the choices'),
    ({"type": "json_match"}, "Oslo", 'answer is "Oslo", not JSON'),
    ({"type": "json_match"}, 'see {"a": 1}', "goldOn: [{json: last}] reads one"),
    ({"type": "json_schema"}, '```json\n{"type": "object"}\n```', "it is not JSON; goldOn: [fence] reads one"),
    ({"type": "json_schema"}, {"type": "strin"}, """answer is '{"type": "strin"}': the schema is not valid at type"""),
    ({"type": "tool_calls"}, '<tool_call>{"name": "f", "arguments": {}}</tool_call>', "goldOn: [{tag: tool_call}] reads one"),
    ({"type": "tool_calls"}, [{"name": 5}], """answer is '[{"name": 5}]': the name of a call is a string"""),
    ({"type": "tool_f1"}, "[", 'answer is "[": the expected names are neither JSON nor names'),
    ({"type": "regex"}, "(", 'answer is "(": PatternError: missing )'),
    ({"type": "min_length"}, "five", 'answer is "five", a text, not a number'),
    ({"type": "min_length"}, -1, 'answer is "-1": input should be greater than or equal to 0'),
    ({"type": "count", "of": "words", "_": "exactly"}, [5], 'answer is "[5]", not a number'),
    ({"type": "number_range", "max": 3, "_": "min"}, 5, 'answer is "5": max: it is below min (5)'),
    ({"type": "json_keys", "_": "keys"}, "a", 'answer is "a", a text, not a list'),
    ({"type": "length_penalty", "max": 5, "buffer": 2, "_": "unit"}, "many", 'answer is "many", not chars, words or a length'),
    ({"type": "number", "goldOn": [{"after": "####"}]}, "#### 72 apples", 'answer is "72 apples", not a number; goldOn: [number] reads one'),
    ({"type": "number", "goldOn": [{"after": "####"}]}, "72", 'answer is "72", in which goldOn finds nothing; goldOn: [number]'),
    ({"type": "equals", "goldOn": [{"after": "####"}]}, "72", "in which goldOn finds nothing; it can be used without goldOn"),
    ({"type": "list_equals", "goldOn": ["number"]}, ["a", "b"], """answer is '["a", "b"]', in which goldOn finds nothing"""),
]  # fmt: skip
PARAMS = {"json_schema": "schema", "regex": "pattern"}


@pytest.mark.parametrize(("check", "gold", "message"), CASES, ids=lambda value: str(value)[:40])
def test_a_gold_that_a_type_cannot_use_is_named(check, gold, message):
    param = check.get("_", PARAMS.get(check["type"], "value"))
    check = {name: value for name, value in check.items() if name != "_"} | {param: ANSWER}
    assert message in fault(check, answer=gold)
    assert outcome({**check, "missingGold": "fail", "negate": True}, answer=gold)[0] == 0.0
    assert outcome({**check, "missingGold": "pass", "negate": True}, answer=gold) == (1.0, None)


def test_what_is_missing_is_named_and_of_several_values_the_one_at_fault():
    both = {"type": "number", "value": [ANSWER, {"column": "other"}]}
    assert fault(both, answer=None, other=[None]) == "gold is missing: answer, other"
    assert fault(both, answer=None, other="six") == 'other is "six", not a number'
    assert fault({"type": "number", "value": ["six", ANSWER]}, answer=None) == 'value is "six", not a number'
    assert fault({"type": "number", "value": {"template": "{answer} apples"}}, answer=5) == (
        '{answer} apples is "5 apples", not a number; goldOn: [number] reads one'
    )
    bounds = {"type": "count", "of": "words", "min": ANSWER, "max": {"column": "most"}}
    assert fault(bounds, answer=1, most=None) == "gold is missing: most"


class BetweenParams(Params):
    low: int
    high: int

    @model_validator(mode="after")
    def _ordered(self):
        if self.low > self.high:
            raise ValueError("Low is above high")
        return self


class Between(Check):
    """A type of the user's with a rule over all of its params."""

    type = "between"
    Params = BetweenParams

    def row(self, row):
        return float(self.params.low <= len(row["completion"]) <= self.params.high)


def test_a_rule_over_all_params_of_a_type_of_the_users():
    check = {"type": "between", "low": ANSWER, "high": 3}
    verifier = load_verifier({"checks": [check]}, checks=[Between])
    rows = [{"completion": "ab", "answer": low} for low in (1, 4, None, "1")]
    assert_plan_conforms([verifier], rows)
    assert [result["error"] for result in score_rows(rows, [verifier])] == [
        None,
        'gold cannot be used: answer is "4": low is above high',
        "gold is missing: answer",
        'gold cannot be used: answer is "1", a text, not a number',
    ]


def test_golds_come_first():
    for steps in (["boxed"], [{"after": "A:"}, "number"]):
        check = {**NUMBER, "on": steps, "notFound": "pass"}
        for gold, message in ((None, "gold is missing: answer"), ("six", 'answer is "six", not a number')):
            assert fault(check, answer=gold) == message
            reward, error = outcome({**check, "missingGold": "fail"}, answer=gold)
            assert reward == 0.0
            assert error.endswith(message)
            assert outcome({**check, "missingGold": "pass", "notFound": "fail"}, answer=gold) == (1.0, None)
        assert outcome(check, answer=72) == (1.0, None)


def test_a_malformed_gold_of_bfcl_scores_0():
    tools = json.dumps([{"name": "f", "parameters": {"type": "dict", "properties": {"a": {"type": "string"}}}}])
    check = {"type": "tool_calls", "arguments": "bfcl", "value": ANSWER}
    call = json.dumps([{"name": "f", "arguments": {"a": "x"}}])
    assert outcome(check, completion=call, answer=[{"f": {"a": ["x"]}}], tools=tools) == (1.0, None)
    for gold in ([{"f": {"a": "x"}}], [{"f": {"a": 5}}], [{"name": "f", "arguments": "x"}], [1]):
        assert outcome(check, completion=call, answer=gold, tools=tools)[0] == 0.0
    assert fault(check, completion=call, answer="no", tools=tools) == 'answer is "no": the expected calls are not JSON'


# ── several golds, and texts for lists ──────────────────────────────────────────────────────────────────────────────────

RAISES = {"type": "similarity", "metric": "partial", "maxChars": 3}
"""It raises for a gold of more than three characters beside a longer text."""


@pytest.mark.parametrize("small", [0, 256])
def test_of_several_golds_of_which_one_raises_the_others_count(small):
    for other, reward in (("ab", 1.0), ("xyz", 0.0), ("ax", 2 / 3), ("bcdefg", None)):
        golds = ["abcdef", other]
        for value in ({"column": "golds"}, golds):
            verifier = load_verifier({"checks": [{**RAISES, "value": value}]})
            rows = [{"completion": text, "golds": golds} for text in ("abcdefgh", None, "abcdefgh")]
            with set_to(small_batch=small):
                assert_plan_conforms([verifier], rows)
                (result, *_) = score_rows(rows, [verifier])
            assert result["reward"] == pytest.approx(reward or 0.0)
            assert (result["error"] is None) is (reward is not None)


def test_one_text_is_a_list_of_one():
    for kind in ("contains_any", "contains_all"):
        for value, columns in (("b", {}), (ANSWER, {"answer": "b"}), (ANSWER, {"answer": ["b"]})):
            check = {"type": kind, "values": value}
            assert outcome(check, completion="abc", **columns) == (1.0, None)
            assert outcome(check, completion="acd", **columns) == (0.0, None)
            assert outcome({**check, "word": True}, completion="a b", **columns) == (1.0, None)
        assert outcome({"type": kind, "values": ANSWER}, completion="a5", answer=5) == (1.0, None)
        assert fault({"type": kind, "values": ANSWER}, answer=None) == "gold is missing: answer"
    assert load_verifier({"checks": [{"type": "contains_any", "values": "b"}]}) == load_verifier(
        {"checks": [{"type": "contains_any", "values": ["b"]}]}
    )


def test_steps_change_a_text_that_stands_for_a_list():
    for steps, gold in (([{"after": "A:"}], "A: a, b"), ([{"split": ";"}], "a; b")):
        check = {"type": "list_equals", "value": ANSWER, "goldOn": steps}
        assert outcome(check, completion="a, b", answer=gold) == (1.0, None)
        assert outcome(check, completion="a, c", answer=gold) == (0.0, None)


def test_not_contains_and_subset_take_all_golds():
    none = {"type": "not_contains", "value": ANSWER}
    assert [outcome(none, completion=text, answer=["x", "y"])[0] for text in ("z", "xz", "yz")] == [1.0, 0.0, 0.0]
    subset = {"type": "list_equals", "as": "subset", "value": ANSWER}
    texts = {"a, b, c": 1.0, "c,,b,a": 1.0, "a": 0.0, "A, b": 0.0, "": 0.0}
    assert {text: outcome(subset, completion=text, answer=["a", "", "b"])[0] for text in texts} == texts


def test_a_list_that_stands_for_a_length_counts_its_items():
    penalty = {"type": "length_penalty", "max": 5, "buffer": 2, "unit": ANSWER}
    for tokens, reward in (([7] * 4, 0.5), ([], 1.0), ([1, None, 3], 1.0), ([1] * 6, 0.0), (4, 0.5)):
        assert outcome(penalty, answer=tokens) == (reward, None)
    rows = [{"completion": "a", "answer": tokens} for tokens in ([1] * 4, [1] * 6, None, [])]
    assert_plan_conforms([load_verifier({"checks": [{**penalty, "missingGold": "fail"}]})], rows)


# ── drawn ───────────────────────────────────────────────────────────────────────────────────────────────────────────────

TEXTS = [
    *(
        "72",
        "six",
        "50%",
        "so 12 apples",
        "x\n#### 72",
        r"\boxed{3}",
        "<answer>B</answer>",
        "The answer is (C)",
        "B",
        "",
    ),
    *(
        '{"a": 1}',
        "[1, 2]",
        '```json\n{"a": 1}\n```',
        "(",
        "a|b",
        "1e999",
        "A: red, green",
        "red, green",
        "true",
        '"x"',
    ),
    *('[{"name": "f", "arguments": {"x": 1}}]', '{"f": {"x": [1]}}', '{"type": "strin"}', "5 < 1e999 ", None),
]
LISTS = [[], ["72", "six"], ["(", "a"], ["six", "x"], ["B", "C"], [None], ["", None, "a"], ["red", "green"], ["["]]
TYPES = {
    "value": ("number", "choice", "contains", "not_contains", "equals", "similarity", "list_equals", "starts_with"),
    "values": ("contains_any", "contains_all"),
    "pattern": ("regex",),
}
JSON_TYPES = {"value": ("json_match", "tool_calls", "tool_f1"), "schema": ("json_schema",)}
STEPS = (["boxed"], [{"after": "####"}], ["number"], [{"tag": "answer"}], ["fence"], ["strip"], [{"regex": "(a|b)"}])
REFERENCES = (*({"column": path} for path in ("text", "list", "n", "json.gold")), {"template": "{text} x"})


def drawn_check(rng, ident):
    is_json = rng.random() < 0.3
    param, names = rng.choice([*(JSON_TYPES if is_json else TYPES).items()])
    value = rng.choice(REFERENCES)
    if not is_json and rng.random() < 0.3:
        value = [value, rng.choice(REFERENCES), rng.choice(("72", "(", "six"))]
    around = {"missingGold": rng.choice(("fail", "pass", "unscored")), "notFound": rng.choice(("fail", "pass"))}
    for field, share in (("goldOn", 0.4), ("on", 0.5)):
        around |= {field: rng.choice(STEPS)} if rng.random() < share else {}
    return {"type": rng.choice(names), "id": ident, param: value, "negate": rng.random() < 0.3, **around}


def drawn_row(rng):
    gold = rng.choice(TEXTS)
    found = rng.choice([gold, None, 3, [1, "B"], True, {"a": 1}, [], {"type": "strin"}])
    return {
        "completion": rng.choice(TEXTS),
        "text": gold,
        "list": rng.choice(LISTS),
        "n": rng.choice((None, 0, 1, 3)),
        "json": json.dumps({"gold": found}),
    }


def test_drawn_golds_are_judged_alike_by_row_and_by_columns():
    rng = random.Random(28)
    for _ in range(sized(1_000, 6)):
        verifier = load_verifier({"checks": [drawn_check(rng, f"c{at}") for at in range(3)]})
        with set_to(small_batch=rng.choice((0, 256))):
            assert_plan_conforms([verifier], [drawn_row(rng) for _ in range(rng.choice((1, 9, 30)))])


def test_a_param_has_the_name_that_specs_give_it():
    reason = fault({"type": "json_schema", "schema": [ANSWER, "a"]}, answer="x")
    assert reason.startswith('schema is \'["x", "a"]\'')
