"""One run at a time at one place: a lock that the system lets go of when its process ends, however it ends."""

import contextlib
import errno
import os
import socket
from collections.abc import Iterator
from pathlib import Path

from assay.errors import OutputError, UsageError, shown_path

try:
    import fcntl
except ImportError:  # not on Windows: there, runs at one place are not kept apart
    fcntl = None  # type: ignore[assignment]

__all__ = ["locked"]

_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
"""A link would have us empty what it leads to."""

_SHOWN = 120
"""Bytes of a lock that a message shows."""

_NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS)
"""File systems that know no locks."""


@contextlib.contextmanager
def locked(path: Path, what: str, hint: str) -> Iterator[None]:
    """Hold a lock against other runs.

    Args:
        path: The file to lock; it is there as long as the lock is held, and says who holds it.
        what: What the run wants for itself, for the message.
        hint: What to do where another has it.

    Raises:
        UsageError: Another run holds it.
        OutputError: The file cannot be made.
    """
    try:
        handle = _lock(path)
    except OSError as wrong:
        why = wrong.strerror
        if os.path.lexists(path):  # what denies it is the lock, not the folder
            why = f"{shown_path(path)} is a link" if path.is_symlink() else f"{shown_path(path)}: {why}"
        raise OutputError(f"{what}: {why}.", "Nothing was written; what was there before is untouched.") from wrong
    except BaseException:  # an interrupt may come before the file that was made has a name here
        _remove_if_free(path)
        raise
    if handle is None:
        holder = _holder(path)
        raise UsageError(f"{what}: another run is writing there{f' ({holder})' if holder else ''}.", hint)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(handle)


def _holder(path: Path) -> str:
    """What a lock says of who holds it; another program may have written anything there, or removed it."""
    with contextlib.suppress(OSError), path.open("rb") as file:
        return file.read(_SHOWN).decode("utf-8", "replace").strip().partition("\n")[0]
    return ""


def _remove_if_free(path: Path) -> None:
    if fcntl is None:
        return
    with contextlib.suppress(OSError):
        handle = os.open(path, os.O_RDWR | _NO_LINK)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()
        finally:
            os.close(handle)


def _lock(path: Path) -> int | None:
    """A handle on a lock that is now ours, None where it is another's."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | _NO_LINK, 0o644)
        ours = False
        try:
            if not _take(handle):
                return None
            # NOTE: who held it before may have removed the file between our opening and our locking it
            with contextlib.suppress(FileNotFoundError):
                ours = path.stat().st_ino == os.fstat(handle).st_ino
            if ours:
                with contextlib.suppress(OSError):  # a note of who holds it, which the lock does not need
                    os.truncate(handle, 0)
                    os.write(handle, f"process {os.getpid()} on {socket.gethostname()}".encode())
                return handle
        except BaseException:
            ours = False
            raise
        finally:
            if not ours:
                os.close(handle)


def _take(handle: int) -> bool:
    if fcntl is None:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
    return True
