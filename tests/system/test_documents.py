"""Spec files as text: what YAML, JSON and TOML may say, what is refused, and on which line each value stands."""

import re
from pathlib import Path

import pytest
from cases import each

from assay import SpecError
from assay.system.documents import parse_text, read_document


def data(text, suffix):
    return parse_text(text, suffix, "spec" + suffix).data


def refusal(text, suffix):
    with pytest.raises(SpecError) as caught:
        parse_text(text, suffix, "spec" + suffix)
    return str(caught.value)


@each(
    "written",
    [
        *("no", "No", "NO", "yes", "Yes", "on", "off", "y", "n"),
        *("1:30", "1:30:00", "0x10", "0o17", "0b1", "1_000", "2024-01-01", "2024-01-01T00:00:00Z"),
        *(".inf", "-.inf", ".nan", "1e", ".", "-", "+", "=", "<<", "nULL", "tRUE", "١"),
    ],
)
def test_a_yaml_scalar_that_looks_like_text_is_text(written):
    assert data(f"v: [{written}]\n", ".yaml") == {"v": [written]}


@each(
    ("written", "value"),
    [
        *(("true", True), ("True", True), ("TRUE", True), ("false", False), ("FALSE", False)),
        *(("null", None), ("Null", None), ("~", None), ("''", "")),
        *(("0", 0), ("010", 10), ("+5", 5), ("-7", -7), ("007", 7)),
        *(("1.5", 1.5), (".5", 0.5), ("5.", 5.0), ("1e3", 1000.0), ("-1.5E-1", -0.15), ("1e400", float("inf"))),
        *(('"true"', "true"), ("'1'", "1"), ("!!str 5", "5"), ('"\\u00e9"', "é")),
    ],
)
def test_a_yaml_scalar_is_read_as_the_core_schema_reads_it(written, value):
    found = data(f"v: {written}\n", ".yaml")["v"]
    assert (type(found), found) == (type(value), value)


def test_a_yaml_value_left_empty_is_null():
    assert data("v:\nw: 1\n", ".yaml") == {"v": None, "w": 1}


def test_yaml_keys_are_text_whatever_they_look_like():
    assert data("1: a\ntrue: b\n~: c\nno: d\n", ".yaml") == {"1": "a", "true": "b", "~": "c", "no": "d"}


BOMB = "a0: &a0 [lol]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 40))


@each(
    ("text", "said"),
    [
        ("a: 1\nb: 2\na: 3\n", 'spec.yaml:3: the key "a" appears twice in one mapping.'),
        ("- {a: 1,\n   a: 2}\n", 'spec.yaml:2: the key "a" appears twice in one mapping.'),
        ("a: 1\n'a': 2\n", 'spec.yaml:2: the key "a" appears twice in one mapping.'),
        ("a: &x 1\nb: *x\n", "spec.yaml:2: the alias *x is not allowed; write the value out."),
        ("a: &x {b: 1}\nc:\n  <<: *x\n", "spec.yaml:3: the alias *x is not allowed; write the value out."),
        (BOMB, "spec.yaml:2: the alias *a0 is not allowed; write the value out."),
        ("a: &x [*x]\n", "spec.yaml:1: the alias *x is not allowed; write the value out."),
        ("a:\n  !!binary aGk=\n", "spec.yaml:2: the tag tag:yaml.org,2002:binary is not allowed."),
        ("a: !!timestamp 2024-01-01\n", "spec.yaml:1: the tag tag:yaml.org,2002:timestamp is not allowed."),
        ("!!set {a, b}\n", "spec.yaml:1: the tag tag:yaml.org,2002:set is not allowed."),
        ("a: !mine x\n", "spec.yaml:1: the tag !mine is not allowed."),
        (
            "a: [1\n",
            "spec.yaml:1: the [ that opens here is not closed, or a comma is missing: put a text with brackets, commas or colons in quotes.",
        ),
        ("a: b: c\n", "spec.yaml:1: a text with a colon has to stand in quotes: `a: 'b: c'`."),
        ("a: 1\n\tb: 2\n", "spec.yaml:2: a tab: indent with spaces."),
    ],
)
def test_yaml_that_would_be_read_silently_wrong_is_refused_with_its_line(text, said):
    assert refusal(text, ".yaml") == said


@pytest.mark.parametrize("call", ["object/apply:os.mkdir", "object:os.mkdir", "object/new:os.mkdir"])
def test_a_python_tag_is_refused_and_nothing_is_called(call, tmp_path):
    said = refusal(f"a: !!python/{call} ['{tmp_path}/made']\n", ".yaml")
    assert said == f"spec.yaml:1: the tag tag:yaml.org,2002:python/{call} is not allowed."
    assert not (tmp_path / "made").exists()


def test_a_merge_key_is_a_key_like_any_other():
    assert data("a:\n  <<: {b: 1}\n", ".yaml") == {"a": {"<<": {"b": 1}}}


@each("text", ["a: 1\n---\nb: 2\n", "--- {}\n--- {}\n"])
def test_several_yaml_documents_are_refused_in_words(text):
    said = refusal(text, ".yaml")
    assert said.startswith("spec.yaml:2: ")
    assert "one document" in said or "single document" in said


@each("text", ["? [a, b]\n: 1\n", "? {a: b}\n: 1\n", "a: {[b]: 1}\n"])
def test_a_yaml_key_that_is_not_a_scalar_is_refused(text):
    assert refusal(text, ".yaml") == "spec.yaml:1: a key must be a string; put a text with braces in quotes."


@each("value", ["!!bool maybe", "!!int abc", "!!float abc", '"\x00"', "\ufffe", "9" * 5000])
def test_a_yaml_value_that_cannot_be_read_is_refused_with_its_line(value):
    said = refusal(f"v: 1\nw: {value}\n", ".yaml")
    assert said.startswith("spec.yaml:2: ")
    assert "sys." not in said


@each("text", ["", "\n", "# a comment\n", "---\n", "null\n"])
def test_an_empty_yaml_file_says_null(text):
    assert data(text, ".yaml") is None


@each(
    ("text", "start"),
    [
        ('{"a": 1,\n}', "spec.json:"),
        ('{"a": 1\n "b": 2}', "spec.json:2: not valid JSON: Expecting ',' delimiter (column 2)."),
        ("{'a': 1}", "spec.json:1: not valid JSON: Expecting property name enclosed in double quotes (column 2)."),
        ('{"a": "\x00"}', "spec.json:1: not valid JSON: Invalid control character at (column 8)."),
        ('{"a": 1} x', "spec.json:1: not valid JSON: Extra data (column 10)."),
        ("", "spec.json:1: not valid JSON: Expecting value (column 1)."),
        ("// no comments\n{}", "spec.json:1: not valid JSON: Expecting value (column 1)."),
    ],
)
def test_what_is_not_json_is_refused_with_its_line_and_column(text, start):
    assert refusal(text, ".json").startswith(start)


@each("text", ['{\n"a": 1,\n"a": 2}', '{\n"b":\n{"a": 1, "a": 1}}'])
def test_a_json_key_given_twice_is_refused_with_its_line(text):
    said = refusal(text, ".json")
    assert 'the key "a" appears twice' in said
    assert said.startswith("spec.json:3: ")


@each(
    ("text", "said"),
    [
        ("a = 1\na = 2\n", "spec.toml:2: not valid TOML: Cannot overwrite a value (column 6)."),
        ("a =\n", "spec.toml:1: not valid TOML: Invalid value (column 4)."),
        ('a = "\x00"\n', "spec.toml:1: not valid TOML: Illegal character '\\x00' (column 6)."),
    ],
)
def test_what_is_not_toml_is_refused_with_its_line_and_column(text, said):
    assert refusal(text, ".toml") == said


@each(
    ("text", "suffix"),
    [
        ("[" * 10_000 + "]" * 10_000, ".yaml"),
        ("- " * 10_000, ".yaml"),
        ("[" * 10_000 + "]" * 10_000, ".json"),
        ('{"a":' * 10_000 + "1" + "}" * 10_000, ".json"),
        ("a = " + "[" * 10_000 + "]" * 10_000, ".toml"),
    ],
    ids=["yaml brackets", "yaml dashes", "json brackets", "json objects", "toml brackets"],
)
def test_10_000_levels_are_refused_and_do_not_crash(text, suffix):
    assert re.fullmatch(rf"spec\{suffix}(:1)?: nested too deeply( \(past 100 levels\))?\.", refusal(text, suffix))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        *(("v.yaml", b"a: x\r\nb: 1\r\n"), ("v.yml", b"a: x\nb: 1"), ("v.YAML", b"{a: x, b: 1}")),
        *(("v.json", b'{"a": "x",\r\n"b": 1}'), ("v.toml", b'a = "x"\r\nb = 1\r\n')),
    ],
)
@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"], ids=["plain", "BOM"])
def test_line_ends_a_bom_and_the_case_of_the_ending_do_not_matter(tmp_path, name, content, bom):
    (tmp_path / name).write_bytes(bom + content)
    assert read_document(tmp_path / name).data == {"a": "x", "b": 1}


@pytest.mark.parametrize("name", ["v.yaml", "v.json", "v.toml"])
@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"a: \xff", "{}: not UTF-8 (byte 3).\n\nSave the file as UTF-8."),
        ("a: é".encode("utf-16"), "{}: not UTF-8 (byte 0).\n\nSave the file as UTF-8."),
        (b"#" * (4 * 2**20 + 1), "{}: larger than 4 MiB.\n\nA verifier file is small; is this another file?"),
    ],
    ids=["bytes", "UTF-16", "too large"],
)
def test_a_file_that_is_not_text_or_too_large_is_refused(tmp_path, name, content, said):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(SpecError) as caught:
        read_document(tmp_path / name)
    assert str(caught.value) == said.format(tmp_path / name)


def test_a_file_of_exactly_the_largest_size_is_read(tmp_path):
    (tmp_path / "v.toml").write_bytes(b"a = 1\n#" + b"x" * (4 * 2**20 - 7))
    assert read_document(tmp_path / "v.toml").data == {"a": 1}


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "v.txt",
            "{}: unknown file format.\n\nA verifier file ends in .json, .yaml, .yml, .toml; pass a verifier written in Python as a dict.",
        ),
        ("v", "{}: no such file."),
        ("missing.json", "{}: no such file."),
        ("folder.json", "{}: is a folder."),
        ("folder.json/v.json", "{}: no such file."),
        ("v" * 5_000, "{}: File name too long."),
    ],
    ids=lambda value: value[:20],
)
def test_a_path_that_cannot_be_read_is_refused_by_name(tmp_path, name, said):
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(SpecError) as caught:
        read_document(tmp_path / name)
    assert str(caught.value) == said.format(tmp_path / name)


@each("suffix", [".json", ".yaml", ".toml"])
def test_a_number_of_very_many_digits_is_refused_in_words_for_people(suffix):
    text = {".json": '{"a": %s}', ".yaml": "a: %s", ".toml": "a = %s"}[suffix] % ("9" * 100_000)
    assert "a number with too many digits." in refusal(text, suffix)


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="there is no file without an end")
def test_a_file_without_an_end_is_no_spec(tmp_path):
    (tmp_path / "v.json").symlink_to("/dev/zero")
    with pytest.raises(SpecError, match="is a device"):
        read_document(tmp_path / "v.json")


def test_a_file_that_is_too_large_is_not_read(tmp_path):
    with (tmp_path / "v.json").open("wb") as file:
        file.truncate(5 << 20)
    with pytest.raises(SpecError, match="larger than 4 MiB"):
        read_document(tmp_path / "v.json")


def test_a_path_no_file_can_have_is_refused():
    with pytest.raises(SpecError):
        read_document(Path("a\x00b.json"))


@each(("text", "suffix"), [("a:\n  - b: 1\n  -\n    c: 2\n", ".yaml"), ('{"a":\n[{"b": 1},\n\n{"c": 2}]}', ".json")])
def test_the_line_of_every_value_is_known(text, suffix):
    lines = parse_text(text, suffix, "spec").lines
    assert (lines[("a",)], lines[("a", 0, "b")], lines[("a", 1, "c")]) == (1, 2, 4)


@each(
    ("indent", "value"),
    [
        *(("", "x"), ("  ", "x"), ("\t", "x")),
        *(("", "\\ud83d\\ude00\\/"), ("", "😀"), ("", "a: b # c"), ("", "\x7f"), ("", "\x85"), ("", "\u2028")),
    ],
    ids=ascii,
)
def test_json_lines_are_known_whatever_the_indent_and_the_text(indent, value):
    text = f'{{\n{indent}"a": "{value}",\n{indent}"b": 1\n}}'
    assert parse_text(text, ".json", "spec").lines.get(("b",)) == 3
