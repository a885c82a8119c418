"""README.md and the pages of docs/ as programs: their code blocks, in order, run in one process for each page.

The processes of all pages are forks of one that has imported the package, and done nothing else. A page runs in a folder of its own,
from top to bottom:

* a block whose first line is ``# name.ext``, or that follows ``<!-- file: name.ext -->``, is written to that file;
* a ``python`` block runs as a program of its own;
* of a ``sh`` block the lines that begin with ``assay`` run; ``# exit 3`` at their end says that they end with that code;
  ``assay view`` until it answers at the address that it prints;
* an ``output`` block that follows is what all of that prints.
"""

import atexit
import importlib.util
import io
import json
import os
import re
import runpy
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
import warnings
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NoReturn, TextIO
from urllib.request import urlopen

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
DOCS = ROOT / "docs"
PAGES = [README, ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]

ELSEWHERE = {"processes.md": "test_processes.py", "engines.md": "test_recipes.py"}
"""Pages whose Python is whole programs, and the tests that run them."""

EVALUATORS = {
    *(
        "dspy.md",
        "evals.md",
        "evaluate.md",
        "from-inspect.md",
        "from-promptfoo.md",
        "gepa-feedback.md",
        "gepa.md",
        "gsm8k-in-trl.md",
        "inspect.md",
        "lighteval.md",
        "lm-eval.md",
        "promptfoo.md",
        "row.md",
        "verifiers.md",
        "verl-metrics.md",
    ),
}
"""Pages that tests/peers runs, with the packages that they are about."""

OPTIONAL = {"datasets", "dspy", "gepa", "nemo_gym", "nemo_rl", "openai", "skyrl_gym", "transformers", "trl"}
"""Packages that an example may need; without them it is left out."""

WIDTH = 100
"""Columns of the terminal that the pages show."""

_BLOCK = re.compile(
    r"(?:^<!-- file: (?P<file>\S+) -->\n+)?^```(?P<kind>\w*)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE
)
_TITLE = re.compile(r"# ([\w-]+\.(?:yaml|toml|py))\n")


def name_of(page: Path) -> str:
    """The path of a page below the folder of the project, or its name where it is elsewhere."""
    return page.relative_to(ROOT).as_posix() if page.is_relative_to(ROOT) else page.name


@dataclass(frozen=True)
class Block:
    """A fenced block of a page.

    Attributes:
        line: The line of the page that it begins on.
        kind: ``python``, ``sh``, ``output`` …
        text: What it holds.
        file: The file that it is written to, if any.
        span: Where its text is in the page.
    """

    line: int
    kind: str
    text: str
    file: str | None
    span: tuple[int, int]


_SHOWN = ("unscored", "every row of a batch is unscored", "no row of a batch has a gold")
"""Beginnings of warnings of what pages show on purpose: rows without a reward."""
_ON_PURPOSE = [word for beginning in _SHOWN for word in ("-W", f"ignore:{beginning}")]


def blocks_of(page: str) -> list[Block]:
    """The fenced blocks of a page, in order."""
    return [
        Block(
            page.count("\n", 0, match.start("kind")) + 1,
            match["kind"],
            match["text"],
            match["file"] or (title[1] if (title := _TITLE.match(match["text"])) else None),
            match.span("text"),
        )
        for match in _BLOCK.finditer(page)
    ]


def commands_of(block: Block, programs: tuple[str, ...] = ("assay",)) -> list[str]:
    """The commands of a shell block that call some programs, with continued lines joined."""
    lines = block.text.replace("\\\n", " ").splitlines() if block.kind == "sh" else []
    return [line for line in lines if line.partition(" ")[0] in programs]


def exit_code_of(command: str) -> int:
    """The exit code that the comment at the end of a command names, or 0."""
    return int(code[1]) if (code := re.search(r"# exit (\d+)$", command)) else 0


def runs(block: Block) -> bool:
    """Whether there is something to do: a program, a command, or a file to write."""
    return block.kind == "python" or bool(commands_of(block)) or block.file is not None


def comparable(output: str) -> str:
    """Printed text without what differs from run to run."""
    lines = (line.rstrip() for line in output.strip("\n").splitlines())
    return re.sub(r"[\d,.]+ rows/s|(?<=//127\.0\.0\.1:)\d+/\S+", "N", "\n".join(lines))


@dataclass(frozen=True)
class Result:
    """What a block did: its place, what it printed, why it failed, and what the page shows of it."""

    line: int
    printed: str
    failure: str
    shown: Block | None


def steps_of(path: Path) -> list[tuple[Block, Block | None]]:
    """The blocks of a page that run here, each with the output that the page shows of it."""
    blocks = blocks_of(path.read_text("utf-8"))
    return [
        (block, following if following is not None and following.kind == "output" else None)
        for block, following in zip(blocks, [*blocks[1:], None], strict=False)
        if runs(block) and path.name not in EVALUATORS and not (block.kind == "python" and path.name in ELSEWHERE)
    ]


def run_page(path: Path) -> list[Result]:
    """Run the blocks of a page in a new process and a new folder."""
    steps = steps_of(path)
    if not steps:
        return []
    blocks = [[block.kind, block.file, block.text, commands_of(block)] for block, _ in steps]
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(ROOT / "specs", Path(folder, "specs"))  # no link: a footer names no file that is elsewhere
        results = _answer(json.dumps([folder, blocks]))
    if isinstance(results, str):
        return [Result(steps[0][0].line, "", results, None)]
    return [
        Result(block.line, printed, failure, shown)
        for (block, shown), (printed, failure) in zip(steps, results, strict=True)
    ]


_CACHE = tempfile.TemporaryDirectory()
"""An empty cache of datasets: that of the user may have other rows from an earlier run."""


@cache
def _parent() -> subprocess.Popen[str]:
    """The process whose forks run the pages; it ends with its standard input, at the latest with this process."""
    parent = subprocess.Popen(
        [sys.executable, "-W", "error", *_ON_PURPOSE, __file__],
        env={**os.environ, "ASSAY_KERNEL": "0", "COLUMNS": str(WIDTH), "NO_COLOR": "1", "PYTHONUTF8": "1"}
        | {"HF_HOME": _CACHE.name, "HF_DATASETS_DISABLE_PROGRESS_BARS": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    atexit.register(parent.communicate)
    return parent


def _answer(page: str) -> list[tuple[str, str]] | str:
    """What each block of a page printed, and its failure; or why the process of the page did not end well."""
    parent = _parent()
    assert parent.stdin is not None
    assert parent.stdout is not None
    parent.stdin.write(page + "\n")
    parent.stdin.flush()
    return json.loads(parent.stdout.readline() or '"the process that runs the pages has ended"')


_OF_MOST_PAGES = (
    *("assay.cli.main", "assay.cli.results", "assay.cli.scoring", "assay.runs.side_by_side"),
    *("assay.insight.diffing", "assay.insight.findings", "assay.checks.graders.check", "assay.checks.tools.tool_calls"),
    *("assay.checks.instructions.check", "assay.checks.similarity.check", "numpy", "rich.progress", "rich.table"),
)


def _main() -> None:
    """Run each page that standard input has, a line for each; print a line about each."""
    for module in _OF_MOST_PAGES:
        importlib.import_module(module)

    sys.path.insert(0, "")
    for page in sys.stdin:
        with tempfile.TemporaryFile("w+") as results:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of threads that libraries start where they are imported
                child = os.fork()
            if not child:
                _run_page(page, results)
            _, status = os.waitpid(child, 0)
            code = os.waitstatus_to_exitcode(status)
            results.seek(0)
            sys.stdout.write((json.dumps(f"exit code {code}") if code else results.read()) + "\n")
            sys.stdout.flush()


def _run_page(page: str, output: TextIO) -> NoReturn:
    """Run the blocks of a page in its folder, write what each printed, and its failure; and end this process."""
    folder, blocks = json.loads(page)
    os.chdir(folder)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)  # what is written beside sys.stdout is no answer
    results = []
    for kind, file, text, commands in blocks:
        printed, failure = io.StringIO(), ""
        with redirect_stdout(printed), redirect_stderr(printed):
            try:
                if file is not None:
                    Path(file).write_text(text, "utf-8")
                if kind == "python":
                    _run_python(text)
                for command in commands:
                    _run_command(command)
            except BaseException:  # noqa: BLE001  (whatever an example raises is its failure)
                failure = traceback.format_exc()
        results.append((printed.getvalue(), failure))
    json.dump(results, output)
    output.flush()
    os._exit(0)  # as the command does: threads of the engine may still be there


def _run_python(text: str) -> None:
    wanted = set(re.findall(r"^(?:import|from) (\w+)", text, re.MULTILINE)) & OPTIONAL
    if any(importlib.util.find_spec(package) is None for package in wanted):
        return
    with tempfile.NamedTemporaryFile("w", suffix=".py", encoding="utf-8") as program:  # a file, for inspect.getsource
        program.write(text)
        program.flush()
        runpy.run_path(program.name, run_name="__main__")


def _run_command(command: str) -> None:
    expected = exit_code_of(command)
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words = list(lexer)
    if any(set(word) <= set("|<>&;()") for word in words if word):
        ended, printed = _in_shell(command)
    elif words[1] == "view":
        ended, printed = _until_it_answers(words[1:])
    else:
        ended, printed = _in_process(words[1:])
    print(printed, end="")  # noqa: T201  (captured)
    if ended != expected or "Traceback" in printed:
        raise AssertionError(f"{command}\nended with {ended}:\n{printed}")


def _in_process(arguments: list[str]) -> tuple[int, str]:
    """Run a plain command without the time that a process takes to start."""
    from typer.testing import CliRunner

    from assay.cli.main import app

    sys.argv = ["assay", *arguments]
    result = CliRunner().invoke(app, arguments, prog_name="assay")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


def _until_it_answers(arguments: list[str]) -> tuple[int, str]:
    """Run a server until its address answers; then interrupt it, as Ctrl-C does."""
    command = [sys.executable, "-W", "error", "-m", "assay", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as server:
        assert server.stdout is not None
        address = server.stdout.readline()
        try:
            urlopen(address.strip()).close()  # noqa: S310  (the command has printed it)
        finally:
            server.send_signal(signal.SIGINT)
        printed = address + server.stdout.read()
    return 0 if server.returncode == 128 + signal.SIGINT else server.returncode, printed


def _in_shell(command: str) -> tuple[int, str]:
    """Run a command with pipes or redirections as a shell does."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "assay")
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -W error -m assay "$@"\n')
        program.chmod(0o755)
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", command],
            env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
    return done.returncode, done.stdout


if __name__ == "__main__":
    _main()
