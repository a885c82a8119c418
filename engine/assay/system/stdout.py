"""Keep standard output for data: user code prints to standard error, and write errors are reported."""

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from assay.errors import OutputError

if TYPE_CHECKING:
    from rich.console import Console

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_STDOUT, _STDERR = 1, 2
_DATA: ContextVar[tuple[Any] | None] = ContextVar("data", default=None)
"""The real standard output while ``sys.stdout`` is redirected."""


def standard_output() -> Any:
    """Return the stream for data; None if it is closed."""
    stream = _DATA.get()
    return sys.stdout if stream is None else stream[0]


def write_data(text: str) -> None:
    """Write text to standard output and flush it."""
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
    """Keep standard output for data: what is printed meanwhile goes to standard error, whoever prints it."""
    stream, number, kept = sys.stdout, -1, -1
    with contextlib.suppress(AttributeError, OSError, ValueError):  # it is closed, or has no descriptor
        number = stream.fileno()
    if number == _STDOUT:  # C code and child processes write to it
        stream.flush()
        # NOTE: not to the lowest number, which ``/dev/fd/3`` may name although nobody gave it
        kept = os.dup(_STDOUT) if fcntl is None else fcntl.fcntl(_STDOUT, fcntl.F_DUPFD_CLOEXEC, 100)
        os.dup2(_STDERR, _STDOUT)
        stream = open(kept, "w", encoding=stream.encoding, errors=stream.errors, closefd=False)  # noqa: SIM115
    before = _DATA.set((stream,))
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        _DATA.reset(before)
        if kept >= 0:
            with contextlib.suppress(OSError):  # whoever wrote was told
                stream.close()
            os.dup2(kept, _STDOUT)
            os.close(kept)


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


def open_console(**options: Any) -> "Console":
    """A console that shows texts as they are, as wide as the terminal; of one that says it has no columns (``COLUMNS=0``) nothing would be seen."""
    from rich.console import Console

    console = Console(emoji=False, **options)
    if console.width < 1:
        console.width = 80
    return console
