"""Stopping when asked to, while the engine has the main thread.

Python calls a signal's handler in the main thread only, and there the engine waits for its own threads, which may be in a user's
function for long. The signal's number is written to a pipe at once, whatever the main thread does; a thread reads it.
"""

import contextlib
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from assay.errors import AssayError
from assay.system.processes import forget_in_children, prepare_process

__all__ = ["IMPATIENCE", "KEPT", "LEFTOVERS", "Impatience", "Stopped", "interruptible", "signalled"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_PATIENCE = 5.0
"""Seconds after which a program that is to end, does."""


@dataclass
class Impatience:
    """What a program does where a run does not end soon after it was asked to, for a function of the user does not return.

    Attributes:
        waits: Called, from a thread of its own, some seconds after an interrupt.
        gives_up: Called so with the signal, at the second one, and some seconds after SIGTERM.
    """

    waits: Callable[[], None]
    gives_up: Callable[[int], None]


IMPATIENCE: list[Impatience] = []
"""That of the command line, where this process is one."""

LEFTOVERS: list[Callable[[], None]] = []
"""What removes processes and files that a program leaves which ends without an end."""


KEPT: list[Callable[[], str]] = []
"""What to say of a run that is stopped and keeps what it has done."""


_HEARD: list[threading.Event] = []
"""Of each run in the main thread, the innermost last, whether a signal came."""

_NOTICE = 0.5
"""Seconds within which a signal that came is heard of."""


class Stopped(KeyboardInterrupt):
    """A run was interrupted; the words say what is kept of it."""


@contextlib.contextmanager
def interruptible() -> Iterator[threading.Event]:
    """A run that can be stopped.

    Yields:
        Set when the run is to stop: at an interrupt, where nobody else listens for signals, and when the run ends early.

    Raises:
        UsageError: The engine cannot run in this process.
        AssayError: No thread can be started.
    """
    prepare_process()
    stop = threading.Event()
    with _told_of_signals(stop):
        try:
            yield stop
        except BaseException:
            stop.set()
            raise


def signalled() -> bool:
    """Whether a signal came during the run of this thread, whoever handles it."""
    if threading.current_thread() is not threading.main_thread() or not _HEARD:
        return False
    return _HEARD[-1].wait(_NOTICE)


@contextlib.contextmanager
def _told_of_signals(stop: threading.Event) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    if hasattr(signal, "siginterrupt"):  # not on Windows
        # NOTE: Polars has the system go on with a call that an interrupt ends: who waits for a pipe would not hear of it
        signal.siginterrupt(signal.SIGINT, True)
    theirs, ours = socket.socketpair()
    ours.setblocking(False)
    before = signal.set_wakeup_fd(ours.fileno(), warn_on_full_buffer=False)
    heard = threading.Event()
    if before != -1:  # an event loop listens, and goes on listening
        signal.set_wakeup_fd(before)
        heard.set()  # for all we know

    listener = threading.Thread(target=_listen, args=(theirs, stop, heard), name="assay-signals", daemon=True)
    try:
        listener.start()
    except RuntimeError as error:
        signal.set_wakeup_fd(before)
        ours.close()
        theirs.close()
        raise AssayError(
            f"The system refuses another thread: {error}.",
            "Raise its limits of processes and of memory: ulimit -u, -v.",
        ) from None
    _HEARD.append(heard)
    try:
        yield
    finally:
        _HEARD.remove(heard)
        signal.set_wakeup_fd(before)
        ours.close()
        listener.join()
        theirs.close()


def _hear_nothing() -> None:
    """A process that was forked in the middle of a run is no part of it: its signals are not the run's."""
    if _HEARD:
        signal.set_wakeup_fd(-1)
        _HEARD.clear()


forget_in_children(_hear_nothing)


def _listen(told: socket.socket, stop: threading.Event, heard: threading.Event) -> None:
    """Set ``stop`` at a signal that ends the run, unless a handler of the user's is to decide."""
    times, last = 0, 0
    while True:
        try:
            signals = told.recv(64)
        except TimeoutError:
            told.settimeout(None)
            if IMPATIENCE and last == signal.SIGTERM:
                IMPATIENCE[0].gives_up(last)
            elif IMPATIENCE:
                IMPATIENCE[0].waits()
            continue
        if not signals:
            return
        heard.set()
        ending = [number for number in signals if number in _SIGNALS and _ends_the_run(number)]
        if not ending:
            continue
        stop.set()
        times, last = times + len(ending), ending[-1]
        told.settimeout(_PATIENCE)
        if IMPATIENCE and times > 1:
            IMPATIENCE[0].gives_up(last)


def _ends_the_run(number: int) -> bool:
    return bool(IMPATIENCE) or signal.getsignal(number) is signal.default_int_handler
