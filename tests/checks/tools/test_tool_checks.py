"""Check types of tool calls: verdicts that are not ours, golds and functions in every form, reasons, and hostile rows."""

import json
from collections import Counter
from itertools import product

import pytest
from cases import DATA, sized, some

from assay import load_verifier, score
from assay.checks.json import schemas
from assay.checks.tools.bfcl import bfcl_difference
from assay.checks.tools.equality import difference, equal
from assay.checks.tools.golds import expected_calls, expected_names, function_docs
from assay.checks.tools.tool_calls import MAX_COMPARISONS
from assay.scoring.reference import score_rows
from assay.steps.tool_calls.calls import calls_text
from assay.testing import assert_plan_conforms
from assay.thresholds import set_to


def cases(name):
    path = DATA / "checks" / name
    if not path.exists():
        pytest.skip(f"the verdicts are not there: {path}")
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def verifier(**check):
    return load_verifier({"checks": [check]})


def message(*calls):
    requests = [{"function": {"name": name, "arguments": json.dumps(arguments)}} for name, arguments in calls]
    return [{"role": "assistant", "content": None, "tool_calls": requests}]


def outcome(calls, **check):
    """Score and reason of calls, by rows and by columns."""
    row = {"completion": calls if isinstance(calls, str) else message(*calls)}
    found = verifier(**check)
    (result,) = score_rows([row], [found])
    columns = score([row, {"completion": "x"}, row], found)
    assert (
        columns.select("reward", "feedback", "error").rows()[::2]
        == [tuple(map(result.get, ("reward", "feedback", "error")))] * 2
    )
    assert result["error"] is None
    return result["reward"], result["feedback"].partition(": ")[2]


def as_python(calls):
    """Calls as a model writes them in BFCL's prompting mode."""
    written = (f"{name}({', '.join(f'{key}={value!r}' for key, value in args.items())})" for name, args in calls)
    return f"[{', '.join(written)}]"


BFCL_FORMS = {
    "messages": lambda calls: message(*calls),
    "JSON": lambda calls: json.dumps([{"name": name, "arguments": args} for name, args in calls]),
    "tags": lambda calls: "".join(
        f"<tool_call>{json.dumps({'name': name, 'arguments': args})}</tool_call>" for name, args in calls
    ),
    "Python": as_python,
}


@pytest.mark.parametrize("form", BFCL_FORMS)
def test_bfcl(form):
    tasks = {task["id"]: task for task in cases("bfcl_tasks.jsonl")}
    rows, valid = [], []
    for case in cases("bfcl_cases.jsonl"):
        task = tasks[case["id"]]
        calls = [(name, args) for call in case["calls"] for name, args in call.items()]
        answer, functions = task["possible_answer"], task["functions"]
        rows.append({"completion": BFCL_FORMS[form](calls), "gold": json.dumps(answer), "tools": json.dumps(functions)})
        valid.append(case["valid"])
    check = verifier(type="tool_calls", arguments="bfcl", value={"column": "gold"})
    result = score(rows, check)
    assert result["error"].null_count() == len(rows)
    assert result["reward"].to_list() == [float(one) for one in valid]
    assert Counter(valid) == {True: 569, False: 719}
    assert (result["feedback"].str.len_chars() > len("tool_calls: ")).to_list() == [not one for one in valid]
    assert_plan_conforms([check], rows[: sized(len(rows), 60)])


def test_promptfoo():
    rows = [row for row in cases("promptfoo_cases.jsonl") if row["type"] == "tool-call-f1"]
    assert len(rows) == 60
    for row in rows:
        output = row["output"] if isinstance(row["output"], str) else json.dumps(row["output"])
        check = {"type": "tool_f1", "value": row["value"], "threshold": row.get("threshold", 1.0)}
        passed, _ = outcome(output, **check)
        graded, _ = outcome(output, type="tool_f1", value=row["value"])
        assert (passed, graded) == (float(row["pass"]), row["score"]), row


OSLO = {"name": "weather", "arguments": {"city": "Oslo", "days": 2}}


def test_how_arguments_are_compared():
    for how, arguments, score_ in [
        ("exact", {"city": "Oslo", "days": 2}, 1.0),
        ("exact", {"days": 2.0, "city": "Oslo"}, 1.0),
        ("exact", {"city": "Oslo", "days": True}, 0.0),
        ("exact", {"city": "oslo", "days": 2}, 0.0),
        ("exact", {"city": "Oslo", "days": 2, "unit": "C"}, 0.0),
        ("exact", {"city": "Oslo"}, 0.0),
        ("subset", {"city": "Oslo", "days": 2, "unit": "C"}, 1.0),
        ("subset", {"city": "Oslo"}, 0.0),
        ("ignore", {}, 1.0),
    ]:
        assert outcome([("weather", arguments)], type="tool_calls", value=[OSLO], arguments=how)[0] == score_


def test_arguments_that_are_no_object_match_nothing():
    for how in ["exact", "subset", "ignore", "bfcl"]:
        for arguments in ["{city: Oslo", "", "[1]", "3", '"x"']:
            completion = json.dumps([{"name": "weather", "arguments": arguments}])
            check = {"type": "tool_calls", "value": [{"weather": {}}], "arguments": how, "tools": [{"name": "weather"}]}
            found, reason = outcome(completion, **check)
            assert found == 0.0
            assert reason.startswith("weather: its arguments are no JSON object: ")


def test_no_call_is_expected():
    assert outcome("hello", type="tool_calls", value=[]) == (1.0, "")
    assert outcome([("f", {"a": 1})], type="tool_calls", value=[]) == (0.0, 'expected no call, got f {"a": 1}')
    assert outcome("<tool_call>oops</tool_call>", type="tool_calls", value=[])[0] == 0.0
    assert outcome("hello", type="tool_calls", value=[], score="share")[0] == 1.0


def test_the_first_free_call_that_matches_is_taken():
    gold = [{"f": {"a": 1}}, {"f": {"a": 1, "b": 2}}]
    calls = [("f", {"a": 1, "b": 2}), ("f", {"a": 1})]
    assert outcome(calls, type="tool_calls", value=gold)[0] == 1.0
    # not the best assignment: the first expected call takes the call that only the second could do with
    assert outcome(calls, type="tool_calls", value=gold, arguments="subset") == (
        0.0,
        "call 2, f: b is missing, expected 2",
    )


def test_order():
    gold = [{"f": {}}, {"g": {}}]
    calls = [("g", {}), ("f", {})]
    assert outcome(calls, type="tool_calls", value=gold)[0] == 1.0
    found = outcome(calls, type="tool_calls", value=gold, order="same")
    assert found == (0.0, "no call matches f {}, got g, f")
    assert outcome([("f", {}), ("h", {})], type="tool_calls", value=gold, order="same", score="share")[0] == 0.5


def test_share():
    for calls, gold, share in [
        ("f", "f", 1.0),
        ("fg", "f", 1 / 2),
        ("f", "fgh", 1 / 3),
        ("fff", "ff", 2 / 3),
        ("", "f", 0.0),
        ("x", "f", 0.0),
        ("fx", "fg", 1 / 2),
    ]:
        check = {"type": "tool_calls", "value": [{name: {}} for name in gold], "score": "share"}
        assert outcome([(name, {}) for name in calls], **check)[0] == share


def test_arguments_that_do_not_count_and_defaults():
    call = [("math.add", {"a": 1, "note": "x"})]
    assert outcome(call, type="tool_calls", value=[{"math.add": {"a": 1}}], ignore=["note"])[0] == 1.0
    assert outcome(call, type="tool_calls", value=[{"math.add": {"a": 1}}], ignore=["math.add.note"])[0] == 1.0
    assert outcome(call, type="tool_calls", value=[{"math.add": {"a": 1}}], ignore=["math.sub.note"])[0] == 0.0
    gold = [{"math.add": {"a": 1, "note": "x", "b": 0}}]
    assert outcome(call, type="tool_calls", value=gold, defaults={"b": 0})[0] == 1.0
    assert outcome(call, type="tool_calls", value=gold, defaults={"b": 1, "math.add.b": 0})[0] == 1.0
    assert outcome(call, type="tool_calls", value=gold, defaults={"b": 1})[0] == 0.0
    broken = verifier(type="tool_calls", value=[], arguments="ignore", defaults={"b": 1}).checks[0].broken
    assert broken == "ValueError: params.defaults: they belong to `arguments: exact` and `subset`, not to `ignore`"


def test_dots_and_underscores():
    assert outcome([("math_add", {})], type="tool_calls", value=[{"math.add": {}}])[0] == 0.0
    for kind, params in (("tool_calls", {"value": [{"math.add": {}}]}), ("tool_f1", {"value": "math.add"})):
        assert outcome([("math_add", {})], type=kind, dots="underscore", **params)[0] == 1.0
    params = {"called": ["math.add"], "max": 1, "of": "math.*"}
    assert outcome([("math_add", {})], type="tool_trajectory", dots="underscore", **params)[0] == 1.0
    assert outcome([("math_add", {})], type="tool_valid", dots="underscore", tools=[{"name": "math.add"}])[0] == 1.0


def test_reasons_name_the_call_and_the_argument():
    for calls, reason in [
        ([("weather", {"city": "Bergen", "days": 2})], 'weather: city is "Bergen", expected "Oslo"'),
        ([("weather", {"city": "Oslo"})], "weather: days is missing, expected 2"),
        ([("weather", OSLO["arguments"] | {"x": None})], "weather: x is null, expected no such argument"),
        ([("time", {})], 'no call matches weather {"city": "Oslo", "days": 2}, got time'),
        ([], 'no call, expected weather {"city": "Oslo", "days": 2}'),
        ([("time", {}), ("weather", OSLO["arguments"])], "2 calls, expected 1: time {} is not expected"),
        (
            [("time", {}), ("weather", {"city": 1, "days": 2})],
            '2 calls, expected 1: call 2, weather: city is 1, expected "Oslo"',
        ),
    ]:
        assert outcome(calls or "no", type="tool_calls", value=[OSLO]) == (0.0, reason)


GOLDS = [
    [OSLO],
    OSLO,
    json.dumps([OSLO]),
    [json.dumps(OSLO)],
    [{"weather": OSLO["arguments"]}],
    [{"type": "function", "function": {"name": "weather", "arguments": json.dumps(OSLO["arguments"])}}],
    [{"type": "tool_use", "name": "weather", "input": OSLO["arguments"]}],
    [{"functionCall": {"name": "weather", "args": OSLO["arguments"]}}],
]


def test_golds_in_every_form():
    for gold in GOLDS:
        assert expected_calls(gold) == (("weather", OSLO["arguments"]),)
        assert outcome([("weather", OSLO["arguments"])], type="tool_calls", value=gold)[0] == 1.0
        check = verifier(type="tool_calls", value={"column": "expected"})
        rows = [{"completion": message(("weather", OSLO["arguments"])), "expected": gold}]
        assert_plan_conforms([check], rows)
        assert score(rows, check)["reward"].to_list() == [1.0]


def test_golds_of_no_form():
    for gold in ["no", "{", [1], [{"a": {}, "b": {}}], [{"name": 5}], [{"name": "f", "arguments": "x"}], [None], 3]:
        with pytest.raises(ValueError, match=r"call|arguments"):
            expected_calls(gold)
        assert verifier(type="tool_calls", value=gold).checks[0].broken.startswith("ValueError: params.value: ")
        rows = [{"completion": "x", "expected": json.dumps(gold)}, {"completion": "x", "expected": "[]"}]
        check = verifier(type="tool_calls", value={"column": "expected"})
        assert_plan_conforms([check], rows)
        result = score(rows, check)
        assert result["reward"].to_list() == [None, 1.0]
        assert result["error"][0].startswith("gold cannot be used: expected is ")


def test_names_in_every_form():
    for value in (["a", "b"], "a, b", '["a", "b"]', [{"name": "a"}, {"b": {}}], json.dumps([{"name": "a"}, {"b": {}}])):
        assert expected_names(value) == ("a", "b")
    assert expected_names("") == expected_names([]) == ()
    rows = [{"completion": message(("a", {}), ("b", {})), "names": value} for value in (["a", "b"], ["a"], [], None)]
    check = verifier(type="tool_f1", value={"column": "names"})
    assert_plan_conforms([check], rows)
    assert score(rows, check)["reward"].to_list() == [1.0, 2 / 3, 0.0, None]


SCHEMA = {"type": "object", "properties": {"days": {"type": "integer"}}, "required": ["days"]}
DOCS = [
    [{"type": "function", "function": {"name": "f", "parameters": SCHEMA}}],
    [{"type": "function", "name": "f", "parameters": SCHEMA}],
    [{"name": "f", "parameters": SCHEMA}],
    {"name": "f", "parameters": SCHEMA},
    [{"name": "f", "parameters": SCHEMA | {"type": "dict"}}],
    [{"name": "f", "input_schema": SCHEMA}],
    [{"functionDeclarations": [{"name": "f", "parameters": SCHEMA | {"type": "OBJECT"}}]}],
    [{"name": "f", "parameters": json.dumps(SCHEMA)}],
    [json.dumps({"name": "f", "parameters": SCHEMA})],
    json.dumps([{"name": "f", "parameters": SCHEMA}, {"name": "f"}]),
]


@pytest.mark.parametrize("docs", some(DOCS))
def test_functions_in_every_form(docs):
    found = {name: schema["properties"] for name, schema in function_docs(docs).items()}
    assert found == {"f": SCHEMA["properties"]}
    expected = [
        (1.0, [("f", {"days": 2})]),
        (0.0, [("f", {"days": "2"})]),
        (0.0, [("f", {})]),
        (0.0, [("g", {"days": 2})]),
    ]
    rows = [{"completion": message(*calls), "tools": docs} for _, calls in expected]
    for kind, params in (("tool_valid", {}), ("tool_calls", {"value": [{"f": {"days": [2]}}], "arguments": "bfcl"})):
        check = verifier(type=kind, **params)
        assert_plan_conforms([check], rows)
        assert score(rows, check)["reward"].to_list() == [one for one, _ in expected]
        literal = verifier(type=kind, tools=docs, **params)
        assert score(rows, literal)["reward"].to_list() == [one for one, _ in expected]


def test_rows_without_functions_are_unscored():
    rows = [{"completion": message(("f", {})), "tools": tools} for tools in (None, '[{"name": "f"}]', "no", "[]")]
    for check in (verifier(type="tool_valid"), verifier(type="tool_calls", value=[{"f": {}}], arguments="bfcl")):
        assert_plan_conforms([check], rows)
        result = score(rows, check)
        assert "missing: tools" in result["error"][0]
        assert result["reward"].to_list()[:1] == [None]


def test_an_expected_function_without_docs_is_an_error():
    check = verifier(type="tool_calls", value=[{"f": {}}], arguments="bfcl", tools=[{"name": "g"}])
    (result,) = score_rows([{"completion": message(("f", {}))}], [check])
    assert (result["reward"], result["error"]) == (
        0.0,
        "tool_calls: ValueError: `tools` has no function f, which is expected",
    )
    assert_plan_conforms([check], [{"completion": message(("f", {}))}])


def test_a_table_without_functions():
    with pytest.raises(Exception, match="tools"):
        score([{"completion": "x"}], verifier(type="tool_valid"))


@pytest.mark.parametrize(
    ("calls", "reason"),
    [
        ([("f", {"days": 2}), ("h", {})], "call 2, h: no such function; there is f"),
        ([("f", {"days": "2"})], 'f: days: "2" is not of type "integer"'),
        ([("f", {})], 'f: "days" is a required property'),
    ],
)
def test_reasons_of_calls_that_are_not_valid(calls, reason):
    assert outcome(calls, type="tool_valid", tools=DOCS[0]) == (0.0, reason)


def test_types_of_bfcl_in_schemas():
    kinds = {"a": "float", "b": "dict", "c": "tuple", "d": "any", "e": "string", "type": "float", "enum": "float"}
    schema = {"type": "dict", "properties": {name: {"type": kind} for name, kind in kinds.items()}}
    tools = [{"name": "f", "parameters": schema}]
    good = {"a": 1.5, "b": {}, "c": [], "d": None, "e": "x", "type": 1, "enum": 2.5}
    assert outcome([("f", good)], type="tool_valid", tools=tools)[0] == 1.0
    for name in "abce":
        assert outcome([("f", good | {name: None})], type="tool_valid", tools=tools)[0] == 0.0


def tower(height):
    """A schema that is evaluated 2 ** height times."""
    levels = {f"l{at}": {"allOf": [{"$ref": f"#/$defs/l{at + 1}"}] * 2} for at in range(height)}
    return {"$ref": "#/$defs/l0", "$defs": {**levels, f"l{height}": {"type": "object"}}}


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (tower(60), 1),
        ({"properties": {"a": {"pattern": "^(?:a(?=a)|a)+b(?<=c)"}}}, "a" * 60 + "!"),
        ({"properties": {"a": {"not": {"pattern": "^(?:a(?=a)|a)+b(?<=c)"}}}}, "a" * 60 + "!"),
    ],
)
def test_a_schema_that_takes_too_long_is_an_error(schema, value, monkeypatch):
    monkeypatch.setattr(schemas.POOL, "prepare_seconds", 0.2)
    monkeypatch.setattr(schemas, "SECONDS", dict.fromkeys(schemas.SECONDS, 0.2))
    schemas.POOL.close()
    call = message(("f", {"a": value}))
    rows = [{"completion": call, "tools": json.dumps([{"name": "f", "parameters": one}])} for one in (schema, {})]
    result = score(rows, verifier(type="tool_valid"))
    schemas.POOL.close()
    assert result["reward"].to_list() == [0.0, 1.0]
    assert "the schema takes more" in result["error"][0]
    assert result["error"][1] is None


def test_several_types_and_lone_surrogates():
    tools = [{"name": "f", "parameters": {"properties": {"a": {"type": ["STRING", "NULL"], "maxLength": 1}}}}]
    for value in ("x", None, "\ud800"):
        assert outcome([("f", {"a": value})], type="tool_valid", tools=tools) == (1.0, "")
    assert outcome([("f", {"a": 1})], type="tool_valid", tools=tools)[0] == 0.0


def test_a_schema_that_is_none():
    nonsense = [{"name": "f", "parameters": {"type": "nonsense"}}]
    remote = [{"name": "f", "parameters": {"$ref": "https://example.com/schema.json"}}]
    for tools in (nonsense, remote):
        assert "params.tools" in verifier(type="tool_valid", tools=tools).checks[0].broken
    rows = [{"completion": message(("f", {})), "tools": json.dumps(remote)}]
    result = score(rows, verifier(type="tool_valid"))
    assert result["reward"].to_list() == [None]


def test_values_as_bfcl_compares_them():
    for doc, allowed, value, fits in [
        ({"type": "string"}, ["New York"], "new-york", True),
        ({"type": "string"}, ["it's"], 'IT"S', True),
        ({"type": "string"}, ["a"], "b", False),
        ({"type": "string"}, [5], 5, True),
        ({"type": "string"}, ["5"], 5, False),
        ({"type": "integer"}, [5], 5, True),
        ({"type": "integer"}, [5], 5.0, False),
        ({"type": "integer"}, [1], True, False),
        ({"type": "float"}, [5.0], 5, True),
        ({"type": "number"}, [5], 5, True),
        ({"type": "boolean"}, [True], True, True),
        ({"type": "boolean"}, [True], 1, False),
        ({"type": "any"}, ["x"], "X", True),
        ({"type": "any"}, [3], 3, True),
        ({"type": "array", "items": {"type": "string"}}, [["a", "B."]], ["A", "b"], True),
        ({"type": "array", "items": {"type": "string"}}, [["a", "b"]], ["b", "a"], False),
        ({"type": "array", "items": {"type": "float"}}, [[1.0, 2.0]], [1, 2], False),
        ({"type": "array", "items": {"type": "float"}}, [[1, 2]], [1, 2], True),
        ({"type": "array", "items": {"type": "string"}}, [""], [], True),
        ({"type": "tuple", "items": {"type": "integer"}}, [[1, 2]], [1, 2], True),
        ({"type": "array"}, [[1, [2]]], [1, [2]], True),
        ({"type": "dict"}, [{"a": ["x", ""], "b": [1]}], {"b": 1}, True),
        ({"type": "dict"}, [{"a": ["x"], "b": [1]}], {"b": 1}, False),
        ({"type": "dict"}, [{"a": ["X y"]}], {"a": "xY"}, True),
        ({"type": "dict"}, [{"a": [1]}], {"a": 1, "c": 2}, False),
        ({"type": "array", "items": {"type": "dict"}}, [[{"a": [1, 2]}, {"a": [3]}]], [{"a": 2}, {"a": 3}], True),
        ({"type": "array", "items": {"type": "dict"}}, [[{"a": [1]}]], [{"a": 1}, {"a": 1}], False),
        ({"type": "array", "items": {"type": "dict"}}, [""], [], True),
        ({"type": "string"}, "only", "only", False),  # no list of values, as in some golds that are published
        ({"type": "integer"}, 5, 5, False),
        ({"type": "dict"}, [{"a": "x"}], {"a": "x"}, False),
        ({"type": "dict"}, [{"a": "x"}], {}, False),
        ({}, [3], 3, True),
        ({}, [3], 4, False),
        ({"type": ["string", "null"]}, ["a"], "a", True),
        ({"type": "integer"}, [10**400], 10**400, True),
        ({"type": "float"}, [1.0], 10**400, False),
    ]:
        schema = {"properties": {"a": doc}}
        assert (bfcl_difference({"a": value}, {"a": allowed}, schema) is None) is fits


def test_arguments_that_may_be_absent():
    schema = {"properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a"]}
    expected = {"a": [1], "b": [2, ""]}
    assert bfcl_difference({"a": 1}, expected, schema) is None
    assert str(bfcl_difference({"b": 2}, expected, schema)) == "a is missing, expected 1"
    assert str(bfcl_difference({"a": 1, "c": 2}, expected, schema)) == "c is 2, expected no such argument"
    assert str(bfcl_difference({"a": 1}, {"a": [1], "b": [2, 3]}, schema)) == "b is missing, expected one of [2, 3]"
    assert bfcl_difference({"b": 2, "c": 3}, expected, schema, frozenset("ac")) is None


def test_trajectories():
    for called, params, reason in [
        ("abc", {"called": ["a", "c"]}, ""),
        ("abc", {"called": ["x"]}, "does not call x"),
        ("abc", {"notCalled": ["x"]}, ""),
        ("abc", {"notCalled": ["b"]}, "calls b, which it must not"),
        ("abc", {"sequence": ["a", "c"]}, ""),
        ("abc", {"sequence": ["c", "a"]}, "does not call a after c"),
        ("ab", {"sequence": ["a", "a"]}, "does not call a after a"),
        ("ab", {"sequence": ["a", "b"], "mode": "exact"}, ""),
        ("abc", {"sequence": ["a", "b"], "mode": "exact"}, "calls a, b, c, expected exactly a, b"),
        ("", {"sequence": []}, ""),
        ("a", {"sequence": [], "mode": "exact"}, "calls a, expected none"),
        ("abb", {"max": 1, "of": "b"}, "2 calls of b, at most 1 expected"),
        ("abb", {"min": 3}, ""),
        ("abb", {"min": 4}, "3 calls, at least 4 expected"),
        ("abb", {"min": 2, "max": 2, "of": "[b-c]"}, ""),
        ("", {"min": 1}, "0 calls, at least 1 expected"),
    ]:
        found = outcome([(name, {}) for name in called] or "no call", type="tool_trajectory", **params)
        assert found == (float(not reason), reason)


def test_sequences_of_rows():
    rows = [
        {"completion": message(("a", {}), ("b", {})), "steps": steps} for steps in (["a", "b"], ["b", "a"], [], None)
    ]
    check = verifier(type="tool_trajectory", sequence={"column": "steps"}, max=2)
    assert_plan_conforms([check], rows)
    assert score(rows, check)["reward"].to_list() == [1.0, 0.0, 1.0, None]


def test_trajectories_without_a_rule():
    for params in [{}, {"min": 3, "max": 2}, {"max": -1}, {"sequence": 3}]:
        assert verifier(type="tool_trajectory", **params).checks[0].broken


def test_what_is_read():
    thought = "<think>[a()]</think>[b()]"
    turns = [*message(("a", {})), {"role": "tool", "content": "1"}, *message(("b", {}))]
    rows = [{"completion": completion, "log": '[{"name": "c"}]'} for completion in (thought, turns, "[b()]")]
    checks = [
        {"type": "tool_f1", "value": "b", "id": "all"},
        {"type": "tool_f1", "value": "b", "scope": "last", "id": "last"},
        {"type": "tool_f1", "value": "b", "on": "toolCalls", "id": "named"},
        {"type": "tool_f1", "value": "b", "on": ["afterThink"], "id": "steps"},
        {"type": "tool_f1", "value": "c", "on": [{"column": "log"}], "id": "column"},
        {"type": "tool_f1", "value": "b", "format": "json", "id": "json"},
        {"type": "tool_f1", "value": "b", "when": {"check": {"type": "tool_trajectory", "called": ["a"]}}, "id": "if"},
        {
            "type": "any_of",
            "checks": [{"type": "tool_f1", "value": "z"}, {"type": "tool_f1", "value": "b"}],
            "id": "group",
        },
        {"type": "tool_f1", "value": "b", "negate": True, "id": "not"},
    ]
    found = load_verifier({"checks": checks})
    assert_plan_conforms([found], rows)
    expected = {
        "all": (0, 2 / 3, 1),
        "last": (0, 1, 1),
        "named": (0, 2 / 3, 1),
        "steps": (1, 0, 1),
        "column": (1, 1, 1),
        "json": (0, 2 / 3, 0),
        "if": (None, 2 / 3, None),
        "group": (0, 0, 1),
        "not": (1, 1 - 2 / 3, 0),
    }
    result = score(rows, found)
    columns = {name.rpartition("/")[2]: name for name in result.columns}
    for name, scores in expected.items():
        assert result[columns[name]].to_list() == [*scores], name


def test_messages_without_the_role_assistant():
    check, arguments = verifier(type="tool_calls", value=[OSLO]), OSLO["arguments"]
    item = {"type": "function_call", "name": "weather", "arguments": json.dumps(arguments), "call_id": "1"}
    gemini = {"role": "model", "parts": [{"functionCall": {"name": "weather", "args": arguments}}]}
    for message_ in (item, gemini):
        with pytest.warns(match="readable `content`"):
            result = score([{"completion": [message_]}], check, any_role=True)
        assert result.select("reward", "error").rows() == [(1.0, None)]


def test_equality_whatever_the_depth():
    one, other = (json.loads("[" * 400 + end + "]" * 400) for end in ("1", "2"))
    assert equal(one, json.loads(json.dumps(one)))
    assert not equal(one, other)
    assert equal({"a": 1, "b": [1.0]}, {"b": [1], "a": 1.0})
    assert not equal([True], [1])
    assert not equal(None, 0)
    assert not equal({}, [])
    assert difference({"a": 1}, {"a": 1}, subset=False) is None


def test_many_calls():
    size = sized(30_000, 3_000)
    many = json.dumps([{"name": "f", "arguments": {"a": at}} for at in range(size)])
    gold = [{"f": {"a": at}} for at in range(3)]
    found, reason = outcome(many, type="tool_calls", value=gold)
    assert (found, reason.partition(":")[0]) == (0.0, f"{size} calls, expected 3")
    assert outcome(many, type="tool_calls", value=gold, score="share")[0] == 3 / size
    assert outcome(many, type="tool_f1", value="f")[0] == 1.0


def test_more_pairs_than_can_be_compared_are_an_error():
    size = int(MAX_COMPARISONS**0.5) + 1
    calls = [{"name": "f", "arguments": {"a": at}} for at in range(size)]
    rows = [{"completion": json.dumps(calls)}]
    check = verifier(type="tool_calls", value=calls[::-1], score="share")
    assert_plan_conforms([check], rows)
    (result,) = score_rows(rows, [check])
    assert result["reward"] == 0.0
    assert "too many to compare" in result["error"]
    others = [{"name": f"f{at}", "arguments": {}} for at in range(size)]
    assert outcome(json.dumps(others), type="tool_calls", value=others[::-1])[0] == 1.0


ODD_CALLS = [
    {"name": 5, "arguments": {}},
    {"name": ["f"], "arguments": {}},
    {"name": {"f": 1}, "arguments": "x"},
    {"name": "f" * 5000, "arguments": {"a": "x" * 100_000}},
    {"name": "f\n\u202e", "arguments": {"\x00": "\ud800"}},
    {"name": "f", "arguments": json.loads("[" * 300 + "]" * 300)},
]


@pytest.mark.parametrize("call", ODD_CALLS)
def test_odd_calls_match_nothing_and_are_not_lost(call):
    completion = calls_text([call])
    checks = [
        {"type": "tool_calls", "value": [{"g": {}}]},
        {"type": "tool_calls", "value": []},
        {"type": "tool_calls", "value": [{"g": {}}], "order": "same", "arguments": "ignore"},
        {"type": "tool_f1", "value": "g"},
        {"type": "tool_trajectory", "sequence": ["g"], "mode": "exact"},
        {"type": "tool_trajectory", "max": 0},
        {"type": "tool_valid", "tools": [{"name": "g"}]},
    ]
    found = load_verifier({"checks": checks})
    requests = [{"role": "assistant", "content": "", "tool_calls": [{"function": call}]}]
    rows = [{"completion": requests}, {"completion": f"<tool_call>{completion[1:-1]}</tool_call>"}]
    assert_plan_conforms([found], rows)
    for result in score_rows(rows, [found]):
        assert (result["reward"], result["error"]) == (0.0, None)
        assert all(line.isprintable() for line in result["feedback"].split("\n"))


def test_calls_are_read_once_for_all_checks():
    checks = [{"type": "tool_f1", "value": "a", "id": "f"}, {"type": "tool_calls", "value": []}]
    checks += [{"type": "tool_trajectory", "called": ["a"]}, {"type": "tool_valid", "tools": []}]
    found = load_verifier({"checks": checks})
    (source,) = {spec.subject.source for spec in found.checks}
    lanes = {lane.name for spec in found.checks for lane in spec.subject.lanes()}
    assert len(lanes) == 1
    assert source.name == "toolCalls"


@pytest.mark.parametrize("arguments", ["bfcl", "exact", "subset"])
def test_golds_and_functions_of_rows_are_compared_in_columns_as_by_row(arguments):
    calls = '[{"name": "f", "arguments": {"a": [1], "b": ["x"]}}]'
    texts = [None, "", "f", calls, calls.replace("[1]", "1").replace('["x"]', '"x"'), '[{"name": "g", "arguments": 1}]']
    golds = [None, "", "[", "null", "3", "[3]", "[]", '[{"f": {"a": [1], "b": ["x"]}}]', '{"f": {"a": [2]}}', calls]
    golds += ['[{"name": "", "arguments": {}}]', '[{"content": {"f": {}}}]', '[{"name": {"a": 1}}]', '[{"g": {}}]']
    doc = {"name": "f", "parameters": {"properties": {"a": {"type": "integer"}, "b": {"type": "array"}}}}
    tools = [None, "", "[", "null", "[3]", json.dumps([doc]), json.dumps(doc | {"parameters": 3})]
    rows = [dict(zip(("completion", "gold", "tools"), row, strict=True)) for row in product(texts, golds, tools)]
    tools_of_row = {} if arguments == "bfcl" else {"tools": {"column": "tools"}}
    check = {"type": "tool_calls", "value": {"column": "gold"}, "arguments": arguments, **tools_of_row}
    template = {
        "type": "tool_calls",
        "id": "t",
        "value": {"template": "[{gold}]"},
        "arguments": arguments,
        **tools_of_row,
    }
    with set_to(small_batch=0):
        assert_plan_conforms([load_verifier({"checks": [check, template]})], rows)
