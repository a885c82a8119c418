"""Lock an output path against other runs; the system releases the lock when the process ends, however it ends."""

import contextlib
import errno
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

from assay.errors import OutputError, UsageError, shown_path

try:
    import fcntl
except ImportError:  # Windows: no locks between runs
    fcntl = None  # type: ignore[assignment]

_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
"""Through a link, truncating the lock file would empty the link's target."""

_SHOWN = 120
"""Bytes of a lock that a message shows."""

_POLL = 0.02
"""Seconds between two looks whether another run has ended."""

_NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS)
"""Errors of file systems without locks."""


@contextlib.contextmanager
def locked(path: Path, what: str, hint: str, patience: float = 0.0) -> Iterator[None]:
    """Hold a lock against other runs; wait ``patience`` seconds for one of them to end."""
    deadline = time.monotonic() + patience
    try:
        while (handle := _lock(path)) is None and time.monotonic() < deadline:
            time.sleep(_POLL)
    except OSError as error:
        why = error.strerror
        if os.path.lexists(path):  # what denies it is the lock, not the folder
            why = f"{shown_path(path)} is a link" if path.is_symlink() else f"{shown_path(path)}: {why}"
        raise OutputError(f"{what}: {why}.", "Nothing was written; an existing file is unchanged.") from error
    except BaseException:  # an interrupt may come before the file that was made has a name here
        with contextlib.suppress(OSError):
            handle = os.open(path, os.O_RDWR | _NO_LINK)
            try:
                if fcntl is not None and _take(handle):
                    path.unlink()
            finally:
                os.close(handle)
        raise
    if handle is None:
        holder = ""  # another program may have written anything there, or removed it
        with contextlib.suppress(OSError), path.open("rb") as file:
            holder = file.read(_SHOWN).decode("utf-8", "replace").strip().partition("\n")[0]
        raise UsageError(f"{what}: another run is writing there{f' ({holder})' if holder else ''}.", hint)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(handle)


def _lock(path: Path) -> int | None:
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | _NO_LINK, 0o644)
        is_ours = False
        try:
            if not _take(handle):
                return None
            # NOTE: the previous holder may have removed the file after we opened it and before we locked it
            with contextlib.suppress(FileNotFoundError):
                is_ours = path.stat().st_ino == os.fstat(handle).st_ino
            if is_ours:
                with contextlib.suppress(OSError):  # the holder's name is informative only
                    os.truncate(handle, 0)
                    os.write(handle, f"process {os.getpid()} on {socket.gethostname()}".encode())
                return handle
        except BaseException:
            is_ours = False
            raise
        finally:
            if not is_ours:
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
