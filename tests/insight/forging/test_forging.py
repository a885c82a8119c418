"""``assay forge``: the worked cases, kinds of bugs that others published, what has no proof, carriers, rates, limits and tests."""

import json
from collections import Counter
from fractions import Fraction
from functools import cache

import polars as pl
import pytest
from typer.testing import CliRunner
from worked_cases import worked

import assay
from assay import InputError, UsageError
from assay.cli.main import app
from assay.insight.forging.numbers import number_cases, value_of
from assay.insight.probes import PROBES

FIELDS = ("form", "class", "completion", "expected", "score")


def number(**fields):
    return {"checks": [{"id": "right", "type": "number", "value": {"column": "answer"}, **fields}]}


def check(kind, **fields):
    return {"checks": [{"id": "c", "type": kind, "value": {"column": "answer"}, **fields}]}


def forged(spec, *golds, **options):
    return assay.forge(spec, [{"answer": gold} for gold in golds], **options)


def wrong(found, kind):
    return {case["form"]: case["completion"] for case in found.smallest if case["class"] == kind}


@cache
def worked_and_forged():
    return [(case, assay.forge(case["spec"], case["golds"])) for case in worked("verifiers", "b")]


def test_worked_cases():
    for case, found in worked_and_forged():
        cases = found.cases
        names = ("check", *FIELDS) if case["cases"][0]["score"] is not None else ("check", *FIELDS[:-1])
        made = [{name: entry[name] for name in names} for entry in cases]
        assert made == [{name: entry[name] for name in names} for entry in case["cases"]]
        assert all(entry["form"] in PROBES[entry["class"]] for entry in cases)


def test_worked_cases_of_mathematics():
    pytest.importorskip("math_verify")
    cases = worked("verifiers", "b_math")
    for gold in dict.fromkeys(case["gold"] for case in cases):
        made = forged(check("math"), gold).cases
        expected = [{name: case[name] for name in FIELDS} for case in cases if case["gold"] == gold]
        assert [{name: case[name] for name in FIELDS} for case in made] == expected


def test_worked_rates():
    cases = {
        (case["check"], case["class"], case["form"]): [0, 0, None]
        for spec in worked("verifiers", "b")
        for case in spec["cases"]
    }
    for _, found in worked_and_forged():
        for rate in found.rates:
            sums = cases[rate["check"], rate["class"], rate["form"]]
            sums[:] = [sums[0] + rate["wrong"], sums[1] + rate["of"], rate]
    for name, classes in worked("verifiers", "b_rates").items():
        for kind, forms in classes.items():
            for form, expected in forms.items():
                count, of, rate = cases[name, kind, form]
                assert (count, of) == (expected["wrong"], expected["of"])
                if rate["of"] == of:
                    assert (rate["low"], rate["high"]) == pytest.approx(expected["ci95"], abs=1e-9)


def test_the_registry_has_the_forms_and_near_misses_that_are_made():
    calls = [{"name": "f", "arguments": {"x": 1, "y": 2}}, {"name": "g", "arguments": {}}]
    value = {"n": 1, "s": "text", "b": True, "l": [1, 2]}
    specs = [
        *((number(), gold) for gold in ("1234.5", "1200", "-12")),
        *((check("list_equals", **{"as": how}), ["a", "b"]) for how in ("list", "set")),
        *((check("tool_calls", order=order), calls) for order in ("any", "same")),
        (check("equals", caseSensitive=False), "Oslo"),
        (check("choice"), "B"),
        (check("json_match"), value),
    ]
    made = {(case["class"], case["form"]) for spec, gold in specs for case in forged(spec, gold).cases}
    made |= {(case.kind, case.form) for case in number_cases("0.5", str, is_latex=True)}
    assert made == {(kind, form) for kind in ("form", "near") for form in PROBES[kind]}


def test_published_bugs_are_forged():
    last, first = forged(number(), "1200"), forged(number(at="first"), "1200")
    # an extractor that takes `1{,}200` for another number
    assert wrong(last, "form")["latex_thousands"] == "1{,}200"
    # one that refuses bold or boxed answers
    assert {"bold", "quotes", "full_stop"} <= {*wrong(forged(check("equals"), "Oslo"), "form")}
    assert "bold" in wrong(forged(check("equals", on=[{"after": "Answer:"}]), "B"), "form")
    rollouts = [{"task_id": 1, "completion": "The answer is B", "answer": "B"}]
    unboxed = check("choice", on=[{"regex": r"is (\S+)$"}, {"regex": r"\A\w+\Z"}])
    assert "boxed" in wrong(assay.forge(unboxed, rollouts=rollouts), "form")
    # one that accepts any of several answers given
    assert wrong(last, "near") == {"several_last": "1201 or 1200"}
    assert "negated" in wrong(forged(check("contains"), "Oslo"), "near")
    # one that reads the answer out of the reasoning
    assert wrong(first, "near")["reasoning_only"] == "<think>The answer is 1200.</think>\n1201"
    assert "reasoning_only" not in wrong(forged(number(at="first", on=["afterThink"]), "1200"), "near")


@pytest.mark.parametrize(
    ("on", "completion"),
    [
        ([{"tag": "answer"}], "<answer>7</answer>"),
        (["afterThink", "boxed"], "<think>ok</think>\n\\boxed{7}"),
        ([{"after": "####"}], "#### 7"),
        ([{"fence": "text"}], "```text\n7\n```"),
        ([{"json": {"path": "a[0].b"}}], '{"a": [{"b": "7"}]}'),
        ([{"firstOf": [["boxed"], ["strip"]]}, {"line": "last"}], "\\boxed{7}"),
    ],
)
def test_a_gold_goes_where_the_steps_read_it(on, completion):
    found = forged(number(on=on), "7")
    plain, *_ = found.cases
    assert (plain["completion"], plain["score"]) == (completion, 1.0)
    assert not found.unread


def test_other_steps_take_the_shortest_passing_rollout_with_the_gold_once():
    spec = check("equals", on=[{"regex": r"\[(.*)\]"}])
    texts = ["so [Oslo] it is, I think", "[Oslo]!", "Oslo: [Oslo]", "[Rome]"]
    rollouts = [{"task_id": 1, "completion": text, "answer": "Oslo"} for text in texts]
    plain, *_ = assay.forge(spec, rollouts=rollouts).cases
    assert plain["completion"] == "[Oslo]!"
    with pytest.raises(InputError, match="No check has a gold") as caught:
        forged(spec, "Oslo")
    assert "name rollouts" in caught.value.hint


def test_checks_are_scored_alone_after_the_threshold_and_before_negation():
    spec = number(negate=True, when={"column": "kind", "equals": "n"}, threshold=0.5)
    golds = [{"answer": "7", "kind": "n"}, {"answer": "8", "kind": "other"}]
    found = assay.forge(spec, golds)
    assert {case["row"] for case in found.cases} == {0}
    assert [case["score"] for case in found.cases if case["form"] in ("plain", "off_by_one")] == [1.0, 0.0]


@pytest.mark.parametrize(
    ("spec", "gold", "lacking"),
    [
        (number(absTol=1), "7", {"off_by_one", "last_digit", "several_first", "several_last", "corrected"}),
        (number(), "0", {"sign", "plus", "shift_up"}),
        (check("list_equals", **{"as": "subset"}), ["a", "b"], {"extra_item"}),
        (check("json_match", score="subset"), {"a": 1}, {"extra_key", "string_cut"}),
        (check("json_match", lists="unordered"), [1, 2], {"list_reversed"}),
        (check("json_match", relTol=0.5), {"a": 10}, {"number_changed"}),
        (check("tool_calls", defaults={"n": 1}), [{"name": "f", "arguments": {"n": 1}}], {"missing_argument"}),
        (check("equals", caseSensitive=True), "Oslo", {"upper", "lower", "swapped_case"}),
        (check("contains_any"), ["Oslo", "slo"], {"negated"}),
    ],
)
def test_what_cannot_be_proved_is_not_made(spec, gold, lacking):
    if spec["checks"][0]["type"] == "contains_any":
        spec["checks"][0]["values"] = spec["checks"][0].pop("value")
    found = forged(spec, gold)
    assert found.cases
    assert not {case["form"] for case in found.cases if case["class"] == "near" or case["form"] in lacking} & lacking


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1{,}200.5", "1200.5"),
        (r"1\,200", "1200"),
        ("\u22123,000", "-3000"),
        (r"\(\text{4}\)", "4"),
        ("**$5$**", "5"),
        (r"-\dfrac{7}{2}", "-7/2"),
        (r"1.5 \times 10^{-2}", "0.015"),
        ("12,00", None),
        ("5 or 6", None),
        ("", None),
    ],
)
def test_numbers_are_read_once_their_dress_is_off(text, value):
    assert value_of(text) == (None if value is None else Fraction(value))


def test_golds_of_any_form():
    golds = ["1,200", "$5", 7, 2.5, True, "about 3", None, "-0.05", "9" * 400, "1e3"]
    found = forged(number(), *golds, sample=100)
    assert {case["row"] for case in found.cases} == {0, 1, 2, 3, 7}
    assert "not of the form that cases are made of" in " ".join(found.notes)
    assert not [case for case in found.cases if case["score"] is None]


def test_a_gold_that_is_refused_as_it_stands_is_told_first_and_left_out():
    found = forged(check("equals", on=[{"after": "A:"}]), "Oslo", "one\ntwo")
    assert [item["row"] for item in found.unread] == [1]
    assert {case["row"] for case in found.cases} == {0}
    assert found.document().markdown().index("golds refused") < found.document().markdown().index("forms, which")


def test_first_row_of_each_task_evenly_sampled():
    golds = [{"task_id": f"t{at // 2}", "answer": at} for at in range(10, 30)]
    found = assay.forge(number(), golds, sample=4)
    assert sorted({case["row"] for case in found.cases}) == [0, 4, 10, 14]


def test_probes_of_audit_are_shown_by_check():
    rows = [{"task_id": at, "prompt": f"What is 3 + {at}?", "answer": at} for at in (4, 5)]
    found = assay.forge(number(), rows)
    passes = {item["probe"]: (item["passes"], item["of"]) for item in found.probes}
    assert passes == {"other_gold": (0, 2), "empty": (0, 2), "prompt_echo": (2, 2), "repeat_prompt": (2, 2)}


def test_smallest_cases_become_tests_of_the_spec(tmp_path):
    spec = number(negate=True) | {"id": "v"}
    spec["checks"].append({"id": "list", "type": "list_equals", "value": {"column": "items"}, "as": "f1"})
    found = assay.forge(spec, [{"answer": "12345", "items": ["a"]}, {"answer": "1200", "items": None}])
    tests = assay.load_verifier({**spec, "tests": list(found.tests)}).tests
    assert [test.given["answer"] for test in tests] == ["1200"] * len(tests)
    expected = {test.name: test.expect["checks"]["right"] for test in tests}
    assert expected["right: form latex_thousands, row 1"] == 0.0  # a negated check fails where its gold is
    assert expected["right: near several_last, row 1"] == 1.0
    path, out = tmp_path / "spec.json", tmp_path / "tests.yaml"
    path.write_text(json.dumps(spec), "utf-8")
    (tmp_path / "golds.jsonl").write_text('{"answer": "1200", "items": ["a"]}\n', "utf-8")
    run = CliRunner().invoke(
        app, ["forge", str(path), "--golds", str(tmp_path / "golds.jsonl"), "--tests-out", str(out)]
    )
    assert run.exit_code == 0
    assert "tests:" in out.read_text("utf-8")
    assert "latex_thousands" in out.read_text("utf-8")


def test_limits_and_options(tmp_path):
    (tmp_path / "s.json").write_text(json.dumps(number()), "utf-8")
    (tmp_path / "g.jsonl").write_text('{"answer": "1200"}\n', "utf-8")
    args = ["forge", str(tmp_path / "s.json"), "--golds", str(tmp_path / "g.jsonl")]
    skip = ["--skip", "latex_thousands,thin_thousands,narrow_thousands,full_width,times"]
    assert CliRunner().invoke(app, [*args, "--max-refused", "0"]).exit_code == 3
    assert CliRunner().invoke(app, [*args, "--max-refused", "0", *skip]).exit_code == 0
    failed = CliRunner().invoke(app, [*args, "--max-accepted", "5%", "--json"])
    assert failed.exit_code == 3
    assert json.loads(failed.stdout)["limits"]["exceeded"] == ["--max-accepted 5%: 1 of 11 near misses are accepted"]
    for wrong_args in (["--skip", "blod"], ["--tests-out", "t.txt"], ["--rollouts", "x.jsonl"]):
        assert CliRunner().invoke(app, [*args, *wrong_args]).exit_code == 2
    with pytest.raises(UsageError, match="takes golds or rollouts"):
        assay.forge(number())
    with pytest.raises(UsageError, match=r"no such form\.\n\nDid you mean `bold`\?"):
        forged(number(), "7", skip="blod")


def test_nothing_of_the_data_reaches_the_terminal_as_it_is(tmp_path):
    found = forged(check("equals"), "\x1b[31mred")
    assert "\x1b" not in found.document().markdown() + found.document().html()
    assert Counter(case["class"] for case in found.cases)["form"] > 1


def test_frames_and_lists_in_json_text():
    golds = pl.DataFrame({"answer": ['["red", "green"]', None]})
    found = assay.forge(check("list_equals"), golds)
    assert not found.unread
    assert found.cases[0]["completion"] == "red, green"
    assert "list_equals splits it" in " ".join(found.notes)


@pytest.mark.parametrize(
    ("spec", "golds", "message"),
    [
        (number(), [], "The golds have no row"),
        (number(), [{"answer": None}], "No check has a gold"),
        (number(), [{"anwser": 1}], "no column `answer`, which right reads.\n\nDid you mean `anwser`"),
        ({"checks": [{"type": "min_length", "value": 3}]}, [{"answer": 1}], "golds come from rows"),
        ({"checks": [{"type": "equals", "value": "yes"}]}, [{"answer": 1}], "golds come from rows"),
    ],
)
def test_says_why_there_is_nothing_to_forge(spec, golds, message):
    with pytest.raises(InputError, match=message):
        assay.forge(spec, golds)
