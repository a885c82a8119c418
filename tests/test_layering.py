"""The direction of imports: a module imports only from rooms below its own."""

import ast
from pathlib import Path

import pytest

ENGINE = Path(__file__).resolve().parents[1] / "engine" / "assay"

# from the ground up; a module may import what stands before it
ORDER = (
    *(
        "_version",
        "errors",
        "cache",
        "stacks",
        "processes",
        "special_files",
        "sizes",
        "sources",
        "locks",
        "stdout",
        "interrupts",
        "eventloop",
        "watched",
        "limits",
        "secrets",
    ),
    *("thresholds", "newfile"),
    *(
        "lanes.base",
        "lanes.words",
        "lanes.messages",
        "lanes.tags",
        "lanes.charsets",
        "lanes.edges",
        "lanes.linear",
        "lanes.compiled",
        "lanes.positions",
        "lanes.guarded",
        "lanes.pattern",
        "lanes.fncolumns",
        "lanes.rowpatterns",
        "lanes.jsontext",
        "lanes.toolcalls",
        "lanes.onrow",
        "lanes.onrow_columns",
        "exact",
        "chats",
        "lanes.rollout",
        "lanes.failures",
        "lanes.schemas",
        "lanes.expectations",
    ),
    *("lanes.expectation_columns", "lanes"),
    *("fns", "verifiers"),
    *(
        "runner",
        "bounded",
        "checks.base",
        "rewards",
        "workers",
        "checks.broken",
        "checks.text",
        "checks.length",
        "checks.pattern",
        "checks.json",
        "checks.expectations",
        "checks.onrow_batch",
        "checks.onrow",
        "checks.byclass",
        "checks.named",
        "checks.reward",
        "checks",
    ),
    *("specfile", "specclass", "specread", "spec", "judges", "schema", "listing", "aggregate", "members", "progress"),
    *(
        "shape",
        "cells",
        "rows",
        "paths",
        "extractors",
        "layout",
        "presets",
        "memory",
        "reading",
        "frames",
        "lines",
        "jsonline",
        "jsonforms",
        "jsonl",
        "jsonlook",
        "thrift",
        "pages",
        "parquet",
        "arrow",
        "ipc",
        "files",
        "quarantine",
        "setdown",
        "remote",
        "detection",
        "tables",
        "rollouts",
        "columns",
        "pieces",
        "fitting",
        "plan",
        "reference",
        "tasks",
        "testing",
        "scoring",
        "export",
        "batch",
        "summary",
        "provenance",
        "allowed",
        "streaming",
        "shards",
        "manifest",
        "folder",
        "isolated",
        "onray",
        "run",
        "bench",
    ),
    *("outputs", "types", "parsers", "extract"),
    *("rewarded", "rubric", "rubric_group"),
    *(
        "streams",
        "client",
        "inputs",
        "journal",
        "loops",
        "generation",
        "evaluation",
        "examples",
        "environment",
        "multiturn",
    ),
    *("", "terminal", "cliapp", "clispecs", "clibench", "clipresets", "cli", "__main__"),
)


def name_of(path):
    parts = path.relative_to(ENGINE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


MODULES = {name_of(path): path for path in ENGINE.rglob("*.py")}


def imported(path):
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            if node.module == "assay":
                yield from (alias.name if alias.name in MODULES else "" for alias in node.names)
            elif node.module.startswith("assay."):
                yield node.module.removeprefix("assay.")
        elif isinstance(node, ast.Import):
            yield from (
                alias.name.removeprefix("assay").removeprefix(".")
                for alias in node.names
                if alias.name.split(".")[0] == "assay"
            )


def test_every_module_has_its_place():
    assert sorted(ORDER) == sorted(MODULES)


@pytest.mark.parametrize("name", sorted(MODULES))
def test_a_module_imports_only_from_below(name):
    above = [other for other in imported(MODULES[name]) if ORDER.index(other) >= ORDER.index(name)]
    assert not above, f"assay.{name} imports {above}"


def length(function):
    """Lines; of a command, whose signature is the list of its options, those of its body."""
    is_command = any("command" in ast.unparse(one) for one in function.decorator_list)
    return function.end_lineno - (function.body[0].lineno if is_command else function.lineno)


@pytest.mark.parametrize("name", sorted(MODULES))
def test_a_module_is_small_and_says_what_it_exports(name):
    source = MODULES[name].read_text("utf-8")
    tree = ast.parse(source)
    assert ast.get_docstring(tree)
    longest = max((length(node) for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)), default=0)
    assert longest < 80, "a function is longer than a screen, docstring included"
    exported = [
        node for node in tree.body if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__"
    ]
    assert exported or name in ("_version", "lanes", "__main__")


def test_the_definition_of_a_run_does_not_name_the_engine():
    tree = ast.parse(MODULES["reference"].read_text("utf-8"))
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not {name for name in names if name.split(".")[0] in ("polars", "pyarrow")}
