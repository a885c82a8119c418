"""Paths that are no regular files: what they are, in words, and those that can be read once."""

import contextlib
import errno
import io
import os
import re
import stat
import time
from pathlib import Path
from typing import IO

__all__ = ["NOWHERE", "engine_path", "is_stream", "open_input", "path_of", "regular", "what_is"]

_KINDS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
}
NOWHERE = "a link to what is not there"

_DESCRIPTOR = re.compile(r"/dev/std(?P<standard>in)|/(?:dev|proc/self)/fd/(?P<number>\d{1,9})")
_PATIENCE = 5.0
"""Seconds that somebody has to begin to write to a named pipe."""
_LOOK = 0.02


def what_is(path: Path) -> str:
    """What stands at a path that is no regular file, with its article; ``""`` for a file, and where nothing is."""
    try:
        mode = path.stat().st_mode
    except OSError as error:
        if error.errno == errno.ELOOP:
            return "a link that leads to itself"
        return NOWHERE if os.path.islink(path) else ""  # noqa: PTH114  (it does not raise)
    except ValueError:  # NUL
        return ""
    return _KINDS.get(stat.S_IFMT(mode), "")


def engine_path(path: Path) -> str:
    """A path for the engine and for Arrow, which read names as UTF-8 whatever the locale.

    Raises:
        UnicodeDecodeError: It is not UTF-8.
    """
    return os.fsencode(path).decode()


def path_of(text: str) -> Path:
    """The path that ``path_text`` or ``engine_path`` gave, whatever the locale."""
    return Path(os.fsdecode(text.encode("utf-8")))


def is_stream(path: Path) -> bool:
    """Whether a path can be read once, from its beginning to its end: a named pipe, ``/dev/stdin``, ``/dev/fd/3``, ``<(command)``."""
    if _descriptor(path) is not None:
        return not path.is_file()
    return what_is(path) == _KINDS[stat.S_IFIFO]


def regular(path: Path) -> Path:
    """The file that a path of an open descriptor means (``/dev/stdin`` under ``<file``), by its own name; any other path as it is."""
    if _descriptor(path) is None or not path.is_file():
        return path
    real = Path(os.path.realpath(path))
    with contextlib.suppress(OSError):  # the file is gone
        return real if real.samefile(path) else path
    return path


def open_input(path: Path) -> IO[bytes]:
    """A file to read, or a stream; of a named pipe it is waited a while for somebody to write to it.

    Raises:
        OSError: It cannot be read; ``strerror`` says why, for a person.
    """
    number = _descriptor(path)
    if number is not None:
        if not os.get_inheritable(
            number
        ):  # nobody gave it to this process, which has opened it for itself: a socket of a run
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        handle = os.dup(number)  # what is behind it may be a socket, which has no path
        mode = os.fstat(handle).st_mode
        if stat.S_ISCHR(mode) and not os.isatty(handle) and not _is_null(handle):
            os.close(handle)
            raise OSError(errno.EINVAL, "is a device, which has no end")
        return os.fdopen(handle, "rb")
    what = what_is(path)
    if what == _KINDS[stat.S_IFIFO]:
        return _open_pipe(path)
    if what:
        raise OSError(errno.EINVAL, f"is {what}")
    return path.open("rb")


def _descriptor(path: Path) -> int | None:
    match = _DESCRIPTOR.fullmatch(str(path))
    return None if match is None else int(match["number"] or 0)


def _is_null(handle: int) -> bool:
    with contextlib.suppress(OSError):
        return os.fstat(handle).st_rdev == Path(os.devnull).stat().st_rdev
    return False


class _Pipe(io.FileIO):
    """A pipe of which the first bytes have been read."""

    first = b""

    def readinto(self, buffer: "memoryview") -> int | None:  # type: ignore[override]
        if not self.first:
            return super().readinto(buffer)
        size = min(len(buffer), len(self.first))
        buffer[:size], self.first = self.first[:size], self.first[size:]
        return size


def _open_pipe(path: Path) -> IO[bytes]:
    """NOTE: to open a named pipe as other files waits for a writer, for ever where there is none."""
    pipe = _Pipe(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb")
    ends = time.monotonic() + _PATIENCE
    while time.monotonic() < ends:
        try:
            pipe.first = os.read(pipe.fileno(), io.DEFAULT_BUFFER_SIZE)
        except BlockingIOError:  # somebody has opened it, and not written yet
            break
        if pipe.first:
            break
        time.sleep(_LOOK)
    else:
        pipe.close()
        raise OSError(errno.EPIPE, "is a named pipe, and nobody writes to it")
    os.set_blocking(pipe.fileno(), True)
    return io.BufferedReader(pipe)
