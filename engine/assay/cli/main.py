"""The ``assay`` command.

Data goes to standard output only when asked for, progress and summaries to standard error. Exit codes: 0 ok, 1 internal or
the disk, 2 bad usage, spec or input, 3 too many errors or bad rows, 130 interrupted.
"""

import contextlib
import importlib
import os
import pkgutil
import signal
import sys
import threading
from typing import Annotated

import typer

from assay._version import __version__
from assay.cli.app import app, to_stderr
from assay.errors import printable
from assay.system.processes import open_standard_streams
from assay.system.signals import IMPATIENCE, KEPT, LEFTOVERS, Impatience
from assay.system.stdout import open_streams

__all__ = ["app", "main"]

_COMMANDS = importlib.import_module("assay.cli.commands")
for _module in pkgutil.iter_modules(_COMMANDS.__path__):
    importlib.import_module(f"{_COMMANDS.__name__}.{_module.name}")


def _version(*, value: bool) -> None:
    if value:
        import polars as pl

        typer.echo(f"assay {__version__} (polars {pl.__version__})")
        raise typer.Exit


@app.callback()
def _root(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=lambda value: _version(value=value), is_eager=True, help="Print the versions."
        ),
    ] = False,
) -> None:
    del version


def _waits() -> None:
    said = "waiting for a function that does not return; Ctrl-C again ends at once"
    to_stderr().print(said, markup=False, highlight=False)


def _gives_up(number: int) -> None:
    """End without an end: the main thread waits for a function that does not return."""
    _leave_nothing()
    with contextlib.suppress(OSError, ValueError, AttributeError):
        said = KEPT[-1]() if KEPT else "interrupted; nothing was written"
        to_stderr().print(printable(said), markup=False, highlight=False, soft_wrap=True)
    os._exit(130 if number == signal.SIGINT else 143)


def _leave_nothing() -> None:
    for remove in LEFTOVERS:
        remove()


def main() -> None:
    """Entry point of the ``assay`` command."""
    code = 0
    open_standard_streams()
    open_streams()
    IMPATIENCE.append(Impatience(_waits, _gives_up))
    terminated = threading.Event()

    def terminate(*_: object) -> None:
        terminated.set()
        sys.exit(143)  # so that drafts are removed on the way out

    signal.signal(signal.SIGTERM, terminate)
    try:
        app()
    except SystemExit as done:
        code = done.code if isinstance(done.code, int) else int(done.code is not None)
    except OSError as error:  # the help and the version are printed by the library that reads the command line
        to_stderr().print(f"error: standard output: {error.strerror or error}.", markup=False, highlight=False)
        code = 1
    if code and terminated.is_set():  # the engine may tell of it as of an interrupt
        code = 143
    with contextlib.suppress(OSError, ValueError, AttributeError):  # closed, or never open
        sys.stdout.flush()
        sys.stderr.flush()
    _leave_nothing()
    # NOTE: a run that was stopped leaves engine threads that may still call Python; an orderly end would abort under them.
    os._exit(code)
