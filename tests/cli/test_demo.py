"""``assay demo`` and ``assay init``: what a new user runs first."""

import json
import re
import zipfile

import polars as pl
import pytest
from cases import ROOT
from jsonschema_rs import Draft7Validator as Validator
from typer.testing import CliRunner

import assay
from assay.cli import scoring
from assay.cli.main import app
from assay.system.documents import read_document


def run(*args, code=0):
    result = CliRunner().invoke(app, args)
    assert result.exit_code == code, result.output
    return result


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_the_demo_scores_the_samples_and_says_what_to_try_next(tmp_path):
    shown = run("demo").stderr
    golden = [
        json.loads(line) for line in (ROOT / "specs" / "refund-quality" / "golden.jsonl").read_text().splitlines()
    ]
    rewards = pl.read_parquet(tmp_path / "rewards.parquet")["reward"].to_list()
    assert rewards == [row["reward"] for row in golden]
    scored = [reward for reward in rewards if reward is not None]
    assert f"mean reward {sum(scored) / len(scored):.3f}" in shown
    assert "rewards: rewards.parquet" in shown
    assert " init verifier.yaml" in shown
    last = shown.splitlines()[-1].split("    #")[0].split()
    run(*last[1:])  # as it is written there
    assert (tmp_path / "rewards.html").read_text("utf-8").startswith("<!DOCTYPE html>")


def test_the_demo_replaces_a_file_only_when_it_is_told_to(tmp_path):
    (tmp_path / "mine.parquet").write_bytes(b"mine")
    run("demo", "--out", "mine.parquet", code=2)
    assert (tmp_path / "mine.parquet").read_bytes() == b"mine"
    run("demo", "--out", "mine.parquet", "--overwrite")
    assert pl.read_parquet(tmp_path / "mine.parquet").height == 100


def test_samples_that_are_not_there_are_named(monkeypatch):
    monkeypatch.setattr(scoring, "_SAMPLES", ())
    assert "This installation has no samples." in run("demo", code=2).stderr


def test_a_wheel_carries_the_samples_and_the_presets(tmp_path):
    builder = pytest.importorskip("hatchling.builders.wheel").WheelBuilder(str(ROOT))
    [wheel] = builder.build(directory=str(tmp_path), versions=["standard"])
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {f"assay/samples/{name}" for name in ("refund-quality.json", "rollouts.jsonl", "tasks.jsonl")} <= names
    assert {"assay/py.typed", "assay/assay.schema.json", "assay/loading/presets/trl.json"} <= names
    assert {f"assay/insight/reports/{name}" for name in ("page.html.j2", "page.css", "page.js", "texts.js")} <= names


@pytest.mark.parametrize("name", ["verifier.yaml", "my refunds: 1.yml"])
def test_a_starter_can_be_used_as_it_is(tmp_path, name):
    assert f"wrote {name}" in run("init", name).stderr
    verifier = assay.load_verifier(tmp_path / name, strict=True)
    assert verifier.id == name.rpartition(".")[0]
    assert len(verifier.checks) == 4
    rewards = assay.score(
        [{"completion": "Your refund was sent on 2026-11-22."}, {"completion": "no"}], tmp_path / name
    )
    assert rewards["passed"].to_list() == [True, False]
    assert run("test", name).stderr == f"{name}: 2 passed\n"


def test_a_starter_names_a_schema_for_editors_which_is_beside_it(tmp_path):
    (tmp_path / "specs").mkdir()
    assert "wrote specs/assay.schema.json, with which editors complete" in run("init", "specs/v.yaml").stderr
    schema = tmp_path / "specs" / "assay.schema.json"
    assert (tmp_path / "specs" / "v.yaml").read_text().startswith(f"# yaml-language-server: $schema={schema.name}\n")
    assert Validator(json.loads(schema.read_text())).is_valid(read_document(tmp_path / "specs" / "v.yaml").data)
    schema.write_text("{}")  # with check types of the user's
    assert schema.name not in run("init", "specs/w.yaml").stderr
    assert schema.read_text() == "{}"


def test_what_a_starter_has_in_comments_can_be_used(tmp_path):
    run("init", "v.yaml")
    text = re.sub(r"(?m)^  # (?=- id:| )", "  ", (tmp_path / "v.yaml").read_text())
    (tmp_path / "v.yaml").write_text(text)
    verifier = assay.load_verifier(tmp_path / "v.yaml", strict=True)
    assert [check.id for check in verifier.checks][4:] == ["answer", "polite"]
    said = "Thanks, your refund was sent on 2026-11-22. Answer: "
    rewards = assay.score([{"completion": said + number, "answer": 3} for number in "32"], verifier)
    assert rewards["check/v/answer"].to_list() == [1.0, 0.0]
    assert rewards["feedback"][1] == 'answer: the number is "2", expected 3'
    assert run("test", "v.yaml").stderr == "v.yaml: 2 passed\n"


def test_a_starter_replaces_nothing(tmp_path):
    (tmp_path / "verifier.yaml").write_text("mine")
    assert "verifier.yaml: already exists." in run("init", code=2).stderr
    assert (tmp_path / "verifier.yaml").read_text() == "mine"


@pytest.mark.parametrize(
    ("path", "message"), [("v.json", "Use a name that ends in .yaml"), ("nowhere/v.yaml", "there is no folder")]
)
def test_a_starter_that_cannot_be_written_is_refused(path, message):
    assert message in run("init", path, code=2).stderr
