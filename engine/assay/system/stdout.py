"""Keep standard output for data: user code prints to standard error, and write errors are reported."""

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

from assay.errors import OutputError

__all__ = ["Messages", "only_data", "open_streams", "standard_output", "write_data"]

_DATA: ContextVar[tuple[Any] | None] = ContextVar("data", default=None)
"""The real standard output while ``sys.stdout`` is redirected."""


def standard_output() -> Any:
    """Return the stream for data; None if it is closed."""
    stream = _DATA.get()
    return sys.stdout if stream is None else stream[0]


def write_data(text: str) -> None:
    """Write text to standard output and flush it.

    Raises:
        OutputError: Standard output is closed, or the disk is full.
        BrokenPipeError: The reader is gone.
    """
    stream = standard_output()
    if stream is None:
        raise OutputError("Standard output is closed.")
    try:
        stream.write(text)
        stream.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(f"standard output: {error.strerror or error}.") from None


@contextlib.contextmanager
def only_data() -> Iterator[None]:
    """Redirect prints to standard error within the block."""
    before = _DATA.set((sys.stdout,))
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        _DATA.reset(before)


class Messages:
    """A stream for messages that drops what cannot be written (full disk, closed pipe), so that the work goes on."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write text if possible."""
        with contextlib.suppress(OSError, ValueError):  # ValueError: the stream is closed
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush if possible."""
        with contextlib.suppress(OSError, ValueError):
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def open_streams() -> None:
    """Make the standard streams accept any text, even if the locale is not UTF-8 or they are closed."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    messages = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115  (open to the end)
    sys.stderr = Messages(messages)
