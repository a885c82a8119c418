"""Where users' Python failed: the file and line of their code, without frames of Assay or of the import system."""

import contextlib
import logging
import sysconfig
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from assay.errors import describe_error, printable, shown_path

_logger = logging.getLogger("assay.calls")
_MOST = 1000
_PLACES: dict[str, str] = {}
_LOGGED: WeakKeyDictionary[object, set[str]] = WeakKeyDictionary()
_MOST_LOGGED = 10

_OURS = Path(__file__).resolve().parents[1]
_LIBRARY = Path(sysconfig.get_path("stdlib"))
_INSTALLED = {"site-packages", "dist-packages"}


def raised_at(error: BaseException) -> str:
    """Return where an exception left users' code, ``file, line 3: code``; ``""`` if no line of theirs raised it."""
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        return _place(error.filename, error.lineno, error.text or "")
    frames = []
    for frame in traceback.extract_tb(error.__traceback__):
        path = Path(frame.filename)
        is_library = path.is_relative_to(_LIBRARY) and not _is_installed(frame.filename)
        if not (frame.filename.startswith("<") or path.is_relative_to(_OURS) or is_library):
            frames.append(frame)
    # the line of an installed library says less than the line that called it; but users' code may be installed, too
    frames = [frame for frame in frames if not _is_installed(frame.filename)] or frames
    return _place(frames[-1].filename, frames[-1].lineno or 0, frames[-1].line or "") if frames else ""


def failure(error: BaseException, owner: object = None, name: str = "") -> str:
    """Return an exception of users' code for ``error``, and remember its line; log each message once for what called the code."""
    message = describe_error(error)
    if message not in _PLACES and len(_PLACES) < _MOST:
        _PLACES[message] = raised_at(error)
    logged = _LOGGED.setdefault(owner, set()) if owner is not None and place_of(message) else None
    if logged is not None and message not in logged and len(logged) < _MOST_LOGGED:
        logged.add(message)
        _logger.error("%s: %s\n  %s", printable(name), printable(message), place_of(message))
    return message


def place_of(message: str) -> str:
    """Return the line of users' code that raised an exception with a message, in this process; ``""`` if it is not known."""
    return _PLACES.get(message, "")


def remember(places: Mapping[str, str]) -> None:
    """Remember the lines that raised exceptions in another process, by message."""
    for message, place in places.items():
        if len(_PLACES) < _MOST:
            _PLACES.setdefault(message, place)


def defined_at(function: Callable[..., Any]) -> str:
    """Return where a function is defined, ``file, line 3``; ``""`` if it is not written in Python."""
    code = getattr(function, "__code__", None)
    return "" if code is None else _place(code.co_filename, code.co_firstlineno, "")


def _is_installed(file: str) -> bool:
    return not _INSTALLED.isdisjoint(Path(file).parts)


def _place(file: str, line: int, code: str) -> str:
    path = Path(file)
    with contextlib.suppress(OSError, ValueError):  # the current folder is gone, or the file is elsewhere
        path = path.relative_to(Path.cwd())
    return f"{shown_path(path)}, line {line}{f': {code.strip()}' if code.strip() else ''}"
