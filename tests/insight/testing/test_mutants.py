"""Mutants of specs: which there are, and which of them tests, rollouts and witnesses show."""

import json

import polars as pl
import pytest
from spec_tests import run
from worked_cases import to_try

import assay
from assay.calls.limits import Limits
from assay.compiling.plan import Plan
from assay.compiling.variants import Variants
from assay.insight.testing.mutants import MOST, mutants_of
from assay.insight.testing.patterns import changed_patterns
from assay.options import ScoreOptions, settle


def changes(spec, check=""):
    """The operators and changes of the mutants of a check."""
    mutants, _ = mutants_of(assay.load_verifier(spec), settle(ScoreOptions, {}, "test"), Limits())
    return [(mutant.change.operator, mutant.change.change) for mutant in mutants if mutant.change.check == check]


@pytest.mark.parametrize("case", to_try("verifiers", "a"), ids=lambda case: case["spec"]["id"])
def test_worked_cases(case):
    found = assay.run_tests(case["spec"] | {"tests": case["tests"]}, mutants=True, rollouts=case["rollouts"])
    names = ("check", "operator", "change", "outcome", "killed_by", "rows", "first_row")
    ours = [{name: mutant[name] for name in names} for mutant in found.mutants]
    for mutant in ours:
        mutant["outcome"] = "open" if mutant["outcome"] in ("survives", "undecided") else mutant["outcome"]
    assert ours == case["mutants"]


GOLD = {"column": "answer"}
OTHER = {"id": "other", "type": "json_valid"}
MADE = [  # (check, among its mutants, not among them)
    ({"type": "similarity", "value": "abc", "threshold": 0.95}, [("threshold", "0.95 -> 0.85")], [("threshold", "0.95 -> 1.05")]),
    ({"type": "contains", "value": "12"}, [("phrase", "last character off")], [("case", "caseSensitive"), ("word", "")]),
    ({"type": "contains", "value": "ab", "word": True}, [("word", ""), ("case", "caseSensitive")], []),
    ({"type": "contains_any", "values": ["a", "b"]}, [("phrase", "without item 2"), ("type", "contains_any -> contains_all")], []),
    ({"type": "contains_all", "values": ["a"]}, [("mode", "score all -> share")], [("phrase", "without item 1")]),
    ({"type": "contains_all", "values": ["a", "b"], "score": "share"}, [("type", "contains_all -> contains_any")], []),
    ({"type": "number", "value": GOLD, "relTol": 0.5, "absTol": 2}, [("tolerance", "relTol 0.5 -> 0"), ("tolerance", "absTol 2 -> 0")], []),
    ({"type": "number", "value": GOLD, "on": ["number"]}, [("at", "number: last -> first")], [("at", "last -> first")]),
    (
        {"type": "number", "value": GOLD, "on": [{"after": "A:", "at": "first"}, "lower"], "goldOn": ["strip"]},
        [("step", "without after"), ("step", "without lower"), ("at", "after: first -> last"), ("unset", "goldOn"), ("at", "last -> first")],
        [],
    ),
    ({"type": "equals", "value": GOLD, "on": ["strip"], "normalize": "squad"}, [("unset", "normalize")], [("strip", "")]),
    ({"type": "count", "of": "words", "min": 2}, [("bound", "2 -> 1"), ("bound", "2 -> 3")], []),
    ({"type": "number_range", "max": 2.0}, [("bound", "2 -> 1.98"), ("bound", "2 -> 2.02")], []),
    ({"type": "tool_calls", "value": GOLD}, [("mode", "arguments exact -> subset"), ("mode", "order any -> same")], []),
    ({"type": "list_equals", "value": GOLD, "as": "set"}, [("mode", "as set -> multiset")], []),
    ({"type": "json_valid", "when": {"column": "answer", "equals": "1"}}, [("unset", "when")], [("notFound", "fail -> pass")]),
    ({"type": "json_valid", "required": True}, [("weight", "1 -> 2"), ("role", "weight -> gate")], [("required", "")]),
    ({"type": "json_valid", "gate": True}, [("role", "gate -> weight 1"), ("drop", ""), ("negate", "")], [("weight", "1 -> 2")]),
    ({"type": "json_valid", "penalty": 0.5}, [("role", "penalty -> 0.25")], [("weight", "1 -> 2")]),
    ({"type": "at_least", "k": 2, "checks": [OTHER, {"id": "b", "type": "max_length", "value": 3}]}, [("type", "2 -> 1")], [("type", "2 -> 3")]),
    ({"type": "mean", "checks": [OTHER, {"id": "b", "type": "max_length", "value": 3}]}, [("type", "mean -> min")], []),
    ({"type": "regex", "pattern": "(?i)a+"}, [("pattern", "(?i)a*"), ("pattern", "a+"), ("pattern", r"(?i)\A(?:a+)\Z")], []),
]  # fmt: skip


@pytest.mark.parametrize(("check", "there", "absent"), MADE)
def test_operators(check, there, absent):
    made = changes({"checks": [{"id": "c", **check}, {"id": "beside", "type": "min_length", "value": 5}]}, "c")
    assert {*there} <= {*made}
    assert not {*absent} & {*made}
    assert len({*made}) == len(made)


def test_weights_change_in_groups_that_have_a_mean_only():
    parts = [{"id": "a", "type": "json_valid"}, {"id": "b", "type": "max_length", "value": 3}]
    for kind, weighs in (("mean", True), ("all_of", False)):
        spec = {"checks": [{"id": "g", "type": kind, "checks": parts}, OTHER]}
        assert (("weight", "1 -> 2") in changes(spec, "g.a")) is weighs
        assert not any(operator == "role" for operator, _ in changes(spec, "g.a"))


def test_what_is_equivalent_is_left_out():
    alone = {"checks": [{"id": "a", "type": "json_valid"}]}
    assert changes(alone, "a") == [("negate", "")]  # no weight, no role, and nothing to leave out
    assert changes(alone) == [("passThreshold", "1 -> 0")]
    assert changes({**alone, "passThreshold": 0.5}) == [("passThreshold", "0.5 -> 0")]
    graded = {"checks": [{"id": "a", "type": "similarity", "value": "abc"}]}
    assert changes(graded) == []  # of 0, 1/2 and 1 the same pass
    assert changes({**graded, "passThreshold": 0.6}) == [("passThreshold", "0.6 -> 0.5")]


PATTERNS = [  # (pattern, all that is made of it)
    (r"\d", [r"\A(?:\d)\Z"]),
    (r"^a\.b?$", [r"a\.b?$", r"^a\.b?", r"\A(?:^a\.b?$)\Z", r"(?i)^a\.b?$", "^a.b?$", r"^a\.b$"]),
    (r"[.+?a\]]", [r"\A(?:[.+?a\]])\Z", r"(?i)[.+?a\]]"]),
    (r"(?P<x>\++)(?!a)", [r"\A(?:(?P<x>\++)(?!a))\Z", r"(?i)(?P<x>\++)(?!a)", r"(?P<x>\+*)(?!a)"]),
    ("(?im)a*?", [r"(?im)\A(?:a*?)\Z", "(?m)a*?", "(?im)a+?", "(?im)a*"]),
    ("(?i)", ["(?i)\\A(?:)\\Z"]),
]


@pytest.mark.parametrize(("pattern", "made"), PATTERNS)
def test_patterns_change_in_one_place(pattern, made):
    assert list(changed_patterns(pattern)) == made


def test_more_than_500_mutants_are_taken_in_turns_from_each_check(monkeypatch):
    assert MOST == 500
    monkeypatch.setattr("assay.insight.testing.mutants.MOST", 50)
    checks = [{"id": f"c{at}", "type": "contains_any", "values": [f"{at}-{n}" for n in range(10)]} for at in range(8)]
    test = {"given": {"completion": "0-0"}, "expect": "fail"}
    found = assay.run_tests({"id": "s", "checks": checks, "tests": [test]}, mutants=True)
    names = [mutant["check"] for mutant in found.mutants]
    by_check = [names.count(f"c{at}") for at in range(8)]
    assert (len(names), max(by_check) - min(by_check)) == (50, 1)
    assert names == sorted(names)
    assert found.notes == ("s: 50 mutants, in turns from each check; there are more",)


VARIED = [
    {"checks": [{"id": "a", "type": "contains", "value": "a"}, {"id": "n", "type": "number", "value": GOLD}]},
    {
        "passThreshold": 0.5,
        "combine": "min",
        "checks": [
            {"id": "n", "type": "number", "value": GOLD, "missingGold": "fail", "on": [{"after": "A:"}], "weight": 2},
            {"id": "g", "type": "any_of", "gate": True, "when": {"column": "kind", "exists": True}, "checks": [
                {"id": "x", "type": "contains", "value": "x", "when": {"column": "kind", "equals": "k"}},
                {"id": "y", "type": "json_match", "value": GOLD, "negate": True},
            ]},
            {"id": "p", "type": "length_penalty", "max": 9, "buffer": 4, "penalty": 0.3},
        ],
    },
    {"checks": [{"id": "l", "type": "length_scaled", "max": 9, "check": {"id": "n", "type": "number", "value": GOLD}}], "range": None},
]  # fmt: skip
ROWS = [
    {"completion": text, "answer": answer, "kind": kind}
    for text in ("a 3", "A: 3", "x 4", "", None, '{"a": 1}', "long " * 5)
    for answer in ("3", "4", None)
    for kind in (None, "k", "other")
]


@pytest.mark.parametrize("spec", VARIED)
def test_variants_score_as_plans_of_their_own_do(spec):
    verifier = assay.load_verifier(spec)
    mutants, _ = mutants_of(verifier, settle(ScoreOptions, {}, "test"), Limits())
    verifiers = [verifier, *(mutant.verifier for mutant in mutants)]
    frame = pl.DataFrame(ROWS)
    variants = Variants(verifiers, frame.schema)
    table = variants.table(frame.lazy()).collect()
    found = dict(variants.verdicts(table, range(len(verifiers))))
    for number, own in enumerate(verifiers):
        expected = Plan((own,), tuple(frame.schema.items()), ()).score(frame).select("reward", "passed")
        assert found[number].equals(expected, null_equal=True), mutants[number - 1].change


def test_rollouts_are_compared_in_batches_and_variants_together_with_the_same_outcome(monkeypatch):
    spec = VARIED[1] | {"tests": [{"given": ROWS[0], "expect": {"reward": {"min": -9}}}]}
    whole = assay.run_tests(spec, mutants=True, rollouts=ROWS).mutants
    monkeypatch.setattr("assay.insight.testing.mutants._BATCH", 5)
    monkeypatch.setattr("assay.compiling.variants._MOST_ROWS", 1)
    assert assay.run_tests(spec, mutants=True, rollouts=ROWS).mutants == whole
    seen = [mutant for mutant in whole if mutant["outcome"] == "seen"]
    assert max(mutant["first_row"] for mutant in seen) > 5
    for mutant in seen:
        row = mutant["case"]["given"]
        assert row in [{**shown, "completion": mutant["text"]} for shown in ROWS]


def test_a_survivor_comes_with_a_test_that_kills_it():
    tests = [
        {"given": {"completion": "<think>1</think>42", "answer": "42"}, "expect": "pass"},
        {"given": {"completion": "41", "answer": "42"}, "expect": "fail"},
    ]
    spec = {
        "id": "s",
        "checks": [{"id": "right", "type": "number", "value": GOLD, "on": ["afterThink"]}],
        "tests": tests,
    }
    before = assay.run_tests(spec, mutants=True)
    shown = [mutant for mutant in before.mutants if mutant["outcome"] == "survives"]
    assert shown
    assert all(mutant["case"]["given"]["completion"] == mutant["text"] for mutant in shown)
    after = assay.run_tests({**spec, "tests": [*tests, *(mutant["case"] for mutant in shown)]}, mutants=True)
    assert not after.failed
    assert after.score == 1.0 > before.score
    outcomes = {(m["operator"], m["change"]): m["outcome"] for m in after.mutants}
    assert all(outcomes[m["operator"], m["change"]] == "killed" for m in shown)


SHOWN = [  # (check, completion, gold, operator and change, the text that shows it)
    ({"type": "number"}, "5", "1200", ("tolerance", "relTol 0 -> 0.01"), "1201"),
    ({"type": "list_equals", "as": "set"}, "5", "a, b", ("mode", "as set -> multiset"), "a, b, a"),
    ({"type": "equals", "on": [{"regex": r"(?s)\[(.*)\]"}]}, "is it [Oslo]?", "Oslo", ("strip", ""), "is it [ \n Oslo \n]?"),
    ({"type": "number", "on": [{"after": "A:"}]}, "A: 5", 5, ("at", "after: last -> first"), "A: 5 A:"),
    ({"type": "number_range", "max": 7, "value": None}, "2", None, ("bound", "7 -> 6"), "2 7"),
]  # fmt: skip


@pytest.mark.parametrize(("check", "completion", "gold", "change", "text"), SHOWN)
def test_forged_cases_of_the_golds_and_what_the_spec_looks_for_show_mutants(check, completion, gold, change, text):
    given = {"completion": completion} | ({} if gold is None else {"answer": gold})
    check = {name: value for name, value in {"value": GOLD, **check}.items() if value is not None}
    expect = {"reward": {"min": 0}}
    found = assay.run_tests({"checks": [check], "tests": [{"given": given, "expect": expect}]}, mutants=True)
    (shown,) = (m for m in found.mutants if (m["operator"], m["change"]) == change)
    assert (shown["outcome"], shown["text"]) == ("survives", text)


def test_forged_tool_calls_stand_in_messages_beside_texts():
    calls = [{"name": "f", "arguments": {"x": 1}}]
    test = {"given": {"completion": "none", "answer": calls}, "expect": "fail"}
    found = assay.run_tests({"checks": [{"type": "tool_calls", "value": GOLD}], "tests": [test]}, mutants=True)
    (mode,) = (m for m in found.mutants if m["change"] == "arguments exact -> subset")
    assert mode["outcome"] == "survives"
    call = mode["case"]["given"]["completion"][0]["tool_calls"][0]["function"]
    assert json.loads(call["arguments"]) == {"x": 1, "extra": 1}
    assert mode["case"]["expect"] == "fail"


def test_a_mutant_is_killed_by_what_is_said_and_by_scores_of_checks():
    given = {"completion": "sorry"}
    spec = {"checks": [{"id": "a", "type": "contains", "value": "thanks"}, {"id": "b", "type": "json_valid"}]}
    for expect in ({"checks": {"b": 0}}, {"reason": {"b": "JSON"}}):
        found = assay.run_tests({**spec, "tests": [{"given": given, "expect": expect}]}, mutants=True)
        assert {(m["check"], m["operator"]) for m in found.mutants if m["outcome"] == "killed"} == {
            ("b", "drop"),
            ("b", "negate"),
        }


def test_the_command_asks_for_a_score(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    test = {"given": {"completion": "thanks"}, "expect": "pass"}
    spec = {"checks": [{"id": "a", "type": "contains", "value": "thank"}], "tests": [test]}
    (tmp_path / "s.json").write_text(json.dumps(spec))
    (tmp_path / "r.jsonl").write_text('{"completion": "THANKS"}\n{"completion": "THAN"}\n')
    code, _, err = run("s.json", "--mutants", "--rollouts", "r.jsonl")
    assert code == 0
    assert 'SEEN s.json: a case caseSensitive in 1 row: reward 1, then 0, on "THANKS"\n' in err
    assert "s.json: 4 mutants: 1 killed, 3 seen · score 25.0 %\n" in err
    code, out, err = run("s.json", "--min-score", "50%", "--json")
    assert (code, json.loads(out)["limits"]["exceeded"]) == (
        3,
        ["s.json: 33.3 % of mutants killed; --min-score asks for 50%"],
    )
    code, _, err = run("s.json", "--min-score", "most")
    assert (code, "--min-score most: expected a percentage" in err) == (2, True)
    code, _, err = run("s.json", "--rollouts", "r.jsonl")
    assert (code, "--mutants" in err) == (2, True)
