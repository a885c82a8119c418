"""The published JSON Schema: valid itself, and of one mind with the loader."""

import json
import random
import re
from functools import cache
from pathlib import Path
from typing import Literal

from fuzz_specs import draw_spec
from jsonschema import Draft7Validator
from jsonschema_rs import Draft7Validator as Validator
from pydantic import BaseModel

from assay import CHECKS, Check, Params, SpecError, json_schema, load_verifier
from assay.checks.groups import GROUPS
from assay.classes import registry
from assay.spec.json_schema import schema_text
from assay.spec.listing import steps_as_json
from assay.steps.registry import STEP_TYPES, STEPS
from assay.system.documents import read_document

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
    return Validator(json_schema(checks))


def accepts(spec, checks=()):
    return validator(checks).is_valid(spec)


def loads(spec):
    """Whether the loader reads a spec in which every check can run."""
    try:
        return not any(check.broken for check in load_verifier(spec).warned)
    except SpecError:
        return False


def test_the_schema_is_a_valid_draft_07_schema_and_plain_json():
    for checks in [(), (Says,)]:
        schema = json_schema(checks)
        Draft7Validator.check_schema(schema)
        assert schema["$schema"] == "http://json-schema.org/draft-07/schema#"
        assert json.loads(json.dumps(schema)) == schema


def test_the_schema_accepts_every_example_spec():
    assert len(FILES) >= 4
    assert all(accepts(read_document(path).data) for path in FILES)


def test_the_schema_of_the_samples_is_that_of_the_code_and_each_of_them_names_it(monkeypatch):
    own = {name: cls for name, cls in registry._REGISTRY.items() if cls.__module__.startswith("assay.")}
    monkeypatch.setattr(registry, "_REGISTRY", own)  # without classes of other tests
    assert (SPECS / "assay.schema.json").read_text("utf-8") == schema_text(), "run `make readme`"
    lines = {
        ".yaml": r"# yaml-language-server: \$schema=(\S+)",
        ".toml": r"#:schema (\S+)",
        ".json": r'{\s+"\$schema": "(\S+)"',
    }
    for path in [*FILES, *SPECS.glob("plugin/*/*.yaml")]:
        named = re.match(lines[path.suffix], path.read_text("utf-8"))
        assert named, path
        assert (path.parent / named[1]).resolve() == SPECS / "assay.schema.json"


def test_the_schema_accepts_every_documented_example_nested_and_flat():
    for check in CHECKS:
        assert check.examples
        for params in (example.params or {} for example in check.examples):
            for name in (check.type, *check.traits.aliases):
                assert accepts({"checks": [{"type": name, "params": params}]})
                assert accepts({"checks": [{"type": name, **params}]})


def test_the_schema_knows_a_check_class_of_ones_own():
    for name in ["says", "speaks"]:
        assert accepts({"checks": [{"type": name, "word": {"text": "hi"}, "how": "loudly"}]}, (Says,))
        assert not accepts({"checks": [{"type": name, "how": "shouting"}]}, (Says,))
        assert not accepts({"checks": [{"type": name, "params": {"howw": "loudly"}}]}, (Says,))
        assert accepts({"checks": [{"type": name, "how": "shouting"}]})


SCHEMA = Validator(json_schema())
FITS = [
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
    {"checks": [{"type": "nobody_knows", "whatever": 1}, VALID]},
    {"checks": [{"type": "contains", "params": None, "value": "a"}]},
    {"checks": [{**VALID, "id": None}]},
    {"checks": [{"type": "all_of", "checks": [VALID, {"type": "any_of", "checks": [VALID]}]}]},
    {"checks": [{"type": "at_least", "params": {"k": 1}, "checks": [VALID]}]},
    {"checks": [{"type": "all_of", "checks": [{**VALID, "gate": False, "penalty": None}]}]},
    {"checks": [{"type": "length_scaled", "check": VALID, "max": 9, "unit": {"column": "n"}}]},
    {"checks": [VALID], "combine": "sum", "range": None, "pass_threshold": 7},
    {"checks": [{**VALID, "weight": -1}], "combine": "sum", "range": [-1, 1], "passThreshold": -1},
    {"checks": [{"type": "contains", "value": [{"column": "a"}, "b", {"template": "{c}"}, 5]}]},
    {"checks": [{"type": "contains_any", "values": [["a"], {"column": "b"}, ["c", "d"]]}]},
    {"checks": [{"type": "regex", "pattern": {"column": "p"}}, {"type": "min_length", "value": {"column": "n"}}]},
]
REFUSED = [
    *({}, {"checks": []}, {"checks": VALID}, {"checks": ["json_valid"]}, {"checks": [{}]}),
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
    *(
        {"checks": [check]}
        for check in ({"type": "contains"}, {"type": "regex", "params": {}}, {**VALID, "id": "a\nb"})
    ),
    {"checks": [{"type": "at_least", "checks": [VALID]}]},
    {"checks": [{"type": "at_least", "k": {"column": "n"}, "checks": [VALID]}]},
    {"checks": [{"type": "all_of"}]},
    {"checks": [{"type": "all_of", "checks": []}]},
    {"checks": [{"type": "all_of", "checks": [None, VALID]}]},
    {"checks": [{"type": "all_of", "check": VALID}]},
    {"checks": [{"type": "all_of", "on": "boxed", "checks": [VALID]}]},
    {"checks": [{"type": "all_of", "checks": [{**VALID, "gate": True}]}]},
    {"checks": [{"type": "all_of", "checks": [{**VALID, "weigth": 1}]}]},
    {"checks": [{"type": "length_scaled", "check": VALID, "max": 9, "unit": "tokens"}]},
    {"checks": [{"type": "length_scaled", "checks": [VALID], "max": 9}]},
    {"checks": [{"type": "mean", "checks": [{**VALID, "weight": -1}]}], "combine": "mean"},
    {"checks": [VALID], "combine": "average"},
    {"checks": [VALID], "range": [0]},
    {"checks": [{"type": "contains", "value": [{"colum": "a"}]}]},
    {"checks": [{"type": "contains", "value": {"column": "a", "default": 3}}]},
    {"checks": [{"type": "json_keys", "keys": [{"column": "k"}]}]},
    {"checks": [{"type": "nobody", "params": {"x": 1}, "x": 1}, VALID]},
]
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


def test_the_schema_is_of_one_mind_with_the_loader():
    fits = [*FITS, *({"checks": [{**VALID, **fields}]} for fields in AROUND)]
    assert [spec for spec in fits if not (SCHEMA.is_valid(spec) and loads(spec))] == []
    wrong = [*REFUSED, *({"checks": [{**VALID, **fields}]} for fields in WRONG)]
    assert [spec for spec in wrong if SCHEMA.is_valid(spec) or loads(spec)] == []
    assert not any(map(SCHEMA.is_valid, ([], "checks")))


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
                assert (loads(spec), SCHEMA.is_valid(spec)) == (True, True), form


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
                fits, problems = not any(check.broken for check in load_verifier(spec).warned), ()
            except SpecError as error:
                fits, problems = False, error.problems
            is_typo = any("unknown field" in problem or "unknown option" in problem for problem in problems)
            if fits or is_typo:
                assert SCHEMA.is_valid(spec) is fits, spec
            accepted, typos = accepted + fits, typos + is_typo
    assert accepted > 40
    assert typos > 40
