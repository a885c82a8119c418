"""Lines from where they can be read only once, set down in a file, so that they are read as any other."""

import atexit
import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import IO

from assay.errors import InputError, shown_path
from assay.system.processes import forget_in_children
from assay.system.signals import LEFTOVERS

__all__ = ["a_place", "set_down", "while_set_down"]

_BLOCK = 1 << 20
_ALL: set[Path] = set()
_OF_RUN: ContextVar[list[Path] | None] = ContextVar("assay-set-down", default=None)


def a_place() -> Path:
    """An empty file for lines, which is removed when the run ends, or the program where there is no run."""
    handle, made = tempfile.mkstemp(prefix="assay-", suffix=".jsonl")
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
        InputError: It cannot be read, or the disk is full.
    """
    path = a_place()
    try:
        with path.open("wb") as file:
            shutil.copyfileobj(stream, file, _BLOCK)
    except OSError as wrong:
        _remove([path])
        raise InputError(
            f"{name}: cannot be set down in {shown_path(path.parent)}: {wrong.strerror or wrong}.",
            "TMPDIR names another folder.",
        ) from None
    except BaseException:
        _remove([path])
        raise
    return path


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
