"""The process of the ``assay`` command.

Requested data goes to standard output, progress and summaries to standard error. Exit codes: 0 success, 1 internal error or
disk error, 2 invalid usage, spec or input, 3 too many scoring errors or malformed lines, or rewards that are not what the verifiers
mean: a check did not run or broke on every row, or every row has an error, or a part of an imported file has no counterpart; 130 interrupted,
143 terminated, 129 when the terminal was closed.
"""

import contextlib
import gc
import os
import signal
import sys
from typing import Any

from assay.cli.app import app, say, to_stderr
from assay.errors import printable
from assay.system.processes import open_standard_streams, return_memory_soon, silence
from assay.system.signals import CLEANUPS, EXIT_MESSAGES, FORCE_EXIT, ForceExit, is_listening
from assay.system.stdout import open_streams

__all__ = ["app", "main"]


def _report_wait() -> None:
    message = "waiting for a function that does not return; press Ctrl-C again to exit at once"
    to_stderr().print(message, markup=False, highlight=False)


def _exit_now(number: int) -> None:
    with contextlib.suppress(OSError, ValueError, AttributeError):
        say(printable(EXIT_MESSAGES[-1]() if EXIT_MESSAGES else "interrupted; nothing was written"))
    silence((1, 2))  # the main thread may find its way out while the processes end that it waits for
    _clean_up()
    os._exit(128 + number)


def _clean_up() -> None:
    for remove in CLEANUPS:
        remove()


def _run() -> int:
    try:
        app()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except OSError as error:  # from printing the help or the version
        to_stderr().print(f"error: standard output: {error.strerror or error}.", markup=False, highlight=False)
        return 1
    return 0


def _ignore_signals() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
        signal.signal(number, signal.SIG_IGN)


def _take(lost: "sys.UnraisableHookArgs") -> None:
    """Take an exception that Python would ignore: a signal may arrive in a callback, of an import for example."""
    if not isinstance(lost.exc_value, KeyboardInterrupt | SystemExit):
        sys.__unraisablehook__(lost)
    elif not is_listening():  # else the run has heard the signal
        with contextlib.suppress(OSError):  # not by rich, which may be what is being imported
            os.write(2, b"interrupted; nothing was written\n")
        _clean_up()
        os._exit(int(lost.exc_value.code or 0) if isinstance(lost.exc_value, SystemExit) else 128 + signal.SIGINT)


def main() -> None:
    """Run the ``assay`` command."""
    sys.unraisablehook = _take
    return_memory_soon()
    gc.disable()  # until a command has imported its modules: to look for garbage among them takes a tenth of a short run
    open_standard_streams()
    open_streams()
    FORCE_EXIT.append(ForceExit(_report_wait, _exit_now))
    ended_by: list[int] = []
    terminals = [descriptor for descriptor in (1, 2) if os.isatty(descriptor)]

    def terminate(number: int, stack: Any) -> None:
        if number != signal.SIGTERM:
            silence(terminals)  # they are gone: to write there is an error
            taker = signal.getsignal(signal.SIGTERM)
            if callable(taker) and taker is not terminate:  # a server, which closes its connections
                taker(signal.SIGTERM, stack)
                return
        ended_by.append(number)
        sys.exit(128 + number)  # raise, so that temporary files are removed

    signal.signal(signal.SIGTERM, terminate)
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:  # nohup ignores it
        signal.signal(signal.SIGHUP, terminate)
    try:
        code = _run()
        _ignore_signals()
    except SystemExit as end:  # the signal came as the command ended, whose result is complete or was not begun
        code = int(end.code or 0)
        _ignore_signals()
    if code and ended_by:  # Polars may report it as an interrupt
        code = 128 + ended_by[0]
    with contextlib.suppress(OSError, ValueError, AttributeError):  # closed, or never opened
        sys.stdout.flush()
        sys.stderr.flush()
    _clean_up()
    # NOTE: an interrupted run leaves engine threads that may still call Python; a normal exit would abort in them.
    os._exit(code)
