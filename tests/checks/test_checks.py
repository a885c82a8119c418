"""Every registered check: its two faces agree bit for bit, and its class documents it."""

import json
from typing import get_args

import pytest
from cases import sized
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assay import CHECKS, load_verifier
from assay.checks.registry import BUILTIN
from assay.checks.similarity.check import Metric
from assay.expressions.counts import COUNTS
from assay.testing import assert_check_conforms, assert_plan_conforms, hostile_texts
from assay.values.normalizers import NORMALIZERS

SURROGATE = "\ud800"
BY_TYPE = {check.type: check for check in CHECKS}

PARAMS = {
    "contains": [
        {"value": v, "caseSensitive": s}
        for v in ("İ", "σ", "ΟΔΟΣ", "\u212a", "ß", "ſ", " ", "\x1c", "\x00", "e\u0301", "i", "ki", "S", "a.b", "42")
        for s in (False, True)
    ],
    "equals": [
        {"value": v, "caseSensitive": s}
        for v in ("", " ", "\x1fΑΣ\x85", "i̇", "true", "\ufeff{}", "STRASSE")
        for s in (False, True)
    ],
    "regex": [
        {"pattern": pattern}
        for pattern in (
            *(
                r"(?i)straße|kelvin",
                r"\s$",
                r"\w\b",
                r"(?<!a)b",
                r"(a|b)\1",
                r"^\S*$",
                r"(?m)^\s*$",
                r"\Z",
                r"a$|\n",
                r"[^\W\d_]+",
                r"(?s)\A.{3,}\Z",
            ),
            *(
                r"\d{2}",
                r"(?x) \{ .* \} # json",
                r"\x1c",
                r"(?>a+)b",
                r"a++",
                r"(?i)σ",
                r"(?a)\w+\W",
                r"\u0301",
                r"\bfoo\b",
                r"\b\d+(?:\.\d+)?\b",
                r"(?i)\bk\w*\b",
                r"\bfoo\b.*\bé",
                r"(?m)^\s*(?:[-*]|\d+\.)\s",
                r"",
            ),
        )
    ],
    "min_length": [{"value": value} for value in (0, 1, 2.5, 100, 4301, 1e300, 10**40)],
    "max_length": [{"value": value} for value in (0, 1, 2.5, 100, 4301, 1e300, 10**40)],
    "json_keys": [
        {"requiredKeys": keys} for keys in ([], ["a"], ["a", "b"], ["a b", "a"], ["é"], ["urgency", "sentiment"], ['"'])
    ],
}
PARAMS["contains"] += [
    {"value": v, "word": True, "caseSensitive": s} for v in ("a", "", "éa", "k", "x" * 300) for s in (False, True)
]
PARAMS["equals"] += [{"value": "the a.b", "normalize": n} for n in (*NORMALIZERS, {"lmEval": {"ignoreCase": True}})]
PARAMS["equals"] += [{"value": v, "strip": False, "caseSensitive": s} for v in ("a", " Σ") for s in (False, True)]
PARAMS["contains_any"] = [
    {"values": v, "caseSensitive": s} for v in (["i", "ΟΔΟΣ"], ["x" * 300], [*"abcdef"]) for s in (False, True)
]
PARAMS["contains_all"] = [p | {"score": s} for p in PARAMS["contains_any"] for s in ("all", "share")]
PARAMS["contains_all"] += [{"values": ["a", "b", "k"], "score": "share", "word": True}]
PARAMS["starts_with"] = PARAMS["ends_with"] = [
    {"value": v, "strip": strip, "caseSensitive": s}
    for v in ("i", " Σ", "k", "", "a ", "x" * 300)
    for strip in (False, True)
    for s in (False, True)
]
PARAMS["number"] = [
    {"value": v, "relTol": r, "absTol": a} for v in (0, -1e300, "3,000", 1.5) for r in (0, 0.5) for a in (0, 2)
]
PARAMS["number_range"] = [{"min": 0}, {"max": 10**400}, {"min": -(10**400), "max": 1.5}, {"min": 2**53 + 1}]
PARAMS["choice"] = [{"value": v, "letters": "abkiſ1"} for v in ("k", 1, 4, "1")]
PARAMS["list_equals"] = [
    *({"value": ["b", "b", ":"], "as": a, "sep": "a"} for a in ("list", "set", "multiset", "subset", "f1")),
    *({"value": v, "as": "f1", "sep": "a"} for v in ("", ["1", SURROGATE], [*"bcdefghijkl" * 6])),
    {"value": ["1", SURROGATE]},
    {"value": "i, K", "as": "set", "normalize": "casefold"},
]
PARAMS["count"] = [
    {"of": of, "min": 2, **other}
    for of in (*COUNTS, {"text": "A"}, {"text": "", "caseSensitive": True}, {"text": SURROGATE}, {"pattern": r"\w\b"})
    for other in ({}, {"max": 3.5}, {"exactly": 10**30})
]
PARAMS["json_schema"] = [
    *(
        {"schema": schema}
        for schema in (True, False, {"type": ["object", "null"]}, {"maxLength": 3}, {"const": "\ufffd"})
    ),
    {"schema": {"$ref": "#"}},
    {"schema": {"format": "date"}, "validateFormats": True},
]
PARAMS["json_match"] = [
    {"value": value, "score": score, "lists": lists, "strings": strings, "absTol": 1}
    for value in ("{}", [1, "a"], '"\\ud800"', "NaN")
    for score, lists, strings in (("f1", "ordered", None), ("share", "unordered", "casefold"))
]
PARAMS["case"] = [{"is": case} for case in ("upper", "lower", "title")]
PARAMS["ifeval"] = [{"mode": mode} for mode in ("strict", "loose")]
PARAMS["language"] = [{"is": "en"}, {"is": ["de", "zh-cn"]}]
CALLS = [{"name": "a", "arguments": {"b": 1}}, {"name": "a", "arguments": {}}]
PARAMS["tool_calls"] = [
    {"value": value, "arguments": how, "score": score, "order": order, "tools": [{"name": "a"}], "dots": "underscore"}
    for value in (CALLS, [], json.dumps(CALLS[0]), [{"a": {"b": [1]}}])
    for how in ("exact", "subset", "bfcl", "ignore")
    for score, order in (("all", "any"), ("share", "same"))
]
PARAMS["tool_calls"] += [{"value": CALLS, "ignore": ["a.b"], "defaults": {"b": 1}}]
PARAMS["tool_trajectory"] = [{"called": ["a"]}, {"sequence": ["a", "a"], "mode": "exact"}, {"max": 0, "of": "[a-c]*"}]
PARAMS["tool_f1"] = [{"value": "a, b"}, {"value": json.dumps(CALLS)}]
PARAMS["tool_valid"] = [
    {"tools": [{"name": "a", "input_schema": {"type": "dict", "properties": {"b": {"type": "any"}}}}]}
]
PARAMS["not_contains"] = PARAMS["contains"]
PARAMS["similarity"] = [
    {"metric": metric, "value": ("ΟΔΟΣ k a.b the İ 42", "", f"é {SURROGATE} a\x1c\x85b", "a b " * 200)[at % 4]}
    for at, metric in enumerate(get_args(Metric))
]
PARAMS["similarity"] += [
    *({"value": "ΟΔΟΣ k", "metric": m, "caseSensitive": False} for m in ("ratio", "token_set", "jaro_winkler")),
    *({"value": "The a-b 1e3", "metric": m, "normalize": "inspect"} for m in ("token_f1", "osa", "rouge_1")),
    {"value": "a b " * 200, "metric": "weighted", "maxChars": 2_000},
    {"value": "ab", "metric": "levenshtein_distance", "maxDistance": 10**30},
    {"value": ["a b c", "a"], "metric": "bleu"},
]


MATH = pytest.mark.xdist_group("math")  # one process of the suite starts the processes that compare


@pytest.mark.parametrize("name", [pytest.param(name, marks=MATH if name == "math" else ()) for name in BY_TYPE])
def test_faces_agree_on_hostile_texts(name):
    cases = sized(1_000, 10) if name == "math" else sized(20_000, 30)
    params = PARAMS.get(name, ())[:: sized(1, 4)]
    assert assert_check_conforms(BY_TYPE[name], params=params, cases=cases, seed=7) > 2 * cases


TEXT = st.text(st.characters(codec="utf-8"), max_size=30) | st.sampled_from(list(hostile_texts(300, seed=3)))
ENTRY = st.fixed_dictionaries({"anyOf": st.lists(TEXT, max_size=2)}, optional={"message": TEXT})
METADATA = st.fixed_dictionaries(
    {},
    optional={
        "expectations": st.dictionaries(st.sampled_from(["mustMention", "mustNotMention"]), st.lists(ENTRY, max_size=2))
    },
)
ROW = st.fixed_dictionaries(
    {
        "completion": st.none() | TEXT,
        "metadata": st.none() | METADATA.map(json.dumps),
        "expected_output_schema": st.sampled_from([None, '{"a": 1}', "{"]),
        "instruction_id_list": st.sampled_from([None, '["startend:quotation", "punctuation:no_comma"]', "[", '["a"]']),
        "tools": st.sampled_from([None, '[{"name": "a"}]', "{"]),
    }
)
WEIGHT = st.floats(0, 1e6) | st.sampled_from([0.1, 0.7, 1.1, 1e-300, 1e300])


@st.composite
def verifiers(draw):
    checks = [{"type": "json_valid"}]  # one with a weight, so that they never add up to 0
    for name in draw(st.lists(st.sampled_from([*BY_TYPE, "no_such_check"]), max_size=5)):
        params = draw(st.sampled_from([*PARAMS.get(name, [{}]), {}]))
        flags = {"negate": draw(st.booleans()), "required": draw(st.booleans()), "weight": draw(WEIGHT)}
        checks.append({"type": name, "params": params, **flags})
    return load_verifier({"id": draw(st.sampled_from("xyz")), "passThreshold": draw(st.floats(0, 1)), "checks": checks})


@MATH
@settings(max_examples=sized(60, 8), deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(
    st.lists(verifiers(), min_size=1, max_size=2, unique_by=lambda one: one.id), st.lists(ROW, min_size=1, max_size=6)
)
def test_any_verifiers_score_any_rows_as_the_row_loop_does(found, rows):
    assert_plan_conforms(found, rows)


def test_a_check_is_documented_by_its_class():
    for check in CHECKS:
        assert (check.__doc__ or "").strip(), check
        assert len(check.examples) >= 2, check
        scores = {example.score for example in check.examples}
        assert scores >= {0.0, 1.0} or (check.graded and max(scores) == 1.0 > min(scores)), check
        assert all(field.description for field in check.Params.model_fields.values()), check


def test_names_are_unique_and_complete():
    names = [name for check in CHECKS for name in (check.type, *check.traits.aliases)]
    assert list(BUILTIN) == names
    assert sorted(names) == sorted(
        [
            "contains",
            "must_contain",
            "not_contains",
            "must_not_contain",
            "regex",
            "equals",
            "exact_match",
            "min_length",
            "max_length",
            "json_valid",
            "json_schema",
            "json_match",
            "json_keys",
            "expected_output_schema",
            "task_expectations",
            "contains_any",
            "contains_all",
            "starts_with",
            "ends_with",
            "number",
            "numeric",
            "number_range",
            "choice",
            "list_equals",
            "count",
            "case",
            "length_penalty",
            "repetition",
            "similarity",
            "ifeval",
            "language",
            "math",
            *("tool_calls", "tool_f1", "tool_trajectory", "tool_valid"),
        ]
    )


@pytest.mark.parametrize(
    ("check", "completion", "feedback"),
    [
        ({"type": "contains", "value": 'a "b"\n'}, "", "contains: does not contain 'a \"b\"\\n'"),
        ({"type": "contains", "value": "x" * 99}, "", f'contains: does not contain "{"x" * 59}…"'),
        ({"type": "not_contains", "value": "a"}, "A", 'not_contains: contains "a"'),
        ({"type": "equals", "value": " a "}, "b", 'equals: does not equal " a "'),
        ({"type": "regex", "pattern": "a+"}, "b", 'regex: does not match the pattern "a+"'),
        ({"type": "min_length", "value": 3}, "ab", "min_length: has fewer than 3 characters"),
        ({"type": "max_length", "value": 1}, "ab", "max_length: has more than 1 characters"),
        ({"type": "json_valid"}, " \n", "json_valid: the output is empty, not JSON"),
        (
            {"type": "json_valid"},
            "```\n{}```",
            "json_valid: the output is wrapped in a Markdown code fence, not bare JSON",
        ),
        ({"type": "json_valid"}, "{'a'}", "json_valid: the output is not valid JSON"),
        ({"type": "json_keys", "keys": ["a", "b"]}, '{"b": 1}', "json_keys: missing keys: a"),
        ({"type": "json_keys", "keys": ["a"]}, "[]", "json_keys: the output is not a JSON object"),
        ({"type": "json_valid", "negate": True}, "1", "json_valid: must not hold: is valid JSON"),
        ({"type": "contains", "value": 5}, "5", "contains: TypeError: params.value is a number (5), not a string"),
    ],
)
def test_feedback_says_why(check, completion, feedback):
    from assay.scoring.reference import score_rows

    assert score_rows([{"completion": completion}], [load_verifier({"checks": [check]})])[0]["feedback"] == feedback


def test_an_exception_inside_re_is_an_error_not_a_crash():
    pattern = r"(?i)[^a-z]++(?>(?>(a|b)\1++|(?=a)*(?=a)*+|s??(?-i:k)*?)|b(?=a)?)*+"
    verifier = load_verifier({"checks": [{"type": "regex", "pattern": pattern}]})
    rows = [{"completion": text[:11]} for text in hostile_texts(300, seed=5)]
    assert_plan_conforms([verifier], rows)


def test_a_lone_surrogate_in_a_spec_is_in_no_text():
    checks = [
        {"type": "regex", "pattern": SURROGATE},
        {"type": "regex", "pattern": f"(?=a){SURROGATE}|a"},
        {"type": "contains", "value": SURROGATE, "caseSensitive": True},
        {"type": "not_contains", "value": SURROGATE},
        {"type": "equals", "value": SURROGATE},
        {"type": "json_keys", "requiredKeys": [SURROGATE, "a"]},
    ]
    rows = [{"completion": text} for text in ("\ufffd" * 3, "\\ud800", "a", "", "{}", '{"\\ud800": 1, "a": 1}', None)]
    both = [check | {"negate": negate} for check in checks for negate in (False, True)]
    assert_plan_conforms([load_verifier({"checks": both})], rows)


def test_patterns_that_read_alike_when_escaped_are_two_patterns():
    checks = [{"type": "regex", "pattern": f"(?=a|){one}"} for one in (SURROGATE, "\\\\ud800")]
    assert_plan_conforms([load_verifier({"checks": checks})], [{"completion": one} for one in ("\\ud800", "x")])


@pytest.mark.parametrize(
    "check",
    [
        {"type": "contains"},
        {"type": "contains", "caseSensitive": True},
        {"type": "not_contains"},
        {"type": "equals"},
        {"type": "regex"},
        {"type": "json_keys"},
        {"type": "task_expectations"},
    ],
    ids=lambda check: check["type"],
)
def test_a_huge_value_is_a_value(check):
    long = "Aé" * sized(200_000, 60_000)
    name = {"regex": "pattern", "json_keys": "requiredKeys"}.get(check["type"], "value")
    given = {} if check["type"] == "task_expectations" else {name: [long] if name == "requiredKeys" else long}
    verifier = load_verifier({"checks": [check | given]})
    metadata = json.dumps({"expectations": [{"text": long}]})
    texts = (long, long.lower(), long[1:], "x", None, json.dumps({long: 1}, ensure_ascii=False))
    rows = [{"completion": text, "metadata": metadata} for text in texts]
    assert_plan_conforms([verifier], rows)
