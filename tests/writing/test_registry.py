"""Specs by name: registered once, taken wherever a spec is taken, refused where a copy means something else."""

import json

import polars as pl
import pytest
from typer.testing import CliRunner

import assay
from assay.cli.main import app

SPEC = {"id": "refund", "checks": [{"type": "contains", "value": "refund"}]}
ROWS = [{"completion": "a refund"}, {"completion": "no"}]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "refund.json").write_text(json.dumps(SPEC))
    (tmp_path / "rollouts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return tmp_path


def run(*arguments, code=0):
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == code, result.output
    return result.stdout


def test_a_registered_spec_is_taken_by_its_id():
    run("verifiers", "create", "refund.json")
    run("score", "rollouts.jsonl", "--spec", "refund", "--out", "out.parquet")
    assert pl.read_parquet("out.parquet")["reward"].to_list() == [1.0, 0.0]
    assert assay.score(ROWS, "refund@1")["reward"].to_list() == [1.0, 0.0]
    assert run("verifiers", "list").startswith("refund@1  ")
    assert json.loads(run("verifiers", "show", "refund")) == SPEC
    run("verifiers", "list", "refund", code=2)
    run("verifiers", "show", "refnd", code=2)


def test_a_changed_spec_is_a_new_version_and_an_equal_one_is_not(folder):
    registry = assay.Registry()
    assert registry.create("refund.json") == registry.create(SPEC) == "refund@1"
    (folder / "refund.json").write_text(json.dumps(SPEC, indent=4))
    assert registry.create("refund.json") == "refund@1"
    assert (folder / "verifiers/refund/1/refund.json").read_text() == json.dumps(SPEC, indent=4)
    assert registry.create(SPEC | {"passThreshold": 0.5}) == "refund@2"
    assert registry.create(SPEC) == "refund@3"
    assert [spec.name for spec in registry.list()] == ["refund@1", "refund@2", "refund@3"]
    assert [registry.load(name).pass_threshold for name in ("refund", "refund@2", "refund@1")] == [1.0, 0.5, 1.0]
    lock = json.loads((folder / "verifiers/assay.lock").read_text())
    assert lock["refund"]["1"] == {"file": "refund.json", "sha256": assay.load_verifier(SPEC).sha256}


def test_included_specs_are_copied(folder):
    (folder / "parts").mkdir()
    (folder / "parts/json.yaml").write_text("checks: [{type: json_valid}]")
    (folder / "both.yaml").write_text("checks: [{type: spec, path: parts/json.yaml}, {type: contains, value: a}]")
    assert assay.Registry().create("both.yaml") == "both@1"
    (folder / "parts/json.yaml").unlink()
    assert assay.score([{"completion": "[]"}], "both")["reward"].to_list() == [0.5]


def test_the_nearest_registry_is_used(folder, monkeypatch):
    assay.Registry().create("refund.json")
    (folder / "a/b").mkdir(parents=True)
    monkeypatch.chdir(folder / "a/b")
    assert assay.load_verifier("refund").id == "refund"
    assert assay.Registry(folder / "other").list() == []


@pytest.mark.parametrize("change", ["meaning", "gone", "id"])
def test_a_copy_that_was_changed_is_refused(folder, change):
    registry = assay.Registry()
    registry.create("refund.json")
    copy = registry.path("refund")
    changes = {"meaning": {"passThreshold": 0.1}, "id": {"id": "other"}}
    if change == "gone":
        copy.unlink()
    else:
        copy.write_text(json.dumps(SPEC | changes[change]))
    for use in (assay.load_verifier, registry.load, lambda name: assay.score(ROWS, name)):
        with pytest.raises(assay.SpecError, match=r"refund@1: .* is not what was locked"):
            use("refund")


def test_names_that_are_not_registered_are_guessed_and_files_come_first(folder):
    assay.Registry().create("refund.json")
    with pytest.raises(assay.SpecError, match="no such file, and no verifier of that name") as caught:
        assay.load_verifier("refnd")
    assert caught.value.hint == "Did you mean `refund`?"
    with pytest.raises(assay.SpecError) as caught:
        assay.load_verifier("refund@7")
    assert caught.value.hint == "Versions: 1."
    with pytest.raises(assay.SpecError, match="no such file"):
        assay.load_verifier("refund.yaml")
    (folder / "refund").write_text("a file")
    with pytest.raises(assay.SpecError, match="unknown file format"):
        assay.load_verifier("refund")


def test_a_damaged_lock_is_no_traceback(folder):
    (folder / "verifiers").mkdir()
    for lock in ("{", "[]", '{"refund": {"1": {"file": "../../x.json", "sha256": ""}}}', '{"a": {"b": {}}}'):
        (folder / "verifiers/assay.lock").write_text(lock)
        with pytest.raises(assay.SpecError, match="is not a lock"):
            assay.load_verifier("refund")


def test_what_cannot_be_registered_is_refused():
    with pytest.raises(assay.SpecError, match="cannot be a name"):
        assay.Registry().create(SPEC | {"id": "two words"})
    with pytest.raises(assay.SpecError, match="unknown check type"):
        assay.Registry().create({"id": "a", "checks": [{"type": "containz", "value": "a"}]})


def test_batches_of_arrow_take_the_latest_version():
    table = pl.DataFrame(ROWS).to_arrow()
    registry = assay.Registry()
    registry.create(SPEC)
    assert assay.score_batch(table, "refund")["reward"].to_pylist() == [1.0, 0.0]
    registry.create({"id": "refund", "checks": [{"type": "contains", "value": "no"}]})
    assert assay.score_batch(table, "refund")["reward"].to_pylist() == [0.0, 1.0]
