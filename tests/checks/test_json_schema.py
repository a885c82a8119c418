"""json_schema: the official suite and promptfoo's verdicts, schemas of rows, reasons, and schemas that are bombs."""

import json
import random

import pytest
from cases import DATA, sized

from assay import load_verifier, score
from assay.checks.json import schemas
from assay.checks.json.schema import JsonSchema
from assay.checks.json.schema_cost import PLAIN_STEPS, cost_of, cost_of_text, is_plain
from assay.errors import SpecError
from assay.scoring.reference import score_rows
from assay.testing import assert_plan_conforms

DRAFTS = {
    "draft4": "http://json-schema.org/draft-04/schema#",
    "draft6": "http://json-schema.org/draft-06/schema#",
    "draft7": "http://json-schema.org/draft-07/schema#",
    "draft2019-09": "https://json-schema.org/draft/2019-09/schema",
    "draft2020-12": "https://json-schema.org/draft/2020-12/schema",
}
INTEGER = {"properties": {"n": {"type": "integer"}}, "required": ["n"]}
BY_ROW = {"checks": [{"type": "json_schema", "schema": {"column": "schema"}}]}


def cases(name):
    path = DATA / "checks" / name
    if not path.exists():
        pytest.skip(f"the verdicts are not there: {path}")
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def check_of(schema, **params):
    return JsonSchema(JsonSchema.Params.model_validate({"schema": schema, **params}))


def outcome(text, schema, **params):
    return check_of(schema, **params).outcome({"completion": text})


def reason(text, schema, **params):
    return outcome(text, schema, **params).reason


def rows_of(texts, schemas_):
    return [
        {"completion": text, "schema": schema if isinstance(schema, str | None) else json.dumps(schema)}
        for text, schema in zip(texts, schemas_, strict=True)
    ]


def by_row(texts, schemas_):
    """Results of rows that bring their schemas, by columns; the row loop gives the same."""
    rows = rows_of(texts, schemas_)
    assert_plan_conforms([load_verifier(BY_ROW)], rows)
    return score(rows, load_verifier(BY_ROW))


def in_draft(case):
    """The schema of a case, which names its draft: 2020-12 is what others are read as."""
    schema = case["schema"]
    return {"$schema": DRAFTS[case["draft"]], **schema} if isinstance(schema, dict) else schema


def test_the_official_suite():
    suite = [case for case in cases("json_schema_suite.jsonl") if not case["remote_refs"]]
    assert len(suite) == 4_760
    rows = rows_of([json.dumps(case["data"]) for case in suite], [json.dumps(in_draft(case)) for case in suite])
    assert_plan_conforms([load_verifier(BY_ROW)], random.Random(3).sample(rows, 100))
    table = score(rows, load_verifier(BY_ROW))
    assert table["reward"].to_list() == [float(case["valid"]) for case in suite]
    assert table["error"].null_count() == len(suite)


def test_remote_references_of_the_suite_are_never_fetched():
    suite = [case for case in cases("json_schema_suite.jsonl") if case["remote_refs"]]
    problems = {json.dumps(in_draft(case)): "" for case in suite}
    for schema in problems:
        problems[schema] = schemas.compiled(schema, False).problem
    refused = [problem for case in suite if (problem := problems[json.dumps(in_draft(case))])]
    assert (len(suite), len(refused)) == (182, 148)
    assert all("Retrieval is disabled" in problem or "Unknown meta-schema" in problem for problem in refused)


def test_promptfoo():
    """`is-json` and `contains-json`; for promptfoo NaN is no JSON, for `json.loads` it is."""
    differ = []
    for case in cases("promptfoo_cases.jsonl"):
        if not case["type"].endswith(("is-json", "contains-json")):
            continue
        check = {"type": "json_valid"} if case["value"] is None else {"type": "json_schema", "schema": case["value"]}
        on = {"on": {"json": {"at": "first"}}} if "contains" in case["type"] else {}
        verifier = load_verifier({"checks": [{**check, **on, "negate": case["type"].startswith("not-")}]})
        if score_rows([{"completion": case["output"]}], [verifier])[0]["reward"] != case["score"]:
            differ.append((case["type"], case["output"]))
    assert differ == [("not-is-json", "NaN"), ("not-is-json", '{"name":"Al","n":NaN}')]


def test_rows_bring_schemas():
    table = by_row(
        ['{"n": 1}', '{"n": "1"}', "{}", "n", '{"n": 1}', '{"n": 1}', "x", '{"n": 1}'],
        [INTEGER, INTEGER, True, INTEGER, None, {"type": "strin"}, "{", {"$ref": "http://localhost:9/a.json"}],
    )
    assert table["reward"].to_list() == [1.0, 0.0, 1.0, 0.0, *[None] * 4]
    errors = table["error"].to_list()
    assert errors[:4] == [None] * 4
    assert errors[4] == "gold is missing: schema"
    assert errors[5].startswith(
        """gold cannot be used: schema is '{"type": "strin"}': the schema is not valid at type"""
    )
    assert errors[6] == 'gold cannot be used: schema is "{": the schema is not valid: it is not JSON'
    assert "Retrieval is disabled" in errors[7]


NO_SCHEMAS = ('"true"', '"{}"', '"x"', '""', "3", "[]", "null")
"""JSON text of values that are no schema: a string is none, whatever it holds."""


def test_a_text_is_a_schema_only_if_it_is_that_of_an_object_or_a_boolean():
    table = by_row(["1"] * len(NO_SCHEMAS), NO_SCHEMAS)
    problem = ': the schema is not valid: it is not of types "boolean", "object"'
    assert [error for error in table["error"] if problem not in error] == []


def test_objects_of_rows_are_schemas():
    rows = [
        {"completion": '{"n": 1}', "metadata": {"schema": INTEGER}},
        {"completion": '{"n": 1}', "metadata": {"schema": {"type": "array", "items": {"const": None}}}},
        {"completion": "[null]", "metadata": {"schema": {"type": "array", "items": {"const": None}}}},
    ]
    verifier = load_verifier({"checks": [{"type": "json_schema", "schema": {"column": "metadata.schema"}}]})
    assert_plan_conforms([verifier], rows)
    assert score(rows, verifier)["reward"].to_list() == [1.0, 0.0, 1.0]


def test_a_bad_schema_is_a_broken_check():
    for schema, problem in [
        ({"type": "strin"}, "the schema is not valid at type"),
        ({"$ref": "#/$defs/a"}, "'/$defs/a' does not exist"),
        ({"pattern": "("}, 'not valid at pattern: it is not a "regex"'),
        ({"$schema": "https://example.org/mine"}, "Unknown meta-schema"),
        ("{", "it is not JSON"),
        *((text, 'it is not of types "boolean", "object"') for text in NO_SCHEMAS),
        (3, "params.schema"),
    ]:
        spec = {"checks": [{"type": "json_schema", "schema": schema}]}
        assert problem in load_verifier(spec).checks[0].broken
        with pytest.raises(SpecError):
            load_verifier(spec, strict=True)


def test_a_schema_is_compiled_once():
    schemas.compiled.cache_clear()
    first = schemas.compiled('{"type": "integer"}', False)
    assert schemas.compiled('{"type": "integer"}', False) is first
    for at in range(4_200):
        schemas.compiled(json.dumps({"const": at}), False)
    assert schemas.compiled.cache_bytes() <= 1 << 28
    assert schemas.compiled('{"type": "integer"}', False) is not first, "4,096 are kept"


def test_violations_are_named_in_one_order_whatever_the_order_of_the_schema_or_the_release_of_the_package():
    kinds = {"b": {"type": "integer"}, "a": {"type": "integer", "minimum": 9}, "c": {"items": {"type": "null"}}}
    text = '{"c": [null, 1], "b": "x", "a": 1.5}'
    wanted = 'a: 1.5 is less than the minimum of 9; a: 1.5 is not of type "integer"; b: "x" is not of type "integer"; and 1 more'
    for names in ("abc", "cba", "bca"):
        assert outcome(text, {"properties": {name: kinds[name] for name in names}}).reason == wanted


def test_the_reason_names_three_violations_and_their_paths():
    schema = {"required": ["a", "b"], "properties": {"c": {"items": {"maximum": 3}}, "d.e": {"type": "string"}}}
    text = json.dumps({"a": 1, "c": [1, 9, 8], "d.e": {"x": 1}})
    named = reason(text, schema).split("; ")
    assert len(named) == 4
    assert named[3] == "and 1 more"
    assert {*named[:3]} <= {
        "c[1]: 9 is greater than the maximum of 3",
        "c[2]: 8 is greater than the maximum of 3",
        '["d.e"]: an object of 1 is not of type "string"',
        '"b" is a required property',
    }
    assert reason('{"d.e": [1], "a": 1, "b": 2}', schema) == '["d.e"]: a list of 1 is not of type "string"'
    assert reason("```json\n{}\n```", schema) == "the output is wrapped in a Markdown code fence, not bare JSON"


def test_values_are_those_of_json_valid():
    for text, schema, wanted in [
        ('"\\ud800"', {"const": "\ufffd"}, 1.0),
        ('"\\ud83d\\ude00"', {"maxLength": 1}, 1.0),
        ("NaN", {"type": ["number", "null", "string", "integer", "boolean", "object", "array"]}, 0.0),
        ("1e999", {"type": "number"}, 0.0),
        ("1.0", {"type": "integer"}, 1.0),
        ("9" * 4_300, {"type": "integer", "minimum": 1e300}, 1.0),
        ('"٣"', {"pattern": r"^\d$"}, 0.0),
        ('"a\\n"', {"pattern": "^a$"}, 0.0),
        ('{"a": 1, "a": "x"}', {"properties": {"a": {"type": "string"}}}, 1.0),
        ("\ufeff{}", True, 0.0),
    ]:
        assert outcome(text, schema).score == wanted
        assert outcome(text, schema).error is None


def test_any_check_reads_a_field():
    for path in ["name", "items[1].qty"]:
        text = json.dumps({"name": "Ada", "items": [{"qty": 1}, {"qty": "Ada"}]})
        on = {"on": [{"json": {"path": path}}]}
        checks = [
            {"type": "equals", "value": "ada", **on},
            {"type": "regex", "pattern": "^A", **on},
            {
                "type": "json_match",
                "value": '"Ada"',
                "on": [{"json": {"path": path}}, {"replace": {"old": "Ada", "new": '"Ada"'}}],
            },
            {"type": "max_length", "value": 3, **on},
        ]
        rows = [{"completion": text}, {"completion": "{}"}, {"completion": "x"}]
        verifier = load_verifier({"checks": checks})
        assert_plan_conforms([verifier], rows)
        assert score(rows, verifier)["reward"].to_list() == [1.0, 0.0, 0.0]


def nested(depth, leaf=1):
    for _ in range(depth):
        leaf = {"a": leaf}
    return json.dumps(leaf)


def tower(levels, keyword, leaf):
    """A schema whose levels each refer twice to the next: 2ⁿ evaluations."""
    steps = {f"d{at}": {keyword: [{"$ref": f"#/$defs/d{at + 1}"}] * 2} for at in range(levels)}
    return {"$defs": {**steps, f"d{levels}": leaf}, "$ref": "#/$defs/d0"}


def deep(levels, leaf):
    for _ in range(levels):
        leaf = {"allOf": [leaf]}
    return leaf


def chain(levels, leaf):
    steps = {f"d{at}": {"allOf": [{"$ref": f"#/$defs/d{at + 1}"}]} for at in range(levels)}
    return {"$defs": {**steps, f"d{levels}": leaf}, "$ref": "#/$defs/d0"}


AGAIN = {"properties": {"a": {"$ref": "#"}}}
QUICK = {  # a schema, a text, the score
    "a loop": ({"$ref": "#"}, "1", 1.0),
    "a loop of two": ({"$defs": {"b": {"anyOf": [{"$ref": "#"}]}}, "allOf": [{"$ref": "#/$defs/b"}]}, "1", 1.0),
    "a tower that holds": (tower(18, "allOf", {"type": "integer"}), "1", 1.0),
    "a tower with a violation at each of its ends": (tower(14, "allOf", {"type": "integer"}), '"x"', 0.0),
    "a tower of alternatives": (tower(13, "anyOf", {"type": "integer"}), '"x"', 0.0),
    "depth times a chain of references": (chain(150, AGAIN), nested(490), 1.0),
    "depth times depth": (deep(110, AGAIN), nested(490), 1.0),
    "a deep value": (AGAIN, nested(499), 1.0),
    "a value that is too deep": (AGAIN, nested(501), 0.0),
    "many violations": ({"items": {"type": "string"}}, json.dumps([*range(sized(100_000, 20_000))]), 0.0),
    "a large output": ({"type": "integer"}, '"' + "x" * 5_000_000 + '"', 0.0),
    "large and not JSON": ({"type": "integer"}, "[" + "x," * 2_500_000, 0.0),
    "different numbers": ({"uniqueItems": True}, json.dumps([*range(100_000)]), 1.0),
    "different objects": ({"uniqueItems": True}, json.dumps([[at] for at in range(100_000)]), 1.0),
    "a pattern of nested repeats": ({"pattern": "^(a+)+$"}, '"' + "a" * 100_000 + '!"', 0.0),
}


@pytest.mark.parametrize("name", QUICK)
def test_hostile_input_has_a_verdict(name):
    schema, text, expected = QUICK[name]
    result = outcome(text, schema)
    assert (result.score, result.error) == (expected, None)
    assert len(result.reason) < 1_000


LATE = {
    "a tower without end": (tower(60, "allOf", {"type": "integer"}), "1"),
    "a pattern that backtracks": ({"pattern": "^(?:a(?=a)|a)+b(?<=c)"}, '"' + "a" * 60 + '!"'),
    "negated": ({"not": {"pattern": "^(?:a(?=a)|a)+b(?<=c)"}}, '"' + "a" * 60 + '!"'),
    "numbers that are not hashed": ({"uniqueItems": True}, json.dumps([10**30 + at for at in range(100_000)])),
}


@pytest.mark.parametrize("name", LATE)
def test_what_takes_too_long_is_an_error(name, monkeypatch):
    schema, text = LATE[name]
    monkeypatch.setattr(schemas.POOL, "prepare_seconds", 0.2)
    monkeypatch.setattr(schemas, "SECONDS", dict.fromkeys(schemas.SECONDS, 0.2))
    schemas.POOL.close()
    table = score(rows_of([text, '{"n": 1}'], [schema, INTEGER]), load_verifier(BY_ROW))
    schemas.POOL.close()
    assert table["reward"].to_list() == [0.0, 1.0]
    assert "the schema takes more" in table["error"][0]
    assert table["error"][1] is None


def test_a_process_without_memory_is_an_error(monkeypatch):
    monkeypatch.setattr(schemas.POOL, "memory", 1 << 24)
    schemas.POOL.close()
    own = {"$ref": "#", "$comment": "others must not find in a cache that it takes too much"}
    table = score(rows_of(['"' + "x" * 5_000_000 + '"', '{"n": 1}'], [own, INTEGER]), load_verifier(BY_ROW))
    schemas.POOL.close()
    assert table["reward"].to_list() == [0.0, 1.0]
    assert "the schema takes more memory or stack than there is" in table["error"][0]


def test_a_stack_that_overflows_while_the_reason_is_found():
    """``jsonschema_rs`` ends its process here: it has the verdict, and overflows with the violation."""
    schema = chain(1_000, {"type": ["object", "integer"], **AGAIN})
    assert outcome(nested(490, "x"), schema) == outcome(nested(490, "x"), schema)
    assert outcome(nested(490, "x"), schema).score == 0.0
    assert outcome(nested(490), schema).score == 1.0


BOMB = {"allOf": [{"pattern": rf"\w{{{1000 + at}}}\p{{L}}{{1000}}"} for at in range(20)]}
"""A schema that another process compiles."""


def test_a_schema_that_cannot_be_compiled_is_none():
    table = by_row(['"a"', "{}"], [BOMB, True])
    schemas.POOL.close()
    assert table["reward"].to_list() == [None, 1.0]
    assert table["error"][0].startswith("gold cannot be used: schema is ")


def test_a_schema_that_takes_long_to_compile_is_an_error(monkeypatch):
    def late(*_):
        raise TimeoutError("takes longer than 2 s on this output")

    monkeypatch.setattr(schemas, "evaluated", late)
    table = by_row(['"a"', "{}"], [{"anyOf": [BOMB]}, True])
    assert table["reward"].to_list() == [0.0, 1.0]
    assert table["error"][0] == "json_schema: ValueError: takes longer than 2 s to compile"


def test_what_the_package_cannot_compare_is_an_error():
    result = outcome(f"[{nested(400)}, {nested(400)}]", {"uniqueItems": True})
    assert result.score == 0.0
    assert result.error == "ValueError: the schema cannot be evaluated on this output: Recursion limit reached"


@pytest.mark.parametrize("schema", [True, INTEGER, tower(4, "anyOf", INTEGER), AGAIN, {"pattern": "^a{3}$"}])
def test_another_process_gives_the_same_verdict(schema, monkeypatch):
    texts = ['{"n": 1}', '{"n": "x"}', "[]", '"aaa"', nested(9), "null"]
    here = [outcome(text, schema).score for text in texts]
    monkeypatch.setattr(schemas.SchemaCost, "is_small", lambda *_: False)
    assert [outcome(text, schema).score for text in texts] == here


def test_the_bound_is_above_what_simple_schemas_take():
    assert cost_of(INTEGER).is_small("{}", 100)
    assert not cost_of(tower(60, "allOf", True)).is_small("1")
    assert not cost_of({"$ref": "#"}).compiles
    assert not cost_of({"$ref": "https://json-schema.org/draft/2020-12/schema"}).compiles
    tree = {"properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}}}
    assert cost_of(tree).is_small(nested(200)), "a tree is evaluated once at each place"
    assert not cost_of({"properties": {"a": {"allOf": [{"$ref": "#"}] * 2}}}).is_small(nested(60))


@pytest.mark.parametrize(
    "schema",
    [
        True,
        INTEGER,
        {"anyOf": [INTEGER, {"not": {"properties": {"a": True}}}]},
        {"enum": [1e15, "é" * 20, ["a", {"b": 1}]], "$schema": DRAFTS["draft7"]},
        {"type": ["object", "null"], "required": ["a", "b"], "dependentRequired": {"a": ["b", "c"]}},
        {"oneOf": [{"const": 1}, {"items": {"enum": [0.1, 1e9]}}], "additionalProperties": False},
    ],
)
def test_the_bound_of_a_text_is_never_below_that_of_its_schema(schema):
    text = json.dumps(schema, ensure_ascii=True, separators=(",", ":")).replace("\\u00e9", "e")
    quick, exact = cost_of_text(text), cost_of(json.loads(text))
    assert is_plain(text)
    assert exact.compiles
    assert exact.paths.steps <= quick.paths.steps <= PLAIN_STEPS * len(text)
    assert exact.paths.letters == quick.paths.letters == 0
    assert exact.paths.chain <= quick.paths.chain + 1
    assert exact.size <= 1_000 * text.count("{") + 1_000


@pytest.mark.parametrize(
    "text",
    ['{"$ref": "#"}', '{"pattern": "a"}', '{"\\u0024ref": "#"}', '{"a": "é"}', '{"not":' * 300 + "true" + "}" * 300],
)
def test_what_a_text_may_hide_is_looked_at(text):
    assert not is_plain(text)
