"""What stands around a check: steps, golds, conditions, thresholds, groups, gates, penalties, and how they make a score."""

import math
import random

import pytest
from cases import sized, some
from fuzz_specs import GROUPS, draw_rows

import assay
from assay.errors import ColumnsError, SpecError
from assay.scoring.reference import score_rows
from assay.spec.verifier import load_verifier
from assay.testing import assert_plan_conforms, hostile_texts

YES, NO, HALF = (
    {"type": "contains", "value": "a", "id": "yes"},
    {"type": "contains", "value": "zzz", "id": "no"},
    {"type": "contains_all", "values": ["a", "zzz"], "score": "share", "id": "half"},
)


def result(*checks, completion="a", verifier=None, **columns):
    """Score one row, by columns and by rows, and return it."""
    row = {"completion": completion, **columns}
    spec = load_verifier({"checks": list(checks), **(verifier or {})})
    assert_plan_conforms([spec], [row])
    (scored,) = score_rows([row], [spec])
    return scored


def reward(*checks, **given):
    return result(*checks, **given)["reward"]


def refusal(*checks, **verifier):
    with pytest.raises(SpecError) as refused:
        load_verifier({"checks": list(checks), **verifier})
    return str(refused.value)


@pytest.mark.parametrize("negate", [False, True])
def test_a_check_whose_steps_find_nothing_scores_0_negated_or_not(negate):
    row = result({**YES, "on": ["boxed"], "negate": negate})
    assert (row["reward"], row["error"], row["feedback"]) == (0.0, None, "yes: found nothing: boxed")
    assert reward({**YES, "on": ["boxed"], "negate": negate, "notFound": "pass"}) == 1.0
    assert reward({**NO, "on": [{"after": "A:", "notFound": "keep"}]}, completion="zzz") == 1.0


def test_the_first_step_that_finds_nothing_is_named():
    check = {**YES, "on": ["afterThink", {"tag": "answer"}, "number"]}
    assert result(check, completion="<think>")["feedback"] == "yes: found nothing: afterThink"
    assert result(check, completion="x")["feedback"] == "yes: found nothing: tag"
    assert result(check, completion="<answer>x</answer>")["feedback"] == "yes: found nothing: number"


def test_sources_are_columns_prompts_and_what_messages_hold():
    assert reward({**YES, "on": [{"column": "note"}]}, note="a", completion="") == 1.0
    assert reward({**YES, "on": [{"column": "meta.x[0]"}]}, meta={"x": ["a"]}, completion="") == 1.0
    assert reward({**YES, "on": [{"template": "{n}{note}"}]}, n=3, note="a", completion="") == 1.0
    assert reward({**YES, "on": ["prompt"]}, prompt=[{"role": "user", "content": "a"}], completion="") == 1.0
    absent = result({**YES, "on": [{"column": "note"}]}, note=None)
    assert absent["feedback"] == "yes: found nothing: note"
    said = [
        {"role": "assistant", "content": "one", "reasoning_content": "because"},
        {"role": "tool", "content": "two"},
        {"role": "assistant", "content": "three", "reasoning": "thus"},
    ]
    check = {"type": "equals", "id": "c"}
    assert reward({**check, "on": ["assistant"], "value": "one\nthree"}, completion=said) == 1.0
    assert reward({**check, "on": ["reasoning"], "value": "thus"}, completion=said) == 1.0
    assert result({**check, "on": ["reasoning"], "value": "thus"})["feedback"] == "c: found nothing: reasoning"
    call = {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": '{"x": 1}'}}]}
    called = '[{"name": "f", "arguments": {"x": 1}}]'
    assert reward({**check, "on": ["toolCalls"], "value": called}, completion=[call]) == 1.0


def test_a_number_that_is_not_finite_is_no_number():
    for text in ("x 1e999", "-1e400", "9" * 400, "1" * 200 + "e200"):
        for check in ({"type": "number", "value": 5, "absTol": 1e308}, {"type": "number_range", "min": 0}):
            row = result({**check, "id": "c", "negate": True}, completion=text)
            assert (row["reward"], row["error"], row["feedback"]) == (0.0, None, "c: found nothing: number")
            assert reward({**check, "notFound": "pass"}, completion=text) == 1.0
            assert reward(check, completion=f"5 < {text}") == 1.0  # the last number of them is 5
        assert reward({"type": "list_equals", "on": ["numbers"], "value": ["1", "2"]}, completion=f"1 {text} 2") == 1.0
        assert reward({"type": "number", "value": {"column": "golds"}}, completion="7", golds=[text, "7"]) == 1.0


def test_a_row_without_a_gold_is_unscored_unless_the_check_says_otherwise():
    check = {"type": "contains", "id": "c", "value": {"column": "gold"}}
    for gold in (None, [], [None]):
        row = result(check, gold=gold)
        assert (row["reward"], row["passed"], row["error"]) == (None, None, "gold is missing: gold")
        failed = result({**check, "missingGold": "fail"}, gold=gold)
        assert (failed["reward"], failed["error"]) == (0.0, "c: gold is missing: gold")
        passed = result({**check, "missingGold": "pass", "negate": True}, gold=gold)
        assert (passed["reward"], passed["error"]) == (1.0, None)


def test_a_gold_that_the_check_cannot_use_counts_as_missing():
    check = {"type": "number", "value": {"column": "gold"}}
    assert result(check, completion="3", gold="three")["error"] == 'gold cannot be used: gold is "three", not a number'
    assert reward(check, completion="3", gold=["three", "3.0"]) == 1.0
    assert reward({"type": "contains", "value": {"column": "gold"}}, gold="") == 1.0  # an empty text is a gold


def test_the_best_of_several_golds_counts():
    assert reward({"type": "equals", "value": ["b", "A"]}) == 1.0
    assert reward({"type": "equals", "value": ["b", {"column": "gold"}]}, gold="a") == 1.0
    assert reward({"type": "equals", "value": {"column": "golds"}}, golds=["b", None, "a"]) == 1.0
    assert reward({"type": "equals", "value": {"column": "golds", "list": True}}, golds='["b", "a"]') == 1.0
    assert reward({"type": "not_contains", "value": ["b", "a"]}) == 0.0  # none of them
    assert reward({"type": "equals", "value": {"column": "meta.gold"}}, meta='{"gold": ["x", "a"]}') == 1.0


def test_golds_take_steps_and_params_take_columns():
    gold = "The sum is #### 1,200"
    check = {"type": "number", "value": {"column": "gold"}, "goldOn": [{"after": "####"}]}
    assert reward(check, completion="$1200", gold=gold) == 1.0
    assert reward({"type": "max_length", "value": {"column": "most"}}, most=1) == 1.0
    assert reward({"type": "regex", "pattern": {"column": "pattern"}}, pattern="^a$") == 1.0
    assert reward({"type": "contains", "value": {"template": "<{x}> {{}}"}}, completion="<1> {}", x=1) == 1.0


def test_a_path_that_nobody_has_is_refused_with_a_guess():
    refused = [
        ({"type": "contains", "value": {"column": "anser"}}, r"no `anser`(?s:.*)Did you mean `answer`"),
        ({**YES, "on": [{"column": "notes"}]}, "no `notes`"),
        ({**YES, "when": {"column": "levels", "equals": 1}}, "no `levels`"),
    ]
    for check, message in refused:
        with pytest.raises(ColumnsError, match=message):
            result(check, answer="a", note="a", level=1)
    for text in ("${answer}", "x {{ answer }} y"):
        (note,) = load_verifier({"checks": [{"type": "contains", "value": text}]}).warnings
        assert "{column: answer}" in note


def test_a_threshold_makes_a_graded_score_0_or_1_before_negation():
    assert reward(HALF) == 0.5
    assert reward({**HALF, "threshold": 0.5}) == 1.0
    assert reward({**HALF, "threshold": 0.6}) == 0.0
    assert reward({**HALF, "threshold": 0.5, "negate": True}) == 0.0


CONDITIONS = [
    ({"column": "level", "equals": 3}, True),
    ({"column": "level", "equals": "3"}, True),
    ({"column": "level", "equals": 2}, False),
    ({"column": "level", "in": [1, 3]}, True),
    ({"column": "level", "exists": True}, True),
    ({"column": "level"}, True),
    ({"column": "absent", "exists": False}, True),
    ({"column": "absent", "equals": 3}, False),
    ({"column": "absent", "equals": 3, "not": True}, True),
    ({"column": "level", "matches": "^[0-9]$"}, True),
    ({"check": {"type": "contains", "value": "a"}}, True),
    ({"check": {"type": "contains", "value": "a"}, "not": True}, False),
    ({"check": {"type": "contains", "value": {"column": "absent"}}}, False),
    ({"check": {"type": "contains", "value": {"column": "absent"}}, "not": True}, False),
]


def test_a_check_whose_condition_does_not_hold_leaves_the_weights():
    for condition, runs in CONDITIONS:
        row = result(YES, {**NO, "when": condition}, level=3, absent=None)
        numbers = row["check/verifier/no"], row["reward"], "no" in row["feedback"]
        assert numbers == ((0.0, 0.5, True) if runs else (None, 1.0, False)), condition


def test_a_row_to_which_no_check_applies_is_unscored():
    never = {"column": "level", "equals": 4}
    row = result({**YES, "when": never}, level=3)
    assert (row["reward"], row["error"]) == (None, "no check applies to this row")
    assert reward({**YES, "when": never}, {**YES, "id": "gate", "gate": True}, level=3) == 1.0
    assert result({**YES, "when": never, "value": {"column": "level"}}, NO, level=None)["error"] is None
    # a check of weight 0 makes no score, and a penalty of 0 does
    assert result({**YES, "when": never}, {**NO, "weight": 0}, level=3)["error"] == "no check applies to this row"
    assert result({**YES, "when": never}, {**NO, "penalty": 0}, level=3)["reward"] == 1.0


def test_a_missing_gold_is_said_before_that_no_check_of_another_verifier_applies():
    specs = [
        {"id": "v", "checks": [{**YES, "when": {"column": "level", "equals": 4}}]},
        {"id": "w", "checks": [{**YES, "value": {"column": "gold"}}]},
    ]
    rows = [{"completion": "a", "level": 3, "gold": gold} for gold in (None, "a")]
    for order in (specs, specs[::-1]):
        assert_plan_conforms([*map(load_verifier, order)], rows)
        errors = assay.score(rows, order)["error"].to_list()
        assert errors == ["gold is missing: gold", "no check applies to this row"]


def test_gates_multiply_and_penalties_take_off():
    gate, penalty = {**NO, "gate": True}, {**NO, "penalty": 0.3}
    assert reward(YES, gate) == 0.0
    assert reward(YES, {**HALF, "gate": True}) == 0.5
    assert reward(YES, *({**HALF, "id": ident, "gate": True} for ident in "gh")) == 0.25
    assert reward(YES, {**NO, "id": "p", "penalty": 0.3}, {**NO, "id": "q", "penalty": 0.25}) == 1.0 - (0.3 + 0.25)
    assert reward(YES, penalty) == 1.0 - 0.3
    assert reward(YES, {**HALF, "penalty": 0.3}) == 1.0 - 0.15
    assert reward({**YES, "gate": True}, {**YES, "id": "p", "penalty": 2}) == 1.0
    assert reward(NO, {**penalty, "id": "p"}) == 0.0
    assert reward(NO, {**penalty, "id": "p"}, verifier={"range": None}) == -0.3


def test_the_base_combines_the_weighted_checks():
    checks = [YES, HALF, {**NO, "weight": 2}]
    for combine, score in (("mean", (1 + 0.5) / 4), ("sum", 1.0), ("min", 0.0), ("max", 1.0), ("product", 0.0)):
        assert reward(*checks, verifier={"combine": combine}) == score
    negative = [YES, {**NO, "id": "n", "negate": True, "weight": -0.25}]
    assert reward(*negative, verifier={"combine": "sum"}) == 0.75


def test_a_perfect_row_scores_exactly_1_for_any_weights():
    rng = random.Random(7)
    for _ in range(6):
        checks = [{**YES, "id": f"c{at}", "weight": rng.random()} for at in range(rng.randrange(1, 12))]
        checks += [{**YES, "id": "gate", "gate": True}, {**YES, "id": "penalty", "penalty": rng.random()}]
        assert reward(*checks) == 1.0


def test_a_group_scores_its_checks():
    scores = {"all_of": 0.0, "any_of": 1.0, "none_of": 0.0, "at_least": 0.0}
    scores |= {"mean": 0.5, "min": 0.0, "max": 1.0, "product": 0.0}
    for kind, score in scores.items():
        row = result({"type": kind, "checks": [YES, HALF, NO]} | ({"k": 2} if kind == "at_least" else {}))
        assert row["reward"] == row[f"check/verifier/{kind}"] == score
        assert row[f"check/verifier/{kind}.half"] == 0.5


def test_feedback_of_a_group_names_the_leaf_at_fault():
    nested = {"type": "any_of", "id": "h", "checks": [NO]}
    words = [
        ({"type": "all_of", "checks": [YES, NO]}, 'g.no: does not contain "zzz"'),
        ({"type": "any_of", "checks": [NO, HALF]}, 'g.half: does not contain "zzz"'),
        ({"type": "none_of", "checks": [YES, NO]}, 'g.yes: must not hold: contains "a"'),
        (
            {"type": "any_of", "negate": True, "checks": [YES, NO]},
            'g: must not hold: any [contains "a"; contains "zzz"]',
        ),
        ({"type": "all_of", "checks": [nested]}, 'g.h.no: does not contain "zzz"'),
    ]
    for group, feedback in words:
        assert result({**group, "id": "g"})["feedback"] == feedback


@pytest.mark.filterwarnings("ignore::assay.errors.AssayWarning")
def test_errors_of_the_checks_in_a_group_are_the_groups():
    broken = {"type": "regex", "pattern": "(", "id": "bad"}
    row = result({"type": "any_of", "id": "g", "checks": [broken, YES]})
    assert row["reward"] == 1.0
    assert row["error"].startswith("g.bad: ")
    assert reward({"type": "none_of", "checks": [broken]}) == 0.0
    assert reward({"type": "all_of", "negate": True, "checks": [broken]}) == 0.0


def test_checks_in_a_group_that_do_not_run_leave_it():
    never = {"when": {"column": "level", "equals": 4}}
    assert reward({"type": "all_of", "checks": [YES, {**NO, **never}]}, level=3) == 1.0
    row = result(YES, {"type": "all_of", "id": "g", "checks": [{**NO, **never}]}, level=3)
    assert (row["reward"], row["check/verifier/g"]) == (1.0, None)


def test_a_score_scaled_by_length():
    check = {"type": "length_scaled", "check": YES, "max": 8}
    unbounded = {"combine": "sum", "range": None}
    for text, low, high in (("a", 0.5, 1.0), ("aaaa", 0.5, 1.0), ("a" * 9, 0.5, 1.0), ("b", -0.5, -1.0)):
        share = min(len(text) / 8, 1.0)
        expected = low + 0.5 * (high - low) * (1.0 + math.cos(share * math.pi))
        assert reward(check, completion=text, verifier=unbounded) == expected
    tokens = reward({**check, "unit": {"column": "tokens"}}, tokens=8, verifier=unbounded)
    assert tokens == 0.5 + 0.5 * 0.5 * (1.0 + math.cos(math.pi))


@pytest.mark.parametrize("kind", ["mean", "max", "length_scaled"])
def test_scores_without_bounds_have_any_threshold(kind):
    scaled, unbounded = {"type": "length_scaled", "check": YES, "max": 8}, {"combine": "sum", "range": None}
    check = scaled if kind == "length_scaled" else {"type": kind, "checks": [scaled]}
    for text in ("a", "b", "a" * 9):
        score = reward(check, completion=text, verifier=unbounded)
        for threshold in (-0.2, 0.0, 0.9, 2):
            passed = reward({**check, "threshold": threshold}, completion=text, verifier=unbounded)
            assert passed == float(score >= threshold)


@pytest.mark.parametrize(
    ("check", "words"),
    [
        ({**YES, "on": ["boxd"]}, r"$.checks[0].on[0]: unknown step `boxd`. Did you mean `boxed`?"),
        ({**YES, "on": ["numbers"]}, "`numbers` gives a list"),
        ({**YES, "gate": True, "weight": 2}, "one of `weight`, `gate` and `penalty`"),
        ({**YES, "when": {"column": "x", "equal": 1}}, "Did you mean `equals`?"),
        ({**YES, "notFound": "skip"}, "$.checks[0].notFound"),
        ({"type": "contains", "value": {"template": "{a"}}, "`{a` has a `{` without its `}`"),
        ({"type": "all_of"}, "needs `checks`"),
        ({"type": "all_of", "checks": [{**YES, "gate": True}]}, "`gate` belongs to the group"),
        ({"type": "all_of", "on": "boxed", "checks": [YES]}, "`on` belongs to the checks"),
        ({**YES, "threshold": 2}, "$.checks[0].threshold: scores of `contains` lie between 0 and 1"),
        ({**HALF, "threshold": 0}, "so a threshold is above 0 and at most 1, not 0"),
        ({**HALF, "threshold": -0.5}, "at most 1, not -0.5"),
        ({"type": "contains", "value": {"column": "x"}, "threshold": 1.5}, "$.checks[0].threshold"),
        ({"type": "all_of", "checks": [YES], "threshold": 2}, "scores of `all_of`"),
        ({"type": "mean", "checks": [YES, {**NO, "threshold": 3}]}, "$.checks[0].checks[1].threshold"),
        ({"type": "max", "checks": [YES, {"type": "min", "checks": [NO]}], "threshold": 0}, "scores of `max`"),
        ({**YES, "when": {"check": {**NO, "threshold": 9}}}, "$.checks[0].when.check.threshold"),
        ({"type": "exact_match", "value": "a", "threshold": 9}, "scores of `exact_match`"),
        ({"type": "regex_match", "expected": "a", "threshold": 9}, "scores of `regex_match`"),
        ({"type": "function", "name": "contains", "expected": "a", "threshold": 9}, "$.checks[0].threshold"),
    ],
)
def test_a_mistake_around_a_check_is_named_with_its_place(check, words):
    assert words in refusal(check)


def test_groups_nest_eight_deep_and_no_deeper():
    check = YES
    for _ in range(8):
        check = {"type": "all_of", "checks": [check]}
    assert reward(check) == 1.0
    assert "nested more than 8 deep" in refusal({"type": "all_of", "checks": [check]})


def test_what_old_specs_could_not_say_is_not_in_their_canonical_form():
    verifier = load_verifier({"checks": [YES]})
    assert verifier.canonical == (
        '{"checks":[{"id":"yes","negate":false,"params":{"caseSensitive":false,"value":"a"},"required":false,'
        '"type":"contains","weight":1.0}],"id":"verifier","kind":"native","name":"verifier","passThreshold":1.0}'
    )


GOLDS = (
    *({"column": "answer"}, {"column": "golds"}, {"column": "level"}, {"column": "metadata.gold"}),
    *({"template": "{answer} {level}"}, {"column": "listed", "list": True}, ["a", {"column": "answer"}], ["a", "42"]),
)


@pytest.mark.parametrize("gold", some(GOLDS), ids=str)
@pytest.mark.parametrize("kind", ["contains", "equals", "number"])
def test_each_reference_alone(gold, kind):
    rows = draw_rows(random.Random(f"{gold} {kind}"), sized(7_000, 20))
    assert_plan_conforms([load_verifier({"checks": [{"type": kind, "value": gold}]})], rows)


@pytest.mark.parametrize("kind", some([*GROUPS, "length_scaled"]))
def test_each_group_alone_and_three_deep(kind):
    rng = random.Random(kind)
    leaves = [
        {"type": "contains", "value": {"column": "answer"}, "missingGold": "fail"},
        {**HALF, "when": {"column": "level", "in": [1, 2]}},
        {"type": "number", "value": 42, "on": [{"after": "A:"}], "negate": True},
    ]
    extra = {"at_least": {"k": 2}, "length_scaled": {"max": 20}}.get(kind, {})

    def group(*parts):
        return {"type": kind, **extra} | ({"check": parts[0]} if kind == "length_scaled" else {"checks": list(parts)})

    deep = group(group(group(*leaves), *leaves[:2]), {**group(*leaves[1:]), "negate": kind != "length_scaled"})
    if kind == "length_scaled":
        deep = group({"type": "all_of", "checks": [{"type": "any_of", "checks": leaves}]})
    verifier = {"combine": "sum", "range": None, "checks": [{**group(*leaves), "id": "flat"}, {**deep, "id": "deep"}]}
    rows = draw_rows(rng, sized(20_000, 40))
    assert_plan_conforms([load_verifier(verifier)], rows)


def test_hostile_texts_through_a_nest():
    checks = [{"type": "any_of", "checks": [{**YES, "on": ["afterThink", "strip"]}, {**NO, "on": [{"tag": "answer"}]}]}]
    rows = [{"completion": text} for text in hostile_texts(sized(20_000, 100), 3)]
    assert_plan_conforms([load_verifier({"checks": checks})], rows)
