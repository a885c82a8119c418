"""Spool a one-shot stream to a temporary file, which can be read like any other.

The temporary files of a process are in a folder of its own, with a lock that the system releases when the process ends. What a
process leaves that was killed, the next one removes.
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
import threading
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import IO

from assay.errors import InputError, shown_path
from assay.system.processes import forget_in_children
from assay.system.signals import LEFTOVERS

try:
    import fcntl
except ImportError:  # Windows: what a killed process leaves stays
    fcntl = None  # type: ignore[assignment]

_BLOCK = 1 << 20
_LOOK = 200
"""Milliseconds between two polls of an empty pipe."""

_LOCK = "lock"
_NAME = re.compile("assay-[0-9a-f]{16}")

_FILES: set[Path] = set()
_RUN_FILES: ContextVar[list[Path] | None] = ContextVar("assay-spool", default=None)

_FOLDERS: dict[Path, tuple[Path, int]] = {}
"""This process's folder in each folder for temporary files, and the descriptor of its lock; there while it has files."""

_LEFT: set[Path] = set()
"""Folders of runs that failed, which are removed once more at the exit."""

_GUARD = [threading.Lock()]
"""Held while such a folder is made or removed."""


def _new_path(suffix: str) -> Path:
    parent = Path(tempfile.gettempdir())
    with _GUARD[0]:
        if parent not in _FOLDERS:
            _make_folder(parent)
        path = _FOLDERS[parent][0] / f"{secrets.token_hex(8)}{suffix}"
        _FILES.add(path)  # before it exists: a signal may end the program as soon as it does
        return path


def _make_folder(parent: Path) -> None:
    name = secrets.token_hex(8)
    draft, folder = parent / f"assay-new-{name}", parent / f"assay-{name}"
    try:
        draft.mkdir(mode=0o700)
        handle = os.open(draft / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        _holds(handle)
        draft.rename(folder)  # now that it is locked it may have the name of those that are removed
        _FOLDERS[parent] = folder, handle
    except BaseException:  # an interrupt may come as soon as the folder exists
        shutil.rmtree(draft, ignore_errors=True)
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _holds(handle: int) -> bool:
    if fcntl is None:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _remove_folders() -> None:
    with _GUARD[0]:
        used = {path.parent for path in _FILES}
        for parent, (folder, handle) in [*_FOLDERS.items()]:
            if folder not in used:
                shutil.rmtree(folder, ignore_errors=True)
                os.close(handle)
                del _FOLDERS[parent]


_TIDIED: set[str] = set()
"""Folders for temporary files from which the folders of processes that are gone have been removed."""


def _remove_orphans() -> None:
    with contextlib.suppress(OSError):
        parent = tempfile.gettempdir()
        if parent in _TIDIED:
            return
        _TIDIED.add(parent)
        for folder in os.scandir(parent):
            if _NAME.fullmatch(folder.name) and folder.is_dir(follow_symlinks=False):
                with contextlib.suppress(OSError):  # another user's, or removed by another run
                    _remove_orphan(Path(folder.path))


def _remove_orphan(folder: Path) -> None:
    handle = os.open(folder / _LOCK, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
    try:
        if _holds(handle):
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(handle)


def spool_path(name: str, suffix: str) -> Path:
    """Return a path where there is nothing; what will be there is removed at the end of the run, or of the program outside a run."""
    try:
        path = _new_path(suffix)
    except OSError as error:
        raise _refused(name, "a temporary file", error) from None
    if (run := _RUN_FILES.get()) is not None:
        run.append(path)
    return path


def spool_file(name: str, suffix: str = ".jsonl") -> Path:
    """Create an empty temporary file, which is removed at the end of the run, or of the program outside a run."""
    path = spool_path(name, suffix)
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except OSError as error:
        raise _refused(name, "a temporary file", error) from None
    return path


def spool(stream: IO[bytes], name: str, suffix: str = ".jsonl") -> Path:
    """Copy a stream to a temporary file, which is removed at the end of the run, or of the program outside a run."""
    path = spool_file(name, suffix)
    try:
        with path.open("wb") as file:
            while block := _read(stream, name):
                file.write(block)
    except OSError as error:
        _remove([path])
        _forget([path])
        raise refused_by_temporary_folder(name, path, error) from None
    except BaseException:
        _remove([path])
        _forget([path])
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
    """Return the error for a temporary file that could not be written."""
    return _refused(name, shown_path(path.parent.parent), error)


def _refused(name: str, where: str, error: OSError) -> InputError:
    return InputError(
        f"{name}: cannot be copied to {where}: {error.strerror or error}.",
        "Set TMPDIR to a folder with room for all of it.",
    )


@contextlib.contextmanager
def spooling() -> Iterator[None]:
    """Remove the files that a run has spooled at its end; before, what processes left that were killed."""
    _remove_orphans()
    paths: list[Path] = []
    token = _RUN_FILES.set(paths)
    try:
        yield
    except BaseException:
        # NOTE: after an interrupt a thread of Polars may create its copy anew
        _LEFT.update(path.parent for path in paths)
        raise
    finally:
        _RUN_FILES.reset(token)
        _remove(paths)
        _forget(paths)


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)


def _forget(paths: Iterable[Path]) -> None:
    _FILES.difference_update(paths)
    _remove_folders()


def _remove_all() -> None:
    _FILES.clear()
    _remove_folders()
    for folder in _LEFT:
        shutil.rmtree(folder, ignore_errors=True)


def _leave() -> None:
    _FILES.clear()
    _LEFT.clear()
    _FOLDERS.clear()
    _GUARD[0] = threading.Lock()


atexit.register(_remove_all)
LEFTOVERS.append(_remove_all)
forget_in_children(_leave)
