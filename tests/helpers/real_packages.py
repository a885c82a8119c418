"""Real packages that adapters are for: whether they are there, and the pages about them, whose code is run as it stands."""

import importlib
import importlib.util
import os
import subprocess
import sys

import pytest
from pages import DOCS, WIDTH, blocks_of, commands_of, comparable, exit_code_of

MOST_GLUE = 5
"""Lines that a user writes to plug Assay in."""


def needs(package, install):
    """Skip a module, saying what to install, if a package is absent."""
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"needs {install}", allow_module_level=True)


class Later:
    """A module that is imported by the test that uses it: each process of the suite collects all tests, and runs some."""

    def __init__(self, name):
        self._name = name

    def __getattr__(self, name):
        if name.startswith("__"):  # what pytest asks every name of a module for
            raise AttributeError(name)
        return getattr(importlib.import_module(self._name), name)


def glue_of(page, file="glue.py"):
    """The lines of a page that plug Assay in: those of one of its files."""
    (block,) = (block for block in blocks_of((DOCS / "trainers" / page).read_text("utf-8")) if block.file == file)
    return [line for line in block.text.splitlines() if line.strip() and not line.startswith("#")]


def run_page(page, folder, without=None, programs=()):
    """Write the files of a page, and run its commands and its other programs, in order; the output of each.

    What the page shows of a block is what the block prints.

    Args:
        page: Its path below ``docs/trainers``.
        folder: Where it runs.
        without: Programs that hold this text are left out: they are for another version.
        programs: What begins further lines of ``sh`` blocks that run, by their paths: ``{"python": sys.executable}``.
    """
    blocks, printed = blocks_of((DOCS / "trainers" / page).read_text("utf-8")), []
    programs = {"assay": f"{sys.executable} -m assay", **dict(programs)}
    for block in blocks:
        if block.file is not None:
            (folder / block.file).parent.mkdir(parents=True, exist_ok=True)
            (folder / block.file).write_text(block.text, "utf-8")
    for block, following in zip(blocks, [*blocks[1:], None], strict=True):
        if without is not None and without in block.text:
            continue
        lines = [line.partition(" ") for line in commands_of(block, tuple(programs))]
        here = [run(["bash", "-c", f"{programs[name]} {rest}"], folder, merged=True) for name, _, rest in lines]
        if block.kind == "python" and block.file is None:
            here = [run([sys.executable, "-c", block.text], folder)]
        if here and following is not None and following.kind == "output":
            assert comparable("".join(here)) == comparable(following.text), (
                f"{page}:{block.line} prints\n{''.join(here)}"
            )
        printed += here
    return printed


def run(command, folder, merged=False):
    """What a command prints, without a network; ``merged`` with what it says on standard error."""
    offline = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "DO_NOT_TRACK": "1", "NO_COLOR": "1"}
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **offline, "PYTHONPATH": str(folder), "COLUMNS": str(WIDTH)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if merged else subprocess.PIPE,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == exit_code_of(command[-1]), done.stdout + (done.stderr or "")
    return done.stdout
