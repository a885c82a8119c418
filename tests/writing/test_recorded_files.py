"""What a footer names: not fetched, not opened outside of the folders one works with, and only while it is what was recorded."""

import json
import os
import shutil
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner
from web import Web

import assay
from assay.cli.main import app
from assay.errors import InputError
from assay.writing.recorded_files import recorded_files

SPEC = {"id": "v", "checks": [{"id": "a", "type": "contains", "value": {"column": "answer"}}]}
PRIVATE = "the combination of the safe"
COMMANDS = {
    "verify": "verify desk/out.parquet",
    "rescore": "diff desk/out.parquet --rescore",
    "diff": "diff desk/out.parquet desk/other.parquet",
    "show": "show desk/out.parquet",
    "report": "report desk/out.parquet",
    "groups": "groups desk/out.parquet",
    "tripwire": "tripwire desk/out.parquet --warn-only",
    "whatif": "whatif desk/out.parquet --set a=2",
    "reuse": "score desk/in.parquet -s desk/v.json --tasks desk/tasks.jsonl --reuse desk/out.parquet",
}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A folder ``away/desk`` with rollouts, tasks and results, and a secret beside ``away``."""
    folder = tmp_path_factory.mktemp("written")
    desk = folder / "away" / "desk"
    desk.mkdir(parents=True)
    rows = pl.DataFrame({"task_id": ["t", "t"], "step": [0, 1], "completion": ["a refund", "no"]})
    rows.write_parquet(desk / "in.parquet")
    rows.with_columns(completion=pl.lit(PRIVATE)).write_parquet(folder / "secret.parquet")
    pl.DataFrame({"task_id": ["t"], "answer": ["refund"]}).write_ndjson(desk / "tasks.jsonl")
    (desk / "v.json").write_text(json.dumps(SPEC))
    options = {"tasks": desk / "tasks.jsonl", "lenient": True}
    for name, change in (("out", {}), ("other", {"negate": True})):
        spec = {**SPEC, "checks": [{**SPEC["checks"][0], **change}]}
        assay.score_file(desk / "in.parquet", spec, desk / f"{name}.parquet", **options)
    return folder


@pytest.fixture
def away(written, tmp_path, monkeypatch):
    """A copy of the folder to work in: the current folder is ``away``."""
    shutil.copytree(written, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path / "away")
    return tmp_path / "away"


def state(path):
    status = Path(path).stat()
    return {"size": status.st_size, "modified": status.st_mtime_ns}


def named(key, name, **entry):
    """Let the footer of the result name a file."""
    path = Path("desk/out.parquet")
    footer = assay.read_provenance(path)
    entries = {"inputs": state("desk/in.parquet"), "tasks": state("desk/tasks.jsonl")}
    names = {"inputs": "desk/in.parquet", "tasks": "desk/tasks.jsonl", key: name}
    for field, known in entries.items():
        footer[field] = [{"name": names[field], "rows": 2, **known, **(entry if field == key else {})}]
    pl.read_parquet(path).write_parquet(path, metadata={"assay": json.dumps(footer)})


def run(command, *more):
    done = CliRunner().invoke(app, [*COMMANDS[command].split(), *more])
    assert done.exit_code in (0, 2, 3), done.exception
    assert PRIVATE not in done.stdout + done.stderr
    return done


def test_what_is_recorded_and_unchanged_is_opened(away):
    named("inputs", "desk/in.parquet")
    assert run("verify").exit_code == 0
    assert run("rescore").exit_code == 0
    assert "│ a refund" in run("show").stdout


SCHEMES = ("http", "HTTPS", "s3", "gs", "az", "abfss", "hf", "file", "ftp", "x-odd")


@pytest.mark.parametrize(("key", "option"), [("inputs", "--rollouts"), ("tasks", "--tasks")])
def test_a_url_is_fetched_only_if_the_user_names_it(away, key, option):
    with Web({}) as web:
        for scheme in SCHEMES:
            named(key, f"{scheme}://{web.host}/rows.parquet")
            for command in COMMANDS if scheme == "http" else ("verify",):
                done = run(command)
                if command in ("verify", "rescore"):
                    assert (done.exit_code, "is not fetched" in done.stderr) == (2, True), scheme
                    assert f"{option} URL" in done.stderr
                    assert ("in the order of the run" in done.stderr) is (key == "inputs")
        assert web.requests == []
        named("inputs", f"{web.url}/rows.parquet")
        assert run("verify", "--rollouts", f"{web.url}/rows.parquet").exit_code == 2
        assert web.requests != []


def test_a_file_is_not_opened_elsewhere(away):
    """The record may be true: whoever writes a footer may know a size and a time, and a link leads anywhere."""
    secret = away.parent / "secret.parquet"
    Path("desk/link.parquet").symlink_to(secret)
    Path("desk/up").symlink_to(away.parent)
    inside = ("desk/link.parquet", "desk/up/secret.parquet", "desk/../../secret.parquet")
    for name in ("../secret.parquet", str(secret), *inside):
        named("inputs", name, **state(secret))
        for command in ("verify", "rescore", "show", "report", "diff") if name == inside[0] else ("verify",):
            done = run(command)
            if command in ("verify", "rescore"):
                words = ("lies outside" in done.stderr, "--rollouts PATH" in done.stderr)
                assert (done.exit_code, *words) == (2, True, True)
            elif command != "diff":
                assert "lies outside" in done.stdout + done.stderr


def test_folders_that_the_user_names_are_worked_with(away, monkeypatch):
    named("tasks", str(away / "desk" / "tasks.jsonl"), **state("desk/tasks.jsonl"))
    elsewhere = away.parent / "elsewhere"
    elsewhere.mkdir()
    shutil.copy2("desk/out.parquet", elsewhere)
    monkeypatch.chdir(elsewhere)
    with pytest.raises(InputError, match=r"tasks\.jsonl: .* lies outside"):
        assay.verify("out.parquet")
    for rollouts in (away / "desk" / "in.parquet", [away / "desk" / "in.parquet"], str(away / "desk" / "in.par*")):
        assert assay.verify("out.parquet", rollouts=rollouts).intact


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="what is named is of Unix")
def test_what_is_no_file_is_not_opened(away):
    os.mkfifo("desk/pipe.parquet")
    Path("desk/loop").symlink_to("loop")
    Path("~").mkdir()
    Path("-").write_text("{}\n")
    shutil.copy2("desk/in.parquet", "~/in.parquet")
    names = ["desk/pipe.parquet", "desk/loop", "/dev/stdin", "/dev/fd/0", "/proc/self/environ", "/dev/zero"]
    names += ["~/in.parquet", "desk/*.parquet", "desk", "-", "", r"\\host\share\in.parquet"]
    names += ["a\0b", "n" * 5000, "\x1b[31m"]
    known = state("desk/in.parquet")
    for name in names:
        named("inputs", name, **known)
        for command in ("verify", "rescore", "show", "report") if name in ("desk/loop", "\x1b[31m") else ("verify",):
            done = run(command)
            assert "\x1b" not in done.stdout + done.stderr
            if command in ("verify", "rescore"):
                assert (done.exit_code, "--rollouts PATH" in done.stderr) == (2, True), name


@pytest.mark.parametrize("key", ["inputs", "tasks"])
def test_a_file_is_used_only_while_it_is_what_was_recorded(away, key):
    name = "desk/in.parquet" if key == "inputs" else "desk/tasks.jsonl"
    digest = assay.writing.provenance.sha256_of(Path(name))
    known = state(name)
    os.utime(name, (1, 1))
    for entry in (known, {**known, "sha256": "0" * 64}, {"size": known["size"], "modified": None, "sha256": "0" * 64}):
        named(key, name, **entry)
        assert "is not the file that was scored" in run("verify").stderr
        assert run("rescore").exit_code == 2
    named(key, name, **known, sha256=digest)
    assert run("rescore").exit_code == 0


def test_a_folder_of_tasks_is_known_by_its_content(away):
    Path("desk/harbor/t").mkdir(parents=True)
    Path("desk/harbor/dataset.toml").write_text("")
    Path("desk/harbor/t/task.json").write_text('{"answer": "refund"}')
    assay.score_file("desk/in.parquet", SPEC, "desk/out.parquet", tasks="desk/harbor", overwrite=True, lenient=True)
    assert assay.verify("desk/out.parquet").intact
    secret = away.parent / "secret.json"
    shutil.move("desk/harbor/t/task.json", secret)
    Path("desk/harbor/t/task.json").symlink_to(secret)
    with pytest.raises(InputError, match="has a link that leads out"):
        assay.verify("desk/out.parquet")


def test_a_part_that_is_no_file_is_refused(away):
    """Nobody writes into the pipe: who opened it would wait forever."""
    assay.score_file("desk/in.parquet", SPEC, "parts/", tasks="desk/tasks.jsonl", lenient=True)
    for name in ("part-000000.parquet", "_manifest.json"):
        shutil.copytree("parts", "copy", dirs_exist_ok=True)
        Path("copy", name).unlink()
        os.mkfifo(Path("copy", name))
        for command in (["verify", "copy"], ["show", "copy"], ["report", "copy"]):
            done = CliRunner().invoke(app, command)
            code = 0 if name == "_manifest.json" and command[0] != "verify" else 2
            assert (done.exit_code, "is a named pipe" in done.stdout + done.stderr) == (code, True)
        shutil.rmtree("copy")


def test_a_frame_has_no_folder():
    with pytest.raises(InputError, match="does not say which files"):
        recorded_files({}, "inputs", None, "the frame")
