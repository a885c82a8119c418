"""Standard output is for data: what a user's code prints goes elsewhere."""

import contextlib
import sys
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

__all__ = ["only_data", "standard_output"]

_DATA: ContextVar[Any] = ContextVar("data", default=None)


def standard_output() -> Any:
    """The stream that data goes to; None where it is closed."""
    return _DATA.get() or sys.stdout


@contextlib.contextmanager
def only_data() -> Iterator[None]:
    """Keep standard output for data: what is printed meanwhile goes to standard error."""
    before = _DATA.set(sys.stdout)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        _DATA.reset(before)
