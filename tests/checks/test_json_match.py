"""json_match: what counts as a leaf and as equal, partial credit, and values of any size."""

import json
import random
from collections import Counter
from itertools import permutations

import pytest
from cases import sized

from assay import load_verifier, score
from assay.checks.json.leaves import Rules, compared, without
from assay.checks.json.match import JsonMatch
from assay.testing import assert_plan_conforms
from assay.values.paths import parse_many


def check_of(value, **params):
    return JsonMatch(JsonMatch.Params.model_validate({"value": value, **params}))


def outcome(value, gold, **params):
    return check_of(gold, **params).outcome({"completion": value if isinstance(value, str) else json.dumps(value)})


def grade(value, gold, **params):
    return outcome(value, gold, **params).score


def test_equal_values():
    for value, gold, wanted in [
        ("1", "1.0", 1.0),
        ("true", "1", 0.0),
        ("false", "0", 0.0),
        ("null", "0", 0.0),
        ("NaN", "NaN", 1.0),
        ("1e999", "1e998", 1.0),
        ("100000000000000000000000", "1e23", 0.0),
        ("[]", "{}", 0.0),
        ("[]", "[[]]", 0.0),
        ('{"a": {}}', '{"a": {"b": 1}}', 0.0),
        ('{"0": 1}', "[1]", 0.0),
        ('{"a": 1, "a": 2}', '{"a": 2}', 1.0),
        ('"\\ud800"', '"\ufffd"', 1.0),
        ("[1, 2]", "[2, 1]", 0.0),
        (' {"b": 1, "a": 2}\n', '{"a": 2, "b": 1}', 1.0),
    ]:
        assert grade(value, gold) == wanted
        assert grade(gold, value) == wanted


def test_partial_credit():
    for kind, wanted in [("equal", 0.0), ("subset", 0.0), ("share", 0.75), ("f1", 0.75)]:
        gold = {"a": 1, "b": [2, 3], "c": {"d": "x"}}
        assert grade({"a": 1, "b": [2, 4], "c": {"d": "x"}}, gold, score=kind) == wanted


def test_what_is_too_much_costs_f1_only():
    value = {"a": 1, "b": 2, "c": 3, "d": 4}
    scores = [grade(value, {"a": 1, "b": 2}, score=kind) for kind in ("equal", "subset", "share", "f1")]
    assert scores == [0.0, 1.0, 1.0, 2 * 2 / 6]


def test_unordered_lists():
    gold = {"items": [{"n": 1, "s": "a"}, {"n": 2, "s": "b"}, {"n": 2, "s": "c"}]}
    value = {"items": gold["items"][::-1]}
    assert grade(value, gold) == 0.0
    assert grade(value, gold, lists="unordered") == 1.0
    assert grade({"items": gold["items"][:2]}, gold, lists="unordered", score="share") == 4 / 6
    assert grade([1, 1, 2], [1, 2, 2], lists="unordered", score="f1") == 4 / 6
    assert grade([[1], [2]], [[2, 1]], lists="unordered") == 1.0, "elements of all lists have the same path"


def test_tolerances_and_strings():
    assert grade({"x": 99.5}, {"x": 100}, relTol=0.01) == 1.0
    assert grade({"x": 98}, {"x": 100}, relTol=0.01) == 0.0
    assert grade("[10000000000000000000000000]", [10**400], absTol=1) == 0.0
    assert grade([1.4, 0.6], [1, 2], lists="unordered", absTol=0.75) == 1.0
    assert grade({"x": "The  Norse-men!"}, {"x": "norsemen"}, strings="squad") == 1.0
    assert grade({"X": "a"}, {"x": "a"}, strings="casefold") == 0.0, "keys stay as they are"


def test_paths_that_are_ignored():
    for ignore, wanted in [
        (["id"], 0.0),
        (["id", "rows[].at"], 1.0),
        (["id", "rows[0].at", "rows[-1].at"], 1.0),
        (["id", "rows[0]"], 0.0),
        (["id", "rows[]"], 1.0),
        (["rows", "id"], 1.0),
        (["$.id", 'rows[]["at"]', "absent.path[3]"], 1.0),
    ]:
        gold = {"id": 1, "rows": [{"at": 1, "n": 1}, {"at": 2, "n": 2}]}
        value = {"id": 2, "rows": [{"at": 3, "n": 1}, {"at": 4, "n": 2}]}
        assert grade(value, gold, ignore=ignore) == wanted


def test_an_ignored_element_leaves_the_others_in_place():
    assert grade([9, 2], [1, 2], ignore=["[0]"]) == 1.0
    assert grade([2], [1, 2], ignore=["[0]"]) == 0.0
    assert grade({"a": 1}, {"b": 2}, ignore=["a", "b"]) == 1.0, "both are empty objects then"


def test_the_reason_names_three_leaves():
    gold = {"a": {"b": 3}, "rows": [{"qty": 3}, {"qty": 4}], "c": "x" * 100}
    value = {"rows": [{"qty": 2}], "note": [1, 2], "c": "y"}
    assert outcome(value, gold).reason == (
        "a.b is missing: 3; rows[0].qty is 2, not 3; rows[1].qty is missing: 4; and more"
    )
    assert outcome({**gold, "note": [1, 2]}, gold).reason == "note[0] is not expected; note[1] is not expected"
    assert outcome({"c.d": {}, "e": None}, {"c.d": [], "e": True}).reason == (
        '["c.d"] is {}, not []; e is null, not true'
    )
    assert outcome([1, 5], [5, 6], lists="unordered").reason == "[] is 1, not 6"
    assert outcome("no", gold).reason == "the output is not valid JSON"
    assert outcome(value, gold, score="subset").reason.endswith("; and more")
    assert outcome("3", "4").reason == "the output is 3, not 4"


def test_params_that_cannot_be_used():
    for params, problem in [
        ({"value": "red"}, "a string is JSON text"),
        ({"value": 1, "ignore": ["a..b"]}, "not a valid path"),
        ({"value": 1, "ignore": [""]}, "not a path"),
        ({"value": 1, "strings": "soft"}, "params.strings"),
        ({"value": 1, "relTol": 2}, "params.relTol"),
        ({}, "params.value is missing"),
    ]:
        assert problem in load_verifier({"checks": [{"type": "json_match", "params": params}]}).checks[0].broken


def test_golds_by_row():
    rows = [
        {"completion": '{"n": 1}', "gold": '{"n": 1}', "metadata": {"gold": {"n": 1}}},
        {"completion": '{"n": 1}', "gold": '{"n": 2}', "metadata": {"gold": {"n": 2}}},
        {"completion": '{"n": 1}', "gold": "n", "metadata": {"gold": None}},
        {"completion": None, "gold": "1", "metadata": {"gold": {"n": 2}}},
        {"completion": "x", "gold": "[]", "metadata": {"gold": {"n": 2}}},
    ]
    for column, error in (
        ("gold", """gold cannot be used: gold is "n", not JSON: a string is JSON text; write '"text"' for a string"""),
        ("metadata.gold", "gold is missing: metadata.gold"),
    ):
        check = {"type": "json_match", "value": {"column": column}, "score": "f1"}
        verifier = load_verifier({"checks": [check, {**check, "id": "two", "threshold": 0.5, "negate": True}]})
        assert_plan_conforms([verifier], rows)
        table = score(rows, verifier)
        assert table[f"check/{verifier.id}/json_match"].to_list() == [1.0, 0.0, None, None, 0.0]
        assert table["error"][2] == error


def leaves(value, path=(), *, ordered):
    if isinstance(value, dict) and value:
        return [leaf for key, inner in value.items() for leaf in leaves(inner, (*path, key), ordered=ordered)]
    if isinstance(value, list) and value:
        steps = (at if ordered else None for at in range(len(value)))
        return [
            leaf for at, inner in zip(steps, value, strict=True) for leaf in leaves(inner, (*path, at), ordered=ordered)
        ]
    return [(path, type(value) is bool, repr(value) if isinstance(value, dict | list) else value)]


def random_value(rng, depth=3):
    kind = rng.randrange(8 if depth else 5)
    if kind > 4:
        size = rng.randrange(4)
        items = [random_value(rng, depth - 1) for _ in range(size)]
        return items if kind > 5 else dict(zip("abcd", items, strict=False))
    return rng.choice((1, 1.0, 2, "x", "y", True, None))


@pytest.mark.parametrize("ordered", [True, False])
def test_counts_are_those_of_the_flattened_values(ordered):
    rng = random.Random(5)
    for _ in range(sized(20_000, 1_500)):
        value, gold = random_value(rng), random_value(rng)
        result = compared(value, gold, Rules(ordered=ordered), shown=3)
        flat, flat_gold = (Counter(leaves(item, ordered=ordered)) for item in (value, gold))
        assert (result.golds, result.values) == (flat_gold.total(), flat.total())
        assert result.matches == (flat & flat_gold).total()
        assert bool(result.differences) == (flat != flat_gold)


def test_close_numbers_are_matched_as_often_as_possible():
    rng = random.Random(6)
    for _ in range(sized(5_000, 400)):
        golds, values = ([rng.randrange(-6, 7) / 2 for _ in range(rng.randrange(1, 5))] for _ in "ab")
        rules = Rules(ordered=False, rel_tol=rng.choice((0, 0.3, 0.9)), abs_tol=rng.choice((0, 0.5, 1)))
        best = (
            max(
                sum(compared(a, b, rules, shown=0).matches for a, b in zip(order, golds, strict=False))
                for order in permutations(values)
            )
            if len(values) >= len(golds)
            else max(
                sum(compared(a, b, rules, shown=0).matches for a, b in zip(values, order, strict=False))
                for order in permutations(golds)
            )
        )
        assert compared(values, golds, rules, shown=0).matches == best


@pytest.mark.parametrize("lists", ["ordered", "unordered"])
@pytest.mark.parametrize("tolerance", [0, pytest.param(0.1, marks=pytest.mark.long)])
def test_large_values(lists, tolerance):
    numbers = [*range(sized(100_000, 30_000))]
    assert grade(numbers[::-1], numbers, lists=lists, absTol=tolerance, score="share") == float(lists == "unordered")
    objects = [{"n": at, "s": str(at)} for at in range(sized(30_000, 10_000))]
    assert grade(objects, objects, lists=lists, absTol=tolerance) == 1.0
    deep = json.loads("[" * 499 + "1," * 50_000 + "1" + "]" * 499)
    assert compared(deep, deep, Rules(ordered=lists == "ordered"), shown=3).matches == 50_001


def test_removal_of_many_places():
    value = {"rows": [{"id": at, "n": [at]} for at in range(50_000)]}
    left = without(value, [parse_many("rows[].id"), parse_many("rows[].n[0]")])
    assert left["rows"][7] == {"n": []}


@pytest.mark.parametrize(
    ("text", "gold", "score"),
    [
        ('{"a": [1, NaN, {}], "b": null}', '{"b": null, "a": [1.0, NaN, {}]}', 1.0),
        ('{"a": 1}', '{"a": true}', 0.0),
        ('{"a": false}', '{"a": 0}', 0.0),
        ('{"a": false, "b": "true"}', '{"a": false, "b": "true"}', 1.0),
        ("[" * 500 + "]" * 500, "[" * 500 + "]" * 500, 1.0),
        ('{"a": 1, "b": 2, "c": 3, "d": 4, "e": 5}', '{"z": 1}', 0.0),
    ],
)
def test_values_that_are_equal_in_python_are_not_the_same_where_one_is_a_flag(text, gold, score):
    outcome = JsonMatch(JsonMatch.Params(value=gold)).outcome({"completion": text})
    assert (outcome.score, outcome.error) == (score, None)
    assert outcome.reason.endswith("; and more") == ("z" in gold)
