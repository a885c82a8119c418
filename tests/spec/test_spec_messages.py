"""Worked spec errors: the full message of what users get wrong, to be judged as its reader would."""

import math

import pytest

from assay import SpecError, load_verifier

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
    ("title: x\n" + CHECKS, ".yaml", "spec.yaml: 1 problem\n  $.title (line 1): unknown field `title`. Known: id, name, kind, passThreshold, checks."),
    (CHECKS + "  weigth: 2\n", ".yaml", "spec.yaml: 1 problem\n  $.checks[0].weigth (line 3): unknown field `weigth`. Did you mean `weight`?"),
    (CHECKS + "  <<: {weight: 2}\n", ".yaml", "spec.yaml: 1 problem\n  $.checks[0]['<<'] (line 3): unknown field `<<`. Known: id, type, weight, required, negate, params."),
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
    ("checks:\n- json_valid\n", ".yaml", "spec.yaml: 1 problem\n  $.checks[0] (line 2): expected an object, got a string ('json_valid')"),
    ("kind: in_process\n" + CHECKS, ".yaml", "spec.yaml: 2 problems\n  $.checks (line 2): unknown field `checks`. Known: id, name, kind, passThreshold, params.\n  $.kind (line 1): rows carry verifiers of kind in_process: score them without a spec, or with --verifier-name"),
    ("[1]", ".json", "spec.json: 1 problem\n  $ (line 1): expected an object, got a list"),
    ("checks: []\n", ".yaml", "spec.yaml: 1 problem\n  $.checks (line 1): a verifier needs `checks`, a list of at least one"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "suffix", "said"), REFUSED)
def test_a_refusal_says_what_and_where(message, text, suffix, said):
    assert message(text, suffix) == said


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
  $.checks[2] (line 7): expected an object, got a string ('json_valid')"""


def test_all_problems_are_listed_at_once(message):
    assert message(MANY, ".json") == ALL


REFUSED_BY_STRICT = [  # (text, ending, full message)
    ("checks:\n- type: contain\n", ".yaml", 'spec.yaml: 1 problem\n  $.checks[0].type (line 2): unknown check type "contain". Did you mean `contains`?'),
    ('{"checks": [{"type": "contains"}]}', ".json", "spec.json: 1 problem\n  $.checks[0] (line 1): the check cannot run: ValueError: params.value is missing"),
    ("checks:\n- type: regex\n  params:\n    pattern: '['\n", ".yaml", "spec.yaml: 1 problem\n  $.checks[0].params (line 3): the check cannot run: PatternError: unterminated character set at position 0"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "suffix", "said"), REFUSED_BY_STRICT)
def test_strict_says_why_a_check_cannot_run(message, text, suffix, said):
    assert message(text, suffix, strict=True) == said


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("checks:\n- tipe: contains\n", "Did you mean `type`?"),  # a misspelt field is misspelt whatever its name
        ("checks:\n- type: contain\n", "Did you mean `contains`?"),  # else nobody knows why no check can run
        (CHECKS + "- type: nobody_knows\n  weigth: 2\n  params: {}\n", "Did you mean `weight`?"),
    ],
)
def test_a_refusal_helps(message, text, words):
    assert words in message(text, ".yaml")


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("checks:\n- type: contains\n  value: x\n  params: {}\n", "$.checks[0].value (line 3): "),
        (
            "checks:\n- type: equals\n  params: {text: x}\n  case_sensitive: true\n",
            "$.checks[0].case_sensitive (line 4): ",
        ),
        (CHECKS + "  params:\n    indent: 2\n", "$.checks[0].params.indent (line 4): "),
    ],
)
def test_flat_params_beside_an_object_and_params_of_a_check_without_any_are_refused(message, text, start):
    said = message(text, ".yaml")
    assert said.startswith(f"spec.yaml: 1 problem\n  {start}unknown field")
    assert "Known: ." not in said


def test_a_list_that_is_none_is_one_problem(message):
    assert message("checks: json_valid\n", ".yaml").startswith("spec.yaml: 1 problem\n")


@pytest.mark.parametrize("key", ["\\u001b[2J", "\\ud800", "\\u0000", "\\u202e", "a\\nb"])
def test_a_message_holds_no_character_that_a_terminal_obeys_or_utf8_refuses(message, key):
    said = message(f'{{"checks": [{{"type": "json_valid", "{key}": 1}}]}}', ".json")
    assert said.replace("\n", " ").isprintable()
    assert len(said.splitlines()) == 2


# ── checks that cannot run ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("check", "problem"),
    [
        ({"type": "contains"}, "ValueError: params.value is missing"),
        ({"type": "contains", "value": None}, "TypeError: params.value is null, not a string"),
        ({"type": "contains", "value": 5}, "TypeError: params.value is a number (5), not a string"),
        ({"type": "contains", "text": ["a"]}, "TypeError: params.value is a list, not a string"),
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
    ],
    ids=repr,
)  # fmt: skip
def test_a_value_a_check_cannot_use_makes_a_broken_check_which_strict_refuses(check, problem):
    found = load_verifier({"checks": [check]})
    assert found.warnings == (f"verifier/{check['type']}: broken: {problem}; it scores 0.0 on every row",)
    assert (found.checks[0].broken, len(found.runnable)) == (problem, 1)
    with pytest.raises(SpecError) as caught:
        load_verifier({"checks": [check]}, strict=True)
    assert [said.split(": ", 1)[1] for said in caught.value.problems] == [f"the check cannot run: {problem}"]


@pytest.mark.parametrize(
    ("name", "note"),
    [
        ("contain", 'skipped, unknown check type "contain". Did you mean `contains`?'),
        ("nobody", 'skipped, unknown check type "nobody"'),
        ("broken", 'skipped, unknown check type "broken"'),
    ],
)
def test_an_unknown_type_is_skipped_noted_and_left_out_of_the_weights(name, note):
    found = load_verifier({"checks": [{"type": name, "weight": 9, "anything": 1}, VALID]})
    assert (found.checks[0].note, found.warnings) == (note, (f"verifier/{name}: {note}",))
    assert [check.id for check in found.runnable] == ["json_valid"]
