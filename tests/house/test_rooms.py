"""The rooms of the engine: a file's room is its folder, and a room imports only from itself and from rooms before it."""

import ast
import re
from collections import Counter, defaultdict
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ENGINE = Path(__file__).resolve().parents[2] / "engine" / "assay"

ROOMS = (
    *(
        "_version",
        "errors",
        "frozen",
        "names",
        "thresholds",
        "system",
        "options",
        "guard",
        "calls",
        "expressions",
        "expressions.regex.trees",
        "expressions.regex",
        "kernel",
        "values",
    ),
    *(
        "steps.tool_calls",
        "steps",
        "checks",
        "checks.text",
        "checks.json",
        "checks.similarity",
        "checks.tools",
        "checks.instructions",
    ),
    *("checks.mathematics", "checks.graders.tools", "checks.graders", "checks.registry"),
    *("functions", "classes", "rewards", "spec", "spec.importers", "aggregating"),
    *(
        "loading.formats",
        "loading.presets",
        "loading",
        "writing.numbers",
        "writing.documents",
        "writing.notebooks",
        "compiling",
        "writing",
        "scoring",
        "runs",
    ),
    *(
        "fns",
        "protocols",
        "registry",
        "verifiers",
        "types",
        "testing",
        "rubrics",
        "environments",
        "insight.training",
        "adapters",
        "insight.integrity",
        "insight.documents",
        "insight.charts",
        "insight.evidence",
        "insight",
        "insight.forging",
        "insight.golds",
        "insight.calibration",
        "insight.testing",
        "insight.findings",
        "insight.reports",
        "insight.viewer",
        "insight.exporting",
        "",
        "cli",
        "__main__",
    ),
)
"""Folders, and modules at the root, in order; ``""`` is the public face."""

WITHIN_A_BATCH = ROOMS[ROOMS.index("expressions") : ROOMS.index("classes")]
"""The rooms of column functions: what they ask of Polars runs while other batches do."""

MOST_FILES = 15

pytestmark = pytest.mark.xdist_group("rooms")  # each module is parsed by one process of the suite


def name_of(path):
    parts = path.relative_to(ENGINE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


MODULES = {name_of(path): path for path in ENGINE.rglob("*.py")}


@cache
def tree_of(name):
    return ast.parse(MODULES[name].read_text("utf-8"))


@cache
def nodes_of(name):
    """The nodes of a module, by their type."""
    nodes = defaultdict(list)
    for node in ast.walk(tree_of(name)):
        nodes[type(node)].append(node)
    return nodes


def room_of(name):
    return name if name in ROOMS else name.rpartition(".")[0]


def imports(name):
    """The modules that a module imports, within functions, too."""
    for node in nodes_of(name)[ast.ImportFrom]:
        assert node.level == 0, f"{name}: relative import"
        if node.module.split(".")[0] == "assay":
            module = node.module.removeprefix("assay").removeprefix(".")
            for alias in node.names:
                inner = f"{module}.{alias.name}".removeprefix(".")
                yield inner if inner in MODULES else module
    for node in nodes_of(name)[ast.Import]:
        names = (alias.name for alias in node.names if alias.name.split(".")[0] == "assay")
        yield from (name.removeprefix("assay").removeprefix(".") for name in names)


def test_every_module_is_in_a_room_and_every_room_has_modules():
    assert {room_of(name) for name in MODULES} == set(ROOMS)


def test_a_module_imports_from_its_own_room_and_those_before_it():
    places = {name: ROOMS.index(room_of(name)) for name in MODULES}
    assert [(name, module) for name in MODULES for module in imports(name) if places[module] > places[name]] == []


def test_the_documentation_names_the_rooms_in_order():
    page = (ENGINE.parents[1] / "docs" / "architecture.md").read_text("utf-8")
    rows = [line.split(" | ")[0] for line in page.splitlines() if line.startswith("| `")]
    named = [name.strip("/").replace("/", ".") for row in rows for name in re.findall(r"`([\w/]+)`", row)]
    assert named == [room for room in ROOMS if room.strip("_") and not room.startswith("_")]


def test_no_circle_is_in_a_room():
    # what a package's own module imports, its users import
    graph = {name: {module for module in imports(name) if module != name} for name in MODULES}
    TopologicalSorter(graph).prepare()


def test_a_room_has_few_files():
    files = Counter(room_of(name) for name, path in MODULES.items() if path.name != "__init__.py")
    assert [(room, number) for room, number in files.items() if number > MOST_FILES] == []


def test_a_module_has_a_docstring():
    assert [name for name in MODULES if not ast.get_docstring(tree_of(name))] == []


def lines_of(function):
    """Lines of a function; of a command, whose signature is the list of its options, those of its body."""
    is_command = any("command" in ast.unparse(decorator) for decorator in function.decorator_list)
    return function.end_lineno - (function.body[0].lineno if is_command else function.lineno)


def test_a_function_fits_on_a_screen():
    long = [(name, node.name) for name in MODULES for node in nodes_of(name)[ast.FunctionDef] if lines_of(node) >= 80]
    assert long == []


def test_a_query_within_a_batch_runs_its_expressions_in_sequence():
    calls = [
        (name, node.func) for name in MODULES if room_of(name) in WITHIN_A_BATCH for node in nodes_of(name)[ast.Call]
    ]
    named = {(name, call.attr) for name, call in calls if isinstance(call, ast.Attribute)}
    assert {(name, query) for name, query in named if query in {"select", "with_columns"}} == set(), (
        "use select_seq and with_columns_seq"
    )


def test_packages_that_import_their_own_modules_are_imported_whole():
    # two threads, of which one imports such a package and one a module in it, wait for each other; Python then lets one of them see
    # modules that are not made yet
    modules = [(name, node.module) for name in MODULES for node in nodes_of(name)[ast.ImportFrom]]
    whole = ("rapidfuzz.", "nltk.")
    after_punkt = ("checks.instructions.extras", "nltk.tokenize.destructive")  # which is imported once nltk is there
    assert [pair for pair in modules if pair[1].startswith(whole) and pair != after_punkt] == []


def test_the_definition_of_a_run_does_not_name_the_engine():
    tree = tree_of("scoring.reference")
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not {name for name in names if name.split(".")[0] in ("polars", "pyarrow")}
