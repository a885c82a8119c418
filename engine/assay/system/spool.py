"""Spool a one-shot stream to a temporary file, which can be read like any other.

The temporary files of a run are in a folder of its own, with a lock that the system releases when the process ends. What a process
leaves that was killed, the next one removes.
"""

import atexit
import contextlib
import io
import os
import re
import secrets
import select
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import IO

from assay.errors import InputError, shown_path
from assay.system.processes import forget_in_children
from assay.system.signals import CLEANUPS

try:
    import fcntl
except ImportError:  # Windows: what a killed process leaves stays
    fcntl = None  # type: ignore[assignment]

_BLOCK = 1 << 20
_LOOK = 200
"""Milliseconds between two polls of an empty pipe."""

_LOCK = "lock"
_NAME = re.compile("assay-[0-9a-f]{16}")

_FOLDERS: dict[Path, int] = {}
"""The folders for temporary files of this process's runs, and the descriptors of their locks."""

_OF_PROGRAM: list[Path] = []
_OF_RUN: ContextVar[list[Path]] = ContextVar("assay-spool", default=_OF_PROGRAM)
"""The folders of the run, or of the program outside a run; made when they are needed."""

_LEFT: set[Path] = set()
"""Folders of runs that failed, which are removed once more at the exit."""

_TIDIED: set[str] = set()
"""Folders for temporary files from which the folders of processes that are gone have been removed."""


def _new_folder(parent: Path) -> Path:
    name = secrets.token_hex(8)
    draft, folder = parent / f"assay-new-{name}", parent / f"assay-{name}"
    try:
        draft.mkdir(mode=0o700)
        handle = os.open(draft / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        _holds(handle)
        draft.rename(folder)  # now that it is locked it may have the name of those that are removed
        _FOLDERS[folder] = handle
    except BaseException:  # an interrupt may come as soon as the folder exists
        shutil.rmtree(draft, ignore_errors=True)
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return folder


def _holds(handle: int) -> bool:
    if fcntl is None:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _remove(folders: Iterable[Path]) -> None:
    for folder in folders:
        if folder in _FOLDERS:  # in a forked child it is the parent's
            shutil.rmtree(folder, ignore_errors=True)
            if (handle := _FOLDERS.pop(folder, None)) is not None:  # a signal may end the program meanwhile
                os.close(handle)


def _remove_orphans() -> None:
    try:
        parent = tempfile.gettempdir()
    except OSError:  # there is none
        return
    if parent in _TIDIED:
        return
    _TIDIED.add(parent)
    for folder in Path(parent).glob("assay-*"):
        if not _NAME.fullmatch(folder.name) or folder.is_symlink():
            continue
        with contextlib.suppress(OSError):  # another user's, or removed by another run
            handle = os.open(folder / _LOCK, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
            try:
                if _holds(handle):  # the process that held it is gone
                    shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(handle)


def spool_path(name: str, suffix: str) -> Path:
    """Return a path where there is nothing; what will be there is removed at the end of the run, or of the program outside a run."""
    try:
        parent, folders = Path(tempfile.gettempdir()), _OF_RUN.get()
        if not folders or folders[-1].parent != parent or folders[-1] not in _FOLDERS:
            folders.append(_new_folder(parent))
    except OSError as error:
        raise refused_by_temporary_folder(name, None, error) from None
    return folders[-1] / f"{secrets.token_hex(8)}{suffix}"


def spool_file(name: str, suffix: str = ".jsonl") -> Path:
    """Create an empty temporary file, which is removed at the end of the run, or of the program outside a run."""
    path = spool_path(name, suffix)
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except OSError as error:
        raise refused_by_temporary_folder(name, None, error) from None
    return path


def spool(stream: IO[bytes], name: str, suffix: str = ".jsonl") -> Path:
    """Copy a stream to a temporary file, which is removed at the end of the run, or of the program outside a run."""
    path = spool_file(name, suffix)
    try:
        with path.open("wb") as file:
            while block := _read(stream, name):
                file.write(block)
    except BaseException as error:
        path.unlink(missing_ok=True)
        if [*path.parent.iterdir()] == [path.parent / _LOCK]:
            _remove([path.parent])
        if isinstance(error, OSError):
            raise refused_by_temporary_folder(name, path, error) from None
        raise
    return path


def _read(stream: IO[bytes], name: str) -> bytes:
    try:
        with contextlib.suppress(io.UnsupportedOperation, AttributeError):  # a stream in memory; Windows has no poll
            ready = select.poll()
            ready.register(stream.fileno(), select.POLLIN)
            # NOTE: an interrupt does not end a read of an empty pipe, because Polars sets SA_RESTART for SIGINT
            while not ready.poll(_LOOK):  # Python calls signal handlers between two polls
                pass
        return stream.read1(_BLOCK) if isinstance(stream, io.BufferedReader) else stream.read(_BLOCK)
    except OSError as error:
        raise InputError(f"{name}: {error.strerror or error}.") from None


def refused_by_temporary_folder(name: str, path: Path | None, error: OSError) -> InputError:
    """Return the error for a temporary file that could not be written, or that has no path yet."""
    where = "a temporary file" if path is None else shown_path(path.parent.parent)
    fact = f"{name}: cannot be copied to {where}: {error.strerror or error}."
    return InputError(fact, "Set TMPDIR to a folder with room for all of it.")


@contextlib.contextmanager
def spooling() -> Iterator[None]:
    """Remove the files that a run has spooled at its end; before, what processes left that were killed."""
    _remove_orphans()
    folders: list[Path] = []
    token = _OF_RUN.set(folders)
    try:
        yield
    except BaseException:
        _LEFT.update(folders)  # NOTE: after an interrupt a thread of Polars may create its copy anew
        raise
    finally:
        _OF_RUN.reset(token)
        _remove(folders)


def _remove_all() -> None:
    _remove([*_FOLDERS])
    for folder in _LEFT:
        shutil.rmtree(folder, ignore_errors=True)


def _leave() -> None:
    # in a forked child the files are the parent's; the copy of the lock stays: the child may read them still
    _LEFT.clear()
    _FOLDERS.clear()


atexit.register(_remove_all)
CLEANUPS.append(_remove_all)
forget_in_children(_leave)
