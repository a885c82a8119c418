"""Lines from where they can be read only once, set down in a file, so that they are read as any other."""

import atexit
import contextlib
import io
import os
import select
import tempfile
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import IO

from assay.errors import InputError, shown_path
from assay.system.processes import forget_in_children
from assay.system.signals import LEFTOVERS

__all__ = ["a_place", "not_taken", "set_down", "while_set_down"]

_BLOCK = 1 << 20
_LOOK = 200
"""Milliseconds between two looks at a pipe that is empty."""

_ALL: set[Path] = set()
_OF_RUN: ContextVar[list[Path] | None] = ContextVar("assay-set-down", default=None)


def a_place(name: str) -> Path:
    """An empty file for lines, which is removed when the run ends, or the program where there is no run.

    Args:
        name: What to call what it is for.

    Raises:
        InputError: There is no folder for temporary files, or it takes none.
    """
    try:
        handle, made = tempfile.mkstemp(prefix="assay-", suffix=".jsonl")
    except OSError as error:
        raise _refused(name, "a temporary file", error) from None
    os.close(handle)
    path = Path(made)
    _ALL.add(path)
    if (run := _OF_RUN.get()) is not None:
        run.append(path)
    return path


def set_down(stream: IO[bytes], name: str) -> Path:
    """What a stream gives as a file, which is removed when the run ends, or the program where there is no run.

    Args:
        stream: It is read to its end, and never held in memory.
        name: What to call it.

    Raises:
        InputError: It cannot be read, there is no folder for temporary files, or the disk is full.
    """
    path = a_place(name)
    try:
        with path.open("wb") as file:
            while block := _read(stream, name):
                file.write(block)
    except OSError as error:
        _remove([path])
        raise not_taken(name, path, error) from None
    except BaseException:
        _remove([path])
        raise
    return path


def _read(stream: IO[bytes], name: str) -> bytes:
    try:
        _wait(stream)
        return stream.read1(_BLOCK) if isinstance(stream, io.BufferedReader) else stream.read(_BLOCK)
    except OSError as error:
        raise InputError(f"{name}: {error.strerror or error}.") from None


def _wait(stream: IO[bytes]) -> None:
    """Wait until there is something to read, or nothing more.

    NOTE: a read of a pipe that is empty does not end at an interrupt, which Polars has the system go on after.
    """
    if hasattr(select, "poll"):  # not on Windows
        with contextlib.suppress(io.UnsupportedOperation):  # it is in memory
            ready = select.poll()
            ready.register(stream.fileno(), select.POLLIN)
            while not ready.poll(_LOOK):  # between two looks Python calls the handlers of signals
                pass


def not_taken(name: str, path: Path, error: OSError) -> InputError:
    """The error of a place that did not take what it was made for.

    Args:
        name: What to call what it is for.
        path: The place.
        error: What the disk said.
    """
    return _refused(name, shown_path(path.parent), error)


def _refused(name: str, where: str, error: OSError) -> InputError:
    return InputError(
        f"{name}: cannot be set down in {where}: {error.strerror or error}.",
        "It takes a folder with room for all of it, which TMPDIR names.",
    )


@contextlib.contextmanager
def while_set_down() -> Iterator[None]:
    """A run: what is set down in it is removed at its end."""
    mine: list[Path] = []
    token = _OF_RUN.set(mine)
    try:
        yield
    finally:
        _OF_RUN.reset(token)
        _remove(mine)


def _remove(paths: list[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)
        _ALL.discard(path)


def _remove_all() -> None:
    _remove(list(_ALL))


atexit.register(_remove_all)
LEFTOVERS.append(_remove_all)
forget_in_children(_ALL.clear)
