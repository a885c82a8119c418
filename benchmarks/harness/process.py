"""Processes as they are timed: wall time from start to end, CPU time, and the most memory that they held."""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from harness.generate import CACHE

__all__ = ["HERE", "SPEC", "Call", "ProcessError", "Race", "Run", "assay", "contender", "launch"]

HERE = Path(__file__).resolve().parents[1]
SPEC = HERE / "ten_checks.json"

# NOTE: a child's peak counts what its parent held when it was started, so a small process stands between.
_LAUNCHER = """
import json, os, sys, time
started = time.perf_counter()
_, status, used = os.wait4(os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ), 0)
took = time.perf_counter() - started
peak = used.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
print(json.dumps([took, used.ru_utime + used.ru_stime, peak]))
sys.exit(os.waitstatus_to_exitcode(status))
"""


@dataclass(frozen=True)
class Run:
    """A process that ended well.

    Attributes:
        seconds: Wall time.
        cpu: CPU time of all its threads, in user and system mode, in seconds.
        peak: Peak of its resident memory in bytes.
        printed: The last line that it printed.
    """

    seconds: float
    cpu: float
    peak: int
    printed: str


@dataclass(frozen=True)
class Call:
    """What a process timed within itself, in seconds.

    Attributes:
        seconds: Wall time of the first call, with data that the process has not seen before.
        cpu: CPU time of that call.
        warm: Wall time of the best of the calls that followed with the same data; None without any.
    """

    seconds: float
    cpu: float
    warm: float | None


class ProcessError(RuntimeError):
    """A process that did not end well; the message has what it wrote on standard error."""


def launch(command: list[str]) -> Run:
    """Run a process to its end."""
    done = subprocess.run(  # noqa: S603  (our own contenders)
        [sys.executable, "-I", "-S", "-c", _LAUNCHER, *command], cwd=HERE, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise ProcessError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr}")
    *lines, measured = done.stdout.splitlines()
    return Run(*json.loads(measured), lines[-1] if lines else "")


def assay(*args: object) -> list[str]:
    """Return the command line of Assay."""
    return [sys.executable, "-m", "assay", *map(str, args)]


def contender(module: str, rollouts: Path, *more: object, spec: object = SPEC) -> list[str]:
    """Return the command line of a contender; its verdicts go to a file by its name in the cache."""
    named = (module, spec, rollouts, CACHE / f"{module}.parquet", *more)
    return [sys.executable, "-m", "contenders", *map(str, named)]


class Race:
    """Fresh processes that take turns, so that what else the machine does hits all of them alike; the least figures count.

    Attributes:
        commands: The processes, by name.
        runs: What each did, turn by turn.
    """

    def __init__(self, commands: dict[str, list[str]], turns: int = 0) -> None:
        self.commands = commands
        self.runs: dict[str, list[Run]] = {name: [] for name in commands}
        for _ in range(turns):
            self.turn()

    def turn(self) -> None:
        """Run each process once."""
        for name in self.commands:
            self.run(name)

    def run(self, name: str) -> None:
        """Run one process once."""
        self.runs[name].append(launch(self.commands[name]))

    def seconds(self, name: str) -> float:
        """Return the least wall time of a process."""
        return min(run.seconds for run in self.runs[name])

    def cpu(self, name: str) -> float:
        """Return the least CPU time of a process."""
        return min(run.cpu for run in self.runs[name])

    def peak(self, name: str) -> int:
        """Return the least peak of memory of a process, in bytes."""
        return min(run.peak for run in self.runs[name])

    def call(self, name: str) -> Call:
        """Return the least times that the processes of this name printed."""
        calls = [Call(**json.loads(run.printed)) for run in self.runs[name]]
        warm = [call.warm for call in calls if call.warm is not None]
        return Call(min(call.seconds for call in calls), min(call.cpu for call in calls), min(warm, default=None))
