"""The table that the benchmarks end with: on the terminal, and as Markdown with the machine that it was measured on."""

import importlib.metadata
import os
import platform
import subprocess
import sys
from dataclasses import astuple, dataclass
from datetime import UTC, datetime
from pathlib import Path

_HEADS = ("measured", "contender", "time", "MB/s", "ratio", "goal", "met")
_PEERS = ("polars", "pyarrow", "duckdb", "verifiers", "inspect-ai")


@dataclass(frozen=True)
class Goal:
    """What a ratio or a figure is to be, and whether it is."""

    said: str
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
        time: The best time, or the peak of memory, with its unit.
        speed: MB of text a second.
        ratio: The time beside another one, which it names.
        goal: What is wanted of it.
        met: Whether that is so.
    """

    measured: str
    contender: str
    time: str = ""
    speed: str = ""
    ratio: str = ""
    goal: str = ""
    met: str = ""


def line(
    measured: str,
    contender: str,
    time: str,
    *,
    speed: float | None = None,
    ratio: tuple[float, str] | None = None,
    goal: Goal | None = None,
) -> Line:
    """A line from its numbers; a ratio is a number and what it is a multiple of."""
    return Line(
        measured,
        contender,
        time,
        "" if speed is None else f"{speed:,.0f}",
        "" if ratio is None else f"{ratio[0]:.{1 if ratio[0] >= 10 else 2}f} × {ratio[1]}",
        goal.said if goal else "",
        ("yes" if goal.met else "no") if goal else "",
    )


def per_row(seconds: float, rows: int) -> str:
    """A time as µs a row."""
    return f"{seconds / rows * 1e6:.2f} µs/row"


def as_text(lines: list[Line]) -> list[str]:
    """Aligned columns; what is measured is said once."""
    cells = [_HEADS, *(astuple(one) for one in lines)]
    widths = [max(len(row[at]) for row in cells) for at in range(len(_HEADS))]
    said, before = [], None
    for measured, *rest in cells:
        shown = "" if measured == before else measured
        before = measured
        said.append("  ".join(cell.ljust(width) for cell, width in zip((shown, *rest), widths, strict=True)).rstrip())
    return said


def as_markdown(lines: list[Line]) -> str:
    """The table, after a line on the machine and the versions."""
    rows = [_HEADS, ("---",) * len(_HEADS), *(astuple(one) for one in lines)]
    escaped = (" | ".join(cell.replace("|", "\\|") for cell in row) for row in rows)
    return f"{machine()}\n\n" + "".join(f"| {row} |\n" for row in escaped)


def machine() -> str:
    """The machine, the versions and the day."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    versions = [f"CPython {platform.python_version()}", *(f"{name} {_version(name)}" for name in _PEERS)]
    return (
        f"{datetime.now(UTC):%Y-%m-%d} · {_processor()}, {cores} cores, {memory:.0f} GB, {platform.system()} · "
        f"{', '.join([*versions, _node()])}"
    )


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
        for said in Path("/proc/cpuinfo").read_text("utf-8").splitlines():
            if said.startswith("model name"):
                return said.partition(":")[2].strip()
    return platform.processor() or platform.machine()
