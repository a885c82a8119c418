"""Verifiers from specs: one meaning in every spelling, one canonical form, and what is refused."""

import json
import pickle
from typing import ClassVar

import pytest
import yaml

from assay import Check, Params, SpecError, load_verifier, score
from assay.spec import reader as specread
from assay.spec.verifier import load_verifiers

VALID = {"type": "json_valid"}


class ShoutsParams(Params):
    spellings: ClassVar = {"least": "at_least"}

    at_least: int = 1


class Shouts(Check):
    """The output has at least so many exclamation marks."""

    type = "shouts"
    aliases = ("yells",)
    Params = ShoutsParams

    def row(self, row):
        return float(row["completion"].count("!") >= self.params.at_least)


def named(name):
    """Another check class that calls itself ``name``."""
    return type("Other", (Check,), {"type": name, "row": lambda *_: 1.0})


def spec(*checks, **fields):
    return {**fields, "checks": list(checks)}


WRITTEN = {
    "v.json": """{"id": "v", "kind": "native", "pass_threshold": 0.5, "checks": [
        {"type": "contains", "weight": 2, "params": {"value": "é", "caseSensitive": true}},
        {"id": "keys", "type": "json_keys", "keys": ["a"], "required": true, "negate": true}]}""",
    "v.yaml": """
passThreshold: 0.5
checks:
  - {type: contains, weight: 2, text: é, case_sensitive: true}
  - id: keys
    type: json_keys
    required: true
    negate: true
    params: {required_keys: [a]}
""",
    "v.toml": """
id = "v"
passThreshold = 0.5
[[checks]]
type = "contains"
weight = 2.0
params = {text = "é", case_sensitive = true}
[[checks]]
id = "keys"
type = "json_keys"
required = true
negate = true
requiredKeys = ["a"]
""",
}
CANONICAL = (
    '{"checks":['
    '{"id":"contains","negate":false,"params":{"caseSensitive":true,"value":"\\u00e9"},"required":false,"type":"contains","weight":2.0},'
    '{"id":"keys","negate":true,"params":{"requiredKeys":["a"]},"required":true,"type":"json_keys","weight":1.0}'
    '],"id":"v","kind":"native","name":"v","passThreshold":0.5}'
)


def test_json_yaml_toml_and_a_dict_give_the_same_verifier(tmp_path):
    for name, text in WRITTEN.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        found = load_verifier(tmp_path / name)
        of_dict = load_verifier(json.loads(WRITTEN["v.json"]))
        assert found.canonical == CANONICAL
        assert found.sha256 == "db021312702b2fd8831b05a21a8879874e00f533489079a149cfc061c8be5ad2"
        assert (found, hash(found), found.sha256) == (of_dict, hash(of_dict), of_dict.sha256)
        assert load_verifier(json.loads(CANONICAL)) == found


def test_a_check_may_be_spelt_in_several_ways():
    for check, same in [
        ({"type": "contains", "value": "a"}, {"type": "contains", "params": {"value": "a"}}),
        ({"type": "contains", "value": "a"}, {"type": "contains", "value": "a", "params": None}),
        ({"type": "contains", "value": "a"}, {"type": "contains", "text": "a", "caseSensitive": False}),
        ({"type": "contains", "value": "a"}, {"type": "contains", "id": None, "weight": None, "value": "a"}),
        ({"type": "contains", "value": "a"}, {"type": "contains", "value": "a", "required": False, "negate": None}),
        ({"type": "equals", "value": "a", "caseSensitive": True}, {"type": "equals", "text": "a", "case_sensitive": True}),
        ({"type": "json_keys", "keys": ["a"]}, {"type": "json_keys", "params": {"required_keys": ["a"]}}),
        ({"type": "json_keys", "keys": ["a"]}, {"type": "json_keys", "requiredKeys": ("a",)}),
        ({"type": "json_valid", "weight": 1}, {"type": "json_valid", "params": {}}),
        ({"type": "contains", "id": "x", "value": "a"}, {"type": "must_contain", "id": "x", "value": "a"}),
        ({"type": "not_contains", "id": "x", "value": "a"}, {"type": "must_not_contain", "id": "x", "value": "a"}),
        ({"type": "equals", "id": "x", "value": "a"}, {"type": "exact_match", "id": "x", "value": "a"}),
        ({"type": "shouts", "id": "x", "atLeast": 2}, {"type": "yells", "id": "x", "params": {"least": 2}}),
    ]:  # fmt: skip
        one, other = (load_verifier(spec(written), checks=[Shouts]) for written in (check, same))
        assert (one.canonical, one.sha256, one) == (other.canonical, other.sha256, other)
        assert one.warnings == other.warnings == ()


BASE = {"id": "v", "checks": [{"id": "a", "type": "contains", "value": "x"}, {"id": "b", "type": "json_valid"}]}


def changed(at=None, **fields):
    if at is None:
        return {**BASE, **fields}
    return {**BASE, "checks": [{**check, **(fields if at == n else {})} for n, check in enumerate(BASE["checks"])]}


def test_whatever_changes_the_rewards_changes_the_canonical_form_and_its_hash():
    for other in [
        *(changed(id="w"), changed(name="w"), changed(passThreshold=0.5), changed(checks=BASE["checks"][::-1])),
        *(changed(0, id="z"), changed(0, weight=2), changed(0, required=True), changed(0, negate=True)),
        *(changed(0, value="X"), changed(0, caseSensitive=True), changed(0, type="equals"), changed(0, value=1)),
        *(changed(0, type="nobody_knows"), changed(1, params=[]), changed(checks=BASE["checks"][:1])),
    ]:
        one, two = load_verifier(BASE), load_verifier(other)
        assert one != two
        assert one.canonical != two.canonical
        assert one.sha256 != two.sha256


def test_a_date_that_breaks_a_check_is_not_hashed_as_the_text_that_does_not(tmp_path):
    (tmp_path / "date.toml").write_text('id = "v"\n[[checks]]\ntype = "regex"\npattern = 2024-01-01\n')
    date = load_verifier(tmp_path / "date.toml")
    text = load_verifier({"id": "v", "checks": [{"type": "regex", "pattern": "2024-01-01"}]})
    assert (len(date.warnings), len(text.warnings)) == (1, 0)
    assert date.sha256 != text.sha256


def test_a_verifier_is_a_key_and_survives_pickling():
    one = load_verifier(spec({"type": "shouts"}, {"type": "regex", "pattern": "["}, {"type": "zz"}), checks=[Shouts])
    back = pickle.loads(pickle.dumps(one))  # noqa: S301
    assert {one: 1}[back] == 1
    assert (back.canonical, back.warnings) == (one.canonical, one.warnings)


def test_the_id_of_a_file_is_its_stem_and_the_name_is_the_id(tmp_path):
    for name in ["refund quality.json", "v.2.json", "Ünï.json"]:
        (tmp_path / name).write_text(json.dumps(spec(VALID)))
        found = load_verifier(str(tmp_path / name))
        assert (found.id, found.name, found.source) == (name[:-5], name[:-5], str(tmp_path / name))


def test_the_id_of_a_dict_is_verifier_unless_it_says():
    assert (load_verifier(spec(VALID)).id, load_verifier(spec(VALID)).source) == ("verifier", "")
    assert (load_verifier(spec(VALID, id="x")).id, load_verifier(spec(VALID, id="x")).name) == ("x", "x")
    assert load_verifier(spec(VALID, id="x", name="Y")).name == "Y"


def test_a_check_without_an_id_is_called_by_its_type():
    for given, ids in [
        ((None, None, None), ["json_valid", "json_valid-2", "json_valid-3"]),
        ((None, "x", None), ["json_valid", "x", "json_valid-2"]),
        ((None, "json_valid", None), ["json_valid-2", "json_valid", "json_valid-3"]),
        (("json_valid-2", None, None), ["json_valid-2", "json_valid", "json_valid-3"]),
    ]:
        found = load_verifier(spec(*({**VALID, "id": ident} for ident in given)))
        assert [check.id for check in found.checks] == ids


def test_names_of_many_checks_are_found_without_trying_all(monkeypatch):
    tried = []
    monkeypatch.setattr(specread.itertools, "count", lambda first: (tried.append(n) or n for n in range(first, 10**6)))
    assert load_verifier(spec(*[VALID] * 500)).checks[-1].id == "json_valid-500"
    assert len(tried) == 500


def test_types_are_counted_apart_and_an_alias_names_its_check():
    found = load_verifier(spec({"type": "must_contain", "value": ""}, VALID, {"type": "contains", "value": ""}, VALID))
    assert [check.id for check in found.checks] == ["must_contain", "json_valid", "contains", "json_valid-2"]


def test_a_check_class_of_ones_own_is_known_by_its_type():
    found = load_verifier(spec({"type": "yells", "atLeast": 2}), checks=[Shouts, Shouts])
    assert score([{"completion": "!!"}, {"completion": "!"}], found)["reward"].to_list() == [1.0, 0.0]


def test_two_check_classes_of_one_name_are_refused():
    for classes, said in [
        ([named("contains")], 'Two check types are called "contains": Contains and Other.'),
        ([named("exact_match")], 'Two check types are called "exact_match": Equals and Other.'),
        ([Shouts, named("yells")], 'Two check types are called "yells": Shouts and Other.'),
    ]:
        with pytest.raises(SpecError) as caught:
            load_verifier(spec(VALID), checks=classes)
        assert str(caught.value) == said


def test_verifiers_of_two_classes_of_one_name_differ():
    one, other = (load_verifier(spec({"type": "mine"}), checks=[named("mine")]) for _ in range(2))
    assert one.canonical == other.canonical
    assert one != other


def test_a_check_class_without_a_type_is_refused_in_words():
    with pytest.raises(SpecError, match="Check"):
        load_verifier(spec(VALID), checks=[Check])


def test_one_source_or_several_give_verifiers_in_order():
    a, b = spec(VALID, id="a"), spec(VALID, id="b")
    assert [one.id for one in load_verifiers(a)] == ["a"]
    assert [one.id for one in load_verifiers([load_verifier(b), a])] == ["b", "a"]


def test_two_verifiers_of_one_id_are_refused_even_when_they_are_one_object(tmp_path):
    (tmp_path / "verifier.json").write_text(json.dumps(spec(VALID)))
    found = load_verifier(spec(VALID))
    for pair in ([found, spec(VALID)], [found, tmp_path / "verifier.json"], [found, found]):
        with pytest.raises(SpecError, match='Two verifiers have the id "verifier"'):
            load_verifiers(pair)


def test_what_is_wrong_with_several_verifiers_is_said_together():
    with pytest.raises(SpecError) as caught:
        load_verifiers([spec(VALID, x=1), spec(VALID, y=1), spec(VALID)])
    assert [problem.split(":")[0] for problem in caught.value.problems] == ["$.x", "$.y"]


def test_strict_also_refuses_a_verifier_that_is_already_loaded():
    for check in [{"type": "regex", "pattern": "["}, {"type": "nobody_knows"}]:
        with pytest.raises(SpecError):
            load_verifier(load_verifier(spec(check, VALID)), strict=True)


def test_weights_are_finite_numbers_of_which_some_may_be_0():
    for weights in [(0, 1), (0.0, 1e-300), (1, 1e308), (10**22, 2), (None, 0)]:
        found = load_verifier(spec(*({**VALID, "weight": weight} for weight in weights)))
        assert [check.weight for check in found.checks] == [1.0 if weight is None else weight for weight in weights]


def test_a_pass_threshold_of_0_is_honoured():
    for given, read in [(0, 0.0), (1, 1.0), (0.9, 0.9), (None, 1.0)]:
        found = load_verifier(spec(VALID, passThreshold=given))
        assert (type(found.pass_threshold), found.pass_threshold) == (float, read)


def test_a_dict_nested_too_deeply_or_holding_itself_is_refused():
    deep, loop = [], spec()
    for _ in range(100_000):
        deep = [deep]
    loop["checks"].append({"type": "contains", "params": loop})
    for source in (spec(*deep), loop):
        with pytest.raises(SpecError, match="nested too deeply"):
            load_verifier(source)


def test_a_bare_on_that_a_reader_of_yaml_1_1_took_for_true_is_on():
    text = "checks: [{type: number, value: 4, on: [boxed]}]"
    data = yaml.safe_load(text)
    assert True in data["checks"][0]
    assert load_verifier(data) == load_verifier({"checks": [{"type": "number", "value": 4, "on": ["boxed"]}]})
    with pytest.raises(SpecError, match="unknown field `True`"):
        load_verifier({True: 1, "checks": data["checks"]})
