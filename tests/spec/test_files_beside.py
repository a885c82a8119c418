"""A JSON Schema in a file beside the spec is part of the spec; no other file is opened."""

import json
from pathlib import Path

import pytest

import assay
from assay.spec.verifier import load_verifier

SCHEMA = {"required": ["name"]}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "specs" / "sub").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    for name in ("secret.json", "specs/person.json", "specs/sub/person.json"):
        Path(name).write_text(json.dumps(SCHEMA))
    return tmp_path


def spec(schema):
    Path("specs/v.json").write_text(json.dumps({"checks": [{"type": "json_schema", "schema": schema}]}))
    return "specs/v.json"


@pytest.mark.parametrize("name", ["person.json", "sub/person.json"])
def test_its_content_is_that_of_the_spec(folder, name):
    verifier = load_verifier(spec(name))
    rewards = assay.score([{"completion": '{"name": 1}'}, {"completion": "{}"}], verifier)["reward"]
    assert rewards.to_list() == [1.0, 0.0]
    assert verifier.sha256 == load_verifier(spec(SCHEMA)).sha256
    assert "person" not in verifier.canonical


@pytest.mark.parametrize("name", ["../secret.json", "/etc/passwd.json", "link.json", "none.json", "C:\\x.json"])
def test_no_other_file_is_opened_and_both_files_are_named(folder, name):
    Path("specs/link.json").symlink_to(folder / "secret.json")
    with pytest.raises(assay.SpecError, match=r"specs/v\.json") as refused:
        load_verifier(spec(name))
    assert f"{name}: " in str(refused.value)


@pytest.mark.parametrize("content", ["{", '{"type": "strng"}'])
def test_what_is_wrong_in_the_file_is_told_with_both_names(folder, content):
    Path("specs/person.json").write_text(content)
    with pytest.raises(assay.SpecError, match=r"specs/v\.json") as refused:
        load_verifier(spec("person.json"), strict=True)
    assert "person.json: " in str(refused.value)


def test_a_spec_without_a_folder_names_no_file(folder):
    with pytest.raises(assay.SpecError, match="has no folder"):
        load_verifier({"checks": [{"type": "json_schema", "schema": "person.json"}]})
