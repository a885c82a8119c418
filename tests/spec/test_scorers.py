"""What stands in ``checks:`` besides check types: functions, verifier classes, the row's own verifier, other specs."""

import json
import logging
import pickle
import warnings
from pathlib import Path

import polars as pl
import pytest
import scorer_specs
import spec_rewards

import assay
from assay.errors import ColumnsError, SpecError
from assay.fns import register_fn
from assay.functions import registry
from assay.rewards import declared
from assay.testing import assert_plan_conforms

REWARD = f"{spec_rewards.HERE}:{{}}".format


@pytest.fixture(autouse=True)
def _imported(monkeypatch):
    monkeypatch.setattr(registry, "_REGISTRY", dict(registry._REGISTRY))
    monkeypatch.setattr(declared, "_ALLOWED", {spec_rewards.HERE})
    spec_rewards.register_all()


def scored(rows, *checks, **fields):
    rows = [{"completion": row} if isinstance(row, str) else row for row in rows]
    verifier = assay.load_verifier({"id": "v", "checks": list(checks), **fields})
    assert_plan_conforms([verifier], rows)
    return assay.score(rows, verifier)


def column(frame, name):
    return frame[f"check/v/{name}"].to_list()


def problems(*checks):
    with pytest.raises(SpecError) as caught:
        assay.load_verifier({"checks": list(checks)})
    return "\n".join(caught.value.problems)


@pytest.mark.parametrize("seed", [2, 5, 17, 40])
def test_specs_of_functions_classes_and_specs_give_the_same_by_columns_and_by_rows(seed, tmp_path, caplog):
    caplog.set_level(logging.CRITICAL, "assay.rewards")
    path, rng = scorer_specs.write_spec(seed, tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", assay.AssayWarning)
        assert assert_plan_conforms([assay.load_verifier(path)], scorer_specs.draw_rows(rng, 14)) > 0


def _travelled(plan):
    return pickle.loads(pickle.dumps(plan))  # noqa: S301  (our own)


def test_a_plan_with_all_of_them_pickles(tmp_path):
    (tmp_path / "other.json").write_text(json.dumps({"checks": [{"type": "starts", "expected": "a"}]}))
    path = tmp_path / "v.json"
    listed = [{"type": "spec", "path": "other.json"}, {"kind": "format_only"}, {"type": REWARD("brevity")}]
    path.write_text(json.dumps({"checks": [*listed, {"type": "ends", "expected": {"column": "answer"}}]}))
    rows = pl.DataFrame({"completion": ["abc", "cba"], "answer": ["c", "c"]})
    plan = assay.compile(path, rows)
    assert _travelled(plan).score(rows).equals(plan.score(rows))


@pytest.mark.parametrize(
    ("expected", "scores"),
    [
        ("a", [1.0, 0.0, 0.0]),
        ({"column": "answer"}, [0.0, 1.0, 1.0]),
        ({"template": "{answer}b"}, [0.0, 1.0, 1.0]),
        (["a", {"column": "answer"}], [1.0, 1.0, 1.0]),
        (["a", "c"], [1.0, 0.0, 1.0]),
    ],
)
@pytest.mark.parametrize("name", ["starts", "ends"])
def test_a_function_compares_with_a_literal_a_column_a_template_or_the_best_of_a_list(name, expected, scores):
    texts = ["ab", "bb", "cb"] if name == "starts" else ["ba", "bb", "bc"]
    if name == "ends" and isinstance(expected, dict) and "template" in expected:
        expected = {"template": "b{answer}"}
    rows = [{"completion": text, "answer": answer} for text, answer in zip(texts, ("x", "b", "c"), strict=True)]
    assert column(scored(rows, {"type": name, "expected": expected}), name) == scores


def test_the_default_gold_is_that_of_the_row_and_a_row_without_one_is_unscored():
    rows = [{"completion": "a", "target": "a"}, {"completion": "a", "target": None}]
    frame = scored(rows, {"type": "function", "name": "exact_match"})
    assert frame["reward"].to_list() == [1.0, None]
    assert frame["error"].to_list() == [None, "gold is missing: expected"]
    passed = scored(rows, {"type": "function", "name": "exact_match", "missingGold": "pass"})
    assert passed["reward"].to_list() == [1.0, 1.0]


def test_a_function_of_yours_is_called_without_a_gold_unless_the_spec_names_one():
    rows = [{"completion": "None", "answer": None}]
    assert column(scored(rows, {"type": "starts"}), "starts") == [1.0]
    assert (
        scored(rows, {"type": "starts", "expected": {"column": "answer"}})["error"].item() == "gold is missing: answer"
    )


def test_a_rows_list_is_a_list_of_golds_for_built_in_functions_and_as_it_is_for_yours():
    rows = [{"completion": "['a', 'b']", "golds": ["a", "b"]}, {"completion": "b", "golds": ["a", "b"]}]
    checks = [{"type": "starts"}, {"type": "function", "name": "exact_match"}]
    frame = scored(rows, *({**check, "expected": {"column": "golds"}} for check in checks))
    assert column(frame, "starts") == [1.0, 0.0]
    assert column(frame, "exact_match") == [0.0, 1.0]


def test_params_may_be_references_and_a_row_without_a_value_is_unscored():
    rows = [{"completion": "x", "partial": 0.25}, {"completion": "x", "partial": None}]
    check = {"type": "starts", "expected": "a", "params": {"otherwise": {"column": "partial"}}}
    frame = scored(rows, check)
    assert column(frame, "starts") == [0.25, None]
    assert frame["error"].to_list() == [None, "gold is missing: partial"]


def test_a_native_type_wins_over_a_function_of_that_name():
    frame = scored(
        ["ABC"], {"type": "contains", "value": "b"}, {"type": "function", "name": "contains", "expected": "b"}
    )
    assert column(frame, "contains") == [1.0]
    assert column(frame, "contains-2") == [0.0]


def test_reasons_errors_and_what_a_function_reads():
    check = {"type": "fussy", "on": [{"after": "A:"}]}
    frame = scored(["A: aa", "A: n", "none", "A: l"], check, range=None, combine="sum")
    assert column(frame, "fussy") == [1.0, 0.0, 0.0, 2.5]
    assert frame["feedback"].to_list() == [
        "",
        "fussy: ValueError: the reward is not a finite number",
        "fussy: found nothing: after",
        "",
    ]
    raised = scored([""], {"type": "fussy"})
    assert raised["error"].item() == "fussy: ValueError: nothing to read at all"


def test_a_score_above_1_is_cut_to_the_range_of_the_verifier():
    assert scored(["loud"], {"type": "fussy"})["reward"].item() == 1.0
    assert scored(["loud"], {"type": "fussy"}, range=[0, 2])["reward"].item() == 2.0


def test_a_path_that_no_row_has_is_refused_with_a_guess():
    with pytest.raises(ColumnsError, match="anwser") as caught:
        assay.score(
            [{"completion": "a", "answer": "b"}], {"checks": [{"type": "starts", "expected": {"column": "anwser"}}]}
        )
    assert "answer" in str(caught.value)


def test_a_function_without_a_gold_in_the_rollouts_is_refused():
    with pytest.raises(ColumnsError, match=r"expected: \{column: gold\}"):
        assay.score([{"completion": "a", "gold": "b"}], {"checks": [{"type": "function", "name": "exact_match"}]})


def test_a_function_that_cannot_be_called_is_refused_with_its_place():
    for check, message in [
        (
            {"type": "function", "name": "startz"},
            '$.checks[0].name: no verifier function is called "startz". Did you mean `starts`?',
        ),
        ({"type": "function"}, "$.checks[0]: `function` needs `name`"),
        ({"type": "starts", "expcted": 1}, "$.checks[0].expcted: unknown field `expcted`. Did you mean `expected`?"),
        ({"type": "starts", "params": [1]}, "$.checks[0].params: expected an object, got a list"),
        ({"type": "starts", "expected": []}, "$.checks[0].expected: the list has no expected value"),
        ({"type": "starts", "expected": "a", "goldOn": ["lower"]}, "$.checks[0].goldOn"),
        ({"type": "starts", "expected": "a", "on": ["numbers"]}, "`numbers` gives a list"),
    ]:
        assert message in problems(check)


def test_a_typo_of_a_functions_name_is_an_unknown_type_with_a_guess():
    verifier = assay.load_verifier({"checks": [{"type": "startz"}, {"type": "min_length", "value": 1}]})
    assert verifier.warnings == ('verifier/startz: skipped, unknown check type "startz". Did you mean `starts`?',)


def test_the_time_limit_of_functions_holds(clock):
    @register_fn("sleepy")
    def sleepy(model_output, expected, params):
        if model_output == "z":
            clock.hang()
        return 1.0

    rows = [{"completion": "a"}, {"completion": "z"}]
    frame = assay.score(rows, {"checks": [{"type": "sleepy"}]}, function_timeout=0.2)
    assert frame["reward"].to_list() == [1.0, 0.0]
    assert "0.2 s" in frame["error"][1]


def test_a_reward_function_takes_columns_by_name_and_says_why():
    rows = [{"completion": "abcdefg", "level": 1}, {"completion": "abc", "level": 2}]
    frame = scored(rows, {"type": REWARD("brevity")}, range=[0, 3])
    assert column(frame, "brevity") == [0.5, 2.0]
    assert frame["feedback"].to_list() == ["brevity: 7 characters", ""]


def test_a_reward_function_reads_what_on_makes_of_the_completion():
    rows = [{"completion": [{"role": "assistant", "content": "long text\nA: ab"}], "level": 1}]
    frame = scored(
        rows, {"type": REWARD("brevity")}, {"type": REWARD("brevity"), "on": [{"after": "A:"}], "id": "short"}
    )
    assert column(frame, "brevity") == [4 / 16]
    assert column(frame, "short") == [4 / 3]


def test_an_exception_is_an_error_and_a_mapping_has_a_reason(caplog):
    caplog.set_level(logging.CRITICAL, "assay.rewards")
    rows = [{"completion": "abc", "answer": answer} for answer in ("b", "z", None)]
    with pytest.warns(assay.AssayWarning, match="`length`, which is not a declared metric"):
        frame = scored(rows, {"type": REWARD("picky"), "negate": True}, {"type": REWARD("picky"), "id": "plain"})
    assert column(frame, "picky") == [0.0, 1.0, 0.0]
    assert frame["feedback"].to_list() == [
        "picky: must not hold: gets 1 from spec_rewards:picky",
        "plain: the answer is not there",
        "picky: ValueError: no answer\nplain: ValueError: no answer",
    ]


def test_a_check_that_does_not_apply_leaves_the_weights_and_a_row_without_any_is_unscored():
    evens = {"type": REWARD("evens"), "weight": 3}
    frame = scored(["ab", "abc"], evens, {"type": "contains", "value": "a"})
    assert frame["reward"].to_list() == [1.0, 1.0]
    assert column(frame, "evens") == [1.0, None]
    alone = scored(["ab", "abc"], {"type": "all_of", "checks": [evens]})
    assert alone["reward"].to_list() == [1.0, None]
    assert alone["error"].to_list() == [None, "no check applies to this row"]


def test_a_missing_argument_is_refused_before_a_row_is_read():
    with pytest.raises(ColumnsError, match="answer: read by spec_rewards:picky"):
        assay.score([{"completion": "a"}], {"checks": [{"type": REWARD("picky")}]})


def test_a_spec_names_only_functions_that_the_user_has_imported_for_it():
    for name, message in [
        (REWARD("brevty"), "spec_rewards has no reward function `brevty`. Did you mean `brevity`?"),
        (REWARD("over_all"), "sees all rollouts of an example, which only a rubric gives it"),
        (REWARD("NUMBER"), "is int, not a function"),
        (REWARD("Grader"), "is a class, not a function"),
        (REWARD("register"), "only imports `register`"),
        (
            "os:system",
            "a spec imports nothing, and the module os was not imported for it. If it is yours, name it: --import os",
        ),
        ("no_such_module:f", "--import no_such_module"),
    ]:
        assert message in problems({"type": name})


def test_a_declared_function_of_an_imported_module_needs_no_option(monkeypatch):
    monkeypatch.setattr(declared, "_ALLOWED", set())
    assert assay.load_verifier({"checks": [{"type": REWARD("evens")}]}).checks[0].id == "evens"
    assert "--import spec_rewards" in problems({"type": REWARD("brevity")})


def test_callable_objects_and_asynchronous_functions():
    frame = scored(["a", "", "bb"], {"type": REWARD("grader")}, {"type": REWARD("slow")})
    assert frame["reward"].to_list() == [1.0, 0.0, 0.5]


def test_a_verifier_class_is_named_by_its_kind_and_has_a_column_of_its_own():
    halves = {"kind": "format_only", "params": {"has_think_reward": 0.25}}
    frame = scored(["<think>a</think><answer>b</answer>", "c"], halves, {"kind": "format_only", "on": ["afterThink"]})
    assert column(frame, "format_only") == [0.75, 0.0]
    assert frame["info/v/format_only"][1] == '{"has_think":false,"has_answer":false}'
    assert frame["info/v/format_only-2"][0] == '{"has_think":false,"has_answer":true}'


def test_a_class_that_cannot_be_used_is_refused_with_its_place():
    for check, message in [
        ({"kind": "format_onli"}, "$.checks[0].kind: "),
        ({"kind": "format_only", "params": {"has_think": 1}}, "$.checks[0].params.has_think: unknown field"),
        ({"kind": "in_process"}, "`type: row_verifier` runs the verifiers of the rows"),
        ({"kind": "native"}, "a check has a `type`; `kind` names a verifier class"),
        ({"kind": "format_only", "type": "contains", "value": "a"}, "unknown field `kind`"),
    ]:
        assert message in problems(check)


def test_the_rows_own_verifier_is_a_check():
    rows = [
        {"completion": "a", "verifier": {"fn_name": "exact_match", "expected": "a"}},
        {"completion": "b", "verifier": {"fn_name": "starts", "expected": "a"}},
        {"completion": "b", "verifier": {"fn_name": "exact_match", "expected": None}},
    ]
    own = {"type": "row_verifier"}
    frame = scored(rows, {"type": "any_of", "checks": [own, {"type": "contains", "value": "b"}]})
    assert frame["reward"].to_list() == [1.0, 1.0, None]
    assert frame["verifier_fn"].to_list() == ["exact_match", "starts", None]
    assert frame["error"][2] == "expected is missing"
    lenient = scored(rows, own | {"missingGold": "fail"}, own | {"on": ["upper"], "id": "upper", "missingGold": "pass"})
    assert column(lenient, "row_verifier") == [1.0, 0.0, 0.0]
    assert column(lenient, "upper") == [0.0, 0.0, 1.0]
    assert lenient["verifier_fn"].to_list() == ["exact_match", "starts", None]


def test_the_rows_verifier_has_a_default_and_refuses_rows_as_ever():
    rows = [{"completion": "a", "expected": "a"}]
    assert scored(rows, {"type": "row_verifier", "verifierName": "exact_match"})["reward"].item() == 1.0
    assert "no verifier function is called" in problems({"type": "row_verifier", "verifierName": "exact_mtch"})
    unknown = [{"completion": "a", "expected": "a", "fn_name": "nobody"}]
    with pytest.raises(assay.InputError, match='unknown verifier function "nobody"'):
        assay.score(unknown, {"checks": [{"type": "row_verifier"}]})
    with pytest.raises(ColumnsError, match="carry no verifier"):
        assay.score([{"completion": "a"}], {"checks": [{"type": "row_verifier"}]})


PARTS = {
    "combine": "sum",
    "range": [-1, 2],
    "checks": [
        {"type": "contains", "value": "a", "weight": 0.7},
        {"type": "contains", "value": "b", "weight": 1.1, "id": "second"},
        {"type": "max_length", "value": 3, "penalty": 0.3},
        {"type": "any_of", "id": "either", "weight": 0, "checks": [{"type": "contains", "value": "c"}]},
    ],
}
TEXTS = ["a", "ab", "abcd", "zzzz", "c"]


def write(folder, **specs):
    for name, spec in specs.items():
        (folder / f"{name}.json").write_text(json.dumps(spec))
    return folder / "v.json"


def include(name, **fields):
    return {"type": "spec", "path": f"{name}.json"} | fields


def test_a_spec_in_a_spec_scores_as_its_verifier_alone(tmp_path):
    for fields in [{}, {"combine": "mean"}, {"range": [0, 1]}, {"combine": "product", "range": None}]:
        other = PARTS | fields
        path = write(tmp_path, other=other, v={"range": None, "combine": "sum", "checks": [include("other")]})
        rows = [{"completion": text} for text in TEXTS]
        verifier = assay.load_verifier(path)
        assert_plan_conforms([verifier], rows)
        frame, alone = assay.score(rows, verifier), assay.score(rows, tmp_path / "other.json")
        assert frame["check/v/other"].to_list() == alone["score/other"].to_list() == frame["reward"].to_list()
        assert frame["check/v/other.either.contains"].to_list() == alone["check/other/either.contains"].to_list()
        assert frame["feedback"][0].splitlines() == [f"other.{line}" for line in alone["feedback"][0].splitlines()]


def test_the_canonical_form_has_the_content_of_the_other_spec_and_not_its_path(tmp_path):
    one = assay.load_verifier(write(tmp_path, other=PARTS, v={"checks": [include("other", id="x")]}))
    two = assay.load_verifier(write(tmp_path, moved=PARTS, v={"checks": [include("moved", id="x")]}))
    assert one.sha256 == two.sha256
    assert "moved" not in two.canonical
    changed = PARTS | {"checks": [*PARTS["checks"][:3]]}
    assert (
        assay.load_verifier(write(tmp_path, moved=changed, v={"checks": [include("moved", id="x")]})).sha256
        != one.sha256
    )
    limits = PARTS | {"range": [0, 2]}
    assert (
        assay.load_verifier(write(tmp_path, moved=limits, v={"checks": [include("moved", id="x")]})).sha256
        != one.sha256
    )


def test_specs_in_groups_with_conditions_gates_and_thresholds(tmp_path):
    (tmp_path / "deep").mkdir()
    write(tmp_path / "deep", leaf={"checks": [{"type": "contains", "value": "c"}]})
    middle = {"checks": [include("deep/leaf"), {"type": "contains", "value": "b", "weight": 2}]}
    when = {"check": {"type": "contains", "value": "a"}}
    checks = [
        {"type": "all_of", "when": when, "checks": [include("middle"), include("deep/leaf", negate=True)]},
        include("middle", id="gated", gate=True, threshold=0.5),
        include("other", id="fine", penalty=0.25, threshold=2),
    ]
    path = write(tmp_path, middle=middle, other=PARTS, v={"checks": checks})
    assert_plan_conforms([assay.load_verifier(path)], [{"completion": text} for text in (*TEXTS, "abc", "b")])
    frame = assay.score([{"completion": "b"}, {"completion": "ab"}], path)
    assert frame["check/v/all_of"].to_list() == [None, 0.0]
    assert frame["check/v/gated"].to_list() == [1.0, 1.0]
    assert "all_of.middle.leaf.contains: does not contain" in frame["feedback"][1]


def test_a_sum_beyond_all_numbers_is_an_error_and_no_reward(tmp_path):
    penalties = [{"type": "contains", "value": value, "penalty": 1e308} for value in "ab"]
    path = write(tmp_path, huge={"range": None, "checks": penalties}, v={"range": None, "checks": [include("huge")]})
    rows = [{"completion": "zz"}, {"completion": "a"}]
    assert_plan_conforms([assay.load_verifier(path)], rows)
    frame = assay.score(rows, path)
    assert frame["check/v/huge"].to_list() == [0.0, -1e308]
    assert frame["error"].to_list() == ["huge: the weighted sum is not a finite number", None]


def test_a_verifier_class_in_a_file_of_its_own(tmp_path):
    path = write(tmp_path, form={"kind": "format_only"}, v={"checks": [include("form")]})
    frame = assay.score([{"completion": "<think>a</think>"}], path)
    assert frame["check/v/form.format_only"].item() == frame["reward"].item() == 0.5


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("../x.json", "expected a path beside this file or below it, without `..`"),
        ("deep/../../x.json", "expected a path beside this file or below it, without `..`"),
        ("..\\x.json", "expected a path beside this file or below it, without `..`"),
        ("/etc/x.json", "expected a path beside this file or below it, without `..`"),
        ("C:\\x.json", "expected a path beside this file or below it, without `..`"),
        ("x\0.json", "expected a path beside this file or below it, without `..`"),
        ("none.json", "none.json: no such file"),
        ("v.json", "the specs include each other: v.json → v.json"),
        ("loop.json", "the specs include each other: v.json → loop.json → v.json"),
        ("link.json", "it leads out of this file's folder, through a link"),
        ("linked/secret.json", "it leads out of this file's folder, through a link"),
        ("bad.json", "bad.json: $.checks[0].valu"),
        ("", "`spec` needs `path`, the file of the other spec"),
    ],
)
def test_a_spec_that_is_elsewhere_or_includes_itself_is_refused(path, message, tmp_path):
    folder, outside = tmp_path / "specs", tmp_path / "outside"
    folder.mkdir()
    outside.mkdir()
    write(outside, secret={"checks": [{"type": "json_valid"}]})
    (folder / "link.json").symlink_to(outside / "secret.json")
    (folder / "linked").symlink_to(outside)
    bad = {"checks": [{"type": "contains", "valu": "a"}]}
    write(folder, loop={"checks": [include("v")]}, bad=bad, v={"checks": [{"type": "spec", "path": path}]})
    with pytest.raises(SpecError) as caught:
        assay.load_verifier(folder / "v.json")
    assert message in caught.value.problems[0].replace("\\x00", "\0")


def test_a_mapping_has_no_folder():
    assert "a spec that is no file has no folder" in problems({"type": "spec", "path": "x.json"})
    assert "`on` belongs to the checks of the other spec" in problems(include("x", on=["lower"]))


def test_specs_are_nested_8_deep_and_64_in_all(tmp_path):
    leaf = {"checks": [{"type": "json_valid"}]}
    chain = {f"s{at}": {"checks": [include(f"s{at + 1}")]} for at in range(8)} | {"s8": leaf}
    write(tmp_path, **chain)
    assert assay.load_verifier(tmp_path / "s0.json").checks[0].depth == 8
    write(tmp_path, s8={"checks": [include("s9")]}, s9=leaf)
    with pytest.raises(SpecError, match="nested more than 8 deep"):
        assay.load_verifier(tmp_path / "s0.json")
    write(tmp_path, many={"checks": [include("s9", id=str(at)) for at in range(8)]})
    write(tmp_path, v={"checks": [include("many", id=str(at)) for at in range(8)]})
    with pytest.raises(SpecError, match="more than 64 files"):
        assay.load_verifier(tmp_path / "v.json")


def test_ids_of_both_specs_do_not_clash_unnoticed(tmp_path):
    checks = [include("other"), {"type": "json_valid", "id": "other.contains"}]
    path = write(tmp_path, other={"checks": [{"type": "contains", "value": "a"}]}, v={"checks": checks})
    with pytest.raises(SpecError, match=r'the id "other\.contains" is already used'):
        assay.load_verifier(path)


def test_the_schema_of_specs_accepts_all_of_them():
    import jsonschema

    validator = jsonschema.Draft7Validator(assay.json_schema())
    fine = [
        {"type": "starts", "expected": {"column": "answer"}, "params": {"otherwise": 1}},
        {"type": "function", "name": "contains", "params": {"ignore_case": True}, "missingGold": "fail"},
        {"type": "my_rewards:brevity", "threshold": 0.5},
        {"kind": "format_only", "params": {"has_think_reward": 0.25}, "on": ["afterThink"]},
        {"type": "row_verifier"},
        {"type": "spec", "path": "other.yaml", "weight": 2},
    ]
    assert not [*validator.iter_errors({"checks": fine})]
    for wrong in (
        {"type": "function", "expected": 1},
        {"type": "spec"},
        {"kind": "format_only", "params": {"has_thnk": 1}},
        {"type": "row_verifier", "verifiername": "x"},
        {"kind": "format_only", "valu": 1},
        {"weight": 1},
    ):
        assert [*validator.iter_errors({"checks": [wrong]})], wrong


def test_a_file_is_read_relative_to_the_file_it_stands_in(tmp_path, monkeypatch):
    write(tmp_path, other=PARTS, v={"checks": [include("other")]})
    monkeypatch.chdir("/")
    assert assay.load_verifier(Path(tmp_path / "v.json")).checks[0].id == "other"
