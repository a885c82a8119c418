"""Specs by name: registered once, taken wherever a spec is taken, refused where a copy means something else."""

import json
import subprocess
import sys
import threading
from datetime import date
from types import MappingProxyType

import polars as pl
import pytest
from typer.testing import CliRunner
from worked_cases import worked

import assay
from assay.cli.main import app
from assay.functions import registry as fns
from assay.insight.testing import registry as registering
from assay.scoring.batching import plan_of

SPEC = {"id": "refund", "checks": [{"type": "contains", "value": "refund"}]}
ROWS = [{"completion": "a refund", "task_id": "a"}, {"completion": "no", "task_id": "a"}]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "refund.json").write_text(json.dumps(SPEC))
    (tmp_path / "rollouts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return tmp_path


def run(*arguments, code=0, stream="stdout"):
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == code, result.output
    return getattr(result, stream)


def test_worked_cases(folder):
    case = worked("verifiers", "e")
    registry = assay.Registry(folder / "verifiers")

    def score(name):
        try:
            return assay.score(case["rows"], name)["reward"].to_list()
        except assay.SpecError:
            return "refused"

    for operation, *operands in case["operations"]:
        match operation, operands:
            case "create", [spec, name]:
                assert registry.create(spec) == name
            case "score", [name, rewards]:
                assert score(name) == rewards
            case "tamper", [name, _, rewards]:
                copy = registry.path(name)
                kept = copy.read_bytes()
                copy.write_bytes(kept.replace(b"80", b"8000"))
                assert score(name) == rewards
            case "restore", [name, _, rewards]:
                copy.write_bytes(kept)
                assert score(name) == rewards
            case _:
                assert operation == "create-failing-test"
                with pytest.raises(assay.FailedRunError, match="it is not registered"):
                    registry.create(SPEC | {"tests": [{"given": {"completion": "no"}, "expect": "pass"}]})
    assert [spec.name for spec in registry.list()] == ["refund@1", "refund@2", "refund@3"]


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


def test_the_latest_is_the_greatest_number_and_the_lock_is_sorted(folder):
    registry = assay.Registry()
    for number in range(1, 12):
        assert registry.create(SPEC | {"description": f"{number}"}) == f"refund@{number}"
    assert registry.load("refund").registered == 11
    text = (folder / "verifiers/assay.lock").read_text()
    assert text == json.dumps(json.loads(text), indent=1, sort_keys=True) + "\n"


def test_the_same_spec_in_another_file_may_include_one_that_has_its_old_name(tmp_path):
    whole = "id: v\nchecks:\n  - {id: c, type: spec, path: %s}\n"
    part = "id: part\nchecks:\n  - {type: contains, value: x}\n"
    for at, (own, other) in enumerate([("a.yaml", "b.yaml"), ("b.yaml", "a.yaml")]):
        source = tmp_path / str(at)
        source.mkdir()
        (source / own).write_text(whole % other)
        (source / other).write_text(part)
        assert assay.Registry(tmp_path / "verifiers").create(source / own) == "v@1"
    assert assay.Registry(tmp_path / "verifiers").load("v").id == "v"


def test_included_specs_are_copied(folder):
    (folder / "parts").mkdir()
    (folder / "parts/json.yaml").write_text("checks: [{type: json_valid}]")
    (folder / "both.yaml").write_text("checks: [{type: spec, path: parts/json.yaml}, {type: contains, value: a}]")
    assert assay.Registry().create("both.yaml") == "both@1"
    (folder / "parts/json.yaml").unlink()
    assert assay.score([{"completion": "[]"}], "both")["reward"].to_list() == [0.5]
    (folder / "verifiers/both/1/parts/json.yaml").unlink()
    with pytest.raises(assay.SpecError, match=r"is not what was locked \(it cannot be read\)"):
        assay.load_verifier("both")


def test_a_spec_whose_copy_would_be_another_is_refused(folder):
    (folder / "parts").mkdir()
    (folder / "parts/json.yaml").write_text("checks: [{type: json_valid}]")
    (folder / "parts/link.yaml").symlink_to("json.yaml")
    (folder / "both.yaml").write_text("checks: [{type: spec, path: parts/link.yaml}]")
    registry = assay.Registry()
    with pytest.raises(assay.SpecError, match="a copy of it is not the same verifier"):
        registry.create("both.yaml")
    with pytest.raises(assay.SpecError, match="a copy of it is not the same verifier"):
        registry.create({"checks": [{"type": "function", "name": "exact_match", "expected": date(2026, 1, 1)}]})
    assert registry.create(MappingProxyType(SPEC)) == "refund@1"
    assert sorted(path.name for path in (folder / "verifiers").iterdir()) == ["assay.lock", "refund"]


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
        with pytest.raises(
            assay.SpecError, match=r"refund@1: .* is not what was locked \(.*\); restore it, or: assay ver"
        ):
            use("refund")


def test_the_message_of_a_changed_copy_has_both_digests(folder):
    registry = assay.Registry()
    registry.create("refund.json")
    (folder / "verifiers/refund/1/refund.json").write_text(json.dumps(SPEC | {"passThreshold": 0.1}))
    then, now = (
        spec.sha256[:4] for spec in (assay.load_verifier("refund.json"), assay.load_verifier(registry.path("refund")))
    )
    path = "verifiers/refund/1/refund.json"
    said = run("score", "rollouts.jsonl", "--spec", "refund", "--out", "out.parquet", code=2, stream="stderr")
    problem = f"is not what was locked (sha256 {then}…, now {now}…); restore it, or: assay verifiers create {path}"
    assert said == f"error: refund@1: {path} {problem}\n"


def test_all_copies_are_checked_at_once(folder):
    registry = assay.Registry()
    for value in ("a", "b", "c"):
        registry.create({"id": "refund", "checks": [{"type": "contains", "value": value}]})
    assert run("verifiers", "check", stream="stderr") == "ok: verifiers: 3 versions as locked\n"
    registry.path("refund@1").unlink()
    registry.path("refund@3").write_text("{")
    (folder / "verifiers/refund/8").mkdir()
    said = run("verifiers", "check", code=2, stream="stderr")
    places = "refund@1:", "refund@3:", "verifiers/refund/8:"
    assert [line.split()[1] for line in said.splitlines() if line.startswith("error")] == [*places]
    assert "Nothing is registered in other" in run("verifiers", "check", "--registry", "other", code=2, stream="stderr")


def test_the_code_of_users_is_locked(folder, monkeypatch):
    def shouts(model_output, expected, params):
        return float(model_output.isupper())

    def whispers(model_output, expected, params):
        return float(model_output.islower())

    registry, spec = assay.Registry(), {"id": "loud", "checks": [{"type": "function", "name": "loud"}]}
    monkeypatch.setattr(fns, "_REGISTRY", functions := dict(fns._REGISTRY))
    assay.fns.register_fn("loud")(shouts)
    assert registry.create(spec) == registry.create(spec) == "loud@1"
    assert assay.score([{"completion": "A"}], "loud")["reward"].to_list() == [1.0]
    del functions["loud"]
    with pytest.raises(assay.SpecError, match="cannot be read as when it was locked") as caught:
        assay.load_verifier("loud")
    assert "It needs code of yours" in caught.value.hint
    assay.fns.register_fn("loud")(whispers)
    with pytest.raises(assay.SpecError, match=r"is not what was locked \(code of loud, sha256 "):
        assay.load_verifier("loud")
    assert registry.create(spec) == "loud@2"
    assert assay.score([{"completion": "A"}], "loud")["reward"].to_list() == [0.0]


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
    with pytest.raises(assay.SpecError, match="is the name of a grader"):
        assay.Registry().create(SPEC | {"id": "inspect.match"})
    with pytest.raises(assay.SpecError, match="cannot be a name"):
        assay.Registry().create(SPEC | {"id": "assay.lock"})
    assert "is a folder" in run("verifiers", "create", ".", code=2, stream="stderr")
    assert "refund: no such file" in run("verifiers", "create", "refund", code=2, stream="stderr")


def test_a_spec_that_fails_a_test_is_not_registered(folder):
    tests = [{"given": {"completion": "no"}, "expect": "pass"}, {"given": {"completion": "refund"}, "expect": "pass"}]
    (folder / "refund.json").write_text(json.dumps(SPEC | {"tests": tests}))
    said = run("verifiers", "create", "refund.json", code=3, stream="stderr")
    assert "refund.json: 1 test of 2 failed; it is not registered.\nFAILED refund.json::test-1: fails" in said
    assert not (folder / "verifiers").exists()
    (folder / "refund.json").write_text(json.dumps(SPEC | {"tests": tests[1:]}))
    run("verifiers", "create", "refund.json")
    (folder / "refund.json").write_text(json.dumps(SPEC))  # without its tests it is the same version
    assert "refund@1" in run("verifiers", "create", "refund.json", stream="stderr")
    assert json.loads((folder / "verifiers/refund/1/refund.json").read_text()) == SPEC


def test_an_equal_older_version_is_told(folder):
    registry = assay.Registry()
    for passing in (1.0, 0.5):
        registry.create(SPEC | {"passThreshold": passing})
    said = run("verifiers", "create", "refund.json", stream="stderr")
    assert "note: refund@3 means what refund@1 means, which is not the latest" in said


def test_a_renamed_file_replaces_the_copy(folder):
    registry = assay.Registry()
    registry.create("refund.json")
    (folder / "refund.json").rename(folder / "money.json")
    assert registry.create("money.json") == "refund@1"
    assert [path.name for path in (folder / "verifiers/refund/1").iterdir()] == ["money.json"]


def test_the_footer_has_the_version_on_which_nothing_else_depends():
    assay.Registry().create("refund.json")
    roots = []
    for spec, version in (("refund@1", 1), ("refund.json", None)):
        assay.score_file("rollouts.jsonl", spec, "out.parquet", overwrite=True)
        (entry,) = assay.read_provenance("out.parquet")["verifiers"]
        assert entry.get("version") == version
        roots.append(assay.verify("out.parquet").root)
    assert roots[0] == roots[1]


def test_two_versions_are_compared_on_rollouts():
    registry = assay.Registry()
    registry.create("refund.json")
    registry.create(SPEC | {"checks": [{"type": "contains", "value": "no"}]})
    data = run("diff", "refund@1", "refund@2", "--rollouts", "rollouts.jsonl", "--json")
    assert data == run("diff", "rollouts.jsonl", "--before", "refund@1", "--after", "refund@2", "--json")
    assert json.loads(data)["flips"]
    assert "Name them: --rollouts" in run("diff", "refund@1", "refund@2", code=2, stream="stderr")
    assert "two are compared" in run("diff", "refund", "--rollouts", "rollouts.jsonl", code=2, stream="stderr")


def test_every_command_takes_a_name_and_refuses_a_changed_copy(folder):
    tests = [{"given": {"completion": "refund"}, "expect": "pass"}]
    registry = assay.Registry()
    registry.create(SPEC | {"tests": tests})
    commands = (
        ["check", "refund@1"],
        ["explain", "refund"],
        ["test", "refund@1"],
        ["audit", "refund@1", "rollouts.jsonl"],
        ["bench", "refund", "rollouts.jsonl"],
        ["diff", "rollouts.jsonl", "--before", "refund", "--after", "refund@1"],
        ["score", "rollouts.jsonl", "--spec", "refund@1", "--out", "out.parquet", "--overwrite"],
        ["verifiers", "show", "refund@1"],
    )
    for command in commands:
        run(*command)
    registry.path("refund").write_text(json.dumps(SPEC | {"passThreshold": 0.1}))
    for command in (*commands, ["forge", "refund", "--rollouts", "rollouts.jsonl"], ["serve", "refund", "--port", "0"]):
        assert "is not what was locked" in run(*command, code=2, stream="stderr"), command


def test_adapters_take_a_registered_name_before_a_grader(folder):
    assay.Registry().create(SPEC)
    assert plan_of("refund@1").score_rows(ROWS)["reward"].to_list() == [1.0, 0.0]
    lock = json.loads((folder / "verifiers/assay.lock").read_text())
    spec = SPEC | {"id": "trl.accuracy"}
    lock["trl.accuracy"] = {"1": {"file": "a.json", "sha256": assay.load_verifier(spec).sha256}}
    (folder / "verifiers/assay.lock").write_text(json.dumps(lock))
    (folder / "verifiers/trl.accuracy/1").mkdir(parents=True)
    (folder / "verifiers/trl.accuracy/1/a.json").write_text(json.dumps(spec))
    assert plan_of("trl.accuracy").score_rows(ROWS)["reward"].to_list() == [1.0, 0.0]
    with pytest.raises(assay.SpecError, match="no such file, and no verifier of that name") as caught:
        plan_of("trl.acuracy")
    assert caught.value.hint == "Did you mean `trl.accuracy`?"


def test_without_a_registry_names_are_explained():
    for name, hint in {
        "refund@1": "Did you mean `refund.json`?",
        "other@1": "Register a spec by its id: assay verifiers create FILE",
        "trl.acuracy": "Did you mean `trl.accuracy`?",
        "trl.zzz": "Graders of trl: assay graders trl",
        "refund": "Did you mean `refund.json`?",
    }.items():
        with pytest.raises(assay.SpecError, match=r"no such file|no registered verifier has this name") as caught:
            assay.load_verifier(name)
        assert caught.value.hint == hint
    with pytest.raises(assay.SpecError, match="It is a grader"):
        assay.load_verifier("inspect.match")
    assert "nothing is registered in verifiers" in run("verifiers", "list", stream="stderr")


def test_processes_that_register_wait_for_each_other(folder):
    program = """if True:
        import assay, sys
        print(assay.Registry().create({"id": "refund", "checks": [{"type": "contains", "value": sys.argv[1]}]}))
    """
    processes = [
        subprocess.Popen([sys.executable, "-c", program, value], stdout=subprocess.PIPE, text=True) for value in "abc"
    ]
    names = sorted(process.communicate()[0].strip() for process in processes)
    assert names == ["refund@1", "refund@2", "refund@3"]
    assert list(assay.Registry().problems()) == []


def test_what_is_interrupted_registers_nothing(folder, monkeypatch):
    registry = assay.Registry()
    registry.create(SPEC)
    before = {path: path.read_bytes() for path in (folder / "verifiers").rglob("*") if path.is_file()}
    written = registering.write_file

    def stop(path, content):
        if path.name == "assay.lock":
            raise KeyboardInterrupt
        written(path, content)

    monkeypatch.setattr(registering, "write_file", stop)
    with pytest.raises(KeyboardInterrupt):
        registry.create(SPEC | {"passThreshold": 0.5})
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    assert {path: path.read_bytes() for path in before} == before
    assert [spec.name for spec in registry.list()] == ["refund@1"]
    assert registry.create(SPEC | {"passThreshold": 0.5}) == "refund@2"
    assert not (folder / "verifiers/.new").exists()


def test_threads_that_register_wait_for_each_other(monkeypatch):
    registry, names = assay.Registry(), []
    specs = [{"id": "refund", "checks": [{"type": "contains", "value": value}]} for value in "ab"]
    threads = [threading.Thread(target=lambda spec=spec: names.append(registry.create(spec))) for spec in specs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(names) == ["refund@1", "refund@2"]
    monkeypatch.setattr(registering, "_PATIENCE", 0.0)
    held = registering.locked(registry.folder / ".assay.lock.lock", "", "")
    with held, pytest.raises(assay.UsageError, match="another run is writing there"):
        registry.create(SPEC)


def test_batches_of_arrow_take_the_latest_version():
    table = pl.DataFrame(ROWS).to_arrow()
    registry = assay.Registry()
    registry.create(SPEC)
    assert assay.score_batch(table, "refund")["reward"].to_pylist() == [1.0, 0.0]
    registry.create({"id": "refund", "checks": [{"type": "contains", "value": "no"}]})
    assert assay.score_batch(table, "refund")["reward"].to_pylist() == [0.0, 1.0]
