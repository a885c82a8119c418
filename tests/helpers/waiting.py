"""How tests wait, so that no verdict hangs on the speed of the machine: for what must happen, and for calls that never end."""

import threading
import time
from pathlib import Path

PATIENCE = 300.0
"""Seconds after which what must happen is taken not to happen: no machine is so busy."""


def until(condition):
    """Wait until a condition holds, and return its value."""
    ends = time.monotonic() + PATIENCE
    while not (value := condition()):
        assert time.monotonic() < ends, "it did not happen"
        time.sleep(0.005)
    return value


def is_pending(pid, number):
    """Whether a signal has not reached a process yet; False where the system does not tell."""
    return _is_in(pid, number, "SigPnd:", "ShdPnd:")


def is_caught(pid, number):
    """Whether a process has a handler for a signal."""
    return _is_in(pid, number, "SigCgt:")


def _is_in(pid, number, *sets):
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
    masks = [int(line.split()[1], 16) for line in status.splitlines() if line.startswith(sets)]
    return any(mask >> (number - 1) & 1 for mask in masks)


def without_waiting(said):
    """The messages of a command that was interrupted, without the one for a run that takes seconds to end."""
    return said.replace("waiting for a function that does not return; press Ctrl-C again to exit at once\n", "")


def waiting_at(gate, name="*"):
    """Which rows of ``gated_rewards`` wait at a gate: name, process, node."""
    return [path.name.split(".") for path in gate.glob(f"{name}.*.*")]


def interrupt_at(gate, process, number):
    """Send a signal to a process of which a row waits at a gate, and open the gate when the signal has arrived."""
    until(lambda: waiting_at(gate) or process.poll() is not None)
    process.send_signal(number)
    until(lambda: not is_pending(process.pid, number))
    (gate / "open").touch()


class StoppedClock:
    """The clock of the watchdog of calls: it stands still, except that calls that hang take hours.

    Only they exceed a limit then, however long the machine takes for the others.
    """

    def __init__(self):
        self._now, self._ended = 1.0, threading.Event()

    def monotonic(self):
        return self._now

    def hang(self):
        """Take hours, without the interpreter."""
        self._now += 10_000.0
        self._ended.wait(PATIENCE)

    def spin(self):
        """Take hours of the interpreter."""
        self._now += 10_000.0
        while not self._ended.is_set():
            pass

    def end(self):
        """End the calls that hang."""
        self._ended.set()
