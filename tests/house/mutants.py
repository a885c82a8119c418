"""Whether the suite notices wrong code: mutants of the engine, drawn by a seed over its rooms, each against the tests nearest to it.

``make mutants`` prints a line for each mutant that survives, and how many are killed. A mutant is the engine with one operator, number, condition or
result changed. The tests of its room run first, then those of what is built on it, until one fails.
"""

import argparse
import ast
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

HOUSE = Path(__file__).resolve().parents[2]
ENGINE = HOUSE / "engine"
LIMIT = 900
"""Seconds for the tests of a mutant; one that never ends is killed."""

NEIGHBOURS = ("house/test_specs.py", "scoring", "checks", "spec", "compiling", "runs", "cli", "insight", "promises")
"""Tests after those of the room."""

COMPARISONS = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
ARITHMETIC = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult}


@dataclass(frozen=True)
class Mutant:
    """A place in the engine and the text that stands there instead."""

    path: Path
    line: int
    start: int
    end: int
    text: str

    @property
    def room(self):
        first, *rest = self.path.relative_to(ENGINE / "assay").parts
        return first if rest else ""

    def source(self):
        data = self.path.read_bytes()
        return data[: self.start] + self.text.encode() + data[self.end :]

    def __str__(self):
        old = self.path.read_bytes()[self.start : self.end].decode()
        return f"{self.path.relative_to(HOUSE)}:{self.line}: {' '.join(old.split())} → {' '.join(self.text.split())}"


def changed(node):
    """The node with one thing changed, or None."""
    other = None
    match node:
        case ast.Compare(left, [operator], [right]) if type(operator) in COMPARISONS:
            other = ast.Compare(left, [COMPARISONS[type(operator)]()], [right])
        case ast.BoolOp(operator, values):
            other = ast.BoolOp(ast.Or() if isinstance(operator, ast.And) else ast.And(), values)
        case ast.UnaryOp(ast.Not(), operand):
            other = operand
        case ast.BinOp(left, operator, right) if type(operator) in ARITHMETIC:
            other = ast.BinOp(left, ARITHMETIC[type(operator)](), right)
        case ast.Constant(bool(value)):
            other = ast.Constant(not value)
        case ast.Constant(int(value)):
            other = ast.Constant(value + 1)
        case ast.IfExp(test, body, orelse):
            other = ast.IfExp(test, orelse, body)
    return other


def bodies(tree):
    """The nodes within functions that run: no docstrings, annotations and defaults."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for statement in function.body:
                if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.AnnAssign):
                    yield from ast.walk(statement)


def mutants_of(path):
    source = path.read_bytes()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = {}
    for node in bodies(ast.parse(source)):
        other = changed(node)
        if other is not None:
            start, end = starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset
            found[start, end] = Mutant(path, node.lineno, start, end, f"({ast.unparse(other)})")
    return [*found.values()]


def drawn(number, seed):
    """Draw mutants; a room has a share by the number of its own."""
    rooms = defaultdict(list)
    for path in sorted((ENGINE / "assay").rglob("*.py")):
        for mutant in mutants_of(path):
            rooms[mutant.room].append(mutant)
    rng = random.Random(seed)
    names = rng.choices([*rooms], [len(mutants) for mutants in rooms.values()], k=number)
    return [rng.choice(rooms[name]) for name in names]


def killer(mutant):
    """The first test that fails with a mutant; None if it survives."""
    with tempfile.TemporaryDirectory() as folder:
        engine = Path(folder) / "engine"
        shutil.copytree(ENGINE, engine, ignore=shutil.ignore_patterns("__pycache__"))
        (engine / mutant.path.relative_to(ENGINE)).write_bytes(mutant.source())
        (engine.parent / "specs").symlink_to(HOUSE / "specs")  # the demo's samples
        own = [mutant.room] if (HOUSE / "tests" / mutant.room).is_dir() and mutant.room else []
        for tests in dict.fromkeys((*own, *NEIGHBOURS)):
            command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", f"tests/{tests}"]
            env = {**os.environ, "PYTHONPATH": str(engine), "PYTHONDONTWRITEBYTECODE": "1"}
            try:
                run = subprocess.run(
                    command, cwd=HOUSE, env=env, capture_output=True, text=True, timeout=LIMIT, check=False
                )
            except subprocess.TimeoutExpired:
                return "the limit of time"
            if run.returncode not in (0, 5):
                failed = [line for line in run.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
                return failed[0] if failed else f"exit code {run.returncode}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--number", type=int, default=50)
    parser.add_argument("--seed", type=int, default=30)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    # a background job of a shell ignores Ctrl-C, and so would its tests
    signal.signal(signal.SIGINT, signal.default_int_handler)
    mutants = drawn(options.number, options.seed)
    with ThreadPoolExecutor(options.jobs) as pool:
        killed = 0
        for mutant, test in zip(mutants, pool.map(killer, mutants), strict=True):
            killed += test is not None
            sys.stdout.write(f"{'killed' if test else 'SURVIVED'}  {mutant}  {test or ''}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{killed} of {len(mutants)} mutants killed\n")


if __name__ == "__main__":
    main()
