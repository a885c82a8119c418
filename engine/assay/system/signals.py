"""Stop a run at a signal, even while Polars blocks the main thread.

Python calls signal handlers in the main thread only, and there Polars waits for its own threads, which may run a user's function
for a long time. Python writes the signal's number to a socket at once, whatever the main thread does; a thread reads it.
"""

import atexit
import contextlib
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from assay.errors import AssayError
from assay.system.processes import forget_in_children, prepare_process

_SIGNALS = (signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM))  # Windows has no SIGHUP
_PATIENCE = 5.0
"""Seconds that a run has to end after a signal."""
_LOOK = 0.01
"""Seconds between looks at the engine's threads."""
_QUIET = 5
"""Looks at which none of them runs Python, before the interpreter may end."""


@dataclass
class ForceExit:
    """Callbacks for a run that does not end soon after a signal because a user's function does not return."""

    waits: Callable[[], None]
    gives_up: Callable[[int], None]


FORCE_EXIT: list[ForceExit] = []
"""Holds the callbacks of the command line, if this process is one."""

CLEANUPS: list[Callable[[], None]] = []
"""Callbacks that remove processes and files when the program exits without cleaning up."""


EXIT_MESSAGES: list[Callable[[], str]] = []
"""Callbacks that return what a stopped run keeps of its work, for the message."""


_HEARD: list[threading.Event] = []
"""For each run in the main thread, innermost last: set when a signal arrives."""

_NOTICE = 0.5
"""Seconds to wait for the listener to report a signal."""


class Stopped(KeyboardInterrupt):
    """A run was interrupted; the message says what is kept of it."""


@contextlib.contextmanager
def interruptible() -> Iterator[threading.Event]:
    """Make a run interruptible."""
    prepare_process()
    stop = threading.Event()
    with _listening(stop):
        try:
            yield stop
        except BaseException as error:
            stop.set()
            if isinstance(error, KeyboardInterrupt):
                atexit.unregister(await_engine)
                atexit.register(await_engine)
            raise


def await_engine() -> None:
    """Wait until no thread of the engine runs Python."""
    quiet, end = 0, time.monotonic() + _PATIENCE
    while quiet < _QUIET and time.monotonic() < end:
        # NOTE: a foreign thread that has asked for its thread object is listed, too
        known = {thread.ident for thread in threading.enumerate() if not isinstance(thread, threading._DummyThread)}  # noqa: SLF001  (it has no other mark)
        quiet = quiet + 1 if sys._current_frames().keys() <= known else 0  # noqa: SLF001  (documented)
        time.sleep(_LOOK)


def signalled() -> bool:
    """Return whether a signal arrived during the run in this thread, whoever handles it."""
    if threading.current_thread() is not threading.main_thread() or not _HEARD:
        return False
    return _HEARD[-1].wait(_NOTICE)


def is_listening() -> bool:
    """Return whether a run in the main thread learns of each signal."""
    return bool(_HEARD)


@contextlib.contextmanager
def _listening(stop: threading.Event) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # NOTE: Polars puts a handler of its own in front, which ends its streams, even where interrupts are ignored
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    elif hasattr(signal, "siginterrupt"):  # not on Windows
        # NOTE: Polars sets SA_RESTART for SIGINT; a read of a pipe would then not end at an interrupt
        signal.siginterrupt(signal.SIGINT, True)
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    before = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    heard = threading.Event()
    if before != -1:  # an event loop uses the wakeup descriptor, and keeps it
        signal.set_wakeup_fd(before)
        heard.set()  # signals would not be noticed here: assume one

    listener = threading.Thread(target=_listen, args=(reader, stop, heard), name="assay-signals", daemon=True)
    try:
        listener.start()
    except RuntimeError as error:
        signal.set_wakeup_fd(before)
        writer.close()
        reader.close()
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
        writer.close()
        listener.join()
        reader.close()


@forget_in_children
def _hear_nothing() -> None:  # signals of a process that was forked during a run do not concern it
    if _HEARD:
        signal.set_wakeup_fd(-1)
        _HEARD.clear()


def _listen(reader: socket.socket, stop: threading.Event, heard: threading.Event) -> None:
    count, last = 0, 0
    while True:
        try:
            signals = reader.recv(64)
        except TimeoutError:
            reader.settimeout(None)
            if FORCE_EXIT and last != signal.SIGINT:
                FORCE_EXIT[0].gives_up(last)
            elif FORCE_EXIT:
                FORCE_EXIT[0].waits()
            continue
        if not signals:
            return
        heard.set()
        ending = [
            number
            for number in signals
            if number in _SIGNALS and (FORCE_EXIT or signal.getsignal(number) is signal.default_int_handler)
        ]
        if not ending:
            continue
        stop.set()
        count, last = count + len(ending), ending[-1]
        reader.settimeout(_PATIENCE)
        if FORCE_EXIT and count > 1:
            FORCE_EXIT[0].gives_up(last)
