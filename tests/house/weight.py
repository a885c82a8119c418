"""What the house weighs: lines by room, functions, names, the contract of checks, and what a small run enters.

``make weight`` prints it. With ``--suite``, the suite runs once and the processor time of its files is added.
"""

import ast
import os
import subprocess
import sys
import tempfile
import tokenize
from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

HOUSE = Path(__file__).resolve().parents[2]
ENGINE = HOUSE / "engine" / "assay"
KINDS = ("code", "docstrings", "comments", "imports", "blank")
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
ROWS = 100
SLOWEST = 25


def say(line):
    """Print a line."""
    sys.stdout.write(f"{line}\n")


@dataclass(frozen=True)
class Module:
    """A file of source text."""

    path: Path

    @cached_property
    def text(self):
        return self.path.read_text("utf-8")

    @cached_property
    def nodes(self):
        return [*ast.walk(ast.parse(self.text))]

    @property
    def room(self):
        """Its folder below the engine; the file itself where it stands beside the rooms."""
        first, *rest = self.path.relative_to(ENGINE).parts
        return first if rest else "(files beside the rooms)"

    def lines(self):
        """Count the lines of each kind; a line of several kinds is of the first that applies."""
        kinds = {}
        for node in self.nodes:
            if isinstance(node, ast.Import | ast.ImportFrom):
                kinds |= dict.fromkeys(range(node.lineno, node.end_lineno + 1), "imports")
            elif (
                isinstance(node, ast.Expr)
                and isinstance(node.value, ast.Constant)
                and isinstance(node.value.value, str)
            ):
                kinds |= dict.fromkeys(range(node.lineno, node.end_lineno + 1), "docstrings")
        for number, line in enumerate(self.text.splitlines(), 1):
            if number not in kinds:
                kinds[number] = "blank" if not line.strip() else "comments" if line.strip()[0] == "#" else "code"
        return Counter(kinds.values())

    def functions(self):
        return [node.name for node in self.nodes if isinstance(node, FUNCTIONS)]

    def classes(self):
        return [node.name for node in self.nodes if isinstance(node, ast.ClassDef)]

    def words(self):
        """Count the names in the source text, comments and strings apart."""
        with self.path.open("rb") as file:
            return Counter(token.string for token in tokenize.tokenize(file.readline) if token.type == tokenize.NAME)

    def used_once(self):
        """Return the private functions, methods included, that the file names in one place beside their definition."""
        words = self.words()
        private = [name for name in self.functions() if name.startswith("_") and not name.endswith("__")]
        return [name for name in private if private.count(name) == 1 and words[name] == 2]


def by_room(modules):
    """Print the lines of each room by kind."""
    rooms = defaultdict(Counter)
    for module in modules:
        rooms[module.room] += module.lines()
    row = "{:26}{:>8}" + "{:>12}" * len(KINDS)
    say(row.format("room", "lines", *KINDS))
    for room, lines in sorted(rooms.items(), key=lambda item: -item[1].total()):
        say(row.format(room, lines.total(), *(lines[kind] for kind in KINDS)))
    whole = sum(rooms.values(), Counter())
    say(row.format("engine/assay", whole.total(), *(whole[kind] for kind in KINDS)))


def of_tests():
    """Print the lines of the tests."""
    lines = sum(len(path.read_text("utf-8").splitlines()) for path in (HOUSE / "tests").rglob("*.py"))
    say(f"{'tests':26}{lines:>8}")


def names(modules):
    """Print the numbers of functions and of class names that mean several things."""
    functions = sum(len(module.functions()) for module in modules)
    once = sum(len(module.used_once()) for module in modules)
    places = defaultdict(set)
    for module in modules:
        for name in module.classes():
            places[name].add(module.path)
    several = sorted(name for name, paths in places.items() if len(paths) > 1)
    say(f"\nfiles {len(modules):,} · functions {functions:,} · private and used once {once:,} ({once / functions:.0%})")
    say(f"class names in several modules: {len(several)}: {', '.join(several)}")


def members():
    """Print the members of the base classes of checks, their own and those that they inherit."""
    from assay.checks.base import Check
    from assay.checks.golds import GoldCheck

    for base in (Check, GoldCheck):
        own = {
            name for parent in base.__mro__[:-1] for name in (*vars(parent), *vars(parent).get("__annotations__", ()))
        }
        say(f"members of {base.__name__}: {len({name for name in own if not name.endswith('__')})}")


def entered():
    """Print the functions and files that a run of a few rows enters."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "rows.jsonl").write_text('{"completion": "a refund", "answer": "refund"}\n' * ROWS, "utf-8")
        Path(folder, "spec.yaml").write_text("checks: [{type: contains, value: refund}]", "utf-8")
        command = ["score", "rows.jsonl", "--spec", "spec.yaml", "--out", "out.parquet"]
        done = subprocess.run(
            [sys.executable, __file__, "--profile", *command], cwd=folder, text=True, capture_output=True, check=True
        )
    say(f"assay score of {ROWS} rows enters {done.stdout.splitlines()[-1]}")


def profiled(command):
    """Run a command in this process, and print how many functions and files of the engine it entered."""
    import threading

    seen = set()

    def note(frame, event, _):
        if event == "call":
            seen.add((frame.f_code.co_filename, frame.f_code.co_qualname))

    threading.setprofile(note)
    sys.setprofile(note)
    from assay.cli.main import main

    sys.argv, os._exit = ["assay", *command], sys.exit  # a command ends its process without delay
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise
    finally:
        sys.setprofile(None)
    ours = {(file, name) for file, name in seen if file.startswith(f"{ENGINE}{os.sep}") and name != "<module>"}
    say(f"{len(ours):,} functions in {len({file for file, _ in ours})} files")


def suite():
    """Run the suite, and print the processor time of its files."""
    with tempfile.TemporaryDirectory() as folder:
        options = ["--numprocesses", "3", "--dist", "loadgroup", "-p", "processor_time", "--quiet"]
        environment = os.environ | {"ASSAY_PROCESSOR_TIME": folder}
        subprocess.run([sys.executable, "-m", "pytest", *options], cwd=HOUSE, env=environment, check=False)
        seconds = Counter()
        for part in Path(folder).iterdir():
            for line in part.read_text("utf-8").splitlines():
                taken, file = line.split(" ", 1)
                seconds[file] += float(taken)
    say(f"processor time of the suite: {seconds.total():.0f} s")
    for file, taken in seconds.most_common(SLOWEST):
        say(f"{taken:8.1f} s  {file}")


def main():
    modules = [Module(path) for path in sorted(ENGINE.rglob("*.py"))]
    by_room(modules)
    of_tests()
    names(modules)
    members()
    entered()
    if "--suite" in sys.argv:
        suite()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--profile"]:
        profiled(sys.argv[2:])
    else:
        main()
