"""What the package offers, and that it is what it says."""

import ast
import importlib.util
import pkgutil
import subprocess
import sys
import typing
from pathlib import Path

import polars as pl
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


@pytest.mark.parametrize(("before", "after"), [("enable", "True"), ("disable", "False")])
def test_a_first_use_leaves_the_garbage_collector_as_it_was(before, after):
    code = (
        f"import gc; gc.{before}(); assay.score; print('polars' in sys.modules, gc.isenabled(), gc.get_freeze_count())"
    )
    frozen = run("import gc; print(gc.get_freeze_count())")
    assert run(code) == f"True {after} {frozen}"


def test_importing_reads_nothing_and_starts_nothing():
    assert run(
        "print(threading.active_count(), sorted({'assay.errors', 'polars', 'pydantic'} & set(sys.modules)))"
    ) == ("1 []\n")


ENGINE = {"polars", "pyarrow", "numpy", "rich", "yaml", "asyncio", "assay.runs.score_file", "assay.rubrics.rubric"}

OTHERS = {"openai", "datasets", "jinja2", "jsonschema", "multiprocessing", "assay.rubrics.rubric", "assay.testing"}
"""What other commands and other runs need."""

UNUSED = OTHERS | {
    *("yaml", "tomllib"),  # the spec is JSON; only messages need its lines
    "asyncio",  # no function is async
    "pandas",  # pyarrow imports it, and takes 0.2 s, to convert Python values
    *("pyarrow.compute", "pyarrow.dataset"),  # Polars computes
    *("assay.loading.formats.csv", "assay.loading.formats.ipc", "assay.loading.formats.jsonl"),  # the file is parquet
    *("assay.runs.folder", "assay.runs.child_process", "assay.runs.on_ray"),  # the result is a file
    "assay.insight.bench",  # nothing is measured
}
"""What a run from a parquet file to a file has no use for; each module makes a short run longer."""


@pytest.mark.parametrize(
    ("arguments", "needless"),
    [
        ([], ENGINE),
        (["score", "--help"], ENGINE),
        (
            ["score", "rollouts.jsonl", "-s", "v.json"],
            OTHERS | {"pandas", "asyncio", "yaml"},
        ),
        (["score", "rollouts.parquet", "-s", "v.json", "-o", "out.parquet"], UNUSED),
    ],
    ids=["help", "help of a command", "a run", "a run from parquet to parquet"],
)
def test_a_command_imports_what_it_needs(tmp_path, arguments, needless):
    assert all(map(importlib.util.find_spec, (name for name in needless if name.startswith("assay."))))
    (tmp_path / "rollouts.jsonl").write_text('{"completion": "a refund"}\n')
    pl.DataFrame({"completion": ["a refund"]}).write_parquet(tmp_path / "rollouts.parquet")
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
