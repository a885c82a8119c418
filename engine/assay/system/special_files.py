"""Paths that are not regular files: their names in messages, and streams that can be read only once."""

import contextlib
import errno
import io
import os
import re
import stat
import time
from pathlib import Path
from typing import IO

from assay.errors import AssayError, closest, did_you_mean, printable, shown_path
from assay.system.redaction import redacted

_KINDS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
}
NOWHERE = "a broken link"

_DESCRIPTOR = re.compile(r"/dev/std(?P<standard>in)|/(?:dev|proc/self)/fd/(?P<number>\d{1,9})")
_PATIENCE = 5.0
"""Seconds to wait for a writer of a named pipe."""
_POLL = 0.02
"""Seconds between two looks for one."""


_NOTHING = (errno.ENOENT, errno.ENOTDIR, errno.EBADF, errno.ELOOP)


def what_is(path: Path) -> str:
    """Name what is at a path, with its article; ``""`` for a regular file or nothing at all."""
    try:
        mode = path.stat().st_mode
    except OSError as error:
        if error.errno == errno.ELOOP:
            return "a link that leads to itself"
        return NOWHERE if os.path.islink(path) else ""  # noqa: PTH114  (it does not raise)
    except ValueError:  # NUL
        return ""
    return _KINDS.get(stat.S_IFMT(mode), "")


def is_folder(path: Path) -> bool:
    """Return whether a path leads to a folder.

    Raises:
        OSError: Nobody may look: ``Path.is_dir()`` says no to that since Python 3.14.
    """
    try:
        return stat.S_ISDIR(path.stat().st_mode)
    except OSError as error:
        if error.errno in _NOTHING:
            return False
        raise
    except ValueError:  # NUL
        return False


def engine_path(path: Path) -> str:
    """Return a path for Polars and Arrow, which take paths as UTF-8 whatever the locale."""
    return os.fsencode(path).decode()


def path_of(text: str) -> Path:
    """Return the path behind a text from ``path_text`` or ``engine_path``, whatever the locale."""
    return Path(os.fsdecode(text.encode("utf-8")))


def is_stream(path: Path) -> bool:
    """Return whether a path can be read only once: a named pipe, ``/dev/stdin``, ``/dev/fd/3``, ``<(command)``."""
    if _descriptor(path) is not None:
        return not path.is_file()
    return what_is(path) == _KINDS[stat.S_IFIFO]


def regular(path: Path) -> Path:
    """Resolve an open descriptor that is a regular file (``/dev/stdin`` under ``<file``) to that file; keep other paths."""
    if _descriptor(path) is None or not path.is_file():
        return path
    real = Path(os.path.realpath(path))
    with contextlib.suppress(OSError):  # the file was deleted
        return real if real.samefile(path) else path
    return path


def open_input(path: Path) -> IO[bytes]:
    """Open a file or a stream for reading; wait some seconds for the writer of a named pipe."""
    number = _descriptor(path)
    if number is not None:
        if not os.get_inheritable(number):  # opened by this process itself, for example a socket of a run
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        handle = os.dup(number)  # it may be a socket, which has no path
        state = os.fstat(handle)
        is_endless = stat.S_ISCHR(state.st_mode) and not os.isatty(handle)
        if is_endless and not (os.path.exists(os.devnull) and state.st_rdev == Path(os.devnull).stat().st_rdev):  # noqa: PTH110
            os.close(handle)
            raise OSError(errno.EINVAL, "is a device without an end")
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


class _Pipe(io.FileIO):
    """A pipe whose first bytes have been read already."""

    first = b""

    def readinto(self, buffer: "memoryview") -> int | None:  # type: ignore[override]
        if not self.first:
            return super().readinto(buffer)
        size = min(len(buffer), len(self.first))
        buffer[:size], self.first = self.first[:size], self.first[size:]
        return size


def _open_pipe(path: Path) -> IO[bytes]:
    # without blocking: an ordinary open would wait forever if there is no writer
    pipe = _Pipe(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb")
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        try:
            pipe.first = os.read(pipe.fileno(), io.DEFAULT_BUFFER_SIZE)
        except BlockingIOError:  # a writer has opened it and not written yet
            break
        if pipe.first:
            break
        time.sleep(_POLL)
    else:
        pipe.close()
        raise OSError(errno.EPIPE, "is a named pipe without a writer")
    os.set_blocking(pipe.fileno(), True)
    return io.BufferedReader(pipe)


def likely_file(path: Path) -> str:
    """Return a question that names the file beside a missing one whose name is most similar, or ``""``."""
    try:
        names = [shown_path(file.name) for file in path.parent.iterdir()]
    except OSError:
        return ""
    stem = path.name.partition(".")[0]
    return did_you_mean(path.name, [name for name in names if closest(stem, [name.partition(".")[0]])])


_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+):/+(?P<rest>[^/].*)", re.DOTALL)  # a Path has merged the slashes
_DOWNLOADS = {
    "s3": "aws s3 cp {} .",
    "gs": "gcloud storage cp {} .",
    "gcs": "gcloud storage cp {} .",
    "hf": "hf download OWNER/NAME FILE --repo-type dataset",
}


def refuse_url(path: str | os.PathLike[str], error: type[AssayError]) -> None:
    """Refuse a URL where only a local file is read, with the command that downloads it."""
    match = _URL.fullmatch(os.fspath(path))
    if match is None or Path(path).exists():
        return
    url = f"{match['scheme']}://{match['rest']}"
    shown = printable(redacted(url))
    command = _DOWNLOADS.get(match["scheme"].lower(), "curl -O {}").format(shown if shown == url else "URL")
    raise error(f"{shown}: is a URL; this is read from a local file only.", f"Download it first: {command}")
