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
        why = f"{shown_path(path)} is a link" if path.is_symlink() else wrong.strerror
        raise OutputError(f"{what}: {why}.", "Nothing was written; what was there before is untouched.") from wrong
    if handle is None:
        holder = path.read_text("utf-8", "replace").strip() if path.exists() else ""
        raise UsageError(f"{what}: another run is writing there{f' ({holder})' if holder else ''}.", hint)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(handle)


def _lock(path: Path) -> int | None:
    """A handle on a lock that is now ours, None where it is another's."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | _NO_LINK, 0o644)
        try:
            if fcntl is not None:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            return None
        except OSError as wrong:
            if wrong.errno not in _NO_LOCKS:
                os.close(handle)
                raise
        # NOTE: who held it before may have removed the file between our opening and our locking it
        with contextlib.suppress(FileNotFoundError):
            if path.stat().st_ino == os.fstat(handle).st_ino:
                with contextlib.suppress(OSError):  # who holds it can be said, or cannot
                    os.truncate(handle, 0)
                    os.write(handle, f"process {os.getpid()} on {socket.gethostname()}".encode())
                return handle
        os.close(handle)
