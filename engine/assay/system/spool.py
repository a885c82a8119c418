"""Spool a one-shot stream to a temporary file, which can be read like any other."""

import atexit
import contextlib
import io
import os
import secrets
import select
import tempfile
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import IO

from assay.errors import InputError, shown_path
from assay.system.processes import forget_in_children
from assay.system.signals import LEFTOVERS

__all__ = ["refused_by_temporary_folder", "spool", "spool_file", "spooling"]

_BLOCK = 1 << 20
_LOOK = 200
"""Milliseconds between two polls of an empty pipe."""

_FILES: set[Path] = set()
_RUN_FILES: ContextVar[list[Path] | None] = ContextVar("assay-spool", default=None)


def spool_file(name: str, suffix: str = ".jsonl") -> Path:
    """Create an empty temporary file, which is removed at the end of the run, or of the program outside a run.

    Args:
        name: The input that is copied to it, for messages.
        suffix: The suffix of its name.

    Raises:
        InputError: There is no folder for temporary files, or it cannot be written to.
    """
    try:
        path = Path(tempfile.gettempdir(), f"assay-{secrets.token_hex(8)}{suffix}")
        _FILES.add(path)  # before it exists: a signal may end the program as soon as it does
        if (run := _RUN_FILES.get()) is not None:
            run.append(path)
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except OSError as error:
        raise _refused(name, "a temporary file", error) from None
    return path


def spool(stream: IO[bytes], name: str, suffix: str = ".jsonl") -> Path:
    """Copy a stream to a temporary file, which is removed at the end of the run, or of the program outside a run.

    Args:
        stream: Read to its end, in blocks.
        name: The stream's name in messages.
        suffix: The suffix of the file's name.

    Raises:
        InputError: The stream cannot be read, there is no folder for temporary files, or the disk is full.
    """
    path = spool_file(name, suffix)
    try:
        with path.open("wb") as file:
            while block := _read(stream, name):
                file.write(block)
    except OSError as error:
        _remove([path])
        raise refused_by_temporary_folder(name, path, error) from None
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
    """Wait until there is data, or the end of the stream.

    NOTE: an interrupt does not end a read of an empty pipe, because Polars sets SA_RESTART for SIGINT.
    """
    if hasattr(select, "poll"):  # not on Windows
        with contextlib.suppress(io.UnsupportedOperation):  # a stream in memory
            ready = select.poll()
            ready.register(stream.fileno(), select.POLLIN)
            while not ready.poll(_LOOK):  # Python calls signal handlers between two polls
                pass


def refused_by_temporary_folder(name: str, path: Path, error: OSError) -> InputError:
    """Return the error for a temporary file that could not be written.

    Args:
        name: The input that was copied to it, for the message.
        path: The temporary file.
        error: The error of the disk.
    """
    return _refused(name, shown_path(path.parent), error)


def _refused(name: str, where: str, error: OSError) -> InputError:
    return InputError(
        f"{name}: cannot be copied to {where}: {error.strerror or error}.",
        "Set TMPDIR to a folder with room for all of it.",
    )


@contextlib.contextmanager
def spooling() -> Iterator[None]:
    """Remove the files that a run has spooled at its end."""
    paths: list[Path] = []
    token = _RUN_FILES.set(paths)
    ended = False
    try:
        yield
        ended = True
    finally:
        _RUN_FILES.reset(token)
        _remove(paths)
        if (
            ended
        ):  # NOTE: after an interrupt a thread of Polars may create its copy anew; it is removed again at the exit
            _FILES.difference_update(paths)


def _remove(paths: list[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)


def _remove_all() -> None:
    _remove(list(_FILES))


atexit.register(_remove_all)
LEFTOVERS.append(_remove_all)
forget_in_children(_FILES.clear)
