"""Processes of this interpreter that read requests from their standard input and write replies to their standard output.

They end with the process that started them, however it ends; a fork forgets them.
"""

import atexit
import contextlib
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from assay.system.processes import forget_in_children
from assay.system.signals import LEFTOVERS

_PIECE = 1 << 16
"""Maximum number of bytes per read."""


class GoneError(Exception):
    """The process has ended without a reply."""


class PipedProcess:
    """A process, and non-blocking pipes to it and from it."""

    def __init__(
        self, arguments: Sequence[str], *, environment: Mapping[str, str] | None = None, leads: bool = False
    ) -> None:
        if _ENDING:  # a thread of Polars may still be at work
            raise OSError("this process is ending")
        self.process = subprocess.Popen(  # noqa: S603  (this interpreter, with a program of ours)
            [sys.executable, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            env=environment,
            start_new_session=leads,
        )
        _RUNNING.add(self)
        assert self.process.stdin is not None  # noqa: S101  (both are pipes)
        assert self.process.stdout is not None  # noqa: S101
        self._stdin, self._stdout = self.process.stdin, self.process.stdout
        self.questions, self.answers = self._stdin.fileno(), self._stdout.fileno()
        # the process does not read while it works, and the run may have to stop
        os.set_blocking(self.questions, False)
        os.set_blocking(self.answers, False)
        self._unsent: Iterator[bytes] = iter(())
        self._piece = memoryview(b"")
        self.is_sent = True
        self._read = bytearray()
        self._owner = os.getpid()
        self._leads = leads

    @property
    def usable(self) -> bool:
        """Whether the process runs and belongs to this one; a fork inherits its parent's."""
        return self._owner == os.getpid() and self.process.poll() is None

    def send(self, pieces: Iterable[bytes]) -> None:
        """Send bytes after those that are not sent yet, when ``exchange`` is called."""
        self._unsent = iter(pieces) if self.is_sent else chain(self._unsent, pieces)
        self.is_sent = False

    def watch(self, poller: select.poll) -> None:
        """Let a poller wait until ``exchange`` has something to do."""
        poller.register(self.answers, select.POLLIN)
        if not self.is_sent:
            poller.register(self.questions, select.POLLOUT)

    def unwatch(self, poller: select.poll) -> None:
        """Undo ``watch``."""
        for descriptor in (self.answers, self.questions):
            with contextlib.suppress(KeyError):
                poller.unregister(descriptor)

    def transfer(self, poller: select.poll) -> bytearray:
        """Send what fits into the pipe, and return the bytes that have arrived; the caller deletes what it has used."""
        if not self.is_sent and self._send():
            poller.unregister(self.questions)
        with contextlib.suppress(BlockingIOError):
            data = os.read(self.answers, _PIECE)
            if not data:
                raise GoneError
            self._read += data
        return self._read

    def _send(self) -> bool:
        try:
            while True:
                self._piece = self._piece or memoryview(next(self._unsent))
                self._piece = self._piece[os.write(self.questions, self._piece) :]
        except BlockingIOError:
            return False
        except (StopIteration, BrokenPipeError):  # the end of the process is noticed when reading replies
            self.is_sent = True
            return True

    def close(self) -> int:
        """End the process, even at work, and close the pipes; a fork only closes its copies of the pipes."""
        signal_ = self.end()
        with contextlib.suppress(OSError):  # unsent data
            self._stdin.close()
        self._stdout.close()
        _RUNNING.discard(self)
        return signal_

    def end(self) -> int:
        """End the process, but leave its pipes open for a thread that reads them."""
        if self._owner != os.getpid():
            self.process.returncode = 0  # or Python would warn that it runs
            return 0
        if self._leads and self.process.returncode is None:  # else the number may be another's by now
            with contextlib.suppress(OSError):
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()
        return -self.process.wait()


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_RUNNING: set[PipedProcess] = set()
_ENDING: list[bool] = []
"""Holds True when this process is ending."""


def _end_all() -> None:
    for process in [*_RUNNING]:
        process.end()


@atexit.register
def _end_for_good() -> None:
    _ENDING.append(True)
    _end_all()


def _forget() -> None:
    for process in [*_RUNNING]:
        process.close()
    _RUNNING.clear()


forget_in_children(_forget)
LEFTOVERS.append(_end_all)
