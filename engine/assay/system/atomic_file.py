"""Write files that appear complete or not at all.

A file is written to a hidden sibling, flushed to disk, read back if it has a footer, and only then renamed. No reader sees a
partial file, and a failed run leaves the previous file unchanged.
"""

import contextlib
import errno
import glob
import os
import socket
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import IO

import polars as pl
from polars.exceptions import PolarsError

from assay.errors import OutputError, UsageError, counted, shown_path
from assay.system.arrow import file_errors
from assay.system.locks import locked
from assay.system.processes import forget_in_children
from assay.system.signals import CLEANUPS
from assay.system.special_files import NOWHERE, what_is

_DRAFTS: set[Path] = set()
"""Temporary files being written."""

_HOST = zlib.crc32(socket.gethostname().encode())
"""Distinguishes machines that write to one shared folder."""

_NO_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS)
"""File systems that cannot be asked to bring a file to the disk."""

DiskGuard = Callable[[], contextlib.AbstractContextManager[None]]
"""Return a context manager that turns disk errors into an ``OutputError`` that names the file."""


@contextlib.contextmanager
def new_file(path: Path, *, alone: bool = True) -> Iterator[tuple[IO[bytes], DiskGuard]]:
    """Open a file for writing that appears at its path when the block ends without an exception."""
    target = Path(os.path.realpath(path))  # replace the target of a symbolic link, not the link
    if not alone:
        yield from _drafted(path, target)
        return
    lock = target.with_name(f".{target.name}.lock")
    with locked(lock, shown_path(path), "Wait for it to end, or name another file."):
        for leftover in target.parent.glob(f".{glob.escape(target.name)}.*.tmp"):  # from a run that was killed
            with contextlib.suppress(OSError):
                leftover.unlink()
        yield from _drafted(path, target)


def write_file(path: Path, content: str | bytes) -> None:
    """Write a small file of a folder that is locked."""
    with new_file(path, alone=False) as (file, guard), guard():
        file.write(content.encode() if isinstance(content, str) else content)


def _drafted(path: Path, target: Path) -> Iterator[tuple[IO[bytes], DiskGuard]]:
    draft = _draft_of(target)
    _DRAFTS.add(draft)
    reported = partial(refused_by_disk, shown_path(path), draft)
    try:
        with reported():
            draft.unlink(missing_ok=True)
            # O_EXCL: never write through a file or link that somebody else created at this path
            file = os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666), "wb")
        try:
            yield file, reported
            with reported():
                file.flush()
                try:
                    os.fsync(file.fileno())
                except OSError as error:
                    if error.errno not in _NO_SYNC:
                        raise
        finally:
            with contextlib.suppress(OSError):  # a failed flush has been reported already
                file.close()
        with reported():
            if path.suffix.lower() == ".parquet":
                with draft.open("rb") as back:  # Polars opens no name that is not UTF-8
                    pl.read_parquet_metadata(back)
            if target.exists() and target.stat().st_mode != draft.stat().st_mode:
                draft.chmod(target.stat().st_mode)
            draft.replace(target)
        # best effort: on a file system that cannot sync folders, a crash may undo the rename, which restores the previous file
        with contextlib.suppress(OSError):
            folder = os.open(target.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
    finally:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
        _DRAFTS.discard(draft)


def _draft_of(target: Path) -> Path:
    return target.with_name(f".{target.name}.{os.getpid()}-{_HOST:08x}.tmp")


def _remove_drafts() -> None:
    for draft in list(_DRAFTS):
        draft.unlink(missing_ok=True)


CLEANUPS.append(_remove_drafts)
forget_in_children(_DRAFTS.clear)


def check_target(path: Path, *, overwrite: bool, how: str) -> None:
    """Check that a file can and may be written at a path."""
    try:
        os.lstat(_draft_of(path))
    except (FileNotFoundError, NotADirectoryError):
        pass
    except (OSError, ValueError) as error:  # ValueError: it has a NUL
        long = getattr(error, "errno", None) == errno.ENAMETOOLONG
        hint = "Its draft, beside it, has a name of some 25 bytes more." if long else ""
        raise UsageError(f"{shown_path(path)}: {getattr(error, 'strerror', 'a NUL in its name')}.", hint) from None
    if not path.parent.is_dir():
        raise UsageError(f"{shown_path(path)}: there is no folder {shown_path(path.parent)}.")
    if (what := what_is(path)) and what != NOWHERE:
        raise UsageError(f"{shown_path(path)}: is {what}.", "Name another file.")
    if path.exists() and not overwrite:
        raise UsageError(f"{shown_path(path)}: already exists.", f"Name another file, or replace it with {how}.")


@contextlib.contextmanager
def refused_by_disk(name: str, draft: Path | None = None) -> Iterator[None]:
    """Turn disk errors into an ``OutputError`` that names the file, with the size of its draft."""
    try:
        yield
    except BrokenPipeError:
        raise
    except file_errors(PolarsError) as error:
        message = getattr(error, "strerror", None) or str(error)
        if draft is None:
            raise OutputError(f"{name}: {message}.") from error
        written = draft.stat().st_size if draft.exists() else 0
        hint = "An existing file is unchanged."
        raise OutputError(f"{name}: {message}, after {counted(written, 'byte')}.", hint) from error
