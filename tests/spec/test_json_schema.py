"""The published JSON Schema: valid itself, and of one mind with the loader."""

import json
import tomllib
from pathlib import Path
from typing import Literal

import pytest
import yaml
from pydantic import BaseModel

from assay import CHECKS, Check, Params, SpecError, json_schema, load_verifier

jsonschema = pytest.importorskip("jsonschema")

SPECS = Path(__file__).parents[2] / "specs"
FILES = sorted(path for ending in ("json", "yaml", "toml") for path in SPECS.glob(f"*/*.{ending}"))
READ = {".json": json.loads, ".yaml": yaml.safe_load, ".toml": tomllib.loads}
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


def accepts(spec, checks=()):
    return jsonschema.Draft7Validator(json_schema(checks)).is_valid(spec)


def refused(spec):
    try:
        return bool(load_verifier(spec).warnings)
    except SpecError:
        return True


@pytest.mark.parametrize("checks", [(), (Says,)])
def test_the_schema_is_a_valid_draft_07_schema_and_plain_json(checks):
    schema = json_schema(checks)
    jsonschema.Draft7Validator.check_schema(schema)
    assert schema["$schema"] == "http://json-schema.org/draft-07/schema#"
    assert json.loads(json.dumps(schema)) == schema


def test_there_are_example_specs():
    assert len(FILES) >= 4


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_schema_accepts_every_example_spec(path):
    assert accepts(READ[path.suffix](path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.type)
def test_the_schema_accepts_every_documented_example_nested_and_flat(check):
    assert check.examples
    for params in (example.params or {} for example in check.examples):
        for name in (check.type, *check.aliases):
            assert accepts({"checks": [{"type": name, "params": params}]})
            assert accepts({"checks": [{"type": name, **params}]})


@pytest.mark.parametrize(
    "spec",
    [
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
    ],
    ids=repr,
)
def test_the_schema_accepts_what_the_loader_reads(spec):
    assert not refused(spec)
    assert accepts(spec)


def test_the_schema_accepts_an_unknown_type_with_params_of_its_own():
    assert accepts({"checks": [{"type": "nobody_knows", "whatever": 1}, VALID]})


@pytest.mark.parametrize(
    "spec",
    [
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
    ],
    ids=repr,
)
def test_the_schema_rejects_what_the_loader_refuses_or_breaks_on(spec):
    if isinstance(spec, dict):
        assert refused(spec)
    assert not accepts(spec)


@pytest.mark.parametrize("name", ["says", "speaks"])
def test_the_schema_knows_a_check_class_of_ones_own(name):
    assert accepts({"checks": [{"type": name, "word": {"text": "hi"}, "how": "loudly"}]}, [Says])
    assert not accepts({"checks": [{"type": name, "how": "shouting"}]}, [Says])
    assert not accepts({"checks": [{"type": name, "params": {"howw": "loudly"}}]}, [Says])
    assert accepts({"checks": [{"type": name, "how": "shouting"}]})


@pytest.mark.parametrize(
    ("check", "fits"),
    [
        ({"type": "contains"}, False),
        ({"type": "contains", "text": "a"}, True),
        ({"type": "regex", "params": {}}, False),
        ({"type": "json_keys", "params": {"keys": []}}, True),
        ({"type": "contains", "params": None, "value": "a"}, True),
        ({"type": "json_valid", "id": None}, True),
        ({"type": "json_valid", "id": "a\nb"}, False),
    ],
)
def test_the_schema_knows_what_a_check_needs(check, fits):
    assert jsonschema.Draft7Validator(json_schema()).is_valid({"checks": [check]}) is fits
