"""What the package offers, and that it is what it says."""

import ast
import importlib
import pkgutil
import subprocess
import sys
import typing
from pathlib import Path

import pytest

import assay

PUBLIC = assay.__all__
STUB = Path(assay.__file__).with_suffix(".pyi").read_text("utf-8")


def test_the_public_names_are_those_of_the_stub():
    names = [alias.name for node in ast.parse(STUB).body for alias in node.names]
    assert sorted(PUBLIC) == sorted(names) == sorted(set(names))
    assert all(alias.asname == alias.name for node in ast.parse(STUB).body for alias in node.names)
    assert all(getattr(assay, name, None) is not None for name in PUBLIC)
    assert {"score", "score_file", "scan", "compile", "load_verifier", "Check", "Rubric", "__version__"} <= set(PUBLIC)


def test_every_module_exports_what_it_says():
    for found in pkgutil.walk_packages(assay.__path__, "assay."):
        if found.name.endswith("__main__"):
            continue
        module = importlib.import_module(found.name)
        names = getattr(module, "__all__", [])
        assert all(hasattr(module, name) for name in names), found.name
        assert len(names) == len(set(names)), found.name


def test_public_things_are_documented():
    for name in PUBLIC:
        thing = getattr(assay, name)
        if callable(thing) and not isinstance(thing, tuple) and typing.get_origin(thing) is None:  # an alias has none
            assert (thing.__doc__ or "").strip(), name


def test_a_public_name_is_no_other_thing_than_the_module_of_that_name():
    modules = {found.name for found in pkgutil.walk_packages(assay.__path__, "assay.")}
    same = [name for name in PUBLIC if f"assay.{name}" in modules]
    assert all(getattr(assay, name) is importlib.import_module(f"assay.{name}") for name in same)


def test_names_can_be_completed_and_modules_are_found():
    assert set(PUBLIC) <= set(dir(assay))
    assert run("print(assay.types.State is assay.State, hasattr(assay, 'nothing'), hasattr(assay, '__main__'))") == (
        "True False False\n"
    )


def run(code):
    code = f"import assay, sys, threading; {code}"
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True
    ).stdout


def test_importing_reads_nothing_and_starts_nothing():
    assert run(
        "print(threading.active_count(), sorted({'assay.errors', 'polars', 'pydantic'} & set(sys.modules)))"
    ) == ("1 []\n")


ENGINE = {"polars", "pyarrow", "numpy", "rich", "yaml", "asyncio", "assay.runs.score_file", "assay.rubrics.rubric"}


@pytest.mark.parametrize(
    ("arguments", "needless"),
    [
        ([], ENGINE),
        (["score", "--help"], ENGINE),
        (
            ["score", "rollouts.jsonl", "-s", "v.json"],
            {"openai", "datasets", "jinja2", "multiprocessing", "pandas", "assay.rubrics.rubric"},
        ),
    ],
    ids=["help", "help of a command", "a run"],
)
def test_a_command_imports_what_it_needs(tmp_path, arguments, needless):
    (tmp_path / "rollouts.jsonl").write_text('{"completion": "a refund"}\n')
    (tmp_path / "v.json").write_text('{"checks": [{"type": "contains", "value": "refund"}]}')
    code = f"""if True:
        import sys
        from assay.cli.main import app
        sys.argv[1:] = {arguments or ["--help"]!r}
        try:
            app()
        except SystemExit as done:
            print(done.code, sorted({needless!r} & set(sys.modules)))
    """
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert ran.stdout.endswith("0 []\n"), ran
