"""Stopping when asked to, while the engine has the main thread.

Python calls a signal's handler in the main thread only, and there the engine waits for its own threads, which may be in a user's
function for long. The signal's number is written to a pipe at once, whatever the main thread does; a thread reads it.
"""

import contextlib
import signal
import socket
import threading
from collections.abc import Iterator

__all__ = ["interruptible"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextlib.contextmanager
def interruptible() -> Iterator[threading.Event]:
    """A run that can be stopped.

    Yields:
        Set when the run is to stop: at an interrupt, where nobody else listens for signals, and when the run ends early.
    """
    stop = threading.Event()
    with _told_of_signals(stop):
        try:
            yield stop
        except BaseException:
            stop.set()
            raise


@contextlib.contextmanager
def _told_of_signals(stop: threading.Event) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    theirs, ours = socket.socketpair()
    ours.setblocking(False)
    before = signal.set_wakeup_fd(ours.fileno(), warn_on_full_buffer=False)
    if before != -1:  # an event loop listens, and goes on listening
        signal.set_wakeup_fd(before)

    def listen() -> None:
        while told := theirs.recv(64):
            if any(number in told for number in _SIGNALS):
                stop.set()

    listener = threading.Thread(target=listen, name="assay-signals", daemon=True)
    listener.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        ours.close()
        listener.join()
        theirs.close()
