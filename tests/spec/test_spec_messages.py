"""Worked spec errors: the full message of what users get wrong, to be judged as its reader would."""

import json
import math

import pytest

from assay import SpecError, load_verifier
from assay.checks import registry

VALID = {"type": "json_valid"}
CHECKS = "checks:\n- type: json_valid\n"


@pytest.fixture
def message(tmp_path, monkeypatch):
    """The message of a spec that is refused, read from a file called ``spec``."""
    monkeypatch.chdir(tmp_path)

    def refused(content, suffix, **options):
        (tmp_path / f"spec{suffix}").write_bytes(content.encode())
        with pytest.raises(SpecError) as caught:
            load_verifier(f"spec{suffix}", **options)
        return str(caught.value)

    return refused


REFUSED = [  # (text, ending, full message)
    ("passTreshold: 0.5\n" + CHECKS, ".yaml", "spec.yaml: 1 problem\n  $.passTreshold (line 1): unknown field `passTreshold`. Did you mean `passThreshold`?"),
    ("title: x\n" + CHECKS, ".yaml", "spec.yaml: 1 problem\n  $.title (line 1): unknown field `title`. Known: id, name, description, version, kind, passThreshold, combine, range, checks, tests."),
    (CHECKS + "  weigth: 2\n", ".yaml", "spec.yaml: 1 problem\n  $.checks[0].weigth (line 3): unknown field `weigth`. Did you mean `weight`?"),
    (CHECKS + "  <<: {weight: 2}\n", ".yaml", "spec.yaml: 1 problem\n  $.checks[0]['<<'] (line 3): unknown field `<<`. Known: id, type, name, description, weight, required, negate, params, on, extract, goldOn, threshold, notFound, missingGold, when, gate, penalty."),
    ('{"checks": [\n  {"type": "contains", "params": {"valu": "refund"}}\n]}', ".json", "spec.json: 1 problem\n  $.checks[0].params.valu (line 2): unknown field `valu`. Did you mean `value`?"),
    ('{"checks": [\n  {"type": "contains",\n   "vaule": "refund"}\n]}', ".json", "spec.json: 1 problem\n  $.checks[0].vaule (line 3): unknown field `vaule`. Did you mean `value`?"),
    ('[[checks]]\ntype = "contains"\ncaseSensative = true\nvalue = "x"\n', ".toml", "spec.toml: 1 problem\n  $.checks[0].caseSensative: unknown field `caseSensative`. Did you mean `caseSensitive`?"),
    (CHECKS + "  weight: -1\n", ".yaml", "spec.yaml: 1 problem\n  $.checks[0].weight (line 3): expected a finite number, at least 0, got -1.0"),
    (CHECKS + "  weight: heavy\n", ".yaml", "spec.yaml: 1 problem\n  $.checks[0].weight (line 3): expected a number, got a string ('heavy')"),
    ('{"checks": [{"type": "json_valid", "weight": true}]}', ".json", "spec.json: 1 problem\n  $.checks[0].weight (line 1): expected a number, got a boolean (True)"),
    ('{"checks": [{"type": "json_valid", "weight": NaN}]}', ".json", "spec.json: 1 problem\n  $.checks[0].weight (line 1): expected a finite number, at least 0, got nan"),
    ('[[checks]]\ntype = "json_valid"\nweight = inf\n', ".toml", "spec.toml: 1 problem\n  $.checks[0].weight: expected a finite number, at least 0, got inf"),
    ('{"checks": [{"type": "json_valid", "weight": 0}, {"type": "nobody_knows"}]}', ".json", "spec.json: 1 problem\n  $.checks (line 1): the weights of the checks that run add up to 0 or to infinity"),
    ("checks:\n- {type: json_valid, weight: 1e308}\n- {type: json_valid, weight: 1e308}\n", ".yaml", "spec.yaml: 1 problem\n  $.checks (line 1): the weights of the checks that run add up to 0 or to infinity"),
    ("passThreshold: 1.5\n" + CHECKS, ".yaml", "spec.yaml: 1 problem\n  $.passThreshold (line 1): 1.5 is above 1, the highest score: nothing could pass"),
    ("pass_threshold: -0.5\n" + CHECKS, ".yaml", "spec.yaml: 1 problem\n  $.pass_threshold (line 1): expected a finite number, at least 0, got -0.5"),
    ('{"passThreshold": 1, "checks": [{"type": "json_valid"}],\n "pass_threshold": 1}', ".json", "spec.json: 1 problem\n  $.pass_threshold (line 2): `passThreshold` is given twice, in two spellings"),
    ("checks:\n- type: contains\n  value: a\n  text: b\n", ".yaml", "spec.yaml: 1 problem\n  $.checks[0].text (line 4): `value` is given twice, in two spellings"),
    ("name: 7\n" + CHECKS, ".yaml", "spec.yaml: 1 problem\n  $.name (line 1): expected a string, got a number (7). Write it in quotes: a bare value is read as a number or true/false."),
    ('id = "a/b"\n[[checks]]\ntype = "json_valid"\n', ".toml", "spec.toml: 1 problem\n  $.id: 'a/b' cannot be an id: use printable characters, none of them /"),
    ('id: "a\\nb"\n' + CHECKS, ".yaml", "spec.yaml: 1 problem\n  $.id (line 1): 'a\\nb' cannot be an id: use printable characters, none of them /"),
    ("checks:\n- {type: json_valid, id: same}\n- {type: json_valid}\n- {type: json_valid, id: same}\n", ".yaml", 'spec.yaml: 1 problem\n  $.checks[2].id (line 4): the id "same" is already used by $.checks[0]'),
    (CHECKS + "  required: yes\n", ".yaml", "spec.yaml: 1 problem\n  $.checks[0].required (line 3): expected true or false, got a string ('yes')."),
    ("checks:\n- value: refund\n", ".yaml", "spec.yaml: 1 problem\n  $.checks[0] (line 2): every check needs a `type`"),
    ("checks:\n- json_valid\n", ".yaml", "spec.yaml: 1 problem\n  $.checks[0] (line 2): expected an object, got a string ('json_valid'): write `- {type: json_valid}`"),
    ("kind: in_process\n" + CHECKS, ".yaml", "spec.yaml: 2 problems\n  $.checks (line 2): unknown field `checks`. Known: id, name, description, version, kind, passThreshold, params, tests.\n  $.kind (line 1): rows carry verifiers of kind in_process: score them without a spec, or with `verifier_name`"),
    ("[1]", ".json", "spec.json: 1 problem\n  $ (line 1): expected an object, got a list"),
    ("checks: []\n", ".yaml", "spec.yaml: 1 problem\n  $.checks (line 1): a verifier needs `checks`, a list of at least one"),
]  # fmt: skip


def test_a_refusal_says_what_and_where(message):
    for text, suffix, said in REFUSED:
        assert message(text, suffix) == said


PLACES = [  # (check in YAML, the problem): typos in each place that the pipeline around a check has
    ("on: [boxd]", "on[0] (line 2): unknown step `boxd`. Did you mean `boxed`?"),
    ("on: [strip, {after: 'A:', too: end}]", "on[1].too (line 2): unknown option `too` of `after`. Did you mean `to`?"),
    ("on: {colum: x}", "on.colum (line 2): unknown field `colum`. Did you mean `column`?"),
    ("on: [{column: x, lst: true}]", "on[0].lst (line 2): unknown field `lst`. Did you mean `list`?"),
    ("on: [strip, {column: x}]", "on[1] (line 2): `column` is a source: a source stands first, before the steps"),
    ("on: [strip, prompt]", "on[1] (line 2): `prompt` is a source: a source stands first, before the steps"),
    ("extract: [{regex: '('}]", "extract[0].regex (line 2): PatternError: missing ), unterminated subpattern at position 0"),
    ("gold_on: [boxd]", "gold_on[0] (line 2): unknown step `boxd`. Did you mean `boxed`?"),
    ("goldOn: [{column: x}]", "goldOn[0] (line 2): `column` is a source: `goldOn` has steps only"),
    ("not_found: keep", 'not_found (line 2): unknown value "keep". Known: fail, pass.'),
    ("threshold: high", "threshold (line 2): expected a number, got a string ('high')"),
    ("penalty: 1, gate: true", "gate (line 2): a check has one of `weight`, `gate` and `penalty`, and this has penalty and gate"),
    ("when: level", "when (line 2): expected an object, got a string ('level')"),
    ("when: {column: a, equal: 3}", "when.equal (line 2): unknown field `equal`. Did you mean `equals`?"),
    ("when: {colum: a, equals: 3}", "when.colum (line 2): unknown field `colum`. Did you mean `column`?"),
    ("when: {equals: 3}", "when (line 2): expected {column: path} with one of equals, in, exists, matches, or {check: …}"),
    ("when: {column: a, equals: 3, in: [3]}", "when.in (line 2): a condition has one test, and this has equals and in"),
    ("when: {column: a, in: 3}", "when.in (line 2): expected a list, got a number (3)"),
    ("when: {column: 'a['}", 'when.column (line 2): `a[` is not a valid path, from `[` on; write a.b, a[0], a[-1], a[] or a["b.c"]'),
    ("when: {check: {type: jsn_valid}}", 'when.check.type (line 2): unknown check type "jsn_valid". Did you mean `json_valid`?'),
]  # fmt: skip


GOLDS = [  # (params in YAML, the problem)
    ("contains, text: {colum: x}", "text.colum (line 2): unknown field `colum`. Did you mean `column`?"),
    ("contains, value: [{colum: x}, a]", "value[0].colum (line 2): unknown field `colum`. Did you mean `column`?"),
    ("contains, value: {column: x, default: 3}", "value.default (line 2): unknown field `default`. Known: column, list, template."),
    ("contains, value: {list: true}", "value (line 2): a value from the row is {column: path}, with `list: true` for JSON text of a list, or {template: text}"),
    ("contains, value: [{a: 1}]", "value[0] (line 2): expected a text or {column: path}, got an object"),
    ("contains, value: {column: 5}", "value.column (line 2): `column` is the path of a value, a string, not 5"),
    ("contains, value: {template: '{a'}", "value.template (line 2): `{a` has a `{` without its `}`: a path stands in braces, as in {answer}; write `{{` for the character"),
    ("contains, value: {template: '{a[]}'}", "value.template (line 2): `a[]` has [], which stands for many rows; name one value"),
    ("contains_any, values: [{colum: b}]", "values[0].colum (line 2): unknown field `colum`. Did you mean `column`?"),
    ("list_equals, value: [[a, {column: b}], [c]]", "value[0][1] (line 2): a reference is a value, or an item of its list, not of a list in that list"),
    ("json_keys, keys: [{column: b}]", "keys[0] (line 2): a reference stands for the whole list here: {column: path}"),
    ("contains, params: {value: {colum: x}}", "params.value.colum (line 2): unknown field `colum`. Did you mean `column`?"),
]  # fmt: skip


GROUPS = [  # (group in YAML, the problem)
    ("{type: all_of}", " (line 2): `all_of` needs `checks`, a list of at least one"),
    ("{type: any_of, checks: []}", ".checks (line 2): `any_of` needs `checks`, a list of at least one"),
    ("{type: all_of, cheks: [{type: json_valid}]}", ".cheks (line 2): unknown field `cheks`. Did you mean `checks`?"),
    ("{type: all_of, check: {type: json_valid}}", ".check (line 2): `all_of` takes `checks`"),
    ("{type: length_scaled, max: 3}", " (line 2): `length_scaled` needs `check`, the check that it is about"),
    ("{type: length_scaled, max: 3, check: {type: json_valid}, unit: {colum: n}}", ".unit.colum (line 2): unknown field `colum`. Did you mean `column`?"),
    ("{type: at_least, k: {column: n}, checks: [{type: json_valid}]}", ".k (line 2): `k` of a group is the same on every row, not {column: …}"),
    ("{type: at_least, k: 2, checks: [{type: json_valid}]}", ".k (line 2): k is 2, and the group has 1 check"),
    ("{type: mean, on: boxed, checks: [{type: json_valid}]}", ".on (line 2): `on` belongs to the checks in a group, not to the group"),
    ("{type: mean, checks: [{type: json_valid, gate: true}]}", ".checks[0].gate (line 2): `gate` belongs to the group, not to a check in it"),
    ("{type: mean, checks: [{type: contains, value: {colum: x}}]}", ".checks[0].value.colum (line 2): unknown field `colum`. Did you mean `column`?"),
]  # fmt: skip


SAME = (("choice, value: B", "letters"), ("list_equals, value: a", "sep"), ("number, value: 1", "at"))
SAME += (("count, max: 1", "of"), ("tool_calls, value: []", "format"), ("tool_f1, value: []", "scope"))
SAME_ON_EVERY_ROW = [  # what a check reads
    (f"{check}, {name}: {{column: n}}", f"{name} (line 2): `{name}` of `{check.partition(',')[0]}` is the same on every row, not {{column: …}}")
    for check, name in SAME
]  # fmt: skip


def test_a_mistake_in_a_check_or_a_group_is_one_problem_with_its_place_and_a_guess(message):
    checks = [(f"{{type: json_valid, {fields}}}", f".{problem}") for fields, problem in PLACES]
    checks += [(f"{{type: {check}}}", f".{problem}") for check, problem in GOLDS + SAME_ON_EVERY_ROW]
    for check, problem in checks + GROUPS:
        for strict in (False, True):
            said = message(f"checks:\n- {check}\n", ".yaml", strict=strict)
            assert said == f"spec.yaml: 1 problem\n  $.checks[0]{problem}"


def test_groups_nest_to_depth_eight(message):
    check = VALID
    for _ in range(8):
        check = {"type": "all_of", "checks": [check]}
    assert load_verifier({"checks": [check]}).checks[0].depth == 8
    said = message(json.dumps({"checks": [{"type": "all_of", "checks": [check]}]}), ".json")
    assert said == f"spec.json: 1 problem\n  $.checks[0]{'.checks[0]' * 8} (line 1): groups are nested more than 8 deep"


def test_checks_in_groups_and_conditions_are_warned_of():
    for check, warning in [
        ({"type": "contains", "value": ["${a}", "b"]}, "contains: `${a}` is plain text here; to take it from the row, write {column: a} or {template: …}"),
        ({"type": "all_of", "checks": [VALID, {"type": "jsn_valid"}]}, 'all_of.jsn_valid: skipped, unknown check type "jsn_valid". Did you mean `json_valid`?'),
        ({"type": "all_of", "checks": [{"type": "contains"}]}, "all_of.contains: broken: ValueError: params.value is missing; it scores 0.0 on every row"),
        ({"when": {"check": {"type": "contains"}}, **VALID}, "json_valid.when: broken: ValueError: params.value is missing; it scores 0.0 on every row"),
    ]:  # fmt: skip
        assert load_verifier({"checks": [check]}).warnings == (f"verifier/{warning}",)


MANY = """{
  "id": 7,
  "passThreshold": 1.5,
  "checks": [
    {"type": "contains", "valu": "x"},
    {"type": "regex", "pattern": "[", "weight": -1},
    "json_valid"
  ]
}"""
ALL = """spec.json: 5 problems
  $.id (line 2): expected a string, got a number (7). Write it in quotes: a bare value is read as a number or true/false.
  $.passThreshold (line 3): 1.5 is above 1, the highest score: nothing could pass
  $.checks[0].valu (line 5): unknown field `valu`. Did you mean `value`?
  $.checks[1].weight (line 6): expected a finite number, at least 0, got -1.0
  $.checks[2] (line 7): expected an object, got a string ('json_valid'): write `- {type: json_valid}`"""


def test_all_problems_are_listed_at_once(message):
    assert message(MANY, ".json") == ALL


REFUSED_BY_STRICT = [  # (text, ending, full message)
    ("checks:\n- type: contain\n", ".yaml", 'spec.yaml: 1 problem\n  $.checks[0].type (line 2): unknown check type "contain". Did you mean `contains`?'),
    ('{"checks": [{"type": "contains"}]}', ".json", "spec.json: 1 problem\n  $.checks[0] (line 1): the check cannot run: ValueError: params.value is missing"),
    ("checks:\n- type: regex\n  params:\n    pattern: '['\n", ".yaml", "spec.yaml: 1 problem\n  $.checks[0].params (line 3): the check cannot run: PatternError: unterminated character set at position 0"),
]  # fmt: skip


def test_strict_says_why_a_check_cannot_run(message):
    for text, suffix, said in REFUSED_BY_STRICT:
        assert message(text, suffix, strict=True) == said


def test_a_refusal_helps(message):
    for text, words in [
        ("checks:\n- tipe: contains\n", "Did you mean `type`?"),  # a misspelt field is misspelt whatever its name
        ("checks:\n- type: contain\n", "Did you mean `contains`?"),  # else nobody knows why no check can run
        (CHECKS + "- type: nobody_knows\n  weigth: 2\n  params: {}\n", "Did you mean `weight`?"),
    ]:
        assert words in message(text, ".yaml")


def test_flat_params_beside_an_object_and_params_of_a_check_without_any_are_refused(message):
    for text, start in [
        ("checks:\n- type: contains\n  value: x\n  params: {}\n", "$.checks[0].value (line 3): "),
        (
            "checks:\n- type: equals\n  params: {text: x}\n  case_sensitive: true\n",
            "$.checks[0].case_sensitive (line 4): ",
        ),
        (CHECKS + "  params:\n    indent: 2\n", "$.checks[0].params.indent (line 4): "),
    ]:
        said = message(text, ".yaml")
        assert said.startswith(f"spec.yaml: 1 problem\n  {start}unknown field")
        assert "Known: ." not in said


def test_a_list_that_is_none_is_one_problem(message):
    assert message("checks: json_valid\n", ".yaml").startswith("spec.yaml: 1 problem\n")


def test_a_message_holds_no_character_that_a_terminal_obeys_or_utf8_refuses(message):
    for key in ["\\u001b[2J", "\\ud800", "\\u0000", "\\u202e", "a\\nb"]:
        said = message(f'{{"checks": [{{"type": "json_valid", "{key}": 1}}]}}', ".json")
        assert said.replace("\n", " ").isprintable()
        assert len(said.splitlines()) == 2


def test_a_value_a_check_cannot_use_makes_a_broken_check_which_strict_refuses():
    for check, problem in [
        ({"type": "contains"}, "ValueError: params.value is missing"),
        ({"type": "contains", "value": None}, "TypeError: params.value is null, not a string"),
        ({"type": "contains", "value": 5}, "TypeError: params.value is a number (5), not a string"),
        ({"type": "contains", "text": []}, "ValueError: params.value has no gold"),
        ({"type": "contains", "caseSensitive": ["a"], "value": "a"}, "TypeError: params.caseSensitive is a list, not true or false"),
        ({"type": "contains", "value": {"a": 1}}, "TypeError: params.value is an object, not a string"),
        ({"type": "number", "value": "words"}, 'ValueError: params.value: "words" is not a number'),
        ({"type": "number", "value": ["1", "words"]}, 'ValueError: params.value: "words" is not a number'),
        ({"type": "contains", "value": b"a"}, "TypeError: params.value is bytes (b'a'), not a string"),
        ({"type": "min_length"}, "ValueError: params.value is missing"),
        ({"type": "min_length", "value": "4"}, "TypeError: params.value is a string ('4'), not a number"),
        ({"type": "min_length", "value": True}, "TypeError: params.value is a boolean (True), not a number"),
        ({"type": "max_length", "value": -1}, "ValueError: params.value is a number (-1): input should be greater than or equal to 0"),
        ({"type": "max_length", "value": math.inf}, "ValueError: params.value is a number (inf): input should be a finite number"),
        ({"type": "json_keys"}, "ValueError: params.requiredKeys is missing"),
        ({"type": "json_keys", "keys": "a"}, "TypeError: params.requiredKeys is a string ('a'), not a list"),
        ({"type": "json_keys", "keys": ["a", 1]}, "TypeError: params.requiredKeys[1] is a number (1), not a string"),
        ({"type": "regex", "pattern": "["}, "PatternError: unterminated character set at position 0"),
        ({"type": "regex", "pattern": "(a"}, "PatternError: missing ), unterminated subpattern at position 0"),
        ({"type": "regex", "pattern": "a" + "{9999999999}"}, "OverflowError: the repetition number is too large"),
        ({"type": "json_valid", "params": []}, "TypeError: params is a list, not an object"),
    ]:  # fmt: skip
        found = load_verifier({"checks": [check]})
        assert found.warnings == (f"verifier/{check['type']}: broken: {problem}; it scores 0.0 on every row",)
        assert (found.checks[0].broken, len(found.runnable)) == (problem, 1)
        with pytest.raises(SpecError) as caught:
            load_verifier({"checks": [check]}, strict=True)
        assert [said.split(": ", 1)[1] for said in caught.value.problems] == [f"the check cannot run: {problem}"]


def test_an_unknown_type_is_skipped_noted_and_left_out_of_the_weights():
    for name, note in [
        ("contain", 'skipped, unknown check type "contain". Did you mean `contains`?'),
        ("nobody", 'skipped, unknown check type "nobody"'),
        ("broken", 'skipped, unknown check type "broken"'),
    ]:
        found = load_verifier({"checks": [{"type": name, "weight": 9, "anything": 1}, VALID]})
        assert (found.checks[0].note, found.warnings) == (note, (f"verifier/{name}: {note}",))
        assert [check.id for check in found.runnable] == ["json_valid"]


FAULTY = [  # (type, params that are right, what is wrong, its message)
    ("tool_calls", {"value": {"column": "calls"}}, {"arguments": "nope"}, "ValueError: params.arguments is a string ('nope'): input should be 'exact', 'subset', 'bfcl' or 'ignore'"),
    ("tool_calls", {"value": {"column": "calls"}}, {"order": 1}, "ValueError: params.order is a number (1): input should be 'any' or 'same'"),
    ("tool_trajectory", {"sequence": {"column": "calls"}}, {"mode": "nope"}, "ValueError: params.mode is a string ('nope'): input should be 'in_order' or 'exact'"),
    ("tool_f1", {"value": {"column": "calls"}}, {"format": "nope"}, "ValueError: params.format is a string ('nope'): input should be 'any', 'json', 'tags' or 'python'"),
    ("contains", {"value": {"column": "gold"}}, {"word": "nope"}, "TypeError: params.word is a string ('nope'), not true or false"),
    ("contains", {"value": ["a", {"column": "gold"}]}, {"word": "nope"}, "TypeError: params.word is a string ('nope'), not true or false"),
    ("contains", {"value": ["a", "b"]}, {"word": "nope"}, "TypeError: params.word is a string ('nope'), not true or false"),
    ("choice", {"value": {"template": "{{gold}}"}}, {"letters": 1}, "TypeError: params.letters is a number (1), not a string"),
    ("equals", {"value": "a"}, {"normalize": [1]}, "TypeError: params.normalize is a list, not a string or an object"),
    ("equals", {"value": "a"}, {"normalize": {"lmEval": 1}}, None),
    ("json_schema", {}, {"schema": [1]}, "TypeError: params.schema is a list, not an object or true or false or a string"),
]  # fmt: skip


def test_a_fault_is_reported_once():
    for kind, right, wrong, fault in FAULTY:
        spec = {"checks": [{"type": kind, **right, **wrong}]}
        with pytest.raises(SpecError) as refused:
            load_verifier(spec, strict=True)
        (problem,) = refused.value.problems
        assert problem.count("Error: ") == 1
        if fault is not None:
            assert problem == f"$.checks[0]: the check cannot run: {fault}"
        (warning,) = load_verifier(spec).warnings
        assert warning.count("Error: ") == 1


GOLD_PARAMS = [
    (check.type, check.golds.param)
    for check in registry.CHECKS
    if check.golds.param and check.type not in ("tool_valid", "length_penalty")
]


def test_a_misspelt_gold_is_not_missing_too():
    for inside in [False, True]:
        for strict in [False, True]:
            for kind, gold in GOLD_PARAMS:
                params = {f"{gold.rstrip('_')}x": "a"}
                with pytest.raises(SpecError) as refused:
                    load_verifier(
                        {"checks": [{"type": kind, **({"params": params} if inside else params)}]}, strict=strict
                    )
                (problem,) = refused.value.problems
                assert f"Did you mean `{gold.rstrip('_')}`?" in problem


def test_what_else_is_wrong_beside_a_misspelt_param_is_told():
    with pytest.raises(SpecError) as refused:
        load_verifier({"checks": [{"type": "contains", "valeu": "a", "word": "nope"}]}, strict=True)
    assert [problem.partition(": ")[2] for problem in refused.value.problems] == [
        "unknown field `valeu`. Did you mean `value`?",
        "the check cannot run: TypeError: params.word is a string ('nope'), not true or false",
    ]
