"""Processes as they are timed: from start to end, with the most memory that they held."""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from harness.generate import CACHE

HERE = Path(__file__).resolve().parents[1]
SPEC = HERE / "ten_checks.json"

# NOTE: a child's peak counts what its parent held when it was started, so a small process stands between.
_LAUNCHER = """
import json, os, sys, time
started = time.perf_counter()
_, status, used = os.wait4(os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ), 0)
took = time.perf_counter() - started
peak = used.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
print(json.dumps([took, peak]))
sys.exit(os.waitstatus_to_exitcode(status))
"""


@dataclass(frozen=True)
class Took:
    """A process that ended well: wall time in seconds, peak of its resident memory in bytes, the last line that it printed."""

    seconds: float
    peak: int
    said: str


def launch(command: list[str]) -> Took:
    """Run a process to its end."""
    done = subprocess.run(  # noqa: S603  (our own contenders)
        [sys.executable, "-I", "-S", "-c", _LAUNCHER, *command], cwd=HERE, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr}")
    *lines, measured = done.stdout.splitlines()
    return Took(*json.loads(measured), lines[-1] if lines else "")


def assay(*args: object) -> list[str]:
    """The command line of Assay."""
    return [sys.executable, "-m", "assay", *map(str, args)]


def contender(module: str, rollouts: Path, *more: object) -> list[str]:
    """The command line of a contender for the ten checks; what it says goes to a file by its name in the cache."""
    return [sys.executable, "-m", "contenders", module, *map(str, (SPEC, rollouts, CACHE / f"{module}.parquet", *more))]


class Race:
    """Processes that take turns, so that what else the machine does hits all of them alike; the best turn of each counts.

    Attributes:
        commands: The processes, by name.
        best: The quickest turn of each.
        leanest: The least peak of memory of each, in bytes.
    """

    def __init__(self, commands: dict[str, list[str]]) -> None:
        self.commands = commands
        self.best: dict[str, Took] = {}
        self.leanest: dict[str, int] = {}

    def turn(self) -> None:
        """Run each process once."""
        for name, command in self.commands.items():
            took = launch(command)
            self.best[name] = min(self.best.get(name, took), took, key=lambda one: one.seconds)
            self.leanest[name] = min(self.leanest.get(name, took.peak), took.peak)

    def seconds(self, name: str) -> float:
        """The best time of a process."""
        return self.best[name].seconds
