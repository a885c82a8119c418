"""promptfoo configurations as specs: what becomes a check, what a column, what is left out, and files that mean harm."""

import json
import re

import polars as pl
import pytest
from cases import sized

import assay
from assay.errors import SpecError
from assay.expressions.regex.javascript import NoPatternError, python_pattern
from assay.spec.importers.files import import_file, yaml_text
from assay.spec.importers.promptfoo import is_promptfoo, read_promptfoo
from assay.spec.importers.promptfoo_assertions import RULES, comma_separated
from assay.system.documents import SpecDocument, parse_text


def read(text):
    return read_promptfoo(parse_text(text, ".yaml", "promptfooconfig.yaml"))


def of(*assertions, **top):
    return read_promptfoo(SpecDocument({"defaultTest": {"assert": [*assertions], **top}}))


def scores(imported, *completions):
    rows = [{"completion": text, "task_id": str(at)} for at, text in enumerate(completions)]
    tasks = {"tasks": pl.DataFrame(imported.tasks)} if imported.tasks else {}
    return assay.score(pl.DataFrame(rows), imported.spec, **tasks)


SUPPORT = """
description: Support
prompts: [file://prompt.txt]
providers: [openai:gpt-5-mini]
assertionTemplates:
  brief: {type: word-count, value: {max: 6}}
defaultTest:
  vars: {brand: Acme}
  assert:
    - $ref: '#/assertionTemplates/brief'
    - {type: not-icontains, value: as an AI, metric: tone, weight: 2}
    - {type: contains, value: 'From {{brand}} {x}'}
tests:
  - vars: {item: pen}
    assert:
      - {type: icontains-any, value: 'blue, "red, green"'}
      - {type: regex, value: '^\\w+$'}
  - vars: {item: cup, brand: Zeta}
    assert:
      - {type: icontains-any, value: [cup]}
      - {type: icontains-any, value: [tea, coffee]}
"""


def test_a_configuration_becomes_a_spec_and_a_task_table():
    imported = read(SUPPORT)
    assert (imported.left_out, imported.differences) == ([], [])
    assert imported.spec == {
        "name": "Support",
        "checks": [
            {"type": "grader", "name": "promptfoo.word-count", "value": {"max": 6}},
            {
                "id": "tone",
                "type": "grader",
                "name": "promptfoo.icontains",
                "value": "as an AI",
                "negate": True,
                "weight": 2,
            },
            {"type": "grader", "name": "promptfoo.contains", "value": {"template": "From {brand} {{x}}"}},
            {"type": "grader", "name": "promptfoo.icontains-any", "value": {"column": "assert_1"}},
            {
                "type": "grader",
                "name": "promptfoo.regex",
                "value": {"column": "assert_2"},
                "when": {"column": "assert_2", "exists": True},
            },
            {
                "type": "grader",
                "name": "promptfoo.icontains-any",
                "value": {"column": "assert_3"},
                "when": {"column": "assert_3", "exists": True},
            },
        ],
    }
    assert imported.tasks == [
        {
            "task_id": "0",
            "brand": "Acme",
            "assert_1": ["blue", "red, green"],
            "assert_2": r"^\w+$",
            "assert_3": None,
        },
        {"task_id": "1", "brand": "Zeta", "assert_1": ["cup"], "assert_2": None, "assert_3": ["tea", "coffee"]},
    ]
    result = scores(imported, "From Acme {x}: red, green", "From Zeta {x} a cup of tea")
    assert result["reward"].to_list() == [(1 + 2 + 1 + 1) / 6, 5 / 6]
    assert result["error"].null_count() == 2


def test_equal_assertions_of_all_tests_need_no_table():
    test = {"assert": [{"type": "equals", "value": "a"}]}
    imported = read_promptfoo(SpecDocument({"tests": [test, test]}))
    assert imported.tasks == []
    assert imported.spec["checks"] == [{"type": "grader", "name": "promptfoo.equals", "value": "a"}]


def test_a_test_without_an_assertion_of_others_does_not_run_it():
    first = {"assert": [{"type": "is-json"}, {"type": "contains", "value": "a"}]}
    imported = read_promptfoo(SpecDocument([first, {"assert": [{"type": "contains", "value": "b"}]}]))
    check = {"type": "grader", "name": "promptfoo.is-json", "when": {"column": "assert_1", "exists": True}}
    assert imported.spec["checks"][0] == check
    assert scores(imported, '["a"]', "b")["passed"].to_list() == [True, True]
    assert scores(imported, "a", "a")["reward"].to_list() == [0.5, 0.0]


def test_sets_of_assertions_nest_with_their_thresholds():
    inner = {"type": "assert-set", "assert": [{"type": "contains", "value": "a"}, {"type": "contains", "value": "b"}]}
    half = {"type": "assert-set", "threshold": 0.5, "metric": "half", "assert": inner["assert"], "weight": 3}
    imported = of(inner, half)
    assert [check.get("threshold") for check in imported.spec["checks"]] == [1.0, 0.5]
    assert scores(imported, "ab", "a", "c")["reward"].to_list() == [1.0, 0.75, 0.0]


def test_a_threshold_of_the_test_makes_scores_count():
    assertions = [{"type": "contains", "value": "a", "weight": 3}, {"type": "contains", "value": "b"}]
    imported = of(*assertions, threshold=0.75)
    assert imported.spec["passThreshold"] == 0.75
    assert scores(imported, "a", "b")["passed"].to_list() == [True, False]
    nested = of({"type": "assert-set", "threshold": 0.9, "assert": assertions}, threshold=0.5)
    assert "threshold" not in nested.spec["checks"][0]


def test_tests_with_different_thresholds_have_none_in_common():
    tests = [{"threshold": limit, "assert": [{"type": "equals", "value": "a"}]} for limit in (0.5, 0.6, True)]
    imported = read_promptfoo(SpecDocument({"tests": tests}))
    assert "passThreshold" not in imported.spec
    assert [line.partition(":")[0] for line in imported.left_out] == [f"$.tests[{at}].threshold" for at in range(3)]


def test_weights_of_zero_and_metrics_alone_do_not_count():
    equal = {"type": "equals", "value": "a"}
    assertions = [equal, {**equal, "value": "b", "weight": 0}, {**equal, "value": "c", "metricOnly": True}]
    assert scores(of(*assertions), "a")["reward"].to_list() == [1.0]


def test_equal_metrics_are_numbered():
    equal = {"type": "equals", "value": "a", "metric": "same/name"}
    checks = of(equal, {**equal, "value": "b"}, {**equal, "metric": ""}).spec["checks"]
    assert [check.get("id") for check in checks] == ["same-name", "same-name-2", None]


def test_numbers_and_booleans_are_texts_as_javascript_writes_them():
    tests = [
        {"vars": {"n": value}, "assert": [{"type": "equals", "value": "{{n}}"}]} for value in (1.0, 2.5, True, "x")
    ]
    imported = read_promptfoo(SpecDocument({"tests": tests}))
    assert [row["n"] for row in imported.tasks] == ["1", "2.5", "true", "x"]
    assert scores(imported, "1", "2.5", "true", "x")["passed"].all()


LEFT_OUT = [
    ({"type": "llm-rubric", "value": "is polite"}, "`llm-rubric`: it asks a model"),
    ({"type": "not-javascript", "value": "output.length"}, "`javascript`: it runs code of yours"),
    ({"type": "is-xml"}, "`is-xml`: nothing parses it here"),
    ({"type": "is-refusal"}, "use `contains_any` with the phrases of your models"),
    ({"type": "sparkles"}, "`sparkles`: no check does this"),
    ({"value": "a"}, "`type` is null, not the name of an assertion"),
    ("contains:a", "expected an object, got a string ('contains:a')"),
    ({"type": "contains"}, "`value` is null, not a text"),
    ({"type": "contains", "value": ""}, "`value` is empty, which promptfoo refuses"),
    ({"type": "contains", "value": {"a": 1}}, "`value` is an object, not a text"),
    ({"type": "contains", "value": "file://expected.txt"}, "another file, which is not read"),
    ({"type": "contains", "value": "{{ x | upper }}"}, "more than the name of a value"),
    ({"type": "contains", "value": "{% if x %}a{% endif %}"}, "more than the name of a value"),
    ({"type": "contains", "value": "{{ env.KEY }}"}, "it is no variable of a test: the environment is not read"),
    ({"type": "contains", "value": "{{ x"}, "unfinished template"),
    ({"type": "contains", "value": "a", "transform": "output.trim()"}, "`transform` changes what is compared, by code"),
    ({"type": "contains", "value": "a", "weight": -1}, "`weight` is a number (-1), not a number of at least 0"),
    ({"type": "contains", "value": "a", "threshold": "x"}, "`threshold` is a string ('x'), not a number"),
    ({"type": "contains-all", "value": 5}, "`value` is a number (5), not a list of texts"),
    ({"type": "contains-all", "value": '"a'}, "a quote is not closed"),
    (
        {"type": "contains-all", "value": "a, {{capital}}"},
        "a template stands in a text that is split at commas after it is filled",
    ),
    ({"type": "contains-all", "value": '"a" b, c'}, "'b' follows a quoted item"),
    ({"type": "regex", "value": "(?i)a"}, "is not of JavaScript's patterns"),
    ({"type": "regex", "value": "("}, "Python has no such pattern"),
    ({"type": "regex", "value": "^{{x}}$"}, "a template is part of a pattern"),
    ({"type": "word-count", "value": {"min": "x"}}, "`value` is an object, not a number or {min, max}"),
    ({"type": "word-count", "value": "many"}, "`value` is a string ('many'), not a number"),
    ({"type": "latency"}, "it has no `threshold`"),
    ({"type": "is-json", "value": "file://schema.json"}, "the schema is in another file"),
    ({"type": "is-json", "value": "{a: &b 1, c: *b}"}, "the schema:1"),
    ({"type": "is-json", "value": 5}, "not a JSON Schema"),
    ({"type": "is-json", "value": True}, "not a JSON Schema"),
    ({"type": "is-json", "value": {"type": "strin"}}, "is not a JSON Schema: the schema is not valid at type"),
    ({"type": "is-json", "value": {"$schema": "https://json-schema.org/draft/2020-12/schema"}}, "another draft than 7"),
    ({"type": "equals", "value": "a", "normalizeUnicode": {}}, "`normalizeUnicode` is an object"),
    ({"type": "tool-call-f1", "value": []}, "not names of tools"),
    ({"type": "trajectory:tool-used", "value": {}}, "no name and no pattern"),
    ({"type": "trajectory:tool-sequence", "value": {"steps": [{}]}}, "no steps, or steps without a name"),
    ({"type": "is-valid-openai-tools-call", "value": []}, "the tools stand in the assertion"),
    ({"type": "assert-set", "assert": []}, "none of its assertions has a counterpart"),
    ({"type": "assert-set", "threshold": [], "assert": []}, "`threshold` is a list, not a number"),
    ({"$ref": "#/assertionTemplates/x"}, "is not in `assertionTemplates`"),
    ({"$ref": 5}, "is not in `assertionTemplates`"),
]


def test_what_has_no_counterpart_is_named_with_its_place():
    for assertion, words in LEFT_OUT:
        imported = of({"type": "equals", "value": "a"}, assertion)
        assert len(imported.spec["checks"]) == 1
        (line,) = [line for line in imported.left_out if "assert[1]: " in line]
        assert line.startswith("$.defaultTest.assert[1]: ")
        assert words in line


def test_parts_that_cannot_be_read_are_named():
    for config, words in [
        ({"tests": "file://tests.csv"}, "$.tests: the tests are in another file"),
        ({"tests": 5}, "$.tests: expected a list, got a number (5)"),
        ({"tests": [5]}, "$.tests[0]: expected an object, got a number (5)"),
        ({"defaultTest": "file://default.yaml"}, "$.defaultTest: expected an object"),
        ({"scenarios": [{}]}, "$.scenarios: a scenario stands for several tests"),
        ({"tests": [{"options": {"transform": "x"}}]}, "$.tests[0].options.transform: it changes the output by code"),
        ({"defaultTest": {"assertScoringFunction": "file://f.js"}}, "it combines scores by code"),
        ({"tests": [{"assert": {"type": "equals"}}]}, "$.tests[0].assert: expected a list"),
        ({"defaultTest": {"threshold": 7}}, "$.defaultTest.threshold: it is a number (7)"),
        (
            {"tests": [{"vars": {"x": ["a", "b"]}, "assert": [{"type": "equals", "value": "{{x}}"}]}]},
            "$.tests[0].vars.x: a list stands for a test for each item",
        ),
        (
            {"tests": [{"vars": {"x": "file://x.txt"}, "assert": [{"type": "equals", "value": "{{x}}"}]}]},
            "$.tests[0].vars.x: its value is in another file",
        ),
    ]:
        assert any(words in line for line in read_promptfoo(SpecDocument(config)).left_out)


def test_lines_of_the_file_are_named():
    imported = read("defaultTest:\n  assert:\n    - type: moderation\n    - {type: equals, value: a}\n")
    assert imported.left_out == ["$.defaultTest.assert[0] (line 3): `moderation`: it asks a model"]


def test_a_schema_is_an_option_of_the_assertion_of_its_name():
    schema = {"type": "object", "required": ["a"]}
    of_each = [{"assert": [{"type": "is-json", "value": {**schema, "required": [key]}}]} for key in "ab"]
    imported = of({"type": "is-json", "value": schema}, {"type": "not-contains-json", "value": json.dumps(schema)})
    assert imported.differences == []
    assert imported.spec["checks"] == [
        {"type": "grader", "name": "promptfoo.is-json", "options": {"value": schema}},
        {"type": "grader", "name": "promptfoo.contains-json", "options": {"value": schema}, "negate": True},
    ]
    assert scores(imported, '{"a": 1}', '{"a": NaN}', "{a: 1}")["reward"].to_list() == [0.5, 0.0, 0.0]
    assert scores(read_promptfoo(SpecDocument(of_each)), '{"a": 1}', '{"a": 1}')["reward"].to_list() == [1.0, 0.0]


def test_columns_that_are_assumed_are_named():
    imported = of({"type": "latency", "threshold": 9}, {"type": "cost", "threshold": 0.1})
    assert [line.rpartition(": ")[2] for line in imported.differences] == [
        "it reads the column `latency_ms`",
        "it reads the column `cost`",
    ]


def test_a_pattern_means_what_it_means_in_javascript():
    for pattern, found, not_found in [
        (r"^\d+$", "12", "12\n"),
        (r"^\d$", "1", "\u0661"),
        (r"\bcat\b", "écaté cat", "cats"),
        (r"caf\w$", "cafe", "café"),
        (r"^\s$", "\ufeff", "\x1c"),
        (r"a.b", "a\x85b", "a\u2028b"),
        (r"[\s\S]b[^]", "\nb\n", "b"),
        (r"[\w-]+@[\d.]+", "a-b@1.2", "é@é"),
        (r"(?<n>a)\k<n>", "aa", "ab"),
        (r"(a)\1", "aa", "ab"),
        (r"\/\_\Z\e", "/_Ze", "/"),
        (r"\u00e9\x41\cJ\0", "éA\n\0", "e"),
        (r"\ud83d\ude00", "😀", "\ud83d"),
        (r"[a[b&&c]", "&", "d"),
        (r"x{,2}", "x{,2}", "xx"),
        (r"[]|a", "a", "b"),
        (r"[\b]", "\b", "b"),
        (r"[\]\-]", "-", "\\"),
        ("(?=a)(?!b)a+?", "a", "b"),
    ]:
        translated = python_pattern(pattern)
        assert re.search(translated, found)
        assert not re.search(translated, not_found)


def test_a_pattern_that_python_has_not_is_refused():
    for pattern in ["(", "(?P<a>b)", "(?s).", r"[\1]", "a" * 10 + "{99999999999}"]:
        with pytest.raises(NoPatternError):
            python_pattern(pattern)


def test_items_between_commas():
    assert comma_separated(' a ,, b c,"d, ""e""" , "\\"\\\\"') == ["a", "b c", 'd, "e"', '"\\']


HOSTILE = (
    "no",
    "1:30",
    "0x1F",
    "1e5",
    "0o7",
    "~",
    "",
    " a",
    "a: b",
    "#",
    "- x",
    "\u2028\x85\ufeff",
    "\ud800",
    "é\n\t",
    "*a",
    "y",
    "{a}",
)


def test_a_spec_is_written_so_that_it_is_read_as_it_was():
    spec = {"checks": [{"type": "contains_any", "values": list(HOSTILE), "on": ["strip"], "weight": 1e-7, "id": None}]}
    text = yaml_text(spec)
    assert parse_text(text, ".yaml", "spec").data == spec
    assert text.encode()


def test_a_shared_part_of_the_file_is_written_twice():
    part = {"a": "b"}
    assert "&" not in yaml_text([part, part])


def test_a_file_that_cannot_be_used_is_refused_in_words(tmp_path):
    for name, content, words in [
        ("a.yaml", "a: &a [1]\nb: [*a, *a]\n", "a.yaml:2"),
        ("a.yaml", "tests: !!python/object/apply:os.system [ls]\n", "a.yaml:1"),
        ("a.yaml", "tests: [\n", "a.yaml"),
        ("a.yaml", "[" * 5_000, "nested too deeply"),
        ("a.json", '{"tests": ' + "[" * 200 + "]" * 200 + "}", "nested too deeply"),
        ("a.json", '{"tests": [], "tests": []}', "twice"),
        ("a.yaml", "tests: " + "9" * 5_000, "too many digits"),
        ("a.json", "\x00", "not valid JSON"),
        ("a.yaml", "just text", "neither a promptfoo configuration nor an OpenAI grader"),
        ("a.yaml", "{}", "neither a promptfoo configuration nor an OpenAI grader"),
        ("a.yaml", "tests: []", "nothing in it has a counterpart."),
        ("a.yaml", "defaultTest: {assert: [{type: javascript, value: x}]}", "nothing in it has a counterpart:\n"),
        ("a.yaml", "defaultTest: {assert: [{type: equals, value: a, weight: 0}]}", "add up to 0"),
        ("a.js", "module.exports = {}", "unknown file format"),
    ]:
        (tmp_path / name).write_text(content)
        with pytest.raises(SpecError) as caught:
            import_file(tmp_path / name)
        assert words in str(caught.value)


VALUES = [
    None,
    True,
    0,
    -1.5,
    10**400,
    "",
    "a",
    "{{x}}",
    "file://x",
    [],
    [None],
    ["a", ["b"]],
    {},
    {"a": {}},
    {"min": None},
    "\ud800",
]


def test_values_of_any_type_are_imported_or_left_out():
    for kind in [*RULES, "assert-set"]:
        others = ("weight", "metric", "assert", "type", "$ref") if kind in ("equals", "assert-set") else ()
        for field in ("value", "threshold", *others):
            for value in VALUES:
                imported = of({"type": kind, "value": "a", "threshold": 0.5, field: value})
                assert len(imported.spec["checks"]) + len(imported.left_out) >= 1
                if imported.spec["checks"] and imported.spec["checks"][0].get("weight") != 0:
                    assay.load_verifier(imported.spec)
                    assert parse_text(yaml_text(imported.spec), ".yaml", "spec").data == imported.spec


def test_many_tests_share_one_check():
    tests = [{"assert": [{"type": "equals", "value": f"answer {number}"}]} for number in range(sized(3_000, 300))]
    imported = read_promptfoo(SpecDocument({"tests": tests}))
    assert len(imported.spec["checks"]) == 1
    assert len(imported.tasks) == len(tests)


def test_only_configurations_are_taken_for_one():
    assert is_promptfoo({"prompts": []})
    assert is_promptfoo([{"vars": {}}])
    assert not any(map(is_promptfoo, ({}, [], "tests", None, [{"type": "string_check"}])))


def test_a_spec_of_python_data_is_plain():
    assert json.loads(json.dumps(read(SUPPORT).spec)) == read(SUPPORT).spec
