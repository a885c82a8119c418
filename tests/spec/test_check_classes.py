"""Check classes of users: from packages, and from the command line."""

import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import assay
from assay.cli.main import app
from assay.spec.check_classes import plugin_checks, types_named

MODULE = '''
import assay


class Polite(assay.Check):
    """The text says please."""

    type = "polite"
    aliases = ("courteous",)

    def row(self, row):
        return 1.0 if "please" in row["completion"] else 0.0


class Plain:
    pass


class Nameless(assay.Check):
    pass


class Loud(Polite):
    type = "loud"
    aliases = ()


check = Polite()
'''
SPEC = {"checks": [{"type": "polite"}, {"type": "contains", "value": "a"}]}
ROWS = [{"completion": "please, a"}, {"completion": "a"}]


def package(folder, name, points, module=MODULE, version="1.0"):
    """Write a package whose entry points are found on the path."""
    info = folder / f"{name}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (info / "entry_points.txt").write_text("[assay.checks]\n" + "".join(f"{point}\n" for point in points))
    (folder / f"{name}.py").write_text(module)


@pytest.fixture
def installed(tmp_path, monkeypatch):
    def install(name, *points, module=MODULE):
        package(tmp_path / name, name, points, module)
        monkeypatch.syspath_prepend(tmp_path / name)
        sys.modules.pop(name, None)

    return install


def test_a_plug_in_is_loaded_where_a_spec_names_its_type(installed):
    installed("polite_a", "polite = polite_a:Polite", "broken = polite_a:Nothing")
    assert "polite_a" not in sys.modules
    assert assay.score(ROWS, {"checks": [{"type": "contains", "value": "a"}]})["reward"].to_list() == [1.0, 1.0]
    assert "polite_a" not in sys.modules
    assert assay.score(ROWS, SPEC)["reward"].to_list() == [1.0, 0.5]
    checks, problems = plugin_checks()
    assert [check.type for check in checks] == ["polite"]
    [problem] = problems
    assert problem.startswith("The plug-in broken = polite_a:Nothing of polite_a 1.0 cannot be loaded: AttributeError")


@pytest.mark.parametrize(
    ("point", "message"),
    [
        ("polite = polite_b:Plain", "is the class Plain, not a subclass of assay.Check."),
        ("polite = polite_b:check", "is Polite, not a subclass of assay.Check."),
        ("polite = polite_b:Nameless", "Nameless has no `type`, the name for use in specs."),
        ("polite = polite_b:Loud", 'the type of Loud is "loud".'),
        ("polite = nowhere:Polite", "cannot be loaded: ModuleNotFoundError: No module named 'nowhere'"),
    ],
)
def test_a_plug_in_that_cannot_be_used_is_named(installed, point, message):
    installed("polite_b", point)
    with pytest.raises(assay.SpecError) as caught:
        assay.load_verifier(SPEC)
    assert f"The plug-in {point} of polite_b 1.0" in str(caught.value)
    assert message in str(caught.value)


def test_two_plug_ins_of_one_type_are_refused(installed):
    installed("polite_c", "polite = polite_c:Polite")
    installed("polite_d", "polite = polite_d:Polite")
    with pytest.raises(assay.SpecError, match='Several plug-ins provide the check type "polite"'):
        assay.load_verifier(SPEC)


def test_your_own_class_takes_precedence_over_a_plug_in(installed):
    installed("polite_e", "polite = polite_e:Nothing")

    class Mine(assay.Check):
        type = "polite"

        def row(self, row):
            return 0.25

    assert assay.score(ROWS, SPEC, checks=[Mine])["check/verifier/polite"].to_list() == [0.25, 0.25]


def test_only_subclasses_of_check_are_check_types():
    for value, message in [(3, "int"), (object(), "object"), (dict, "the class dict"), ("polite", "str")]:
        with pytest.raises(assay.SpecError, match=f"checks: is {message}, not a subclass of assay.Check"):
            assay.load_verifier(SPEC, checks=[value])


def test_types_are_found_at_any_depth():
    nested = {"checks": [{"type": "all_of", "checks": [{"type": "polite"}, {"type": 3}]}], "other": {"type": "x"}}
    assert [*types_named(nested)] == ["all_of", "polite", "x"]


def run(*words, code=0):
    done = CliRunner().invoke(app, words, env={"COLUMNS": "200"})
    assert done.exception is None or isinstance(done.exception, SystemExit), repr(done.exception)
    assert done.exit_code == code, done.output
    assert "Traceback" not in done.stderr
    return done


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    Path("mine.py").write_text(MODULE)
    Path("v.json").write_text(json.dumps(SPEC))
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    yield tmp_path
    sys.modules.pop("mine", None)


def test_commands_that_take_specs_take_check_classes(folder):
    named = ("--checks", "mine:Polite", "--checks", "mine:Loud")
    run("score", "rows.jsonl", "--spec", "v.json", *named, "--out", "out.jsonl")
    assert [json.loads(line)["reward"] for line in Path("out.jsonl").read_text().splitlines()] == [1.0, 0.5]
    run("score", "rows.jsonl", "--spec", "v.json", *named, "--out", "parts/")  # scored in a process of its own
    [part] = folder.glob("parts/part-*.parquet")
    assert assay.scan(part).collect()["reward"].to_list() == [1.0, 0.5]
    assert "ok: v.json: 2 checks" in run("check", "v.json", *named).stderr
    assert "skipped" in run("check", "v.json", "--no-strict").stderr
    [explained] = json.loads(run("explain", "v.json", "--json", *named).stdout)
    assert explained["checks"][0] == {
        "id": "polite",
        "type": "polite",
        "runs_as": "Python, row by row: the check has no expr()",
    }


def test_listings_have_the_classes_that_are_named_and_those_of_packages(folder, monkeypatch):
    monkeypatch.syspath_prepend(folder / "site")
    package(folder / "site", "polite_f", ["loud = polite_f:Loud", "broken = polite_f:Nothing"])
    listed = run("checks", "--json", "--checks", "mine:Polite")
    types = [entry["type"] for entry in json.loads(listed.stdout) if entry["kind"] == "check"]
    assert types[-2:] == ["polite", "loud"]
    assert "warning: The plug-in broken = polite_f:Nothing of polite_f 1.0 cannot be loaded" in listed.stderr
    schema = json.loads(run("schema", "--checks", "mine:Polite").stdout)
    types = schema["definitions"]["check"]["properties"]["type"]["anyOf"][0]["enum"]
    assert types[-3:] == ["polite", "courteous", "loud"]


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ("mine:Plain", "--checks mine:Plain: is the class Plain, not a subclass of assay.Check."),
        ("mine:Polit", "has no `Polit`.\n\nDid you mean `Polite`?"),
        ("mine", "--checks mine: expected module:attribute."),
        ("yours:Polite", "--checks yours:Polite: ModuleNotFoundError: No module named 'yours'"),
    ],
)
def test_a_class_that_cannot_be_used_is_told(folder, named, message):
    assert message in run("schema", "--checks", named, code=2).stderr


CLASS = """
from pydantic import BaseModel, ConfigDict

import assay


class Settings(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Mild:
    name = "mild"
    Config = Settings

    def verify(self, *, prompt, completion, target):
        return assay.VerificationResult(1.0)
"""


@pytest.mark.parametrize("kind", ["check", "class"])
def test_no_footer_loads_a_plug_in(installed, tmp_path, monkeypatch, kind):
    """Whoever wrote the footer chose the name; the user who imports the module says that it may run."""
    monkeypatch.chdir(tmp_path)
    registered = {**assay.classes.registry._REGISTRY}
    monkeypatch.setattr(assay.classes.registry, "_REGISTRY", {**registered})
    name = f"of_{kind}"
    spec = {"id": "v", "checks": [{"type": "polite"}]} if kind == "check" else {"id": "v", "kind": "mild"}
    installed(name, f"polite = {name}:Polite", module=MODULE if kind == "check" else CLASS)
    info = tmp_path / name / f"{name}-1.0.dist-info" / "entry_points.txt"
    info.write_text(
        f"[assay.checks]\npolite = {name}:Polite\n" if kind == "check" else f"[assay.verifiers]\nmild = {name}:Mild\n"
    )
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    Path("v.json").write_text(json.dumps(spec))
    assay.score_file("rows.jsonl", "v.json", "out.parquet")
    del sys.modules[name]
    monkeypatch.setattr(assay.classes.registry, "_REGISTRY", registered)
    for command in ("verify", "show", "report", "whatif", "diff"):
        more = {"whatif": ["--threshold", "0.5"], "diff": ["--rescore"]}.get(command, [])
        done = CliRunner().invoke(app, [command, "out.parquet", *more])
        assert done.exit_code in (0, 2), done.exception
        assert name not in sys.modules, command
        assert command != "verify" or (done.exit_code, "--import" in done.stderr) == (2, True)
    assert CliRunner().invoke(app, ["verify", "out.parquet", "--import", name]).exit_code == 0
