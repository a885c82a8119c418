"""Spool a one-shot stream to a temporary file, which can be read like any other."""

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

__all__ = ["spool", "spool_file", "spooling"]

_BLOCK = 1 << 20
_FILES: set[Path] = set()
_RUN_FILES: ContextVar[list[Path] | None] = ContextVar("assay-spool", default=None)


def spool_file() -> Path:
    """Create an empty temporary file, which is removed at the end of the run, or of the program outside a run."""
    handle, name = tempfile.mkstemp(prefix="assay-", suffix=".jsonl")
    os.close(handle)
    path = Path(name)
    _FILES.add(path)
    if (run := _RUN_FILES.get()) is not None:
        run.append(path)
    return path


def spool(stream: IO[bytes], name: str) -> Path:
    """Copy a stream to a temporary file, which is removed at the end of the run, or of the program outside a run.

    Args:
        stream: Read to its end, in blocks.
        name: The stream's name in messages.

    Raises:
        InputError: The stream cannot be read, or the disk is full.
    """
    path = spool_file()
    try:
        with path.open("wb") as file:
            shutil.copyfileobj(stream, file, _BLOCK)
    except OSError as error:
        _remove([path])
        raise InputError(
            f"{name}: cannot be copied to {shown_path(path.parent)}: {error.strerror or error}.",
            "Set TMPDIR to use another folder.",
        ) from None
    except BaseException:
        _remove([path])
        raise
    return path


@contextlib.contextmanager
def spooling() -> Iterator[None]:
    """Remove the files that a run has spooled at its end."""
    paths: list[Path] = []
    token = _RUN_FILES.set(paths)
    try:
        yield
    finally:
        _RUN_FILES.reset(token)
        _remove(paths)


def _remove(paths: list[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)
        _FILES.discard(path)


def _remove_all() -> None:
    _remove(list(_FILES))


atexit.register(_remove_all)
LEFTOVERS.append(_remove_all)
forget_in_children(_FILES.clear)
