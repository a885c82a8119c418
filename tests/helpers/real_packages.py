"""Real packages that adapters are for: whether they are there, and the pages about them, whose code is run as it stands."""

import importlib.util
import os
import subprocess
import sys

import pytest
from pages import DOCS, blocks_of, commands_of

MOST_GLUE = 5
"""Lines that a user writes to plug Assay in."""


def needs(package, install):
    """Skip a module, saying what to install, if a package is absent."""
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"needs {install}", allow_module_level=True)


def glue_of(page, file="glue.py"):
    """The lines of a page that plug Assay in: those of one of its files."""
    (block,) = (block for block in blocks_of((DOCS / "trainers" / page).read_text("utf-8")) if block.file == file)
    return [line for line in block.text.splitlines() if line.strip() and not line.startswith("#")]


def run_page(page, folder, without=None):
    """Write the files of a page, and run its commands and its other programs, in order; the output of each.

    Programs that hold the text ``without`` are for another version.
    """
    blocks, printed = blocks_of((DOCS / "trainers" / page).read_text("utf-8")), []
    for block in blocks:
        if block.file is not None:
            (folder / block.file).parent.mkdir(parents=True, exist_ok=True)
            (folder / block.file).write_text(block.text, "utf-8")
    assay = f"{sys.executable} -m assay"
    for block in blocks:
        if without is not None and without in block.text:
            continue
        commands = [["bash", "-c", command.replace("assay", assay, 1)] for command in commands_of(block)]
        if block.kind == "python" and block.file is None:
            commands = [[sys.executable, "-c", block.text]]
        printed += [run(command, folder) for command in commands]
    return printed


def run(command, folder):
    """What a command prints, without a network."""
    offline = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "DO_NOT_TRACK": "1", "NO_COLOR": "1"}
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **offline, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
