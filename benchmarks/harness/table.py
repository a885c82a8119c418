"""The table that the benchmarks end with: on the terminal, and as Markdown, where each line keeps the run that measured it."""

import importlib.metadata
import os
import platform
import re
import shutil
import subprocess
import sys
from dataclasses import astuple, dataclass
from datetime import UTC, datetime
from pathlib import Path

from assay.kernel.library import kernel_state

__all__ = [
    "HEADS",
    "Goal",
    "Line",
    "as_text",
    "at_least",
    "at_most",
    "commit",
    "line",
    "machine",
    "merged",
    "per_row",
    "today",
]

HEADS = ("measured", "contender", "state", "time", "CPU", "ratio", "CPU ratio", "goal", "met")
_PEERS = ("polars", "pyarrow", "duckdb", "verifiers", "inspect-ai")


@dataclass(frozen=True)
class Goal:
    """What a ratio or a figure is to be, and whether it is."""

    wanted: str
    met: bool


def at_most(value: float, limit: float, unit: str = "") -> Goal:
    return Goal(f"≤ {limit:g}{unit}", value <= limit)


def at_least(value: float, limit: float, unit: str = "") -> Goal:
    return Goal(f"≥ {limit:g}{unit}", value >= limit)


@dataclass(frozen=True)
class Line:
    """A line of the table.

    Attributes:
        measured: What was done.
        contender: By whom.
        state: ``cold`` for a fresh process, or data that the process has not seen before; ``warm`` for the same data once more.
        time: The least wall time, or the peak of memory, with its unit.
        cpu: The least CPU time.
        ratio: The time beside another one, which it names.
        cpu_ratio: The same of the CPU time.
        goal: What is wanted of it.
        met: Whether that is so.
    """

    measured: str
    contender: str
    state: str = ""
    time: str = ""
    cpu: str = ""
    ratio: str = ""
    cpu_ratio: str = ""
    goal: str = ""
    met: str = ""


def line(
    measured: str,
    contender: str,
    time: str,
    cpu: str = "",
    *,
    state: str = "cold",
    ratio: tuple[float, str] | None = None,
    cpu_ratio: tuple[float, str] | None = None,
    goal: Goal | None = None,
) -> Line:
    """Return a line from its numbers; a ratio is a number and what it is a multiple of."""
    met = ("yes" if goal.met else "no") if goal else ""
    shown = (_times(ratio), _times(cpu_ratio), goal.wanted if goal else "", met)
    return Line(measured, contender, state, time, cpu, *shown)


def _times(ratio: tuple[float, str] | None) -> str:
    return "" if ratio is None else f"{ratio[0]:.{1 if ratio[0] >= 10 else 2}f} × {ratio[1]}"


def per_row(seconds: float, rows: int) -> str:
    """A time as µs a row."""
    return f"{seconds / rows * 1e6:.2f} µs/row"


def as_text(lines: list[Line]) -> list[str]:
    """Return aligned columns; what is measured is written once."""
    cells = [HEADS, *(astuple(line) for line in lines)]
    widths = [max(len(row[at]) for row in cells) for at in range(len(HEADS))]
    printed, before = [], None
    for measured, *rest in cells:
        shown = ("" if measured == before else measured, *rest)
        before = measured
        printed.append("  ".join(cell.ljust(width) for cell, width in zip(shown, widths, strict=True)).rstrip())
    return printed


def merged(kept: str, lines: list[Line], run: str, where: str) -> str:
    """Return a kept table with what was measured anew: a line replaces that of the same contender, and all others stay.

    Args:
        kept: The table, as this function returned it; ``""`` for none.
        lines: What was measured. Contenders that were absent replace nothing.
        run: When that was, and at which commit; each line ends with it.
        where: The machine, and what else holds for the run. Runs that no line ends with are left out.
    """
    entries = kept.splitlines()
    runs = dict(entry[2:].split(": ", 1) for entry in entries if entry.startswith("* ")) | {run: where}
    rows = [re.split(r"(?<!\\) ?\| ?", entry)[1:-1] for entry in entries if entry.startswith("| ")][2:]
    there = [astuple(line) for line in lines if not line.time.startswith("absent")]
    rows += [[*(cell.replace("|", "\\|") for cell in line), run] for line in there]
    latest = {_name(row): row for row in rows}.values()
    sections = list(dict.fromkeys(row[0] for row in latest))
    table = [(*HEADS, "run"), ("---",) * (len(HEADS) + 1), *sorted(latest, key=lambda row: sections.index(row[0]))]
    used = [f"* {name}: {runs[name]}\n" for name in sorted({row[-1] for row in latest})]
    return "".join([*used, "\n", *(f"| {' | '.join(row)} |\n" for row in table)])


def _name(row: list[str]) -> tuple[str, ...]:
    """What was measured, the contender without what a run adds to its name, and the state."""
    return row[0], re.sub(r" \(.*|, draw \d.*| of \d+ of \d.*", "", row[1]), row[2]


def today() -> str:
    return f"{datetime.now(UTC):%Y-%m-%d}"


def commit(folder: Path = Path(__file__).parents[2] / "engine") -> str:
    """Return the last commit that changed a folder, and whether there are changes since."""
    if shutil.which("git") is None:
        return "no commit"
    asked = [["log", "-1", "--format=%h", "--", "."], ["status", "--porcelain", "--", "."]]
    done = [subprocess.run(["git", "-C", folder, *one], capture_output=True, text=True, check=False) for one in asked]  # noqa: S603, S607
    if done[0].returncode:
        return "no commit"
    return f"commit {done[0].stdout.strip()}{' + changes' if done[1].stdout.strip() else ''}"


def machine() -> str:
    """Return the machine and the versions."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    versions = [f"CPython {platform.python_version()}", *(f"{name} {_version(name)}" for name in _PEERS)]
    return f"{_processor()}, {cores} cores, {memory:.0f} GB, {platform.system()} · {', '.join([*versions, kernel_state(), _node()])}"


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "absent"


def _node() -> str:
    try:
        return (
            f"node {subprocess.run(['node', '--version'], capture_output=True, text=True, check=True).stdout.strip()}"  # noqa: S607
        )
    except (OSError, subprocess.CalledProcessError):
        return "node absent"


def _processor() -> str:
    if sys.platform == "linux":
        for entry in Path("/proc/cpuinfo").read_text("utf-8").splitlines():
            if entry.startswith("model name"):
                return entry.partition(":")[2].strip()
    return platform.processor() or platform.machine()
