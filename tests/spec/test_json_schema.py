"""The published JSON Schema: valid itself, and of one mind with the loader."""

import json
import random
from functools import cache
from pathlib import Path
from typing import Literal

import pytest
from fuzz_specs import draw_spec
from pydantic import BaseModel

from assay import CHECKS, Check, Params, SpecError, json_schema, load_verifier
from assay.checks.groups import GROUPS
from assay.spec.listing import steps_as_json
from assay.steps.registry import STEP_TYPES, STEPS
from assay.system.documents import read_document

jsonschema = pytest.importorskip("jsonschema")

SPECS = Path(__file__).parents[2] / "specs"
FILES = sorted(path for ending in ("json", "yaml", "toml") for path in SPECS.glob(f"*/*.{ending}"))
VALID = {"type": "json_valid"}


class Word(BaseModel):
    text: str


class SaysParams(Params):
    word: Word
    how: Literal["softly", "loudly"] = "softly"


class Says(Check):
    """The output says a word."""

    type = "says"
    aliases = ("speaks",)
    Params = SaysParams


@cache
def validator(checks):
    return jsonschema.Draft7Validator(json_schema(checks))


def accepts(spec, checks=()):
    return validator(checks).is_valid(spec)


def refused(spec):
    try:
        return bool(load_verifier(spec).warnings)
    except SpecError:
        return True


def test_the_schema_is_a_valid_draft_07_schema_and_plain_json():
    for checks in [(), (Says,)]:
        schema = json_schema(checks)
        jsonschema.Draft7Validator.check_schema(schema)
        assert schema["$schema"] == "http://json-schema.org/draft-07/schema#"
        assert json.loads(json.dumps(schema)) == schema


def test_there_are_example_specs():
    assert len(FILES) >= 4


def test_the_schema_accepts_every_example_spec():
    for path in FILES:
        assert accepts(read_document(path).data)


def test_the_schema_accepts_every_documented_example_nested_and_flat():
    for check in CHECKS:
        assert check.examples
        for params in (example.params or {} for example in check.examples):
            for name in (check.type, *check.traits.aliases):
                assert accepts({"checks": [{"type": name, "params": params}]})
                assert accepts({"checks": [{"type": name, **params}]})


def test_the_schema_accepts_what_the_loader_reads():
    for spec in [
        {"checks": [VALID]},
        {"$schema": "x", "id": "a b", "name": "", "kind": "native", "passThreshold": 0, "checks": [VALID]},
        {"pass_threshold": 1, "checks": [VALID]},
        {"checks": [{**VALID, "id": "x", "weight": 0.5, "required": True, "negate": True, "params": {}}, VALID]},
        {"checks": [{"type": "contains", "value": "x", "caseSensitive": True}]},
        {"checks": [{"type": "contains", "text": "x", "case_sensitive": True}]},
        {"checks": [{"type": "equals", "params": {"text": "x", "case_sensitive": True}}]},
        {"checks": [{"type": "json_keys", "requiredKeys": ["a"]}]},
        {"checks": [{"type": "json_keys", "required_keys": []}]},
        {"checks": [{"type": "json_keys", "params": {"keys": ["a"]}}]},
        {"checks": [{"type": "max_length", "value": 2.5}]},
    ]:
        assert not refused(spec)
        assert accepts(spec)


def test_the_schema_accepts_an_unknown_type_with_params_of_its_own():
    assert accepts({"checks": [{"type": "nobody_knows", "whatever": 1}, VALID]})


def test_the_schema_rejects_what_the_loader_refuses_or_breaks_on():
    for spec in [
        *([], "checks", {}, {"checks": []}, {"checks": VALID}, {"checks": ["json_valid"]}, {"checks": [{}]}),
        *({"chekcs": [VALID]}, {"checks": [VALID], "passTreshold": 1}, {"checks": [VALID], "title": "x"}),
        *({"checks": [VALID], "passThreshold": value} for value in (1.5, -0.1, "1", True)),
        *({"checks": [VALID], "id": value} for value in ("", "a/b", 5)),
        *({"checks": [VALID], "kind": value} for value in ("in_process", 5)),
        *({"checks": [{**VALID, "weight": value}]} for value in (-1, "2", True, [])),
        *({"checks": [{**VALID, "required": value}]} for value in ("yes", 1)),
        *({"checks": [{**VALID, "id": value}]} for value in ("", "a/b", 5)),
        *({"checks": [{"type": value}]} for value in (5, None, [])),
        *({"checks": [{**VALID, name: 1}]} for name in ("weigth", "tipe", "value")),
        {"checks": [{**VALID, "params": {"value": 1}}]},
        {"checks": [{**VALID, "params": []}]},
        *({"checks": [{"type": "contains", "params": {"value": "x", name: True}}]} for name in ("casesensitive", "id")),
        *({"checks": [{"type": "must_contain", "value": "x", name: True}]} for name in ("casesensitive", "pattern")),
        {"checks": [{"type": "contains", "params": {"value": "x"}, "caseSensitive": True}]},
        {"checks": [{"type": "contains", "value": 5}]},
        {"checks": [{"type": "contains", "value": "x", "caseSensitive": "yes"}]},
        {"checks": [{"type": "min_length", "value": -1}]},
        {"checks": [{"type": "min_length", "params": {"value": "4"}}]},
        {"checks": [{"type": "json_keys", "keys": "a"}]},
        {"checks": [{"type": "json_keys", "keys": ["a", 1]}]},
    ]:
        if isinstance(spec, dict):
            assert refused(spec)
        assert not accepts(spec)


def test_the_schema_knows_a_check_class_of_ones_own():
    for name in ["says", "speaks"]:
        assert accepts({"checks": [{"type": name, "word": {"text": "hi"}, "how": "loudly"}]}, (Says,))
        assert not accepts({"checks": [{"type": name, "how": "shouting"}]}, (Says,))
        assert not accepts({"checks": [{"type": name, "params": {"howw": "loudly"}}]}, (Says,))
        assert accepts({"checks": [{"type": name, "how": "shouting"}]})


def test_the_schema_knows_what_a_check_needs():
    for check, fits in [
        ({"type": "contains"}, False),
        ({"type": "contains", "text": "a"}, True),
        ({"type": "regex", "params": {}}, False),
        ({"type": "json_keys", "params": {"keys": []}}, True),
        ({"type": "contains", "params": None, "value": "a"}, True),
        ({"type": "json_valid", "id": None}, True),
        ({"type": "json_valid", "id": "a\nb"}, False),
    ]:
        assert jsonschema.Draft7Validator(json_schema()).is_valid({"checks": [check]}) is fits


SCHEMA = jsonschema.Draft7Validator(json_schema())
AROUND = [  # fields of a check that the loader reads
    *({"on": source} for source in ("completion", "prompt", "reasoning", "assistant", "toolCalls", "tool_calls")),
    *({"on": source} for source in ({"column": "a.b[0]"}, {"column": "a", "list": True}, {"template": "{a}"})),
    *({"on": on} for on in ([], None, "boxed", ["prompt"], ["prompt", "boxed", "strip"], [{"column": "a"}, "number"])),
    *({name: ["afterThink"]} for name in ("on", "extract", "goldOn", "gold_on")),
    *({"on": name} for name in ("strip_think", "after_think", "boxed", "choice")),
    {"on": [{"after": "A:", "to": "end", "not_found": "keep"}, {"tag": {"name": "answer", "at": "first"}}]},
    {"on": {"after": {"mark": "A:", "notFound": "keep"}, "at": "first"}},
    {"on": {"firstOf": [["boxed"], "number", [], {"first_of": {"chains": [[{"after": "is"}, "lower"]]}}]}},
    {"on": [{"number": None}, {"map": {"yes": "B", "values": "C"}, "default": "D"}, {"line": -1}, {"fence": None}]},
    *({"threshold": value, "penalty": 2} for value in (None, 1e-9, 0.5, 1)),
    *({"gate": True, "notFound": value} for value in (None, "fail", "pass")),
    *({"missing_gold": value} for value in (None, "unscored", "fail", "pass")),
    {"weight": None, "required": None, "negate": None, "gate": None, "penalty": None, "id": None},
    {"when": {"column": "a"}},
    {"when": {"template": "{a}{b}", "matches": "^x", "not": True}},
    *({"when": {"column": "a", **test}} for test in ({"equals": None}, {"in": []}, {"exists": False}, {"not": None})),
    {"when": {"check": {"type": "contains", "value": {"column": "a"}, "on": "boxed"}, "not": True}},
]
WRONG = [  # fields of a check that the loader refuses
    *({"on": on} for on in ("boxd", ["boxed", "prompt"], {"colum": "a"}, {"boxed": 1}, {"after": 5}, "after", {}, 5)),
    *({"on": on} for on in ({"after": "a", "too": "end"}, {"after": {"mark": "a", "too": 1}}, {"boxed": None, "strip": None})),
    *({"on": on} for on in ({"firstOf": []}, {"firstOf": ["boxd"]}, {"firstOf": {"chains": [{"tag": None}]}}, {"tag": "a", "notFound": "pass"})),
    *({"on": on} for on in ({"column": 5}, {"column": "a", "template": "b"}, {"template": "b", "list": True}, {"column": "a", "x": 1})),
    *({"goldOn": on} for on in ("prompt", {"column": "a"}, ["boxd"])),
    *({"threshold": value} for value in ("high", -1, 0, 1.5)),
    *({"notFound": "keep"}, {"missingGold": "no"}, {"gate": 1}, {"penalty": -1}),
    *({"when": when} for when in ("a", {}, {"equals": 3}, {"column": "a", "equal": 3}, {"column": "a", "template": "b"})),
    *({"when": {"column": "a", **test}} for test in ({"in": 3}, {"exists": 1}, {"matches": 3}, {"in": [], "equals": 1}, {"list": True})),
    *({"when": {"check": check}} for check in ({}, "boxed", {"type": "all_of", "checks": [VALID]}, {**VALID, "when": {"column": "a"}})),
    {"when": {"check": VALID, "column": "a"}},
    {"when": {"check": {**VALID, "weigth": 1}}},
]  # fmt: skip


def test_the_schema_accepts_what_the_loader_reads_around_a_check():
    for fields in AROUND:
        spec = {"checks": [{**VALID, **fields}]}
        assert not refused(spec)
        assert SCHEMA.is_valid(spec)


def test_the_schema_rejects_what_the_loader_refuses_around_a_check():
    for fields in WRONG:
        spec = {"checks": [{**VALID, **fields}]}
        assert refused(spec)
        assert not SCHEMA.is_valid(spec)


def _forms(written, name, step):
    """A documented step under another name: its options beside the name, and in an object."""
    if isinstance(written, str):
        return [name, {name: None}]
    (value, *beside) = written.values()
    options = dict(zip([*written][1:], beside, strict=True))
    forms = [{name: value, **options}]
    if step["value"] and (STEPS[name].takes_mapping or not isinstance(value, dict)):
        forms.append({name: None, step["value"]: value, **options})
        forms += [{name: {step["value"]: value, **options}}] * (not STEPS[name].takes_mapping)
    return forms


def test_the_schema_accepts_every_documented_step_in_each_of_its_forms():
    for step in steps_as_json():
        names = [name for name, kind in STEPS.items() if kind.name == step["type"]]
        assert step["examples"] or step["type"] == "firstOf"
        check = "list_equals" if step["list"] else "contains"
        for written in (example["step"] for example in step["examples"]):
            for form in (form for name in names for form in _forms(written, name, step)):
                spec = {"checks": [{"type": check, "value": "a", "on": [form]}]}
                assert not refused(spec), form
                assert SCHEMA.is_valid(spec), form


def test_every_step_and_group_has_words_in_the_schema():
    definitions = json_schema()["definitions"]
    steps = definitions["step"]["anyOf"][1]["properties"]
    assert {STEPS[name] for name in steps} == {*STEP_TYPES}
    assert all(step["description"].endswith((".", "`")) for step in steps.values())
    branches = [branch["then"].get("description") for branch in definitions["check"]["allOf"]]
    assert all(group.__doc__.split(".")[0].replace("``", "`") in str(branches) for group in GROUPS)
    value = next(
        branch["then"]["else"]["properties"]["value"]
        for branch in definitions["check"]["allOf"]
        if branch["if"]["properties"]["type"].get("enum", [""])[0] == "contains"
    )
    assert value["description"] == "The phrase."
    assert {"$ref": "#/definitions/reference"} in value["anyOf"]


def test_the_schema_and_the_loader_agree_on_groups_and_golds():
    for spec, fits in [
        ({"checks": [{"type": "all_of", "checks": [VALID, {"type": "any_of", "checks": [VALID]}]}]}, True),
        ({"checks": [{"type": "at_least", "params": {"k": 1}, "checks": [VALID]}]}, True),
        ({"checks": [{"type": "at_least", "checks": [VALID]}]}, False),
        ({"checks": [{"type": "at_least", "k": {"column": "n"}, "checks": [VALID]}]}, False),
        ({"checks": [{"type": "all_of"}]}, False),
        ({"checks": [{"type": "all_of", "checks": []}]}, False),
        ({"checks": [{"type": "all_of", "checks": [None, VALID]}]}, False),
        ({"checks": [{"type": "all_of", "check": VALID}]}, False),
        ({"checks": [{"type": "all_of", "on": "boxed", "checks": [VALID]}]}, False),
        ({"checks": [{"type": "all_of", "checks": [{**VALID, "gate": True}]}]}, False),
        ({"checks": [{"type": "all_of", "checks": [{**VALID, "gate": False, "penalty": None}]}]}, True),
        ({"checks": [{"type": "all_of", "checks": [{**VALID, "weigth": 1}]}]}, False),
        ({"checks": [{"type": "length_scaled", "check": VALID, "max": 9, "unit": {"column": "n"}}]}, True),
        ({"checks": [{"type": "length_scaled", "check": VALID, "max": 9, "unit": "tokens"}]}, False),
        ({"checks": [{"type": "length_scaled", "checks": [VALID], "max": 9}]}, False),
        ({"checks": [VALID], "combine": "sum", "range": None, "pass_threshold": 7}, True),
        ({"checks": [{**VALID, "weight": -1}], "combine": "sum", "range": [-1, 1], "passThreshold": -1}, True),
        ({"checks": [{"type": "mean", "checks": [{**VALID, "weight": -1}]}], "combine": "mean"}, False),
        ({"checks": [VALID], "combine": "average"}, False),
        ({"checks": [VALID], "range": [0]}, False),
        ({"checks": [{"type": "contains", "value": [{"column": "a"}, "b", {"template": "{c}"}, 5]}]}, True),
        ({"checks": [{"type": "contains", "value": [{"colum": "a"}]}]}, False),
        ({"checks": [{"type": "contains", "value": {"column": "a", "default": 3}}]}, False),
        ({"checks": [{"type": "contains_any", "values": [["a"], {"column": "b"}, ["c", "d"]]}]}, True),
        ({"checks": [{"type": "regex", "pattern": {"column": "p"}}, {"type": "min_length", "value": {"column": "n"}}]}, True),
        ({"checks": [{"type": "json_keys", "keys": [{"column": "k"}]}]}, False),
        ({"checks": [{"type": "nobody", "params": {"x": 1}, "x": 1}, VALID]}, False),
    ]:  # fmt: skip
        assert SCHEMA.is_valid(spec) is fits
        try:
            loads = not any(check.broken for check in load_verifier(spec).warned)
        except SpecError:
            loads = False
        assert loads is fits


def _with_typo(rng, spec):
    """A spec with one letter of one key changed; tables and lists of values are data."""
    objects = []

    def collect(value):
        if isinstance(value, dict):
            objects.append(value)
            for name, inner in value.items():
                if name not in ("map", "in"):
                    collect(inner)
        elif isinstance(value, list):
            for inner in value:
                collect(inner)

    spec = json.loads(json.dumps(spec))
    collect(spec)
    chosen = rng.choice([value for value in objects if value])
    name = rng.choice([*chosen])
    items = [(f"{key[:-1]}q" if key == name else key, value) for key, value in chosen.items()]
    chosen.clear()
    chosen.update(items)
    return spec


def test_the_schema_agrees_with_the_loader_on_drawn_specs_and_typos_in_them():
    accepted = typos = 0
    for seed in range(100):
        rng = random.Random(seed)
        drawn = draw_spec(rng)
        for spec in (drawn, _with_typo(rng, drawn)):
            try:
                loads, problems = not any(check.broken for check in load_verifier(spec).warned), ()
            except SpecError as error:
                loads, problems = False, error.problems
            is_typo = any("unknown field" in problem or "unknown option" in problem for problem in problems)
            if loads or is_typo:
                assert SCHEMA.is_valid(spec) is loads, spec
            accepted, typos = accepted + loads, typos + is_typo
    assert accepted > 40
    assert typos > 40
